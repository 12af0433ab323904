"""Settings of a baseline run, the defaults of each algorithm, and the description of the run (baseline.json)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from modelgen.commandline import Range
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.problem import StartDistribution
from solver.problem.robots import require_current
from solver.runs import artifact
from solver.runs.folder import RUN
from solver.runs.kinds import Description
from solver.training.settings import require_fields, require_names

BaselineAlgorithm = Literal["sac", "ddpg", "ppo"]
AtLeastZero = Annotated[int, Range(0, 10**12)]
Count = Annotated[int, Range(1, 10**9)]
Share = Annotated[float, Range(0.0, 1.0)]
PositiveShare = Annotated[float, Range(1e-12, 1.0)]
Positive = Annotated[float, Range(1e-300, math.inf)]
#: Letters of the start distributions in the paper's tables. The paper has no starts in the whole domain.
LETTERS: dict[StartDistribution, str] = {"gaussian": "N", "angle": "U", "uniform": "domain"}


@dataclass(frozen=True)
class BaselineSettings:
    """One baseline run. Two runs with equal settings on one machine give bit-identical policies."""

    algorithm: BaselineAlgorithm = "sac"
    """Soft actor-critic, deep deterministic policy gradient, or proximal policy optimisation."""
    start: StartDistribution = "angle"
    """Start distribution in training: `gaussian`, the task's (N in the paper); `angle`, the task's with uniform angles
    where an angle wraps (U in the paper); or `uniform` in the state domain."""
    target_share: Share = 0.5
    """Share of the episodes that start near the target."""
    randomize: bool = False
    """Uniform domain randomisation: every episode has its own parameters."""
    randomize_share: Annotated[float, Range(1e-12, 0.999)] = 0.15
    """Parameters are drawn within this share of their nominal values. The default is the authors' admissible set."""
    steps: AtLeastZero = 0
    """Number of actions in all environments. 0: the default of the algorithm, which is 100 000 for each entry of the
    robot's state with SAC and DDPG."""
    hold: AtLeastZero = 0
    """Control periods of an action in training. Evaluations act in every period. 0: a quarter of the robot's time scale
    at its target, which is 8 periods for the pendulum, 4 for the cart-pole and 2 for Furuta."""
    episode_share: PositiveShare = 1.0
    """Length of a training episode as a share of the task's horizon, at least 16 actions. The value at its end is
    learned."""
    lookahead: Positive = 3.2
    """Time constant of the discount in seconds: gamma of an action is exp(-seconds of the action / lookahead)."""
    input_share: PositiveShare = 0.85
    """Largest input of the policy, as a share of the limit."""
    entropy: float = -2.0
    """Entropy in nats of each input: the target of SAC, and the entropy of PPO's Gaussian. 0 is about the entropy of an
    input with a uniform distribution over its range."""
    last_entropy: float = -3.5
    """Entropy at the end of the training. It falls linearly in the second half."""
    last_lookahead: Positive = 6.0
    """Lookahead of SAC and DDPG in the second half of the training."""
    loss_scale: Positive = 1.0
    """Return c in the weight c/(c + |target|) of the critics' errors in SAC and DDPG. A small c makes values precise
    near the target. A very large c weights all errors equally, as in Stable-Baselines3. PPO learns returns divided
    by c."""
    seed: int = 0
    """Seed of the weights, the starts, the parameters and the exploration. Evaluations have their own starts."""
    environments: Count = 64
    """Number of parallel episodes."""
    learning_rate: Positive = 1e-3
    """Step size of Adam in the first segment; it falls linearly to a tenth."""
    minibatch: Annotated[int, Range(2, 10**9)] = 256
    """Samples per gradient step."""
    layers: Count = 2
    """Hidden layers of every network."""
    width: Count = 128
    """Units in each hidden layer."""
    position_scale: Positive = 2.0
    """Network input of a position that does not wrap: position_scale * q/limit."""
    rate_scale: Positive = 4.0
    """Network input of a rate: rate_scale * v/limit."""
    evaluate_every: Count = 25_000
    """Actions between two evaluations. Each evaluation writes a checkpoint, and new episodes start after it."""
    episodes: Count = 100
    """Rollouts per evaluation."""

    def __post_init__(self) -> None:
        """Raises SolverError for the first setting that has another type or is out of its range."""
        require_fields(self)


STEPS_A_STATE = 100_000  # default number of actions of SAC and DDPG for each entry of the state
DEFAULTS: dict[BaselineAlgorithm, dict[str, Any]] = {
    "sac": {},
    "ddpg": {},
    "ppo": {"steps": 1_000_000, "episode_share": 0.125, "loss_scale": 10.0, "entropy": -0.6, "last_entropy": -1.6},
}


def for_states(settings: BaselineSettings, states: int) -> BaselineSettings:
    """Settings with a number of actions: the default for a robot with this number of states, unless one is given."""
    usual = DEFAULTS[settings.algorithm].get("steps", STEPS_A_STATE * states)
    return dataclasses.replace(settings, steps=settings.steps or usual)


def baseline_settings(algorithm: str = "sac", **changes: Any) -> BaselineSettings:
    """Defaults of an algorithm with some settings changed. Raises SolverError for an unknown algorithm or setting."""
    require_names(BaselineSettings, changes)
    defaults = DEFAULTS.get(algorithm, {})  # type: ignore[call-overload]
    return BaselineSettings(**{"algorithm": algorithm, **defaults, **changes})


BASELINE, MODEL = "baseline.json", "model.zip"
PARTS = ("steps", "parameters", "buffer", "best", RUN)  # of a checkpoint
#: Settings that are newer than stored results, with the value of these results.
LATER = {"episode_share": 1.0}
KEYS = ("steps", "return_mean")  # of every row of metrics.jsonl; the first is the counter


@dataclass(frozen=True)
class BaselineRun(Description):
    """Description of a baseline run: its robot and its settings."""

    settings: BaselineSettings

    @property
    def name(self) -> str:
        """Name of the run folder: robot, algorithm, start distribution, randomisation of parameters, and seed."""
        s = self.settings
        return f"{self.robot}-{s.algorithm}-{s.start}{'-randomized' if s.randomize else ''}-seed{s.seed}"

    @property
    def label(self) -> str:
        """Robot and algorithm; the start distribution and the randomisation if they are not the defaults."""
        s = self.settings
        start = "" if s.start == BaselineSettings.start else f"-{s.start}"
        return f"{self.robot}-{s.algorithm}{start}{'-randomized' if s.randomize else ''}"

    @property
    def length(self) -> int:
        """Number of actions."""
        return self.settings.steps

    def identity(self) -> dict[str, Any]:
        """All settings, without newer settings at the value of stored results (LATER)."""
        return {name: value for name, value in vars(self.settings).items() if LATER.get(name) != value}


def new_run(robot: CompiledRobot, generated: str | None, settings: BaselineSettings) -> BaselineRun:
    """Description of a run with these settings. Settings without a number of actions get the default of the robot.

    Raises SolverError for a robot with references, and for an artifact that was not built from the present model file.
    """
    require_current(robot)
    if references := robot.metadata.references:
        raise SolverError(
            f"baselines are for robots without references; {robot.name} has {', '.join(references)}. Train rfvi or "
            "cfvi, or an agent of your own in solver.gym"
        )
    return BaselineRun(robot.name, robot.hash, generated, for_states(settings, len(robot.state_names)))


def load_baseline(folder: Path) -> BaselineRun:
    """Content of baseline.json. Raises SolverError if it is missing or damaged, or for a run of another kind."""
    return artifact.load(folder, "baseline", BaselineRun)
