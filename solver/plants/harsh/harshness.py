"""How harsh the harsh plant is: its effects, and how a user states them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from modelgen.commandline.numbers import decimal
from modelgen.errors import suggestion
from solver.errors import SolverError

SATURATION = 0.1  # of the input limit that the drive cannot give: a warm motor, a low supply
LEVELS = 1e-3, 1e3  # multiples of a magnitude


@dataclass(frozen=True)
class Harshness:
    """The magnitude of every effect, as a multiple of its usual one; 0 switches it off. Delay in control periods."""

    delay: float = 0.0
    saturation: float = 0.0
    backlash: float = 0.0
    stiction: float = 0.0
    encoder: float = 0.0
    noise: float = 0.0


EFFECTS = tuple(field.name for field in fields(Harshness))


def harshness(words: Sequence[str]) -> Harshness:
    """Read words such as `delay` or `noise=2x`. Without any word, every effect has its usual magnitude.

    Raises SolverError for unknown effects and for magnitudes out of range.
    """
    stated = [part for each in words for part in each.split(",") if part.strip()]
    if words and not stated:
        raise SolverError(f"'{' '.join(words)}' names no effect; effects are {', '.join(EFFECTS)}")
    result, named = Harshness(), set[str]()
    for word in stated or EFFECTS:
        name, level = _effect(word)
        if name in named:
            raise SolverError(f"{name} is named twice in {' '.join(words)}; write it once")
        named.add(name)
        result = replace(result, **{name: level})
    if result.delay != round(result.delay):
        raise SolverError(f"delay={result.delay:g}x is not a whole number of control periods; write delay=2x")
    if result.saturation * SATURATION >= 1.0:
        raise SolverError(
            f"saturation={result.saturation:g}x leaves no input: it takes {SATURATION:g} of the input limit at 1x; "
            f"write less than {1.0 / SATURATION:g}x"
        )
    return result


def _effect(word: str) -> tuple[str, float]:
    """The name and the multiple in a word such as `noise=2x`."""
    name, separator, text = (part.strip() for part in word.partition("="))
    if name not in EFFECTS:
        raise SolverError(f"unknown effect '{name}'.{suggestion(name, EFFECTS)} Effects: {', '.join(EFFECTS)}")
    try:
        level = decimal(text.removesuffix("x")) if separator else 1.0
    except ValueError:
        level = math.nan
    if level != 0.0 and not LEVELS[0] <= level <= LEVELS[1]:
        raise SolverError(
            f"cannot read '{word}'; write {name}, or {name}=2x for twice its usual magnitude, from "
            f"{LEVELS[0]:g}x to {LEVELS[1]:g}x"
        )
    return name, level
