"""Formulas of the closed loop in the basin, enclosed: the drift's slopes A, the control matrix B, and the gain K.

The error is e = x - target. In the basin V = -e' P e, so that the policy is u = u0 + d with

    u = grad g~(w - H d),   w = -2 B(x)' P e,   H = 2 h B(x)' P B(x),

where h is the time for which the policy assumes that its input is held (`solver.game.policies`; 0 is the closed form).
With S the slope of the chord of grad g~ from the target, d = (1 + S H)^-1 S w = K e. The drift a0 = a + B u0 is
a0(target) + A e with A the mean of da0/dx on the way from the target. `period` follows e with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from modelgen.program.differentiate import reverse
from modelgen.program.graph import Graph, Node
from modelgen.proof.intervals import enclosures
from solver.errors import SolverError
from solver.game.policies import SHORTEST
from solver.proof.affine import TINY, Affine, Mask
from solver.proof.quadratic import Quadratic, evaluate
from solver.training.solution import Solution

RANK = 1e-7  # smaller directions of unit rows count as none
CORRECTIONS = 4  # of the enclosure of the input
CHORDS = 16  # of the way from the target, in the mean of the slope of grad g~


@dataclass(frozen=True)
class Frame:
    """Coordinates y of errors e = back y, and z = basis' y that bent states and w0 = -2 B(target)' P e depend on."""

    back: Array  # (n, d)
    basis: Array  # (d, r) orthonormal columns, the one of most influence first
    bent: Array  # (b, r): bent states from z
    argument: Array  # (m, r): w0 from z
    missed: Array  # (b + m,) largest errors of both for |y| = 1


@dataclass(frozen=True)
class Equations:
    """Equations of motion under the input u0 + d, by theta and the bent states, which da0/dx and B depend on."""

    graph: Graph
    bent: list[int]  # (b,) indices of these states
    inputs: list[Node]  # bent states, then theta
    drift: list[Node]  # (n,) a0
    slopes: list[Node]  # (n n,) da0/dx
    control: list[Node]  # (n m,) B

    @classmethod
    def of(cls, robot: CompiledRobot, target: Array, trim: Array) -> Equations:
        """The equations of a robot. The other states are at the target."""
        graph = Graph()
        x, theta = inputs_of(graph, len(target), "x"), inputs_of(graph, len(robot.parameter_names), "p")
        _, slopes, B = _rates(graph, robot, x, theta, trim)
        reached = set(graph.reachable([*slopes, *B]))
        bent = [k for k, node in enumerate(x) if node in reached]
        at = [node if k in bent else graph.constant(target[k]) for k, node in enumerate(x)]
        return cls(graph, bent, [*(x[k] for k in bent), *theta], *_rates(graph, robot, at, theta, trim))


def _rates(
    graph: Graph, robot: CompiledRobot, x: list[Node], theta: list[Node], trim: Array
) -> tuple[list[Node], list[Node], list[Node]]:
    """Nodes of a0 (n,), da0/dx (n n,) and B (n m,) at nodes of x and theta."""
    program, n, m = robot.program, len(x), len(trim)
    outputs = {output.name: output.entries for output in program.function("jacobians").outputs}
    known = dict(zip(program.arguments["x"].entries, x, strict=True))
    known |= dict(zip(program.arguments["theta"].entries, theta, strict=True))
    a, B, da, dB = (graph.absorb(program.graph, outputs[name], known) for name in ("a", "B", "da_dx", "dB_dx"))
    u0 = [graph.constant(value) for value in trim]
    drift = [graph.add(a[i], graph.sum(graph.mul(B[i * m + k], u0[k]) for k in range(m))) for i in range(n)]
    slopes = [
        graph.add(da[i * n + j], graph.sum(graph.mul(dB[(i * m + k) * n + j], u0[k]) for k in range(m)))
        for i in range(n)
        for j in range(n)
    ]
    return drift, slopes, list(B)


class HeldLoop:
    """Closed loop of a trained policy in its basin. The policy knows the nominal parameters.

    solution: the run, whose basin has a level above zero. Raises SolverError if its policy counts on the drift, and for
    equations of motion that jump.
    """

    def __init__(self, solution: Solution) -> None:
        problem, basin = solution.problem, solution.ensemble.basin
        if solution.run.settings.drift:
            raise SolverError(
                f"the policy of {solution.label} counts on the drift within the hold (setting `drift`), and the "
                "enclosure of its input does not; train without `drift` to prove it"
            )
        self.robot: CompiledRobot = problem.robot
        self.require_without("sign", found="they jump with a sign, as Coulomb friction does")
        self.nominal = np.array([parameter.value for parameter in self.robot.metadata.parameters])
        self.step = problem.control_step
        self.hold = solution.run.settings.hold.seconds(problem)
        self.target = basin.target.double().numpy()
        self.cost, self.level = basin.cost.double().numpy(), float(basin.level)
        self.cost = 0.5 * (self.cost + self.cost.T)
        states = self.robot.metadata.states
        self.around = np.array([state.continuous for state in states])  # (n,) which states are angles without end
        limits = np.array([state.limit for state in states])
        self.bound = np.where(self.around, np.pi, limits - np.abs(self.target))
        self.trim = np.array([entry.trim for entry in self.robot.metadata.inputs])
        self.middle = np.array([entry.middle for entry in self.robot.metadata.inputs])
        self.limit = np.array([entry.limit for entry in self.robot.metadata.inputs])
        self.seen = np.flatnonzero(np.abs(self.cost).max(0) > 0)
        self.unseen = np.setdiff1d(np.arange(len(self.target)), self.seen)
        self.equations = Equations.of(self.robot, self.target, self.trim)
        self.bent = self.equations.bent
        n, zero = len(self.target), self.equations.graph.zero
        alone = all(self.equations.slopes[i * n + j] == zero for i in self.seen for j in self.unseen)
        self.closed = alone and set(self.bent) <= set(self.seen)  # the motion that P sees needs no other state
        still = [Quadratic.box(np.zeros(1), {}, 0.0, 0)] * len(self.bent)
        at_target = self.control(still, 1, 0).affine(n, len(self.trim), 0)
        self.argument = -2.0 * at_target.middle[0].T @ self.cost  # w0 = argument e

    def require_without(self, *kinds: str, found: str) -> None:
        """Raises SolverError if the equations of motion contain an operation whose derivatives say nothing of them."""
        program = self.robot.program
        if program.graph.of_kind(program.function("affine_dynamics").roots, *kinds):
            raise SolverError(
                f"the equations of {self.robot.name} cannot be followed: {found}. Write a smooth force, such as "
                "tanh(rate/small), to prove a policy that is trained on it"
            )

    def frame(self, back: Array) -> Frame:
        """The frame of a matrix back (n, d)."""
        rows = np.vstack([back[self.bent], self.argument @ back])
        _, sizes, right = np.linalg.svd(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY))
        basis = right[: int((sizes > RANK).sum())].T
        of_z = rows @ basis
        missed = np.linalg.norm(rows - of_z @ basis.T, axis=1) + 1e-13 * np.linalg.norm(rows, axis=1)
        return Frame(back, basis, of_z[: len(self.bent)], of_z[len(self.bent) :], missed)

    # -- formulas of the model ---------------------------------------------------------------------------------------

    def over(
        self, roots: list[Node], errors: list[Quadratic], theta: list[Quadratic], count: int, symbols: int
    ) -> Quadratic:
        """Roots (N, k) of the equations over N = `count` boxes of errors (N, 1) of the bent states and of theta."""
        bent = [e.plus(self.target[k]) for k, e in zip(self.bent, errors, strict=True)]
        inputs = dict(zip(self.equations.inputs, [*bent, *theta], strict=True))
        return evaluate(self.equations.graph, roots, inputs, count, symbols)

    @property
    def domain(self) -> tuple[Array, Array]:
        """Lower and upper ends (n,) of the states within the limits, about the target; angles without end from -pi."""
        lower, upper = (np.where(self.around, end * np.pi, self.target + end * self.bound) for end in (-1, 1))
        return lower, upper

    def control(self, errors: list[Quadratic], count: int, symbols: int) -> Quadratic:
        """B (N, n m) of the nominal robot over errors (N, 1) of the bent states."""
        theta = [Quadratic.box(np.full(count, value), {}, 0.0, symbols) for value in self.nominal]
        return self.over(self.equations.control, errors, theta, count, symbols)

    @cached_property
    def _conjugate(self) -> tuple[Graph, list[Node], list[Node]]:
        """A graph of grad g~ and the slope of each entry by its own argument: the arguments w, and the roots."""
        program, graph = self.robot.program, Graph()
        arguments = program.arguments["w"].entries
        w = inputs_of(graph, len(arguments), "w")
        known = dict(zip(arguments, w, strict=True))
        policy = graph.absorb(program.graph, program.function("optimal_input").roots, known)
        steep = [reverse(graph, {root: graph.one}, [w[k]])[0] for k, root in enumerate(policy)]
        return graph, w, [*policy, *steep]

    # -- the policy --------------------------------------------------------------------------------------------------

    def conjugate(self, low: Array, high: Array) -> tuple[Array, Array, Array, Array]:
        """Lower and upper bounds of grad g~ (N, m), then of its slopes (N, m), for w between low and high (N, m)."""
        m, (graph, w, roots) = len(self.trim), self._conjugate
        least, most = enclosures(graph, roots, w, low, high)
        low_u = np.maximum(least[:, :m], self.middle - self.limit)
        return low_u, np.minimum(most[:, :m], self.middle + self.limit), np.maximum(least[:, m:], 0.0), most[:, m:]

    def _chord(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds (N, m) of the slope of the chord of grad g~ from 0 to arguments between low and high (N, m)."""
        least, most = np.zeros_like(low), np.zeros_like(low)
        v, r, h = 0.5 * (low + high), 0.5 * (high - low), 0.5 / CHORDS
        for j in range(CHORDS):
            s = (2 * j + 1) * h
            width = (h * np.abs(v) + (s + h) * r) * (1 + 1e-14) + TINY
            _, _, a, b = self.conjugate(s * v - width, s * v + width)
            least, most = least + a / CHORDS, most + b / CHORDS
        return least * (1 - 1e-13), most * (1 + 1e-13)

    def gain(self, z: Array, half: Array, B: Affine, frame: Frame, radius: float) -> tuple[Affine, Mask]:
        """K back (N, m, d) at z +- half (N, r), and whether the policy looks up V in the basin only."""
        m, symbols, count, back = len(self.trim), B.symbols, len(z), frame.back
        P = Affine.exact(self.cost, symbols)
        W = (B.mT @ (P @ Affine.exact(back, symbols))).times(-2.0)
        middle, spare = products(W, frame.basis, z, half, radius)
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
        u_low, u_high, *_ = self.conjugate(low, high)
        size = np.maximum(np.abs(u_low - self.trim), np.abs(u_high - self.trim))
        least = np.maximum(np.maximum(low, -high), 0.0)
        steep = np.diagonal((B.mT @ Affine.exact(self.cost, B.symbols) @ B).largest, axis1=1, axis2=2)
        step = self.hold * np.maximum(size, SHORTEST * self.limit)
        extra = np.maximum(step**2 * steep - step * least, 0.0)
        return np.asarray(inside & (extra < spare).all(1))


def products(W: Affine, basis: Array, z: Array, half: Array, radius: float) -> tuple[Array, Array]:
    """Middles and radii (N, m) of W y, with W (N, m, d), basis' y in z +- half (N, r) and |y| <= radius."""
    along, open_to = W.middle @ basis, np.eye(len(basis)) - basis @ basis.T
    middle: Array = (along @ z[..., None])[..., 0]
    reach = np.abs(z) @ np.abs(basis.T) + half @ np.abs(basis.T)
    spare = (np.abs(along) @ (half + 1e-14 * np.abs(z))[..., None])[..., 0]
    spare += ((W.largest - np.abs(W.middle) * (1 - 1e-14)) @ np.minimum(reach, radius)[..., None])[..., 0]
    spare += radius * _rows(W @ Affine.exact(open_to, W.symbols)) + TINY
    return middle, spare * (1 + 1e-12)


def _hull0(low: Array, high: Array) -> tuple[Array, Array]:
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _rows(matrix: Affine) -> Array:
    """Upper bounds (N, i) of the norms of rows."""
    size: Array = np.linalg.norm(matrix.largest, axis=2) * (1 + 1e-12)
    return size


def inputs_of(graph: Graph, count: int, name: str) -> list[Node]:
    """Inputs name0, name1, ... of a graph."""
    return [graph.input(f"{name}{k}") for k in range(count)]
