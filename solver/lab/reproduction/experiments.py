"""What the paper's table and figures need: which methods, on which robots, with which seeds and settings. Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

from modelgen.artifact import folder as artifacts
from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation.parameter_box import ParameterRange
from solver.lab.baselines.settings import LETTERS
from solver.plants import PlantName
from solver.problem.problem import StartDistribution
from solver.problem.robots import load_robot
from solver.runs.kinds import Description, Kind, kind_that_trains
from solver.training.presets import fast

Experiment = Literal["table1", "fig-value", "fig-learning", "fig-robustness", "fig-ablation", "gallery", "certificates"]
BudgetName = Literal["small", "full"]
PRESET = "fast"
PURE_DP = {"sampling": "domain"}
BARE_RTDP = {"sampling": "rollouts"}
RTDP = {"sampling": "spread-rollouts"}
NO_RAMP = {"adversary_ramp": (0.0, 0.0)}


@dataclass(frozen=True)
class Method:
    """A row of a table or a curve of a figure."""

    name: str
    changes: Mapping[str, Any]  # the algorithm, and the settings that differ from its defaults
    panel: str = ""  # of fig-ablation
    share: float | None = None  # of the preset's radii; None leaves them

    @property
    def kind(self) -> Kind:
        """The kind of its runs."""
        return kind_that_trains(self.changes["algorithm"])

    @property
    def is_baseline(self) -> bool:
        """Whether it trains with Stable-Baselines3."""
        return self.kind.command == "baseline"


@dataclass(frozen=True)
class Budget:
    """How much is trained."""

    robots: tuple[str, ...]
    seeds: tuple[int, ...]
    baselines: bool
    shares: tuple[float, ...]  # of the radii, in fig-ablation
    plants: tuple[PlantName, ...]  # in fig-robustness; the harsh one with the observer
    episodes: int = 100  # rollouts of every run, in fig-robustness at every point


BUDGETS: dict[BudgetName, Budget] = {
    "small": Budget(("pendulum",), (0,), baselines=False, shares=(0.0, 1.0), plants=("nominal",)),
    "full": Budget(
        ("pendulum", "cartpole", "furuta"),
        (0, 1, 2, 3, 4),
        baselines=True,
        shares=(0.0, 0.25, 0.5, 0.75, 1.0),
        plants=("nominal", "mujoco", "harsh"),
    ),
}
#: The paper's weights on the passive pendulum; the simulated pendulum's mass is this project's own range.
MASSES = {
    "pendulum": ParameterRange("mass", 0.5, 1.5, 11, added=False),
    "cartpole": ParameterRange("pole_mass", -0.02, 0.05, 15, added=True),
    "furuta": ParameterRange("pendulum_mass", -0.005, 0.005, 11, added=True),
}

USUAL = (Method("cFVI", {"algorithm": "cfvi"}), Method("rFVI", {"algorithm": "rfvi"}))
GALLERY = (Method("cfvi", {"algorithm": "cfvi"}), Method("rfvi", {"algorithm": "rfvi"}))
RTDPS = (Method("RTDP cFVI", {"algorithm": "cfvi", **RTDP}), Method("RTDP rFVI", {"algorithm": "rfvi", **RTDP}))


def _baselines(starts: tuple[StartDistribution, ...]) -> tuple[Method, ...]:
    """SAC, DDPG and PPO, with and without domain randomisation, under the paper's names."""
    made = []
    for algorithm, start, randomize in product(("sac", "ddpg", "ppo"), starts, (False, True)):
        name = f"{algorithm.upper()}-{LETTERS[start]}{' UDR' if randomize else ''}"
        changes = {"algorithm": algorithm, "start": start, "randomize": randomize}
        made.append(Method(name, changes))
    return tuple(made)


def _ablation(shares: tuple[float, ...]) -> tuple[Method, ...]:
    """DP and RTDP, with and without what makes them learn, at every share of the radii; none of them is cFVI."""
    panels = {
        "DP, adversary ramped up": (PURE_DP, {}),
        "DP, full adversary at once": (PURE_DP, NO_RAMP),
        "RTDP, spread states, adversary ramped up": (RTDP, {}),
        "RTDP, full adversary at once": (BARE_RTDP, NO_RAMP),
    }
    made = []
    for (panel, (changes, ramp)), share in product(panels.items(), shares):
        own = {"algorithm": "cfvi"} if share == 0.0 else {"algorithm": "rfvi", **ramp}
        made.append(Method(f"{panel}, {share:g}", {**changes, **own}, panel=panel, share=share))
    return tuple(made)


def methods(experiment: Experiment, budget: Budget) -> tuple[Method, ...]:
    """Rows or curves, in order."""
    if experiment == "fig-value":
        return USUAL
    if experiment == "fig-learning":
        return USUAL + RTDPS
    if experiment == "gallery":
        return GALLERY
    if experiment in ("fig-robustness", "certificates"):
        return USUAL + (_baselines(("angle",)) if budget.baselines else ())
    if experiment == "fig-ablation":
        return _ablation(budget.shares)
    return USUAL + RTDPS + (_baselines(("gaussian", "angle")) if budget.baselines else ())


@dataclass(frozen=True)
class Training:
    """One run: a method on a robot with a seed."""

    method: str
    kind: Kind
    run: Description
    usual: Any  # the settings that the command takes without any flag but the algorithm

    @property
    def robot(self) -> str:
        """The robot's name."""
        return self.run.robot

    @property
    def settings(self) -> Any:
        """The settings of the run."""
        return self.run.settings

    @property
    def seed(self) -> int:
        """The seed of the settings."""
        return int(self.settings.seed)

    @property
    def threads(self) -> int:
        """The threads that it uses; a baseline uses one."""
        return getattr(self.settings, "threads", 1)


@dataclass(frozen=True)
class Plan:
    """An experiment with everything decided."""

    experiment: Experiment
    budget_name: BudgetName
    budget: Budget
    robots: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    trainings: tuple[Training, ...]
    generated: str | None = None


@dataclass(frozen=True)
class Choice:
    """What a user may narrow or change; empty is the budget's own."""

    robots: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    baseline_steps: int | None = None
    generated: str | None = None
    threads: int = 1
    #: For tests: settings of every run, by the command of its kind.
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    budget: Budget | None = None


def make_plan(experiment: Experiment, budget_name: BudgetName, choice: Choice) -> Plan:
    """Everything to run, seed by seed, so that an interrupted plan has whole rows early.

    SolverError for unknown or repeated names and for robots the experiment cannot do; ModelError for no artifact.
    """
    for word, known in ((experiment, get_args(Experiment)), (budget_name, tuple(BUDGETS))):
        if word not in known:
            raise SolverError(f"'{word}' is none of {', '.join(known)}.{suggestion(word, known)}")
    budget = choice.budget or BUDGETS[budget_name]
    robots, seeds = choice.robots or _robots(experiment, budget, choice.generated), choice.seeds or budget.seeds
    if experiment == "fig-value":
        seeds = seeds[:1]
    for flag, given in (("--robots", robots), ("--seeds", seeds), ("--methods", choice.methods)):
        if len(set(given)) < len(given):
            raise SolverError(f"{flag} {' '.join(map(str, given))} names something twice")
    known_methods = {method.name: method for method in methods(experiment, budget)}
    for name in choice.methods:
        if name not in known_methods:
            raise SolverError(
                f"{experiment} with --budget {budget_name} has no method '{name}'.{suggestion(name, known_methods)} "
                f"Methods: {', '.join(known_methods)}"
            )
    if experiment == "fig-robustness" and not set(robots) <= set(MASSES):
        raise SolverError(f"fig-robustness has mass ranges for {', '.join(MASSES)} only; use `solver robustness`")
    chosen = tuple(known_methods[name] for name in choice.methods) or tuple(known_methods.values())
    if choice.baseline_steps is not None and not any(method.is_baseline for method in chosen):
        raise SolverError("--baseline-steps is given, but no baseline is asked for; name one with --methods")
    loaded = {robot: load_robot(robot, "cpu", choice.generated) for robot in robots}
    trainings = tuple(
        _training(method, seed, loaded[robot], choice) for seed, robot, method in product(seeds, robots, chosen)
    )
    return Plan(experiment, budget_name, budget, robots, seeds, chosen, trainings, choice.generated)


def _robots(experiment: Experiment, budget: Budget, generated: str | None) -> tuple[str, ...]:
    """The budget's robots; for the gallery all that ship with the package, or those of the folder `generated`."""
    return tuple(artifacts.known(generated or artifacts.SHIPPED)) if experiment == "gallery" else budget.robots


def _training(method: Method, seed: int, robot: CompiledRobot, choice: Choice) -> Training:
    """One run of a method."""
    usual = {"algorithm": method.changes["algorithm"]}
    changes: dict[str, Any] = {**method.changes, "seed": seed}
    if method.is_baseline:
        changes |= {} if choice.baseline_steps is None else {"steps": choice.baseline_steps}
    else:
        usual["preset"] = PRESET
        changes["threads"] = choice.threads
        if method.share:  # at a share of zero it is cFVI
            radii = fast(robot)["adversaries"]
            changes["adversaries"] = {name: method.share * radius for name, radius in radii.items()}
    overrides = choice.overrides.get(method.kind.command, {})
    describe = method.kind.training.describe
    run = describe(robot, choice.generated, **{**usual, **changes, **overrides})
    return Training(method.name, method.kind, run, describe(robot, choice.generated, **usual).settings)
