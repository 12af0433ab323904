"""One control period of the closed loop in the basin, over cells of states and parameters: e becomes (1 + C) e.

C depends on the states by which the robot is not linear, on the size of w, and on the parameters: these are the symbols
of a cell (`solver.proof.held_loop` has the formulas of A, B and K). One period of length T is

    C = sum_k A^k (A + B K) T^(k+1)/(k+1)!,  and a small disturbance.

A and B change during the period; the terms of this Peano-Baker series contain its integrals, as C is never factored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from modelgen.arrays import Array
from solver.proof.affine import TINY, Affine, Mask, Numbers
from solver.proof.affine import known as known_of
from solver.proof.held_loop import Frame, HeldLoop, evaluated, products

TERMS = 6  # of the Peano-Baker series, which is then cut off with a bound of the rest
INFLATIONS = 6  # of the enclosure of the motion within a period
PIECES = 8  # of the way from the target, in the mean of da0/dx


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


class Moving(NamedTuple):
    """Bent states e +- r of N cells, which move by drift t/T + up to beside t/T in a period, and theta +- spread."""

    e: Array  # (N, b)
    r: Array
    turn: Array  # (N, b, r) by the first symbols
    theta: Array  # (N, p)
    spread: Array
    drift: Array  # (N, b)
    beside: Array
    varied: Numbers  # the parameters that have a symbol each


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
    e, reached = middle[:, :r] @ frame.bent.T, np.abs(turn).sum(2) * (1 + 1e-13) + slack
    _, B, _ = loop.dynamics(*loop.arguments(e, reached, loop.nominal, 0.0), turn, varied, slack)
    gain, inside = loop.gain(middle[:, :r], half[:, :r], B, frame, radius)
    forth, to = _inverse(loop, frame.back, B.symbols), Affine.exact(frame.back, B.symbols)
    where = frame.basis, middle[:, :r], half[:, :r], radius
    ways = np.zeros((2, len(cells), len(loop.target)))  # the motion is ways[0] t/T, up to ways[1] t/T
    pushed = _pushed(loop, theta, spread)
    heading = Heading.of(*where)
    for k in range(INFLATIONS):
        drift, beside = ways[:, :, loop.bent]
        moving = Moving(e, reached, turn, theta, spread, drift, beside + slack, varied)
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
    turning, mean = _straight(loop, moving, (A, mean_A), (turning, forth @ mean_A @ to), forth, to, known)
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


def _at_target(loop: HeldLoop, theta: Array, spread: Array) -> tuple[Array, Array, Array]:
    """Middles (N, n), slopes (N, n, p) and rests (N, n) of the rates at the target by theta +- spread."""
    middle, slopes, rest = evaluated(
        loop.kernels[1], *loop.arguments(np.zeros((len(theta), len(loop.bent))), 0.0, theta, spread)
    )
    return middle, slopes[:, :, len(loop.bent) :], rest


def _pushed(loop: HeldLoop, theta: Array, spread: Array) -> Array:
    """Largest rates (N, n) at the target."""
    drift, slopes, rest = _at_target(loop, theta, spread)
    size: Array = np.abs(drift) + (np.abs(slopes) * spread[:, None]).sum(2) * (1 + 1e-13) + rest
    return size


def _inverse(loop: HeldLoop, back: Array, symbols: int) -> Affine:
    """The inverse (d, n) of back on the states that P sees, with zero columns for others."""
    d, n = len(loop.seen), len(loop.target)
    found = Affine.exact(back[loop.seen]).inverse()
    middle, rest = np.zeros((d, n)), np.zeros((d, n))
    middle[:, loop.seen], rest[:, loop.seen] = found.middle, found.rest
    return Affine(middle, np.zeros((symbols, d, n)), rest)


def _along(loop: HeldLoop, moving: Moving) -> tuple[Affine, Affine, Affine, Affine]:
    """A (N, n, n) and B (N, n, m) at any time of a period, then their means over it."""
    e, r, turn, theta, spread, drift, beside, varied = moving
    h, total, n = 0.5 / PIECES, None, len(loop.target)
    middle, moved = e + 0.5 * drift, 0.5 * np.abs(drift) + beside
    tilted: Array = np.zeros((len(e), n * (n + len(loop.trim))))
    for j in range(PIECES):
        s = (2 * j + 1) * h
        box = loop.arguments(s * middle, h * np.abs(middle) + (s + h) * (r + moved), theta, spread)
        A, _, steep = loop.dynamics(*box, s * turn, varied, 0.5 * s * beside)
        tilted += s / PIECES * (steep @ (moved - 0.5 * beside)[..., None])[..., 0]
        total = A if total is None else total + A
    assert total is not None
    _, B, steep = loop.dynamics(*loop.arguments(middle, r + moved, theta, spread), turn, varied, 0.5 * beside)
    A, of_A = total.times(1.0 / PIECES), tilted[:, : n * n].reshape(-1, n, n)
    of_B = (steep[:, n * n :] @ (moved - 0.5 * beside)[..., None])[..., 0].reshape(-1, n, len(loop.trim))
    return A.widened(of_A * (1 + 1e-12)), B.widened(of_B * (1 + 1e-12)), A, B


def _straight(
    loop: HeldLoop,
    moving: Moving,
    along: tuple[Affine, Affine],
    turning: tuple[Affine, Affine],
    forth: Affine,
    to: Affine,
    known: tuple[Array, Array, Array],
) -> tuple[Affine, Affine]:
    """forth A back at any time of a period and its mean, where a narrow cell makes it narrower than `turning`.

    along: A and its mean. a0 - a0(target) = A e also holds for A = J + rho g'/(g'e) of any matrix J and direction
    g, with rho = a0 - a0(target) - J e. A narrow cell knows g'e. J is the middle of `along`.
    """
    e, r, turn, theta, spread, drift, beside, varied = moving
    row, middle_q, radius_q = Affine.exact(known[0][:, None], to.symbols), known[1], known[2]
    b = len(loop.bent)
    middle, moved = e + 0.5 * drift, 0.5 * np.abs(drift) + beside
    J = along[0].middle[:, :, loop.bent]
    value, slopes, rest = evaluated(loop.kernels[1], *loop.arguments(middle, r + moved, theta, spread))
    at_target = _at_target(loop, theta, spread)
    tilt = slopes[:, :, :b] - J
    linear = loop.linear(np.concatenate([tilt, slopes[:, :, b:] - at_target[1]], 2), turn, spread, varied)
    size = np.abs(J) @ np.abs(middle)[..., None] + np.abs(value)[..., None]
    value = value - at_target[0] - (J @ middle[..., None])[..., 0]
    rest = rest + at_target[2] + 1e-14 * (size[..., 0] + np.abs(linear).sum(1) + (np.abs(tilt) @ r[..., None])[..., 0])
    found: list[Affine] = []
    size, q = np.zeros(()), middle_q[:, None, None]
    for A, loose, beyond in zip(along, turning, (moved, 0.5 * beside), strict=True):
        wide = (rest + (np.abs(tilt) @ beyond[..., None])[..., 0])[..., None] * (1 + 1e-12)
        rho = forth @ Affine(value[..., None], linear[..., None], wide)
        if not found:  # at any time: it also bounds the product of two changes in the mean
            size = rho.largest * (radius_q[:, None, None] + 1e-15 * q)
        rho = known_of(rho.middle * q, rho.slopes * q[..., None], rho.rest * q + size)
        base = Affine(A.middle.copy(), A.slopes.copy(), A.rest.copy())
        base.middle[..., loop.bent] = J
        base.slopes[..., loop.bent], base.rest[..., loop.bent] = 0.0, 0.0
        narrow = forth @ base @ to + rho @ row
        found.append(_either(narrow.rest.sum((1, 2)) < loose.rest.sum((1, 2)), narrow, loose))
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


def _either(first: Mask, a: Affine, b: Affine) -> Affine:
    """a where first (N,) is set, else b."""
    here = first[:, None, None]
    return Affine(
        np.where(here, a.middle, b.middle),
        np.where(here[..., None], a.slopes, b.slopes),
        np.where(here, a.rest, b.rest),
    )
