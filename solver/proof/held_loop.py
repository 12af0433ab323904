"""One control period of the closed loop in the basin as a matrix: e becomes (1 + C) e, up to a small disturbance.

The error is e = x - target. In the basin V = -e' P e, so that the policy is u = u0 + d with

    u = grad g~(w - H d),   w = -2 B(x)' P e,   H = 2 h B(x)' P B(x),

where h is the time for which the policy assumes that its input is held (`solver.game.policies`; 0 is the closed form).
With S the slope of the chord of grad g~ from the target, d = (1 + S H)^-1 S w = K e. The drift a0 = a + B u0 is
a0(target) + A e with A the mean of da0/dx on the way from the target. Both matrices depend on the states by which the
robot is not linear, on the size of w, and on the parameters: these are the symbols of a cell. One period of length T is

    C = sum_k A^k (A + B K) T^(k+1)/(k+1)!.

A and B change during the period; the terms of this Peano-Baker series contain its integrals, as C is never factored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.backends import Kernels
from modelgen.loader import CompiledRobot
from modelgen.program.differentiate import reverse
from modelgen.program.enclosure import affine
from modelgen.program.functions import Program
from modelgen.program.graph import Graph, Node
from solver.errors import SolverError
from solver.game.policies import SHORTEST
from solver.proof.affine import TINY, Affine
from solver.proof.affine import known as known_of
from solver.training.solution import Solution

Mask = NDArray[np.bool_]

RANK = 1e-7  # smaller directions of unit rows count as none
TERMS = 6  # of the Peano-Baker series, which is then cut off with a bound of the rest
CORRECTIONS = 4  # of the enclosure of the input
INFLATIONS = 6  # of the enclosure of the motion within a period
PIECES = 8  # of the way from the target, in the mean of da0/dx
CHORDS = 16  # of the way from the target, in the mean of the slope of grad g~


@dataclass(frozen=True)
class Cells:
    """N sets of errors and parameters: intervals of z = basis' y and of theta."""

    lower: Array  # (N, r + p)
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, index: slice | Mask) -> Cells:
        return Cells(self.lower[index], self.upper[index])


@dataclass(frozen=True)
class Frame:
    """Coordinates y of errors e = back y, and z = basis' y that bent states and w0 = -2 B(target)' P e depend on."""

    back: Array  # (n, d)
    basis: Array  # (d, r) orthonormal columns, the one of most influence first
    bent: Array  # (b, r): bent states from z
    argument: Array  # (m, r): w0 from z
    missed: Array  # (b + m,) largest errors of both for |y| = 1


class Moving(NamedTuple):
    """Bent states e +- r of N cells, which move by drift t/T + up to beside t/T in a period, and theta +- spread."""

    e: Array  # (N, b)
    r: Array
    turn: Array  # (N, b, r) by the first symbols
    theta: Array  # (N, p)
    spread: Array
    drift: Array  # (N, b)
    beside: Array
    symbols: int


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


class HeldLoop:
    """Closed loop of a trained policy in its basin. The policy knows the nominal parameters.

    solution: the run, whose basin has a level above zero. Raises SolverError if its policy counts on the drift.
    """

    def __init__(self, solution: Solution) -> None:
        problem, basin = solution.problem, solution.ensemble.basin
        if solution.run.settings.drift:
            raise SolverError(
                f"the policy of {solution.label} counts on the drift within the hold (setting `drift`), and the "
                "enclosure of its input does not; train without `drift` to prove it"
            )
        self.robot: CompiledRobot = problem.robot
        self.nominal = np.asarray(self.robot.nominal_parameters, np.float64)
        self.step = problem.control_step
        self.hold = solution.run.settings.hold.seconds(problem)
        self.target = basin.target.double().numpy()
        self.cost, self.level = basin.cost.double().numpy(), float(basin.level)
        self.cost = 0.5 * (self.cost + self.cost.T)
        states = self.robot.metadata.states
        self.bound = np.array([np.pi if state.continuous else state.limit for state in states])
        self.bound = np.where([state.continuous for state in states], np.pi, self.bound - np.abs(self.target))
        self.trim = np.asarray(self.robot.trim, np.float64)
        self.middle = np.array([entry.middle for entry in self.robot.metadata.inputs])
        self.limit = np.array([entry.limit for entry in self.robot.metadata.inputs])
        self.seen = np.flatnonzero(np.abs(self.cost).max(0) > 0)
        self.unseen = np.setdiff1d(np.arange(len(self.target)), self.seen)
        self.bent, self.closed = self._structure()
        middle = self.arguments(np.zeros((1, len(self.bent))), 0.0, self.nominal[None], 0.0)
        at_target = self._dynamics(*middle, np.zeros((1, len(self.bent), 0)), len(self.nominal))
        self.argument = -2.0 * at_target[1].middle[0].T @ self.cost  # w0 = argument e

    def frame(self, back: Array) -> Frame:
        """The frame of a matrix back (n, d)."""
        rows = np.vstack([back[self.bent], self.argument @ back])
        _, sizes, right = np.linalg.svd(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY))
        basis = right[: int((sizes > RANK).sum())].T
        of_z = rows @ basis
        missed = np.linalg.norm(rows - of_z @ basis.T, axis=1) + 1e-13 * np.linalg.norm(rows, axis=1)
        return Frame(back, basis, of_z[: len(self.bent)], of_z[len(self.bent) :], missed)

    # -- formulas of the model ---------------------------------------------------------------------------------------

    def _rates(self, graph: Graph, x: list[Node], theta: list[Node]) -> tuple[list[Node], list[Node], list[Node]]:
        """Nodes of a0 (n,), da0/dx (n, n) and B (n, m) at nodes of x and theta."""
        program, n, m = self.robot.program, len(self.target), len(self.trim)
        outputs = {output.name: output.entries for output in program.function("jacobians").outputs}
        known = dict(zip(program.arguments["x"].entries, x, strict=True))
        known |= dict(zip(program.arguments["theta"].entries, theta, strict=True))
        a, B, da, dB = (graph.absorb(program.graph, outputs[name], known) for name in ("a", "B", "da_dx", "dB_dx"))
        trim = [graph.constant(value) for value in self.trim]
        drift = [graph.add(a[i], graph.sum(graph.mul(B[i * m + k], trim[k]) for k in range(m))) for i in range(n)]
        slopes = [
            graph.add(da[i * n + j], graph.sum(graph.mul(dB[(i * m + k) * n + j], trim[k]) for k in range(m)))
            for i in range(n)
            for j in range(n)
        ]
        return drift, slopes, list(B)

    def _structure(self) -> tuple[list[int], bool]:
        """Indices (b,) of the states that da0/dx and B depend on, and whether the motion that P sees needs no other."""
        graph = Graph()
        x = inputs_of(graph, len(self.target), "x")
        _, slopes, B = self._rates(graph, x, inputs_of(graph, len(self.nominal), "p"))
        reached = set(graph.reachable([*slopes, *B]))
        bent = [k for k, node in enumerate(x) if node in reached]
        n, zero = len(x), graph.zero
        alone = all(slopes[i * n + j] == zero for i in self.seen for j in self.unseen)
        return bent, alone and set(bent) <= set(self.seen)

    @cached_property
    def kernels(self) -> tuple[Kernels, Kernels, Kernels]:
        """Enclosures of (da0/dx, B) by bent states and theta, of a0 by the same, and of grad g~ and its slopes."""
        graph, n = Graph(), len(self.target)
        theta, moving = inputs_of(graph, len(self.nominal), "p"), inputs_of(graph, n, "x")
        x = [moving[k] if k in self.bent else graph.constant(self.target[k]) for k in range(n)]
        _, slopes, B = self._rates(graph, x, theta)
        still, *_ = self._rates(graph, x, theta)
        digest = self.robot.program.digest
        of_robot = Program(graph, (), digest=digest)
        model = affine(of_robot, [*slopes, *B], [*(moving[k] for k in self.bent), *theta])
        drift = affine(of_robot, still, [*(moving[k] for k in self.bent), *theta])
        program, graph = self.robot.program, Graph()
        w = program.arguments["w"].entries
        places = {node: graph.input(f"w{k}") for k, node in enumerate(w)}
        policy = graph.absorb(program.graph, program.function("optimal_input").roots, places)
        steep = [reverse(graph, {root: graph.one}, [places[w[k]]])[0] for k, root in enumerate(policy)]
        inputs = affine(Program(graph, (), digest=digest), [*policy, *steep], list(places.values()))
        return self.robot.compiled(model), self.robot.compiled(drift), self.robot.compiled(inputs)

    def arguments(
        self, middle: Array, radius: Array | float, theta: Array, spread: Array | float
    ) -> tuple[Array, Array]:
        """Arguments of the first kernel from errors (N, b) of bent states and parameters (N, p)."""
        count = len(middle)
        values = np.hstack([middle + self.target[self.bent], np.broadcast_to(theta, (count, len(self.nominal)))])
        widths = np.hstack([np.broadcast_to(radius, middle.shape), np.broadcast_to(spread, (count, len(self.nominal)))])
        return values, widths

    def _dynamics(
        self, values: Array, widths: Array, turn: Array, symbols: int, beyond: Array | None = None
    ) -> tuple[Affine, Affine, Array]:
        """da0/dx (N, n, n) and B (N, n, m) over boxes of bent states and theta, and their slopes (N, n (n + m), b).

        turn: (N, b, r) of the bent states by the first symbols; those of theta are next. beyond: by how much (N, b)
        they differ from that at most.
        """
        n, m, b, count = len(self.target), len(self.trim), len(self.bent), len(values)
        middle, slopes, rest = evaluated(self.kernels[0], values, widths)
        linear = np.concatenate([slopes[:, :, :b] @ turn, slopes[:, :, b:] * widths[:, None, b:]], 2)
        linear = np.moveaxis(linear, 1, 2)  # (N, r + p, k)
        steep = np.abs(slopes)
        if beyond is not None:
            rest = rest + (steep[:, :, :b] @ beyond[..., None])[..., 0] * (1 + 1e-13)
        rest = rest + 1e-14 * (np.abs(middle) + (steep @ widths[..., None])[..., 0])
        more = np.zeros((count, symbols, middle.shape[1]))
        more[:, : linear.shape[1]] = linear
        return (
            _matrices(middle[:, : n * n], more[:, :, : n * n], rest[:, : n * n], n, n),
            _matrices(middle[:, n * n :], more[:, :, n * n :], rest[:, n * n :], n, m),
            steep[:, :, :b],
        )

    # -- one period --------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # nothing is known of a wide cell, and what is not finite is not shown
    def period(self, cells: Cells, frame: Frame, radius: float, input_error: Array) -> Period:
        """One control period from N cells of |y| <= radius. input_error: bound (m,) of the error of the input."""
        r, m, p = frame.basis.shape[1], len(self.trim), len(self.nominal)
        middle, half = 0.5 * (cells.lower + cells.upper), 0.5 * (cells.upper - cells.lower) * (1 + 1e-14)
        half = half + 1e-15 * np.abs(middle)
        theta, spread = middle[:, r:], half[:, r:]
        turn = frame.bent * half[:, None, :r]
        slack = radius * np.broadcast_to(frame.missed[: len(self.bent)], (len(cells), len(self.bent)))
        e, reached = middle[:, :r] @ frame.bent.T, np.abs(turn).sum(2) * (1 + 1e-13) + slack
        symbols = r + p + m
        _, B, _ = self._dynamics(*self.arguments(e, reached, self.nominal, 0.0), turn, symbols, slack)
        K, inside = self._gain(middle[:, :r], half[:, :r], B, frame, radius)
        forth, to = self._inverse(frame.back, symbols), Affine.exact(frame.back, symbols)
        gain, where = K @ to, (frame.basis, middle[:, :r], half[:, :r], radius)
        ways = np.zeros((2, len(cells), len(self.target)))  # the motion is ways[0] t/T, up to ways[1] t/T
        pushed = self._pushed(theta, spread)
        heading = Heading.of(*where)
        for k in range(INFLATIONS):
            drift, beside = ways[:, :, self.bent]
            moving = Moving(e, reached, turn, theta, spread, drift, beside + slack, symbols)
            A, B, mean_A, mean_B = self._along(moving)
            still = np.minimum(pushed + B.largest @ input_error, 1e30)
            push = np.minimum((forth.largest @ still[..., None])[..., 0], 1e30) * self.step
            rates, of_u = A @ to + B @ gain, forth @ B @ gain
            turning = forth @ A @ to
            speed = _products((turning + of_u).times(self.step), *where)
            known = heading.after(speed, turning.largest * self.step, push)
            found = self._ways(A, rates, still, where, ways)
            good = np.asarray((found[1] <= ways[1]).all(1)) & (k > 0)
            if good.all() or k == INFLATIONS - 1:
                break
            found[1] = np.minimum(1.1 * found[1] + 1e-12, 1e3)
            ways = np.where(good[:, None], ways, found)
        turning, mean = self._straight(moving, (A, mean_A), (turning, forth @ mean_A @ to), forth, to, known)
        first = (mean + forth @ mean_B @ gain).times(self.step)
        change, disturbance = self._series(turning, turning + of_u, first, push)
        reach = radius * np.linalg.norm(frame.back, axis=1) * (1 + 1e-12)
        within = (reach + np.abs(ways[0]) + ways[1] <= self.bound)[:, self.seen].all(1)
        return Period(change, disturbance, inside & good & within & np.isfinite(change.rest).all((1, 2)))

    def _ways(
        self, A: Affine, rates: Affine, still: Array, where: tuple[Array, Array, Array, float], ways: Array
    ) -> Array:
        """The motion ways[0] t/T in a period T, and how far (N, n) from it at most, if no state moves beyond `ways`."""
        middle, spare = _products(rates, *where)
        size = np.abs(ways[0]) + ways[1]
        if not ways.any():
            ways = np.stack([self.step * (middle + 0.5 * self.step * (A.middle @ middle[..., None])[..., 0]), ways[1]])
            ways[0] = np.clip(ways[0], -1e3, 1e3)
            size = np.abs(ways[0]) + self.step * (spare + still)
        beside = np.abs(self.step * middle - ways[0]) + self.step * (spare + still)
        beside += 0.5 * self.step * (A.largest @ size[..., None])[..., 0]
        return np.stack([ways[0], beside * (1 + 1e-12)])

    def _at_target(self, theta: Array, spread: Array) -> tuple[Array, Array, Array]:
        """Middles (N, n), slopes (N, n, p) and rests (N, n) of the rates at the target by theta +- spread."""
        middle, slopes, rest = evaluated(
            self.kernels[1], *self.arguments(np.zeros((len(theta), len(self.bent))), 0.0, theta, spread)
        )
        return middle, slopes[:, :, len(self.bent) :], rest

    def _pushed(self, theta: Array, spread: Array) -> Array:
        """Largest rates (N, n) at the target."""
        drift, slopes, rest = self._at_target(theta, spread)
        size: Array = np.abs(drift) + (np.abs(slopes) * spread[:, None]).sum(2) * (1 + 1e-13) + rest
        return size

    def _inverse(self, back: Array, symbols: int) -> Affine:
        """The inverse (d, n) of back on the states that P sees, with zero columns for others."""
        d, n = len(self.seen), len(self.target)
        found = Affine.exact(back[self.seen]).inverse()
        middle, rest = np.zeros((d, n)), np.zeros((d, n))
        middle[:, self.seen], rest[:, self.seen] = found.middle, found.rest
        return Affine(middle, np.zeros((symbols, d, n)), rest)

    def _along(self, moving: Moving) -> tuple[Affine, Affine, Affine, Affine]:
        """A (N, n, n) and B (N, n, m) at any time of a period, then their means over it."""
        e, r, turn, theta, spread, drift, beside, symbols = moving
        h, total, n = 0.5 / PIECES, None, len(self.target)
        middle, moved = e + 0.5 * drift, 0.5 * np.abs(drift) + beside
        tilted: Array = np.zeros((len(e), n * (n + len(self.trim))))
        for j in range(PIECES):
            s = (2 * j + 1) * h
            box = self.arguments(s * middle, h * np.abs(middle) + (s + h) * (r + moved), theta, spread)
            A, _, steep = self._dynamics(*box, s * turn, symbols, 0.5 * s * beside)
            tilted += s / PIECES * (steep @ (moved - 0.5 * beside)[..., None])[..., 0]
            total = A if total is None else total + A
        assert total is not None
        _, B, steep = self._dynamics(*self.arguments(middle, r + moved, theta, spread), turn, symbols, 0.5 * beside)
        A, of_A = total.times(1.0 / PIECES), tilted[:, : n * n].reshape(-1, n, n)
        of_B = (steep[:, n * n :] @ (moved - 0.5 * beside)[..., None])[..., 0].reshape(-1, n, len(self.trim))
        return A.widened(of_A * (1 + 1e-12)), B.widened(of_B * (1 + 1e-12)), A, B

    def _straight(
        self,
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
        e, r, turn, theta, spread, drift, beside, symbols = moving
        row, middle_q, radius_q = Affine.exact(known[0][:, None], symbols), known[1], known[2]
        b = len(self.bent)
        middle, moved = e + 0.5 * drift, 0.5 * np.abs(drift) + beside
        J = along[0].middle[:, :, self.bent]
        value, slopes, rest = evaluated(self.kernels[1], *self.arguments(middle, r + moved, theta, spread))
        at_target = self._at_target(theta, spread)
        tilt = slopes[:, :, :b] - J
        linear = np.zeros((len(e), symbols, len(self.target)))
        linear[:, : turn.shape[2]] = np.moveaxis(tilt @ turn, 1, 2)
        by_theta = (slopes[:, :, b:] - at_target[1]) * spread[:, None]
        linear[:, turn.shape[2] : turn.shape[2] + by_theta.shape[2]] = np.moveaxis(by_theta, 1, 2)
        size = np.abs(J) @ np.abs(middle)[..., None] + np.abs(value)[..., None]
        value = value - at_target[0] - (J @ middle[..., None])[..., 0]
        rest = (
            rest + at_target[2] + 1e-14 * (size[..., 0] + np.abs(linear).sum(1) + (np.abs(tilt) @ r[..., None])[..., 0])
        )
        found: list[Affine] = []
        size, q = np.zeros(()), middle_q[:, None, None]
        for A, loose, beyond in zip(along, turning, (moved, 0.5 * beside), strict=True):
            wide = (rest + (np.abs(tilt) @ beyond[..., None])[..., 0])[..., None] * (1 + 1e-12)
            rho = forth @ Affine(value[..., None], linear[..., None], wide)
            if not found:  # at any time: it also bounds the product of two changes in the mean
                size = rho.largest * (radius_q[:, None, None] + 1e-15 * q)
            rho = known_of(rho.middle * q, rho.slopes * q[..., None], rho.rest * q + size)
            base = Affine(A.middle.copy(), A.slopes.copy(), A.rest.copy())
            base.middle[..., self.bent] = J
            base.slopes[..., self.bent], base.rest[..., self.bent] = 0.0, 0.0
            narrow = forth @ base @ to + rho @ row
            found.append(_either(narrow.rest.sum((1, 2)) < loose.rest.sum((1, 2)), narrow, loose))
        return found[0], found[1]

    def _series(self, turning: Affine, rates: Affine, first: Affine, push: Array) -> tuple[Affine, Array]:
        """C (N, d, d), and the norm (N,) of the disturbance. first: T times the mean of `rates`."""
        term, total = rates.times(self.step), first
        size = np.minimum(turning.largest, 1e30) * self.step
        norms, gone = size.sum(-1).max(-1), push
        for k in range(1, TERMS):
            term = (turning @ term).times(self.step / (k + 1))
            total = total + term
            push = (size @ push[..., None])[..., 0] / (k + 1)
            gone = gone + push
        tail = np.exp(norms) * norms / (TERMS + 1)
        rest, more = tail[:, None] * term.largest.max(1), tail * push.max(1)
        total = total.widened(np.broadcast_to(rest[:, None], total.rest.shape))
        gone = np.minimum((gone + more[:, None]) * (1 + 1e-12), 1e100)  # where nothing is known
        return total, np.linalg.norm(gone, axis=1) * (1 + 1e-12)

    # -- the policy --------------------------------------------------------------------------------------------------

    def _policy(self, v: Array, r: Array) -> tuple[Array, Array, Array, Array]:
        """Lower and upper bounds of grad g~ (N, m), then of its slopes (N, m), over v +- r (N, m)."""
        m = len(self.trim)
        middle, slopes, rest = evaluated(self.kernels[2], v, r)
        width = (np.abs(slopes) * r[:, None]).sum(2) * (1 + 1e-13) + rest
        low, high = middle - width, middle + width
        low_u = np.maximum(low[:, :m], self.middle - self.limit)
        return low_u, np.minimum(high[:, :m], self.middle + self.limit), np.maximum(low[:, m:], 0.0), high[:, m:]

    def _chord(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds (N, m) of the slope of the chord of grad g~ from 0 to arguments between low and high (N, m)."""
        least, most = np.zeros_like(low), np.zeros_like(low)
        v, r, h = 0.5 * (low + high), 0.5 * (high - low), 0.5 / CHORDS
        for j in range(CHORDS):
            s = (2 * j + 1) * h
            width = (h * np.abs(v) + (s + h) * r) * (1 + 1e-14) + TINY
            _, _, a, b = self._policy(s * v, width)
            least, most = least + a / CHORDS, most + b / CHORDS
        return least * (1 - 1e-13), most * (1 + 1e-13)

    def _gain(self, z: Array, half: Array, B: Affine, frame: Frame, radius: float) -> tuple[Affine, Mask]:
        """K (N, m, n) at z +- half (N, r), and whether the policy looks up V in the basin only."""
        m, symbols, count, back = len(self.trim), B.symbols, len(z), frame.back
        P = Affine.exact(self.cost, symbols)
        W = (B.mT @ P).times(-2.0)
        middle, spare = _products(W @ Affine.exact(back, symbols), frame.basis, z, half, radius)
        low, high = middle - spare, middle + spare
        H = (B.mT @ P @ B).times(2.0 * self.hold)
        D_low = np.broadcast_to(self.middle - self.limit - self.trim, (count, m)).copy()
        D_high = np.broadcast_to(self.middle + self.limit - self.trim, (count, m)).copy()
        box = H.largest
        least, most = self._chord(*_hull0(low, high))
        if m > 1:  # d' S^-1 d <= d' w, as H is positive semidefinite
            reach = (box @ np.maximum(np.abs(D_low), np.abs(D_high))[..., None])[..., 0]
            steepest = self._chord(*_hull0(low - reach, high + reach))[1]
            size = np.sqrt((steepest * np.maximum(np.abs(low), np.abs(high)) ** 2).sum(1, keepdims=True))
            bound = np.sqrt(steepest) * size * (1 + 1e-12)
            D_low, D_high = np.fmax(D_low, -bound), np.fmin(D_high, bound)
        for _ in range(CORRECTIONS):
            if m == 1:
                h_low = np.maximum(H.middle - (box - np.abs(H.middle)), 0.0)[:, 0]
                h_high = (H.middle + (box - np.abs(H.middle)))[:, 0]
                shrink_low, shrink_high = 1 / (1 + most * h_high), 1 / (1 + least * h_low)
                v_low = np.where(low >= 0, low * shrink_low, low * shrink_high) * (1 - 1e-13 * np.sign(low))
                v_high = np.where(high >= 0, high * shrink_high, high * shrink_low) * (1 + 1e-13 * np.sign(high))
            else:
                reach = (box @ np.maximum(np.abs(D_low), np.abs(D_high))[..., None])[..., 0]
                v_low, v_high = low - reach, high + reach
                spread = (high - low) / 2
                mid = 0.5 * (D_low + D_high)
                off = (H.middle @ mid[..., None])[..., 0]
                width = (box @ (0.5 * (D_high - D_low))[..., None])[..., 0]
                width += ((box - np.abs(H.middle)) @ np.abs(mid)[..., None])[..., 0]
                centre = 0.5 * (low + high) - off
                v_low = np.maximum(v_low, centre - spread - width * (1 + 1e-12))
                v_high = np.minimum(v_high, centre + spread + width * (1 + 1e-12))
            least, most = self._chord(v_low, v_high)
            if m > 1:
                G, w, r = self._solved(least, most, H, None), 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-14)
                sizes = np.abs(G.middle), G.largest - np.abs(G.middle), np.abs(w) + r
                width = (sizes[0] @ r[..., None] + sizes[1] @ sizes[2][..., None])[..., 0] * (1 + 1e-12)
                d = (G.middle @ w[..., None])[..., 0]
                width += 1e-14 * (sizes[0] @ sizes[2][..., None])[..., 0] + TINY
                D_low, D_high = np.fmax(D_low, d - width), np.fmin(D_high, d + width)
        K = self._solved(least, most, H, W)
        return K, self._looks_inside(low, high, B, back, radius)

    def _solved(self, least: Array, most: Array, H: Affine, W: Affine | None) -> Affine:
        """(1 + S H)^-1 S, times W, with slopes S of chords between least and most (N, m), the last m symbols."""
        m, symbols = len(self.trim), H.symbols
        bounded = np.isfinite(most)
        most = np.where(bounded, most, least)
        middle, radius = 0.5 * (least + most), 0.5 * (most - least) * (1 + 1e-13) + 1e-15 * most
        one, rest = np.eye(m), np.zeros((len(least), m, m))
        rest[~bounded.all(1)] = np.inf
        slopes = np.zeros((len(least), symbols, m, m))
        for i in range(m):
            slopes[:, symbols - m + i, i, i] = radius[:, i]
        S = Affine(middle[..., None] * one, slopes, rest)
        unit = Affine.exact(np.broadcast_to(one, (len(least), m, m)), symbols)
        return (unit + S @ H).inverse() @ (S if W is None else S @ W)

    def _looks_inside(self, low: Array, high: Array, B: Affine, back: Array, radius: float) -> Mask:
        """Whether states of the ball, and those at which the policy looks up V, are in the basin.

        The policy looks at e + h B_k d with d of the sign of w_k, where e' P e grows by h^2 d^2 B_k' P B_k - h |w_k d|.
        """
        values, vectors = np.linalg.eigh(self.cost)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        spare = self.level * (1 - 1e-5) - (radius * np.linalg.norm(root @ back, 2)) ** 2  # rounding; float32
        inside = np.full(len(low), spare > 0)
        if not self.hold:
            return inside
        u_low, u_high, *_ = self._policy(0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-14) + 1e-300)
        size = np.maximum(np.abs(u_low - self.trim), np.abs(u_high - self.trim))
        least = np.maximum(np.maximum(low, -high), 0.0)
        steep = np.diagonal((B.mT @ Affine.exact(self.cost, B.symbols) @ B).largest, axis1=1, axis2=2)
        step = self.hold * np.maximum(size, SHORTEST * self.limit)
        extra = np.maximum(step**2 * steep - step * least, 0.0)
        return np.asarray(inside & (extra < spare).all(1))


def _products(W: Affine, basis: Array, z: Array, half: Array, radius: float) -> tuple[Array, Array]:
    """Middles and radii (N, m) of W y, with W (N, m, d), basis' y in z +- half (N, r) and |y| <= radius."""
    along, open_to = W.middle @ basis, np.eye(len(basis)) - basis @ basis.T
    middle: Array = (along @ z[..., None])[..., 0]
    reach = np.abs(z) @ np.abs(basis.T) + half @ np.abs(basis.T)
    spare = (np.abs(along) @ (half + 1e-14 * np.abs(z))[..., None])[..., 0]
    spare += ((W.largest - np.abs(W.middle) * (1 - 1e-14)) @ np.minimum(reach, radius)[..., None])[..., 0]
    spare += radius * _rows(W @ Affine.exact(open_to, W.symbols)) + TINY
    return middle, spare * (1 + 1e-12)


def _either(first: Mask, a: Affine, b: Affine) -> Affine:
    """a where first (N,) is set, else b."""
    here = first[:, None, None]
    return Affine(
        np.where(here, a.middle, b.middle),
        np.where(here[..., None], a.slopes, b.slopes),
        np.where(here, a.rest, b.rest),
    )


def _hull0(low: Array, high: Array) -> tuple[Array, Array]:
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _rows(matrix: Affine) -> Array:
    """Upper bounds (N, i) of the norms of rows."""
    size: Array = np.linalg.norm(matrix.largest, axis=2) * (1 + 1e-12)
    return size


def _matrices(middle: Array, slopes: Array, rest: Array, rows: int, columns: int) -> Affine:
    count = len(middle)
    return Affine(
        middle.reshape(count, rows, columns),
        slopes.reshape(count, -1, rows, columns),
        rest.reshape(count, rows, columns),
    )


def inputs_of(graph: Graph, count: int, name: str) -> list[Node]:
    """Inputs name0, name1, ... of a graph."""
    return [graph.input(f"{name}{k}") for k in range(count)]


def evaluated(kernels: Kernels, middle: Array, radius: Array) -> tuple[Array, Array, Array]:
    """Middles (N, k), slopes (N, k, d) and rests (N, k); a rest is infinite where a number is not finite."""
    arguments = {"middle": np.ascontiguousarray(middle), "radius": np.ascontiguousarray(np.minimum(radius, 1e300))}
    found, slopes, rest = kernels.evaluate("enclosure", arguments, None)
    slopes = slopes.reshape(*found.shape, -1)
    good = np.isfinite(found) & np.isfinite(rest) & np.isfinite(slopes).all(2)
    return np.where(good, found, 0.0), np.where(good[..., None], slopes, 0.0), np.where(good, rest, np.inf)
