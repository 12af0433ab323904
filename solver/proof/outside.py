"""Bounds of the policy outside the basin, over boxes.

A box c + R t, |t_k| <= 1, goes forward through V's networks and backward to dV/dx, where terms of second order are
kept, so that the rest is of third order in the width of the box. Small cells go once, and patches of them serve all
boxes. The input of the policy is u = u0 + d with u0 + d = grad g~(w - P d). The left side less the right side rises
with d by at least 1: a residual bounds the error of a linear guess of d. At the basin's edge, where the formula of
dV/dx changes, a box has an input for each formula.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from modelgen.arrays import Array
from solver.game.policies import SHORTEST
from solver.proof.affine import TINY, Linear, Mask, Numbers, chosen, rounding, upward
from solver.proof.held_loop import HeldLoop
from solver.proof.quadratic import FUNCTIONS, Quadratic, beside
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

BISECTIONS = 45  # of the input at the middle of a box
CELLS = 1024  # cells a state, of which patches are made
LEVELS = 4  # of patches: 2, 4, 8 and 16 cells wide
MARGIN = 256  # cells beyond a limit
BLOCK = 16  # cells a state that are made at once, always the same ones, so that no result depends on the order
LOOSE = 0.03  # of a box, by which the rest of a patch may move it in a period
NARROW = 0.3  # of a cell: a wider box has no smaller rest without its patch
FAR = 1e6  # of w, for the largest slope of grad g~
SMALL = 1e-6  # largest error of a numerical inverse
SPARE = 1e-5  # of the basin's level, within which the policy may take a state for one on the other side of its edge


def _tanh(a: Quadratic) -> tuple[Quadratic, Quadratic]:
    """tanh and its slope, whose third derivative is at most 4.1 and whose fourth one is at most 16."""
    t, slope, second, _ = FUNCTIONS["tanh"](a.middle, a.bend)
    third, fourth = -2 * slope * (1 - 3 * t * t), 8 * t * slope * (2 - 3 * t * t)
    return a.function("tanh"), a.through(slope, second, third, np.minimum(4.1, np.abs(fourth) + 16 * a.bend))


def _positive(x: Linear) -> Linear:
    """max(x, 0); the line between both answers where the sign is not known."""
    low, high = x.ends
    above, below = low >= 0, high <= 0
    extra = 0.25 * np.maximum(high, -low)
    middle = np.where(above, x.middle, np.where(below, 0.0, 0.5 * x.middle + extra))
    share = np.where(above, 1.0, np.where(below, 0.0, 0.5))
    rest = share * x.rest + np.where(above | below, 0.0, upward(extra) + rounding(np.abs(middle)))
    return Linear(middle, share * x.slopes, rest)


@dataclass(frozen=True)
class Branches:
    """dV/dx (N, n) over boxes, of the form within the basin and of the networks outside it."""

    form: Linear
    networks: Linear
    inside: Mask  # (N,) whether the state may be within the basin
    outside: Mask  # (N,) and outside it
    share: Linear  # (N, 1) of the basin's level that the form has

    @property
    def each(self) -> tuple[tuple[Linear, Mask], tuple[Linear, Mask]]:
        """Each formula and where it may hold."""
        return (self.form, self.inside), (self.networks, self.outside)


def _with_a_symbol(x: Linear) -> Linear:
    """The same numbers, with another symbol on which they do not depend."""
    return Linear(x.middle, np.concatenate([x.slopes, np.zeros_like(x.rest)[None]]), x.rest)


class Slope:
    """dV/dx of a run over boxes."""

    def __init__(self, solution: Solution, loop: HeldLoop) -> None:
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
        lower, upper = (np.where(self.continuous, end * np.pi, loop.target + end * loop.bound) for end in (-1, 1))
        self.patches = Patches(self.model, self.continuous, lower, upper)

    def __call__(self, x: Linear, B: Array, enough: Array) -> Branches:
        """Both of its formulas over boxes, where B (N, n) is near x."""
        e = x.plus(-self.target)
        turns = np.where(self.continuous, np.round(e.middle / (2 * np.pi)), 0.0) * (2 * np.pi)
        e = e.plus(-turns)
        pe = e.to(self.cost)
        share = (e * pe).to(np.full((len(self.target), 1), 1.0 / self.level))
        low, high = (end[:, 0] for end in share.ends)
        form = pe.times(-2.0)
        out = ~(high < 1.0 - SPARE)
        net = Linear(form.middle.copy(), form.slopes.copy(), form.rest.copy())
        if out.any():
            net.put(out, self.networks(x.rows(out), B[out], enough[out]))
        return Branches(form, net, ~(low > 1.0 + SPARE), out, share)

    def networks(self, x: Linear, B: Array, enough: Array) -> Linear:
        """dV/dx (N, n) of the networks: by patches, unless a rest in w = B' dV/dx above `enough` (N,) may be less."""
        found, rest = self.patches(x)
        direct = ~((np.abs(B) * rest).sum(1) <= enough) & (x.bend <= NARROW * self.patches.width).all(1)
        if direct.any():
            found.put(direct, self.model(x.rows(direct)).linear)
        return found

    def model(self, x: Linear) -> Quadratic:
        """The same numbers without patches."""
        of_x, count = Quadratic.of(x), len(self.at_target)
        sine, cosine = (of_x[self.angles].function(kind) for kind in ("sin", "cos"))
        z = beside([sine, cosine, of_x[self.others].times(self.scale)])
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
        found = beside([turned, dz[slice(2 * k, count)].times(self.scale)])
        return found[np.argsort(np.concatenate([self.angles, self.others]))]

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


class Patches:
    """Models of second order of a function of n states around the points of grids, made where they are first needed.

    The rest of a model grows with the third power of its width, to far more than the truth: layer by layer, weights of
    either sign count by their sizes. So the function is enclosed in small cells, and a patch of 2^n smaller ones is the
    polynomial that fits them best, with the largest distance from them as its rest.
    """

    def __init__(self, model: Callable[[Linear], Quadratic], around: Mask, lower: Array, upper: Array) -> None:
        self.model, self.around, self.n = model, around, len(around)
        self.width, margin = (upper - lower) / CELLS, np.where(around, 0, MARGIN)
        self.lower, self.shape = lower - margin * self.width, CELLS + 2 * margin
        self.near = rounding(np.abs(lower) + np.abs(upper), 40)  # more than the error of a place of a cell
        n, d = self.n, len(lower)
        self.first, self.second = np.triu_indices(n)
        self.rows = 1 + n + len(self.first)
        self.signs = np.array(list(itertools.product((-1, 1), repeat=n)))
        self.block = np.array(list(itertools.product(range(BLOCK), repeat=n)))
        self.cells = self._empty(self.shape, d)
        self.levels = [self._empty(self.shape // 2**level + 1, d) for level in range(LEVELS)]
        ticks = np.array(list(itertools.product(np.cos(np.pi * (2 * np.arange(4) + 1) / 8), repeat=n)))
        each = [self._powers(0.5 * (ticks + sign)) for sign in self.signs]
        self.fit = np.linalg.pinv(np.concatenate(each)).reshape(self.rows, len(each), -1) @ self._powers(ticks)
        corners = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=n)))
        back = np.linalg.pinv(self._powers(corners))
        exact = [np.round(4 * back @ self._powers(0.5 * (corners + sign))) / 4 for sign in self.signs]
        self.narrowed = np.array(exact)

    def _powers(self, t: Array) -> Array:
        """Terms (N, rows) of a polynomial at t (N, n)."""
        return np.column_stack([np.ones(len(t)), t, t[:, self.first] * t[:, self.second]])

    def _empty(self, shape: Numbers, d: int) -> tuple[Mask, Array, Array]:
        """Whether a patch is made, its terms and its rest."""
        return np.zeros(shape, bool), np.zeros((*shape, self.rows, d)), np.zeros((*shape, d))

    def __call__(self, x: Linear) -> tuple[Linear, Array]:
        """The function over boxes, and the rest (N, k) of their patches; infinite where there is no patch."""
        turns = np.where(self.around, np.floor((x.middle - self.lower) / (self.width * self.shape)), 0.0)
        x = x.plus(-turns * (self.width * self.shape))
        x = Linear(x.middle, x.slopes, x.rest + self.near * (1 + np.abs(turns)))
        at, size = (x.middle - self.lower) / self.width, upward(x.bend, len(x.slopes) + 4) / self.width
        level, place = np.full(len(at), -1), np.zeros(at.shape, np.int64)
        for k in reversed(range(LEVELS)):
            near = np.round(at / 2**k).astype(np.int64)
            fits = (np.abs(at - near * 2**k) + size <= (1 - 1e-9) * 2**k).all(1)
            fits &= ((near >= 1) & ((near + 1) * 2**k <= self.shape) | self.around).all(1)
            level[fits], place[fits] = k, near[fits]
        terms, rest = np.zeros((len(at), self.rows, len(self.lower))), np.full((len(at), len(self.lower)), np.inf)
        for k in range(LEVELS):
            rows = np.flatnonzero(level == k)
            if len(rows):
                terms[rows], rest[rows] = self._made(k, place[rows])
        half = self.width * 2.0 ** np.maximum(level, 0)[:, None]
        t = Quadratic.of(x.plus(-(self.lower + place * half)).times(1 / half))
        numbers = [t[[i]] for i in range(self.n)]
        numbers += [numbers[i] * numbers[j] for i, j in zip(self.first, self.second, strict=True)]
        total = numbers[0].times(terms[:, 1]).plus(terms[:, 0])
        for k in range(1, len(numbers)):
            total = total + numbers[k].times(terms[:, 1 + k])
        found = total.linear
        return Linear(found.middle, found.slopes, found.rest + rest), rest

    def _made(self, level: int, place: Numbers) -> tuple[Array, Array]:
        """Terms and rests of the patches around points (N, n) of a level, or of cells for level -1."""
        made, terms, rest = self.levels[level] if level >= 0 else self.cells
        place = np.where(self.around, place % (self.shape >> max(level, 0)), place)
        new = np.unique(place[~made[tuple(place.T)]], axis=0)
        blocks = np.unique(new // BLOCK, axis=0)[:, None] * BLOCK + self.block if level < 0 else [new] * (len(new) > 0)
        for part in blocks:
            at = tuple(part.T)
            terms[at], rest[at] = self._cells(part) if level < 0 else self._joined(level, part)
            made[at] = True
        at = tuple(place.T)
        return terms[at], rest[at]

    def _cells(self, place: Numbers) -> tuple[Array, Array]:
        slopes = np.zeros((self.n, *place.shape))
        slopes[range(self.n), :, range(self.n)] = 0.5 * self.width[:, None]
        middle = self.lower + (place + 0.5) * self.width
        found = self.model(Linear(middle, slopes, np.broadcast_to(self.near, place.shape)))
        return np.moveaxis(found.terms, 0, 1), found.rest

    def _joined(self, level: int, place: Numbers) -> tuple[Array, Array]:
        """Patches of their 2^n parts."""
        step = (self.signs - 1) // 2 if level == 0 else self.signs
        parts = [self._made(level - 1, place * (1 if level == 0 else 2) + s) for s in step]
        terms = np.sum([fit @ part for fit, (part, _) in zip(np.moveaxis(self.fit, 1, 0), parts, strict=True)], 0)
        size = np.abs(terms).sum(1) + sum(np.abs(part).sum(1) for part, _ in parts)
        apart = [
            np.abs(narrow @ terms - part).sum(1) + rest
            for narrow, (part, rest) in zip(self.narrowed, parts, strict=True)
        ]
        return terms, upward(np.max(apart, 0) + rounding(size, 200), 32)


class HeldPolicy:
    """The input (N, 1) of the policy over boxes, for robots of one input."""

    def __init__(self, solution: Solution, loop: HeldLoop) -> None:
        self.loop, self.slope = loop, Slope(solution, loop)
        self.kernels = loop.robot.with_kernels()
        self.limit, self.trim = float(loop.limit[0]), float(loop.trim[0])
        everywhere = np.array([[-FAR]]), np.array([[FAR]])
        self.steepest = float(loop.conjugate(*everywhere)[3][0, 0])  # slope of grad g~

    def _slope(self, x: Linear, B: Array) -> Branches:
        """dV/dx over boxes, with a rest that is a small share of the box after a period."""
        pushed = np.maximum(np.abs(B) * self.steepest * self.loop.step, TINY)
        return self.slope(x, B, LOOSE * (x.bend / pushed).min(1))

    def control(self, x: Linear) -> Linear:
        """B (N, n) over boxes."""
        errors = Quadratic.of(x[self.loop.bent]).plus(-self.loop.target[self.loop.bent])
        bent = [errors[[k]] for k in range(len(self.loop.bent))]
        return self.loop.control(bent, len(x.middle), len(x.slopes)).linear

    def conjugate(self, w: Linear) -> tuple[Linear, Array]:
        """grad g~ over boxes of w (N, 1) by the mean value theorem or by its range, and its smallest slope (N, 1)."""
        found = self.loop.conjugate(*(np.concatenate([end, w.middle]) for end in w.ends))
        (low, below), (high, above), (least, _), (most, _) = (np.split(part, 2) for part in found)
        steep, bent = 0.5 * (least + most), upward(0.5 * (most - least) * w.bend)
        line = Linear(
            0.5 * (below + above), steep * w.slopes, upward(0.5 * (above - below) + bent + np.abs(steep) * w.rest)
        )
        flat = Linear(
            0.5 * (low + high), 0 * w.slopes, upward(0.5 * (high - low) + rounding(np.abs(low) + np.abs(high)))
        )
        return chosen((flat.rest <= line.rest)[:, 0], flat, line), least

    def ways(self, x: Linear) -> Iterator[tuple[Numbers, Linear]]:
        """Boxes (K,) by number and inputs (K, 1) there, for each way in which the policy may find an input.

        A way is a formula of dV/dx, a side of the trim, and a formula after the step. A box may have several. Where a
        number is not known, every way is possible: comparisons are those that no unknown number passes.
        """
        B = self.control(x)
        here = self._slope(x, B.middle)
        for k, (gradient, can) in enumerate(here.each):
            if not can.any():
                continue
            at = np.flatnonzero(can)
            w = (B.rows(at) * gradient.rows(at)).to(np.ones((B.middle.shape[1], 1)))
            closed = self.conjugate(w)[0].plus(-self.trim)
            low, high = (end[:, 0] for end in closed.ends)
            sides = ((1.0, ~(high < 0)), (-1.0, ~(low > 0))) if self.loop.hold else ((0.0, ~(low > high)),)
            for sign, may in sides:
                if may.any():
                    parts = (x.rows(at[may]), w.rows(may), B.rows(at[may]), closed.rows(may), here.share.rows(at[may]))
                    for rows, d in self._one_side(k, sign, *parts) if sign else [(may, closed)]:
                        yield at[may][rows], self._clipped(d.plus(self.trim))

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

    def _one_side(
        self, k: int, sign: float, x: Linear, w: Linear, B: Linear, closed: Linear, share: Linear
    ) -> Iterator[tuple[Mask, Linear]]:
        """d (N, 1) where the closed form has the sign; any box of its states may have another one.

        k: formula of dV/dx at x, 0 the form, 1 the networks. For each of both after the step: boxes that may use it.
        """
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
        there = self._slope(Linear(moved.middle, own, np.where(largest, 0.0, moved.rest)), B.middle)
        low, high = (end[:, 0] for end in (there.share - _with_a_symbol(share)).ends)
        leaves = (~(high < -2 * SPARE), ~(low > 2 * SPARE))[k]  # the basin, or its outside
        B = _with_a_symbol(B)
        for j, (gradient, may) in enumerate(there.each):
            rows = may & leaves if j != k else may
            if rows.any():
                along = (B.rows(rows) * gradient.rows(rows)).to(np.ones((n, 1)))
                w_moved = Linear(along.middle, along.slopes[:-1], along.rest + np.abs(along.slopes[-1]))
                yield rows, self._answer(w.rows(rows), w_moved, size.rows(rows), sign)

    def _answer(self, w: Linear, w_moved: Linear, size: Linear, sign: float) -> Linear:
        """d (N, 1) of a side, by w at the state and at the moved one, and the size of the step."""
        drop = _positive((w - w_moved).times(sign))  # P |step|
        at = size.middle
        P = drop.middle / at
        d = self._solved(w.middle, P)
        still = w.middle - P * d
        S = 0.5 * sum(self.loop.conjugate(still, still)[2:])
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
        bound = upward(bound / (1 + steep * P_low))
        # the argument is between w and w - drop, as |d| <= size
        half = drop.times(0.5 * sign)
        between = w - half
        between = Linear(between.middle, between.slopes, between.rest + np.abs(half.middle) + half.bend)
        other = self.conjugate(between)[0].plus(-self.trim)
        return chosen((bound <= other.rest)[:, 0], Linear(d, slopes, bound), other)

    def _solved(self, w: Array, P: Array) -> Array:
        low = np.full_like(w, float(self.loop.middle[0] - self.limit - self.trim))
        high = np.full_like(w, float(self.loop.middle[0] + self.limit - self.trim))
        for _ in range(BISECTIONS):
            d = 0.5 * (low + high)
            above = d > self.kernels.optimal_input(w - P * d) - self.trim
            low, high = np.where(above, low, d), np.where(above, d, high)
        return 0.5 * (low + high)


def parallelotope(x: Linear) -> Linear:
    """A set without a rest that holds x: the symbols take it up, or new ones of a box where that is smaller."""
    G = np.moveaxis(x.slopes, 0, 2)  # (N, n, d)
    n = G.shape[1]
    regular = np.abs(np.linalg.det(G)) > 1e-14 * np.prod(np.abs(G).sum(2) + 1e-300, 1)
    inverse = np.linalg.inv(np.where(regular[:, None, None], G, np.eye(n)))
    size = np.eye(n) + np.abs(G) @ np.abs(inverse)
    error = upward((np.abs(np.eye(n) - G @ inverse) + rounding(size, 2 * n)).sum(2).max(1))
    # e = G inverse (1 - E)^-1 e
    rest = x.rest + (error / (1 - np.minimum(error, 0.5)) * x.rest.max(1))[:, None]
    more = upward((np.abs(inverse) @ rest[..., None])[..., 0], n + 8)
    grown = x.slopes * upward(1 + more.T[:, :, None])
    b = upward(x.bend, len(x.slopes) + 1)
    box = np.zeros_like(x.slopes)
    box[range(n), :, range(n)] = b.T
    smaller = b.prod(1) < np.abs(np.linalg.det(G)) * (1 + more).prod(1)
    use = ~regular | (error > SMALL) | smaller
    return Linear(x.middle, np.where(use[:, None], box, grown), np.zeros_like(x.rest))
