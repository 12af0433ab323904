"""The options of a command, read by tyro from the dataclass `Options` of its module."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from types import ModuleType
from typing import Annotated, Any, TypedDict, cast, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import DisallowNone, OmitArgPrefixes, PositionalMetavarFromFieldName, Suppress, arg
from tyro.constructors import (
    MISSING_NONPROP,
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from modelgen.commandline import Range
from modelgen.errors import ModelError

CONFIG = (OmitArgPrefixes, DisallowNone, PositionalMetavarFromFieldName)
ALL = "--help-all"
HELP = ("-h", "--help", ALL)
EVERY_INT, EVERY_FLOAT = Range(-(10**18), 10**18), Range(-math.inf, math.inf)


def read(called: str, module: ModuleType, words: Sequence[str], about: str = "") -> Any:
    """Options from the words of a command line. For help and mistakes, tyro prints them and raises SystemExit.

    called: the program and the command. about: stands before the doc string of `Options` in the help.
    """
    _require(module.Options, words)
    by_words = hasattr(module, "defaults") or hasattr(module, "undecided")
    known = given(module.Options, words) if by_words else None
    default = module.defaults(known or {}) if hasattr(module, "defaults") else MISSING_NONPROP
    asked = [word for word in words if word in HELP]
    common = getattr(module, "COMMON", None) if asked and ALL not in asked else None
    undecided = module.undecided(known or {}) if hasattr(module, "undecided") else ()
    more = f" `{called} {ALL}` shows all options." if common else ""
    return tyro.cli(
        module.Options,
        prog=called,
        description=about + _paragraph(module.Options.__doc__) + more,
        args=["--help"] if asked else words,
        default=default,
        config=CONFIG,
        registry=_registry(common, undecided),
    )


def _require(options: type, words: Sequence[str]) -> None:
    """Raises ModelError for an option of several values that stands twice, of which tyro would silently keep the last
    one, or without a value, as where a variable of the shell is not set: tyro would take it for one that is not there.
    """
    for name, hint in _fields(options):
        base, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if get_origin(base) not in (list, tuple):
            continue
        flag = f"--{next((note.name for note in notes if getattr(note, 'name', None)), name).replace('_', '-')}"
        places = [i for i, word in enumerate(words) if word.partition("=")[0].replace("_", "-") == flag]
        if len(places) > 1:
            raise ModelError(f"{flag} stands {len(places)} times. Write all values behind one {flag}.")
        following = [*words, "--"][places[0] + 1] if places else ""
        if following.startswith("--") and following not in HELP and "=" not in words[places[0]]:
            raise ModelError(f"{flag} has no value. Write one behind it, or leave {flag} out.")


def given(options: type, words: Sequence[str]) -> dict[str, Any] | None:
    """Values of the fields that the words set, by name, without defaults. None if the words hold a mistake."""
    dictionary = cast(Any, TypedDict)("given", dict(_fields(options)), total=False)
    words = [word for word in words if word not in HELP]
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return cast(
                dict[str, Any],
                tyro.cli(dictionary, args=words, add_help=False, config=CONFIG, registry=_registry(None, ())),
            )
    except SystemExit:
        return None


def _fields(options: type) -> Iterator[tuple[str, Any]]:
    """Name and type of every field; the fields of a nested dataclass in its place."""
    for name, hint in get_type_hints(options, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            yield from _fields(cast(type, hint))
        else:
            yield name, hint


def _registry(common: Collection[str] | None, undecided: Collection[str]) -> ConstructorRegistry:
    """Rules for tyro: strict numbers with their ranges, and only the `common` fields in the help.

    undecided: fields whose defaults nobody knows yet.
    """
    registry, within = ConstructorRegistry(), [False]

    @registry.primitive_rule
    def _number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        kinds: dict[Any, Range] = {int: EVERY_INT, float: EVERY_FLOAT}
        return _spec(kinds[info.type]) if info.type in kinds else None

    @registry.primitive_rule
    def _pairs(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        return _spec_by_name(EVERY_FLOAT) if info.type == dict[str, float] else None

    @registry.struct_rule
    def _struct(info: StructTypeInfo) -> StructConstructorSpec | None:
        if within[0]:  # the rule below calls all rules, this one too
            return None
        within[0] = True
        try:
            spec = ConstructorRegistry.get_struct_spec(info)
        finally:
            within[0] = False
        if not isinstance(spec, StructConstructorSpec):
            return None
        return dataclasses.replace(spec, fields=tuple(_field(field, common, undecided) for field in spec.fields))

    return registry


def _field(field: StructFieldSpec, common: Collection[str] | None, undecided: Collection[str]) -> StructFieldSpec:
    """A field with the specification of its range and its help in one paragraph, or hidden in the help."""
    kind: Any = _ranged(field.type)
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    words = field.default is MISSING_NONPROP and get_origin(base) in (list, tuple)  # tyro also accepts an empty list
    if words or field.default in (None, "", (), [], {}) or field.default is False:  # no default that a help could show
        kind = Annotated[kind, arg(help_behavior_hint="")]
    if field.name in undecided:
        kind = Annotated[kind, arg(help_behavior_hint="(default: by robot and preset)")]
    required = field.default is MISSING_NONPROP
    if common is not None and field.name not in common and not required and not dataclasses.is_dataclass(field.type):
        kind = Annotated[kind, Suppress]
    return dataclasses.replace(field, type=kind, helptext=lambda: _paragraph(field.helptext))


def _paragraph(text: str | Callable[[], str | None] | None) -> str:
    """A doc string without its line breaks."""
    return " ".join(((text() if callable(text) else text) or "").split())


def _ranged(hint: Any) -> Any:
    """A type with tyro's specification for every `Range` in it."""
    inner = get_args(hint)
    if get_origin(hint) is Annotated:
        spec = _spec_by_name if get_origin(inner[0]) is dict else _spec
        return Annotated[(_ranged(inner[0]), *(spec(note) if isinstance(note, Range) else note for note in inner[1:]))]
    return get_origin(hint)[tuple(map(_ranged, inner))] if get_origin(hint) in (list, tuple) else hint


def _spec_by_name(numbers: Range) -> PrimitiveConstructorSpec[Any]:
    """Numbers in a range by name, from words such as `action=0.3`."""

    def by_name(words: Sequence[str]) -> dict[str, float]:
        values: dict[str, float] = {}
        for name, equals, number in (word.partition("=") for word in words):
            if name in values:
                raise ValueError(f"{name} stands twice; write its last value only")
            if not equals:
                raise ValueError(f"{name} has no value; write it like {name}=0.1")
            values[name] = numbers.read(number)
        return values

    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="NAME=NUMBER ...",
        instance_from_str=by_name,
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [f"{name}={number:.6g}" for name, number in value.items()],
    )


def _spec(numbers: Range) -> PrimitiveConstructorSpec[Any]:
    bounded = numbers not in (EVERY_INT, EVERY_FLOAT)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=numbers.shown if bounded else numbers.shown.split()[0],
        instance_from_str=lambda words: numbers.read(words[0]),
        is_instance=lambda value: value is None or isinstance(value, int | float),
        str_from_instance=lambda value: [f"{value:.6g}" if isinstance(value, float) else str(value)],
    )
