"""What `modelgen build` refuses: guards that the search refutes, with the line, the expression and the point."""

from __future__ import annotations

import time

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import ModelError
from modelgen.proof.guards import domain
from modelgen.proof.mass_matrix import tree_shown
from modelgen.proof.search import Least, search
from modelgen.proof.subjects import Subject, cost, inertias, stated
from modelgen.statement.robot import Robot

SECONDS = 2.0


def refuse_violations(robot: Robot, equations: EquationsOfMotion, seconds: float = SECONDS) -> None:
    """Search every guard of a robot for a violation. Raises ModelError, with the line of the file, for the first."""
    whole = domain(robot)
    sought = [*stated(robot, whole), *([] if tree_shown(robot, whole) else inertias(robot, equations, whole))]
    left = [subject for subject in (*sought, cost(robot, equations, whole)) if not subject.evident()]
    until = time.monotonic() + seconds
    for number, subject in enumerate(left):
        least = subject.search((until - time.monotonic()) / (len(left) - number))
        if least.refuted:
            raise ModelError(refutation(subject, least), subject.guard.place)


def refutation(subject: Subject, least: Least) -> str:
    """What a violation means, and what to write instead."""
    guard = subject.guard
    at = subject.quantity.domain.words(least.point)
    return f"{guard.claim} {least.value:.4g} at {at}. {guard.advice}"
