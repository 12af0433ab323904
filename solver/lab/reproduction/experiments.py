"""Plans of the paper's table and figures: methods, robots, seeds and settings, and the authors' own ones.

Preset `paper` has the authors' settings of the pendulum for robots with one joint, of the cart-pole for all others.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

from modelgen.artifact import folder as artifacts
from modelgen.errors import suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation.statistics import ParameterRange
from solver.game.adversaries import ADVERSARIES
from solver.lab.baselines.settings import LETTERS
from solver.plants import PlantName
from solver.problem import StartDistribution
from solver.problem.parameters import ALL
from solver.problem.robots import load_robot
from solver.runs.kinds import Description, Kind, kind_that_trains
from solver.training.settings import fast

ExperimentName = Literal[
    "table1", "fig-value", "fig-learning", "fig-robustness", "fig-ablation", "fig-parameters", "gallery", "certificates"
]
Requested = Literal[ExperimentName, "all"]
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
    changes: Mapping[str, Any]  # algorithm and changed settings
    panel: str = ""  # of fig-ablation
    share: float | None = None  # factor of the preset's radii
    robots: tuple[str, ...] = ()  # the only ones that it is for; empty for all
    told: Literal["", "true", "estimated"] = ""  # values of parameters that its policies get

    @property
    def kind(self) -> Kind:
        """Kind of its runs."""
        return kind_that_trains(self.changes["algorithm"])

    @property
    def is_baseline(self) -> bool:
        """Whether its runs are baselines of Stable-Baselines3."""
        return self.kind.command == "baseline"


@dataclass(frozen=True)
class Budget:
    """Amount of training and evaluation."""

    robots: tuple[str, ...]
    seeds: tuple[int, ...]
    baselines: bool
    shares: tuple[float, ...]  # of the radii, in fig-ablation
    plants: tuple[PlantName, ...]  # in fig-robustness; the policy has an observer on the harsh plant
    episodes: int = 100  # rollouts of every run; in fig-robustness at every point


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
#: Ranges of the paper's weights on the passive pendulum. The range of the simulated pendulum is our own.
MASSES = {
    "pendulum": ParameterRange("mass", 0.5, 1.5, 11, added=False),
    "cartpole": ParameterRange("pole_mass", -0.02, 0.05, 15, added=True),
    "furuta": ParameterRange("pendulum_mass", -0.005, 0.005, 11, added=True),
}

#: Robots of fig-parameters with the budget `full`.
PICTURED = ("pendulum", "cartpole", "furuta", "acrobot", "planar_quadrotor")

USUAL = (Method("cFVI", {"algorithm": "cfvi"}), Method("rFVI", {"algorithm": "rfvi"}))
#: What a control engineer builds. Energy shaping is for a pendulum on a motor or on a driven joint.
CLASSICAL = (
    Method("Energy, LQR", {"algorithm": "energy"}, robots=("pendulum", "cartpole", "furuta")),
    Method("TV-LQR", {"algorithm": "tvlqr"}),
)
#: A family that is told the true values of parameters, or their estimates.
FAMILIES = (
    Method("Told", {"algorithm": "rfvi"}, told="true"),
    Method("Estimated", {"algorithm": "rfvi"}, told="estimated"),
)
GALLERY = (Method("cfvi", {"algorithm": "cfvi"}), Method("rfvi", {"algorithm": "rfvi"}))
RTDPS = (Method("RTDP cFVI", {"algorithm": "cfvi", **RTDP}), Method("RTDP rFVI", {"algorithm": "rfvi", **RTDP}))


def _baselines(starts: tuple[StartDistribution, ...]) -> tuple[Method, ...]:
    """SAC, DDPG and PPO with and without domain randomisation, with the paper's names."""
    made = []
    for algorithm, start, randomize in product(("sac", "ddpg", "ppo"), starts, (False, True)):
        name = f"{algorithm.upper()}-{LETTERS[start]}{' UDR' if randomize else ''}"
        changes = {"algorithm": algorithm, "start": start, "randomize": randomize}
        made.append(Method(name, changes))
    return tuple(made)


def _ablation(shares: tuple[float, ...]) -> tuple[Method, ...]:
    """DP and RTDP with and without ramp and spread states, at every share of the radii. Share 0 is cFVI."""
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


def methods(experiment: ExperimentName, budget: Budget) -> tuple[Method, ...]:
    """Rows or curves of an experiment, in order."""
    few, all_starts = (_baselines(starts) if budget.baselines else () for starts in (("angle",), ("gaussian", "angle")))
    return {
        "table1": USUAL + RTDPS + ((*all_starts, *CLASSICAL) if budget.baselines else ()),
        "fig-value": USUAL,
        "fig-learning": USUAL + RTDPS,
        "fig-robustness": USUAL + few,
        "fig-ablation": _ablation(budget.shares),
        "fig-parameters": USUAL + FAMILIES + CLASSICAL,
        "gallery": GALLERY,
        "certificates": USUAL + few,
    }[experiment]


@dataclass(frozen=True)
class PlannedRun:
    """One planned run: a method on a robot with a seed."""

    method: str
    kind: Kind
    run: Description
    usual: Any  # default settings of the command with this algorithm

    @property
    def robot(self) -> str:
        """Name of the robot."""
        return self.run.robot

    @property
    def settings(self) -> Any:
        """Settings of the run."""
        return self.run.settings

    @property
    def seed(self) -> int:
        """Seed of the settings."""
        return int(self.settings.seed)

    @property
    def threads(self) -> int:
        """Threads of the training; a baseline has one."""
        return getattr(self.settings, "threads", 1)


@dataclass(frozen=True)
class Plan:
    """All runs of an experiment."""

    experiment: ExperimentName
    budget_name: BudgetName
    budget: Budget
    robots: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    trainings: tuple[PlannedRun, ...]
    generated: str | None = None


@dataclass(frozen=True)
class Choice:
    """Choices of the user. An empty entry takes the value of the budget."""

    robots: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    baseline_steps: int | None = None
    generated: str | None = None
    threads: int = 1
    #: For tests: changed settings of every run, by the command of its kind.
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    budget: Budget | None = None


def make_plan(experiment: ExperimentName, budget_name: BudgetName, choice: Choice) -> Plan:
    """Plan of an experiment, seed by seed, so that an interrupted call has complete rows early.

    Raises SolverError for unknown or repeated names and for robots without a mass range, and ModelError for a robot
    without an artifact.
    """
    for word, known in ((experiment, get_args(ExperimentName)), (budget_name, tuple(BUDGETS))):
        if word not in known:
            raise SolverError(f"unknown name '{word}'.{suggestion(word, known)} Choices are {', '.join(known)}")
    budget = choice.budget or BUDGETS[budget_name]
    robots, seeds = choice.robots or _robots(experiment, budget, choice.generated), choice.seeds or budget.seeds
    if experiment == "fig-value":
        seeds = seeds[:1]
    for flag, given in (("--robots", robots), ("--seeds", seeds), ("--methods", choice.methods)):
        if len(set(given)) < len(given):
            raise SolverError(f"{flag} {' '.join(map(str, given))} repeats an entry")
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
        raise SolverError("--baseline-steps needs a baseline; name one with --methods")
    loaded = {robot: load_robot(robot, "cpu", choice.generated) for robot in robots}
    trainings = tuple(
        _training(method, seed, loaded[robot], choice)
        for seed, robot, method in product(seeds, robots, chosen)
        if robot in (method.robots or (robot,))
    )
    return Plan(experiment, budget_name, budget, robots, seeds, chosen, trainings, choice.generated)


def _robots(experiment: ExperimentName, budget: Budget, generated: str | None) -> tuple[str, ...]:
    """Robots of the budget. For the gallery: all shipped robots, or all robots in the folder `generated`."""
    if experiment == "fig-parameters" and len(budget.robots) > 1:
        return PICTURED
    return tuple(artifacts.known(generated or artifacts.SHIPPED)) if experiment == "gallery" else budget.robots


def _training(method: Method, seed: int, robot: CompiledRobot, choice: Choice) -> PlannedRun:
    """Planned run of a method."""
    usual = {"algorithm": method.changes["algorithm"]}
    changes: dict[str, Any] = {**method.changes, "seed": seed}
    if method.is_baseline:
        changes |= {} if choice.baseline_steps is None else {"steps": choice.baseline_steps}
    elif method.kind.command == "train":
        usual["preset"] = PRESET
        changes["threads"] = choice.threads
        changes["given"] = (ALL,) if method.told else ()
        if method.share:  # share 0 is cFVI
            radii = fast(robot)["adversaries"]
            changes["adversaries"] = {name: method.share * radius for name, radius in radii.items()}
    overrides = choice.overrides.get(method.kind.command, {})
    describe = method.kind.training.describe
    run = describe(robot, choice.generated, **{**usual, **changes, **overrides})
    return PlannedRun(method.name, method.kind, run, describe(robot, choice.generated, **usual).settings)


def require_extras(plan: Plan) -> None:
    """Raise SolverError for a missing package before the trainings begin."""
    needed = {"stable_baselines3": "baselines"} if any(method.is_baseline for method in plan.methods) else {}
    if plan.experiment == "fig-robustness" and "mujoco" in plan.budget.plants:
        needed["mujoco"] = "engines"
    for module, extra in needed.items():
        if importlib.util.find_spec(module) is None:
            raise SolverError(
                f"{plan.experiment} with --budget {plan.budget_name} needs {module}; "
                f"pip install 'robust-value-iteration[{extra}]'"
            )


def paper(robot: CompiledRobot) -> dict[str, Any]:
    """Settings of rFVI by the authors."""
    common = {
        "states": 51200,
        "sampling": "uniform",
        "epochs": 20,
        "authors": True,
        "step_periods": (1,),
        "reaction_periods": 0.0,
        "limit_cost": 0.0,
        "input_scale": 0.0,
        "basin": False,
        "modulation": "wiener",
        "adversaries": {kind.name: kind.usual for kind in ADVERSARIES if kind.usual > 0.0},
    }
    if robot.metadata.nq == 1:
        own = {"iterations": 150, "trace_decay": 0.85, "layers": 3, "width": 96, "minibatch": 256}
        rate = 3e-5
    else:
        own = {"iterations": 250, "trace_decay": 0.90, "layers": 4, "width": 64, "minibatch": 512}
        rate = 1e-4
    # The authors' N, 45 and 66, follows from (1 - lambda) lambda^N = 1e-4.
    own["trace_floor"] = 1e-4 / (1.0 - own["trace_decay"])
    return {**common, **own, "learning_rate": rate}


def paper_nominal(robot: CompiledRobot) -> dict[str, Any]:
    """Settings of cFVI by the authors."""
    return {**paper(robot), "adversaries": {}}
