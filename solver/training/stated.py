"""Settings as run folders state them, those of version 0.1 included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solver.training.presets import ALGORITHMS
from solver.training.renamed import renamed_settings
from solver.training.settings import NO_ADVERSARIES, Settings


def present_settings(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name as they are today, in tuples where JSON has lists.

    Version 0.1 had a setting `algorithm`; the radii of a run of cFVI were stated and had no effect. Raises ValueError
    for an algorithm that is not one of fitted value iteration.
    """
    settings = renamed_settings(stated)
    algorithm = settings.pop("algorithm", "rfvi")
    if algorithm not in ALGORITHMS:
        raise ValueError(f"its algorithm is {algorithm!r}, not one of {', '.join(ALGORITHMS)}")
    if algorithm == "cfvi":
        settings |= NO_ADVERSARIES
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def read_settings(stated: Mapping[str, Any]) -> Settings:
    """The settings that a run folder states. Raises SolverError, TypeError or ValueError for what is none of them."""
    return Settings(**present_settings(stated))
