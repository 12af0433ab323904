"""Make a trained run one of the policies that ship with the package: weights and settings, nothing of the training."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import torch

from modelgen.artifact.folder import SHIPPED
from solver.errors import SolverError
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs import shipped
from solver.runs.folder import RUN, save_checkpoint
from solver.training.run import Run, load_run, load_run_checkpoint, save_run

LARGEST = 500_000  # bytes of a shipped checkpoint


def require_shippable(folder: Path) -> Run:
    """The run in a folder. Raises SolverError unless it has ended, on the artifact that ships with the package."""
    shipped.require_no_shipped(folder)
    run = load_run(folder)
    require_same_artifact(folder, run.artifact_hash, load_robot(run.robot, "cpu", str(SHIPPED)))
    done = load_run_checkpoint(folder)["iteration"]
    if done < run.length:
        raise SolverError(
            f"{folder} stands at {done} of {run.length} iterations; finish it with `solver train --resume {folder}`"
        )
    return run


def ship(folder: Path) -> str:
    """Write the run in a folder to the shipped policies and return its name there; an earlier one is replaced.

    Raises SolverError as `require_shippable` does, and for weights of more than LARGEST bytes.
    """
    run = require_shippable(folder)
    shipped_run = dataclasses.replace(run, generated=None, warm_from=Path(run.warm_from).name)
    content = _weights_only(load_run_checkpoint(folder)) | {RUN: shipped_run.results()}
    written = io.BytesIO()
    torch.save(content, written)
    if written.tell() > LARGEST:
        raise SolverError(
            f"the weights of {folder} take {written.tell()} bytes, and a shipped policy at most {LARGEST}: train a "
            "smaller network, with fewer --members or a smaller --width"
        )
    name = f"{run.robot}-{run.settings.algorithm}"
    target = shipped.FOLDER / name
    target.mkdir(parents=True, exist_ok=True)
    save_run(target, shipped_run)
    save_checkpoint(target, content)
    return name


def _weights_only(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint with the value function that the training kept, and empty entries for the rest."""
    best = checkpoint["best"]
    return {
        "iteration": checkpoint["iteration"],
        "ensemble": {} if best else checkpoint["ensemble"],
        "best": best,
        "optimisers": [],
        RUN: checkpoint[RUN],
    }
