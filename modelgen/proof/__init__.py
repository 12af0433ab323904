"""Findings about a robot on its whole domain: each quantity is proven, or refuted, or no violation of it is found.

The quantities are the guards of the model file, the pivots of the mass matrix, and the sign of the state cost. `build`
refuses a refuted quantity, and `verify` prints all findings.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sympy import S

from modelgen.arrays import Array
from modelgen.derivation.equations import EquationsOfMotion, used
from modelgen.derivation.loops import closures
from modelgen.errors import ModelError, Place, abridged
from modelgen.proof.cost import not_negative_at_target, prove_cost
from modelgen.proof.guards import Domain, Guard, Quantity, domain, guards, nodes_of, pivots, quantity_of
from modelgen.proof.loops import EnclosedLoop
from modelgen.proof.mass_matrix import blocks, prove_block
from modelgen.proof.search import Minimum, ProofProgress, positive, prove_closed, sampled, search, subdivide
from modelgen.statement.joints import Speed
from modelgen.statement.robot import Robot

PROVEN, OPEN, REFUTED = "proven", "no violation found", "refuted"
IMMEDIATE = ProofProgress(0.0, 0.0)
ROUNDING = 1e-9  # a cost below this share of the largest sampled cost counts as zero


@dataclass(frozen=True)
class Subject:
    """A guard and its quantity on the graph."""

    guard: Guard
    quantity: Quantity
    slack: float = 0.0  # largest rounding error below zero, if zero is allowed

    def evident(self) -> bool:
        """Whether one enclosure of the whole domain proves it, as for a sum of squares."""
        low, high = self.quantity.range
        return low > 0 or (self.guard.zero and low >= 0) or (self.guard.either and high < 0)

    def search(self, seconds: float) -> Minimum:
        """The smallest value found within `seconds` of processor time."""
        return search(self.quantity, seconds, zero=self.guard.zero, either=self.guard.either, slack=self.slack)


def pivot_subjects(robot: Robot, equations: EquationsOfMotion, whole: Domain) -> list[Subject]:
    """The pivots of the mass matrix: the inertia along each coordinate when the earlier ones move freely."""
    matrix = equations.mass_matrix
    definitions = [(symbol, whole.on(value)) for symbol, value in used(equations.definitions, list(matrix))]
    size = matrix.rows
    lower = [matrix[i, j] for i in range(size) for j in range(i + 1)]
    within = nodes_of(lower, whole, definitions)
    nodes = within.nodes
    rows = [nodes[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] for i in range(size)]
    owners = {joint.symbol.rate: joint.symbol for joint in robot.independent}
    along = [owners.get(speed.symbol, speed.symbol) for speed in robot.velocities]
    subjects = []
    for number, pivot in enumerate(pivots(rows, within.graph)):
        before = ", ".join(f"`{earlier}`" for earlier in along[:number])
        energy, place = _energy_of(robot, robot.velocities[number])
        claim = f"the mass matrix is not positive definite: the inertia along `{along[number]}`{energy}"
        claim += f", with {before} free to move, is" if before else " is"
        guard = Guard(
            "inertia along",
            f"`{along[number]}`",
            matrix[number, number],
            place,
            claim=claim,
            advice="Add the missing body or inertia (a rod has inertia about its own centre; a point mass has none), "
            "or a rotor inertia to the joint; check the signs of the energies and the bounds of the parameters.",
        )
        subjects.append(Subject(guard, Quantity(within, pivot)))
    return subjects


def _energy_of(robot: Robot, speed: Speed) -> tuple[str, Place]:
    """The text of the only kinetic energy along a coordinate, and its line; otherwise the line of the coordinate."""
    moving = [energy for energy in robot.kinetic if speed.symbol in energy.value.free_symbols]
    if len(moving) != 1 or robot.links or robot.system:
        return "", speed.place
    return f" by the kinetic energy `{abridged(str(moving[0].value))}`", moving[0].place


def cost_subject(robot: Robot, equations: EquationsOfMotion, whole: Domain) -> Subject:
    """The sign of the state cost."""
    guard = Guard(
        "state cost",
        "",
        equations.state_cost,
        robot.declared_task.place,
        zero=True,
        claim=f"the state cost `{abridged(str(robot.declared_task.state_cost))}` is",
        advice="The reward would be positive there. A cost is zero at the target and positive elsewhere; write squares "
        "such as coordinate**2, and check the signs.",
    )
    inside = quantity_of(equations.state_cost, whole)
    return Subject(guard, inside, ROUNDING * float(np.abs(inside.values(sampled(inside.domain))).max()))


@dataclass(frozen=True)
class TimeLimits:
    """Largest processor time (s) for each quantity. On a busy machine the results are the same."""

    search: float
    proof: float


@dataclass(frozen=True)
class Finding:
    """One quantity of a robot, and what is known about it on the whole domain."""

    what: str
    subject: Subject
    least: Minimum | None  # the smallest value of a search; None if no search was needed
    progress: ProofProgress

    @property
    def status(self) -> str:
        """PROVEN, OPEN or REFUTED."""
        if self.least and self.least.refuted:
            return REFUTED
        return PROVEN if self.progress.complete else OPEN

    @property
    def place(self) -> Place:
        """The line of the model file."""
        return self.subject.guard.place

    @property
    def note(self) -> str:
        """The method of the proof; or the smallest value and how to prove it; or the violation."""
        if self.status == PROVEN:
            return f"by subdivision, {self.progress.seconds:.1f} s" if self.progress.seconds else "by one enclosure"
        assert self.least
        at = self.subject.quantity.domain.text(self.least.point)
        if self.status == REFUTED:
            return f"{self.subject.guard.claim} {self.least.value:.4g} at {at}. {self.subject.guard.advice}"
        return (
            f"smallest value found {self.least.value:.3g} at {at}. Undecided after {self.progress.seconds:.1f} s on "
            f"{100 * self.progress.left:.2g} % of the domain of {len(self.subject.quantity.domain.symbols)} variables: "
            "narrower limits or bounds, or fixed=True for parameters that are known, would make it smaller"
        )


def guard_findings(robot: Robot, limits: TimeLimits) -> Iterator[Finding]:
    """Findings about divisors and arguments of roots, logarithms and inverse functions, in the order of the file."""
    whole = domain(robot)
    for guard in guards(robot):
        name, subject = guard.name, Subject(guard, quantity_of(guard.expression, whole))
        if subject.evident():
            yield Finding(name, subject, None, IMMEDIATE)
            continue
        least = subject.search(limits.search)
        progress = ProofProgress(1.0, 0.0)
        if not least.refuted:
            quantity = subject.quantity if least.sign > 0 else subject.quantity.negated()
            judge = positive(quantity, subject.guard.zero, subject.slack)
            progress = subdivide(quantity.domain.lower, quantity.domain.upper, judge, limits.proof)
        yield Finding(name, subject, _violated(subject, progress.violation) or least, progress)


def loop_findings(robot: Robot, limits: TimeLimits) -> Iterator[Finding]:
    """Findings about closed loops: Newton's method closes them, and they are not singular."""
    whole = domain(robot)
    for closure in closures(robot):
        names = ", ".join(f"`{symbol}`" for symbol in closure.dependent)
        guard = Guard(
            "loop of",
            names,
            S.One,
            closure.places[0],
            claim=f"the loop is singular: the squared determinant of its slopes along {names} is",
            advice="Narrow the limits of the coordinates, or choose other dependent coordinates.",
        )
        within = nodes_of([*closure.slopes, *closure.squares], whole)
        determinant = within.graph.one
        for node in within.nodes[len(closure.slopes) :]:
            determinant = within.graph.mul(determinant, node)
        subject = Subject(guard, Quantity(within, determinant))
        progress = prove_closed(EnclosedLoop(closure, closure.variables), whole.of(closure.variables), limits.proof)
        least = None if progress.complete else subject.search(limits.search)
        yield Finding(f"loop of {names} closes and is regular", subject, least, progress)


def derived_findings(robot: Robot, equations: EquationsOfMotion, limits: TimeLimits) -> Iterator[Finding]:
    """Findings about closed loops, the mass matrix and the state cost."""
    yield from loop_findings(robot, limits)
    if equations.velocities:
        yield _mass_matrix(robot, equations, limits)
    yield _cost(robot, equations, limits)


def _mass_matrix(robot: Robot, equations: EquationsOfMotion, limits: TimeLimits) -> Finding:
    """The finding about the mass matrix. The proof comes before the search, because it is faster if it succeeds."""
    name, start, progress = "mass matrix positive definite", time.process_time(), IMMEDIATE
    pivots = pivot_subjects(robot, equations, domain(robot))
    parts = blocks(robot, equations)
    whole = len(parts) == 1 and parts[0][0].matrix.rows == len(pivots) and not (robot.loops and robot.links)
    for block, fixed in parts:
        one = prove_block(block, fixed, max(0.0, start + limits.proof - time.process_time()))
        progress = ProofProgress(max(progress.left, one.left), time.process_time() - start)
        if one.violation is not None and whole:
            # the pivots have the same symbols in the same order
            violations = [_violated(pivot, one.violation) for pivot in pivots]
            broken = next(((least, pivot) for least, pivot in zip(violations, pivots, strict=True) if least), None)
            if broken:
                return Finding(name, broken[1], broken[0], progress)
    if progress.complete:
        return Finding(name, pivots[0], None, progress)
    least, subject = _smallest(pivots, limits.search)
    return Finding(name, subject, least, progress)


def _smallest(pivots: Sequence[Subject], seconds: float) -> tuple[Minimum, Subject]:
    """The first refuted pivot, or the smallest pivot if none is refuted."""
    minima = []
    for subject in pivots:
        minima.append((subject.search(seconds / len(pivots)), subject))
        if minima[-1][0].refuted:
            return minima[-1]
    return min(minima, key=lambda pair: np.nan_to_num(pair[0].value, nan=np.inf))


def _cost(robot: Robot, equations: EquationsOfMotion, limits: TimeLimits) -> Finding:
    """The finding about the state cost. The proof comes first, as in `_mass_matrix`."""
    whole, name = domain(robot), "state cost never negative"
    subject = cost_subject(robot, equations, whole)
    if subject.evident():
        return Finding(name, subject, None, IMMEDIATE)
    target = dict(zip(equations.state, robot.declared_task.numbers.target, strict=True))
    progress = prove_cost(equations.state_cost, whole, target, subject.slack, limits.proof)
    if progress.complete and not_negative_at_target(equations.state_cost, whole, target, subject.slack):
        return Finding(name, subject, None, progress)
    least = subject.search(limits.search)
    if not least.refuted:
        least = _violated(subject, progress.violation) or least
    return Finding(name, subject, least, progress)


def _violated(subject: Subject, point: Array | None) -> Minimum | None:
    """The value at a point that a subdivision reports as a violation; None if the value does not violate."""
    if point is None:
        return None
    value = float(subject.quantity.values(point[None])[0])
    wrong = value < -subject.slack if subject.guard.zero else not value > 0
    return Minimum(value, point, True) if wrong else None


BUILD = TimeLimits(search=0.5, proof=0.25)  # s; most robots need less, because a proven quantity ends the search early


def refuse_guards(robot: Robot) -> None:
    """Raise ModelError, with the line, for a divisor, root, logarithm or inverse function without a value somewhere."""
    _refuse(guard_findings(robot, BUILD))


def refuse_derived(robot: Robot, equations: EquationsOfMotion) -> None:
    """Raise ModelError for a mass matrix that is not positive definite somewhere, and for a negative state cost."""
    _refuse(derived_findings(robot, equations, BUILD))


def _refuse(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.status == REFUTED:
            raise ModelError(finding.note, finding.place)
