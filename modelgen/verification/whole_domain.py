"""The guards of a robot over its whole domain as lines of the proof."""

from __future__ import annotations

from pathlib import Path

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.proof.verdicts import REFUTED, verdicts
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check


def domain_checks(robot: Robot, equations: EquationsOfMotion, seconds: float) -> list[Check]:
    """One line for each divisor, root, logarithm and inverse function, the mass matrix and the state cost.

    Only what is refuted fails. seconds: for the proof of each.
    """
    return [
        Check(each.what, f"{Path(each.place.file).name}:{each.place.line}", float(each.status == REFUTED), 0.5, each.note, each.status)
        for each in verdicts(robot, equations, seconds)
    ]
