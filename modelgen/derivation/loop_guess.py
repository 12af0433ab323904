"""The smooth guess from which Newton's method closes the loops of a robot: a fit over the domain, made at the build.

The loops are closed at the starting posture and followed from there on straight lines to sampled postures and
parameters. Products of Chebyshev polynomials, or of sines and cosines of joints that turn without end, are fitted to
the dependent coordinates. Outside the domain the guess keeps its value at the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Float, Max, Min, S, cos, preorder_traversal, sin

from modelgen.arrays import Array
from modelgen.derivation.frames import Intermediates
from modelgen.derivation.loop_solver import CLOSED, LoopSolver, LoopSystem
from modelgen.errors import ModelError
from modelgen.statement.joints import Coordinate, Joint

SAMPLES = 384  # postures at which the number of steps is found
BEYOND = 1.1  # share of the limits up to which the guess is fitted, where the loops close there
ORDERS = {0: 0, 1: 30, 2: 14, 3: 7, 4: 5}  # largest order of the fit by the number of joints; 3 for more
EXACT = 1e-10  # a last step of Newton's method that is shorter leaves an error below rounding
MARGIN, CERTAIN = 2.0, 1e-13  # of the bound that sampled postures give; largest error that it leaves
MOST_STEPS = 7
DIGITS = 8  # of the coefficients of a guess, after the point


@dataclass(frozen=True)
class Guess:
    """Dependent coordinates z as functions of the independent coordinates, and the steps of Newton's method."""

    dependent: tuple[Coordinate, ...]
    joints: tuple[Joint, ...]
    reach: float  # share of the limits up to which it is fitted
    terms: tuple[tuple[int, ...], ...]  # (T, joints): the number of the basis function of each joint
    coefficients: Array  # (T, d)
    turns: NDArray[np.int64]  # (d, joints): whole turns of z in a whole turn of a joint
    steps: int = 0

    def expressions(self, names: Intermediates) -> list[tuple[Coordinate, Expr]]:
        """The guess as expressions, with named basis functions."""
        most = np.max(self.terms, axis=0, initial=0)
        basis = [_symbolic(joint, self.reach, int(m), names) for joint, m in zip(self.joints, most, strict=True)]
        result = []
        for i, symbol in enumerate(self.dependent):
            value: Expr = sum((int(n) * j.symbol for n, j in zip(self.turns[i], self.joints, strict=True)), S.Zero)
            for term, coefficient in zip(self.terms, self.coefficients[:, i], strict=True):
                if coefficient:
                    factors = (functions[number] for functions, number in zip(basis, term, strict=True))
                    value += Float(float(coefficient)) * prod(factors, start=S.One)
            result.append((symbol, value))
        return result

    def values(self, q: Array) -> Array:
        """The guess (N, d) at coordinates (N, joints)."""
        return _products(self.joints, self.reach, self.terms, q) @ self.coefficients + q @ self.turns.T


def _symbolic(joint: Joint, reach: float, most: int, names: Intermediates) -> list[Expr]:
    """Basis functions 0 to `most` of a joint by their recursions: 1, cos q, sin q, cos 2q, ...; or 1, T1, T2, ..."""
    q = joint.symbol
    if joint.continuous:
        cosines, sines = [S.One, names.scalar(f"loop_cos_{q}", cos(q))], [S.Zero, names.scalar(f"loop_sin_{q}", sin(q))]
        for n in range(2, (most + 1) // 2 + 1):
            for kind, values in (("cos", cosines), ("sin", sines)):
                values.append(names.scalar(f"loop_{kind}{n}_{q}", 2 * cosines[1] * values[-1] - values[-2]))
        return [S.One, *(value for pair in zip(cosines[1:], sines[1:], strict=True) for value in pair)]
    share = names.scalar(f"loop_share_{q}", Max(-1, Min(1, q / Float(reach * joint.limit))))
    values = [S.One, share]
    for n in range(2, most + 1):
        values.append(names.scalar(f"loop_share{n}_{q}", 2 * share * values[-1] - values[-2]))
    return values


def _products(joints: Sequence[Joint], reach: float, terms: Sequence[Sequence[int]], q: Array) -> Array:
    """Products (N, T) of the basis functions at coordinates (N, joints)."""
    result = np.ones((len(q), len(terms)))
    for k, joint in enumerate(joints):
        numbers = np.array([term[k] for term in terms])
        order = (numbers + 1) // 2 if joint.continuous else numbers
        if joint.continuous:
            angle = q[:, k, None] * order
            result *= np.where(numbers % 2 == 0, np.where(numbers == 0, 1.0, np.sin(angle)), np.cos(angle))
        else:
            result *= np.cos(np.arccos(np.clip(q[:, k, None] / (reach * joint.limit), -1, 1)) * order)
    return result


def _terms(joints: Sequence[Joint], order: int) -> tuple[tuple[int, ...], ...]:
    """The terms whose orders add up to `order` at most."""
    numbers = [range(2 * order + 1 if joint.continuous else order + 1) for joint in joints]

    def total(term: Sequence[int]) -> int:
        pairs = zip(term, joints, strict=True)
        return sum((number + 1) // 2 if joint.continuous else number for number, joint in pairs)

    return tuple(term for term in product(*numbers) if total(term) <= order)


def find_guess(of: LoopSystem, kept: Sequence[int]) -> Guess:
    """The fit and the number of steps with the fewest operations that close the loops on the whole domain.

    kept: the rows of the gap that are solved. Raises ModelError where a loop cannot close, where it is singular, and
    where it takes a dependent coordinate beyond its limit.
    """
    solver = LoopSolver(of, kept)
    start = solver.started()
    w = _sampled(of, 1.0, SAMPLES, 0)
    z, failure = solver.followed(start, of.start_w, w)
    if failure:
        raise failure
    _check(of, solver, z, w)
    turns = _turns(of, solver, start)
    count, reach = len(of.joints), BEYOND
    orders = ORDERS.get(count, 3)
    largest = len(_terms(of.joints, orders))
    fitted = _sampled(of, reach, 6 * largest + 32, 1, nominal=True)
    values, failure = solver.followed(start, of.start_w, fitted)
    if failure:
        reach, fitted = 1.0, _sampled(of, 1.0, 6 * largest + 32, 1, nominal=True)
        values, _ = solver.followed(start, of.start_w, fitted)
    best: tuple[tuple[bool, int], Guess] | None = None
    size = sum(bool(node.args) for node in {node for entry in solver.matrix for node in preorder_traversal(entry)})
    size += 3 * len(kept) ** 3
    bends = solver.bends(z, w)
    for order in range(orders + 1):
        guess = _fit(of, order, reach, fitted[:, :count], values, turns)
        begin = guess.values(w[:, :count])
        proven = _bounded_steps(np.abs(begin - z).max(axis=1), bends)
        steps = max(proven, _steps(solver, begin, w, z))
        cost = int(np.count_nonzero(guess.coefficients)) * 2 + 2 * len(guess.terms) + steps * size
        rank = proven == 0, cost  # a guess from which every step is bounded is preferred, because it can be proven
        if steps and (best is None or rank < best[0]):
            best = rank, replace(guess, steps=steps)
    if best is None:
        raise ModelError(
            f"the loop comes too close to a singularity: {MOST_STEPS} steps of Newton's method do not close it on the "
            "whole domain. Narrow the limits of the coordinates and the bounds of the parameters.",
            of.place,
        )
    return best[1]


def _sampled(of: LoopSystem, reach: float, count: int, seed: int, nominal: bool = False) -> Array:
    """Variables (count, w), dense at the limits. A joint without end turns half around either way."""
    random = np.random.default_rng(seed)
    size = len(of.joints)
    shares = np.sin(np.pi / 2 * random.uniform(-1, 1, (count, size)))
    corners = random.choice([-1.0, 1.0], (count // 4, size))
    shares[: len(corners)] = np.where(random.uniform(size=corners.shape) < 0.7, corners, shares[: len(corners)])
    w = np.tile(of.start_w, (count, 1))
    for k, joint in enumerate(of.joints):
        w[:, k] = of.start_w[k] + np.pi * shares[:, k] if joint.continuous else reach * joint.limit * shares[:, k]
    if not nominal:
        for k, parameter in enumerate(of.parameters, size):
            lower, upper = parameter.bounds
            inside = random.uniform(lower, upper, count)
            w[:, k] = np.where(random.uniform(size=count) < 0.3, random.choice([lower, upper], count), inside)
    return w


def _check(of: LoopSystem, solver: LoopSolver, z: Array, w: Array) -> None:
    """Raise ModelError for a redundant row that stays open, and for a dependent coordinate beyond its limit."""
    left = solver.rows(z, w)
    worst = int(np.abs(left).max(axis=1).argmax())
    if np.abs(left[worst]).max() > 1e3 * CLOSED:
        raise ModelError(
            f"the loop cannot close at {of.posture(w[worst])}: a gap of {of.gap(left[worst])} remains, because it "
            "takes more degrees of freedom there than it has dependent coordinates.",
            of.place,
        )
    joints = {joint.symbol: joint for joint in of.robot.dependent}
    for i, symbol in enumerate(of.z):
        joint, farthest = joints[symbol], int(np.abs(z[:, i]).argmax())
        if not joint.continuous and abs(z[farthest, i]) > joint.limit * (1 + 1e-9):
            raise ModelError(
                f"the loop takes `{symbol}` to {z[farthest, i]:.4g} at {of.posture(w[farthest])}, beyond its limit of "
                f"{joint.limit:g}. Widen it, or narrow the limits of the independent coordinates.",
                joint.place,
            )


def _turns(of: LoopSystem, solver: LoopSolver, start: Array) -> NDArray[np.int64]:
    """Whole turns (d, joints) of z in a whole turn of a joint. Raises ModelError if z ends on another branch."""
    result = np.zeros((len(of.z), len(of.joints)), np.int64)
    kinds = {joint.symbol: joint.kind for joint in of.robot.dependent}
    for k, joint in enumerate(of.joints):
        if not joint.continuous:
            continue
        z, first = start, of.start_w
        for _ in range(3):  # a stage is then no longer than in the samples
            end = first + 2 * np.pi / 3 * (np.arange(len(first)) == k)
            z, failure = solver.followed(z, first, end[None])
            if failure:
                raise failure
            first = end
        share = (z - start)[0] / (2 * np.pi)
        whole = np.round(share) * [kinds[symbol] == "revolute" for symbol in of.z]
        if np.abs(share - whole).max() > 1e-6:
            raise ModelError(
                f"the loop is on another branch after a whole turn of `{joint.symbol}`. Give it a limit in place of "
                "continuous=True.",
                joint.place,
            )
        result[:, k] = whole
    return result


def _fit(of: LoopSystem, order: int, reach: float, q: Array, z: Array, turns: NDArray[np.int64]) -> Guess:
    terms = _terms(of.joints, order)
    basis = _products(of.joints, reach, terms, q)
    coefficients = np.linalg.lstsq(basis, z - q @ turns.T, rcond=1e-12)[0]
    return Guess(of.z, of.joints, reach, terms, np.round(coefficients, DIGITS) + 0.0, turns)


def _bounded_steps(error: Array, bends: Array) -> int:
    """Steps after which the bound of Newton's method is far below rounding, from errors (N,); 0 if it does not fall."""
    for number in range(1, MOST_STEPS + 1):
        error = MARGIN * bends * error**2
        if error.max() <= CERTAIN:
            return number
    return 0


def _steps(solver: LoopSolver, guess: Array, w: Array, z: Array) -> int:
    """Steps of Newton's method from a guess (N, d) until the last one is exact; 0 if MOST_STEPS are not enough."""
    at = guess
    for number in range(1, MOST_STEPS + 1):
        move = solver.step(at, w)
        at = at + move
        if not np.isfinite(move).all():
            return 0
        if np.abs(move).max() <= EXACT:
            return number if np.abs(at - z).max() <= 1e3 * CLOSED else 0
    return 0
