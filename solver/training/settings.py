"""Settings of a training, the check of their values, and the presets, of which `fast` computes them from a robot."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from modelgen.commandline import Range
from modelgen.errors import checked, suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.adversaries import ADVERSARIES, Adversary
from solver.game.policies import Hold
from solver.local.linearization import crossing_time, linearization, time_scale
from solver.streams import require_seed

Device = Literal["cpu", "cuda"]
Modulation = Literal["wiener", "stationary"]
Sampling = Literal["mixture", "domain", "uniform", "rollouts", "spread-rollouts"]
MOST = 10**9  # upper bound of all counts
MOST_THREADS = 512
MOST_WEIGHTS = 10**8  # of all networks: 400 MB, as much for each moment of Adam, and four times as much for SOAP
Count = Annotated[int, Range(1, MOST)]
LearningRate = Annotated[float, Range(1e-12, math.inf)]
NotNegative = Annotated[float, Range(0.0, math.inf)]
#: Settings without effect if there is no adversary.
ADVERSARY = ("adversaries", "adversary_ramp", "modulation")


@dataclass(frozen=True)
class Settings:
    """One training run. Two runs with equal settings on one machine give bit-identical weights."""

    seed: int = 0
    """Seed of the weights, the states and the adversaries' modulation."""
    iterations: Count = 60
    """Number of value iterations. Each computes targets from the current V and fits V to them."""
    states: Count = 8192
    """New states of an iteration; half of them, in twice the epochs, before the last phase."""
    sampling: Sampling = "mixture"
    """Distribution of the states. `uniform`: the state domain (DP in the paper). `domain`: the same, with shares around
    the task's starts and target. `rollouts`: rollouts of the current policy (RTDP in the paper). `mixture`: half of
    `domain`, half of `rollouts`. `spread-rollouts`: `rollouts` with noise on the states."""
    epochs: Count = 20
    """Passes over the states in a fit."""
    minibatch: Count = 512
    """States in a gradient step."""
    authors: bool = False
    """The parts of the authors: Adam with AMSGrad, new in every iteration; a fit in which all states have the same
    weight; explicit Euler steps. Otherwise: SOAP; a fit that is precise near the target; the Runge-Kutta method."""
    learning_rate: LearningRate = 3e-3
    """Learning rate of the first iteration. It falls to 1e-5 on a half cosine, or is constant with `authors`."""
    trace_decay: Annotated[float, Range(0.0, 0.9999)] = 0.94
    """lambda of the n-step targets for one value step. A larger value looks further ahead."""
    trace_floor: Annotated[float, Range(1e-12, 1.0)] = 0.3
    """Weight of the last n-step return, at which the look-ahead of a target ends."""
    step_periods: tuple[int, ...] = (4, 4, 4, 2)
    """Control periods of a value step, in which policy and adversary hold their moves. One entry for each equal share
    of the iterations, from coarse to fine."""
    reaction_periods: NotNegative = 1.0
    """Control periods that an input acts before the next one can (zero-order hold): 1, or 2 with one period of delay.
    0 is the closed form of continuous time, which chatters where V is steep."""
    drift: bool = False
    """Whether the policy takes into account how the robot drifts in this time. Without it a robot whose inputs do
    little within a control period cannot follow a right V (triple_cart). Not for `solver prove`."""
    limit_cost: NotNegative = 1.0
    """Cost per second while the simulation holds a state at its limit, as a multiple of the state cost with all states
    at their limits. With 0 a limit is a wall without cost, and a policy may learn to use it as a brake."""
    members: Count = 4
    """Number of networks in the ensemble."""
    layers: Count = 3
    """Hidden layers of a network."""
    width: Count = 96
    """Units of a hidden layer."""
    input_scale: NotNegative = 8.0
    """Network input of a rate: input_scale * v/limit. A position that does not wrap is 2 q/limit. 0: SI units."""
    basin: bool = True
    """Use V of the Riccati equation where the regulator of the linearised robot brings the nonlinear robot to the
    target, and measure errors in its metric."""
    adversaries: dict[str, float] = field(default_factory=dict, hash=False)
    """Radii of the adversaries, by name. `state`: SI units of the state per second (stationary) or per root second.
    `action`: units of the input. `observation`: units of the state. `parameters`: share of every nominal parameter or,
    with identified parameters, share of the semi-axes of their set. `told`: standard deviations of an observer's
    estimates of what the policy is told, by its filter."""
    adversary_ramp: tuple[float, float] = (0.0, 0.0)
    """Begin and end of the ramp on which all radii grow to their full size, as shares of the iterations. 0 0: full
    radii from the first iteration."""
    modulation: Modulation = "stationary"
    """Radii of the state, action and observation adversary: fixed, or with the paper's Wiener process."""
    evaluate_every: Count = 5
    """Iterations between two evaluations by rollouts. There is always an evaluation after the last iteration."""
    episodes: Count = 64
    """Rollouts of an evaluation on the nominal robot."""
    convergence: NotNegative = 0.0
    """Smallest difference of the mean return, as a share of it, between two policies of which one is better: a training
    that solves its task leaves a phase before the last after two that are neither better nor worse than the best. 0: it
    skips no phase, waits for no evaluation and polishes no V."""
    device: Device = "cpu"
    """Device of Torch: the CPU, or a GPU with CUDA."""
    threads: Annotated[int, Range(1, MOST_THREADS)] = field(default_factory=lambda: os.cpu_count() or 1)
    """Worker threads on the CPU. Results do not depend on their number."""

    def __post_init__(self) -> None:
        """Raises SolverError for the first setting that has another type or is out of its range."""
        require_fields(self)
        steps = self.step_periods
        whole = isinstance(steps, tuple) and steps and all(type(count) is int and count >= 1 for count in steps)
        _require("step_periods", bool(whole), "whole control periods, for example 4 2 1", self)
        ramp = self.adversary_ramp
        numbers = isinstance(ramp, tuple) and len(ramp) == 2 and all(type(share) in (int, float) for share in ramp)
        ordered = numbers and 0.0 <= ramp[0] <= ramp[1] <= 1.0
        _require("adversary_ramp", ordered, "two shares of the iterations, for example 0.3 0.6", self)
        weights = self.members * self.layers * max(self.width, 32) ** 2
        _require("width", weights <= MOST_WEIGHTS, f"networks of at most {MOST_WEIGHTS:.0e} weights in all", self)
        _require_adversaries(self.adversaries)

    @property
    def algorithm(self) -> str:
        """rfvi, or cfvi where no adversary plays."""
        return "rfvi" if any(radius > 0.0 for radius in self.adversaries.values()) else "cfvi"

    @property
    def hold(self) -> Hold:
        """Hold of an input, of which `reaction_periods` and `drift` are the parts."""
        return Hold(self.reaction_periods, self.drift)


#: Annotations of the fields of a class; they are strings to be compiled, and a report makes hundreds of settings.
_hints: Callable[[Any], dict[str, Any]] = cache(partial(get_type_hints, include_extras=True))


def require_fields(settings: Any) -> None:
    """Raises SolverError for the first field of a dataclass that has another type than its annotation, or is outside of
    the `Range` there; and for a field `seed` that no stream takes. Lists and numbers of NumPy become Python's own."""
    for name, annotation in _hints(type(settings)).items():
        object.__setattr__(settings, name, _plain(getattr(settings, name)))
        kind, *ranges = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        _require_type(name, kind, getattr(settings, name))
        for numbers in ranges:
            _require(name, numbers.holds(getattr(settings, name)), numbers.words, settings)
    require_seed(settings.seed, "setting seed")


def _plain(value: Any) -> Any:
    """A setting as run.json gives it back."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _require(name: str, right: bool, wanted: str, settings: Any) -> None:
    """Raises SolverError with the value and the valid values, unless `right`."""
    if not right:
        raise SolverError(f"setting {name} is {getattr(settings, name)}; give {wanted}")


def _require_type(name: str, kind: object, value: object) -> None:
    """Raises SolverError unless a setting from Python or run.json has the annotated type."""
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise SolverError(f"setting {name} is {value!r}; choices are {', '.join(get_args(kind))}")
    if kind is int and type(value) is not int:
        raise SolverError(f"setting {name} is {value!r}; give a whole number")
    if kind is float and (type(value) not in (int, float) or not math.isfinite(value)):  # type: ignore[arg-type]
        raise SolverError(f"setting {name} is {value!r}; give a finite number")
    if kind is bool and type(value) is not bool:
        raise SolverError(f"setting {name} is {value!r}; give True or False")


def _require_adversaries(radii: object) -> None:
    """Raises SolverError for a name that is not in the table of adversaries, and for a radius out of range."""
    kinds = {kind.name: kind for kind in ADVERSARIES}
    if not isinstance(radii, dict):
        raise SolverError(f"setting adversaries is {radii!r}; give radii by name, for example {{'action': 0.1}}")
    for name, radius in radii.items():
        if name not in kinds:
            hint = suggestion(str(name), kinds)
            raise SolverError(f"setting adversaries has no adversary {name!r}.{hint} There are {', '.join(kinds)}")
        _require_type(f"adversaries[{name!r}]", float, radius)
        if not 0.0 <= radius <= kinds[name].most:
            most = "" if math.isinf(kinds[name].most) else f" and at most {kinds[name].most:g}"
            raise SolverError(f"the radius of the adversary {name} is {radius}; give a value of at least 0{most}")


STEPS = 8  # value steps in a time scale of the robot
CROSSING = 5  # value steps in the crossing time, at least


def fast(robot: CompiledRobot) -> dict[str, Any]:
    """Settings for minutes of training on two cores, from the size of a robot and its time scale.

    - A value step is a share of the robot's time scale, at every control rate. The first steps are long, to carry the
      reward back fast.
    - The radii of the adversaries grow from zero in the last phase, after the nominal task is solved. With adversaries
      from the first iteration the robot does not learn to swing up.

    docs/concepts/choices.md has the measurements.
    """
    metadata = robot.metadata
    simple = len(metadata.states) <= 2
    local = linearization(robot)
    seconds = min(time_scale(local) / STEPS, crossing_time(local) / CROSSING)
    hold = max(1, round(seconds * metadata.task.control_rate))
    weakest = min(entry.limit for entry in metadata.inputs)
    common = {
        "iterations": 80,
        "convergence": 0.01,
        "step_periods": (2 * hold, *7 * (hold,)),
        "minibatch": 256,
        "epochs": 8,
        "adversary_ramp": (0.875, 0.9375),
    }
    if simple:
        radii = {"state": 0.02, "action": round(0.12 * weakest, 9), "observation": 0.001, "parameters": 0.025}
        return {**common, "states": 3072, "members": 2, "width": 64, "adversaries": radii}
    radii = {"state": 0.002, "action": round(0.03 * weakest, 9), "observation": 0.001, "parameters": 0.03}
    return {
        **common,
        "states": 6144 if len(metadata.states) <= 4 else 12288,
        "members": 3,
        "trace_decay": 0.91,
        "learning_rate": 2e-3,
        "input_scale": 4.0,
        "adversaries": radii,
    }


def fast_nominal(robot: CompiledRobot) -> dict[str, Any]:
    """Settings of `fast` without adversaries. The steps of its last phase are short."""
    settings = fast(robot)
    steps: tuple[int, ...] = settings["step_periods"]
    return {**settings, "adversaries": {}, "step_periods": (*steps[:-1], max(1, steps[-1] // 2))}


#: Settings that no preset decides. The others have no default without a robot.
OF_NO_PRESET = ("seed", "evaluate_every", "episodes", "device", "threads")
OF_ROBOT = {field.name for field in dataclasses.fields(Settings)} - {*OF_NO_PRESET}

Preset = Callable[[CompiledRobot], dict[str, Any]]
#: Table of presets: module, function for rfvi, function for cfvi.
PRESETS = {
    "fast": ("solver.training.settings", "fast", "fast_nominal"),
    "paper": ("solver.lab.reproduction.experiments", "paper", "paper_nominal"),
}
#: cfvi, continuous fitted value iteration, is rfvi without adversaries.
Algorithm = Literal["rfvi", "cfvi"]
ALGORITHMS = ("rfvi", "cfvi")


@checked(SolverError, "adversaries")
def make_settings(
    preset: str,
    robot: CompiledRobot,
    algorithm: str = "rfvi",
    adversaries: Iterable[Adversary] | Mapping[str, float] | None = None,
    **changes: Any,
) -> Settings:
    """Settings of a preset for a robot with kernels on the CPU, with some changes.

    algorithm: rfvi with the preset's adversaries, or cfvi without adversaries. adversaries: in place of the preset's,
    as objects or as radii by name; an empty collection gives cfvi. Raises SolverError for an unknown preset, algorithm
    or setting, and for adversaries of cfvi.
    """
    _require_choice("preset", preset, PRESETS)
    _require_choice("algorithm", algorithm, ALGORITHMS)
    require_names(Settings, changes)
    module, *functions = PRESETS[preset]
    radii = None if adversaries is None else radii_of(adversaries)
    make: Preset = getattr(import_module(module), functions[algorithm == "cfvi" or radii == {}])
    settings = Settings(**{**make(robot), **({} if radii is None else {"adversaries": radii}), **changes})
    if algorithm == "cfvi" != settings.algorithm:
        raise SolverError(
            f"cfvi has no adversaries, but the settings have {', '.join(settings.adversaries)}; train rfvi"
        )
    return settings


def radii_of(adversaries: Iterable[Adversary] | Mapping[str, float]) -> dict[str, float]:
    """Radii by name, of adversaries as objects or of radii by name. Raises SolverError for other objects."""
    if isinstance(adversaries, Mapping):
        return dict(adversaries)
    if not isinstance(adversaries, Iterable):
        raise SolverError(f"adversaries is {adversaries!r}; give a list, for example [solver.Action(0.3)]")
    radii = {}
    for adversary in adversaries:
        if not isinstance(adversary, Adversary):
            raise SolverError(f"adversaries has {adversary!r}; give for example solver.Action(0.3)")
        if adversary.name in radii:
            raise SolverError(f"adversaries has two {type(adversary).__name__}; keep one of them")
        radii[adversary.name] = adversary.alpha
    return radii


def require_names(kind: type[Any], names: Iterable[str]) -> None:
    """Raises SolverError for a name that is no setting of a dataclass."""
    for name in names:
        _require_choice("setting", name, sorted(entry.name for entry in dataclasses.fields(kind)))


def _require_choice(what: str, name: str, choices: Iterable[str]) -> None:
    choices = tuple(choices)
    if name not in choices:
        raise SolverError(f"unknown {what} '{name}'.{suggestion(name, choices)} Choices are {', '.join(choices)}")
