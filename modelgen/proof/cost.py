"""The proof that a state cost is never negative.

The cost is a sum of parts that share no symbol. Each part is compared with its own value at the target. Either the
graph shows that the part is a sum of squares, or there is a box about the target in which its slope does not jump and
its Hessian is positive definite. The target is then the minimum in this box, because the slope there is zero; outside,
boxes are tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sympy import Add, Expr, Float, Symbol

from modelgen.arrays import Array
from modelgen.derivation.loops import connected
from modelgen.program.differentiate import forward
from modelgen.proof.guards import Domain, Quantity, quantity_of
from modelgen.proof.search import Boxes, Judge, Judgement, ProofProgress, positive, subdivide

SMALLEST = 2.0**-20  # of the domain: the smallest box about the target
ROUNDING = 1e-9  # a slope at the target below this share of the largest slope counts as zero


def prove_cost(cost: Expr, whole: Domain, target: dict[Symbol, float], slack: float, seconds: float) -> ProofProgress:
    """The progress of the proof that the cost is at least the cost at the target, over all its parts.

    A violation is a point of the symbols of the whole cost; symbols of other parts are at the target.
    """
    spent, left, inside = 0.0, 0.0, whole.of([cost])
    for part in parts(cost, whole):
        at_target = _at_target(part, whole, target)
        difference = quantity_of(part - at_target, whole)
        progress = _prove_part(difference, target, slack, seconds - spent)
        spent, left = spent + progress.seconds, max(left, progress.left)
        if progress.violation is not None:
            at = dict(zip(whole.symbols, whole.lower, strict=True)) | target
            at |= dict(zip(difference.domain.symbols, progress.violation, strict=True))
            return ProofProgress(left, spent, np.array([at[symbol] for symbol in inside.symbols]))
    return ProofProgress(left, spent)


def not_negative_at_target(cost: Expr, whole: Domain, target: dict[Symbol, float], slack: float) -> bool:
    """Whether one enclosure shows it, for all parameters. Then a complete `prove_cost` shows it on the whole domain."""
    return quantity_of(_at_target(cost, whole, target), whole).range[0] >= -slack


def _at_target(part: Expr, whole: Domain, target: dict[Symbol, float]) -> Expr:
    """The part at the target. With coordinates that loops determine, a number in the middle of the bounds."""
    inside = whole.of([part])
    if not inside.loops:
        return part.xreplace({symbol: Float(value) for symbol, value in target.items()})
    middle = dict(zip(inside.symbols, (inside.lower + inside.upper) / 2, strict=True))
    at = np.array([target.get(symbol, value) for symbol, value in middle.items()])
    return Float(float(quantity_of(part, whole).values(at[None])[0]))


def parts(cost: Expr, whole: Domain) -> list[Expr]:
    """The sums of the terms that share symbols, directly or through other terms. Constants are left out."""
    terms = [term for term in Add.make_args(cost) if term.free_symbols]
    return [Add(*together) for together in connected((term, {*whole.of([term]).symbols}) for term in terms)]


def _prove_part(part: Quantity, target: dict[Symbol, float], slack: float, seconds: float) -> ProofProgress:
    domain = part.domain
    if not domain.symbols or part.range[0] >= 0:
        return ProofProgress(0.0, 0.0)
    states = [k for k, symbol in enumerate(domain.symbols) if symbol in target]
    angles = {symbol for value in domain.sphere.values() for symbol in value.free_symbols}  # singular at a target
    basin = None
    if angles.isdisjoint(domain.symbols):
        basin = _convex(part, states, np.array([target[domain.symbols[k]] for k in states]))
    judge = positive(part, zero=True, slack=slack)
    return subdivide(domain.lower, domain.upper, _outside(judge, states, *basin) if basin else judge, seconds)


def _outside(judge: Judge, states: Sequence[int], lower: Array, upper: Array) -> Judge:
    """The judge for boxes outside a box about the target; inside, the property holds."""

    def either(boxes: Boxes) -> Judgement:
        inside = (boxes.lower[:, states] >= lower).all(axis=1) & (boxes.upper[:, states] <= upper).all(axis=1)
        judgement = judge(boxes)
        return replace(judgement, holds=judgement.holds | inside)

    return either


def _convex(part: Quantity, states: Sequence[int], target: Array) -> tuple[Array, Array] | None:
    """A box about the target in which the part is convex for every parameter; None if there is none."""
    lower, upper = part.domain.lower.copy(), part.domain.upper.copy()
    limits = (upper - lower)[states] / 2
    lower[states] = upper[states] = target
    steepest = max(np.abs(bound).max() for bound in part.slopes(part.domain.lower[None], part.domain.upper[None]))
    if any(np.abs(bound[:, states]).max() > ROUNDING * steepest for bound in part.slopes(lower[None], upper[None])):
        return None
    graph, slopes = part.graph, [part.gradient[k] for k in states]
    signs = graph.of_kind(slopes, "sign")  # of a kink, whose Hessian does not tell of it
    columns = [forward(graph, slopes, part.inputs[k]) for k in states]
    entries = [columns[j][i] for i in range(len(states)) for j in range(len(states))]
    share = 1.0
    while share >= SMALLEST:
        lower[states], upper[states] = target - share * limits, target + share * limits
        low, high = (
            end.reshape(len(states), len(states)) for end in part.within.bounds(entries, lower[None], upper[None])
        )
        smooth = not part.within.changing(signs, lower[None], upper[None]).any()
        if smooth and _positive_definite((low + high) / 2, (high - low) / 2):
            return lower[states], upper[states]
        share /= 2
    return None


def _positive_definite(centre: Array, radius: Array) -> bool:
    """Whether every symmetric matrix within `radius` (n, n) of `centre` is positive definite."""
    if not np.isfinite(centre + radius).all():
        return False
    eigenvalues, vectors = np.linalg.eigh((centre + centre.T) / 2)
    if eigenvalues[0] <= 0:
        return False
    X = vectors.T / np.sqrt(eigenvalues)[:, None]
    missed = np.abs(X @ centre @ X.T - np.eye(len(X))) + np.abs(X) @ (radius * (1 + 1e-12)) @ np.abs(X).T
    return bool(missed.sum(axis=1).max() < 1 - 1e-9)
