"""Gymnasium environments of the compiled robots, with the costs, limits, starts and rates of their tasks.

`RobotVectorEnv` simulates N episodes in one call of a kernel. `RobotEnv` gives the same numbers for one episode, bit
for bit.

The action is the input divided by its limit, in [-1, 1]. The reward of a control period is minus the integral of the
state cost and the action cost, as in solver.plants.outcome. No state terminates an episode; the horizon truncates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from modelgen.style import POLICIES
from solver.errors import SolverError
from solver.local.basin import can_tell
from solver.observer import usual_counts
from solver.plants.episodes import Array, Episodes, Observation, features, require_observation
from solver.problem import Problem, StartDistribution
from solver.problem.parameters import GivenRanges, is_whole, resolve
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

Sensors = Literal["state", "encoders"]
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"]}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.SAME_STEP}
LONGER_SIDE = 400  # pixels, of a picture
DPI = 100  # any value; it cancels


class EnvironmentOptions(TypedDict, total=False):
    """Options of both environments. `_prepare` has their defaults.

    start, target_share, randomize, seconds, hold: see `Episodes`.
    observation: `features` in [-1, 1], see the function `features`; or `state` in SI units.
    sensors: `state`, or `encoders`, which measure positions only, in whole counts.
    generated: folder of artifacts. render_mode: None or `rgb_array`.
    given: parameters that every episode draws uniformly from their ranges, as in `solver.train`. They are the last
    entries of an observation: in [-1, 1] among features, or in SI units beside a state.
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
    given: GivenRanges


class Camera:
    """Side view of a robot. It contains all positions within the limits."""

    def __init__(self, robot: CompiledRobot) -> None:
        self._drawing = robot.drawing
        left, right, bottom, top = self._drawing.view
        scale = LONGER_SIDE / DPI / max(right - left, top - bottom)
        figure = Figure(((right - left) * scale, (top - bottom) * scale), dpi=DPI)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(left, right), ylim=(bottom, top))
        axes.set_axis_off()
        self._lines = LineCollection([], linewidths=5.0, colors=POLICIES[0], capstyle="round")
        axes.add_collection(self._lines)
        self._canvas = FigureCanvasAgg(figure)

    def picture(self, x: ArrayLike, theta: ArrayLike) -> NDArray[np.uint8]:
        """Picture (height, width, 3) in red, green and blue of the state x (n,) with the parameters theta (p,)."""
        (segments,) = self._drawing.segments(np.asarray(x)[None], np.asarray(theta))
        self._lines.set_segments(list(segments))
        self._canvas.draw()  # type: ignore[no-untyped-call]
        pixels = self._canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        return np.array(np.asarray(pixels)[..., :3])


def _require_options(options: Iterable[str]) -> None:
    """Raises SolverError for a name that is no option."""
    known = EnvironmentOptions.__annotations__
    for name in options:
        if name not in known:
            raise SolverError(
                f"an environment has no option {name!r}.{suggestion(name, known)} Options: {', '.join(known)}"
            )


class _Robot:
    """Base class of both environments: episodes, observations and pictures."""

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
        given: GivenRanges = (),
    ) -> tuple[Box, Box]:
        """Spaces of one observation and of one action, after the robot was loaded for `size` episodes.

        Raises SolverError for an option out of range, and ModelError for an unknown robot.
        """
        if render_mode not in (None, *METADATA["render_modes"]):
            raise SolverError(f"render_mode is {render_mode!r}; choices are None and 'rgb_array'")
        require_observation(observation)
        if sensors not in get_args(Sensors):
            raise SolverError(f"sensors is {sensors!r}; choices are {', '.join(get_args(Sensors))}")
        compiled = load_robot(robot, "cpu", generated)
        self.problem = Problem(compiled, given=resolve(compiled, given, can_tell))
        self.episodes = Episodes(self.problem, size, start, randomize, seconds, hold, target_share)
        self.observation: Observation = observation
        self.camera = None if render_mode is None else Camera(self.problem.robot)
        turning = self.problem.geometry.rotations
        if turning and sensors == "encoders":
            raise SolverError(
                f"the joint {turning[0].name} of {robot} is a rotation without an encoder; use sensors=state"
            )
        self.counts = usual_counts(self.problem) if sensors == "encoders" else None
        limits = self.problem.state_limits.numpy()
        limits = limits if self.counts is None else limits[: len(self.counts)]
        size = features(self.problem, self.problem.target[None, : len(limits)]).shape[1]
        bound = limits if observation == "state" else np.ones(size, np.float32)
        low, high = -bound, bound
        if (context := self.problem.context) is not None:
            ends = np.array([(entry.lower, entry.upper) for entry in context.given], np.float32)
            ends = ends if observation == "state" else np.array([(-1.0, 1.0)] * len(context), np.float32)
            low, high = np.append(low, ends[:, 0]), np.append(high, ends[:, 1])
        return Box(low, high), Box(-1.0, 1.0, (len(self.problem.input_limits),))

    def _observe(self) -> Array:
        """Observations (N, k) in float32, in a new array."""
        x = self.episodes.x if self.counts is None else self._counted(self.counts)
        shown, told = features(self.problem, x) if self.observation == "features" else x.clone(), self.episodes.c
        if (context := self.problem.context) is not None:
            told = told if self.observation == "features" else self.episodes.theta[:, context.columns]
            shown = torch.cat([shown, told], 1)
        return shown.numpy()

    def _counted(self, counts: Tensor) -> Tensor:
        """Positions (N, q) rounded to whole counts, within their limits."""
        positions, limits = self.episodes.x[:, : len(counts)], self.problem.state_limits[: len(counts)]
        return torch.clamp(torch.round(positions / counts) * counts, -limits, limits)

    def _pictures(self) -> tuple[Array, ...] | None:
        """Pictures (height, width, 3) of the episodes, or None without a render mode."""
        if self.camera is None:
            return None
        rows = zip(self.episodes.x.numpy(), self.episodes.theta.numpy(), strict=True)
        return tuple(self.camera.picture(x, theta) for x, theta in rows)


def _no_options(options: dict[str, Any] | None) -> None:
    if options:
        raise SolverError(f"reset takes no options, but was given {', '.join(map(str, options))}; leave them out")


class RobotEnv(gymnasium.Env[Array, Array], _Robot):
    """Environment of one robot. robot: its name. options: see `EnvironmentOptions`."""

    metadata: dict[str, Any] = METADATA

    def __init__(self, robot: str, **options: Unpack[EnvironmentOptions]) -> None:
        _require_options(options)
        self.observation_space, self.action_space = self._prepare(1, robot, **options)
        self.render_mode = options.get("render_mode")
        self.metadata = {**self.metadata, "render_fps": self.episodes.rate}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """First observation (k,) of a new episode, and an empty dictionary."""
        super().reset(seed=seed)
        _no_options(options)
        self.episodes.restart([0], [self.np_random])
        return self._observe()[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Observation (k,), reward, terminated (always False), truncated and information, after an action (m,).

        The information says whether the episode has ended as a success, `is_success`, and has the terms of the cost,
        `state_cost` and `action_cost`, whose sum is minus the reward. Raises SolverError as `Episodes.advance` does.
        """
        reward, ended = self.episodes.advance([action])
        information = {name: values[0].item() for name, values in self.episodes.information.items()}
        return self._observe()[0], float(reward[0]), False, bool(ended[0]), information

    def render(self) -> Array | None:
        """Picture (height, width, 3) of the current state if render_mode is rgb_array."""
        pictures = self._pictures()
        return None if pictures is None else pictures[0]


class RobotVectorEnv(gymnasium.vector.VectorEnv[Array, Array, Array], _Robot):
    """Environments of `num_envs` copies of a robot, simulated together. options: see `EnvironmentOptions`.

    Environment i of a vector that was reset with `seed` equals a RobotEnv that was reset with `seed + i`. An episode
    that ends is restarted in the same step; infos["final_obs"] has its last observation.
    """

    metadata: dict[str, Any] = VECTOR_METADATA

    def __init__(self, robot: str, num_envs: int = 1, **options: Unpack[EnvironmentOptions]) -> None:
        if not is_whole(num_envs) or num_envs < 1:
            raise SolverError(f"num_envs is {num_envs!r}; give an integer of at least 1")
        _require_options(options)
        spaces = self._prepare(num_envs, robot, **options)
        self.num_envs, self.render_mode = num_envs, options.get("render_mode")
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in spaces)
        self.metadata = {**self.metadata, "render_fps": self.episodes.rate}
        self._generators: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """First observations (N, k) of new episodes, and an empty dictionary.

        seed: one number, from which environment i gets seed + i, or one number for every environment.
        """
        _no_options(options)
        rows = range(self.num_envs)
        if seed is not None or not self._generators:
            seeds = [None if seed is None else seed + i for i in rows] if not isinstance(seed, Sequence) else seed
            if len(seeds) != self.num_envs:
                raise SolverError(
                    f"reset was given {len(seeds)} seeds for {self.num_envs} environments; give one number, or "
                    f"{self.num_envs}"
                )
            self._generators = [np_random(number)[0] for number in seeds]
        self.episodes.restart(rows, self._generators)
        return self._observe(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Observations (N, k), rewards, terminated, truncated (N,) and infos after the actions (N, m).

        The infos are those of `RobotEnv`, (N,) each. Those of ended episodes are in infos["final_info"] too.
        """
        reward, ended = self.episodes.advance(actions)
        observations, shown = self._observe(), self.episodes.information
        infos: dict[str, Any] = {**shown, **{f"_{name}": np.ones(self.num_envs, bool) for name in shown}}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            rows = [int(row) for row in np.flatnonzero(ended)]
            for row in rows:
                last[row] = observations[row]
            final = {**shown, **{f"_{name}": ended.copy() for name in shown}}
            infos |= {"final_obs": last, "_final_obs": ended.copy(), "final_info": final, "_final_info": ended.copy()}
            self.episodes.restart(rows, self._generators)
            observations = self._observe()
        return observations, reward, np.zeros_like(ended), ended, infos

    def render(self) -> tuple[Array, ...] | None:
        """Pictures (height, width, 3) of the environments if render_mode is rgb_array."""
        return self._pictures()
