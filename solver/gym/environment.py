"""Gymnasium environments of the compiled robots, with the costs, limits, starts and rates of their tasks.

`RobotVectorEnv` simulates N episodes in one call of a kernel. `RobotEnv` gives the same numbers for one episode, bit
for bit.

The action is the input divided by its limit, in [-1, 1]. The reward of a control period is minus the integral of the
state cost and the action cost, as in solver.plants.outcome. No state terminates an episode; the horizon truncates it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from modelgen.loader import CompiledRobot
from modelgen.style import POLICIES
from solver.errors import SolverError
from solver.observer.observer import usual_counts
from solver.plants.outcome import settling_periods, succeeded
from solver.problem.geometry import ENTRIES, matrix
from solver.problem.given import (
    GivenRanges,
    Observation,
    episode_actions,
    is_number,
    is_whole,
    require_observation,
    resolve,
)
from solver.problem.integrator import integrate_period, steps_within
from solver.problem.problem import Problem, StartDistribution
from solver.problem.robots import load_robot

Array = NDArray[Any]
INFORMATION = ("is_success", "state_cost", "action_cost")  # what `step` returns with the reward
TARGET_SPREAD = 0.2  # of the state limits, largest standard deviation of a start near the target


class Episodes:
    """N episodes of a robot, simulated together.

    problem: with told parameters, every episode draws its context `c` (N, k), and the robot has these parameters.
    size: N.
    start: `gaussian`, the task's start distribution; `angle`, the same with uniform continuous angles; or `uniform` in
    the state domain.
    randomize: share of its nominal value within which every parameter is drawn uniformly in each episode, and then
    clipped to its bounds.
    seconds: length of an episode, by default the task's horizon.
    hold: control periods for which an action is held. An episode has `length` actions.
    target_share: share of the episodes that start near the target instead, see `Problem.scatter`.

    Raises SolverError for an argument out of range.
    """

    def __init__(
        self,
        problem: Problem,
        size: int,
        start: StartDistribution,
        randomize: float,
        seconds: float | None,
        hold: int,
        target_share: float = 0.0,
    ) -> None:
        if not is_number(target_share) or not 0.0 <= target_share <= 1.0:
            raise SolverError(f"target_share is {target_share!r}; give a share of the episodes, in [0, 1]")
        self.length = episode_actions(problem, start, randomize, seconds, hold)
        self.rate = problem.robot.metadata.task.control_rate / hold  # actions per second
        self.problem, self.start, self.randomize, self.hold = problem, start, randomize, int(hold)
        self.target_share = target_share
        self.x = torch.zeros(size, len(problem.state_limits))
        self.c = torch.zeros(size, 0 if problem.context is None else len(problem.context))
        self.theta = problem.theta.repeat(size, 1)
        self.steps = steps_within(problem, *problem.around(self.randomize)) if self.randomize else problem.substeps
        self.state_cost, self.action_cost = torch.zeros(size), torch.zeros(size)  # integrals over the last action
        self.success = np.zeros(size, bool)  # of the episodes that have ended
        self.recent = deque([self.rows], 1 + min(settling_periods(problem), self.length * self.hold))  # at period ends
        self.taken = np.full(size, -1)  # actions so far in the current episode; -1 before the first episode

    @property
    def seconds(self) -> float:
        """Length of an action in seconds."""
        return 1.0 / self.rate

    @property
    def rows(self) -> Tensor:
        """States with their contexts (N, n + k)."""
        return torch.cat([self.x, self.c], 1) if self.c.shape[1] else self.x

    def restart(self, rows: Sequence[int], generators: Sequence[np.random.Generator]) -> None:
        """Start new episodes in the given rows. generators: one for every row of the N, source of starts and
        parameters."""
        problem = self.problem
        self.x = self.x.clone()  # without contexts, the old one is among the recent rows
        for row in rows:
            generator = torch.Generator().manual_seed(int(generators[row].integers(2**62)))
            drawn, n = self._draw(generator), self.x.shape[1]
            self.x[row], self.c[row] = drawn[:n], drawn[n:]
            if self.randomize > 0.0:
                spread = self.randomize * problem.theta.abs()
                theta = problem.theta + spread * (2.0 * torch.rand(len(spread), generator=generator) - 1.0)
                self.theta[row] = theta.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
            if problem.context is not None:
                self.theta[row] = problem.context.replaced(self.theta[row], self.c[row, None])[0]
            self.taken[row] = 0
        self.recent[-1] = self.rows

    def _draw(self, generator: torch.Generator) -> Tensor:
        """Start and context (n + k,) of an episode."""
        problem = self.problem
        if self.target_share > 0.0 and float(torch.rand(1, generator=generator)) < self.target_share:
            return problem.scatter(problem.sample_targets(1, generator), TARGET_SPREAD, generator)[0]
        sample = {
            "gaussian": problem.sample_starts,
            "angle": problem.sample_angles,
            "uniform": problem.sample_domain,
        }[self.start]
        return sample(1, generator)[0]

    def advance(self, action: Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Summed rewards (N,) of the actions (N, m) in [-1, 1], and a mask (N,) of the episodes that have ended.

        Raises SolverError before the first reset, for actions of another shape or that are not finite, and if states
        become infinite or NaN.
        """
        if (self.taken < 0).any():
            raise SolverError("no episode has started; call reset before step")
        problem, shape = self.problem, (len(self.x), len(self.problem.input_limits))
        share = np.asarray(action, dtype=np.float32)
        if share.shape != shape or not np.isfinite(share).all():
            raise SolverError(
                f"actions must be finite numbers of shape {shape}, from -1 (lower limit of an input) to 1 (upper limit)"
            )
        u = problem.input_of(torch.from_numpy(share.clip(-1.0, 1.0)))
        theta = self.theta if self.randomize > 0.0 or problem.context is not None else None
        cost, reward = problem.cost_at(self.rows).cost(u), torch.zeros(len(self.x))
        self.state_cost, self.action_cost = torch.zeros(len(self.x)), self.hold * problem.control_step * cost
        for _ in range(self.hold):
            self.x, state_cost = integrate_period(problem, self.x, u, theta, steps=self.steps)
            reward -= state_cost + cost * problem.control_step
            self.state_cost += state_cost
            self.recent.append(self.rows)
        if not bool(torch.isfinite(self.x).all()):
            raise SolverError(
                f"the states of {problem.robot.name} became infinite or NaN within a control period; raise the task's "
                "control_rate"
            )
        self.taken += 1
        ended = self.taken >= self.length
        if ended.any():
            self.success = ended & succeeded(problem, torch.stack(list(self.recent)), theta).numpy()
        else:
            self.success = ended
        return reward.double().numpy(), ended

    @property
    def information(self) -> dict[str, Array]:
        """Entries of INFORMATION, (N,) each: whether the episode has ended as a success, and the two terms of the cost
        over the last action. Minus their sum is the reward."""
        values = (self.success, self.state_cost.double().numpy(), self.action_cost.double().numpy())
        return dict(zip(INFORMATION, values, strict=True))


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


def features(problem: Problem, x: Tensor) -> Tensor:
    """Features (N, k) in [-1, 1] of the states x (N, n), or of their positions (N, q).

    A continuous angle becomes its cosine and sine, a quaternion the nine entries of its rotation matrix. Every other
    state is divided by its limit.
    """
    columns: list[Tensor] = []
    metadata = problem.robot.metadata
    matrices = {rotation.coordinate: rotation.quaternion for rotation in metadata.rotations}
    for i, limit in enumerate(problem.state_limits[: x.shape[1]]):
        if i in matrices:
            columns += matrix(x[:, matrices[i]]).unbind(1)
        elif i not in metadata.turning:
            wraps = i in problem.continuous
            columns += [torch.cos(x[:, i]), torch.sin(x[:, i])] if wraps else [(x[:, i] / limit).clamp(-1.0, 1.0)]
    return torch.stack(columns, 1)


def feature_scales(problem: Problem, position: float, rate: float) -> list[float]:
    """Factors (k,) of `features` for a network: 1 for cosines and sines, `position` or `rate` for other states."""
    scales, metadata = [], problem.robot.metadata
    first = {rotation.coordinate for rotation in metadata.rotations}
    for i, state in enumerate(metadata.states):
        if i in metadata.turning:
            scales += [1.0] * ENTRIES if i in first else []
            continue
        scales += [1.0, 1.0] if i in problem.continuous else [position if state.kind == "position" else rate]
    return scales


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
        self.problem = Problem(compiled, given=resolve(compiled, given))
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
        reward, ended = self.episodes.advance(np.asarray(action)[None])
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
