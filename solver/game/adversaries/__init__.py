"""The adversaries: one file each, and the table that settings, radii and the game follow from."""

from __future__ import annotations

from collections.abc import Mapping

from solver.game.adversaries.action import ActionAdversary
from solver.game.adversaries.adversary import Adversary
from solver.game.adversaries.observation import ObservationAdversary
from solver.game.adversaries.parameters import ParameterAdversary
from solver.game.adversaries.state import StateAdversary

#: Every kind, in the order in which they draw random numbers and disturb the robot.
ADVERSARIES: list[type[Adversary]] = [StateAdversary, ActionAdversary, ObservationAdversary, ParameterAdversary]


def make_adversaries(radii: Mapping[str, float]) -> tuple[Adversary, ...]:
    """The adversaries of the table with these radii, by name; one without a positive radius does not play."""
    return tuple(kind(radii[kind.name]) for kind in ADVERSARIES if radii.get(kind.name, 0.0) > 0.0)
