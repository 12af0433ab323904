"""The sampled closed loop everywhere, over many sets of states at once, for the independent check of boxes.

The input u = u0 + d with d + u0 = grad g~(w - P d) is bounded by a guess and its residual, as the left side less the
right side rises with d by at least 1, and by the mean value theorem. A period of motion is a power series in time at
the middle of a set, with the slopes of the flow. Tiles of the domain bound its remainders, in time over an enclosure of
the motion, and of second order in the states, the input and the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof import Equations, sha256
from solver.proof.balls import ROUNDING, Array, Balls, Mask, stacked
from solver.proof.jets import Jet, Powers, Sloped, Tiles, combined, hull, sloped
from solver.proof.networks import Networks

SHORTEST = 0.02  # of the input limit: the shortest step at which the policy looks up V
ORDER = 5  # of Taylor's formula in time
INFLATIONS = 6  # of the enclosure of the motion
GUESSES = 10  # of an input
BEYOND = 1e-9  # of a range, by which numbers in it may lie outside by rounding
TILES = 16  # parts of the domain, a state
PIECES = 3  # of each parameter of a slice
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
        n, (self.lower, self.upper, self.around) = len(self.target), domain_of(self.target, self.bound)
        self.networks = stored_networks(checkpoint, proof["checkpoint"], tuple(self.target), tuple(self.bound))
        self.robots = [
            (value * middle, half * (1 + BEYOND) * abs(value))
            for value, (middle, half) in zip(self.nominal, robots, strict=True)
        ]
        ticks = (2 * np.arange(PIECES) + 1) / PIECES - 1
        sides = [[(a + b * t, b / PIECES * (1 + BEYOND)) for t in (ticks if b else [0.0])] for a, b in self.robots]
        self.pieces = list(product(*sides))
        widest = np.sqrt(self.level * np.diag(np.linalg.inv(self.P)))
        self.turned = 0.4 * (
            np.pi - float(np.max(widest[self.around], initial=0.0))
        )  # a wider set of angles might lie on both sides of the basin
        self.straight, self.curved = (Powers.up_to(n + 1 + len(self.robots), order) for order in (1, 2))
        numbers = n * (len(self.straight.exponents) + len(self.curved.exponents) + 1)
        self.tiles = Tiles(self._remainders, numbers, self.lower, self.upper, self.around, TILES)
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
        loose = ~(found.rest <= box.radius) | (np.abs(found.middle - self.middle) > self.limit)
        return Sloped(
            np.where(loose, box.middle, found.middle),
            np.where(loose, 0.0, found.slopes),
            np.where(loose, box.radius, found.rest * (1 + ROUNDING) + ROUNDING * self.limit),
        )

    def _solved(self, w: Array, P: Array) -> Balls:
        """d with d + u0 = grad g~(w - P d), for exact w and P >= 0."""
        low, high = (self.middle + side * self.limit - self.trim + np.zeros_like(w) for side in (-1, 1))
        d = 0.5 * (low + high)
        for _ in range(GUESSES):
            found = self._conjugate(Balls.of(w - P * d), self.first).middle
            rest = d + self.trim - found[0]
            low, high = np.where(rest < 0, d, low), np.where(rest > 0, d, high)
            d = d - rest / (1 + P * found[1])
            d = np.where((d >= low) & (d <= high), d, 0.5 * (low + high))
        argument = Balls.of(w) - Balls.of(P) * d
        rest = Balls.of(d) + self.trim - self._conjugate(argument, self.value_only)[0]
        return Balls(d, rest.size)

    # -- the motion --------------------------------------------------------------------------------------------------

    def after(self, x: list[Sloped]) -> tuple[list[Sloped], Mask]:
        """The sets after a period, and whether (N,) the motion stays within the limits."""
        u, bounds, inside = self.inputs(x), np.split(self.tiles(x).T, len(x)), np.ones(len(x[0].middle), bool)
        cases = [self._ends([*x, u, *(self._alike(u, *entry) for entry in theta)], bounds) for theta in self.pieces]
        ends = [hull([(inside, end) for end in same]) for same in zip(*cases, strict=True)]
        for i in np.flatnonzero(~self.around):  # it is no farther from a chord of the motion than the last bound
            e = np.maximum(*((number.range - float(self.target[i])).size for number in (x[i], ends[i])))
            inside &= e + bounds[i][-1] <= self.bound[i]
        return ends, inside & np.isfinite([end.rest for end in ends]).all(0)

    def _alike(self, like: Sloped, value: float, half: float) -> Sloped:
        """A number of the same range in all sets."""
        return Sloped(0 * like.middle + value, 0 * like.slopes, 0 * like.rest + half)

    def _ends(self, numbers: list[Sloped], bounds: list[Array]) -> list[Sloped]:
        """States after a period of states, the input and parameters."""
        n, wide, bend = len(bounds), len(self.straight.exponents), [number.bend for number in numbers]
        start = [Jet.start(self.straight, Balls.of(number.middle), i) for i, number in enumerate(numbers)]
        pairs = [[i for i, k in enumerate(e) for _ in range(k)] for e in self.curved.exponents[wide:]]
        ends = []
        for series, bound in zip(self._series(start[:n], start[n:], ORDER - 1), bounds, strict=True):
            high, low, second = np.split(bound[:-1], [wide, 2 * wide])
            terms = self._ended(series) + Balls.between(-low, high)
            bent = sum(size * bend[j] * bend[k] for size, (j, k) in zip(second, pairs, strict=True))
            value = Balls(terms.middle[0], terms.radius[0] + bent * (1 + ROUNDING))
            ends.append(sloped(value, [(terms[1 + j], number) for j, number in enumerate(numbers)]))
        return ends

    def _rates(self, x: list[Jet], fixed: list[Jet]) -> list[Jet]:
        powers, shape = x[0].powers, x[0].value.middle
        known = {"x": x, "theta": fixed[1:]}
        a, B = self.equations("affine_dynamics", known, lambda v: Jet.start(powers, Balls.of(np.full_like(shape, v))))
        return [a[i] + B[i] * fixed[0] for i in range(len(x))]

    def _remainders(self, x: list[Balls]) -> Array:
        """Bounds (N, k) over sets of states, any inputs and the robots of the slice, for each state after a period.

        The last terms in time of its value and slopes, their least values with the other sign, its terms of second
        order, and how far the motion is from its chord.
        """
        n, T, wide, some = len(x), self.step, len(self.straight.exponents), np.ones_like(x[0].middle)
        u = [(self.middle, self.limit * (1 + BEYOND))]
        values = [*x, *(Balls(middle * some, half * some) for middle, half in [*u, *self.robots])]
        start = [Jet.start(self.curved, value, i) for i, value in enumerate(values)]
        first, fixed = start[:n], start[n:]
        during, known = self._during(first, fixed)
        flow, over, found = self._series(first, fixed, ORDER - 1), self._series(during, fixed, ORDER), []
        for a, b in zip(flow, over, strict=True):
            last = b[ORDER] * T**ORDER
            second, chord = (self._ended(a) + last)[wide:].size, b[2][:1].size * (T**2 / 4)
            found += [last[:wide].high, -last[:wide].low, second, chord]
        return np.where(known, np.concatenate(found), np.inf).T

    def _during(self, x: list[Jet], fixed: list[Jet]) -> tuple[list[Jet], Mask]:
        """An enclosure of the motion in a period, and whether (N,) it is one."""
        during, known, whole = (
            x,
            np.zeros(len(x[0].value.middle), bool),
            Balls.between(np.zeros(()), np.array(self.step)),
        )
        for k in range(INFLATIONS):
            rates = self._rates(during, fixed)
            moved = [
                (first + Jet(first.powers, rate.terms * whole)).terms for first, rate in zip(x, rates, strict=True)
            ]
            kept = [
                (m.low >= d.terms.low).all(0) & (m.high <= d.terms.high).all(0)
                for m, d in zip(moved, during, strict=True)
            ]
            known = np.all(kept, 0) & (k > 0)
            if known.all() or k == INFLATIONS - 1:
                break
            wider = [Balls(m.middle, m.radius * 1.05 + 1e-9 * (1 + m.size)) for m in moved]
            ways = [
                Balls(np.where(known, d.terms.middle, w.middle), np.where(known, d.terms.radius, w.radius))
                for d, w in zip(during, wider, strict=True)
            ]
            during = [Jet(first.powers, way) for first, way in zip(x, ways, strict=True)]
        return during, known

    def _series(self, x: list[Jet], fixed: list[Jet], order: int) -> list[list[Balls]]:
        """Power series in time of the motion from x: coefficients (k, N) of each power."""
        flow, width = x[0].powers.in_time(order), len(x[0].powers.exponents)

        def lifted(jet: Jet) -> Jet:
            zero = np.zeros((order * width, *jet.value.middle.shape))
            return Jet(flow, Balls(*(np.concatenate([p, zero]) for p in (jet.terms.middle, jet.terms.radius))))

        found, still = [lifted(jet) for jet in x], [lifted(jet) for jet in fixed]
        for k in range(order):
            rates = self._rates(found, still)
            for jet, rate in zip(found, rates, strict=True):
                now = rate.terms[k * width : (k + 1) * width] * (1 / (k + 1))
                jet.terms.middle[(k + 1) * width : (k + 2) * width] = now.middle
                jet.terms.radius[(k + 1) * width : (k + 2) * width] = now.radius
        return [[jet.terms[k * width : (k + 1) * width] for k in range(order + 1)] for jet in found]

    def _ended(self, series: list[Balls]) -> Balls:
        """A power series at the end of a period."""
        total = series[0]
        for k, terms in enumerate(series[1:], 1):
            total = total + terms * self.step**k
        return total


def domain_of(target: Array, bound: Array) -> tuple[Array, Array, Mask]:
    """Ends (n,) of all angles and the states within the limits, and which are angles."""
    around = np.abs(bound - np.pi) < 1e-12
    return np.where(around, -np.pi, target - bound), np.where(around, np.pi, target + bound), around


@lru_cache(1)
def stored_networks(checkpoint: Path, digest: str, target: tuple[float, ...], bound: tuple[float, ...]) -> Networks:
    """Networks of a checkpoint by its hash, which all slices of a process share with their tiles."""
    if sha256(checkpoint) != digest:
        raise SolverError(f"{checkpoint} has changed while it was checked; repeat this command")
    return Networks(checkpoint, np.array(target), *domain_of(np.array(target), np.array(bound)))


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
