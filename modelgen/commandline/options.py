"""The options of a command, read from a dataclass: field names, types, defaults and the doc string under each field."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
GENERAL = "options"


@dataclass(frozen=True)
class Argument:
    """How a field stands on the command line where its name and type do not say it; goes into `Annotated`."""

    name: str = ""
    metavar: str = ""
    positional: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subjects:
    """Headings of a nested dataclass, each with the first field below it; goes into `Annotated`."""

    first: Mapping[str, str]


@dataclass(frozen=True)
class Option:
    """One option, or a positional argument."""

    field: str
    owner: str  # the field that holds the nested dataclass, or nothing
    kind: Any  # the type, without None and without annotations
    doc: str
    argument: Argument
    required: bool
    subject: str

    @property
    def name(self) -> str:
        """The option's name without dashes, or the positional argument's in capitals."""
        if self.argument.positional:
            return self.argument.metavar or self.field.upper()
        return self.argument.name or self.field.replace("_", "-")

    @property
    def key(self) -> str:
        """What the parser calls it."""
        return self.field if self.argument.positional else self.name

    @property
    def shown(self) -> str:
        """What messages call it."""
        return self.name if self.argument.positional else f"--{self.name}"

    @property
    def flags(self) -> tuple[str, ...]:
        """`--name`, and `--no-name` for a switch that a setting may have turned on; nothing where positional."""
        if self.argument.positional:
            return ()
        return (f"--{self.name}", f"--no-{self.name}") if self.kind is bool and self.owner else (f"--{self.name}",)

    @property
    def choices(self) -> tuple[str, ...]:
        """What a value may be, or nothing where it is free."""
        kind = get_args(self.kind)[0] if self.several else self.kind
        return get_args(kind) if get_origin(kind) is Literal else self.argument.choices

    @property
    def as_text(self) -> Any:
        """The type of its values before they are compared with the choices."""
        return tuple[str, ...] if self.several else str

    @property
    def several(self) -> bool:
        """Whether the option takes several values."""
        return get_origin(self.kind) in (list, tuple)

    @property
    def metavar(self) -> str:
        """The values as help writes them; nothing for a switch."""
        if self.kind is bool:
            return ""
        if not self.several:
            return self.argument.metavar or "|".join(self.choices) or METAVARS[self.kind]
        kinds = [kind for kind in get_args(self.kind) if kind is not Ellipsis]
        names = [self.argument.metavar or "|".join(self.choices) or METAVARS[kind] for kind in kinds]
        fixed = get_origin(self.kind) is tuple and Ellipsis not in get_args(self.kind)
        return " ".join(names) if fixed or names[0].startswith("[") else f"{names[0]} ..."


@cache
def options_of(command: type) -> tuple[Option, ...]:
    """Every option of a command's dataclass, those of a dataclass in a field included."""
    return tuple(_options(command, "", {}))


def _options(command: type, owner: str, headings: Mapping[str, str]) -> Iterator[Option]:
    hints, docs, subject = get_type_hints(command, include_extras=True), field_docs(command), GENERAL
    for each in dataclasses.fields(command):
        kind, notes = _plain(hints[each.name])
        subject = headings.get(each.name, subject)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            first = next((note.first for note in notes if isinstance(note, Subjects)), {})
            yield from _options(kind, each.name, {start: heading for heading, start in first.items()})
            continue
        argument = next((note for note in notes if isinstance(note, Argument)), Argument())
        missing = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        yield Option(each.name, owner, kind, docs.get(each.name, ""), argument, missing, subject)


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without `None` and `Annotated`, and the notes that stood in `Annotated`."""
    notes: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes = tuple(rest)
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    return hint, notes


def field_docs(command: type) -> dict[str, str]:
    """The doc string under each field, every paragraph on one line; empty where the source is not there."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = one_line(text)
    return docs


def one_line(text: str) -> str:
    """A doc string's paragraphs, each on one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))
