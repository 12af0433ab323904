"""dV/dx of a run over boxes of states, by the form within the basin and by V's networks outside it.

A box c + R t, |t_k| <= 1, goes forward through the networks and backward to dV/dx, where terms of second order are
kept, so that the rest is of third order in the width of the box. A rest says nothing of its sign: layer by layer, those
of all neurons would count by the absolute values of the weights. Two ways lead out of this. Small cells go once, and
patches of them serve all boxes, which are many and small. Or rests are noise symbols (Stolfi and de Figueiredo, 1997),
which pass through the product of the matrices, for few and wide boxes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.proof.affine import UNIT, Linear, Mask, Numbers, rounding, upward
from solver.proof.held_loop import HeldLoop
from solver.proof.quadratic import FUNCTIONS, Derivatives, Quadratic, beside
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

CELLS = 1024  # cells a state, of which patches are made
LEVELS = 4  # of patches: 2, 4, 8 and 16 cells wide
TOGETHER = 64  # boxes of more states
MARGIN = 256  # cells beyond a limit
BLOCK = 16  # cells a state that are made at once, always the same ones, so that no result depends on the order
NARROW = 0.3  # of a cell: a wider box has no smaller rest without its patch
SPARE = 1e-5  # of the basin's level, within which the policy may take a state for one on the other side of its edge
NOTHING = 1e-200  # a smaller rest is no symbol

_number = itertools.count()  # of a block of noise symbols


@dataclass(frozen=True)
class Noisy:
    """Numbers (N, k) of second order in the symbols of a set, and linear in noise symbols.

    known: the part of second order, whose rest belongs to no symbol yet. noise: coefficients (m, N, k) of blocks of
    symbols by number.
    """

    known: Quadratic
    noise: Mapping[int, Array]

    @classmethod
    def of(cls, known: Quadratic) -> Noisy:
        """Numbers whose rests are symbols."""
        return cls(known, {}).opened

    @cached_property
    def spread(self) -> Array:
        """Largest size (N, k) of the noise."""
        total = np.zeros_like(self.known.rest)
        for block in self.noise.values():
            total += upward(np.abs(block).sum(0), len(block))
        return upward(total, len(self.noise) + 1)

    @cached_property
    def whole(self) -> Quadratic:
        """The same numbers, with the noise in the rest."""
        return Quadratic(self.known.terms, self.known.rest + self.spread)

    @property
    def middle(self) -> Array:
        """Middles (N, k)."""
        return self.known.middle

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        return self.whole.bend

    @property
    def opened(self) -> Noisy:
        """The same numbers, whose rests are new symbols."""
        rest = self.known.rest
        if not (rest > NOTHING).any():
            return self
        block = np.zeros((rest.shape[1], *rest.shape))
        block[range(len(block)), :, range(len(block))] = rest.T
        bare = Quadratic(self.known.terms, np.zeros_like(rest))
        return Noisy(bare, {**self.noise, next(_number): block})

    def __getitem__(self, columns: Any) -> Noisy:
        return Noisy(self.known[columns], {k: block[..., columns] for k, block in self.noise.items()})

    def __add__(self, other: Noisy) -> Noisy:
        size, noise = self.spread + other.spread, dict(self.noise)
        for k, block in other.noise.items():
            noise[k] = noise[k] + block if k in noise else block
        return Noisy(self.known + other.known, noise)._widened(rounding(size))

    def __sub__(self, other: Noisy) -> Noisy:
        return self + other.times(-1.0)

    def __mul__(self, other: Noisy) -> Noisy:
        a, b = self.middle, other.middle
        product, noise = self.whole * other.whole, {k: block * b for k, block in self.noise.items()}
        for k, block in other.noise.items():
            noise[k] = noise[k] + block * a if k in noise else block * a
        return Noisy(product, noise)._less(np.abs(a) * other.spread + np.abs(b) * self.spread)

    def through(self, value: Array, slope: Array, second: Array, third: Array | float) -> Noisy:
        """A function with these derivatives at the middle, and at most this third one in the set."""
        found = self.whole.through(value, slope, second, third)
        noise = {k: slope * block for k, block in self.noise.items()}
        return Noisy(found, noise)._less(np.abs(slope) * self.spread)

    def cubic(self, derivatives: Derivatives, third: float, fourth: float) -> Noisy:
        """A function with its value and three derivatives at the middle, and the largest third and fourth ones.

        With c the third one, c t^3 / 6 is c b^2 t / 8 up to c b^3 / 24 where |t| <= b.
        """
        (value, slope, second, c), b = derivatives, self.bend
        rest = 0.25 * np.abs(c) + 0.25 * fourth * b
        better = rest < third
        return self.through(
            value, slope + np.where(better, 0.125 * c * b * b, 0.0), second, np.where(better, rest, third)
        )

    def plus(self, values: Array | float) -> Noisy:
        """The numbers plus exact ones."""
        return Noisy(self.known.plus(values), self.noise)

    def times(self, factor: Array | float) -> Noisy:
        """The numbers times exact ones."""
        found = Noisy(self.known.times(factor), {k: block * factor for k, block in self.noise.items()})
        return found._widened(rounding(np.abs(factor) * self.spread))

    def to(self, weight: Array) -> Noisy:
        """The numbers times a matrix (k, j)."""
        size, k = np.abs(weight), len(weight)
        noise = {at: block @ weight for at, block in self.noise.items()}
        return Noisy(self.known.to(weight), noise)._widened(rounding(self.spread @ size, k + 4))

    def _widened(self, rest: Array) -> Noisy:
        return Noisy(Quadratic(self.known.terms, self.known.rest + rest), self.noise)

    def _less(self, counted: Array) -> Noisy:
        """The numbers without what the noise symbols have already, of the rest."""
        rest = np.maximum(self.known.rest - counted * (1 - 16 * UNIT), 0.0)
        return Noisy(Quadratic(self.known.terms, rest), self.noise)


def _tanh(a: Any) -> tuple[Any, Any]:
    """tanh and its slope, whose third derivative is at most 4.1 and whose fourth one is at most 16."""
    t, slope, second, _ = FUNCTIONS["tanh"](a.middle, a.bend)
    third, fourth = -2 * slope * (1 - 3 * t * t), 8 * t * slope * (2 - 3 * t * t)
    return a.cubic((t, slope, second, third), 2.0, 4.1), a.cubic((slope, second, third, fourth), 4.1, 16.0)


@dataclass(frozen=True)
class Branches:
    """w = B' dV/dx (N, 1) over boxes, of the form within the basin and of the networks outside it."""

    form: Linear
    networks: Linear
    inside: Mask  # (N,) whether the state may be within the basin
    outside: Mask  # (N,) and outside it
    share: Linear  # (N, 1) of the basin's level that the form has

    @property
    def each(self) -> tuple[tuple[Linear, Mask], tuple[Linear, Mask]]:
        """Each formula and where it may hold."""
        return (self.form, self.inside), (self.networks, self.outside)


class Slope:
    """dV/dx of a run over boxes.

    patched: whether many small boxes of two states look it up in patches; cells of more states would fill the memory.
    """

    def __init__(self, solution: Solution, loop: HeldLoop, patched: bool) -> None:
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
        self.target, self.cost, self.level, self.around = loop.target, loop.cost, loop.level, loop.around
        self.patches = Patches(self.model, loop.around, *loop.domain) if patched else None
        self.number: Callable[[Quadratic], Any] = Noisy.of if self.patches is None else lambda known: known

    def __call__(self, x: Linear, B: Linear, enough: Array) -> Branches:
        """Both of its formulas over boxes, where B (N, n) is that of states near x, with the same symbols."""
        e = x.plus(-self.target)
        turns = np.where(self.around, np.round(e.middle / (2 * np.pi)), 0.0) * (2 * np.pi)
        e = e.plus(-turns)
        pe = e.to(self.cost)
        share = (e * pe).to(np.full((len(self.target), 1), 1.0 / self.level))
        low, high = (end[:, 0] for end in share.ends)
        form = (B * pe.times(-2.0)).to(np.ones((len(self.target), 1)))
        out = ~(high < 1.0 - SPARE)
        net = Linear(form.middle.copy(), form.slopes.copy(), form.rest.copy())
        if out.any():
            net.put(out, self.networks(x.rows(out), B.rows(out), enough[out]))
        return Branches(form, net, ~(low > 1.0 + SPARE), out, share)

    def networks(self, x: Linear, B: Linear, enough: Array) -> Linear:
        """w = B' dV/dx (N, 1) of the networks.

        By patches, unless a rest in w above `enough` (N,) may be less.
        """
        ones = np.ones((len(self.target), 1))
        if self.patches is None:
            return by_parts(lambda x, B: (self._gradient(x) * Noisy.of(Quadratic.of(B))).to(ones).whole, x, B).linear
        found, rest = self.patches(x)
        direct = ~((np.abs(B.middle) * rest).sum(1) <= enough) & (x.bend <= NARROW * self.patches.width).all(1)
        if direct.any():
            found.put(direct, self.model(x.rows(direct)).linear)
        return (B * found).to(ones)

    def model(self, x: Linear) -> Quadratic:
        """dV/dx (N, n) of the networks without patches."""
        found: Quadratic = self._gradient(x).whole
        return found

    def _gradient(self, x: Linear) -> Any:
        """The same, `Quadratic` or `Noisy`."""
        known = self._features(x)
        _, _, z, straight, shrinking = known
        y, count, k = straight * shrinking, len(self.at_target), len(self.angles)
        adjoints = [self._adjoints(weights, biases, z, y) for weights, biases in self.members]
        total_z, total_y = (reduce(add, parts) for parts in zip(*adjoints, strict=True))
        sine, cosine, _, _, shrinking = (self.number(part) for part in known)
        y = self.number(y)
        along = (total_y * y).to(np.full((count, count), self.bend))
        dz = total_z + ((total_y - along * y) * shrinking).to(self.metric.T)
        dz, place = dz.times(-2.0 / len(self.members)), np.eye(len(self.target))
        turned = dz[slice(0, k)] * cosine - dz[slice(k, 2 * k)] * sine
        return turned.to(place[self.angles]) + dz[slice(2 * k, count)].times(self.scale).to(place[self.others])

    def value(self, x: Linear) -> Quadratic:
        """V (N, 1) of the networks."""
        return by_parts(self._value, x)

    def _value(self, x: Linear) -> Quadratic:
        _, _, z, straight, shrinking = self._features(x)
        y, ones = straight * shrinking, np.full((len(self.at_target), 1), -1.0 / len(self.members))
        squares: list[Quadratic] = []
        for weights, biases in self.members:
            entries, _ = self._entries(self._hidden(weights, biases, Noisy.of(z))[0].to(weights[-1]).plus(biases[-1]))
            column = (entries * Noisy.of(y[self.rows])).opened.to(np.eye(len(ones))[self.columns])
            squares.append((column * column).to(ones).whole)
        return reduce(add, squares)

    def _features(self, x: Linear) -> tuple[Quadratic, ...]:
        """Sines and cosines of the angles, z, W' (z - z(target)), and the factor that makes an error y of it."""
        of_x, count = Quadratic.of(x), len(self.at_target)
        sine, cosine = (of_x[self.angles].function(kind) for kind in ("sin", "cos"))
        z = beside([sine, cosine, of_x[self.others].times(self.scale)])
        straight = z.plus(-self.at_target).to(self.metric)
        q = (straight * straight).to(np.ones((count, 1))).times(self.bend)
        base, least = 1.0 + q.middle, np.maximum(1.0 + q.middle - q.bend, 1.0)  # 1/sqrt(1 + q/c)
        shrinking = q.through(base**-0.5, -0.5 * base**-1.5, 0.75 * base**-2.5, 1.875 * least**-3.5)[[0] * count]
        return sine, cosine, z, straight, shrinking

    def _hidden(self, weights: list[Array], biases: list[Array], z: Any) -> tuple[Any, list[Any]]:
        """The last hidden layer of a network, and the slopes of all."""
        h, steep = z, []
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            h, slope = _tanh(h.to(weight).plus(bias))
            h = h.opened
            steep.append(slope)
        return h, steep

    def _entries(self, raw: Any) -> tuple[Any, Any]:
        """Entries of L from the outputs of a network, and their slopes by these: softplus on the diagonal."""
        m, D = raw.middle, self.diagonal
        sigmoid = 1 / (1 + np.exp(-m))
        bell, value = sigmoid * (1 - sigmoid), np.where(D, np.logaddexp(0, m) + DIAGONAL_FLOOR, m)
        first, second = np.where(D, sigmoid, 1.0), np.where(D, bell, 0.0)
        entries = raw.through(value, first, second, np.where(D, 0.0963, 0.0)).opened
        return entries, raw.through(first, second, np.where(D, bell * (1 - 2 * sigmoid), 0.0), np.where(D, 0.126, 0.0))

    def _adjoints(self, weights: list[Array], biases: list[Array], z: Quadratic, y: Quadratic) -> tuple[Any, Any]:
        """Adjoints of z and of y in half of |y' L|^2 from one network of the ensemble."""
        h, steep = self._hidden(weights, biases, self.number(z))
        entries, slope = self._entries(h.to(weights[-1]).plus(biases[-1]))
        factor, unit = self.number(y[self.rows]), np.eye(len(self.at_target))
        outer = (entries * factor).opened.to(unit[self.columns])[self.columns]
        adjoint = ((outer * factor).opened * slope).opened
        for weight, at in zip(reversed(weights[1:]), reversed(steep), strict=True):
            adjoint = (adjoint.to(weight.T) * at).opened
        return adjoint.to(weights[0].T), (outer * entries).opened.to(unit[self.rows])


def by_parts(function: Callable[..., Quadratic], *arguments: Linear) -> Quadratic:
    """A function of some boxes at a time, whose noise symbols need much memory."""
    rows = [slice(k, k + TOGETHER) for k in range(0, max(len(arguments[0].middle), 1), TOGETHER)]
    parts = [function(*(x.rows(part) for x in arguments)) for part in rows]
    return Quadratic(np.concatenate([p.terms for p in parts], 1), np.concatenate([p.rest for p in parts]))


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
