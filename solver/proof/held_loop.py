"""Enclosure of one control period of the closed loop in the basin: the true differential equation under a held input.

The error is e = x - target. In the basin V = -e' P e, so that the policy is u = u0 + d with

    u = grad g~(w - H d),   w = -2 B(x)' P e,   H = 2 h B(x)' P B(x),

where h is the time for which the policy assumes that its input is held (`solver.game.policies`; 0 is the closed form).
One period of length T changes e by C (a + B u), and the derivative of this change by e is C (A + B K), with

    C = sum_k A^k T^(k+1)/(k+1)!

as interval matrices, and that by the parameters C (da/dtheta + dB/dtheta u). Interval matrices contain the
Peano-Baker series of the flow: A and B are bounds of d(a + B u)/dx and of B along the motion, and
K = du/dx = (1 + S H)^-1 S (dw/dx - dH/dx d) with S = d grad g~/dw.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.backends import Kernels
from modelgen.loader import CompiledRobot
from modelgen.program.differentiate import reverse
from modelgen.program.enclosure import mean_value
from modelgen.program.functions import Program
from modelgen.program.graph import Graph
from solver.game.policies import SHORTEST, held_seconds
from solver.proof.balls import Balls, checked, hull, intersection, norm
from solver.training.solution import Solution

Mask = NDArray[np.bool_]

JACOBIANS = "a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"
TERMS = 10  # of the Peano-Baker series, which is then cut off with a bound of the rest
CORRECTIONS = 3  # of the enclosure of the input
INFLATIONS = 4  # of the enclosure of the motion within a period


@dataclass(frozen=True)
class Period:
    """One control period from N boxes of errors."""

    change: Balls  # (N, n): e becomes e + change
    by_error: Balls  # (N, n, n) derivative of the change by e
    by_parameters: Balls  # (N, n, p) derivative of the change by the robot's parameters
    by_input: Balls  # (N, n, m) derivative of the change by a constant error of the input
    known: Mask  # (N,) the motion stays within the limits, and the policy within the basin


class HeldLoop:
    """Closed loop of a trained policy in its basin. The policy knows the nominal parameters; the robot's are in a box.

    solution: the run, whose basin has a level above zero. parameters: (p,), by default the nominal ones.
    """

    def __init__(self, solution: Solution, parameters: Balls | None = None) -> None:
        problem, basin = solution.problem, solution.ensemble.basin
        self.robot: CompiledRobot = problem.robot
        self.nominal = Balls.exact(np.asarray(self.robot.nominal_parameters, np.float64))
        self.parameters = parameters or self.nominal
        self.step = problem.control_step
        self.hold = held_seconds(problem, periods) if (periods := solution.run.settings.reaction_periods) else 0.0
        self.target = basin.target.double().numpy()
        self.cost, self.level = basin.cost.double().numpy(), basin.level
        self.cost = 0.5 * (self.cost + self.cost.T)
        states = self.robot.metadata.states
        self.bound = np.array([np.inf if state.continuous else state.limit for state in states])
        self.trim = np.asarray(self.robot.trim, np.float64)
        self.middle = np.array([entry.middle for entry in self.robot.metadata.inputs])
        self.limit = np.array([entry.limit for entry in self.robot.metadata.inputs])

    def with_parameters(self, parameters: Balls) -> HeldLoop:
        """The same loop for other parameters (p,) of the robot."""
        other = copy.copy(self)
        other.parameters = parameters
        return other

    def period(self, error: Balls) -> Period:
        """One control period from boxes of errors (N, n)."""
        _, B, _, dB, *_ = self._dynamics(error, self.nominal)
        w, slope = self._argument(error, B, dB)
        H = (B.mT @ Balls.exact(self.cost) @ B).times(2 * self.hold)
        d, K = self._input(w, slope, B, H, dB)
        inside = self._in_basin(error, B, w)
        moved, stays = self._motion(error, d)
        _, B, da, dB, da_dtheta, dB_dtheta = self._dynamics(moved, self.parameters)
        u = d + Balls.exact(self.trim)
        A, by_theta = da + _contracted(dB, u), da_dtheta + _contracted(dB_dtheta, u)
        series = self._series(A)
        change = (series @ self._rate(error, d)[..., None])[..., 0]
        return Period(change, series @ (A + B @ K), series @ by_theta, series @ B, inside & stays)

    @cached_property
    def _kernels(self) -> tuple[Kernels, Kernels]:
        """Enclosures of the Jacobians by x and theta, and of grad g~ and its derivatives by w."""
        program = self.robot.program
        outputs = {output.name: output.entries for output in program.function("jacobians").outputs}
        variables = [*program.arguments["x"].entries, *program.arguments["theta"].entries]
        dynamics = mean_value(program, [e for name in JACOBIANS for e in outputs[name]], variables)
        graph, w = Graph(), program.arguments["w"].entries
        places = {node: graph.input(program.graph.operations[node].name) for node in w}
        policy = graph.absorb(program.graph, program.function("optimal_input").roots, places)
        slopes = [reverse(graph, {root: graph.one}, [places[w[k]]])[0] for k, root in enumerate(policy)]
        of_policy = Program(graph, (), digest=program.digest)
        inputs = mean_value(of_policy, [*policy, *slopes], list(places.values()))
        return self.robot.compiled(dynamics), self.robot.compiled(inputs)

    def _dynamics(self, error: Balls, parameters: Balls) -> list[Balls]:
        """a (N, n), B (N, n, m), da_dx (N, n, n), dB_dx (N, n, m, n), da_dtheta (N, n, p), dB_dtheta (N, n, m, p)."""
        n, m, p, count = len(self.target), len(self.trim), len(self.nominal.middle), len(error.middle)
        x = error + Balls.exact(np.broadcast_to(self.target, error.middle.shape))
        theta = [np.broadcast_to(part, (count, len(part))) for part in (parameters.middle, parameters.radius)]
        found = _enclosed(self._kernels[0], np.hstack([x.middle, theta[0]]), np.hstack([x.radius, theta[1]]))
        shapes = (n,), (n, m), (n, n), (n, m, n), (n, p), (n, m, p)
        ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        return [
            Balls(*(part[:, start:end].reshape(count, *shape) for part in (found.middle, found.radius)))
            for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
        ]

    def _policy(self, w: Balls) -> tuple[Balls, Balls]:
        """grad g~ (N, m), and its derivatives (N, m), over intervals w (N, m)."""
        found = _enclosed(self._kernels[1], w.middle, w.radius)
        u, slope = found[:, : len(self.trim)], found[:, len(self.trim) :]
        u = Balls.between(np.maximum(u.lower, self.middle - self.limit), np.minimum(u.upper, self.middle + self.limit))
        return u, Balls.between(np.maximum(slope.lower, 0.0), slope.upper)  # g~ is convex

    def _argument(self, error: Balls, B: Balls, dB: Balls) -> tuple[Balls, Balls]:
        """w (N, m) and dw/dx (N, m, n)."""
        P = Balls.exact(-2.0 * self.cost)
        costate = P @ error[..., None]  # (N, n, 1)
        w = ((B.mT @ P) @ error[..., None])[..., 0]
        turned = Balls(np.swapaxes(dB.middle, 1, 3), np.swapaxes(dB.radius, 1, 3))  # (N, x, m, n)
        bent = (turned @ costate[:, None])[..., 0]  # (N, x, m)
        return w, B.mT @ P + bent.mT

    def _input(self, w: Balls, slope: Balls, B: Balls, H: Balls, dB: Balls) -> tuple[Balls, Balls]:
        """d (N, m), and K (N, m, n)."""
        one, room = Balls.exact(np.eye(len(self.trim))), self.limit - (self.trim - self.middle)
        d = Balls.between(*(np.broadcast_to(end, w.middle.shape) for end in (room - 2 * self.limit, room)))
        zero = Balls.exact(np.zeros_like(w.middle))
        for _ in range(CORRECTIONS):  # d = S (w - H d) with a slope S between those at 0 and at the argument
            argument = w - (H @ d[..., None])[..., 0]
            S = _diagonal(self._policy(hull(argument, zero))[1])
            d = intersection(d, ((one + S @ H).inverse() @ (S @ w[..., None]))[..., 0])
        argument = w - (H @ d[..., None])[..., 0]
        u, slopes = self._policy(argument)
        d, S = intersection(d, u - Balls.exact(self.trim)), _diagonal(slopes)
        if self.hold:
            turned = Balls(np.moveaxis(dB.middle, 3, 1), np.moveaxis(dB.radius, 3, 1))  # (N, x, n, m)
            half = turned.mT @ (Balls.exact(self.cost) @ B)[:, None]  # (N, x, m, m)
            bent = ((half + half.mT).times(2 * self.hold) @ d[:, None, :, None])[..., 0]  # (N, x, m)
            slope = slope - bent.mT
        return d, (one + S @ H).inverse() @ (S @ slope)

    def _in_basin(self, error: Balls, B: Balls, w: Balls) -> Mask:
        """Whether the states, and those at which the policy looks up V, are in the basin."""
        values, vectors = np.linalg.eigh(self.cost)
        root = Balls.exact(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
        spare = self.level * (1 - 1e-5)  # for the rounding of the root and of the policy in float32
        inside = norm((root @ error[..., None])[..., 0]) ** 2 < spare
        closed = (self._policy(w)[0] - Balls.exact(self.trim)).largest
        step = np.maximum(closed, SHORTEST * self.limit) if self.hold else np.zeros_like(closed)
        for k in range(len(self.trim)):
            way = Balls(np.zeros_like(step[:, k : k + 1]), self.hold * step[:, k : k + 1])
            beside = error + (B[:, :, k : k + 1] @ way[..., None])[..., 0]
            inside &= norm((root @ beside[..., None])[..., 0]) ** 2 < spare
        return inside

    def _rate(self, error: Balls, d: Balls) -> Balls:
        """a + B u (N, n) over boxes of errors."""
        a, B, *_ = self._dynamics(error, self.parameters)
        return a + (B @ (d + Balls.exact(self.trim))[..., None])[..., 0]

    def _motion(self, error: Balls, d: Balls) -> tuple[Balls, Mask]:
        """Boxes (N, n) that hold the error during the period, and whether they are known and within the limits.

        A box that contains error + [0, T] (a + B u)(box) holds the solution (Picard-Lindelof).
        """
        guess = error
        known = np.zeros(len(error.middle), bool)
        rate = self._rate(error, d)
        for _ in range(INFLATIONS):
            guess = error + self._way(rate).times(1.1)
            guess = Balls(guess.middle, guess.radius + 1e-12)
            rate = self._rate(guess, d)
            needed = error + self._way(rate)
            known = np.all((needed.lower >= guess.lower) & (needed.upper <= guess.upper), axis=1)
            if known.all():
                break
        within = (np.abs(self.target) + guess.largest <= self.bound).all(1)
        return guess, known & within

    def _way(self, rate: Balls) -> Balls:
        """Moves (N, n) within a period at rates (N, n)."""
        return Balls.between(np.minimum(rate.lower, 0.0), np.maximum(rate.upper, 0.0)).times(self.step)

    def _series(self, A: Balls) -> Balls:
        """sum_k A^k T^(k+1)/(k+1)! (N, n, n) of interval matrices A."""
        n = len(self.target)
        term = Balls.exact(np.broadcast_to(np.eye(n) * self.step, A.middle.shape))
        total = term
        for k in range(1, TERMS):
            term = (A @ term).times(self.step / (k + 1))
            total = total + term
        size = A.largest.sum(-1).max(-1) * self.step  # the rest is below the first term left out times e^size
        with np.errstate(over="ignore"):
            rest = self.step * size**TERMS / math.factorial(TERMS + 1) * np.exp(size) * (1 + 1e-10)
        return Balls(total.middle, total.radius + rest[:, None, None])


def _contracted(dB: Balls, u: Balls) -> Balls:
    """Derivatives of B u (N, n, k) at a fixed u (N, m), from those of B (N, n, m, k)."""
    turned = Balls(np.swapaxes(dB.middle, 2, 3), np.swapaxes(dB.radius, 2, 3))
    return (turned @ u[:, None, :, None])[..., 0]


def _diagonal(rows: Balls) -> Balls:
    one = np.eye(rows.middle.shape[-1])
    radius = np.where(one > 0, rows.radius[..., None], 0.0)
    return Balls(rows.middle[..., None] * one, radius)


def _enclosed(kernels: Kernels, middle: Array, radius: Array) -> Balls:
    arguments = {"middle": np.ascontiguousarray(middle), "radius": np.minimum(radius, 1e300)}
    middle, radius = kernels.evaluate("enclosure", arguments, None)
    return checked(middle, radius)
