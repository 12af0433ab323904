"""The sampled closed loop of a proof over many boxes, by Taylor models on the model's own equations.

The equations are the nodes of the artifact's program file. Their derivatives come from dual numbers, the motion in one
control period from Taylor's formula in time, with a remainder over an enclosure of the motion. Coordinates v are those
of y in the claim's basis and its complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solver.errors import SolverError
from solver.proof.jets import ROUNDING, Array, Balls, Jet, Mask, Powers
from solver.proof.taylor import Dual, Equations, Model, Series

ORDER = 4  # of Taylor's formula in time
INFLATIONS = 12  # of the enclosure of the motion
NEWTON = 60  # steps to the input
SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
FREE = 1e3  # states that the cost does not see lie within this of the target
SAME = 1e-6  # difference of two forms that are equal


class ClosedLoop:
    """The sampled closed loop of a proof: the run's policy in its basin on the model of its artifact."""

    def __init__(self, proof: dict[str, Any], equations: Equations, claim: dict[str, Any]) -> None:
        self.equations, self.proof = equations, proof
        self.rate, self.core = float(claim["rate"]), float(claim["core"])
        self.P, self.target, self.nominal = (np.array(proof[k], float) for k in ("cost", "target", "parameters"))
        self.trim, self.middle, self.limit = (np.array(proof[k], float) for k in ("trim", "middle", "limit"))
        self.n, self.m, self.p = len(self.target), len(self.trim), len(self.nominal)
        self.step, self.hold, self.bound = float(proof["period"]), float(proof["hold"]), np.array(proof["bound"], float)
        self.seen = [i for i in range(self.n) if self.P[i].any()]
        turn = _completed(np.array(claim["basis"], float))
        self.d, self.r = len(self.seen), np.shape(claim["basis"])[1]
        self.back = np.array(claim["back"], float)[self.seen] @ turn  # (d, d): seen errors from v
        self.forth = _linear_solution(Balls.of(self.back[..., None]), Balls.of(np.eye(self.d)[..., None]))[0]
        if not np.abs(turn.T @ turn - np.eye(self.d)).max() < 1e-9:
            raise SolverError("the proof is wrong: its basis is not orthonormal")
        self._require_inside(claim)

    def _require_inside(self, claim: dict[str, Any]) -> None:
        """Raises SolverError unless the set is that of its shape, within the basin and within the limits."""
        square, stated = self.forth.middle.T @ self.forth.middle, np.array(claim["shape"])[np.ix_(self.seen, self.seen)]
        scale = np.sqrt(np.outer(np.diag(square), np.diag(square)))
        if not (np.abs(square - stated) < SAME * scale).all():
            raise SolverError("the proof is wrong: its shape is not that of its coordinates")
        self.form = self.back.T @ self.P[np.ix_(self.seen, self.seen)] @ self.back
        self.level = float(self.proof["level"]) * (1 - 1e-5)
        if not np.linalg.eigvalsh(0.5 * (self.form + self.form.T))[-1] < self.level * (1 - 1e-9):
            raise SolverError("the proof is wrong: its set is not within the basin, where the policy is known")

    # -- one period --------------------------------------------------------------------------------------------------

    def after(self, low: Array, high: Array, slopes: bool) -> tuple[list[Model], list[list[Model]], Mask]:
        """v after a period from N boxes of v and theta (N, d + p), and whether (N,) the motion stays where it is known.

        slopes: also the slopes (d, d) by v. The symbols are those of the sides that have a width, then of the errors of
        the m inputs.
        """
        middle, half, numbers = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12), numbers_of(low, high, self.m)
        along, u, inside = self._policy(numbers, middle[:, : self.d], half[:, : self.d], slopes)
        still = [None] * (self.d if slopes else 0)
        theta = [Dual.of(number, still) for number in numbers[self.d :]]
        end, reached, known = self._moved(along, u, theta)
        known = known & inside
        for i in self.seen:
            known &= (reached[i] - _exact(self.target[i], len(low), len(still))).value.first.range.size < self.bound[i]
        errors = [end[i] - _exact(self.target[i], len(low), len(still)) for i in self.seen]
        values = [_combined(self.forth, row, [e.value.first for e in errors]) for row in range(self.d)]
        moved = [
            [_combined(self.forth, row, [_present(e.slopes[c], len(low)) for e in errors]) for c in range(len(still))]
            for row in range(self.d)
        ]
        finite = [np.isfinite(value.bend) for value in [*values, *(entry for row in moved for entry in row)]]
        return values, moved, known & np.all(finite, 0)

    def _policy(
        self, numbers: list[Model], middle: Array, half: Array, slopes: bool
    ) -> tuple[list[Dual], list[Dual], Mask]:
        """States, inputs, and whether (N,) the policy looks up V in the basin only. It knows the nominal parameters."""
        m, k = self.m, self.d if slopes else 0
        x, w, H = self._argument(numbers[: self.d], slopes)
        d = self._answer([entry.value.first for entry in w], [[entry.value.first for entry in row] for row in H])
        inside = self._looks_inside(_matrix([w])[0], _matrix(H), middle, half)
        argument = [_less(w[a].value.first, [H[a][b].value.first for b in range(m)], d) for a in range(m)]
        S = [Series([slope]) for slope in self._conjugates(argument)[1]]
        one, held = Series([Model.of(np.ones(len(middle)))]), [Series([entry]) for entry in d]
        columns = []  # u' of (1 + S H) u' = S (w' - H' d)
        for j in range(k):
            right = []
            for a in range(m):
                moved = Series([_present(w[a].slopes[j], len(middle))])
                for b in range(m):
                    moved = moved - Series([_present(H[a][b].slopes[j], len(middle))]) * held[b]
                right.append(S[a] * moved)
            matrix = [
                [S[a] * H[a][b].value + one if a == b else S[a] * H[a][b].value for b in range(m)] for a in range(m)
            ]
            columns.append(_eliminated(matrix, right))
        u = []
        for a in range(m):
            symbols = max(number.symbols for number in numbers)
            error = [
                np.full(len(middle), float(self.proof["input_error"][a]) * (k == symbols - m + a))
                for k in range(symbols)
            ]
            value = d[a] + Model.linear(np.full(len(middle), self.trim[a]), error)
            u.append(Dual(Series([value]), [column[a] for column in columns]))
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
            e.append(Dual.of(_added(parts), tilts))
        x = [entry + _exact(self.target[i], count, k) for i, entry in enumerate(e)]
        known = {"x": x, "theta": [_exact(value, count, k) for value in self.nominal]}
        B = self.equations("affine_dynamics", known, lambda value: _exact(value, count, k))[1]
        column = [[B[i * self.m + a] for i in range(self.n)] for a in range(self.m)]
        seen = self.seen
        PB = [[_summed([c[j].times(self.P[i, j]) for j in seen]) for i in seen] for c in column]
        w = [_summed([e[i] * PB[a][row] for row, i in enumerate(seen)]).times(-2.0) for a in range(self.m)]
        H = [
            [
                _summed([column[a][i] * PB[b][row] for row, i in enumerate(seen)]).times(2 * self.hold)
                for b in range(self.m)
            ]
            for a in range(self.m)
        ]
        return x, w, H

    def _answer(self, w: list[Model], H: list[list[Model]]) -> list[Model]:
        """d (m,) with d + u0 = grad g~(w - H d).

        For a guess s, d = s - (1 + S H)^-1 R with R = s - grad g~(w - H s) + u0 and S between both arguments. The norm of
        d - s is at most that of R and the largest slope times that of H R.
        """
        m, count, k = self.m, len(w[0].rest), max(entry.symbols for entry in w)
        ranges = Balls(
            *(np.array([[getattr(e.range, part) for e in row] for row in H]) for part in ("middle", "radius"))
        )
        W = np.stack([_rows_of(entry, k) for entry in w])  # (m, 1 + k, N)
        T = np.stack([[_rows_of(entry, k) for entry in row] for row in H])
        start = self._solved(W[:, 0], T[:, :, 0])
        argument = W[:, 0] - np.einsum("abn,bn->an", T[:, :, 0], start)
        S = self._conjugate(Balls.of(argument))[1].middle
        A = np.moveaxis(S[:, None] * T[:, :, 0], 2, 0) + np.eye(m)
        C = np.linalg.inv(np.where(np.isfinite(A).all((1, 2))[:, None, None], A, np.eye(m)))
        tilt = np.einsum("nab,bkn->akn", C, S[:, None] * (W - np.einsum("abkn,bn->akn", T, start)))[:, 1:]
        guess = [Model.linear(start[a], list(tilt[a])) for a in range(m)]
        near = [_less(w[a], H[a], guess) for a in range(m)]
        at, _ = self._conjugates(near)
        missed = [guess[a] - at[a] + Model.of(np.full(count, self.trim[a])) for a in range(m)]
        sizes = np.stack([np.abs(entry.terms[0]) + entry.bend for entry in missed])
        clipped = Balls.between(*(self.middle + sign * self.limit - self.trim for sign in (-1.0, 1.0)))
        clipped = Balls(clipped.middle[:, None], clipped.radius[:, None])
        ends = [
            Balls(*(np.stack([getattr(e.range, part) for e in row]) for part in ("middle", "radius")))
            for row in (w, near)
        ]
        far = ends[0] - _product(ranges, clipped)
        anywhere = Balls.between(np.minimum(far.low, ends[1].low), np.maximum(far.high, ends[1].high))
        steepest = self._conjugate(anywhere)[1].high.max(0)
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

    def _conjugates(self, w: list[Model]) -> tuple[list[Model], list[Model]]:
        """grad g~ (m,) and its slopes (m,) at w."""
        count, m = len(w[0].rest), self.m
        one = Model.of(np.ones(count))
        rows = [Dual.of(entry, [one if a == b else None for b in range(m)]) for a, entry in enumerate(w)]
        (u,) = self.equations("optimal_input", {"w": rows}, lambda value: _exact(value, count, m))
        return [entry.value.first for entry in u], [_present(entry.slopes[a], count) for a, entry in enumerate(u)]

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
        powers, m = Powers.up_to(self.m, 1), self.m
        rows = [Jet.start(powers, w[a], a) for a in range(m)]
        (u,) = self.equations(
            "optimal_input", {"w": rows}, lambda value: Jet.start(powers, Balls.of(np.full(w.middle.shape[1], value)))
        )
        parts = [[u[a].terms[k] for a in range(m)] for k in (0, 1)]
        parts[1] = [u[a].terms[1 + a] for a in range(m)]
        first, second = (
            Balls(*(np.stack([getattr(b, k) for b in part]) for k in ("middle", "radius"))) for part in parts
        )
        return first, second

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

    def _moved(self, x: list[Dual], u: list[Dual], theta: list[Dual]) -> tuple[list[Dual], list[Dual], Mask]:
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
        ends = []
        for first, rest in zip(start, over, strict=True):
            slopes = [_end(a, b, self.step) for a, b in zip(first.slopes, rest.slopes, strict=True)]
            value = _end(first.value, rest.value, self.step)
            assert value is not None
            ends.append(Dual(value, slopes))
        return ends, wide, known

    def _rates(self, x: list[Dual], u: list[Dual], theta: list[Dual], length: int) -> list[Dual]:
        count, k, still = len(x[0].value.first.rest), len(x[0].slopes), [None] * (length - 1)

        def lifted(entry: Dual) -> Dual:
            rows = [None if s is None else Series([s.first, *still]) for s in entry.slopes]
            return Dual(Series([entry.value.first, *still]), rows)

        a, B = self.equations(
            "affine_dynamics", {"x": x, "theta": [lifted(e) for e in theta]}, lambda v: _exact(v, count, k, length)
        )
        inputs = [lifted(entry) for entry in u]
        return [_summed([a[i], *(B[i * self.m + c] * inputs[c] for c in range(self.m))]) for i in range(self.n)]

    def _series(self, x: list[Dual], u: list[Dual], theta: list[Dual], last: int) -> list[Dual]:
        """Power series in time up to `last` of the motion from the states x."""
        rows = [[[entry.value.first], *([s.first if s else None] for s in entry.slopes)] for entry in x]
        for j in range(last):
            series = [Dual(Series(list(row[0])), [Series(list(s)) for s in row[1:]]) for row in rows]
            for row, rate in zip(rows, self._rates(series, u, theta, j + 1), strict=True):
                for terms, part in zip(row, [rate.value, *rate.slopes], strict=True):
                    now = part.terms[j] if part else None
                    terms.append(None if now is None else now.times(1.0 / (j + 1)))
        return [Dual(Series(row[0]), [Series(s) for s in row[1:]]) for row in rows]


def numbers_of(low: Array, high: Array, more: int) -> list[Model]:
    """The sides (N,) of boxes (N, k), with a symbol for each side that has a width in one of them, and `more` symbols."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12)
    wide = np.flatnonzero((half > 0).any(0))
    places = [*wide, *[-1] * more]
    return [
        Model.linear(middle[:, j], [half[:, j] * (k == j) for k in places], 1e-15 * np.abs(middle[:, j]))
        for j in range(low.shape[1])
    ]


def _exact(value: float, count: int, slopes: int, length: int = 1) -> Dual:
    return Dual.of(Model.of(np.full(count, float(value))), [None] * slopes, length)


def _present(slope: Series | None, count: int) -> Model:
    known = slope.terms[0] if slope else None
    return Model.of(np.zeros(count)) if known is None else known


def _summed(terms: Sequence[Dual]) -> Dual:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _added(terms: Sequence[Model]) -> Model:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _combined(matrix: Balls, row: int, numbers: list[Model]) -> Model:
    """A row of a matrix times numbers."""
    return _added([number.within(matrix[row, j]) for j, number in enumerate(numbers)])


def _matrix(rows: list[list[Dual]]) -> Balls:
    """Ranges (i, j, N) of numbers."""
    parts = [[entry.value.first.range for entry in row] for row in rows]
    return Balls(*(np.array([[getattr(part, k) for part in row] for row in parts]) for k in ("middle", "radius")))


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


def _eliminated(matrix: list[list[Series]], right: list[Series]) -> list[Series]:
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


def _linear_solution(matrix: Balls, right: Balls) -> Balls:
    """x (N, m, k) with matrix (m, m, N) x = right (m, k, N); any number where the matrix may be singular.

    With C near the inverse and E = C matrix - 1, x = C right - E C right + ...
    """
    A, r = np.moveaxis(matrix.middle, 2, 0), np.moveaxis(matrix.radius, 2, 0)
    b, wide = np.moveaxis(right.middle, 2, 0), np.moveaxis(right.radius, 2, 0)
    good = np.isfinite(A).all((1, 2)) & np.isfinite(r).all((1, 2)) & np.isfinite(wide).all((1, 2))
    good &= np.isfinite(b).all((1, 2))
    one = np.eye(A.shape[1])
    A, r = np.where(good[:, None, None], A, one), np.where(good[:, None, None], r, 0.0)
    b, wide = np.where(good[:, None, None], b, 0.0), np.where(good[:, None, None], wide, 0.0)
    C = np.linalg.inv(A)
    E = np.abs(C @ A - one) + np.abs(C) @ r + ROUNDING * (np.abs(C) @ np.abs(A))
    norm = E.sum(2).max(1)[:, None, None] * (1 + ROUNDING)
    at = C @ b
    spread = np.abs(C) @ (wide + ROUNDING * np.abs(b)) + ROUNDING * np.abs(at)
    whole = np.abs(at) + spread
    more = E @ whole + (norm**2 / (1 - norm)) * whole.max(1, keepdims=True)
    radius = np.where((norm < 0.99) & good[:, None, None], (spread + more) * (1 + ROUNDING), np.inf)
    return Balls(at, radius)


def _shifted(start: Dual, rate: Dual, during: Balls) -> Dual:
    """start + rate * during, with the slopes of both."""
    slopes = [
        Series([_added([part.first for part in (a,) if part] + ([b.first.within(during)] if b else []))])
        if a or b
        else None
        for a, b in zip(start.slopes, rate.slopes, strict=True)
    ]
    return Dual(Series([start.value.first + rate.value.first.within(during)]), slopes)


def _inflated(entry: Dual, old: Dual, known: Mask) -> Dual:
    """A wider number, with wider slopes, where the old one holds nothing yet."""

    def wider(new: Model, before: Model) -> Model:
        size = np.abs(new.terms[0]) + new.bend
        rest = new.rest * 1.2 + 1e-3 * (new.bend - new.rest) + 1e-12 * size + 1e-14
        if len(before.terms) < len(new.terms):
            return Model(new.terms, rest)
        return Model(np.where(known, before.terms, _padded(new, before)), np.where(known, before.rest, rest))

    pairs = zip(entry.slopes, old.slopes, strict=True)
    count = len(known)
    slopes = [Series([wider(a.first, _present(b, count))]) if a else None for a, b in pairs]
    return Dual(Series([wider(entry.value.first, old.value.first)]), slopes)


def _padded(model: Model, like: Model) -> Array:
    terms = np.zeros_like(like.terms)
    terms[: len(model.terms)] = model.terms
    return terms


def _contains(outer: Dual, inner: Dual) -> Mask:
    """Whether (N,) an enclosure contains another."""
    found, count = outer.value.first.contains(inner.value.first), len(outer.value.first.rest)
    for a, b in zip(outer.slopes, inner.slopes, strict=True):
        found = found & _present(a, count).contains(_present(b, count))
    return found


def _end(values: Series | None, rest: Series | None, step: float) -> Series | None:
    """A power series at the end of a period, with the last term of another one."""
    terms = [(k, entry) for k, entry in enumerate(values.terms) if entry] if values else []
    if rest and (last := rest.terms[ORDER]) is not None:
        terms.append((ORDER, last))
    return Series([_added([entry.times(step**k) for k, entry in terms])]) if terms else None


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
