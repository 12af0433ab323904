"""What `modelgen build` refuses: guards that the search refutes, with the line, the expression and the point."""

from __future__ import annotations

import time
from collections.abc import Sequence

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import ModelError
from modelgen.proof.guards import domain
from modelgen.proof.mass_matrix import tree_shown
from modelgen.proof.search import Least, search
from modelgen.proof.subjects import Subject, cost, inertias, stated
from modelgen.statement.robot import Robot

SECONDS = 2.0


def refuse_stated(robot: Robot, seconds: float = SECONDS / 2) -> None:
    """Search divisors, roots, logarithms and inverse functions for a violation.

    Raises ModelError, with the line of the file, for the first.
    """
    _refuse(stated(robot, domain(robot)), seconds)


def refuse_derived(robot: Robot, equations: EquationsOfMotion, seconds: float = SECONDS / 2) -> None:
    """Search the mass matrix and the state cost; raises ModelError as before."""
    whole = domain(robot)
    pivots = [] if tree_shown(robot, whole) else inertias(robot, equations, whole)
    _refuse([*pivots, cost(robot, equations, whole)], seconds)


def _refuse(subjects: Sequence[Subject], seconds: float) -> None:
    left = [subject for subject in subjects if not subject.evident()]
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
