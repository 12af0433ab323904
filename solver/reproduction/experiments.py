"""What the paper's table and figures need: which methods, on which robots, with which seeds and settings. Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from solver.baselines.settings import BaselineSettings, baseline_settings
from solver.errors import SolverError
from solver.fvi.presets import PRESETS, make_settings
from solver.fvi.settings import Settings
from solver.game.adversaries import ADVERSARIES
from solver.plants import PlantName
from solver.problem.robots import load_robot
from solver.studies.robustness import Range

Experiment = Literal["table1", "fig-value", "fig-learning", "fig-robustness", "fig-ablation"]
BudgetName = Literal["small", "full"]
PRESET = "fast"
PURE_DP = {"on_policy_share": 0.0}
BARE_RTDP = {"on_policy_share": 1.0, "start_share": 0.0}
RTDP = {**BARE_RTDP, "on_policy_spread": 0.25}
NO_RAMP = {"adversary_ramp": (0.0, 0.0)}


@dataclass(frozen=True)
class Method:
    """A row of a table or a curve of a figure."""

    name: str
    changes: Mapping[str, Any]  # settings other than the preset's, or than the baseline algorithm's defaults
    baseline: bool = False
    panel: str = ""  # of fig-ablation
    share: float | None = None  # of the preset's radii; None leaves them


@dataclass(frozen=True)
class Budget:
    """How much is trained."""

    robots: tuple[str, ...]
    seeds: tuple[int, ...]
    baselines: bool
    shares: tuple[float, ...]  # of the radii, in fig-ablation
    plants: tuple[PlantName, ...]  # in fig-robustness
    episodes: int = 100  # rollouts of every run, in fig-robustness at every point


BUDGETS: dict[BudgetName, Budget] = {
    "small": Budget(("pendulum",), (0,), baselines=False, shares=(0.0, 1.0), plants=("nominal",)),
    "full": Budget(
        ("pendulum", "cartpole", "furuta"),
        (0, 1, 2, 3, 4),
        baselines=True,
        shares=(0.0, 0.25, 0.5, 0.75, 1.0),
        plants=("nominal", "mujoco"),
    ),
}
#: The paper's weights on the passive pendulum; the simulated pendulum's mass is this project's own range.
MASSES = {
    "pendulum": Range("mass", 0.5, 1.5, 11, added=False),
    "cartpole": Range("pole_mass", -0.02, 0.05, 15, added=True),
    "furuta": Range("pendulum_mass", -0.005, 0.005, 11, added=True),
}

USUAL = (Method("cFVI", {"algorithm": "cfvi"}), Method("rFVI", {"algorithm": "rfvi"}))
RTDPS = (Method("RTDP cFVI", {"algorithm": "cfvi", **RTDP}), Method("RTDP rFVI", {"algorithm": "rfvi", **RTDP}))


def _baselines(starts: tuple[str, ...]) -> tuple[Method, ...]:
    """SAC, DDPG and PPO, with and without domain randomisation, under the paper's names."""
    made = []
    for algorithm, start, randomize in product(("sac", "ddpg", "ppo"), starts, (False, True)):
        name = f"{algorithm.upper()}-{'U' if start == 'uniform' else 'N'}{' UDR' if randomize else ''}"
        changes = {"algorithm": algorithm, "start": start, "randomize": randomize}
        made.append(Method(name, changes, baseline=True))
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
    if experiment == "fig-robustness":
        return USUAL + (_baselines(("uniform",)) if budget.baselines else ())
    if experiment == "fig-ablation":
        return _ablation(budget.shares)
    return USUAL + RTDPS + (_baselines(("gaussian", "uniform")) if budget.baselines else ())


@dataclass(frozen=True)
class Training:
    """One run: a method on a robot with a seed."""

    method: str
    robot: str
    artifact_hash: str
    settings: Settings | BaselineSettings
    usual: Settings | BaselineSettings  # what the command would take without any flag but the algorithm

    @property
    def seed(self) -> int:
        """Of the settings."""
        return self.settings.seed

    @property
    def threads(self) -> int:
        """That it works with; a baseline takes one."""
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
    #: For tests: settings of every run, by "solver" or "baseline".
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
    robots, seeds = choice.robots or budget.robots, choice.seeds or budget.seeds
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
    if choice.baseline_steps is not None and not any(method.baseline for method in chosen):
        raise SolverError("--baseline-steps is given, but no baseline is asked for; name one with --methods")
    loaded = {robot: load_robot(robot, "cpu", choice.generated) for robot in robots}
    trainings = tuple(
        Training(
            method.name,
            robot,
            loaded[robot].hash,
            _settings(method, seed, loaded[robot], choice),
            _usual(method, loaded[robot]),
        )
        for seed, robot, method in product(seeds, robots, chosen)
    )
    return Plan(experiment, budget_name, budget, robots, seeds, chosen, trainings, choice.generated)


def _settings(method: Method, seed: int, robot: CompiledRobot, choice: Choice) -> Settings | BaselineSettings:
    """Of one run."""
    if method.baseline:
        steps = {} if choice.baseline_steps is None else {"steps": choice.baseline_steps}
        return baseline_settings(**{**method.changes, "seed": seed, **steps, **choice.overrides.get("baseline", {})})
    radii = {}
    if method.share:  # with none at all it is cFVI, whose radii do not matter
        usual = PRESETS[PRESET](robot)
        settings = [kind.setting() for kind in ADVERSARIES]
        radii = {name: method.share * usual[name] for name in settings if name in usual}
    changes = {**method.changes, **radii, "seed": seed, "threads": choice.threads}
    return make_settings(PRESET, robot, **{**changes, **choice.overrides.get("solver", {})})


def _usual(method: Method, robot: CompiledRobot) -> Settings | BaselineSettings:
    """The defaults of `solver train` or `solver baseline`."""
    if method.baseline:
        return baseline_settings(method.changes["algorithm"])
    return make_settings(PRESET, robot)
