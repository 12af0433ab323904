"""The sampled closed loop of a proof over many boxes, by Taylor models on the model's own equations.

The equations are the nodes of the artifact's program file. Their derivatives come from dual numbers, the motion in one
control period from Taylor's formula in time, with a remainder over an enclosure of the motion. Coordinates v are those
of y in the claim's basis and its complement.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from solver.errors import SolverError
from solver.proof import Equations
from solver.proof.balls import ROUNDING, Array, Balls, Mask
from solver.proof.basin_policy import BasinPolicy
from solver.proof.taylor import Dual, Model, Series, present, summed

ORDER = 4  # of Taylor's formula in time
INFLATIONS = 12  # of the enclosure of the motion
SAME = 1e-6  # difference of two forms that are equal


class ClosedLoop:
    """The sampled closed loop of a proof: the run's policy in its basin on the model of its artifact."""

    def __init__(self, proof: dict[str, Any], equations: Equations, claim: dict[str, Any]) -> None:
        self.equations, self.proof = equations, proof
        self.rate, self.core = float(claim["rate"]), float(claim["core"])
        self.target, self.nominal, self.bound = (np.array(proof[k], float) for k in ("target", "parameters", "bound"))
        self.n, self.m = len(self.target), len(proof["trim"])
        self.step, self.seen = float(proof["period"]), [i for i, row in enumerate(proof["cost"]) if any(row)]
        turn = _completed(np.array(claim["basis"], float))
        self.d, self.r = len(self.seen), np.shape(claim["basis"])[1]
        self.back = np.array(claim["back"], float)[self.seen] @ turn  # (d, d): seen errors from v
        self.forth = inverse_of(self.back)
        if not np.abs(turn.T @ turn - np.eye(self.d)).max() < 1e-9:
            raise SolverError("the proof is wrong: its basis is not orthonormal")
        self.policy = BasinPolicy(proof, equations, self.back)
        self._require_inside(claim)

    def _require_inside(self, claim: dict[str, Any]) -> None:
        """Raises SolverError unless the set is that of its shape, within the basin and within the limits."""
        square, stated = self.forth.middle.T @ self.forth.middle, np.array(claim["shape"])[np.ix_(self.seen, self.seen)]
        scale = np.sqrt(np.outer(np.diag(square), np.diag(square)))
        if not (np.abs(square - stated) < SAME * scale).all():
            raise SolverError("the proof is wrong: its shape is not that of its coordinates")
        form = self.policy.form
        if not np.linalg.eigvalsh(0.5 * (form + form.T))[-1] < self.policy.level * (1 - 1e-9):
            raise SolverError("the proof is wrong: its set is not within the basin, where the policy is known")

    # -- one period --------------------------------------------------------------------------------------------------

    def after(self, low: Array, high: Array, slopes: bool) -> tuple[list[Model], list[list[Model]], Mask]:
        """v after a period from N boxes of v and theta (N, d + p), and whether (N,) the motion stays where it is known.

        slopes: also the slopes (d, d) by v. The symbols are those of the sides that have a width, then of the errors of
        the m inputs.
        """
        middle, half, numbers = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12), numbers_of(low, high, self.m)
        along, u, inside = self.policy(numbers, middle[:, : self.d], half[:, : self.d], slopes)
        still = [None] * (self.d if slopes else 0)
        theta = [Dual.of(number, still) for number in numbers[self.d :]]
        end, reached, known = self.moved(along, u, theta)
        known = known & inside
        target = [Dual.exact(value, len(low), len(still)) for value in self.target]
        for i in self.seen:
            known &= (reached[i] - target[i]).value.first.range.size < self.bound[i]
        errors = [end[i] - target[i] for i in self.seen]
        values = [combined(self.forth, row, [e.value.first for e in errors]) for row in range(self.d)]
        moved = [
            [combined(self.forth, row, [present(e.slopes[c], len(low)) for e in errors]) for c in range(len(still))]
            for row in range(self.d)
        ]
        finite = [np.isfinite(value.bend) for value in [*values, *(entry for row in moved for entry in row)]]
        return values, moved, known & np.all(finite, 0)

    def moved(self, x: list[Dual], u: list[Dual], theta: list[Dual]) -> tuple[list[Dual], list[Dual], Mask]:
        """x after a period, an enclosure of the motion, and whether (N,) it is one."""
        count, during = len(x[0].value.first.rest), Balls(np.array(0.5 * self.step), np.array(0.5 * self.step))
        wide, known = x, np.zeros(count, bool)
        for k in range(INFLATIONS):
            speed = self._rates(wide, u, theta, 1)
            found = [_shifted(x[i], speed[i], during) if i in self.seen else x[i] for i in range(self.n)]
            if k:
                known = np.all([_contains(wide[i], found[i]) for i in self.seen], 0)
            if known.all() or k == INFLATIONS - 1:
                break
            wide = [_inflated(entry, wide[i], known) if i in self.seen else entry for i, entry in enumerate(found)]
        start, over = self._series(x, u, theta, ORDER - 1), self._series(wide, u, theta, ORDER)
        ends = [first.each(partial(_end, self.step), rest) for first, rest in zip(start, over, strict=True)]
        return ends, wide, known

    def _rates(self, x: list[Dual], u: list[Dual], theta: list[Dual], length: int) -> list[Dual]:
        count, k, still = len(x[0].value.first.rest), len(x[0].slopes), [None] * (length - 1)

        def lifted(entry: Dual) -> Dual:
            return entry.each(lambda series: series and Series([series.first, *still]))

        a, B = self.equations(
            "affine_dynamics", {"x": x, "theta": [lifted(e) for e in theta]}, lambda v: Dual.exact(v, count, k, length)
        )
        inputs = [lifted(entry) for entry in u]
        return [summed([a[i], *(B[i * self.m + c] * inputs[c] for c in range(self.m))]) for i in range(self.n)]

    def _series(self, x: list[Dual], u: list[Dual], theta: list[Dual], last: int) -> list[Dual]:
        """Power series in time up to `last` of the motion from the states x."""
        rows: list[list[list[Model | None]]] = []
        for entry in x:
            rows.append([[entry.value.first], *([s.first if s else None] for s in entry.slopes)])
        for j in range(last):
            series = [Dual(Series(list(row[0])), [Series(list(s)) for s in row[1:]]) for row in rows]
            for row, rate in zip(rows, self._rates(series, u, theta, j + 1), strict=True):
                for terms, part in zip(row, [rate.value, *rate.slopes], strict=True):
                    now = part.terms[j] if part else None
                    terms.append(None if now is None else now.times(1.0 / (j + 1)))
        return [Dual(Series(row[0]), [Series(s) for s in row[1:]]) for row in rows]


def numbers_of(low: Array, high: Array, more: int) -> list[Model]:
    """The sides (N,) of boxes (N, k), with a symbol for each side that has a width in one of them, then `more`."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12)
    wide = np.flatnonzero((half > 0).any(0))
    places = [*wide, *[-1] * more]
    return [
        Model.linear(middle[:, j], [half[:, j] * (k == j) for k in places], 1e-15 * np.abs(middle[:, j]))
        for j in range(low.shape[1])
    ]


def combined(matrix: Balls, row: int, numbers: list[Model]) -> Model:
    """A row of a matrix times numbers."""
    return summed([number.within(matrix[row, j]) for j, number in enumerate(numbers)])


def inverse_of(matrix: Array) -> Balls:
    """The inverse of a matrix. With C near it and E = C matrix - 1, it is C - E C + ..."""
    C = np.linalg.inv(matrix)
    E = np.abs(C @ matrix - np.eye(len(C))) + ROUNDING * (np.abs(C) @ np.abs(matrix))
    size = float(np.linalg.norm(E, np.inf)) * (1 + ROUNDING)
    if not size < 0.5:
        raise SolverError("the proof is wrong: its coordinates do not tell the errors apart")
    return Balls(np.asarray(C, np.float64), (E @ np.abs(C) + 2 * size**2 * np.abs(C).max(0)) * (1 + ROUNDING))


def _shifted(start: Dual, rate: Dual, during: Balls) -> Dual:
    """start + rate * during, with the slopes of both."""

    def later(a: Series | None, b: Series | None) -> Series | None:
        parts = [*([a.first] if a else []), *([b.first.within(during)] if b else [])]
        return Series([summed(parts)]) if parts else None

    return start.each(later, rate)


def _inflated(entry: Dual, old: Dual, known: Mask) -> Dual:
    """A wider number, with wider slopes, where the old one holds nothing yet."""

    def wider(new: Model, before: Model) -> Model:
        size = np.abs(new.terms[0]) + new.bend
        rest = new.rest * 1.2 + 1e-3 * (new.bend - new.rest) + 1e-12 * size + 1e-14
        if len(before.terms) < len(new.terms):
            return Model(new.terms, rest)
        return Model(np.where(known, before.terms, _padded(new, before)), np.where(known, before.rest, rest))

    return entry.each(lambda a, b: a and Series([wider(a.first, present(b, len(known)))]), old)


def _padded(model: Model, like: Model) -> Array:
    terms = np.zeros_like(like.terms)
    terms[: len(model.terms)] = model.terms
    return terms


def _contains(outer: Dual, inner: Dual) -> Mask:
    """Whether (N,) an enclosure contains another."""
    found, count = outer.value.first.contains(inner.value.first), len(outer.value.first.rest)
    for a, b in zip(outer.slopes, inner.slopes, strict=True):
        found = found & present(a, count).contains(present(b, count))
    return found


def _end(step: float, values: Series | None, rest: Series | None) -> Series | None:
    """A power series at the end of a period, with the last term of another one."""
    terms = [(k, entry) for k, entry in enumerate(values.terms) if entry] if values else []
    if rest and (last := rest.terms[ORDER]) is not None:
        terms.append((ORDER, last))
    return Series([summed([entry.times(step**k) for k, entry in terms])]) if terms else None


def _completed(basis: Array) -> Array:
    """An orthonormal basis (d, d) that begins with the columns of `basis` (d, r)."""
    d, r = basis.shape
    columns = [basis[:, j] for j in range(r)]
    for k in range(d):
        if len(columns) == d:
            break
        new = np.eye(d)[k]
        for _ in range(2):
            for other in columns:
                new = new - (new @ other) * other
        size = float(np.linalg.norm(new))
        if size > 0.1:
            columns.append(new / size)
    return np.stack(columns, 1)
