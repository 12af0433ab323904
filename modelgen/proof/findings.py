"""What is found of each guard of a robot: proven, no violation found, or refuted. For `build` and `verify` alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import Place
from modelgen.proof.cost import cost_shown
from modelgen.proof.guards import domain
from modelgen.proof.mass_matrix import blocks, proven
from modelgen.proof.search import Least
from modelgen.proof.subdivision import Shown, positive, subdivided
from modelgen.proof.subjects import Subject, cost, inertias, stated
from modelgen.statement.robot import Robot

Array = NDArray[np.float64]

PROVEN, OPEN, REFUTED = "proven", "no violation found", "refuted"
EVIDENT = Shown(0.0, 0.0)


@dataclass(frozen=True)
class Effort:
    """Seconds of processor time at most for each quantity: a busy machine finds as much as an idle one."""

    search: float
    proof: float


@dataclass(frozen=True)
class Finding:
    """One quantity of a robot and what is known of it on its whole domain."""

    what: str
    subject: Subject
    least: Least | None  # the smallest value that a search found; None where none was needed
    shown: Shown

    @property
    def status(self) -> str:
        """PROVEN, OPEN or REFUTED."""
        if self.least and self.least.refuted:
            return REFUTED
        return PROVEN if self.shown.complete else OPEN

    @property
    def place(self) -> Place:
        """The line of the file."""
        return self.subject.guard.place

    @property
    def note(self) -> str:
        """How it was proven; or the smallest value and what a proof would need; or the violation."""
        if self.status == PROVEN:
            return f"by subdivision, {self.shown.seconds:.1f} s" if self.shown.seconds else "by one enclosure"
        assert self.least
        at = self.subject.quantity.domain.words(self.least.point)
        if self.status == REFUTED:
            return f"{self.subject.guard.claim} {self.least.value:.4g} at {at}. {self.subject.guard.advice}"
        return (
            f"smallest value found {self.least.value:.3g} at {at}. Undecided after {self.shown.seconds:.1f} s on "
            f"{100 * self.shown.left:.2g} % of the domain of {len(self.subject.quantity.domain.symbols)} variables: "
            "narrower limits or bounds, or fixed=True for parameters that are known, would make it smaller"
        )


def stated_findings(robot: Robot, effort: Effort) -> Iterator[Finding]:
    """Divisors and arguments of roots, logarithms and inverse functions, in the order of the file."""
    for subject in stated(robot, domain(robot)):
        name = subject.guard.name
        if subject.evident():
            yield Finding(name, subject, None, EVIDENT)
            continue
        least = subject.search(effort.search)
        shown = Shown(1.0, 0.0)
        if not least.refuted:
            quantity = subject.quantity if least.sign > 0 else subject.quantity.negated()
            judge = positive(quantity, subject.guard.zero, subject.slack)
            shown = subdivided(quantity.domain.lower, quantity.domain.upper, judge, effort.proof)
        yield Finding(name, subject, _violated(subject, shown.violation) or least, shown)


def derived_findings(robot: Robot, equations: EquationsOfMotion, effort: Effort) -> Iterator[Finding]:
    """The mass matrix, then the state cost."""
    yield _mass_matrix(robot, equations, effort)
    yield _cost(robot, equations, effort)


def _mass_matrix(robot: Robot, equations: EquationsOfMotion, effort: Effort) -> Finding:
    """First the proof, which takes less time than the search where it succeeds."""
    name, start, shown = "mass matrix positive definite", time.process_time(), EVIDENT
    pivots = inertias(robot, equations, domain(robot))
    parts = blocks(robot, equations)
    whole = len(parts) == 1 and parts[0][0].matrix.rows == len(pivots)
    for block, fixed in parts:
        one = proven(block, fixed, max(0.0, start + effort.proof - time.process_time()))
        shown = Shown(max(shown.left, one.left), time.process_time() - start)
        if one.violation is not None and whole:
            found = [_violated(each, one.violation) for each in pivots]  # of the same symbols in the same order
            broken = next(((least, each) for least, each in zip(found, pivots, strict=True) if least), None)
            if broken:
                return Finding(name, broken[1], broken[0], shown)
    if shown.complete:
        return Finding(name, pivots[0], None, shown)
    least, subject = _smallest(pivots, effort.search)
    return Finding(name, subject, least, shown)


def _smallest(pivots: Sequence[Subject], seconds: float) -> tuple[Least, Subject]:
    """The first pivot that is refuted, or the smallest."""
    found = []
    for subject in pivots:
        found.append((subject.search(seconds / len(pivots)), subject))
        if found[-1][0].refuted:
            return found[-1]
    return min(found, key=lambda each: np.nan_to_num(each[0].value, nan=np.inf))


def _cost(robot: Robot, equations: EquationsOfMotion, effort: Effort) -> Finding:
    whole, name = domain(robot), "state cost never negative"
    subject = cost(robot, equations, whole)
    if subject.evident():
        return Finding(name, subject, None, EVIDENT)
    least, shown = subject.search(effort.search), Shown(1.0, 0.0)
    if not least.refuted:
        target = dict(zip(equations.state, robot.declared_task.numbers.target, strict=True))
        shown = cost_shown(equations.state_cost, whole, target, subject.slack, effort.proof)
    return Finding(name, subject, _violated(subject, shown.violation) or least, shown)


def _violated(subject: Subject, point: Array | None) -> Least | None:
    """The value at a point where a subdivision says that the property does not hold."""
    if point is None:
        return None
    value = float(subject.quantity.values(point[None])[0])
    wrong = value < -subject.slack if subject.guard.zero else not value > 0
    return Least(value, point, True) if wrong else None
