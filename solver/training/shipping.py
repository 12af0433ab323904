"""Shipping of a trained run with the package: its settings and its best weights."""

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
from solver.training.run import RunDescription, load_run, load_run_checkpoint, save_run

LARGEST = 500_000  # bytes of a shipped checkpoint


def require_shippable(folder: Path) -> RunDescription:
    """Run in a folder. Raises SolverError unless it has ended and its artifact is the shipped one."""
    shipped.require_no_shipped(folder)
    run = load_run(folder)
    require_same_artifact(folder, run.artifact_hash, load_robot(run.robot, "cpu", str(SHIPPED)))
    done = load_run_checkpoint(folder)["iteration"]
    if done < run.length:
        raise SolverError(
            f"{folder} has {done} of {run.length} iterations; finish it with `solver train --resume {folder}`"
        )
    return run


def ship(folder: Path, largest: int = LARGEST) -> str:
    """Write the run in a folder to the shipped policies. Returns its name there. Replaces an earlier policy.

    Raises SolverError as `require_shippable`, and for a checkpoint of more than `largest` bytes.
    """
    run = require_shippable(folder)
    shipped_run = dataclasses.replace(run, generated=None, warm_from=Path(run.warm_from).name)
    content = _weights_only(load_run_checkpoint(folder)) | {RUN: shipped_run.results()}
    written = io.BytesIO()
    torch.save(content, written)
    if written.tell() > largest:
        raise SolverError(
            f"the weights of {folder} have {written.tell()} bytes; a shipped policy has at most {largest}. Train a "
            "smaller network, with fewer --members or a smaller --width"
        )
    name = f"{run.robot}-{run.settings.algorithm}"
    target = shipped.FOLDER / name
    target.mkdir(parents=True, exist_ok=True)
    save_run(target, shipped_run)
    save_checkpoint(target, content)
    return name


def _weights_only(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Checkpoint with the best value function, and empty entries for the rest."""
    best = checkpoint["best"]
    return {
        "iteration": checkpoint["iteration"],
        "ensemble": {} if best else checkpoint["ensemble"],
        "best": best,
        "optimisers": [],
        RUN: checkpoint[RUN],
    }
