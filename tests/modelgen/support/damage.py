"""Files that a bad disk, an editor or an attacker has damaged."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

Damage = tuple[str, int, int]
#: An entry counted in the order of the document, and what stands there instead.
Mistake = tuple[int, Any]

#: Stands for another value of the type that an entry has.
OTHER = "another value of the same type"

VALUES: tuple[Any, ...] = (
    OTHER,
    None,
    True,
    -1,
    0,
    3,
    10**30,
    10**400,
    1.5,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "1_5",
    "x" * 100_000,
    "\ud800",
    "../x",
    "<b>",
    [],
    [1],
    [[]],
    ["x"],
    {},
)

damages: st.SearchStrategy[Damage] = st.tuples(
    st.sampled_from(["cut", "flip", "insert", "zero"]), st.integers(0, 10**7), st.integers(1, 255)
)
mistakes: st.SearchStrategy[Mistake] = st.tuples(st.integers(0, 10**4), st.sampled_from(VALUES))


def damaged(content: bytes, damage: Damage) -> bytes:
    """The bytes, truncated, with one flipped, with one more, or with 64 of them set to zero."""
    kind, place, value = damage
    place %= len(content)
    return {
        "cut": content[:place],
        "flip": content[:place] + bytes([content[place] ^ value]) + content[place + 1 :],
        "insert": content[:place] + bytes([value]) + content[place:],
        "zero": content[:place] + bytes(64) + content[place + 64 :],
    }[kind]


def mistaken(document: Any, mistake: Mistake) -> Any:
    """The document with one entry, at any depth, replaced by a value of another type."""
    document = copy.deepcopy(document)
    entries: list[tuple[Any, Any]] = []
    left = [document]
    while left:
        inner = left.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in keys:
            entries.append((inner, key))
            left.append(inner[key])
    place, value = mistake
    inner, key = entries[place % len(entries)]
    inner[key] = _other(inner[key]) if value is OTHER else copy.copy(value)
    return document


def _other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    return value + value[:1] if isinstance(value, list) else f"{value}x" if isinstance(value, str) else value
