"""Trajectory optimisation: the best return of any controller from one start.

The problem is the one of the evaluation: the same Runge-Kutta steps, inputs held for control periods, and the
undiscounted cost of `solver.plants.outcome`. The variables are the inputs and the states at the start of every control
period (direct multiple shooting). The dynamics are equality constraints. States are within their limits after every
integration step, so that the simulation would never clip one. IPOPT solves the problem with exact first and second
derivatives from a guess.

Every solution is a local optimum. Its return can be reached, but a better manoeuvre may exist that no guess led to.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from modelgen.arrays import MOST_STEPS, Array, least_steps
from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata, Rotation
from solver.errors import SolverError

OPTIONS: dict[str, Any] = {
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "print_time": False,
    "ipopt.tol": 1e-6,
    "ipopt.max_iter": 300,
    "ipopt.mu_init": 1e-4,  # with a larger barrier parameter, the first steps leave a good guess
    "ipopt.bound_relax_factor": 0.0,  # inputs stay strictly within their limits, where barriers are finite
}
#: Weights, in consecutive solves, of the squared distance to the guess and then to the last solution. Without them the
#: first steps leave a good guess for an easier motion, such as a robot that hangs still.
PULLS = (1.0, 0.1, 0.01, 0.0)
COARSE: dict[str, Any] = {"ipopt.max_iter": 150}  # successful coarse searches need 10 to 140
RESOLVED = 0.01  # of a state's limit: largest integration error of a coarse hold
#: Random states at which the error is computed, and share of them that must satisfy RESOLVED. Near a singular posture,
#: or with all rates at their limits, errors are a thousand times as large as in motions.
SAMPLES, USUAL = 256, 0.9
#: Return status of IPOPT after Ctrl-C, which CasADi reports as a failure of its functions.
INTERRUPTED = ("User_Requested_Stop", "NonIpopt_Exception_Thrown")


def require_within(metadata: Metadata, start: Array, what: str) -> None:
    """Raises SolverError if a start (n,) lies beyond the limit of a state that does not wrap."""
    for value, state in zip(start, metadata.states, strict=True):
        if not state.continuous and abs(value) > state.limit:
            raise SolverError(
                f"{what} has {state.name} {value:g}, beyond its limit of {state.limit:g} {state.unit}. Widen the limit "
                "in the model file, or change the start."
            )


@dataclass(frozen=True)
class PlannedMotion:
    """A motion of K control periods."""

    x: Array  # (K + 1, n); continuous angles are not wrapped
    u: Array  # (K, m)
    reward: float  # undiscounted return
    guess: str  # name of the guess of the search


@dataclass(frozen=True)
class FirstMotion:
    """First values of a search. The states need not follow from the inputs."""

    name: str
    x: Array  # (K + 1, n)
    u: Array  # (K, m)


class NonlinearProgram:
    """Nonlinear program of a robot's task, built once for all starts.

    robot: with the backend casadi.
    theta: (p,) parameters, by default the nominal ones. seconds: by default the task's horizon. trim: (m,) input from
    which the action cost is measured, by default the robot's.
    hold: control periods for which a coarse search holds an input. The integration steps of a hold are the smallest
    power of two that satisfies RESOLVED. Without `hold`, the search is exact.
    patience: processor seconds of a search, after which `solve` returns None.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        theta: Array | None = None,
        seconds: float | None = None,
        hold: int | None = None,
        patience: float = math.inf,
        trim: Array | None = None,
    ) -> None:
        self.metadata, self.task = robot.metadata, robot.metadata.task
        self.coarse, self.hold = hold is not None, hold or 1
        self.rate = self.task.control_rate / self.hold  # holds per second
        self.periods = round((seconds or self.task.horizon) * self.task.control_rate) // self.hold
        self.state_limits = np.asarray(robot.state_limits, float)
        self.input_limits = np.asarray(robot.input_limits, float)
        self.input_middle = np.asarray(robot.input_middle, float)
        self.trim = np.asarray(robot.trim if trim is None else trim, float)
        self.wraps = np.array([state.continuous for state in self.metadata.states])
        turning = np.isin(np.arange(len(self.wraps)), list(self.metadata.turning))
        self.clipped = ~self.wraps & ~turning
        #: Rotations whose angle from the target has a limit.
        self.limited = [rotation for rotation in self.metadata.rotations if rotation.limit < math.pi]
        self.coordinates = self.metadata.nq
        nominal = np.asarray(robot.nominal_parameters) if theta is None else theta
        self.steps, self.step = self._resolved(robot, nominal)
        self.patience = patience
        self._solver = self._program()
        affine = robot.casadi_function("affine_dynamics")
        self.control_matrix: Callable[[Array], Array] = lambda x: np.asarray(affine(x, nominal)[1])

    def _resolved(self, robot: CompiledRobot, theta: Array) -> tuple[int, Any]:
        """Number of integration steps in a hold, and `_step` with this number."""
        own, least = robot.declared_parameters, 0
        if not np.array_equal(theta, own):  # than those for which `modelgen build` chose the steps
            least, _ = least_steps(self.metadata, lambda x, u: np.asarray(robot.dynamics(x, u, theta)))
            least = least or MOST_STEPS
        exact = max(self.task.integration_steps, least) * self.hold
        reference = self._step(robot, theta, exact)
        if not self.coarse:
            return exact, reference
        random = np.random.default_rng(0)
        x = random.uniform(-1.0, 1.0, (len(self.state_limits), SAMPLES)) * self.state_limits[:, None]
        x = self.normalised(x.T).T
        u = random.choice([-1.0, 1.0], (len(self.input_limits), SAMPLES)) * self.input_limits[:, None]
        u += self.input_middle[:, None]
        expected = np.asarray(reference(x, u)[0])
        steps = 1
        while steps < exact:
            step = self._step(robot, theta, steps)
            error = (np.abs(np.asarray(step(x, u)[0]) - expected) / self.state_limits[:, None]).max(0)
            if np.mean(error <= RESOLVED) >= USUAL:  # a state that is not finite counts as not resolved
                return steps, step
            steps *= 2  # from below, because the time to build a step is proportional to the number of steps
        return exact, reference

    def _step(self, robot: CompiledRobot, theta: Array, steps: int) -> Any:
        """A casadi.Function of a hold: (x, u) -> (x at its end, cost, clipped states within the hold, turns).

        The third output has a column for every integration step except the last. The fourth has a column for every
        step: (sin(angle / 2) / sin(limit / 2))^2 of each rotation with a limit.
        """
        dynamics, state_cost, action_cost = map(robot.casadi_function, ("dynamics", "state_cost", "action_cost"))
        x, u = casadi.SX.sym("x", len(self.state_limits)), casadi.SX.sym("u", len(self.input_limits))

        def cost_of(at: Any) -> Any:
            """State cost at nominal parameters and wrapped angles, as in the evaluation."""
            turns = casadi.floor((at + math.pi) / (2.0 * math.pi)) * casadi.DM(self.wraps)
            return state_cost(at - 2.0 * math.pi * turns, robot.nominal_parameters)[0]

        later, state_part, between, turned = x, 0.0, [], []
        h = 1.0 / (steps * self.rate)
        for k in range(steps):  # classical Runge-Kutta method for the state and the integral of its cost
            stages, slopes = [later], []
            for share in (0.5, 0.5, 1.0):
                slopes.append(dynamics(stages[-1], u, theta))
                stages.append(later + share * h * slopes[-1])
            slopes.append(dynamics(stages[-1], u, theta))
            weights = (h / 6.0, h / 3.0, h / 3.0, h / 6.0)
            state_part += sum(weight * cost_of(at) for weight, at in zip(weights, stages, strict=True))
            later = later + sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))
            for rotation in self.metadata.rotations:
                entries = rotation.quaternion
                later[entries] = later[entries] / casadi.norm_2(later[entries])
            turned.append(casadi.vertcat(*(self._turn(rotation, later) for rotation in self.limited)))
            if k < steps - 1:
                between.append(later[np.flatnonzero(self.clipped).tolist()])
        level, slope = action_cost(self.trim)[:2]
        cost = state_part + (action_cost(u)[0] - level - casadi.dot(slope, u - self.trim)) / self.rate
        inner = casadi.horzcat(*between) if between else casadi.SX(int(self.clipped.sum()), 0)
        outputs = [later, cost, inner, casadi.horzcat(*turned)]
        return casadi.Function("step", [x, u], outputs, ["x", "u"], ["later", "cost", "between", "turned"])

    def _turn(self, rotation: Rotation, x: Any) -> Any:
        """(sin(angle / 2) / sin(limit / 2))^2 of a rotation's angle from the target in the state x."""
        goal = casadi.DM(np.array(self.task.target)[rotation.quaternion])
        return (1.0 - casadi.dot(goal, x[rotation.quaternion]) ** 2) / math.sin(rotation.limit / 2.0) ** 2

    def normalised(self, x: Array) -> Array:
        """The states x (N, n) with quaternions of length one."""
        for rotation in self.metadata.rotations:
            entries = rotation.quaternion
            x[:, entries] /= np.linalg.norm(x[:, entries], axis=1, keepdims=True)
        return x

    def _scaled(self) -> Any:
        """A casadi.Function of a hold in units of the limits: column (x, u) -> (x at its end, cost, states within)."""
        n, limits = len(self.state_limits), casadi.DM(self.state_limits)
        column = casadi.SX.sym("column", n + len(self.input_limits))
        u = casadi.DM(self.input_middle) + casadi.DM(self.input_limits) * column[n:]
        later, cost, between, turned = self.step(limits * column[:n], u)
        inside = casadi.diag(1.0 / limits[np.flatnonzero(self.clipped).tolist()]) @ between  # at most 1 in magnitude
        if self.limited:
            inside = casadi.vertcat(casadi.vec(inside), casadi.vec(turned))
        return casadi.Function("period", [column], [later / limits, cost, inside])

    def _program(self) -> Any:
        """IPOPT solver with the variables (x_k/limit, (u_k - middle)/limit) of every hold, and the last state."""
        n, m, k = len(self.state_limits), len(self.input_limits), self.periods
        period, w = self._scaled(), casadi.MX.sym("w", (n + m) * k + n)
        columns = casadi.reshape(w[: (n + m) * k], n + m, k)
        later, cost, inside = period.map(k)(columns)
        gaps = later - casadi.horzcat(columns[:n, 1:], w[(n + m) * k :])
        pull, centre = casadi.MX.sym("pull"), casadi.MX.sym("centre", w.numel())
        objective = casadi.sum2(cost) + pull * casadi.sumsqr(w - centre)
        constraints = casadi.vertcat(casadi.vec(gaps), casadi.vec(inside))
        program: Any = {"x": w, "p": casadi.vertcat(pull, centre), "f": objective, "g": constraints}
        options = OPTIONS | (COARSE if self.coarse else {})
        options |= {"hess_lag": _hessian(period, columns, w, program["p"], pull)}
        if not math.isinf(self.patience):
            options |= {"ipopt.max_cpu_time": self.patience / len(PULLS)}
        return casadi.nlpsol("limit", "ipopt", program, options)

    def solve(self, start: Array, guess: FirstMotion) -> PlannedMotion | None:
        """Locally optimal motion from a start (n,) and a guess, or None if IPOPT finds no motion in its time.

        If only solves with a weight of PULLS succeed, it is the motion of the last one of them. Raises SolverError if
        the start lies beyond a state limit.
        """
        require_within(self.metadata, start, "the start")
        scaled = np.hstack([guess.x[:-1] / self.state_limits, (guess.u - self.input_middle) / self.input_limits])
        first = np.concatenate([scaled.ravel(), guess.x[-1] / self.state_limits])
        bound = np.where(self.clipped, 1.0, np.inf)
        upper = np.concatenate([np.tile(np.append(bound, np.ones(len(self.input_limits))), self.periods), bound])
        lower = -upper
        n = len(self.state_limits)
        lower[:n] = upper[:n] = first[:n] = start / self.state_limits
        inside = self.periods * ((self.steps - 1) * int(self.clipped.sum()) + self.steps * len(self.limited))
        reach = np.append(np.zeros(n * self.periods), np.ones(inside))
        w, cost = first, math.inf
        with _interruptible():
            for pull in PULLS:
                result = self._solver(x0=w, p=np.append(pull, w), lbx=lower, ubx=upper, lbg=-reach, ubg=reach)
                stats, new = self._solver.stats(), np.asarray(result["x"]).ravel()
                if stats["return_status"] in INTERRUPTED:
                    raise KeyboardInterrupt
                if stats["success"]:
                    cost = float(result["f"]) - pull * float(np.sum((new - w) ** 2))
                if stats["success"] or math.isinf(cost):
                    w = new
        if math.isinf(cost):
            return None
        columns = w[:-n].reshape(self.periods, -1)
        x = np.vstack([columns[:, :n], w[-n:]]) * self.state_limits
        return PlannedMotion(x, self.input_middle + columns[:, n:] * self.input_limits, -cost, guess.name)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Context that raises KeyboardInterrupt for Ctrl-C within CasADi, without the warning that CasADi prints."""
    warnings = io.StringIO()
    try:
        with redirect_stderr(warnings):
            yield
    except (RuntimeError, SystemError) as error:
        if "KeyboardInterrupt" in str(error) or isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    print(warnings.getvalue(), end="", file=sys.stderr)


def _hessian(period: Any, columns: Any, w: Any, p: Any, pull: Any) -> Any:
    """Hessian of the Lagrangian in w, upper triangle, as a casadi.Function.

    Cost and constraints of a hold depend only on its own column, so the Hessian has one block for each hold. With
    CasADi's general Hessian, searches take 1.3 to 1.5 times as long.
    """
    size, k = columns.shape
    column = casadi.SX.sym("column", size)
    later, cost, inside = period(column)
    of_cost, of_later = casadi.SX.sym("of_cost"), casadi.SX.sym("of_later", later.numel())
    of_inside = casadi.SX.sym("of_inside", inside.shape)
    lagrangian = of_cost * cost + casadi.dot(of_later, later) + casadi.dot(of_inside, inside)
    block = casadi.triu(casadi.hessian(lagrangian, column)[0])
    mapped = casadi.Function("block", [column, of_cost, of_later, of_inside], [block]).map(k)
    lam_f, lam_g = casadi.MX.sym("lam_f"), casadi.MX.sym("lam_g", k * (later.numel() + inside.numel()))
    gaps = casadi.reshape(lam_g[: k * later.numel()], later.numel(), k)
    reach = casadi.reshape(lam_g[k * later.numel() :], inside.shape[0], inside.shape[1] * k)
    blocks = casadi.horzsplit(mapped(columns, casadi.repmat(lam_f, 1, k), gaps, reach), size)
    last = w.numel() - columns.numel()  # size of the last state, on which only the pull depends
    whole = casadi.diagcat(*blocks, casadi.MX(last, last)) + 2.0 * lam_f * pull * casadi.MX.eye(w.numel())
    return casadi.Function("hess_lag", [w, p, lam_f, lam_g], [whole])
