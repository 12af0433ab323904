"""What `modelgen verify` says of each guard: proven, no violation found, or refuted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import Place
from modelgen.proof.cost import cost_shown
from modelgen.proof.guards import domain
from modelgen.proof.mass_matrix import blocks, proven
from modelgen.proof.refusal import refutation
from modelgen.proof.search import Least
from modelgen.proof.subdivision import Shown, positive, subdivided
from modelgen.proof.subjects import Subject, cost, inertias, stated
from modelgen.statement.robot import Robot

PROVEN, OPEN, REFUTED = "proven", "no violation found", "refuted"
SECONDS = 30.0  # for each proof
SEARCHED = 5.0  # for each search


@dataclass(frozen=True)
class Verdict:
    """One quantity of a robot and what is known of it on its whole domain."""

    what: str
    place: Place
    status: str  # PROVEN, OPEN or REFUTED
    note: str


def verdicts(robot: Robot, equations: EquationsOfMotion, seconds: float = SECONDS) -> Iterator[Verdict]:
    """Every guard, the mass matrix and the state cost, in that order; `seconds` for the proof of each."""
    whole = domain(robot)
    for subject in stated(robot, whole):
        yield _guard(subject, seconds)
    yield _mass_matrix(robot, equations, seconds)
    yield _cost(robot, equations, seconds)


def _guard(subject: Subject, seconds: float) -> Verdict:
    """A divisor or argument: by one enclosure, else by search and subdivision."""
    guard = subject.guard
    if subject.evident():
        return Verdict(guard.name, guard.place, PROVEN, "by one enclosure of the domain")
    least = subject.search(SEARCHED)
    if least.refuted:
        return Verdict(guard.name, guard.place, REFUTED, refutation(subject, least))
    signed = subject.quantity if least.sign > 0 else subject.quantity.negated()
    shown = subdivided(signed.domain.lower, signed.domain.upper, positive(signed, guard.zero), seconds)
    return _told(guard.name, guard.place, shown, least, subject)


def _mass_matrix(robot: Robot, equations: EquationsOfMotion, seconds: float) -> Verdict:
    name, start = "mass matrix positive definite", time.monotonic()
    shown, parts = Shown(0.0, 0.0), blocks(robot, equations)
    for block, fixed in parts:
        one = proven(block, fixed, max(0.0, start + seconds - time.monotonic()))
        shown = Shown(max(shown.left, one.left), time.monotonic() - start)
    place = robot.joints[0].place
    if shown.complete:
        way = "its links' own inertias" if len(parts) > 1 else "subdivision"
        return Verdict(name, place, PROVEN, f"by {way}, {shown.seconds:.1f} s")
    smallest = None
    for subject in inertias(robot, equations, domain(robot)):
        least = subject.search(SEARCHED)
        if least.refuted:
            return Verdict(name, subject.guard.place, REFUTED, refutation(subject, least))
        if smallest is None or least.value < smallest[0].value:
            smallest = least, subject
    assert smallest
    return _told(name, smallest[1].guard.place, shown, *smallest)


def _cost(robot: Robot, equations: EquationsOfMotion, seconds: float) -> Verdict:
    whole = domain(robot)
    subject, name = cost(robot, equations, whole), "state cost never negative"
    if subject.evident():
        return Verdict(name, subject.guard.place, PROVEN, "a sum of squares")
    least = subject.search(SEARCHED)
    if least.refuted:
        return Verdict(name, subject.guard.place, REFUTED, refutation(subject, least))
    target = dict(zip(equations.state, robot.stated_task.numbers.target, strict=True))
    shown = cost_shown(equations.state_cost, whole, target, seconds)
    return _told(name, subject.guard.place, shown, least, subject)


def _told(name: str, place: Place, shown: Shown, least: Least, subject: Subject) -> Verdict:
    """A verdict after subdivision."""
    if shown.complete:
        return Verdict(name, place, PROVEN, f"by subdivision, {shown.seconds:.1f} s")
    at = subject.quantity.domain.words(least.point)
    return Verdict(
        name,
        place,
        OPEN,
        f"smallest value found {least.value:.3g} at {at}. Undecided after {shown.seconds:.0f} s on "
        f"{100 * shown.left:.2g} % of the domain of {len(subject.quantity.domain.symbols)} variables: narrower bounds, "
        "or fixed=True for parameters that are known, would make it smaller",
    )
