"""Table of the adversaries. The settings, the radii and the game follow from it."""

from __future__ import annotations

from collections.abc import Mapping

from solver.game.adversaries.adversary import Adversary
from solver.game.adversaries.paper import ActionAdversary, ObservationAdversary, ParameterAdversary, StateAdversary

#: Every class of adversary, in the order in which they draw random numbers and disturb the robot.
ADVERSARIES: list[type[Adversary]] = [StateAdversary, ActionAdversary, ObservationAdversary, ParameterAdversary]


def make_adversaries(radii: Mapping[str, float]) -> tuple[Adversary, ...]:
    """Adversaries of the table whose radius alpha, by name, is positive."""
    return tuple(kind(radii[kind.name]) for kind in ADVERSARIES if radii.get(kind.name, 0.0) > 0.0)
