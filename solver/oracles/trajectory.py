"""The best return any controller can have from one start: direct trajectory optimisation of the task.

The problem is the evaluation's own: the Runge-Kutta method, inputs held at the control rate, the
undiscounted cost of `solver.plants.rollouts`. States at the start of every control period are variables (direct
multiple shooting) within the state limits, the dynamics are equality constraints, and IPOPT solves it with exact first
and second derivatives from several guesses. States after every integration step keep within the limits too, the last
one included: nowhere would the simulation hold a state. Every solution is a local one: the best found is a return that
can be reached, and an upper bound for controllers only as far as no guess led to a better manoeuvre.
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
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot
from solver.oracles.starts import require_within

Array = NDArray[np.float64]
OPTIONS: dict[str, Any] = {
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "print_time": False,
    "ipopt.tol": 1e-6,
    "ipopt.max_iter": 300,
    "ipopt.mu_init": 1e-4,  # a larger barrier parameter throws a good guess away in its first steps
    "ipopt.bound_relax_factor": 0.0,  # inputs stay strictly within their limits, where barriers are finite
}
#: Weights of the squared distance to the guess, then to the solution before: without them the first steps leave a good
#: guess for an easier motion, such as hanging still.
PULLS = (1.0, 0.1, 0.01, 0.0)
COARSE: dict[str, Any] = {"ipopt.max_iter": 150}  # guesses that lead somewhere need 10 to 140
RESOLVED = 0.01  # of a state's limit, the largest error in a coarse hold
#: States that it is looked for at, and the share that must have no larger one: near a singular posture, or at all
#: limits of rates at once, errors are a thousand times those of motions.
SAMPLES, USUAL = 256, 0.9
#: What IPOPT says after Ctrl-C, which CasADi takes for a failure of its functions.
INTERRUPTED = ("User_Requested_Stop", "NonIpopt_Exception_Thrown")


@dataclass(frozen=True)
class Trajectory:
    """K control periods of one motion."""

    x: Array  # (K + 1, n); continuous angles run on and do not wrap
    u: Array  # (K, m)
    reward: float  # undiscounted return
    guess: str  # where the search began


@dataclass(frozen=True)
class Guess:
    """Where a search begins: states (K + 1, n) and inputs (K, m), which need not fit together."""

    name: str
    x: Array
    u: Array


class NonlinearProgram:
    """The nonlinear program of a robot's task, built once for all starts.

    robot: of the casadi backend. theta (p,) replaces the nominal parameters, seconds the task's horizon. hold: of a
    coarse search, the control periods for which an input stays as it is; its integration steps are the least power of
    two that resolves the motion in a hold from most states. patience: processor seconds of a search, after which
    `solve` finds nothing.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        theta: Array | None = None,
        seconds: float | None = None,
        hold: int | None = None,
        patience: float = math.inf,
    ) -> None:
        self.metadata, self.task = robot.metadata, robot.metadata.task
        self.coarse, self.hold = hold is not None, hold or 1
        self.rate = self.task.control_rate / self.hold  # of the holds
        self.periods = round((seconds or self.task.horizon) * self.task.control_rate) // self.hold
        self.state_limits = np.asarray(robot.state_limits, float)
        self.input_limits = np.asarray(robot.input_limits, float)
        self.clipped = np.array([not state.continuous for state in self.metadata.states])
        self.coordinates = len(self.metadata.coordinates)
        nominal = np.asarray(robot.nominal_parameters) if theta is None else theta
        self.steps, self.step = self._resolved(robot, nominal)
        self.patience = patience
        self._solver = self._program()
        affine = robot.casadi_function("affine_dynamics")
        self.control_matrix: Callable[[Array], Array] = lambda x: np.asarray(affine(x, nominal)[1])

    def _resolved(self, robot: CompiledRobot, theta: Array) -> tuple[int, Any]:
        """The integration steps of a hold, and `_step` with them."""
        exact = self.task.integration_steps * self.hold
        reference = self._step(robot, theta, exact)
        if not self.coarse:
            return exact, reference
        random = np.random.default_rng(0)
        x = random.uniform(-1.0, 1.0, (len(self.state_limits), SAMPLES)) * self.state_limits[:, None]
        u = random.choice([-1.0, 1.0], (len(self.input_limits), SAMPLES)) * self.input_limits[:, None]
        right = np.asarray(reference(x, u)[0])
        steps = 1
        while steps < exact:
            step = self._step(robot, theta, steps)
            error = (np.abs(np.asarray(step(x, u)[0]) - right) / self.state_limits[:, None]).max(0)
            if np.mean(error <= RESOLVED) >= USUAL:  # false where a state is not finite
                return steps, step
            steps *= 2  # to build one costs as much as it has steps, and there may be hundreds
        return exact, reference

    def _step(self, robot: CompiledRobot, theta: Array, steps: int) -> Any:
        """(x, u) -> (x one hold later, cost of the hold, clipped states after the integration steps before the last).

        One expanded casadi.Function; the third output has a column for each of these steps.
        """
        dynamics, state_cost, action_cost = map(robot.casadi_function, ("dynamics", "state_cost", "action_cost"))
        x, u = casadi.SX.sym("x", len(self.state_limits)), casadi.SX.sym("u", len(self.input_limits))

        def cost_of(at: Any) -> Any:
            """The state cost, as in the evaluation at nominal parameters and with wrapped angles."""
            turns = casadi.floor((at + math.pi) / (2.0 * math.pi)) * casadi.DM(~self.clipped)
            return state_cost(at - 2.0 * math.pi * turns, robot.nominal_parameters)[0]

        later, state_part, between = x, 0.0, []
        h = 1.0 / (steps * self.rate)
        for k in range(steps):  # the classical Runge-Kutta method, of the state and of its cost
            places, slopes = [later], []
            for share in (0.5, 0.5, 1.0):
                slopes.append(dynamics(places[-1], u, theta))
                places.append(later + share * h * slopes[-1])
            slopes.append(dynamics(places[-1], u, theta))
            weights = (h / 6.0, h / 3.0, h / 3.0, h / 6.0)
            state_part += sum(weight * cost_of(at) for weight, at in zip(weights, places, strict=True))
            later = later + sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))
            if k < steps - 1:
                between.append(later[np.flatnonzero(self.clipped).tolist()])
        cost = state_part + action_cost(u)[0] / self.rate
        inner = casadi.horzcat(*between) if between else casadi.SX(int(self.clipped.sum()), 0)
        return casadi.Function("step", [x, u], [later, cost, inner], ["x", "u"], ["later", "cost", "between"])

    def _scaled(self) -> Any:
        """A control period of the column (x/limit, u/limit): (x/limit at its end, cost, states between/limit)."""
        n, limits = len(self.state_limits), casadi.DM(self.state_limits)
        column = casadi.SX.sym("column", n + len(self.input_limits))
        later, cost, between = self.step(limits * column[:n], casadi.DM(self.input_limits) * column[n:])
        inside = casadi.diag(1.0 / limits[np.flatnonzero(self.clipped).tolist()]) @ between  # of magnitude at most 1
        return casadi.Function("period", [column], [later / limits, cost, inside])

    def _program(self) -> Any:
        """IPOPT on the columns (x_k/limit, u_k/limit), one a period, and the last state."""
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

    def solve(self, start: Array, guess: Guess) -> Trajectory | None:
        """The motion from a start (n,) that IPOPT finds from a guess; None when it finds none in its time.

        A local optimum; where the search without a pull leads nowhere, the motion that was found with the last one.
        Raises SolverError when the start lies beyond a state limit.
        """
        require_within(self.metadata, start, "the start")
        scaled = np.hstack([guess.x[:-1] / self.state_limits, guess.u / self.input_limits])
        first = np.concatenate([scaled.ravel(), guess.x[-1] / self.state_limits])
        bound = np.where(self.clipped, 1.0, np.inf)
        upper = np.concatenate([np.tile(np.append(bound, np.ones(len(self.input_limits))), self.periods), bound])
        lower = -upper
        n = len(self.state_limits)
        lower[:n] = upper[:n] = first[:n] = start / self.state_limits
        inside = self.periods * (self.steps - 1) * int(self.clipped.sum())
        reach = np.append(np.zeros(n * self.periods), np.ones(inside))
        w, cost = first, math.inf
        with _interruptible():
            for pull in PULLS:
                given = np.append(pull, w)
                result = self._solver(x0=w, p=given, lbx=lower, ubx=upper, lbg=-reach, ubg=reach)
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
        return Trajectory(x, columns[:, n:] * self.input_limits, -cost, guess.name)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where CasADi makes another error of it, and drop the warning that it prints then."""
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
    """Of the Lagrangian, by w, upper triangle. A period's cost and constraints depend on its own column alone, so that
    it has a block for each: one function of a period, mapped. CasADi's own takes 1.3 to 1.5 times as long.
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
    last = w.numel() - columns.numel()  # of the last state, which nothing depends on but the pull
    whole = casadi.diagcat(*blocks, casadi.MX(last, last)) + 2.0 * lam_f * pull * casadi.MX.eye(w.numel())
    return casadi.Function("hess_lag", [w, p, lam_f, lam_g], [whole])
