"""Bounds of a policy outside the basin: the gradient of V's networks over small boxes, linear in the states.

A number of a box x = c + R t, |t_k| <= 1, is middle + sum_k slopes_k t_k + E with |E| <= rest. It goes forward through
the networks and backward to dV/dx. A tanh keeps its slope at the middle; what is missing is of second order in the
width of the box, by bounds of the second derivatives. The input u of the policy solves u0 + d = grad g~(w - P d), whose
left side less its right side rises with d by at least 1: a residual bounds the error of a linear guess of d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.game.policies import SHORTEST
from solver.proof.held_loop import HeldLoop
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

ROUNDING = 1e-14  # of a sum of up to a hundred terms, as a share of the sum of sizes
STEEP = 0.77  # largest |tanh''|
NEWTON = 60  # iterations of the input at the middle of a box


@dataclass(frozen=True)
class Linear:
    """Numbers (N, k) that are linear in d symbols up to a rest."""

    middle: Array  # (N, k)
    slopes: Array  # (d, N, k)
    rest: Array  # (N, k)

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        size: Array = np.abs(self.slopes).sum(0) + self.rest
        return size

    def __getitem__(self, columns: Any) -> Linear:
        return Linear(self.middle[:, columns], self.slopes[:, :, columns], self.rest[:, columns])

    def rows(self, at: Any) -> Linear:
        """Some of the boxes."""
        return Linear(self.middle[at], self.slopes[:, at], self.rest[at])

    def __add__(self, other: Linear) -> Linear:
        middle = self.middle + other.middle
        slopes = self.slopes + other.slopes
        size = np.abs(middle) + np.abs(slopes).sum(0)
        return Linear(middle, slopes, self.rest + other.rest + ROUNDING * size)

    def __neg__(self) -> Linear:
        return Linear(-self.middle, -self.slopes, self.rest)

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def __mul__(self, other: Linear) -> Linear:
        a, b, bent = np.abs(self.middle), np.abs(other.middle), self.bend
        more = other.bend
        rest = a * other.rest + b * self.rest + bent * more + ROUNDING * (a + bent) * (b + more)
        slopes = self.middle * other.slopes + other.middle * self.slopes
        return Linear(self.middle * other.middle, slopes, rest)

    def through(self, value: Array, slope: Array, curvature: Array | float) -> Linear:
        """A function with this value and slope at the middle, and at most this second derivative in the box."""
        bent = self.bend
        rest = np.abs(slope) * self.rest + 0.5 * curvature * bent * bent
        return Linear(value, slope * self.slopes, rest + ROUNDING * (np.abs(value) + np.abs(slope) * bent))

    def plus(self, values: Array | float) -> Linear:
        return Linear(self.middle + values, self.slopes, self.rest + ROUNDING * np.abs(values))

    def times(self, factor: Array | float) -> Linear:
        rest = self.rest * np.abs(factor) + ROUNDING * np.abs(factor) * (np.abs(self.middle) + self.bend)
        return Linear(self.middle * factor, self.slopes * factor, rest)

    def to(self, weight: Array) -> Linear:
        """The numbers times a matrix (k, j)."""
        d, count, k = self.slopes.shape
        both = np.concatenate([self.middle[None], self.slopes]).reshape(-1, k) @ weight
        both = both.reshape(d + 1, count, -1)
        wide = self.rest + ROUNDING * (np.abs(self.middle) + np.abs(self.slopes).sum(0))
        return Linear(both[0], both[1:], (wide @ np.abs(weight)) * (1 + ROUNDING))

    def joined(self, other: Linear) -> Linear:
        """What holds both."""
        middle, slopes = 0.5 * (self.middle + other.middle), 0.5 * (self.slopes + other.slopes)
        apart = 0.5 * (np.abs(self.middle - other.middle) + np.abs(self.slopes - other.slopes).sum(0))
        rest = np.maximum(self.rest, other.rest) + apart
        return Linear(middle, slopes, rest + ROUNDING * (np.abs(middle) + np.abs(slopes).sum(0)))

    @property
    def ends(self) -> tuple[Array, Array]:
        bent = self.bend * (1 + ROUNDING) + ROUNDING * np.abs(self.middle)
        return self.middle - bent, self.middle + bent


def chosen(first: Array, a: Linear, b: Linear) -> Linear:
    """a where first (N,) is set, else b."""
    here = first[:, None]
    return Linear(
        np.where(here, a.middle, b.middle), np.where(here, a.slopes, b.slopes), np.where(here, a.rest, b.rest)
    )


def side_by_side(parts: list[Linear]) -> Linear:
    return Linear(
        np.concatenate([p.middle for p in parts], 1),
        np.concatenate([p.slopes for p in parts], 2),
        np.concatenate([p.rest for p in parts], 1),
    )


class Slope:
    """dV/dx of a run over boxes."""

    def __init__(self, solution: Solution) -> None:
        ensemble = solution.ensemble
        f = self.features = ensemble.features
        self.angles, self.others = f.angles.numpy(), f.others.numpy()
        self.scale, self.at_target = f.scale.double().numpy(), f.at_target.double().numpy()
        self.metric, self.bend = f.metric.double().numpy(), float(f.bend)
        first = ensemble.factors[0]
        self.rows, self.columns, self.diagonal = first.rows.numpy(), first.columns.numpy(), first.diagonal.numpy()
        self.members = [
            (
                [w.detach().double().numpy() for w in member.weights],
                [b.detach().double().numpy() for b in member.biases],
            )
            for member in ensemble.factors
        ]
        basin = ensemble.basin
        self.target, self.cost = basin.target.double().numpy(), basin.cost.double().numpy()
        self.cost = 0.5 * (self.cost + self.cost.T)
        self.level, self.continuous = float(basin.level), basin.continuous.numpy()

    def __call__(self, x: Linear) -> Linear:
        """dV/dx (N, n) over boxes of x (N, n); the form's where the box is in the basin, both where it may be."""
        e = x.plus(-self.target)
        turns = np.where(self.continuous, np.round(e.middle / (2 * np.pi)), 0.0) * (2 * np.pi)
        e = e.plus(-turns)
        P = Linear(np.broadcast_to(self.cost, (1, *self.cost.shape)), np.zeros(()), np.zeros(()))
        del P
        pe = e.to(self.cost)
        distance = (e * pe).to(np.ones((len(self.target), 1)))
        low, high = (end[:, 0] for end in distance.ends)
        level, spare = self.level, 1e-5 * self.level
        sure, never = high < level - spare, low > level + spare
        form = pe.times(-2.0)
        out = ~sure
        if not out.any():
            return form
        network = self.networks(x.rows(out))
        full = Linear(form.middle.copy(), form.slopes.copy(), form.rest.copy())
        both = chosen(never[out], network, network.joined(form.rows(out)))
        full.middle[out], full.slopes[:, out], full.rest[out] = both.middle, both.slopes, both.rest
        return full

    def networks(self, x: Linear) -> Linear:
        angle, plain = x[self.angles], x[self.others].times(self.scale)
        s, c = np.sin(angle.middle), np.cos(angle.middle)
        sine = angle.through(s, c, np.minimum(1.0, np.abs(s) + angle.bend))
        cosine = angle.through(c, -s, np.minimum(1.0, np.abs(c) + angle.bend))
        z = side_by_side([sine, cosine, plain])
        n, nz = len(self.target), len(self.at_target)
        straight = z.plus(-self.at_target).to(self.metric)
        # 1/sqrt(1 + q/c)
        q = (straight * straight).to(np.ones((nz, 1))).times(self.bend)
        base = 1.0 + q.middle
        least = np.maximum(base - q.bend, 1.0)
        shrinking = q.through(base**-0.5, -0.5 * base**-1.5, 0.75 * least**-2.5)
        wide = Linear(
            np.repeat(shrinking.middle, nz, 1), np.repeat(shrinking.slopes, nz, 2), np.repeat(shrinking.rest, nz, 1)
        )
        y = straight * wide
        factor = y[self.rows]
        total_z, total_y = None, None
        count = len(self.members)
        into = np.eye(nz)[self.columns]  # (K, nz)
        onto = np.eye(nz)[self.rows]
        for weights, biases in self.members:
            h, steep = z, []
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                a = h.to(w).plus(b)
                t = np.tanh(a.middle)
                g = 1 - t * t
                bent = a.bend
                second = np.minimum(STEEP, 2 * np.abs(t) * g + 2 * bent)
                h = a.through(t, g, second)
                third = np.minimum(2.0, np.abs(2 * g * (1 - 3 * t * t)) + 4.1 * bent)
                steep.append(a.through(g, -2 * t * g, third))
            raw = h.to(weights[-1]).plus(biases[-1])
            # softplus on the diagonal
            m = raw.middle
            sig = 1 / (1 + np.exp(-m))
            d = self.diagonal
            value = np.where(d, np.logaddexp(0, m) + DIAGONAL_FLOOR, m)
            entries = raw.through(value, np.where(d, sig, 1.0), np.where(d, 0.25, 0.0))
            slope = raw.through(np.where(d, sig, 1.0), np.where(d, sig * (1 - sig), 0.0), np.where(d, 0.0963, 0.0))
            v = (entries * factor).to(into)
            outer = v[self.columns]  # dV/d(entries factor) without -2/E
            direct = (outer * entries).to(onto)
            adjoint = outer * factor * slope
            for w, at in zip(reversed(weights[1:]), reversed(steep), strict=True):
                adjoint = adjoint.to(w.T) * at
            dz = adjoint.to(weights[0].T)
            total_z = dz if total_z is None else total_z + dz
            total_y = direct if total_y is None else total_y + direct
        assert total_z is not None and total_y is not None
        # through the error: dz += ((dy - (dy.y) bend y) * shrinking) W^T
        along = (total_y * y).to(np.full((nz, nz), self.bend))
        dz = total_z + ((total_y - along * y) * wide).to(self.metric.T)
        dz = dz.times(-2.0 / count)
        k = len(self.angles)
        turned = dz[slice(0, k)] * cosine - dz[slice(k, 2 * k)] * sine
        rest = dz[slice(2 * k, nz)].times(self.scale)
        order = np.argsort(np.concatenate([self.angles, self.others]))
        return side_by_side([turned, rest])[order]


def B3(B: Linear) -> Linear:
    """With one more symbol."""
    return Linear(B.middle, np.concatenate([B.slopes, np.zeros_like(B.slopes[:1])]), B.rest)


class HeldPolicy:
    """The input (N, 1) of the policy over boxes, for robots of one input."""

    def __init__(self, solution: Solution, loop: HeldLoop) -> None:
        self.loop, self.slope = loop, Slope(solution)
        self.limit, self.trim = float(loop.limit[0]), float(loop.trim[0])

    def control(self, x: Linear) -> Linear:
        """B (N, n) over boxes."""
        loop = self.loop
        b = loop.bent
        middle = x.middle[:, b] - loop.target[b]
        values, widths = loop._box(middle, x.bend[:, b], loop.nominal, 0.0)
        n = len(loop.target)
        from solver.proof.held_loop import _evaluated

        m, s, r = _evaluated(loop._kernels[0], values, widths)
        m, s, r = m[:, n * n :], s[:, n * n :, : len(b)], r[:, n * n :]
        slopes = np.einsum("nkb,dnb->dnk", s, x.slopes[:, :, b])
        loose = np.einsum("nkb,nb->nk", np.abs(s), x.rest[:, b])
        return Linear(m, slopes, r + loose)

    def conjugate(self, w: Linear) -> tuple[Linear, Linear]:
        """grad g~ and its slope, over boxes of w (N, 1)."""
        from solver.proof.held_loop import _evaluated

        m, s, r = _evaluated(self.loop._kernels[2], w.middle, w.bend)
        found = []
        for k in range(2):
            slope = s[:, k]
            found.append(Linear(m[:, k : k + 1], slope * w.slopes, r[:, k : k + 1] + np.abs(slope) * w.rest))
        return found[0], found[1]

    def __call__(self, x: Linear) -> Linear:
        B = self.control(x)
        ones = np.ones((B.middle.shape[1], 1))
        w = (B * self.slope(x)).to(ones)
        closed, _ = self.conjugate(w)
        hold = self.loop.hold
        if not hold:
            return self._clipped(closed)
        closed = closed.plus(-self.trim)
        low, high = (end[:, 0] for end in closed.ends)
        result = None
        for sign, may in ((1.0, high >= 0), (-1.0, low <= 0)):
            if not may.any():
                continue
            part = self._one_side(x.rows(may), B.rows(may), w.rows(may), closed.rows(may), sign)
            if result is None:
                n, d = len(low), x.slopes.shape[0]
                result = Linear(np.zeros((n, 1)), np.zeros((d, n, 1)), np.zeros((n, 1)))
                known = np.zeros(n, bool)
            old = result.rows(may)
            new = chosen(known[may], old.joined(part), part)
            result.middle[may], result.slopes[:, may], result.rest[may] = new.middle, new.slopes, new.rest
            known |= may
        assert result is not None
        return self._clipped(result.plus(self.trim))

    def _clipped(self, u: Linear) -> Linear:
        low, high = u.ends
        a, b = self.loop.middle - self.loop.limit, self.loop.middle + self.loop.limit
        inside = np.maximum(low, a), np.minimum(high, b)
        half = 0.5 * (inside[1] - inside[0])
        flat = half < u.rest
        middle = np.where(flat, 0.5 * (inside[0] + inside[1]), u.middle)
        return Linear(middle, np.where(flat, 0.0, u.slopes), np.where(flat, half * (1 + 1e-12) + 1e-15, u.rest))

    def _one_side(self, x: Linear, B: Linear, w: Linear, closed: Linear, sign: float) -> Linear:
        """d (N, 1) where the closed form has the sign; any box of its states may have another one."""
        shortest, hold = SHORTEST * self.limit, self.loop.hold
        low, high = closed.ends
        size_low = np.clip(sign * np.where(sign > 0, low, high), shortest, None)
        size_high = np.clip(sign * np.where(sign > 0, high, low), shortest, None)
        steady = closed.times(sign)
        flat = Linear(0.5 * (size_low + size_high), 0 * closed.slopes, 0.5 * (size_high - size_low) * (1 + 1e-12))
        longer = (np.minimum(sign * low, sign * high) > shortest)[:, 0]
        size = chosen(longer, steady, flat)
        n = B.middle.shape[1]
        step = Linear(np.repeat(size.middle, n, 1), np.repeat(size.slopes, n, 2), np.repeat(size.rest, n, 1))
        moved = x + (B * step).times(sign * hold)
        more = moved.rest.max(1, keepdims=True)
        of_step = np.divide(moved.rest, more, out=np.zeros_like(moved.rest), where=more > 0)
        own = np.concatenate([moved.slopes, (of_step * more)[None]])
        found = (B3(B) * self.slope(Linear(moved.middle, own, np.zeros_like(moved.rest)))).to(np.ones((n, 1)))
        w_moved = Linear(found.middle, found.slopes[:-1], found.rest + np.abs(found.slopes[-1]))
        drop = (w - w_moved).times(sign)  # P |step|
        low, high = drop.ends
        # max(drop, 0)
        positive, negative = low >= 0, high <= 0
        middle = np.where(positive, drop.middle, np.where(negative, 0.0, 0.5 * drop.middle + 0.25 * np.maximum(high, -low)))
        share = np.where(positive, 1.0, np.where(negative, 0.0, 0.5))
        extra = np.where(positive | negative, 0.0, 0.25 * np.maximum(high, -low))
        drop = Linear(middle, share * drop.slopes, share * drop.rest + extra * (1 + 1e-12) + 1e-300)
        # d = grad g~(w - drop d sign/size)
        at = size.middle
        d = self._solved(w.middle, drop.middle / at)
        P = drop.middle / at
        arg = Linear(w.middle - P * d, np.zeros((0, len(d), 1)), np.zeros_like(d))
        _, S = self.conjugate(arg)
        S = S.middle
        P_slopes = drop.slopes / at - P / at * size.slopes
        slopes = S / (1 + S * P) * (w.slopes - d * P_slopes)
        guess = Linear(d, slopes, np.zeros_like(d))
        # share of the step: guess / size, in [0, 1] for the true d
        inverse = size.through(1 / at, -1 / at**2, 2 / np.maximum(at - size.bend, 0.5 * shortest) ** 3)
        bound = np.full_like(d, np.inf)
        P_of = drop * inverse
        P_low, P_high = P_of.ends
        P_low = np.maximum(P_low, 0.0)
        for turn in range(2):
            argument = w - P_of * guess
            value, _ = self.conjugate(argument)
            residual = guess - value.plus(-self.trim)
            missed = np.abs(residual.middle) + residual.bend
            if turn == 0:
                bound = missed
                continue
            bound = np.minimum(bound, missed)
        # slope of the left side between the guess and the truth
        wide = Linear(guess.middle, guess.slopes, bound)
        argument = w - P_of * wide
        _, steep = self.conjugate(argument)
        s_low = np.maximum(steep.ends[0], 0.0)
        bound = bound / (1 + s_low * P_low) * (1 + 1e-12) + 1e-15
        return Linear(d, slopes, bound)

    def _solved(self, w: Array, P: Array) -> Array:
        low = np.full_like(w, float(self.loop.middle[0] - self.limit - self.trim))
        high = np.full_like(w, float(self.loop.middle[0] + self.limit - self.trim))
        none = np.zeros((0, len(w), 1))
        for _ in range(45):
            d = 0.5 * (low + high)
            G, _ = self.conjugate(Linear(w - P * d, none, np.zeros_like(w)))
            above = d > G.middle - self.trim
            low, high = np.where(above, low, d), np.where(above, d, high)
        return 0.5 * (low + high)
