"""The sampled closed loop everywhere, over many sets of states at once, for the independent check of boxes.

The input u = u0 + d with d + u0 = grad g~(w - P d) is bounded by bisection, as the left side less the right side rises
with d, and by the mean value theorem. A period of motion is a power series in time with the slopes of the flow, and
with a remainder over an enclosure of the motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof import Equations
from solver.proof.balls import ROUNDING, Array, Balls, Mask, stacked
from solver.proof.jets import Jet, Powers, Sloped, combined, hull, sloped
from solver.proof.networks import Networks

SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
ORDER = 3  # of Taylor's formula in time
INFLATIONS = 6  # of the enclosure of the motion
BISECTIONS = 50
PIECES = 4  # of each parameter of a slice
TURN = Balls(np.array(2 * np.pi), np.array(1e-15))


class SampledLoop:
    """One control period of the policy everywhere, for the robots of a slice (`solver.proof`)."""

    def __init__(
        self, proof: dict[str, Any], equations: Equations, checkpoint: Path, robots: Sequence[tuple[float, float]]
    ) -> None:
        self.equations, self.step, self.hold = equations, float(proof["period"]), float(proof["hold"])
        self.target, self.bound, self.nominal = (np.array(proof[k]) for k in ("target", "bound", "parameters"))
        self.P, self.level = np.array(proof["cost"]), float(proof["level"])
        if len(proof["trim"]) != 1 or not self.hold or not self.level:
            raise SolverError("the check of boxes knows robots of one input that is held, with a basin")
        self.trim, self.middle, self.limit, self.error = (
            float(proof[k][0]) for k in ("trim", "middle", "limit", "input_error")
        )
        self.networks, n, p = Networks(checkpoint, self.target), len(self.target), len(self.nominal)
        ticks, sides = (2 * np.arange(PIECES) + 1) / PIECES - 1, []
        for value, (middle, half) in zip(self.nominal, robots, strict=True):
            width = half / PIECES * (1 + 1e-9) * abs(value)
            sides.append([(value * (middle + half * t), width) for t in (ticks if half else np.zeros(1))])
        self.pieces = list(product(*sides))
        self.around = np.abs(self.bound - np.pi) < 1e-12
        widest = np.sqrt(self.level * np.diag(np.linalg.inv(self.P)))
        self.turned = 0.4 * (
            np.pi - float(np.max(widest[self.around], initial=0.0))
        )  # a wider set of angles might lie on both sides of the basin
        self.plain, self.flow = Powers.in_time(n + 1 + p, 0), Powers.in_time(n + 1 + p, ORDER)
        self.value_only, self.first = Powers.up_to(1, 0), Powers.up_to(1, 1)
        self.of_state = Powers.up_to(n, 1)

    # -- the policy --------------------------------------------------------------------------------------------------

    def inputs(self, x: list[Sloped]) -> Sloped:
        """The input over N sets of states."""
        B, cases, count = self._control(x), [], len(x[0].middle)
        for mask, slope in self._slopes(x):
            rows = np.flatnonzero(mask)
            w = self._along(B, slope, rows)
            steep = self._conjugate(w.range, self.first)[1]
            closed = sloped(self._conjugate(Balls.of(w.middle), self.value_only)[0] - self.trim, [(steep, w)])
            for sign in (1.0, -1.0):
                at = np.flatnonzero(~(sign * closed.middle + closed.bend < 0))
                some = rows[at]
                size, b = self._length(closed.rows(at), sign), [number.rows(some) for number in B]
                ways = [(x_i.rows(some), b_i * size) for x_i, b_i in zip(x, b, strict=True)]
                moved = [combined([(1.0, x_i), (sign * self.hold, way)]) for x_i, way in ways]
                for looks, beyond in self._slopes(moved) if len(at) else ():
                    here = np.flatnonzero(looks)
                    there = self._along(b, beyond, here)
                    u = self._answer(w.rows(at[here]), there, size.rows(here), sign)
                    cases.append(_spread(u, some[here], count))
        return hull(cases)

    def _along(self, B: list[Sloped], slope: list[Sloped], rows: NDArray[np.int64]) -> Sloped:
        """w = B' dV/dx of some of the sets."""
        return combined([(1.0, b.rows(rows) * s.rows(rows)) for b, s in zip(B, slope, strict=True)])

    def _control(self, x: list[Sloped]) -> list[Sloped]:
        """B (n,) at the nominal parameters."""
        at, over = (self._nominal(values) for values in ([Balls.of(s.middle) for s in x], [s.range for s in x]))
        return [
            sloped(middle.value, [(wide.terms[1 + j], number) for j, number in enumerate(x)])
            for middle, wide in zip(at, over, strict=True)
        ]

    def _nominal(self, x: list[Balls]) -> list[Jet]:
        powers, shape = self.of_state, x[0].middle
        known = {
            "x": [Jet.start(powers, value, i) for i, value in enumerate(x)],
            "theta": [Jet.start(powers, Balls.of(np.full_like(shape, value))) for value in self.nominal],
        }
        found: list[Jet] = self.equations(
            "affine_dynamics", known, lambda v: Jet.start(powers, Balls.of(np.full_like(shape, v)))
        )[1]
        return found

    def _slopes(self, x: list[Sloped]) -> list[tuple[Mask, list[Sloped]]]:
        """dV/dx of the form and of the networks, each with the sets (N,) in which it may be V."""
        e, narrow, q = [], np.ones(len(x[0].middle), bool), Balls.of(np.zeros_like(x[0].middle))
        for i, number in enumerate(x):
            turns = np.round((number.middle - self.target[i]) / (2 * np.pi)) * self.around[i]
            e.append(combined([(1.0, number)], Balls.of(turns) * TURN - float(self.target[i])))
            narrow &= ~self.around[i] | (number.bend < self.turned)
        pe = [combined([(float(entry), number) for entry, number in zip(row, e, strict=True)]) for row in self.P]
        for number, slope in zip(e, pe, strict=True):
            q = q + (number * slope).range
        spare = 1e-5 * self.level
        form, net = ~(q.low > self.level + spare) | ~narrow, ~(q.high < self.level - spare) | ~narrow
        near = [combined([(-2.0, s)]) for s in pe]
        near = [Sloped(s.middle, s.slopes, np.where(narrow, s.rest, np.inf)) for s in near]
        rows = np.flatnonzero(net)
        few = self.networks.slopes([number.rows(rows) for number in x])
        return [(form, near), (net, [_spread(s, rows, len(net))[1] for s in few])]

    def _conjugate(self, w: Balls, powers: Powers) -> Balls:
        """grad g~ and its slope at w, as far as the powers go."""
        row = [Jet.start(powers, w, 0)]
        ((u,),) = self.equations(
            "optimal_input", {"w": row}, lambda v: Jet.start(powers, Balls.of(np.full_like(w.middle, v)))
        )
        if len(powers.exponents) == 1:
            return Balls(u.terms.middle, u.terms.radius)
        steep = Balls.between(np.maximum(u.terms[1].low, 0.0), np.maximum(u.terms[1].high, 0.0))
        return stacked([u.value, steep])

    def _length(self, closed: Sloped, sign: float) -> Sloped:
        """Length of the step: |closed|, but at least a share of the limit."""
        least, along = SHORTEST * self.limit, combined([(sign, closed)])
        return sloped(Balls.of(np.maximum(along.middle, least)), [(_share(along.range, least), along)])

    def _answer(self, w: Sloped, there: Sloped, size: Sloped, sign: float) -> Sloped:
        """u where the closed form has the sign, from w at the state and at the end of a step."""
        drop = combined([(sign, w), (-sign, there)])
        tilt = size.range.within(0.99 * SHORTEST * self.limit, np.inf).inverse()
        P = sloped(Balls.of(drop.middle) / Balls.of(size.middle), [(tilt, drop), (-(drop.range * tilt * tilt), size)])
        P = sloped(Balls.of(np.maximum(P.middle, 0.0)), [(_share(P.range, 0.0), P)])
        ends = np.maximum(P.range.low, 0.0), np.maximum(P.range.high, 0.0)
        corners = [(side, p) for side in (w.range.low, w.range.high) for p in ends]
        sides, steeps = (np.stack(part) for part in zip(*corners, (w.middle, P.middle), strict=True))
        solved = self._solved(sides, steeps)
        edges, arguments = solved[:4], (Balls.of(sides) - solved * steeps)[:4]
        d = Balls.between(edges.low.min(0), edges.high.max(0))
        argument = Balls.between(arguments.low.min(0), arguments.high.max(0))
        S = self._conjugate(argument, self.first)[1]
        least = Balls.of(np.maximum(S.low, 0.0))
        least, most = least / (least * ends[1] + 1.0), Balls.of(S.high) / (Balls.of(S.high) * ends[0] + 1.0)
        turn = Balls.between(np.maximum(least.low, 0.0), most.high)
        found = sloped(solved[4], [(turn, w), (-(turn * d), P)])
        found = Sloped(found.middle + self.trim, found.slopes, found.rest + self.error)
        u = d + self.trim
        lower, upper = u.low - self.error, u.high + self.error
        lower, upper = (np.clip(end, self.middle - self.limit, self.middle + self.limit) for end in (lower, upper))
        box = Balls.between(lower, upper)
        loose = ~(found.bend <= box.radius)
        return Sloped(
            np.where(loose, box.middle, found.middle),
            np.where(loose, 0.0, found.slopes),
            np.where(loose, box.radius, found.rest * (1 + ROUNDING) + ROUNDING * self.limit),
        )

    def _solved(self, w: Array, P: Array) -> Balls:
        """d with d + u0 = grad g~(w - P d), for exact w and P >= 0."""
        side = np.array([1.0, -1.0]).reshape(2, *(1,) * w.ndim)  # from which d is bounded
        both, steep = Balls.of(np.stack([w, w])), Balls.of(np.stack([P, P]))
        sure, other = (
            self.middle - sign * side * self.limit - self.trim + np.zeros((2, *w.shape)) for sign in (1.0, -1.0)
        )
        for _ in range(BISECTIONS):
            d = 0.5 * (sure + other)
            rest = Balls.of(d) + self.trim - self._conjugate(both - steep * d, self.value_only)[0]
            good = np.where(side > 0, rest.high <= 0, rest.low >= 0)
            sure, other = np.where(good, d, sure), np.where(good, other, d)
        return Balls.between(*sure)

    # -- the motion --------------------------------------------------------------------------------------------------

    def after(self, x: list[Sloped]) -> tuple[list[Sloped], Mask]:
        """The sets after a period, and whether (N,) the motion stays within the limits."""
        u, inside, cases = self.inputs(x), np.ones(len(x[0].middle), bool), []
        for theta in self.pieces:
            numbers = [*x, u, *(Sloped(x[0].rest * 0 + v, u.slopes * 0, x[0].rest * 0 + s) for v, s in theta)]
            centre, _ = self._moved([Balls.of(number.middle) for number in numbers])
            over, within = self._moved([number.range for number in numbers])
            pairs = zip(centre, over, strict=True)
            cases.append(
                [sloped(c.value, [(o.terms[1 + j], number) for j, number in enumerate(numbers)]) for c, o in pairs]
            )
            inside &= within
        ends = [hull([(inside, end) for end in same]) for same in zip(*cases, strict=True)]
        return ends, inside & np.isfinite([end.rest for end in ends]).all(0)

    def _rates(self, x: list[Jet], fixed: list[Jet]) -> list[Jet]:
        powers, shape = x[0].powers, x[0].value.middle
        known = {"x": x, "theta": fixed[1:]}
        a, B = self.equations("affine_dynamics", known, lambda v: Jet.start(powers, Balls.of(np.full_like(shape, v))))
        return [a[i] + B[i] * fixed[0] for i in range(len(x))]

    def _moved(self, values: list[Balls]) -> tuple[list[Jet], Mask]:
        """States after a period with their slopes by all numbers, and whether (N,) they stay within the limits."""
        n, T = len(self.target), self.step
        start = [Jet.start(self.plain, value, i) for i, value in enumerate(values)]
        x, fixed = start[:n], start[n:]
        during, inside = x, np.zeros(len(values[0].middle), bool)
        for k in range(INFLATIONS):
            moved = [
                first + Jet(self.plain, rate.terms * Balls(np.array(T / 2), np.array(T / 2)))
                for first, rate in zip(x, self._rates(during, fixed), strict=True)
            ]
            kept = [
                (m.terms.low >= d.terms.low).all(0) & (m.terms.high <= d.terms.high).all(0)
                for m, d in zip(moved, during, strict=True)
            ]
            inside = np.all(kept, 0) & (k > 0)
            if inside.all() or k == INFLATIONS - 1:
                break
            wider = [Balls(m.terms.middle, m.terms.radius * 1.05 + 1e-9 * (1 + m.terms.size)) for m in moved]
            during = [
                Jet(
                    self.plain,
                    Balls(np.where(inside, d.terms.middle, w.middle), np.where(inside, d.terms.radius, w.radius)),
                )
                for d, w in zip(during, wider, strict=True)
            ]
        for i in np.flatnonzero(~self.around):
            e = during[i].value - float(self.target[i])
            inside &= e.size <= self.bound[i]
        first, over = self._series(x, fixed, ORDER - 1), self._series(during, fixed, ORDER)
        width = len(self.plain.exponents)
        ends = []
        for a, b in zip(first, over, strict=True):
            total = b.terms[ORDER * width : (ORDER + 1) * width] * T**ORDER
            for k in range(ORDER):
                total = total + a.terms[k * width : (k + 1) * width] * T**k
            ends.append(Jet(self.plain, total))
        return ends, inside

    def _series(self, x: list[Jet], fixed: list[Jet], order: int) -> list[Jet]:
        """Power series in time of the motion from x."""
        width = len(self.plain.exponents)

        def lifted(jet: Jet) -> Jet:
            zero = np.zeros((ORDER * width, *jet.value.middle.shape))
            return Jet(
                self.flow, Balls(*(np.concatenate([part, zero]) for part in (jet.terms.middle, jet.terms.radius)))
            )

        found, still = [lifted(jet) for jet in x], [lifted(jet) for jet in fixed]
        for k in range(order):
            rates = self._rates(found, still)
            for jet, rate in zip(found, rates, strict=True):
                now = rate.terms[k * width : (k + 1) * width] * (1 / (k + 1))
                jet.terms.middle[(k + 1) * width : (k + 2) * width] = now.middle
                jet.terms.radius[(k + 1) * width : (k + 2) * width] = now.radius
        return found


def _share(number: Balls, least: float) -> Balls:
    """Slope of the larger of a number and `least`."""
    low, high = np.where(number.low > least, 1.0, 0.0), np.where(number.high < least, 0.0, 1.0)
    return Balls.between(low, high)


def _spread(number: Sloped, rows: NDArray[np.int64], count: int) -> tuple[Mask, Sloped]:
    """The numbers of some of `count` sets, and which they are."""
    mask, middle, rest = np.zeros(count, bool), np.zeros(count), np.full(count, np.inf)
    slopes = np.zeros((len(number.slopes), count))
    mask[rows], middle[rows], rest[rows], slopes[:, rows] = True, number.middle, number.rest, number.slopes
    return mask, Sloped(middle, slopes, rest)
