"""Effects of the harsh plant, and the text by which a user selects them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from modelgen.commandline import decimal
from modelgen.errors import suggestion
from solver.errors import SolverError

SATURATION = 0.1  # of the input limit: reduction of the drive's input by a warm motor or a low supply
LEVELS = 1e-3, 1e3  # range of the factors of a magnitude


@dataclass(frozen=True)
class Harshness:
    """Factor of the usual magnitude of every effect; 0 switches it off. The usual delay is one control period."""

    delay: float = 0.0
    saturation: float = 0.0
    backlash: float = 0.0
    stiction: float = 0.0
    encoder: float = 0.0
    noise: float = 0.0


EFFECTS = tuple(field.name for field in fields(Harshness))


def harshness(words: Sequence[str]) -> Harshness:
    """Effects from words such as `delay` or `noise=2x`. Without words, every effect has its usual magnitude.

    Raises SolverError for an unknown effect and for a factor out of range.
    """
    chosen = [part for word in words for part in word.split(",") if part.strip()]
    if words and not chosen:
        raise SolverError(f"'{' '.join(words)}' names no effect; effects are {', '.join(EFFECTS)}")
    result, named = Harshness(), set[str]()
    for word in chosen or EFFECTS:
        name, level = _effect(word)
        if name in named:
            raise SolverError(f"{name} is named twice in {' '.join(words)}; write it once")
        named.add(name)
        result = replace(result, **{name: level})
    if result.delay != round(result.delay):
        raise SolverError(f"delay={result.delay:g}x is not an integer number of control periods; write delay=2x")
    if result.saturation * SATURATION >= 1.0:
        raise SolverError(
            f"saturation={result.saturation:g}x leaves no input, because 1x reduces the input limit by "
            f"{SATURATION:.0%}; write less than {1.0 / SATURATION:g}x"
        )
    return result


def _effect(word: str) -> tuple[str, float]:
    """Name and factor in a word such as `noise=2x`."""
    name, separator, text = (part.strip() for part in word.partition("="))
    if name not in EFFECTS:
        raise SolverError(f"unknown effect '{name}'.{suggestion(name, EFFECTS)} Effects: {', '.join(EFFECTS)}")
    try:
        level = decimal(text.removesuffix("x").strip()) if separator else 1.0
    except ValueError:
        level = math.nan
    if level != 0.0 and not LEVELS[0] <= level <= LEVELS[1]:
        raise SolverError(
            f"cannot read '{word}'; write {name}, or {name}=2x for twice its usual magnitude, from "
            f"{LEVELS[0]:g}x to {LEVELS[1]:g}x"
        )
    return name, level
