"""An environment of a robot as pure functions of JAX: `reset(key)` and `step(state, action)`, for one or N episodes.

Costs, limits, starts and rates are those of `solver.gym`, and the tests compare both. The action is the input, from its
lower limit at -1 to its upper limit at 1. The reward of an action is minus the integral of the state cost and the
action cost. No state terminates an episode; the horizon truncates it, and a new one then starts in the same step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from torch import Tensor

from modelgen.metadata import Rotation
from solver.errors import SolverError
from solver.local.basin import can_tell
from solver.plants.episodes import Observation, episode_actions, require_observation
from solver.problem import UNIFORM, Problem, StartDistribution
from solver.problem.geometry import angles_within, matrix_entries, product_entries
from solver.problem.integrator import steps_within
from solver.problem.parameters import GivenRanges, is_whole, resolve
from solver.problem.robots import load_robot
from solver.value.family import TURN


class State(NamedTuple):
    """State of an episode; of N episodes with another first axis. It is a pytree."""

    x: Any  # (n,) of the robot, SI units
    theta: Any  # (p,) parameters
    taken: Any  # () actions so far
    key: Any  # of the random numbers of the next episode


class Step(NamedTuple):
    """Result of an action."""

    state: State  # after it; of a new episode where `truncated`
    observation: Any  # (k,) of that state
    reward: Any  # ()
    truncated: Any  # () bool: the episode has reached its horizon
    last_observation: Any  # (k,) after the action, of the old episode where `truncated`


class Environment:
    """Episodes of a robot. `reset` and `step` may be transformed by `jit`, `vmap`, `grad` and `lax.scan`.

    robot: its name. start, randomize, seconds, hold: as `solver.plants.episodes.Episodes` has them. observation:
    `features`, in which a continuous angle becomes its cosine and sine, a quaternion its rotation matrix, and every
    other state is divided by its limit, or `state` in SI units. dtype: float32, or float64 in a program that has JAX in
    64 bits. generated: folder of artifacts. given: parameters that every episode draws from their ranges, with the
    references of the model file, as `solver.gym` has them: at the end of an observation, from -1 to 1 among features.

    Raises SolverError for an option out of range, and ModelError for an unknown robot.
    """

    def __init__(
        self,
        robot: str,
        start: StartDistribution = "gaussian",
        randomize: float = 0.0,
        seconds: float | None = None,
        hold: int = 1,
        observation: Observation = "features",
        dtype: str = "float32",
        generated: str | None = None,
        given: GivenRanges = (),
    ) -> None:
        require_observation(observation)
        if dtype == "float64" and not jax.config.jax_enable_x64:
            raise SolverError(
                "JAX is set to 32 bits; write jax.config.update('jax_enable_x64', True) at the beginning, or take "
                "dtype='float32'"
            )
        compiled = load_robot(robot, "cpu", generated)
        problem = Problem(compiled, given=resolve(compiled, given, can_tell))
        self.robot = problem.robot.with_kernels("jax", dtype)
        self.length = episode_actions(problem, start, randomize, seconds, hold)
        self.start, self.randomize, self.observation, self.hold = start, float(randomize), observation, int(hold)
        self.action_size = len(self.robot.input_names)
        self._dtype = np.dtype(dtype)
        self._rotations, self._target = self.robot.metadata.rotations, np.array(self.robot.metadata.task.target, dtype)
        wraps = np.array([state.continuous for state in self.robot.metadata.states])
        self._turning = np.isin(np.arange(len(wraps)), list(self.robot.metadata.turning))
        unbounded = wraps | self._turning
        self._wraps, self._bound = wraps, np.where(unbounded, np.inf, [s.limit for s in self.robot.metadata.states])
        self._unwrapped = np.isin(np.arange(len(wraps)), problem.unwrapped_costs)
        spread = self.randomize > 0.0
        self._steps = steps_within(problem, *problem.around(self.randomize)) if spread else problem.substeps
        self._seconds = problem.control_step / self._steps
        self._context, self._held = problem.context, problem.moving_trim
        told = np.zeros(0, int) if problem.context is None else problem.context.columns.numpy()
        self._told, self._priced = told, problem.told_costs.numpy()

    def __repr__(self) -> str:
        return f"<environment of {self.robot.name}: {self.length} actions, {self.observation}, {self._dtype.name}>"

    def reset(self, key: Any, size: int | None = None) -> tuple[State, Any]:
        """State and observation (k,) of a new episode; of `size` episodes, with another first axis, if it is given.

        Raises SolverError for a size that is no whole number from 1 on.
        """
        if size is not None:
            if not is_whole(size) or size < 1:
                raise SolverError(f"size is {size!r}; give the number of episodes, a whole number from 1 on")
            return jax.vmap(self.reset)(jax.random.split(key, size))  # type: ignore[no-any-return]
        mine, start, parameters = jax.random.split(key, 3)
        theta = self.robot.nominal_parameters
        if self.randomize:
            share = jax.random.uniform(parameters, theta.shape, self._dtype, -1.0, 1.0)
            lower, upper = self.robot.parameter_bounds.T
            theta = jnp.clip(theta + self.randomize * jnp.abs(theta) * share, lower, upper)
        moved: Any = 0.0
        if self._context is not None:
            shares = jax.random.uniform(jax.random.fold_in(parameters, 1), self._told.shape, self._dtype, -1.0, 1.0)
            middle, half = self._ranges
            theta = theta.at[self._told].set(middle + half * shares)
            if self._context.start_shift is not None:
                moved = self._fixed(self._context.start_offset) + shares @ self._fixed(self._context.start_shift)
        state = State(self._start(start, moved), theta, jnp.zeros((), jnp.int32), mine)
        return state, self.observe(state.x, theta)

    @property
    def _ranges(self) -> tuple[Any, Any]:
        """Middles and half widths (k,) of the ranges of what is given."""
        assert self._context is not None
        return self._fixed(self._context.middle), self._fixed(self._context.half)

    def _fixed(self, tensor: Tensor) -> Any:
        return tensor.numpy().astype(self._dtype)

    def step(self, state: State, action: Any) -> Step:
        """Result of an action (m,) at a state, or of N actions (N, m) at the states of N episodes.

        Actions beyond -1 and 1 are clipped. Raises SolverError for another shape.
        """
        action = jnp.asarray(action, self._dtype)
        if np.shape(action) != (*np.shape(state.taken), self.action_size):
            episodes = np.shape(state.taken)
            raise SolverError(
                f"action has shape {np.shape(action)}; give {(*episodes, self.action_size)}, from -1 (lower limit of "
                "an input) to 1 (upper limit)"
            )
        if np.ndim(action) == 2:
            return jax.vmap(self.step)(state, action)  # type: ignore[no-any-return]
        share = jnp.clip(action, -1.0, 1.0)
        u = self.robot.input_middle + share * self.robot.input_limits
        paid = self._action_cost(u, state.theta)
        x, cost = jax.lax.fori_loop(
            0,
            self.hold,
            lambda _, at: self._period(at[0], at[1] + paid, u, state.theta),
            (state.x, jnp.zeros((), self._dtype)),
        )
        went_on = State(x, state.theta, state.taken + 1, state.key)
        truncated, observation = went_on.taken >= self.length, self.observe(x, state.theta)
        begun, first = self.reset(state.key)
        after, shown = jax.tree.map(
            lambda new, old: jnp.where(truncated, new, old), (begun, first), (went_on, observation)
        )
        return Step(after, shown, -cost, truncated, observation)

    def observe(self, x: Any, theta: Any = None) -> Any:
        """Observation (k,) of a state x (n,) of the robot with theta (p,), nominal by default."""
        told = (self.robot.nominal_parameters if theta is None else theta)[self._told]
        if self.observation == "state":
            return jnp.concatenate([x, told])
        columns: list[Any] = []
        matrices = {each.coordinate: matrix_entries(x[each.quaternion]) for each in self._rotations}
        for i, wraps in enumerate(self._wraps):
            if self._turning[i]:
                columns += matrices.get(i, ())
                continue
            share = jnp.clip(x[i] / self.robot.state_limits[i], -1.0, 1.0)
            columns += [jnp.cos(x[i]), jnp.sin(x[i])] if wraps else [share]
        if self._context is None:
            return jnp.stack(columns)
        middle, half = self._ranges
        return jnp.concatenate([jnp.stack(columns), (told - middle) / half])

    def _start(self, key: Any, moved: Any) -> Any:
        """First state (n,) of an episode, in which the mean start has moved (n,)."""
        task, size, limits = self.robot.metadata.task, len(self._wraps), self.robot.state_limits
        uniform = jax.random.uniform(key, (size,), self._dtype, -1.0, 1.0) * limits
        if self.start == "uniform":
            return self._with_any_rotations(uniform, key)
        mean, deviation = (np.array(values, self._dtype) for values in (task.start_mean, task.start_deviation))
        draw = jax.random.normal(jax.random.fold_in(key, 1), (size,), self._dtype)
        x = jnp.where(self._wraps & (self.start == "angle"), uniform, mean + moved + deviation * draw)
        if self.start == "angle":
            return self._confined(self._with_any_rotations(x, key))
        for rotation in self._rotations:
            q, spread = rotation.quaternion, task.start_deviation[rotation.coordinate]
            turned = _exponential(draw[q][1:] * spread)
            x = x.at[q].set(draw[q] if spread >= UNIFORM else jnp.stack(product_entries(mean[q], turned)))
        return self._confined(x)

    def _with_any_rotations(self, x: Any, key: Any) -> Any:
        """x (n,) with rotations that are uniform within their limits."""
        for number, rotation in enumerate(self._rotations):
            q = rotation.quaternion
            draw = jax.random.normal(jax.random.fold_in(key, 2 + number), (5,), self._dtype)
            if rotation.limit < np.pi:
                share, angle = (each.numpy().astype(self._dtype) for each in angles_within(rotation.limit))
                turn = jnp.interp(jax.scipy.stats.norm.cdf(draw[0]), share, angle)
                vector = turn * draw[1:4] / jnp.linalg.norm(draw[1:4])
                drawn = jnp.stack(product_entries(self._target[q], _exponential(vector)))
            else:
                drawn = draw[:4] / jnp.linalg.norm(draw[:4])
            x = x.at[q].set(drawn)
        return x

    def _period(self, x: Any, cost: Any, u: Any, theta: Any) -> tuple[Any, Any]:
        """The state (n,) after a control period under u (m,), and the cost so far with that of the state."""
        nominal = self.robot.nominal_parameters
        priced = nominal if not len(self._priced) else nominal.at[self._priced].set(theta[self._priced])

        def advance(_: Any, at: tuple[Any, Any]) -> tuple[Any, Any]:
            x, total = at
            stages, rates = [x], [self.robot.dynamics(x, u, theta)]
            for share in (0.5, 0.5, 1.0):
                stages.append(x + share * self._seconds * rates[-1])
                rates.append(self.robot.dynamics(stages[-1], u, theta))
            turned = [jnp.where(self._unwrapped, _turned(stage), stage) for stage in stages]
            costs = [self.robot.state_cost(stage, priced)[0] for stage in turned]
            slope, mean = ((e[0] + 2.0 * e[1] + 2.0 * e[2] + e[3]) / 6.0 for e in (rates, costs))
            return self._confined(x + self._seconds * slope), total + self._seconds * mean

        return jax.lax.fori_loop(0, self._steps, advance, (x, cost))  # type: ignore[no-any-return]

    def _action_cost(self, u: Any, theta: Any) -> Any:
        """Integral of the action cost of u (m,) over a control period, measured from the trim of what is given."""
        level = self.robot.action_cost(u)[0]
        if self._held:
            assert self._context is not None
            middle, half = self._ranges
            nominal, target = self.robot.nominal_parameters, self._fixed(self._context.target)
            if self._context.shift is not None:
                target = target + (theta[self._told] - middle) / half @ self._fixed(self._context.shift)
            held = self.robot.trim_at(target, nominal.at[self._told].set(theta[self._told]))
            lowest, slope = self.robot.action_cost(held)[:2]
            level = jnp.maximum(level - lowest - slope @ (u - held), 0.0)
        return level * (self._seconds * self._steps)

    def _confined(self, x: Any) -> Any:
        """x (n,) with angles in [-pi, pi), quaternions of length one, and other states within their limits."""
        x = normalised(jnp.where(self._wraps, _turned(x), jnp.clip(x, -self._bound, self._bound)), self._rotations)
        for rotation in self._rotations:
            if rotation.limit < np.pi:
                goal, cosine = self._target[rotation.quaternion], np.cos(0.5 * rotation.limit)
                apart = apart_from(goal, x[rotation.quaternion])
                beyond = jnp.abs(apart[0]) < cosine
                size = jnp.linalg.norm(jnp.where(beyond, apart[1:], 1.0))  # with finite slopes at no turn
                vector = apart[1:] * (np.sin(0.5 * rotation.limit) / size)
                held = jnp.concatenate([jnp.where(apart[:1] < 0.0, -cosine, cosine), vector])
                within = jnp.stack(product_entries(goal, held))
                x = x.at[rotation.quaternion].set(jnp.where(beyond, within, x[rotation.quaternion]))
        return x


def normalised(x: Any, rotations: tuple[Rotation, ...]) -> Any:
    """x (n,) with quaternions of length one."""
    for rotation in rotations:
        q = x[rotation.quaternion]
        x = x.at[rotation.quaternion].set(q / jnp.linalg.norm(q))
    return x


def apart_from(goal: Any, q: Any) -> Any:
    """The quaternion (4,) that turns `goal` into q."""
    return jnp.stack(product_entries(goal * np.array([1, -1, -1, -1], goal.dtype), q))


def _exponential(vector: Any) -> Any:
    """The unit quaternion (4,) of a rotation vector (3,)."""
    angle = jnp.linalg.norm(vector)
    return jnp.concatenate([jnp.cos(0.5 * angle)[None], 0.5 * jnp.sinc(angle / TURN) * vector])


def _turned(x: Any) -> Any:
    """Angles in [-pi, pi); differentiable with slope 1."""
    return x - TURN * jax.lax.stop_gradient(jnp.floor(x / TURN + 0.5))
