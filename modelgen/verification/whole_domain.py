"""The guards of a robot over its whole domain as lines of the proof."""

from __future__ import annotations

from pathlib import Path

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import Place
from modelgen.proof.findings import REFUTED, TimeLimits, derived_findings, guard_findings
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check

SECONDS = 30.0  # for the proof of each quantity
SEARCH = 5.0  # at most, for the search of each


def domain_checks(robot: Robot, equations: EquationsOfMotion, seconds: float) -> list[Check]:
    """One line for each divisor, root, logarithm and inverse function, the mass matrix and the state cost.

    Only what is refuted fails. seconds: for the proof of each.
    """
    effort = TimeLimits(search=min(SEARCH, seconds), proof=seconds)
    findings = [*guard_findings(robot, effort), *derived_findings(robot, equations, effort)]
    return [
        Check(each.what, _line(each.place), float(each.status == REFUTED), 0.5, each.note, each.status)
        for each in findings
    ]


def _line(place: Place) -> str:
    return f"{Path(place.file).name}:{place.line}"
