"""The sampled closed loop of a proof by ball arithmetic (Arb) on the model's own equations, for the independent check.

The equations are the nodes of the artifact's program file. Their derivatives come from dual numbers, the motion in one
control period from Taylor's formula with a remainder over an enclosure of the motion. Coordinates v are those of y in
the claim's basis and its complement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from solver.errors import SolverError
from solver.proof.balls import (
    Dual,
    Equations,
    Number,
    arb,
    arb_mat,
    ball,
    contains,
    ctx,
    definite,
    in_time,
    inflated,
    largest_norm,
    shifted,
    summed,
)

ORDER = 4  # of Taylor's formula
INFLATIONS = 12  # of the enclosure of the motion
SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
FREE = 1e3  # states that the cost does not see lie within this of the target


class ClosedLoop:
    """The sampled closed loop of a proof: the run's policy in its basin on the model of its artifact."""

    def __init__(self, proof: dict[str, Any], equations: Equations, claim: dict[str, Any]) -> None:
        self.equations, self.proof = equations, proof
        self.rate, self.core = float(claim["rate"]), float(claim["core"])
        self.P = [[arb(value) for value in row] for row in proof["cost"]]
        self.n, self.m, self.p = len(proof["target"]), len(proof["trim"]), len(proof["parameters"])
        self.seen = [i for i in range(self.n) if any(proof["cost"][i])]
        basis = _completed(claim["basis"])
        back = arb_mat([[arb(value) for value in claim["back"][i]] for i in self.seen])
        turn = arb_mat([[arb(value) for value in row] for row in basis])
        self.back = back * turn  # (d, d): seen errors from v
        self.forth = self.back.inv()
        self.d, self.r = len(self.seen), len(claim["basis"][0])
        self.fixed = [arb(value) for value in proof["parameters"]]
        self._require_orthonormal(turn)
        self._require_inside(claim)

    def _require_orthonormal(self, turn: Number) -> None:
        product = turn.transpose() * turn
        for i in range(self.d):
            for j in range(self.d):
                if not abs(product[i, j] - (i == j)) < 1e-9:
                    raise SolverError("the proof is wrong: its basis is not orthonormal")

    def _require_inside(self, claim: dict[str, Any]) -> None:
        """Raises SolverError unless the set is that of its shape, within the basin and within the limits."""
        d, square = self.d, self.forth.transpose() * self.forth
        for i in range(d):
            for j in range(d):
                stated, scale = claim["shape"][self.seen[i]][self.seen[j]], (square[i, i] * square[j, j]).sqrt()
                if not abs(square[i, j] - stated) < 1e-6 * scale:
                    raise SolverError("the proof is wrong: its shape is not that of its coordinates")
        P = arb_mat([[self.P[i][j] for j in self.seen] for i in self.seen])
        form = self.back.transpose() * P * self.back
        self.level = arb(self.proof["level"]) * (1 - arb(1e-5))
        if not definite(arb_mat([[self.level * (i == j) - form[i, j] for j in range(d)] for i in range(d)])):
            raise SolverError("the proof is wrong: its set is not within the basin, where the policy is known")
        self.form = form

    # -- one period --------------------------------------------------------------------------------------------------

    def after(self, v: Sequence[Number], theta: Sequence[Number]) -> tuple[list[Number], list[list[Number]], bool]:
        """v after a period, its slopes (d, d + p) by v and theta, and whether the motion stays where it is known."""
        k, zero = self.d + self.p, arb(0)
        known = [Dual(zero, [None] * k) for _ in range(self.n)]
        for row, i in enumerate(self.seen):
            slopes: list[Number | None] = [self.back[row, j] for j in range(self.d)]
            value = sum((self.back[row, j] * v[j] for j in range(self.d)), zero)
            known[i] = Dual(value, slopes + [None] * self.p)
        target = [arb(value) for value in self.proof["target"]]
        free = ball(-FREE, FREE)
        x = [Dual(target[i] + (e.value if i in self.seen else free), e.slopes) for i, e in enumerate(known)]
        u, inside = self._policy(x, known, v)
        at = [Dual(value, [arb(1) if j == self.d + i else None for j in range(k)]) for i, value in enumerate(theta)]
        end, reached = self._moved(x, u, at)
        if reached is None:
            return [], [], False
        errors = [end[i] - Dual(target[i], [None] * k) for i in self.seen]
        values, slopes_out = [], []
        for row in range(self.d):
            values.append(sum((self.forth[row, j] * errors[j].value for j in range(self.d)), zero))
            slopes_out.append(
                [sum((self.forth[row, j] * (errors[j].slopes[c] or 0) for j in range(self.d)), zero) for c in range(k)]
            )
        for i in self.seen:
            inside = inside and bool(abs(reached[i].value - target[i]) < self.proof["bound"][i])
        return values, slopes_out, inside

    def _policy(self, x: list[Dual], e: list[Dual], v: Sequence[Number]) -> tuple[list[Dual], bool]:
        """Inputs, and whether the policy looks up V in the basin only. It knows the nominal parameters."""
        k, m, hold = self.d + self.p, self.m, arb(self.proof["hold"])

        def constant(value: Number) -> Dual:
            return Dual(arb(value), [None] * k)

        nominal = {"x": x, "theta": [constant(value) for value in self.fixed]}
        B = self.equations("affine_dynamics", nominal, constant)[1]
        column = [[B[i * m + a] for i in range(self.n)] for a in range(m)]
        PB = [[summed(constant(self.P[i][j]) * c[j] for j in range(self.n)) for i in range(self.n)] for c in column]
        w = [summed(e[i] * PB[a][i] for i in range(self.n)) * constant(-2) for a in range(m)]
        twice = constant(2 * hold)
        H = [[summed(column[a][i] * PB[b][i] for i in range(self.n)) * twice for b in range(m)] for a in range(m)]
        trim, limit = [arb(value) for value in self.proof["trim"]], self.proof["limit"]
        closed, _ = self._conjugate([c.value for c in w])
        inside, size = True, sum((entry * entry for entry in v), arb(0)).min(arb(1))
        for a in range(m if self.proof["hold"] else 0):
            step = hold * abs(closed[a] - trim[a]).max(arb(SHORTEST * limit[a]))
            steep = H[a][a].value / (2 * hold)
            largest = self._largest_form() * size
            inside = inside and bool(largest + step * step * steep - step * abs(w[a].value) < self.level)
        start = self._solved([c.value.mid() for c in w], [[c.value.mid() for c in row] for row in H], trim)
        argument = [w[a].value - sum((H[a][b].value * start[b] for b in range(m)), arb(0)) for a in range(m)]
        at, _ = self._conjugate(argument)
        missed = [start[a] - (at[a] - trim[a]) for a in range(m)]
        turned = [sum((H[a][b].value * missed[b] for b in range(m)), arb(0)) for a in range(m)]
        clipped = [ball(-limit[a], limit[a]) - trim[a] + self.middle(a) for a in range(m)]
        anywhere = [
            (w[a].value - sum((H[a][b].value * clipped[b] for b in range(m)), arb(0))).union(argument[a])
            for a in range(m)
        ]
        steepest = max(float(slope.upper()) for slope in self._conjugate(anywhere)[1])
        wide = largest_norm(turned) * steepest
        d = [start[a] + ball(-1, 1) * (abs(missed[a]).upper() + wide) for a in range(m)]
        d = [d[a].intersection(clipped[a]) for a in range(m)]
        argument = [w[a].value - sum((H[a][b].value * d[b] for b in range(m)), arb(0)) for a in range(m)]
        at, slopes = self._conjugate(argument)
        d = [d[a].intersection(at[a] - trim[a]) for a in range(m)]
        # (1 + S H) u' = S (w' - H' d)
        slopes = [slope.max(arb(0)) for slope in slopes]  # grad g~ increases, and H is positive semidefinite
        matrix = arb_mat([[slopes[a] * H[a][b].value + (a == b) for b in range(m)] for a in range(m)])
        if m == 1:
            matrix[0, 0] = matrix[0, 0].max(arb(1))
        moved = [
            [
                slopes[a] * ((w[a].slopes[c] or 0) - sum(((H[a][b].slopes[c] or 0) * d[b] for b in range(m)), arb(0)))
                for c in range(k)
            ]
            for a in range(m)
        ]
        tilt = matrix.solve(arb_mat(moved))
        error = self.proof["input_error"]
        return [
            Dual(trim[a] + d[a] + ball(-error[a], error[a]), [tilt[a, c] for c in range(k)]) for a in range(m)
        ], inside

    def middle(self, a: int) -> Number:
        """Middle of the range of an input."""
        return arb(self.proof["middle"][a])

    def _largest_form(self) -> Number:
        """Upper bound of e' P e at |v| = 1."""
        rows = [sum((abs(self.form[i, j]) for j in range(self.d)), arb(0)) for i in range(self.d)]
        largest = rows[0]
        for row in rows[1:]:
            largest = largest.max(row)
        return largest.min(self.level)

    def _conjugate(self, w: Sequence[Number]) -> tuple[list[Number], list[Number]]:
        """grad g~ and its slopes at w (m,)."""
        m = self.m
        rows = [Dual(arb(value), [arb(1) if a == b else None for b in range(m)]) for a, value in enumerate(w)]
        (u,) = self.equations("optimal_input", {"w": rows}, lambda value: Dual(arb(value), [None] * m))
        return [entry.value for entry in u], [entry.slopes[a] or arb(0) for a, entry in enumerate(u)]

    def _solved(self, w: list[Number], H: list[list[Number]], trim: list[Number]) -> list[Number]:
        """d with d = grad g~(w - H d) - u0, nearly."""
        d = [arb(0)] * self.m
        for _ in range(200):
            argument = [w[a] - sum((H[a][b] * d[b] for b in range(self.m)), arb(0)) for a in range(self.m)]
            at, slopes = self._conjugate(argument)
            missed = [at[a] - trim[a] - d[a] for a in range(self.m)]
            if all(abs(entry) < 1e-15 * (1 + abs(d[a])) for a, entry in enumerate(missed)):
                break
            matrix = arb_mat([[slopes[a] * H[a][b] + (a == b) for b in range(self.m)] for a in range(self.m)])
            step = matrix.solve(arb_mat([[entry] for entry in missed]))
            d = [(d[a] + step[a, 0]).mid() for a in range(self.m)]
        return d

    def _moved(self, x: list[Dual], u: list[Dual], theta: list[Dual]) -> tuple[list[Dual], list[Dual] | None]:
        """x after a period, and an enclosure of the motion; None where none is found."""
        step, k = arb(self.proof["period"]), self.d + self.p
        during = ball(0, 1) * step

        def rates(at: list[Dual], constant: Callable[[float], Dual], lift: Callable[[Dual], Dual]) -> list[Dual]:
            a, B = self.equations("affine_dynamics", {"x": at, "theta": [lift(entry) for entry in theta]}, constant)
            inputs = [lift(entry) for entry in u]
            return [a[i] + summed(B[i * self.m + c] * inputs[c] for c in range(self.m)) for i in range(self.n)]

        def plain(value: float) -> Dual:
            return Dual(arb(value), [None] * k)

        wide, reached = x, None
        for _ in range(INFLATIONS):
            speed = rates(wide, plain, lambda entry: entry)
            found = [shifted(x[i], speed[i], during) for i in range(self.n)]
            if wide is not x and all(contains(wide[i], found[i]) for i in self.seen):
                reached = wide
                break
            wide = [inflated(entry) if i in self.seen else x[i] for i, entry in enumerate(found)]
        if reached is None:
            return x, None

        def series(at: list[Dual], last: int) -> list[Dual]:
            """Taylor coefficients up to `last` from the state at one time."""
            rows = [[[entry.value], [[s] for s in entry.slopes]] for entry in at]
            for j in range(last):
                ctx.cap = j + 1
                lifted = [Dual(in_time(row[0], j), [in_time(s, j) for s in row[1]]) for row in rows]

                def constant(value: float, order: int = j) -> Dual:
                    return Dual(in_time([arb(value)], order), [None] * k)

                def lift(entry: Dual, order: int = j) -> Dual:
                    slopes = [None if s is None else in_time([s], order) for s in entry.slopes]
                    return Dual(in_time([entry.value], order), slopes)

                flow = rates(lifted, constant, lift)
                for row, rate in zip(rows, flow, strict=True):
                    row[0].append(rate.value[j] / (j + 1))
                    for s, slope in zip(row[1], rate.slopes, strict=True):
                        s.append(arb(0) if slope is None else slope[j] / (j + 1))
            return [Dual(row[0], row[1]) for row in rows]

        start, over = series(x, ORDER - 1), series(reached, ORDER)
        ctx.cap = 10
        powers = [step**j for j in range(ORDER + 1)]

        def end(values: list[Number | None], rest: Number | None) -> Number:
            total = sum(((value or 0) * powers[j] for j, value in enumerate(values)), arb(0))
            return total + (rest or 0) * powers[ORDER]

        ends = []
        for first, rest in zip(start, over, strict=True):
            pairs: Any = zip(first.slopes, rest.slopes, strict=True)
            slopes = [end(a, b[ORDER]) for a, b in pairs]
            ends.append(Dual(end(first.value, rest.value[ORDER]), slopes))
        return ends, reached


def _completed(basis: list[list[float]]) -> list[list[float]]:
    """An orthonormal basis (d, d) that begins with the columns of `basis` (d, r)."""
    d, r = len(basis), len(basis[0])
    columns = [[basis[i][j] for i in range(d)] for j in range(r)]
    for k in range(d):
        if len(columns) == d:
            break
        new = [float(i == k) for i in range(d)]
        for _ in range(2):
            for other in columns:
                along = sum(a * b for a, b in zip(new, other, strict=True))
                new = [a - along * b for a, b in zip(new, other, strict=True)]
        size = sum(a * a for a in new) ** 0.5
        if size > 0.1:
            columns.append([a / size for a in new])
    return [[column[i] for column in columns] for i in range(d)]
