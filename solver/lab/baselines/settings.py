"""Every setting of a baseline run, with its meaning, and the defaults of each algorithm."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.problem.problem import StartDistribution
from solver.streams import require_seed

BaselineAlgorithm = Literal["sac", "ddpg", "ppo"]
CHOICES = {"algorithm": get_args(BaselineAlgorithm), "start": get_args(StartDistribution)}
NAMED = {"algorithm", "start", "randomize", "seed", "episodes"}  # in a label already, or without effect on a policy
LEAST = {"steps": 0, "hold": 0, "environments": 1, "minibatch": 2, "layers": 1, "width": 1}
LEAST |= {"evaluate_every": 1, "episodes": 1}
SHARES = ("target_share", "input_share", "episode_share")
NOT_ZERO = ("input_share", "episode_share")
ENTROPIES = ("entropy", "last_entropy")
#: In the paper's tables; it has no starts all over the domain.
LETTERS: dict[StartDistribution, str] = {"gaussian": "N", "angle": "U", "uniform": "domain"}
BELOW = {"randomize_share": 1.0}
POSITIVE = ("lookahead", "last_lookahead", "loss_scale", "learning_rate", "position_scale", "rate_scale")
BELOW |= dict.fromkeys(POSITIVE, math.inf)


@dataclass(frozen=True)
class BaselineSettings:
    """One baseline run. Two runs with equal settings on one machine give bit-identical policies."""

    algorithm: BaselineAlgorithm = "sac"
    """Soft actor-critic, deep deterministic policy gradient, or proximal policy optimisation."""
    start: StartDistribution = "angle"
    """Starts in training: gaussian, the task's (N in the paper); angle, these with every angle that wraps drawn
    uniformly (U); or uniform in the state domain."""
    target_share: float = 0.5
    """Share of the episodes that start near the target instead."""
    randomize: bool = False
    """Uniform domain randomisation: every episode has its own parameters."""
    randomize_share: float = 0.15
    """Parameters are drawn within this share of their nominal values. The default is the authors' admissible set."""
    steps: int = 0
    """Actions to train for, over all environments. 0 takes the algorithm's own, which is for SAC and DDPG
    100 000 for each entry of the robot's state."""
    hold: int = 0
    """Control periods that an action is held in training; evaluations act in every one. 0 takes a quarter of the time
    scale that the robot has at its target: 8 periods for the pendulum, 4 for the cart-pole, 2 for Furuta."""
    episode_share: float = 1.0
    """An episode in training lasts this share of the task's horizon, and at least 16 actions. The value at its end is
    learned, not zero."""
    lookahead: float = 3.2
    """Seconds after which a reward counts 1/e: gamma of an action is exp(-its seconds / lookahead)."""
    input_share: float = 0.85
    """The largest input of the policy, as a share of the limit."""
    entropy: float = -2.0
    """Entropy that SAC aims at for each input, and that of PPO's Gaussian, in nats; 0 is about that of an input drawn
    uniformly from its range."""
    last_entropy: float = -3.5
    """The same at the end: it falls linearly in the second half of the actions."""
    last_lookahead: float = 6.0
    """The lookahead of SAC and DDPG in the second half of the actions."""
    loss_scale: float = 1.0
    """The critics of SAC and DDPG weigh an error by c/(c + |target|), with c this return: the smaller, the more precise
    values are where little is left to pay. A very large one weighs all alike, as Stable-Baselines3 does. PPO learns
    returns divided by it, whose errors it weighs alike."""
    seed: int = 0
    """Seeds the weights, the starts, the parameters and the exploration; not the starts of evaluations."""
    environments: int = 64
    """Episodes that are simulated side by side."""
    learning_rate: float = 1e-3
    """Adam's step size in the first segment; it falls linearly to a tenth."""
    minibatch: int = 256
    """Samples per gradient step."""
    layers: int = 2
    """Hidden layers of every network."""
    width: int = 128
    """Units in each hidden layer."""
    position_scale: float = 2.0
    """A position that does not wrap enters the networks as position_scale * q/limit."""
    rate_scale: float = 4.0
    """A rate enters the networks as rate_scale * v/limit."""
    evaluate_every: int = 25_000
    """Actions between evaluations by rollouts, each with a checkpoint; episodes start anew after it."""
    episodes: int = 100
    """Rollouts per evaluation."""

    def __post_init__(self) -> None:
        """SolverError names the first setting of another type or out of its range."""
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise SolverError(f"setting {name} is {getattr(self, name)!r}; choices are {', '.join(choices)}")
        if type(self.randomize) is not bool:
            raise SolverError(f"setting randomize is {self.randomize!r}; give True or False")
        require_seed(self.seed, "setting seed")
        for name, least in LEAST.items():
            if type(getattr(self, name)) is not int or getattr(self, name) < least:
                raise SolverError(f"setting {name} is {getattr(self, name)!r}; give a whole number of at least {least}")
        for name in SHARES:
            value, more = getattr(self, name), ", and not 0" if name in NOT_ZERO else ""
            if type(value) not in (int, float) or not 0.0 <= value <= 1.0 or (more and value == 0.0):
                raise SolverError(f"setting {name} is {value!r}; give a number from 0 to 1{more}")
        for name in ENTROPIES:
            value = getattr(self, name)
            if type(value) not in (int, float) or not math.isfinite(value):
                raise SolverError(f"setting {name} is {value!r}; give a finite number")
        for name, below in BELOW.items():
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0.0 < value < below:
                raise SolverError(f"setting {name} is {value!r}; give a number between 0 and {below:g}, both excluded")

    def label(self, states: int) -> str:
        """The name in the paper's tables, such as SAC-U UDR, and what else was chosen, but for the seed.

        states: entries of the robot's state, which the usual number of actions follows.
        """
        usual = vars(for_states(baseline_settings(self.algorithm), states))
        words = [f"{self.algorithm.upper()}-{LETTERS[self.start]}"]
        words += ["UDR"] if self.randomize else []
        for name, value in vars(for_states(self, states)).items():
            if name not in NAMED and value != usual[name]:
                words.append(f"{name}={value}")
        return " ".join(words)


#: Of SAC and DDPG. SAC is at its plateau on a pendulum after 200 000 actions, and gains 3 % on a cart-pole from
#: 200 000 to 400 000.
STEPS_A_STATE = 100_000
DEFAULTS: dict[BaselineAlgorithm, dict[str, Any]] = {
    "sac": {},
    "ddpg": {},
    "ppo": {"steps": 1_000_000, "episode_share": 0.125, "loss_scale": 10.0, "entropy": -0.6, "last_entropy": -1.6},
}


def for_states(settings: BaselineSettings, states: int) -> BaselineSettings:
    """The settings with the actions that a robot with so many entries of the state is trained for."""
    usual = DEFAULTS[settings.algorithm].get("steps", STEPS_A_STATE * states)
    return dataclasses.replace(settings, steps=settings.steps or usual)


def baseline_settings(algorithm: str = "sac", **changes: Any) -> BaselineSettings:
    """An algorithm's defaults with some settings changed; SolverError for an unknown algorithm or setting."""
    names = {entry.name for entry in dataclasses.fields(BaselineSettings)}
    for name in changes:
        if name not in names:
            raise SolverError(
                f"unknown setting '{name}'.{suggestion(name, names)} Settings: {', '.join(sorted(names))}"
            )
    defaults = DEFAULTS.get(algorithm, {})  # type: ignore[call-overload]
    return BaselineSettings(**{"algorithm": algorithm, **defaults, **changes})
