"""One control period of the closed loop in the basin, over cells of states and parameters: e becomes (1 + C) e.

C depends on the states by which the robot is not linear, on the size of w, and on the parameters: these are the symbols
of a cell (`solver.proof.held_loop` has the formulas of A, B and K). One period of length T is

    C = sum_k A^k (A + B K) T^(k+1)/(k+1)!,  and a small disturbance.

A and B change during the period; the terms of this Peano-Baker series contain its integrals, as C is never factored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelgen.arrays import Array
from solver.proof.affine import TINY, Affine, Mask, Numbers
from solver.proof.affine import known as known_of
from solver.proof.held_loop import Frame, HeldLoop, products
from solver.proof.quadratic import Quadratic

TERMS = 6  # of the Peano-Baker series, which is then cut off with a bound of the rest
INFLATIONS = 6  # of the enclosure of the motion within a period
PIECES = 4  # of the way from the target, in the mean of da0/dx


@dataclass(frozen=True)
class Cells:
    """N sets of errors and parameters: intervals of z = basis' y and of theta."""

    lower: Array  # (N, r + p)
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, index: slice | Mask | Numbers) -> Cells:
        return Cells(self.lower[index], self.upper[index])

    def varied(self, r: int) -> Numbers:
        """Indices of the parameters that are not the same number in every cell."""
        return np.flatnonzero((self.upper > self.lower)[:, r:].any(0))


@dataclass(frozen=True)
class Moving:
    """Bent states of N cells, e + turn z, which move by drift t/T up to `beside` in a period T, and parameters.

    The symbols are those of z and of the parameters with a spread, then one of the way from the target and one of time.
    """

    e: Array  # (N, b)
    turn: Array  # (N, b, r)
    theta: Array  # (N, p)
    spread: Array  # (N, p)
    drift: Array  # (N, b)
    beside: Array  # (N, b)
    varied: Numbers  # parameters with a spread

    @property
    def known(self) -> int:
        """Number of the symbols of a cell."""
        return int(self.turn.shape[2]) + len(self.varied)

    def errors(self, low: float, high: float) -> list[Quadratic]:
        """The bent states times the shares between low and high of the way from the target."""
        middle, r, d = self.e + 0.5 * self.drift, self.turn.shape[2], self.known + 2
        s, h = 0.5 * (low + high), 0.5 * (high - low)
        terms = np.zeros((1 + d + d * (d + 1) // 2, *self.e.shape))
        terms[0], terms[d - 1], terms[d] = s * middle, h * middle, 0.5 * s * self.drift
        turns = np.moveaxis(self.turn, 2, 0)
        first, second = np.triu_indices(d)
        terms[1 : 1 + r] = s * turns
        terms[1 + d :][(second == d - 2) & (first < r)] = h * turns
        terms[1 + d :][(first == d - 2) & (second == d - 1)] = 0.5 * h * self.drift
        rest = high * self.beside + 1e-15 * (np.abs(middle) + np.abs(self.drift) + np.abs(turns).sum(0))
        return [Quadratic(terms[:, :, k : k + 1], rest[:, k : k + 1]) for k in range(self.e.shape[1])]

    def parameters(self) -> list[Quadratic]:
        """theta (N, 1), each."""
        r, places = self.turn.shape[2], {int(k): j for j, k in enumerate(self.varied)}
        slopes = [{r + places[k]: self.spread[:, k]} if k in places else {} for k in range(self.theta.shape[1])]
        rest = 1e-15 * np.abs(self.theta)
        return [Quadratic.box(self.theta[:, k], slope, rest[:, k], self.known + 2) for k, slope in enumerate(slopes)]


@dataclass(frozen=True)
class Heading:
    """The direction g in which a cell lies from the target, and what is known of g'y."""

    g: Array  # (N, d)
    least: Array  # (N,) of g'y at the beginning of a period
    most: Array

    @classmethod
    def of(cls, basis: Array, z: Array, half: Array, radius: float) -> Heading:
        """The heading of cells of basis' y in z +- half (N, r)."""
        g = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), TINY)
        middle, width = (g * z).sum(1), (np.abs(g) * half).sum(1) + 1e-12 * radius
        return cls(g @ basis.T, middle - width, middle + width)

    def after(self, speed: tuple[Array, Array], turning: Array, push: Array) -> tuple[Array, Array, Array]:
        """g, and the middle and radius (N,) of 1/g'y during a period; the radius is infinite if g'y may be 0.

        speed: middles and radii (N, d) of the motion of y in a period at its first rate. turning: (N, d, d) sizes of A
        T in these coordinates. push: (N, d) of the motion that does not come from y.
        """
        norms = turning.sum(-1).max(-1)
        way = np.abs(speed[0]) + speed[1] + push
        more = way + np.exp(norms)[:, None] * (turning @ way[..., None])[..., 0].max(1, keepdims=True)  # of |y - y0|
        along, spare = (self.g * speed[0]).sum(1), speed[1] + push + 0.5 * (turning @ more[..., None])[..., 0]
        wide = (np.abs(self.g) * spare).sum(1) * (1 + 1e-12)
        least, most = self.least + np.minimum(along, 0) - wide, self.most + np.maximum(along, 0) + wide
        high, low = (1 + 1e-14) / least, (1 - 1e-14) / most
        known = (least > 0) & np.isfinite(most)
        return self.g, np.where(known, 0.5 * (low + high), 1.0), np.where(known, 0.5 * (high - low), np.inf)


@dataclass(frozen=True)
class Period:
    """One control period from N cells, in the coordinates y of a frame with |y| <= radius."""

    change: Affine  # (N, d, d) C: y becomes (1 + C) y + disturbance
    disturbance: Array  # (N,) its largest norm
    known: Mask  # (N,) the motion stays within the limits, and the policy within the basin


@np.errstate(all="ignore")  # nothing is known of a wide cell, and what is not finite is not shown
def one_period(loop: HeldLoop, cells: Cells, frame: Frame, radius: float, input_error: Array) -> Period:
    """One control period from N cells of |y| <= radius. input_error: bound (m,) of the error of the input."""
    r = frame.basis.shape[1]
    middle, half = 0.5 * (cells.lower + cells.upper), 0.5 * (cells.upper - cells.lower) * (1 + 1e-14)
    half = half + 1e-15 * np.abs(middle)
    theta, varied = middle[:, r:], cells.varied(r)
    spread = np.zeros_like(theta)  # that of a number without an interval is exact
    spread[:, varied] = half[:, r + varied]
    turn = frame.bent * half[:, None, :r]
    slack = radius * np.broadcast_to(frame.missed[: len(loop.bent)], (len(cells), len(loop.bent)))
    e = middle[:, :r] @ frame.bent.T
    start = Moving(e, turn, theta, spread, np.zeros_like(e), slack, varied)
    n, m, d = len(loop.target), len(loop.trim), start.known
    B = loop.control(start.errors(1.0, 1.0), len(e), d + 2).affine(n, m, d, m)
    gain, inside = loop.gain(middle[:, :r], half[:, :r], B, frame, radius)
    forth, to = _inverse(loop, frame.back, B.symbols), Affine.exact(frame.back, B.symbols)
    where = frame.basis, middle[:, :r], half[:, :r], radius
    ways = np.zeros((2, len(cells), len(loop.target)))  # the motion is ways[0] t/T, up to ways[1] t/T
    none = [Quadratic.box(np.zeros(len(e)), {}, 0.0, d + 2)] * len(loop.bent)
    at_target = loop.over(loop.equations.drift, none, start.parameters(), len(e), d + 2)
    pushed = np.abs(at_target.middle) + at_target.bend
    heading = Heading.of(*where)
    for k in range(INFLATIONS):
        drift, beside = ways[:, :, loop.bent]
        moving = Moving(e, turn, theta, spread, drift, beside + slack, varied)
        A, B, mean_A, mean_B = _along(loop, moving)
        still = np.minimum(pushed + B.largest @ input_error, 1e30)
        push = np.minimum((forth.largest @ still[..., None])[..., 0], 1e30) * loop.step
        rates, of_u = A @ to + B @ gain, forth @ B @ gain
        turning = forth @ A @ to
        speed = products((turning + of_u).times(loop.step), *where)
        known = heading.after(speed, turning.largest * loop.step, push)
        found = _ways(loop, A, rates, still, where, ways)
        good = np.asarray((found[1] <= ways[1]).all(1)) & (k > 0)
        if good.all() or k == INFLATIONS - 1:
            break
        found[1] = np.minimum(1.1 * found[1] + 1e-12, 1e3)
        ways = np.where(good[:, None], ways, found)
    turning, mean = _straight(loop, moving, at_target, (A, mean_A), (turning, forth @ mean_A @ to), forth, to, known)
    first = (mean + forth @ mean_B @ gain).times(loop.step)
    change, disturbance = _series(loop, turning, turning + of_u, first, push)
    reach = radius * np.linalg.norm(frame.back, axis=1) * (1 + 1e-12)
    within = (reach + np.abs(ways[0]) + ways[1] <= loop.bound)[:, loop.seen].all(1)
    return Period(change, disturbance, inside & good & within & np.isfinite(change.rest).all((1, 2)))


def _ways(
    loop: HeldLoop, A: Affine, rates: Affine, still: Array, where: tuple[Array, Array, Array, float], ways: Array
) -> Array:
    """The motion ways[0] t/T in a period T, and how far (N, n) from it at most, if no state moves beyond `ways`."""
    middle, spare = products(rates, *where)
    size = np.abs(ways[0]) + ways[1]
    if not ways.any():
        ways = np.stack([loop.step * (middle + 0.5 * loop.step * (A.middle @ middle[..., None])[..., 0]), ways[1]])
        ways[0] = np.clip(ways[0], -1e3, 1e3)
        size = np.abs(ways[0]) + loop.step * (spare + still)
    beside = np.abs(loop.step * middle - ways[0]) + loop.step * (spare + still)
    beside += 0.5 * loop.step * (A.largest @ size[..., None])[..., 0]
    return np.stack([ways[0], beside * (1 + 1e-12)])


def _inverse(loop: HeldLoop, back: Array, symbols: int) -> Affine:
    """The inverse (d, n) of back on the states that P sees, with zero columns for others."""
    d, n = len(loop.seen), len(loop.target)
    found = Affine.exact(back[loop.seen]).inverse()
    middle, rest = np.zeros((d, n)), np.zeros((d, n))
    middle[:, loop.seen], rest[:, loop.seen] = found.middle, found.rest
    return Affine(middle, np.zeros((symbols, d, n)), rest)


def _along(loop: HeldLoop, moving: Moving) -> tuple[Affine, Affine, Affine, Affine]:
    """A (N, n, n) and B (N, n, m) at any time of a period, then their means over it."""
    n, m, count, d = len(loop.target), len(loop.trim), len(moving.e), moving.known
    theta, total = moving.parameters(), None
    for j in range(PIECES):
        errors = moving.errors(j / PIECES, (j + 1) / PIECES)
        A = loop.over(loop.equations.slopes, errors, theta, count, d + 2).mean(d)
        total = A if total is None else total + A
    assert total is not None
    A = total.times(1.0 / PIECES)
    B = loop.over(loop.equations.control, moving.errors(1.0, 1.0), theta, count, d + 2)
    of_A, of_B = ((part, part.mean(d + 1)) for part in (A, B))
    return (
        of_A[0].affine(n, n, d, m),
        of_B[0].affine(n, m, d, m),
        of_A[1].affine(n, n, d, m),
        of_B[1].affine(n, m, d, m),
    )


def _straight(
    loop: HeldLoop,
    moving: Moving,
    at_target: Quadratic,
    along: tuple[Affine, Affine],
    turning: tuple[Affine, Affine],
    forth: Affine,
    to: Affine,
    known: tuple[Array, Array, Array],
) -> tuple[Affine, Affine]:
    """forth A back at any time of a period and its mean, where a narrow cell makes it narrower than `turning`.

    at_target: a0 there. along: A and its mean. a0 - a0(target) = A e also holds for A = J + rho g'/(g'e) of any matrix
    J and direction g, with rho = a0 - a0(target) - J e. A narrow cell knows g'e. J is the middle of `along`.
    """
    row, middle_q, radius_q = Affine.exact(known[0][:, None], to.symbols), known[1], known[2]
    n, m, count, d = len(loop.target), len(loop.trim), len(moving.e), moving.known
    J, errors = along[0].middle[:, :, loop.bent], moving.errors(1.0, 1.0)
    bent = loop.over(loop.equations.drift, errors, moving.parameters(), count, d + 2) - at_target
    for k, e in enumerate(errors):
        bent = bent - e.times(J[:, :, k])
    found: list[Affine] = []
    size, q = np.zeros(()), middle_q[:, None, None]
    for A, loose, part in zip(along, turning, (bent, bent.mean(d + 1)), strict=True):
        rho = forth @ part.affine(n, 1, d, m)
        if not found:  # at any time: it also bounds the product of two changes in the mean
            size = rho.largest * (radius_q[:, None, None] + 1e-15 * q)
        rho = known_of(rho.middle * q, rho.slopes * q[..., None], rho.rest * q + size)
        base = Affine(A.middle.copy(), A.slopes.copy(), A.rest.copy())
        base.middle[..., loop.bent] = J
        base.slopes[..., loop.bent], base.rest[..., loop.bent] = 0.0, 0.0
        narrow = forth @ base @ to + rho @ row
        found.append(narrow.where(narrow.rest.sum((1, 2)) < loose.rest.sum((1, 2)), loose))
    return found[0], found[1]


def _series(loop: HeldLoop, turning: Affine, rates: Affine, first: Affine, push: Array) -> tuple[Affine, Array]:
    """C (N, d, d), and the norm (N,) of the disturbance. first: T times the mean of `rates`."""
    term, total = rates.times(loop.step), first
    size = np.minimum(turning.largest, 1e30) * loop.step
    norms, gone = size.sum(-1).max(-1), push
    for k in range(1, TERMS):
        term = (turning @ term).times(loop.step / (k + 1))
        total = total + term
        push = (size @ push[..., None])[..., 0] / (k + 1)
        gone = gone + push
    tail = np.exp(norms) * norms / (TERMS + 1)
    rest, more = tail[:, None] * term.largest.max(1), tail * push.max(1)
    total = total.widened(np.broadcast_to(rest[:, None], total.rest.shape))
    gone = np.minimum((gone + more[:, None]) * (1 + 1e-12), 1e100)  # where nothing is known
    return total, np.linalg.norm(gone, axis=1) * (1 + 1e-12)
