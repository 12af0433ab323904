"""Errors of modelgen. A message says what is wrong, where, and what to write instead."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from sys import _getframe
from types import FrameType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

LONGEST = 4000  # characters of a message
#: A command in backticks, or an option, which messages name as the command line does. Paths may contain `--` too.
_OPTION = re.compile(r"(`[^`]*`)|(?<![\w./-])--([a-z][a-z-]*)")
_ARGUMENTS = {"set": "parameters", "effort": "efforts", "fix": "fixed"}  # with another name than their option
_commands = [0]  # that run


@dataclass(frozen=True)
class Place:
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@contextmanager
def of_a_command() -> Iterator[None]:
    """Let messages within the block name options, such as `--longest-delay`."""
    _commands[0] += 1
    try:
        yield
    finally:
        _commands[0] -= 1


def worded(message: str) -> str:
    """A message for its reader: outside of commands, options are arguments of Python, such as `longest_delay`."""

    def argument(found: re.Match[str]) -> str:
        return found[1] or _ARGUMENTS.get(found[2], found[2].replace("-", "_"))

    return message if _commands[0] else _OPTION.sub(argument, message)


class Worded(Exception):
    """An error or a warning whose text suits where it is read: it may come from another process."""

    def __str__(self) -> str:
        return worded(super().__str__())


class ModelError(Worded, ValueError):
    """A mistake in a model file or in a call of a compiled robot. `place`: the line of the user, if known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(abridged(f"{place}: {message}" if place else message, LONGEST))
        self.place = place


def joined(errors: Sequence[ModelError], remedy: str = "") -> ModelError:
    """One error with the messages of all, one per line, in the order of the file. The remedy follows."""
    ordered = sorted(errors, key=lambda error: error.place.line if error.place else 0)
    return ModelError("\n".join([*map(str, ordered), *[remedy] * bool(remedy)]))


#: The message for an expression that exceeds the recursion limit of SymPy.
TOO_DEEP = (
    "an expression is nested too deep or has too many terms for SymPy, whose functions are recursive. Write it with "
    "fewer nested functions (a hundred are fine) or fewer terms in a sum (a thousand are fine), and do not expand() "
    "products and powers."
)


class ArtifactError(ModelError):
    """An artifact that is missing, damaged, edited, of another version, or made from another model."""


class ReliabilityWarning(Worded, UserWarning):
    """Something of which a result depends, and that the user may not expect."""


class StaleArtifactWarning(ReliabilityWarning):
    """An artifact that was built from another content of the model file than ./models holds."""


P = ParamSpec("P")
R = TypeVar("R")
#: What an argument with a type may be, and its name in a message.
_KINDS: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    Path: (PathLike, "a path"),
    PathLike: (PathLike, "a path"),
    bool: ((bool, Integral), "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    type(None): (type(None), "None"),
    Mapping: (Mapping, "a mapping"),
    Sequence: (Iterable, "a list"),
    Iterable: (Iterable, "a list"),
    Callable: (Callable, "a function"),
}


def checked(error: type[Exception], *but: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of public functions, which raise `error` for an argument that is not of its annotated type.

    A path in place of a text is taken as its text, and a number of NumPy, Torch or JAX as Python's, also in a mapping.
    but: arguments that the function checks, and knows better what to give.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        form, plain = signature(function), cast(Callable[..., R], function)
        named = {name: one for name, one in form.parameters.items() if name not in but and one.kind != one.VAR_KEYWORD}

        @cache
        def hint(name: str) -> Any:
            """The type of an argument; Any where it is imported for type checkers only."""
            try:
                return eval(named[name].annotation, sys.modules[function.__module__].__dict__)
            except (NameError, TypeError):
                return Any

        @wraps(function)
        def called(*arguments: P.args, **options: P.kwargs) -> R:
            try:
                bound = form.bind(*arguments, **options)
            except TypeError as mistake:  # which does not name the function
                what = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                names = ", ".join(name for name in form.parameters if name != "self")
                raise TypeError(f"{what}: {mistake}; its arguments are {names}") from None
            given = bound.arguments
            for name in filter(given.__contains__, named):
                choices = _choices(hint(name))
                given[name] = _plain(given[name], choices)
                for value in given[name] if named[name].kind == Parameter.VAR_POSITIONAL else (given[name],):
                    if not _fits(value, hint(name)):
                        raise error(_misfit(name, value, choices))
            return plain(*bound.args, **bound.kwargs)

        return called

    return decorate


def _plain(value: Any, choices: tuple[Any, ...]) -> Any:
    """An argument as a function with these types uses it."""
    if isinstance(value, PathLike) and str in choices:
        kinds = tuple(get_origin(kind) or kind for kind in choices)
        kept = PathLike in kinds or (Path in kinds and isinstance(value, Path))
        return value if kept else fspath(value)
    if isinstance(value, Mapping) and (mapping := _mapping(choices)) is not None:
        inside = _choices(get_args(mapping)[1])
        return {key: _plain(entry, inside) for key, entry in value.items()}
    number = getattr(value, "ndim", None) == 0 and any(kind in choices for kind in (int, float, bool))
    return value.item() if number else value


def _misfit(name: str, value: object, choices: tuple[Any, ...]) -> str:
    """What is wrong with an argument that is of none of some types, or with an entry of a mapping or a list."""
    if (mapping := _mapping(choices)) is not None and isinstance(value, Mapping):
        of_keys, of_entries = get_args(mapping)
        for key, entry in value.items():
            if not _fits(key, of_keys):
                return _misfit(f"a key of {name}", key, _choices(of_keys))
            if not _fits(entry, of_entries):
                return _misfit(f"{name}[{key!r}]", entry, _choices(of_entries))
    inside = next((get_args(each) for each in choices if get_origin(each) in (Sequence, Iterable)), ())
    if inside and isinstance(value, list | tuple):
        i = next(i for i, entry in enumerate(value) if not _fits(entry, inside[0]))
        return _misfit(f"{name}[{i}]", value[i], _choices(inside[0]))
    kinds = dict.fromkeys(_kind(each)[1] for each in choices)
    return f"{name} is {abridged(repr(value))}; give {' or '.join(kinds)}"


def _mapping(choices: tuple[Any, ...]) -> Any:
    """The first of some types that is a mapping; None if there is none."""
    return next((each for each in choices if get_origin(each) is Mapping), None)


def _choices(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type."""
    return get_args(hint) if type(hint) is type(int | str) or get_origin(hint) is Union else (hint,)


def _kind(hint: Any) -> tuple[Any, str]:
    if get_origin(hint) is Literal:
        return str, " or ".join(map(repr, get_args(hint)))
    kind = get_origin(hint) or hint
    name = str(getattr(kind, "__name__", kind))
    return _KINDS.get(kind, (kind, f"{'an' if name[0] in 'AEIO' else 'a'} {name}"))


def _fits(value: object, hint: Any) -> bool:
    """Whether a value, or each value of a mapping or a list, is of a type.

    A protocol, as those of NumPy's ArrayLike, says what a value does and not what it is: every value may fit. A number
    of NumPy, Torch or JAX is that of Python.
    """
    if len(choices := _choices(hint)) > 1:
        return any(_fits(value, each) for each in choices)
    kinds, inside = _kind(hint)[0], get_args(hint)
    if get_origin(hint) is Literal:
        return isinstance(value, type(inside[0])) and value in inside
    if hint is Any or not isinstance(kinds, type | tuple) or getattr(kinds, "_is_protocol", False):
        return True
    if getattr(value, "ndim", None) == 0 and (item := getattr(value, "item", None)) is not None:
        value = item()
    if not isinstance(value, kinds) or (get_origin(hint) is Sequence and isinstance(value, Mapping)):
        return False  # the values of a mapping would be lost in a list of its keys
    if isinstance(value, Mapping) and len(inside) == 2:
        return all(_fits(key, inside[0]) and _fits(each, inside[1]) for key, each in value.items())
    return not isinstance(value, list | tuple) or len(inside) != 1 or all(_fits(each, inside[0]) for each in value)


def warn(message: str, category: type[Warning] = ReliabilityWarning) -> None:
    """Give a warning at the line of the user: the innermost one of the call stack outside modelgen and the solver."""
    _, level = _outside("modelgen", "solver")
    warnings.warn(message, category, stacklevel=level)


def mistake(message: str) -> ModelError:
    """The error of the line of a model file that is being executed."""
    return ModelError(message, calling_place())


def calling_place() -> Place:
    """The line of the user: the innermost one of the call stack outside this package and SymPy, which it calls."""
    frame, _ = _outside("modelgen", "sympy")
    return Place(shortened(Path(frame.f_code.co_filename)), frame.f_lineno)


def _outside(*packages: str) -> tuple[FrameType, int]:
    """The innermost frame of the call stack outside some packages, and its number: 1 for the calling function."""
    frame, number = _getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in packages:
        frame, number = frame.f_back, number + 1
    return frame, number


def in_shell(path: str | Path) -> str:
    """A path as a word of a command that the user may copy."""
    return quote(str(path))


def shortened(path: Path) -> str:
    """The path relative to the working folder if it lies in it, otherwise unchanged."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def abridged(text: str, most: int = 60) -> str:
    """The text, without its middle if it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 3 :]}"


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """The text " Did you mean `x`?" if a known name is close to the wrong one, otherwise an empty text."""
    close = get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" Did you mean `{close[0]}`?" if close else ""
