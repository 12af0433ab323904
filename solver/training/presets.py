"""Preset `fast`, which computes settings from a robot, and the table of presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Literal

from modelgen.errors import checked, suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.adversaries import Adversary
from solver.local.linearization import crossing_time, linearization, time_scale
from solver.training.settings import Settings

STEPS = 8  # value steps in a time scale of the robot
CROSSING = 5  # value steps in the crossing time, at least


def fast(robot: CompiledRobot) -> dict[str, Any]:
    """Settings for minutes of training on two cores, from the size of a robot and its time scale.

    - A value step is a share of the robot's time scale, at every control rate. The first steps are long, to carry the
      reward back fast, and the last steps are short.
    - The radii of the adversaries grow from zero after the nominal task is solved. With adversaries from the first
      iteration the robot does not learn to swing up.

    docs/concepts/choices.md has the measurements.
    """
    metadata = robot.metadata
    simple = len(metadata.states) <= 2
    local = linearization(robot)
    seconds = min(time_scale(local) / STEPS, crossing_time(local) / CROSSING)
    hold = max(1, round(seconds * metadata.task.control_rate))
    weakest = min(entry.limit for entry in metadata.inputs)
    common = {
        "iterations": 100,
        "convergence": 0.01,
        "step_periods": (2 * hold, *8 * (hold,), max(1, hold // 2)),
        "minibatch": 256,
        "epochs": 8,
        "adversary_ramp": (0.7, 0.85),
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
    """Settings of `fast` without adversaries. The short steps begin where the adversaries of `fast` begin."""
    settings = fast(robot)
    steps: tuple[int, ...] = settings["step_periods"]
    return {**settings, "adversaries": {}, "iterations": 80, "step_periods": (*steps[:7], steps[-1])}


#: Settings that no preset decides. The others have no default without a robot.
OF_NO_PRESET = ("seed", "evaluate_every", "episodes", "device", "threads")
OF_ROBOT = {field.name for field in dataclasses.fields(Settings)} - {*OF_NO_PRESET}

Preset = Callable[[CompiledRobot], dict[str, Any]]
#: Table of presets: module, function for rfvi, function for cfvi.
PRESETS = {
    "fast": ("solver.training.presets", "fast", "fast_nominal"),
    "paper": ("solver.lab.paper", "paper", "paper_nominal"),
}
#: cfvi, continuous fitted value iteration, is rfvi without adversaries.
Algorithm = Literal["rfvi", "cfvi"]
ALGORITHMS = ("rfvi", "cfvi")


@checked(SolverError)
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
    known = {entry.name for entry in dataclasses.fields(Settings)}
    for name in changes:
        _require_choice("setting", name, sorted(known))
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
    radii = {}
    for adversary in adversaries:
        if not isinstance(adversary, Adversary):
            raise SolverError(f"adversaries has {adversary!r}; give for example solver.Action(0.3)")
        if adversary.name in radii:
            raise SolverError(f"adversaries has two {type(adversary).__name__}; keep one of them")
        radii[adversary.name] = adversary.alpha
    return radii


def _require_choice(what: str, name: str, choices: Iterable[str]) -> None:
    choices = tuple(choices)
    if name not in choices:
        raise SolverError(f"unknown {what} '{name}'.{suggestion(name, choices)} Choices are {', '.join(choices)}")
