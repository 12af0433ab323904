"""The input of the policy in its basin over many boxes, by Taylor models of its formula.

The error is e = x - target. The input is u = u0 + d with d + u0 = grad g~(w - H d), w = -2 B' P e and H = 2 h B' P B at
the nominal parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solver.proof import Equations
from solver.proof.balls import ROUNDING, Array, Balls, Mask, stacked
from solver.proof.jets import Jet, Powers
from solver.proof.taylor import Dual, Model, present, summed

NEWTON = 60  # steps to the input
SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
FREE = 1e3  # states that the cost does not see lie within this of the target


class BasinPolicy:
    """The policy of a proof's run in its basin. back: (d, d) errors of the seen states from v."""

    def __init__(self, proof: dict[str, Any], equations: Equations, back: Array) -> None:
        self.equations, self.back = equations, back
        self.P, self.target, self.nominal = (np.array(proof[k], float) for k in ("cost", "target", "parameters"))
        self.trim, self.middle, self.limit = (np.array(proof[k], float) for k in ("trim", "middle", "limit"))
        self.error, self.hold = np.array(proof["input_error"], float), float(proof["hold"])
        self.n, self.m, self.d = len(self.target), len(self.trim), len(back)
        self.seen = [i for i in range(self.n) if self.P[i].any()]
        self.form = back.T @ self.P[np.ix_(self.seen, self.seen)] @ back  # e' P e by v
        self.level = float(proof["level"]) * (1 - 1e-5)

    def __call__(
        self, numbers: list[Model], middle: Array, half: Array, slopes: bool
    ) -> tuple[list[Dual], list[Dual], Mask]:
        """States, inputs, and whether (N,) the policy looks up V in the basin only. It knows the nominal parameters."""
        m, k = self.m, self.d if slopes else 0
        x, w, H = self._argument(numbers[: self.d], slopes)
        d = self.answer([entry.value.first for entry in w], [[entry.value.first for entry in row] for row in H])
        inside = self._looks_inside(_matrix([w])[0], _matrix(H), middle, half)
        argument = [_less(w[a].value.first, [H[a][b].value.first for b in range(m)], d) for a in range(m)]
        S, one = self.conjugates(argument)[1], Model.of(np.ones(len(middle)))
        matrix = [[S[a] * H[a][b].value.first for b in range(m)] for a in range(m)]
        for a in range(m):
            matrix[a][a] = matrix[a][a] + one
        columns = []  # u' of (1 + S H) u' = S (w' - H' d)
        for j in range(k):
            tilts = [[present(entry.slopes[j], len(middle)) for entry in (w[a], *H[a])] for a in range(m)]
            columns.append(_eliminated(matrix, [S[a] * _less(tilts[a][0], tilts[a][1:], d) for a in range(m)]))
        u = []
        for a in range(m):
            symbols = max(number.symbols for number in numbers)
            error = [np.full(len(middle), self.error[a] * (k == symbols - m + a)) for k in range(symbols)]
            value = d[a] + Model.linear(np.full(len(middle), self.trim[a]), error)
            u.append(Dual.of(value, [column[a] for column in columns]))
        return x, u, inside

    def _argument(self, v: list[Model], slopes: bool) -> tuple[list[Dual], list[Dual], list[list[Dual]]]:
        """States (n,), w (m,) and H (m, m) at v, with their slopes by v."""
        count, k = len(v[0].rest), self.d if slopes else 0
        rows = {i: row for row, i in enumerate(self.seen)}
        e = []
        for i in range(self.n):
            if i not in rows:
                e.append(Dual.of(Model.of(np.zeros(count), FREE), [None] * k))
                continue
            parts = [v[j].times(self.back[rows[i], j]) for j in range(self.d)]
            tilts = [Model.of(np.full(count, self.back[rows[i], j])) for j in range(k)]
            e.append(Dual.of(summed(parts), tilts))
        x = [entry + Dual.exact(self.target[i], count, k) for i, entry in enumerate(e)]
        known = {"x": x, "theta": [Dual.exact(value, count, k) for value in self.nominal]}
        B = self.equations("affine_dynamics", known, lambda value: Dual.exact(value, count, k))[1]
        column = [[B[i * self.m + a] for i in range(self.n)] for a in range(self.m)]
        seen = self.seen
        PB = [[summed([c[j].times(self.P[i, j]) for j in seen]) for i in seen] for c in column]
        w = [summed([e[i] * PB[a][row] for row, i in enumerate(seen)]).times(-2.0) for a in range(self.m)]
        H = [
            [
                summed([column[a][i] * PB[b][row] for row, i in enumerate(seen)]).times(2 * self.hold)
                for b in range(self.m)
            ]
            for a in range(self.m)
        ]
        return x, w, H

    def answer(self, w: list[Model], H: list[list[Model]]) -> list[Model]:
        """d (m,) with d + u0 = grad g~(w - H d).

        For a guess s, d = s - (1 + S H)^-1 R with R = s - grad g~(w - H s) + u0 and S between both arguments. The norm
        of d - s is at most that of R and the largest slope times that of H R; of one input, with H >= 0, that of R.
        """
        m, count, k = self.m, len(w[0].rest), max(entry.symbols for entry in w)
        ranges = stacked([stacked([entry.range for entry in row]) for row in H])
        W = np.stack([_rows_of(entry, k) for entry in w])  # (m, 1 + k, N)
        T = np.stack([[_rows_of(entry, k) for entry in row] for row in H])
        start = self._solved(W[:, 0], T[:, :, 0])
        argument = W[:, 0] - np.einsum("abn,bn->an", T[:, :, 0], start)
        S = self._conjugate(Balls.of(argument))[1].middle
        A = np.moveaxis(S[:, None] * T[:, :, 0], 2, 0) + np.eye(m)
        C = np.linalg.inv(np.where(np.isfinite(A).all((1, 2), keepdims=True), A, np.eye(m)))
        tilt = np.einsum("nab,bkn->akn", C, S[:, None] * (W - np.einsum("abkn,bn->akn", T, start)))[:, 1:]
        guess = [Model.linear(start[a], list(tilt[a])) for a in range(m)]
        near = [_less(w[a], H[a], guess) for a in range(m)]
        at, _ = self.conjugates(near)
        missed = [guess[a] - at[a] + Model.of(np.full(count, self.trim[a])) for a in range(m)]
        sizes = np.stack([np.abs(entry.terms[0]) + entry.bend for entry in missed])
        clipped = Balls.between(*(self.middle + sign * self.limit - self.trim for sign in (-1.0, 1.0)))
        clipped = Balls(clipped.middle[:, None], clipped.radius[:, None])
        ends = [stacked([entry.range for entry in row]) for row in (w, near)]
        far = ends[0] - _product(ranges, clipped)
        anywhere = Balls.between(np.minimum(far.low, ends[1].low), np.maximum(far.high, ends[1].high))
        steepest = self._conjugate(anywhere)[1].high.max(0)
        wide = sizes
        if m > 1:
            wide = sizes + steepest * np.linalg.norm(_product(ranges, Balls(np.zeros_like(sizes), sizes)).size, axis=0)
        between = ends[1] + _product(ranges, Balls(np.zeros_like(wide), wide))
        slopes = self._conjugate(between)[1]
        matrix = Balls(slopes.middle[:, None], slopes.radius[:, None]) * ranges
        apart = np.abs(np.moveaxis(matrix.middle, 2, 0) + np.eye(m) - A) + np.moveaxis(matrix.radius, 2, 0)
        apart += 1e-12 * (np.abs(A) + 1.0)
        rest = np.einsum("nab,nbc,cn->an", np.abs(C), apart, wide) * (1 + 1e-12)
        found = []
        for a in range(m):
            total = guess[a]
            for b in range(m):
                total = total - missed[b].times(C[:, a, b])
            found.append(Model(total.terms, total.rest + rest[a]))
        return found

    def conjugates(self, w: list[Model]) -> tuple[list[Model], list[Model]]:
        """grad g~ (m,) and its slopes (m,) at w."""
        count, m = len(w[0].rest), self.m
        one = Model.of(np.ones(count))
        rows = [Dual.of(entry, [one if a == b else None for b in range(m)]) for a, entry in enumerate(w)]
        (u,) = self.equations("optimal_input", {"w": rows}, lambda value: Dual.exact(value, count, m))
        return [entry.value.first for entry in u], [present(entry.slopes[a], count) for a, entry in enumerate(u)]

    def _looks_inside(self, w: Balls, H: Balls, middle: Array, half: Array) -> Mask:
        if not self.hold:
            return np.ones(len(middle), bool)
        size = np.minimum((np.maximum(np.abs(middle - half), np.abs(middle + half)) ** 2).sum(1), 1.0)
        largest = min(float(np.linalg.norm(self.form, 2)), self.level) * size * (1 + 1e-12)
        closed, least = self._conjugate(w)[0], np.maximum(np.abs(w.middle) - w.radius, 0.0) * (1 - ROUNDING)
        inside = np.ones(len(middle), bool)
        for a in range(self.m):
            step = self.hold * np.maximum((closed[a] - float(self.trim[a])).size, SHORTEST * self.limit[a])
            steep = H[a, a].size / (2 * self.hold)
            grown = np.maximum(step * step * steep - step * least[a], 0.0)
            inside &= (largest + grown) * (1 + 1e-12) < self.level
        return inside

    def _conjugate(self, w: Balls) -> tuple[Balls, Balls]:
        """grad g~ (m, N) and its slopes (m, N) at w (m, N)."""
        powers = Powers.up_to(self.m, 1)
        rows = [Jet.start(powers, w[a], a) for a in range(self.m)]
        (u,) = self.equations(
            "optimal_input", {"w": rows}, lambda value: Jet.start(powers, Balls.of(np.full(w.middle.shape[1], value)))
        )
        return stacked([entry.terms[0] for entry in u]), stacked([entry.terms[1 + a] for a, entry in enumerate(u)])

    def _solved(self, w: Array, H: Array) -> Array:
        """d (m, N) with d = grad g~(w - H d) - u0, nearly."""
        d, one = np.zeros_like(w), np.eye(self.m)
        for _ in range(NEWTON):
            at, slopes = self._conjugate(Balls.of(w - np.einsum("abn,bn->an", H, d)))
            missed = at.middle - self.trim[:, None] - d
            if (np.abs(missed) < 1e-15 * (1 + np.abs(d))).all():
                break
            matrix = np.moveaxis(slopes.middle[:, None] * H, 2, 0) + one
            d = d + np.linalg.solve(matrix, missed.T[..., None])[..., 0].T
        return np.where(np.isfinite(d), d, 0.0)


def _matrix(rows: list[list[Dual]]) -> Balls:
    """Ranges (i, j, N) of numbers."""
    return stacked([stacked([entry.value.first.range for entry in row]) for row in rows])


def _rows_of(number: Model, symbols: int) -> Array:
    """Middle and slopes (1 + k, N)."""
    found = np.zeros((1 + symbols, len(number.rest)))
    found[: 1 + number.symbols] = number.terms[: 1 + number.symbols]
    return found


def _less(w: Model, row: list[Model], d: list[Model]) -> Model:
    """w less a row of a matrix times d."""
    for entry, number in zip(row, d, strict=True):
        w = w - entry * number
    return w


def _eliminated(matrix: list[list[Model]], right: list[Model]) -> list[Model]:
    """The solution of a linear system by elimination."""
    matrix, right, m = [list(row) for row in matrix], list(right), len(right)
    for k in range(m):
        for i in range(k + 1, m):
            factor = matrix[i][k] / matrix[k][k]
            matrix[i] = [entry - factor * above for entry, above in zip(matrix[i], matrix[k], strict=True)]
            right[i] = right[i] - factor * right[k]
    for k in reversed(range(m)):
        for j in range(k + 1, m):
            right[k] = right[k] - matrix[k][j] * right[j]
        right[k] = right[k] / matrix[k][k]
    return right


def _product(matrix: Balls, vector: Balls) -> Balls:
    """Matrices (i, j, N) times vectors (j, N)."""
    terms = matrix * vector
    wide = terms.radius.sum(1) + ROUNDING * np.abs(terms.middle).sum(1)
    return Balls(terms.middle.sum(1), wide * (1 + ROUNDING))
