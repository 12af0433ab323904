"""Bounds of the policy outside the basin: numbers of a box that are linear in its symbols, up to a rest.

A number of a box x = c + R t, |t_k| <= 1, is middle + sum_k slopes_k t_k + E with |E| <= rest. It goes forward through
V's networks and backward to dV/dx, where terms of second order are kept too, so that the rest is of third order in the
width of the box. The input of the policy is u = u0 + d with u0 + d = grad g~(w - P d). The left side less the right
side rises with d by at least 1: a residual bounds the error of a linear guess of d.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.game.policies import SHORTEST
from solver.proof.affine import rounding, upward
from solver.proof.held_loop import HeldLoop, evaluated
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

Mask = NDArray[np.bool_]

LIBRARY = 40  # rounded operations that stand for one function of a library and those before it
TERMS = 64  # rounded operations on sizes that give one rest, at most
BISECTIONS = 45  # of the input at the middle of a box


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", upward(self.rest, TERMS))

    def __getitem__(self, columns: Any) -> Linear:
        return Linear(self.middle[:, columns], self.slopes[:, :, columns], self.rest[:, columns])

    def rows(self, at: Any) -> Linear:
        """Some of the boxes."""
        return Linear(self.middle[at], self.slopes[:, at], self.rest[at])

    def __add__(self, other: Linear) -> Linear:
        middle = self.middle + other.middle
        slopes = self.slopes + other.slopes
        size = np.abs(middle) + np.abs(slopes).sum(0)
        return Linear(middle, slopes, self.rest + other.rest + rounding(size, len(slopes) + 4))

    def __neg__(self) -> Linear:
        return Linear(-self.middle, -self.slopes, self.rest)

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def __mul__(self, other: Linear) -> Linear:
        a, b, bent = np.abs(self.middle), np.abs(other.middle), self.bend
        more = other.bend
        rest = a * other.rest + b * self.rest + bent * more + rounding((a + bent) * (b + more))
        slopes = self.middle * other.slopes + other.middle * self.slopes
        return Linear(self.middle * other.middle, slopes, rest)

    def through(self, value: Array, slope: Array, curvature: Array | float) -> Linear:
        """A function with this value and slope at the middle, and at most this second derivative in the box."""
        bent = self.bend
        rest = np.abs(slope) * self.rest + 0.5 * curvature * bent * bent
        return Linear(value, slope * self.slopes, rest + rounding(np.abs(value) + np.abs(slope) * bent, LIBRARY))

    def plus(self, values: Array | float) -> Linear:
        middle = self.middle + values
        return Linear(middle, self.slopes, self.rest + rounding(np.abs(middle)))

    def times(self, factor: Array | float) -> Linear:
        rest = np.abs(factor) * self.rest + rounding(np.abs(factor) * (np.abs(self.middle) + self.bend))
        return Linear(self.middle * factor, self.slopes * factor, rest)

    def to(self, weight: Array) -> Linear:
        """The numbers times a matrix (k, j)."""
        d, count, k = self.slopes.shape
        both = np.concatenate([self.middle[None], self.slopes]).reshape(-1, k) @ weight
        both = both.reshape(d + 1, count, -1)
        wide = self.rest + rounding(np.abs(self.middle) + np.abs(self.slopes).sum(0), d + k)
        return Linear(both[0], both[1:], upward(wide @ np.abs(weight), k))

    def joined(self, other: Linear) -> Linear:
        """What holds both."""
        middle, slopes = 0.5 * (self.middle + other.middle), 0.5 * (self.slopes + other.slopes)
        apart = 0.5 * (np.abs(self.middle - other.middle) + np.abs(self.slopes - other.slopes).sum(0))
        rest = np.maximum(self.rest, other.rest) + apart
        return Linear(middle, slopes, rest + rounding(apart + np.abs(middle) + np.abs(slopes).sum(0), len(slopes) + 4))

    @property
    def ends(self) -> tuple[Array, Array]:
        bent = upward(self.bend, len(self.slopes) + 4)
        bent = upward(bent + rounding(np.abs(self.middle) + bent))
        return self.middle - bent, self.middle + bent


def chosen(first: Mask, a: Linear, b: Linear) -> Linear:
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


@dataclass(frozen=True)
class Quadratic:
    """Numbers (N, k) of second order in d symbols: squares (p, N, k) of the p = d (d + 1)/2 pairs, up to a rest."""

    middle: Array  # (N, k)
    slopes: Array  # (d, N, k)
    squares: Array  # (p, N, k), of t_j t_k in the order of `combinations_with_replacement`
    rest: Array  # (N, k)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", upward(self.rest, TERMS))

    @classmethod
    def of(cls, x: Linear) -> Quadratic:
        """The same numbers."""
        d = len(x.slopes)
        return cls(x.middle, x.slopes, np.zeros((d * (d + 1) // 2, *x.middle.shape)), x.rest)

    @property
    def linear(self) -> Linear:
        """The same numbers, with the terms of second order in the rest."""
        return Linear(self.middle, self.slopes, self.rest + self.parts[1])

    @property
    def parts(self) -> tuple[Array, Array]:
        """Largest sizes (N, k) of the terms of first and of second order."""
        return np.abs(self.slopes).sum(0), np.abs(self.squares).sum(0)

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        first, second = self.parts
        size: Array = first + second + self.rest
        return size

    def __getitem__(self, columns: Any) -> Quadratic:
        return Quadratic(*(part[..., columns] for part in (self.middle, self.slopes, self.squares, self.rest)))

    def __add__(self, other: Quadratic) -> Quadratic:
        size = np.abs(self.middle) + np.abs(other.middle) + sum(self.parts) + sum(other.parts)
        return Quadratic(
            self.middle + other.middle,
            self.slopes + other.slopes,
            self.squares + other.squares,
            self.rest + other.rest + rounding(size),
        )

    def __sub__(self, other: Quadratic) -> Quadratic:
        return self + other.times(-1.0)

    def __mul__(self, other: Quadratic) -> Quadratic:
        (a1, a2), (b1, b2), a, b = self.parts, other.parts, np.abs(self.middle), np.abs(other.middle)
        rest = a * other.rest + b * self.rest + a1 * b2 + a2 * b1 + a2 * b2 + self.rest * other.rest
        rest = rest + (a1 + a2) * other.rest + (b1 + b2) * self.rest
        rest = rest + rounding((a + a1 + a2 + self.rest) * (b + b1 + b2 + other.rest), len(self.squares) + 4)
        squares = self.middle * other.squares + other.middle * self.squares
        for at, j, k in _pairs(len(self.slopes)):
            squares[at] += self.slopes[j] * other.slopes[k]
            if j != k:
                squares[at] += self.slopes[k] * other.slopes[j]
        slopes = self.middle * other.slopes + other.middle * self.slopes
        return Quadratic(self.middle * other.middle, slopes, squares, rest)

    def through(self, value: Array, slope: Array, second: Array, third: Array | float) -> Quadratic:
        """A function with these derivatives at the middle, and at most this third one in the box."""
        first, beyond = self.parts[0], self.parts[1] + self.rest
        bend = first + beyond
        rest = np.abs(slope) * self.rest + third / 6 * bend**3
        rest = rest + 0.5 * np.abs(second) * (2 * first * beyond + beyond**2)
        size = np.abs(value) + np.abs(slope) + np.abs(second)  # a coefficient's error may be that of a larger one
        rest = rest + rounding(size * (1 + bend) ** 2, LIBRARY)
        squares = slope * self.squares
        for at, j, k in _pairs(len(self.slopes)):
            squares[at] += (0.5 if j == k else 1.0) * second * self.slopes[j] * self.slopes[k]
        return Quadratic(value, slope * self.slopes, squares, rest)

    def plus(self, values: Array | float) -> Quadratic:
        """The numbers plus exact ones."""
        size = np.abs(self.middle) + np.abs(values)
        return Quadratic(self.middle + values, self.slopes, self.squares, self.rest + rounding(size))

    def times(self, factor: Array | float) -> Quadratic:
        """The numbers times exact ones."""
        rest = np.abs(factor) * (self.rest + rounding(np.abs(self.middle) + sum(self.parts)))
        return Quadratic(self.middle * factor, self.slopes * factor, self.squares * factor, rest)

    def to(self, weight: Array) -> Quadratic:
        """The numbers times a matrix (k, j)."""
        d, count, k = self.slopes.shape
        whole = np.concatenate([self.middle[None], self.slopes, self.squares]).reshape(-1, k) @ weight
        whole = whole.reshape(1 + d + len(self.squares), count, -1)
        wide = self.rest + rounding(np.abs(self.middle) + sum(self.parts), len(whole) + k)
        return Quadratic(whole[0], whole[1 : 1 + d], whole[1 + d :], upward(wide @ np.abs(weight), k))


def _pairs(d: int) -> list[tuple[int, int, int]]:
    return [(at, j, k) for at, (j, k) in enumerate(combinations_with_replacement(range(d), 2))]


def _beside(parts: list[Quadratic]) -> Quadratic:
    names = "middle", "slopes", "squares", "rest"
    return Quadratic(*(np.concatenate([getattr(part, name) for part in parts], -1) for name in names))


def _tanh(a: Quadratic) -> tuple[Quadratic, Quadratic]:
    """tanh and its slope. Its third to fifth derivatives are at most 2, 4.1 and 16."""
    t, bend = np.tanh(a.middle), a.bend
    with np.errstate(over="ignore"):
        g = np.cosh(a.middle) ** -2.0  # 1 - t^2 would lose its digits
    second, third = -2 * t * g, -2 * g * (1 - 3 * t * t)
    fourth = 8 * t * g * (2 - 3 * t * t)
    value = a.through(t, g, second, np.minimum(2.0, np.abs(third) + 4.1 * bend))
    return value, a.through(g, second, third, np.minimum(4.1, np.abs(fourth) + 16 * bend))


def _waves(a: Quadratic) -> tuple[Quadratic, Quadratic]:
    """Sine and cosine."""
    s, c, bend = np.sin(a.middle), np.cos(a.middle), a.bend
    sine = a.through(s, c, -s, np.minimum(1.0, np.abs(c) + bend))
    return sine, a.through(c, -s, -c, np.minimum(1.0, np.abs(s) + bend))


def _positive(x: Linear) -> Linear:
    """max(x, 0); the line between both answers where the sign is not known."""
    low, high = x.ends
    above, below = low >= 0, high <= 0
    extra = 0.25 * np.maximum(high, -low)
    middle = np.where(above, x.middle, np.where(below, 0.0, 0.5 * x.middle + extra))
    share = np.where(above, 1.0, np.where(below, 0.0, 0.5))
    rest = share * x.rest + np.where(above | below, 0.0, upward(extra) + rounding(np.abs(middle)))
    return Linear(middle, share * x.slopes, rest)


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

    def both(self, x: Linear) -> tuple[tuple[Linear, Linear], tuple[Mask, Mask]]:
        """dV/dx of the form and of the networks, and whether (N,) the state may be where each is used."""
        e = x.plus(-self.target)
        turns = np.where(self.continuous, np.round(e.middle / (2 * np.pi)), 0.0) * (2 * np.pi)
        e = e.plus(-turns)
        pe = e.to(self.cost)
        low, high = (end[:, 0] for end in (e * pe).to(np.ones((len(self.target), 1))).ends)
        spare = 1e-5 * self.level
        form = pe.times(-2.0)
        out = ~(high < self.level - spare)
        net = Linear(form.middle.copy(), form.slopes.copy(), form.rest.copy())
        if out.any():
            found = self.networks(x.rows(out))
            net.middle[out], net.slopes[:, out], net.rest[out] = found.middle, found.slopes, found.rest
        return (form, net), (low < self.level + spare, out)

    def joined(self, x: Linear) -> Linear:
        """dV/dx (N, n): of the form or of the networks, where it is known which; else what holds both."""
        (form, networks), (inside, outside) = self.both(x)
        return chosen(~outside, form, chosen(~inside, networks, networks.joined(form)))

    def networks(self, x: Linear) -> Linear:
        """dV/dx (N, n) of the networks."""
        of_x, count = Quadratic.of(x), len(self.at_target)
        sine, cosine = _waves(of_x[self.angles])
        z = _beside([sine, cosine, of_x[self.others].times(self.scale)])
        straight = z.plus(-self.at_target).to(self.metric)
        q = (straight * straight).to(np.ones((count, 1))).times(self.bend)
        base, least = 1.0 + q.middle, np.maximum(1.0 + q.middle - q.bend, 1.0)  # 1/sqrt(1 + q/c)
        shrinking = q.through(base**-0.5, -0.5 * base**-1.5, 0.75 * base**-2.5, 1.875 * least**-3.5)[[0] * count]
        y = straight * shrinking
        members = [self._member(weights, biases, z, y) for weights, biases in self.members]
        total_z, total_y = members[0]
        for of_z, of_y in members[1:]:
            total_z, total_y = total_z + of_z, total_y + of_y
        along = (total_y * y).to(np.full((count, count), self.bend))
        dz = total_z + ((total_y - along * y) * shrinking).to(self.metric.T)
        dz, k = dz.times(-2.0 / len(self.members)), len(self.angles)
        turned = dz[slice(0, k)] * cosine - dz[slice(k, 2 * k)] * sine
        found = _beside([turned, dz[slice(2 * k, count)].times(self.scale)])
        return found[np.argsort(np.concatenate([self.angles, self.others]))].linear

    def _member(
        self, weights: list[Array], biases: list[Array], z: Quadratic, y: Quadratic
    ) -> tuple[Quadratic, Quadratic]:
        """Adjoints of z and of y in half of |y' L|^2 from one network of the ensemble."""
        h, steep, D, unit = z, [], self.diagonal, np.eye(len(self.at_target))
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            h, slope = _tanh(h.to(weight).plus(bias))
            steep.append(slope)
        raw = h.to(weights[-1]).plus(biases[-1])
        m, sigmoid = raw.middle, 1 / (1 + np.exp(-raw.middle))  # softplus on the diagonal
        bell, value = sigmoid * (1 - sigmoid), np.where(D, np.logaddexp(0, m) + DIAGONAL_FLOOR, m)
        first, second = np.where(D, sigmoid, 1.0), np.where(D, bell, 0.0)
        entries = raw.through(value, first, second, np.where(D, 0.0963, 0.0))
        factor = y[self.rows]
        outer = (entries * factor).to(unit[self.columns])[self.columns]
        slope = raw.through(first, second, np.where(D, bell * (1 - 2 * sigmoid), 0.0), np.where(D, 0.126, 0.0))
        adjoint = outer * factor * slope
        for weight, at in zip(reversed(weights[1:]), reversed(steep), strict=True):
            adjoint = adjoint.to(weight.T) * at
        return adjoint.to(weights[0].T), (outer * entries).to(unit[self.rows])


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
        slack = rounding(np.abs(x.middle[:, b]) + np.abs(loop.target[b]))
        values, widths = loop.arguments(middle, x.bend[:, b] + slack, loop.nominal, 0.0)
        n = len(loop.target)
        m, s, r = evaluated(loop.kernels[0], values, widths)
        m, s, r = m[:, n * n :], s[:, n * n :, : len(b)], r[:, n * n :]
        slopes = np.einsum("nkb,dnb->dnk", s, x.slopes[:, :, b])
        loose = np.einsum("nkb,nb->nk", np.abs(s), x.rest[:, b])
        return Linear(m, slopes, r + loose)

    def conjugate(self, w: Linear) -> tuple[Linear, Linear]:
        """grad g~ and its slope, over boxes of w (N, 1)."""
        m, s, r = evaluated(self.loop.kernels[2], w.middle, w.bend)
        found = []
        for k in range(2):
            slope = s[:, k]
            found.append(Linear(m[:, k : k + 1], slope * w.slopes, r[:, k : k + 1] + np.abs(slope) * w.rest))
        return found[0], found[1]

    def __call__(self, x: Linear) -> Linear:
        B = self.control(x)
        ones = np.ones((B.middle.shape[1], 1))
        w = (B * self.slope.joined(x)).to(ones)
        closed, _ = self.conjugate(w)
        hold = self.loop.hold
        if not hold:
            return self._clipped(closed)
        closed = closed.plus(-self.trim)
        low, high = (end[:, 0] for end in closed.ends)
        count, d = len(low), x.slopes.shape[0]
        result = Linear(np.zeros((count, 1)), np.zeros((d, count, 1)), np.zeros((count, 1)))
        known = np.zeros(count, bool)
        for sign, may in ((1.0, high >= 0), (-1.0, low <= 0)):
            if not may.any():
                continue
            part = self._one_side(x.rows(may), B.rows(may), closed.rows(may), sign)
            old = result.rows(may)
            new = chosen(known[may], old.joined(part), part)
            result.middle[may], result.slopes[:, may], result.rest[may] = new.middle, new.slopes, new.rest
            known |= may
        result.rest[~known] = np.inf
        return self._clipped(result.plus(self.trim))

    def _clipped(self, u: Linear) -> Linear:
        low, high = u.ends
        a, b = self.loop.middle - self.loop.limit, self.loop.middle + self.loop.limit
        inside = np.maximum(low, a), np.minimum(high, b)
        half = 0.5 * (inside[1] - inside[0])
        flat = half < u.rest
        middle = np.where(flat, 0.5 * (inside[0] + inside[1]), u.middle)
        return Linear(
            middle, np.where(flat, 0.0, u.slopes), np.where(flat, upward(half + rounding(np.abs(middle))), u.rest)
        )

    def _one_side(self, x: Linear, B: Linear, closed: Linear, sign: float) -> Linear:
        """d (N, 1) where the closed form has the sign; any box of its states may have another one."""
        shortest, hold = SHORTEST * self.limit, self.loop.hold
        low, high = closed.ends
        size_low = np.clip(sign * np.where(sign > 0, low, high), shortest, None)
        size_high = np.clip(sign * np.where(sign > 0, high, low), shortest, None)
        steady = closed.times(sign)
        flat = Linear(
            0.5 * (size_low + size_high), 0 * closed.slopes, upward(0.5 * (size_high - size_low) + rounding(size_high))
        )
        longer = (np.minimum(sign * low, sign * high) > shortest)[:, 0]
        size = chosen(longer, steady, flat)
        n = B.middle.shape[1]
        step = Linear(np.repeat(size.middle, n, 1), np.repeat(size.slopes, n, 2), np.repeat(size.rest, n, 1))
        moved = x + (B * step).times(sign * hold)
        largest = np.arange(n) == moved.rest.argmax(1)[:, None]  # the largest rest becomes a symbol of its own
        own = np.concatenate([moved.slopes, np.where(largest, moved.rest, 0.0)[None]])
        whole = Linear(moved.middle, own, np.where(largest, 0.0, moved.rest))
        ones, count, d = np.ones((n, 1)), len(x.middle), x.slopes.shape[0]
        result = Linear(np.zeros((count, 1)), np.zeros((d, count, 1)), np.zeros((count, 1)))
        known = np.zeros(count, bool)
        B_own = Linear(B.middle, np.concatenate([B.slopes, np.zeros_like(B.rest)[None]]), B.rest)
        here, there = self.slope.both(x), self.slope.both(whole)
        for first, can in zip(*here, strict=True):
            for second, may in zip(*there, strict=True):
                rows = can & may
                if not rows.any():
                    continue
                found = (B_own.rows(rows) * second.rows(rows)).to(ones)
                w_moved = Linear(found.middle, found.slopes[:-1], found.rest + np.abs(found.slopes[-1]))
                w_now = (B.rows(rows) * first.rows(rows)).to(ones)
                part = self._answer(w_now, w_moved, size.rows(rows), sign)
                new = chosen(known[rows], result.rows(rows).joined(part), part)
                result.middle[rows], result.slopes[:, rows], result.rest[rows] = new.middle, new.slopes, new.rest
                known |= rows
        result.rest[~known] = np.inf
        return result

    def _answer(self, w: Linear, w_moved: Linear, size: Linear, sign: float) -> Linear:
        """d (N, 1) of a side, by w at the state and at the moved one, and the size of the step."""
        drop = _positive((w - w_moved).times(sign))  # P |step|
        at = size.middle
        P = drop.middle / at
        d = self._solved(w.middle, P)
        still = Linear(w.middle - P * d, np.zeros((0, len(d), 1)), np.zeros_like(d))
        S = self.conjugate(still)[1].middle
        P_slopes = drop.slopes / at - P / at * size.slopes
        slopes = S / (1 + S * P) * (w.slopes - d * P_slopes)
        guess = Linear(d, slopes, np.zeros_like(d))
        least = np.maximum(at - size.bend, 0.5 * SHORTEST * self.limit)
        P_of = drop * size.through(1 / at, -1 / at**2, 2 / least**3)
        P_low = np.maximum(P_of.ends[0], 0.0)
        residual = guess - self.conjugate(w - P_of * guess)[0].plus(-self.trim)
        bound = upward(np.abs(residual.middle) + residual.bend)
        # slope of the left side between the guess and the truth
        steep = self.conjugate(w - P_of * Linear(guess.middle, guess.slopes, bound))[1]
        s_low = np.maximum(steep.ends[0], 0.0)
        bound = upward(bound / (1 + s_low * P_low))
        # the argument is between w and w - drop, as |d| <= size
        half = drop.times(0.5 * sign)
        between = w - half
        between = Linear(between.middle, between.slopes, between.rest + np.abs(half.middle) + half.bend)
        other = self.conjugate(between)[0].plus(-self.trim)
        return chosen((bound <= other.rest)[:, 0], Linear(d, slopes, bound), other)

    def _solved(self, w: Array, P: Array) -> Array:
        low = np.full_like(w, float(self.loop.middle[0] - self.limit - self.trim))
        high = np.full_like(w, float(self.loop.middle[0] + self.limit - self.trim))
        none = np.zeros((0, len(w), 1))
        for _ in range(BISECTIONS):
            d = 0.5 * (low + high)
            G, _ = self.conjugate(Linear(w - P * d, none, np.zeros_like(w)))
            above = d > G.middle - self.trim
            low, high = np.where(above, low, d), np.where(above, d, high)
        return 0.5 * (low + high)
