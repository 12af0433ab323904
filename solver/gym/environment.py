"""Gymnasium environments of the generated robots: the task's cost, limits, starts and rates on the compiled kernels.

`RobotVectorEnv` simulates N episodes in one call of a kernel; `RobotEnv` is the same with one episode, bit for bit.

The action is the input divided by its limit, in [-1, 1]. The reward of a control period is -(q + g) times its length,
as in solver.plants.rollouts. No state terminates an episode; the horizon truncates it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import torch
from torch import Tensor

from solver.errors import SolverError
from solver.gym.episodes import Array, Episodes, is_whole
from solver.gym.observations import features
from solver.gym.rendering import Camera
from solver.observer.sensing import usual_counts
from solver.problem.problem import Problem, StartDistribution
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
Sensors = Literal["state", "encoders"]
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"]}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.SAME_STEP}


class Options(TypedDict, total=False):
    """The options of both environments beside the robot; `_prepare` has their defaults.

    start, target_share, randomize, seconds, hold: as in `Episodes`. observation: `features`, as in
    `solver.gym.observations`, or `state` in SI units. sensors: `state`, or `encoders`, which measure positions only, in
    whole counts. generated: folder of artifacts. render_mode: None or `rgb_array`.
    """

    start: StartDistribution
    target_share: float
    randomize: float
    seconds: float | None
    hold: int
    observation: Observation
    sensors: Sensors
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
        sensors: Sensors = "state",
        generated: str | None = None,
        render_mode: str | None = None,
        target_share: float = 0.0,
    ) -> tuple[Box, Box]:
        """Load the robot and return the spaces of one observation and one action.

        Raises SolverError for an option out of range, ModelError for an unknown robot.
        """
        if render_mode not in (None, *METADATA["render_modes"]):
            raise SolverError(f"render_mode is {render_mode!r}; choices are None and 'rgb_array'")
        if observation not in get_args(Observation):
            raise SolverError(f"observation is {observation!r}; choices are {', '.join(get_args(Observation))}")
        if sensors not in get_args(Sensors):
            raise SolverError(f"sensors is {sensors!r}; choices are {', '.join(get_args(Sensors))}")
        self.problem = Problem(load_robot(robot, "cpu", generated))
        self.episodes = Episodes(self.problem, size, start, randomize, seconds, hold, target_share)
        self.observation: Observation = observation
        self.camera = None if render_mode is None else Camera(self.problem.robot)
        self.counts = usual_counts(self.problem) if sensors == "encoders" else None
        limits = self.problem.state_limits.numpy()
        limits = limits if self.counts is None else limits[: len(self.counts)]
        seen = limits if observation == "state" else np.ones(len(limits) + len(self.problem.continuous), np.float32)
        return Box(-seen, seen), Box(-1.0, 1.0, (len(self.problem.input_limits),))

    def _observe(self) -> Array:
        """Observations (N, k), float32; a new array."""
        x = self.episodes.x if self.counts is None else self._counted(self.counts)
        return (features(self.problem, x) if self.observation == "features" else x.clone()).numpy()

    def _counted(self, counts: Tensor) -> Tensor:
        """The positions (N, q) in whole counts, within their limits."""
        positions, limits = self.episodes.x[:, : len(counts)], self.problem.state_limits[: len(counts)]
        return torch.clamp(torch.round(positions / counts) * counts, -limits, limits)

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
        if not is_whole(num_envs) or num_envs < 1:
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


def __getattr__(name: str) -> Any:
    """`register` stood here until version 0.1."""
    if name != "register":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from solver.gym.registration import register

    warnings.warn("solver.gym.environment.register is now solver.gym.register", DeprecationWarning, stacklevel=2)
    return register
