"""JSON as the dataclasses that it was written from, each entry checked by its type."""

from __future__ import annotations

import dataclasses
import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 10**308  # of an integer that stands for a float


def typed(kind: Any, value: Any, name: str) -> Any:
    """The value as that type: a dataclass, tuple, dictionary with text as keys, Literal, number, text, bool or None.

    An integer becomes a float where one belongs, and Any takes every value. name: the entry that a message names.
    Raises TypeError for another value.
    """
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
        if not required <= value.keys() <= hints.keys():
            raise TypeError(f"{name} lacks an entry, or has another: {', '.join(sorted(hints.keys() ^ value.keys()))}")
        return kind(**{key: typed(hints[key], entry, key) for key, entry in value.items()})
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else [*inner]
        if len(kinds) == len(value):
            return tuple(typed(inner_kind, entry, name) for inner_kind, entry in zip(kinds, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: typed(inner[1], entry, f"{name}.{key}") for key, entry in value.items()}
    if origin in (Union, types.UnionType):
        (plain,) = (member for member in inner if member is not type(None))
        return None if value is None else typed(plain, value, name)
    if origin is Literal and value in inner:
        return value
    if kind is float and type(value) is int and abs(value) <= LARGEST:
        return float(value)
    if type(value) is kind:
        return value
    raise TypeError(f"{name} is {str(value)[:60]!r}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
