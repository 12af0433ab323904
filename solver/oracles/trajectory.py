"""The best return any controller can have from one start: direct trajectory optimisation of the task.

The problem is the evaluation's own: the Runge-Kutta method, inputs held at the control rate, the
undiscounted cost of `solver.plants.rollouts`. States at the start of every control period are variables (direct
multiple shooting) within the state limits, the dynamics are equality constraints, and IPOPT solves it with exact first
and second derivatives from several guesses. States after every integration step keep within the limits too, the last
one included: nowhere would the simulation hold a state. Every solution is a local one: the best found is a return that
can be reached, and an upper bound for controllers only as far as no guess led to a better manoeuvre.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
RESOLVED, SAMPLES = 0.02, 256  # of a state's limit, the largest error in a coarse hold; states it is looked for at
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

    robot: of the casadi backend. theta (p,) replaces the nominal parameters, seconds the task's horizon. hold: control
    periods for which an input stays as it is. Above 1, the search is a coarse one: the integration steps are the
    least power of two that resolves the motion in a hold. patience: processor seconds of a search, after which `solve`
    finds nothing.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        theta: Array | None = None,
        seconds: float | None = None,
        hold: int = 1,
        patience: float = math.inf,
    ) -> None:
        self.metadata, self.task = robot.metadata, robot.metadata.task
        self.hold, self.rate = hold, self.task.control_rate / hold  # rate of the holds
        self.periods = round((seconds or self.task.horizon) * self.task.control_rate) // hold
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
        if self.hold == 1:
            return exact, reference
        random = np.random.default_rng(0)
        x = random.uniform(-1.0, 1.0, (len(self.state_limits), SAMPLES)) * self.state_limits[:, None]
        u = random.choice([-1.0, 1.0], (len(self.input_limits), SAMPLES)) * self.input_limits[:, None]
        right = np.asarray(reference(x, u)[0])
        steps = 1
        while steps < exact:
            step = self._step(robot, theta, steps)
            error = np.abs(np.asarray(step(x, u)[0]) - right) / self.state_limits[:, None]
            if error.max() <= RESOLVED:  # false where a state is not finite
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

    def _program(self) -> Any:
        """IPOPT on the columns (x_k/limit, u_k/limit), one a period, and the last state."""
        n, m, k = len(self.state_limits), len(self.input_limits), self.periods
        w = casadi.MX.sym("w", (n + m) * k + n)
        columns = casadi.reshape(w[: (n + m) * k], n + m, k)
        x, u = columns[:n, :], columns[n:, :]
        scale = casadi.DM(self.state_limits)
        later, cost, between = self.step.map(k)(casadi.diag(scale) @ x, casadi.diag(casadi.DM(self.input_limits)) @ u)
        following = casadi.horzcat(x[:, 1:], w[(n + m) * k :])
        gaps = casadi.diag(1.0 / scale) @ later - following
        pull, centre = casadi.MX.sym("pull"), casadi.MX.sym("centre", w.numel())
        objective = casadi.sum2(cost) + pull * casadi.sumsqr(w - centre)
        inside = casadi.diag(1.0 / casadi.DM(self.state_limits[self.clipped])) @ between  # of magnitude at most 1
        constraints = casadi.vertcat(casadi.vec(gaps), casadi.vec(inside))
        program: Any = {"x": w, "p": casadi.vertcat(pull, centre), "f": objective, "g": constraints}
        options = OPTIONS | (COARSE if self.hold > 1 else {}) | {"hess_lag": self._hessian(w, program["p"])}
        if not math.isinf(self.patience):
            options |= {"ipopt.max_cpu_time": self.patience / len(PULLS)}
        return casadi.nlpsol("limit", "ipopt", program, options)

    def _hessian(self, w: Any, p: Any) -> Any:
        """Of the Lagrangian, by w, upper triangle. A period's cost and constraints depend on its own column alone, so
        that it has a block for each: one function of a period, mapped. CasADi's own takes 1.6 times as long.
        """
        n, m, k = len(self.state_limits), len(self.input_limits), self.periods
        scale, inside = casadi.DM(self.state_limits), casadi.DM(self.state_limits[self.clipped])
        column = casadi.SX.sym("column", n + m)
        later, cost, between = self.step(scale * column[:n], casadi.DM(self.input_limits) * column[n:])
        of_cost, of_later = casadi.SX.sym("of_cost"), casadi.SX.sym("of_later", n)
        of_between = casadi.SX.sym("of_between", between.shape)
        lagrangian = of_cost * cost + casadi.dot(of_later, later / scale)
        lagrangian += casadi.dot(of_between, casadi.diag(1.0 / inside) @ between)
        block = casadi.triu(casadi.hessian(lagrangian, column)[0])
        of_period = casadi.Function("block", [column, of_cost, of_later, of_between], [block])
        lam_f, lam_g = casadi.MX.sym("lam_f"), casadi.MX.sym("lam_g", k * (n + between.numel()))
        columns = casadi.reshape(w[: (n + m) * k], n + m, k)
        multipliers = casadi.reshape(lam_g[: n * k], n, k)
        inner = casadi.reshape(lam_g[n * k :], between.shape[0], between.shape[1] * k)
        blocks = of_period.map(k)(columns, casadi.repmat(lam_f, 1, k), multipliers, inner)
        whole = casadi.diagcat(*casadi.horzsplit(blocks, n + m), casadi.MX(n, n))
        pulled = 2.0 * lam_f * p[0] * casadi.MX.eye(w.numel())
        return casadi.Function("hess_lag", [w, p, lam_f, lam_g], [casadi.triu(whole + pulled)])

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
    """Ctrl-C within CasADi, which makes another error of it, is a KeyboardInterrupt again."""
    try:
        yield
    except (RuntimeError, SystemError) as error:
        if "KeyboardInterrupt" in str(error) or isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def idle(program: NonlinearProgram, start: Array) -> Guess:
    """The robot stays at its start, with no input."""
    k, m = program.periods, len(program.input_limits)
    return Guess("an idle robot", np.tile(start, (k + 1, 1)), np.zeros((k, m)))


def straight(program: NonlinearProgram, start: Array) -> Guess:
    """At the target after a third of the horizon, by the shortest way."""
    return _motion(program, start, "the straight way", program.task.horizon / 3.0, np.zeros(program.coordinates), 0.0)


def pumped(program: NonlinearProgram, start: Array, share: float) -> Guess:
    """Inputs of a share of their limits, each along what it moves, as one pumps a swing: up to where the motion comes
    nearest to the target, and at the target from there."""
    limits, target = program.state_limits, np.array(program.task.target)
    q, m = program.coordinates, len(program.input_limits)
    x, u = np.tile(target, (program.periods + 1, 1)), np.zeros((program.periods, m))
    x[0], away = start, np.full(program.periods + 1, np.inf)
    for k in range(program.periods):
        along = np.sign(x[k, q:] @ program.control_matrix(x[k])[q:])
        u[k] = share * program.input_limits * np.where(along == 0.0, 1.0, along)
        x[k + 1] = np.asarray(program.step(x[k], u[k])[0]).ravel()
        if not (np.abs(x[k + 1]) < np.where(program.clipped, limits, np.inf)).all():
            break
        error = x[k + 1] - target
        error[:q] -= 2.0 * np.pi * ~program.clipped[:q] * np.round(error[:q] / (2.0 * np.pi))
        away[k + 1] = np.linalg.norm(error / limits)
    nearest = int(away.argmin())
    turns = 2.0 * np.pi * ~program.clipped[:q] * np.round((x[nearest] - target)[:q] / (2.0 * np.pi))
    x[nearest + 1 :], u[nearest:] = target, 0.0
    x[nearest + 1 :, :q] += turns
    return Guess(f"pumped with {share:g} of the inputs", x, u)


def random_motions(program: NonlinearProgram, start: Array, count: int, seed: int | tuple[int, ...]) -> list[Guess]:
    """Swings that grow and fade on the way to the target, by either way round: random in size, rate and duration."""
    rng = np.random.default_rng(seed)
    q = program.coordinates
    wraps = ~program.clipped[:q]
    found = []
    for i in range(count):
        seconds = rng.uniform(0.12, 0.8) * program.periods / program.rate
        swing = rng.uniform(-0.6, 0.6, q) * program.state_limits[:q]
        either = rng.choice([-1.0, 0.0, 1.0], q)  # from beside the target; from behind it there are but two ways
        turns: Array = wraps * np.where(
            np.abs(start[:q]) < np.pi / 2, either, np.sign(start[:q]) * np.maximum(either, 0)
        )
        cycles = rng.uniform(0.5, 3.0)
        found.append(_motion(program, start, f"random motion {i + 1}", seconds, swing, cycles, turns))
    return found


def _motion(
    program: NonlinearProgram,
    start: Array,
    name: str,
    seconds: float,
    swing: Array,
    cycles: float,
    turns: Array | float = 0.0,
) -> Guess:
    """From the start to the target in so many seconds, plus `cycles` of a sine of amplitude `swing` (q,); no input."""
    q, period = program.coordinates, 1.0 / program.rate
    share = np.minimum(np.arange(program.periods + 1) * period / seconds, 1.0)[:, None]
    goal = np.array(program.task.target)[:q] + 2.0 * np.pi * turns
    position = start[:q] + share**2 * (3.0 - 2.0 * share) * (goal - start[:q])
    position = position + swing * np.sin(np.pi * share) * np.sin(2.0 * np.pi * cycles * share)
    x = np.hstack([position, np.gradient(position, period, axis=0)])
    bound = np.where(program.clipped, program.state_limits, np.inf)
    return Guess(name, np.clip(x, -bound, bound), np.zeros((program.periods, len(program.input_limits))))
