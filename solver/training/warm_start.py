"""Training that begins from the value function of another run: after a parameter, a cost or a limit was changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solver.errors import SolverError
from solver.runs.shipped import run_folder
from solver.training.run import Run, load_run, load_run_checkpoint
from solver.training.settings import Settings
from solver.value.network import Ensemble

#: Settings of the network, which are those of the run that it comes from.
NETWORK = ("members", "layers", "width", "input_scale", "basin")
SHARE = 0.25  # of the iterations of a training from nothing
RAMP = (0.0, 0.5)  # of the adversaries: V knows the task already
LEARNING_RATE = 0.5  # share of the usual one at the first iteration


def warm_settings(folder: Path, robot: str, usual: Settings) -> dict[str, Any]:
    """What differs from the usual settings of a training of a robot that begins from the run in `folder`.

    Raises SolverError for a run of another robot.
    """
    before = _run_of(folder, robot).settings
    return {name: getattr(before, name) for name in NETWORK} | {
        "iterations": max(1, round(SHARE * usual.iterations)),
        "adversary_ramp": RAMP,
        "learning_rate": LEARNING_RATE * usual.learning_rate,
        "step_periods": usual.step_periods[-2:],
    }


def take_over(ensemble: Ensemble, robot: str, folder: Path) -> None:
    """Copy the weights that a run kept, or a shipped policy by its name. SolverError where they do not fit."""
    _run_of(folder, robot)
    checkpoint = load_run_checkpoint(run_folder(folder))
    kept = (checkpoint["best"] or checkpoint)["ensemble"]
    prefix = "members."  # and nothing else: basin and metric are those of the robot as it is now
    weights = {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}
    try:
        ensemble.members.load_state_dict(weights)
    except RuntimeError as error:
        raise SolverError(
            f"the network of {folder} does not fit this training: the robot has other states now, or --members, "
            "--layers or --width differ. Leave these out, or train without --from."
        ) from error


def _run_of(folder: Path, robot: str) -> Run:
    """What a run folder, or a shipped policy, says of itself. Raises SolverError for one of another robot."""
    run = load_run(run_folder(folder))
    if run.robot != robot:
        raise SolverError(f"{folder} is a run of {run.robot}, and this training is of {robot}")
    return run
