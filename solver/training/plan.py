"""A training before it starts: its robot, the description of its run, and the run whose value function it begins with.

A training that begins with another run's value function is shorter. It is meant for a changed parameter, cost or limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.adversaries.adversary import Adversary
from solver.problem.given import GivenRanges, resolve
from solver.problem.identified import Identified, read
from solver.problem.robots import load_robot
from solver.runs.shipped import run_folder
from solver.training.presets import make_settings, radii_of
from solver.training.run import RunDescription, load_run, load_run_checkpoint
from solver.training.settings import Settings
from solver.value.network import Ensemble

Adversaries = Iterable[Adversary] | Mapping[str, float]
#: Settings of the network, which a training takes from the run that it begins with.
NETWORK = ("members", "layers", "width", "input_scale", "basin")
WARM_SHARE = 0.25  # of the usual iterations
WARM_RAMP = (0.0, 0.5)  # of the adversaries: V knows the task already
WARM_LEARNING_RATE = 0.5  # share of the usual first learning rate


def plan(
    name: str,
    generated: str | None = None,
    *,
    algorithm: str = "rfvi",
    preset: str = "fast",
    adversaries: Adversaries | None = None,
    identified: str | Path | None = None,
    given: GivenRanges = (),
    start_from: str | Path | None = None,
    **settings: Any,
) -> tuple[CompiledRobot, RunDescription]:
    """Robot with float32 kernels on the CPU and the nominal parameters of the training, and description of the run.

    given: parameters that the policy is told, by name; or their ranges. The preset gives the settings. The identified
    set changes them, then the run to start from, then `adversaries` and `settings`. Raises SolverError for an unknown
    name, and for a file or run of another robot.
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
        changes |= _warm_settings(Path(start_from), robot.name, usual)
    chosen = make_settings(preset, robot, algorithm, **{**changes, **settings})
    told = resolve(robot, given)
    if known is not None and any(entry.name not in robot.metadata.references for entry in told):
        raise SolverError(
            "--given and --identified are both given: the set of the file belongs to one robot, and not to a family. "
            "Leave one of them out."
        )
    begin, references = str(start_from or ""), robot.metadata.references
    return robot, RunDescription(robot.name, robot.hash, generated, chosen, preset, begin, known, told, references)


def _warm_settings(folder: Path, robot: str, usual: Settings) -> dict[str, Any]:
    """Changes of the usual settings for a training that begins with the run in `folder`."""
    before = _run_of(folder, robot).settings
    return {name: getattr(before, name) for name in NETWORK} | {
        "iterations": max(1, round(WARM_SHARE * usual.iterations)),
        "adversary_ramp": WARM_RAMP,
        "learning_rate": WARM_LEARNING_RATE * usual.learning_rate,
        "step_periods": usual.step_periods[-2:],
    }


def take_over_weights(ensemble: Ensemble, robot: str, folder: Path) -> None:
    """Copy the best weights of a run, or of a shipped policy by its name.

    Basin and metric stay, because the robot may have changed. Raises SolverError if the weights do not fit.
    """
    _run_of(folder, robot)
    checkpoint = load_run_checkpoint(run_folder(folder))
    kept = (checkpoint["best"] or checkpoint)["ensemble"]
    prefix = "members."
    weights = {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}
    try:
        ensemble.members.load_state_dict(weights)
    except RuntimeError as error:
        raise SolverError(
            f"the network of {folder} does not fit this training: the robot has other states now, or --given, "
            "--members, --layers or --width differ. Leave these out, or train without --start-from."
        ) from error


def _run_of(folder: Path, robot: str) -> RunDescription:
    """Description of a run folder or of a shipped policy. Raises SolverError for a run of another robot."""
    run = load_run(run_folder(folder))
    if run.robot != robot:
        raise SolverError(f"{folder} is a run of {run.robot}, and this training is of {robot}")
    return run
