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

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.backends import Kernels
from modelgen.loader import CompiledRobot
from modelgen.program.differentiate import reverse
from modelgen.program.enclosure import affine
from modelgen.program.functions import Program
from modelgen.program.graph import Graph, Node
from solver.game.policies import SHORTEST, held_seconds
from solver.proof.affine import TINY, Affine
from solver.training.solution import Solution

Mask = NDArray[np.bool_]

TERMS = 6  # of the Peano-Baker series, which is then cut off with a bound of the rest
CORRECTIONS = 4  # of the enclosure of the input
INFLATIONS = 3  # of the enclosure of the motion within a period
PIECES = 4  # of the way from the target, in the mean of da0/dx
CHORDS = 16  # of the way from the target, in the mean of the slope of grad g~


@dataclass(frozen=True)
class Cells:
    """N sets of errors and parameters: intervals of the bent states, of w0 = -2 B(target)' P e, and of theta."""

    lower: Array  # (N, b + m + p)
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, index: slice | Mask) -> Cells:
        return Cells(self.lower[index], self.upper[index])


@dataclass(frozen=True)
class Period:
    """One control period from N cells, in the coordinates y of e = back y with |y| <= radius."""

    change: Affine  # (N, d, d) C: y becomes (1 + C) y + disturbance
    disturbance: Array  # (N,) its largest norm
    known: Mask  # (N,) the motion stays within the limits, and the policy within the basin


class HeldLoop:
    """Closed loop of a trained policy in its basin. The policy knows the nominal parameters.

    solution: the run, whose basin has a level above zero.
    """

    def __init__(self, solution: Solution) -> None:
        problem, basin = solution.problem, solution.ensemble.basin
        self.robot: CompiledRobot = problem.robot
        self.nominal = np.asarray(self.robot.nominal_parameters, np.float64)
        self.step = problem.control_step
        self.hold = held_seconds(problem, periods) if (periods := solution.run.settings.reaction_periods) else 0.0
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
        at_target = self._dynamics(*self._box(np.zeros((1, len(self.bent))), 0.0, self.nominal[None], 0.0), 0)
        self.argument = -2.0 * at_target[1].middle[0].T @ self.cost  # w0 = argument e

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

    def _inputs(self, graph: Graph, count: int, name: str) -> list[Node]:
        return [graph.input(f"{name}{k}") for k in range(count)]

    def _structure(self) -> tuple[list[int], bool]:
        """Indices (b,) of the states that da0/dx and B depend on, and whether the motion that P sees needs no other."""
        graph = Graph()
        x = self._inputs(graph, len(self.target), "x")
        _, slopes, B = self._rates(graph, x, self._inputs(graph, len(self.nominal), "p"))
        reached = set(graph.reachable([*slopes, *B]))
        bent = [k for k, node in enumerate(x) if node in reached]
        n, zero = len(x), graph.zero
        alone = all(slopes[i * n + j] == zero for i in self.seen for j in self.unseen)
        return bent, alone and set(bent) <= set(self.seen)

    @cached_property
    def _kernels(self) -> tuple[Kernels, Kernels, Kernels]:
        """Enclosures of (da0/dx, B) by bent states and theta, of a0 at the target, and of grad g~ and its slopes."""
        graph, n = Graph(), len(self.target)
        theta, moving = self._inputs(graph, len(self.nominal), "p"), self._inputs(graph, n, "x")
        x = [moving[k] if k in self.bent else graph.constant(self.target[k]) for k in range(n)]
        _, slopes, B = self._rates(graph, x, theta)
        still, *_ = self._rates(graph, [graph.constant(value) for value in self.target], theta)
        digest = self.robot.program.digest
        of_robot = Program(graph, (), digest=digest)
        model = affine(of_robot, [*slopes, *B], [*(moving[k] for k in self.bent), *theta])
        drift = affine(of_robot, still, theta)
        program, graph = self.robot.program, Graph()
        w = program.arguments["w"].entries
        places = {node: graph.input(f"w{k}") for k, node in enumerate(w)}
        policy = graph.absorb(program.graph, program.function("optimal_input").roots, places)
        steep = [reverse(graph, {root: graph.one}, [places[w[k]]])[0] for k, root in enumerate(policy)]
        inputs = affine(Program(graph, (), digest=digest), [*policy, *steep], list(places.values()))
        return self.robot.compiled(model), self.robot.compiled(drift), self.robot.compiled(inputs)

    def _box(self, middle: Array, radius: Array | float, theta: Array, spread: Array | float) -> tuple[Array, Array]:
        """Arguments of the first kernel from errors (N, b) of bent states and parameters (N, p)."""
        count = len(middle)
        values = np.hstack([middle + self.target[self.bent], np.broadcast_to(theta, (count, len(self.nominal)))])
        widths = np.hstack([np.broadcast_to(radius, middle.shape), np.broadcast_to(spread, (count, len(self.nominal)))])
        return values, widths

    def _dynamics(
        self, values: Array, widths: Array, symbols: int, along: float = 1.0, beyond: tuple[Array, Array] | None = None
    ) -> tuple[Affine, Affine]:
        """da0/dx (N, n, n) and B (N, n, m) over boxes; the first symbols are those of bent states and theta.

        along: the bent states move by this share of their symbols' radius; beyond: and by up to (N, b) of their own, in
        boxes whose half widths (N, b) are the second entry.
        """
        n, m, b, count = len(self.target), len(self.trim), len(self.bent), len(values)
        own = widths.copy()
        if beyond is not None:
            own[:, :b] = along * (widths[:, :b])
            widths = widths.copy()
            widths[:, :b] = beyond[1]
        middle, slopes, rest = _evaluated(self._kernels[0], values, widths)
        linear = np.moveaxis(slopes * own[:, None, :], 1, 2)  # (N, d, k)
        if beyond is not None:
            rest = rest + (np.abs(slopes[:, :, :b]) * beyond[0][:, None]).sum(2) * (1 + 1e-13)
        rest = rest + 1e-15 * (np.abs(middle) + np.abs(linear).sum(1))
        more = np.zeros((count, symbols, middle.shape[1]))
        if symbols:
            more[:, : linear.shape[1]] = linear
        else:
            rest = rest + np.abs(linear).sum(1) * (1 + 1e-13)
        return (
            _matrices(middle[:, : n * n], more[:, :, : n * n], rest[:, : n * n], n, n),
            _matrices(middle[:, n * n :], more[:, :, n * n :], rest[:, n * n :], n, m),
        )

    # -- one period --------------------------------------------------------------------------------------------------

    def period(self, cells: Cells, back: Array, radius: float, input_error: Array) -> Period:
        """One control period from N cells of |y| <= radius, where e[seen] = back y.

        back: (n, d). input_error: bound (m,) of the error of the computed input.
        """
        b, m, p = len(self.bent), len(self.trim), len(self.nominal)
        middle, half = 0.5 * (cells.lower + cells.upper), 0.5 * (cells.upper - cells.lower) * (1 + 1e-14)
        half = half + 1e-15 * np.abs(middle)
        symbols = b + p + m
        e, r = middle[:, :b], half[:, :b]
        theta, spread = middle[:, b + m :], half[:, b + m :]
        _, B = self._dynamics(*self._box(e, r, self.nominal, 0.0), symbols)
        K, inside = self._gain(cells, B, back, radius)
        forth = self._inverse(back, symbols)
        count = len(cells)
        moved = np.zeros((count, b))
        good: Mask = np.zeros(count, bool)
        to = Affine.exact(back, symbols)
        for _ in range(INFLATIONS):
            A, B = self._along(e, r, theta, spread, moved, symbols)
            with np.errstate(all="ignore"):  # nothing is known of a wide cell
                change, way, disturbance = self._series(A, B, K, to, forth, radius, theta, spread, input_error)
            good = np.asarray((way[:, self.bent] <= moved).all(1))
            if good.all():
                break
            moved = np.where(good[:, None], moved, 1.05 * way[:, self.bent] + 1e-12)
            moved = np.minimum(moved, 1e3)
        reach = radius * np.linalg.norm(back, axis=1) * (1 + 1e-12)
        within = (reach + way <= self.bound)[:, self.seen].all(1)
        return Period(change, disturbance, inside & good & within & np.isfinite(change.rest).all((1, 2)))

    def _inverse(self, back: Array, symbols: int) -> Affine:
        """The inverse (d, n) of back on the states that P sees, with zero columns for others."""
        d, n = len(self.seen), len(self.target)
        found = Affine.exact(back[self.seen]).inverse()
        middle, rest = np.zeros((d, n)), np.zeros((d, n))
        middle[:, self.seen], rest[:, self.seen] = found.middle, found.rest
        return Affine(middle, np.zeros((symbols, d, n)), rest)

    def _along(
        self, e: Array, r: Array, theta: Array, spread: Array, moved: Array, symbols: int
    ) -> tuple[Affine, Affine]:
        """A (N, n, n) and B (N, n, m) during a period, in which bent states move by up to `moved` (N, b)."""
        h, total = 0.5 / PIECES, None
        for j in range(PIECES):
            s = (2 * j + 1) * h
            values, widths = self._box(s * e, r, theta, spread)
            box = h * np.abs(e) + (s + h) * (r + moved)
            A, _ = self._dynamics(values, widths, symbols, s, (s * moved, box))
            total = A if total is None else total + A
        assert total is not None
        values, widths = self._box(e, r, theta, spread)
        _, B = self._dynamics(values, widths, symbols, 1.0, (moved, r + moved))
        return total.times(1.0 / PIECES), B

    def _series(
        self,
        A: Affine,
        B: Affine,
        K: Affine,
        back: Affine,
        forth: Affine,
        radius: float,
        theta: Array,
        spread: Array,
        input_error: Array,
    ) -> tuple[Affine, Array, Array]:
        """C (N, d, d), the way (N, n) of each state at most, and the norm (N,) of the disturbance."""
        drift, _, rest = _evaluated(self._kernels[1], theta, spread)
        steep = np.abs(_evaluated(self._kernels[1], theta, spread)[1])
        still = np.abs(drift) + (steep * spread[:, None]).sum(2) + rest
        pushed = still + (B.largest @ input_error)
        term = (A @ back + B @ (K @ back)).times(self.step)  # (N, n, d)
        total, way = term, radius * _rows(term)
        size = np.minimum(A.largest, 1e30)
        pushed = np.minimum(pushed, 1e30)
        norms = size.sum(-1).max(-1) * self.step
        push = self.step * pushed
        gone = push
        for k in range(1, TERMS):
            term = (A @ term).times(self.step / (k + 1))
            total, way = total + term, way + radius * _rows(term)
            push = (size @ push[..., None])[..., 0] * self.step / (k + 1)
            gone = gone + push
        with np.errstate(all="ignore"):
            tail = np.exp(norms) * norms / (TERMS + 1)
            rest = tail[:, None] * term.largest.max(1)
            more = tail * push.max(1)
        total = total.widened(np.broadcast_to(rest[:, None], total.rest.shape))
        gone = (gone + more[:, None]) * (1 + 1e-12)
        way = (way + radius * np.linalg.norm(rest, axis=1)[:, None] + gone) * (1 + 1e-12)
        gone = np.minimum(gone, 1e100)  # where nothing is known
        disturbance = np.linalg.norm((forth.largest @ gone[..., None])[..., 0], axis=1) * (1 + 1e-12)
        return forth @ total, way, disturbance

    # -- the policy --------------------------------------------------------------------------------------------------

    def _policy(self, v: Array, r: Array) -> tuple[Array, Array, Array, Array]:
        """Lower and upper bounds of grad g~ (N, m), then of its slopes (N, m), over v +- r (N, m)."""
        m = len(self.trim)
        middle, slopes, rest = _evaluated(self._kernels[2], v, r)
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

    def _gain(self, cells: Cells, B: Affine, back: Array, radius: float) -> tuple[Affine, Mask]:
        """K (N, m, n), and whether the policy looks up V in the basin only."""
        b, m = len(self.bent), len(self.trim)
        symbols, count = B.symbols, len(cells)
        P = Affine.exact(self.cost, symbols)
        W = (B.mT @ P).times(-2.0)
        beside = (W - Affine.exact(self.argument, symbols)) @ Affine.exact(back, symbols)
        spare = radius * np.linalg.norm(beside.largest, axis=2) * (1 + 1e-12) + 1e-300
        low, high = cells.lower[:, b : b + m] - spare, cells.upper[:, b : b + m] + spare
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


def _evaluated(kernels: Kernels, middle: Array, radius: Array) -> tuple[Array, Array, Array]:
    """Middles (N, k), slopes (N, k, d) and rests (N, k); a rest is infinite where a number is not finite."""
    arguments = {"middle": np.ascontiguousarray(middle), "radius": np.ascontiguousarray(np.minimum(radius, 1e300))}
    found, slopes, rest = kernels.evaluate("enclosure", arguments, None)
    slopes = slopes.reshape(*found.shape, -1)
    good = np.isfinite(found) & np.isfinite(rest) & np.isfinite(slopes).all(2)
    return np.where(good, found, 0.0), np.where(good[..., None], slopes, 0.0), np.where(good, rest, np.inf)
