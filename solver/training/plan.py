"""A training before it starts: its robot, and the description of the run that its arguments make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.game.adversaries.adversary import Adversary
from solver.problem.identified import Identified, read
from solver.problem.robots import load_robot
from solver.training.presets import make_settings, radii_of
from solver.training.run import Run
from solver.training.warm_start import warm_settings

Adversaries = Iterable[Adversary] | Mapping[str, float]


def plan(
    name: str,
    generated: str | None = None,
    *,
    algorithm: str = "rfvi",
    preset: str = "fast",
    adversaries: Adversaries | None = None,
    identified: str | Path | None = None,
    start_from: str | Path | None = None,
    **settings: Any,
) -> tuple[CompiledRobot, Run]:
    """Robot with float32 kernels on the CPU and the nominal parameters of the training, and description of the run.

    The preset's settings for the robot come first, then what an identified set and a run to start from change in them,
    then `adversaries` and `settings`. Raises SolverError for an unknown name, and for a file that does not fit the
    robot.
    """
    robot = load_robot(name, "cpu", generated)
    known: Identified | None = None
    changes: dict[str, Any] = {}
    if identified is not None:
        known = read(Path(identified), robot)
        robot = robot.with_nominal(known.nominal)
        changes["adversaries"] = known.adversaries() if algorithm == "rfvi" else {}
    if adversaries is not None:
        changes["adversaries"] = {**changes.get("adversaries", {}), **radii_of(adversaries)}
    if start_from is not None:
        usual = make_settings(preset, robot, algorithm, **changes)
        changes |= warm_settings(Path(start_from), robot.name, usual)
    chosen = make_settings(preset, robot, algorithm, **{**changes, **settings})
    return robot, Run(robot.name, robot.hash, generated, chosen, preset, str(start_from or ""), known)
