"""Gymnasium environments of the generated robots: the task's cost, limits, starts and rates on the compiled kernels.

`RobotVectorEnv` simulates N episodes in one call of a kernel; `RobotEnv` is the same with one episode, bit for bit.
Importing this module registers every robot in ./generated and every shipped one, so that
`gymnasium.make("robust-value-iteration/pendulum-v0")` works; `register` adds those of another folder.

The action is the input divided by its limit, in [-1, 1]. The reward of a control period is -(q + g) times its length,
as in solver.plants.rollouts; nothing terminates an episode, and the horizon truncates it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modelgen.artifact.folder import known
from solver.baselines.settings import StartDistribution
from solver.errors import SolverError
from solver.gym.rendering import Camera
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem
from solver.problem.robots import load_robot

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.utils.seeding import np_random
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise SolverError(
        "solver.gym.environment needs Gymnasium, which is not installed: pip install 'robust-value-iteration[gym]'"
    ) from error

Observation = Literal["features", "state"]
Array = NDArray[Any]
NAMESPACE = "robust-value-iteration"
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"]}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.SAME_STEP}


class Episodes:
    """N episodes of a robot side by side; every row is simulated on its own.

    start: `gaussian`, the task's start distribution, or `uniform` in the state domain. randomize: every parameter is
    drawn, once an episode, uniformly within this share of its nominal value, and clamped to its bounds. hold: control
    periods that an action is held; an episode has `length` actions.
    """

    def __init__(
        self, problem: Problem, size: int, start: StartDistribution, randomize: float, seconds: float | None, hold: int
    ) -> None:
        if start not in get_args(StartDistribution):
            raise SolverError(f"start is {start!r}; choices are {', '.join(get_args(StartDistribution))}")
        if not _is_number(randomize) or not 0.0 <= randomize < 1.0:
            raise SolverError(f"randomize is {randomize!r}; it is a share of the nominal parameters, in [0, 1)")
        task = problem.robot.metadata.task
        length = task.horizon if seconds is None else seconds
        if not _is_number(length) or not 0.0 < length < math.inf:
            raise SolverError(f"seconds is {seconds!r}; give a positive length of an episode")
        periods = round(length * task.control_rate)
        if not _is_whole(hold) or not 1 <= hold <= periods:
            raise SolverError(
                f"an action cannot be held for {hold!r} control periods in an episode of {periods}; give hold a whole "
                f"number of at least 1, and seconds at least hold * {problem.control_step:g}"
            )
        self.length = math.ceil(periods / hold)
        self.rate = task.control_rate / hold  # actions per second
        self.problem, self.start, self.randomize, self.hold = problem, start, randomize, int(hold)
        self.x = torch.zeros(size, len(problem.state_limits))
        self.theta = problem.theta.repeat(size, 1)
        self.taken = np.full(size, -1)  # actions in the present episode; -1 before the first

    def restart(self, rows: Sequence[int], generators: Sequence[np.random.Generator]) -> None:
        """A new start and, when randomised, new parameters in each of the rows, from the row's own generator."""
        problem = self.problem
        for row in rows:
            generator = torch.Generator().manual_seed(int(generators[row].integers(2**62)))
            sample = problem.sample_starts if self.start == "gaussian" else problem.sample_domain
            self.x[row] = sample(1, generator)[0]
            if self.randomize > 0.0:
                spread = self.randomize * problem.theta.abs()
                theta = problem.theta + spread * (2.0 * torch.rand(len(spread), generator=generator) - 1.0)
                self.theta[row] = theta.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
            self.taken[row] = 0

    def advance(self, action: Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """One action each, (N, m) in [-1, 1], held: rewards (N,), summed, and whether the episode is at its end.

        SolverError before the first reset, for actions of another shape or not finite, and for dynamics that blow up.
        """
        if (self.taken < 0).any():
            raise SolverError("there is no episode yet: call reset before step")
        problem, shape = self.problem, (len(self.x), len(self.problem.input_limits))
        share = np.asarray(action, dtype=np.float32)
        if share.shape != shape or not np.isfinite(share).all():
            raise SolverError(f"actions must be finite numbers of shape {shape}, inputs divided by their limits")
        u = torch.from_numpy(share.clip(-1.0, 1.0)) * problem.input_limits
        theta = self.theta if self.randomize > 0.0 else None
        cost, reward = problem.action_cost.cost(u), torch.zeros(len(self.x))
        for _ in range(self.hold):
            reward -= (problem.state_cost(self.x) + cost) * problem.control_step
            self.x = integrate_period(problem, self.x, u, theta)
        if not bool(torch.isfinite(self.x).all()):
            raise SolverError(
                f"the dynamics of {problem.robot.name} blew up within a control period; raise the task's "
                "simulation_rate"
            )
        self.taken += 1
        return reward.double().numpy(), self.taken >= self.length


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def features(problem: Problem, x: Tensor) -> Tensor:
    """States (N, n) as (N, k) in [-1, 1]: cosine and sine of an angle that wraps, other states over their limits."""
    columns = []
    for i, limit in enumerate(problem.state_limits):
        wraps = i in problem.continuous
        columns += [torch.cos(x[:, i]), torch.sin(x[:, i])] if wraps else [(x[:, i] / limit).clamp(-1.0, 1.0)]
    return torch.stack(columns, 1)


def feature_scales(problem: Problem, position: float, rate: float) -> list[float]:
    """(k,) what a network multiplies `features` by: 1 for cosine and sine, `position` or `rate` for the others."""
    scales = []
    for i, state in enumerate(problem.robot.metadata.states):
        scales += [1.0, 1.0] if i in problem.continuous else [position if state.kind == "position" else rate]
    return scales


class Options(TypedDict, total=False):
    """What both environments take by name beside the robot; the defaults are `_prepare`'s.

    start, randomize, hold: as in Episodes. seconds: length of an episode, the task's horizon by default. observation:
    `features` (see above) or `state`, SI units. generated: folder of artifacts. render_mode: None or `rgb_array`.
    """

    start: StartDistribution
    randomize: float
    seconds: float | None
    hold: int
    observation: Observation
    generated: str | None
    render_mode: str | None


class _Robot:
    """What both environments share: the episodes and the spaces."""

    def _prepare(
        self,
        size: int,
        robot: str,
        start: StartDistribution = "gaussian",
        randomize: float = 0.0,
        seconds: float | None = None,
        hold: int = 1,
        observation: Observation = "features",
        generated: str | None = None,
        render_mode: str | None = None,
    ) -> tuple[Box, Box]:
        """Load the robot; returns the spaces of one observation and one action. SolverError for a bad option."""
        if render_mode not in (None, *METADATA["render_modes"]):
            raise SolverError(f"render_mode is {render_mode!r}; choices are None and 'rgb_array'")
        if observation not in get_args(Observation):
            raise SolverError(f"observation is {observation!r}; choices are {', '.join(get_args(Observation))}")
        self.problem = Problem(load_robot(robot, "cpu", generated))
        self.episodes = Episodes(self.problem, size, start, randomize, seconds, hold)
        self.observation: Observation = observation
        self.camera = None if render_mode is None else Camera(self.problem.robot)
        limits = self.problem.state_limits.numpy()
        seen = limits if observation == "state" else np.ones(len(limits) + len(self.problem.continuous), np.float32)
        return Box(-seen, seen), Box(-1.0, 1.0, (len(self.problem.input_limits),))

    def _observe(self) -> Array:
        """Observations (N, k), float32; a new array."""
        x = self.episodes.x
        return (features(self.problem, x) if self.observation == "features" else x.clone()).numpy()

    def _pictures(self) -> tuple[Array, ...] | None:
        """One picture (height, width, 3) of every episode; None without a render mode."""
        if self.camera is None:
            return None
        rows = zip(self.episodes.x.numpy(), self.episodes.theta.numpy(), strict=True)
        return tuple(self.camera.picture(x, theta) for x, theta in rows)


def _no_options(options: dict[str, Any] | None) -> None:
    if options:
        raise SolverError(f"reset takes no options, and was given {', '.join(map(str, options))}")


class RobotEnv(gymnasium.Env[Array, Array], _Robot):
    """One robot, with one episode at a time."""

    metadata: dict[str, Any] = METADATA

    def __init__(self, robot: str, **options: Unpack[Options]) -> None:
        self.observation_space, self.action_space = self._prepare(1, robot, **options)
        self.render_mode = options.get("render_mode")
        self.metadata = {**self.metadata, "render_fps": self.episodes.rate}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """A new episode."""
        super().reset(seed=seed)
        _no_options(options)
        self.episodes.restart([0], [self.np_random])
        return self._observe()[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One action."""
        reward, ended = self.episodes.advance(np.asarray(action)[None])
        return self._observe()[0], float(reward[0]), False, bool(ended[0]), {}

    def render(self) -> Array | None:
        """The picture (height, width, 3) of the present state, where render_mode is rgb_array."""
        pictures = self._pictures()
        return None if pictures is None else pictures[0]


class RobotVectorEnv(gymnasium.vector.VectorEnv[Array, Array, Array], _Robot):
    """num_envs copies of a robot, simulated together.

    Environment i of a vector that was reset with `seed` is the RobotEnv that was reset with `seed + i`. An episode at
    its end starts anew in the same step; infos["final_obs"] holds its last observation.
    """

    metadata: dict[str, Any] = VECTOR_METADATA

    def __init__(self, robot: str, num_envs: int = 1, **options: Unpack[Options]) -> None:
        if not _is_whole(num_envs) or num_envs < 1:
            raise SolverError(f"num_envs is {num_envs!r}; give a whole number of at least 1")
        spaces = self._prepare(num_envs, robot, **options)
        self.num_envs, self.render_mode = num_envs, options.get("render_mode")
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in spaces)
        self.metadata = {**self.metadata, "render_fps": self.episodes.rate}
        self._generators: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere; seed: one number, environment i gets seed + i, or one for each."""
        _no_options(options)
        rows = range(self.num_envs)
        if seed is not None or not self._generators:
            seeds = [None if seed is None else seed + i for i in rows] if not isinstance(seed, Sequence) else seed
            if len(seeds) != self.num_envs:
                raise SolverError(f"reset was given {len(seeds)} seeds for {self.num_envs} environments")
            self._generators = [np_random(each)[0] for each in seeds]
        self.episodes.restart(rows, self._generators)
        return self._observe(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action in every environment."""
        reward, ended = self.episodes.advance(actions)
        observations, infos = self._observe(), {}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            rows = [int(row) for row in np.flatnonzero(ended)]
            for row in rows:
                last[row] = observations[row]
            infos = {"final_obs": last, "_final_obs": ended.copy()}
            self.episodes.restart(rows, self._generators)
            observations = self._observe()
        return observations, reward, np.zeros_like(ended), ended, infos

    def render(self) -> tuple[Array, ...] | None:
        """One picture of every environment, where render_mode is rgb_array."""
        return self._pictures()


def register(directory: str | Path | None = None) -> list[str]:
    """Register every robot of a folder of artifacts with Gymnasium; returns the ids, known ones included.

    By default those of ./generated and those shipped. A robot of the same name that is registered already is replaced.
    """
    ids = []
    generated = None if directory is None else str(directory)
    for name in known(directory):
        identifier = f"{NAMESPACE}/{name}-v0"
        gymnasium.registry.pop(identifier, None)
        gymnasium.register(
            identifier,
            entry_point=f"{__name__}:{RobotEnv.__name__}",
            vector_entry_point=f"{__name__}:{RobotVectorEnv.__name__}",
            kwargs={"robot": name, "generated": generated},
        )
        ids.append(identifier)
    return ids


register()
