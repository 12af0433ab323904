"""The compiled robot as the solver takes it, and whether it is the one that a run was trained on."""

from __future__ import annotations

from pathlib import Path

import torch

import modelgen
from modelgen.loader import CompiledRobot
from solver.errors import SolverError


def load_robot(name: str, device: str, generated: str | None) -> CompiledRobot:
    """The float32 kernels a device needs: serial Numba kernels under the solver's own threads, or Torch's."""
    if device == "cuda" and not torch.cuda.is_available():
        raise SolverError("device cuda was asked for, but Torch sees no CUDA device; use --device cpu")
    if device == "cuda":
        return modelgen.load(name, backend="torch", dtype="float32", directory=generated)
    return modelgen.load(name, backend="numba", dtype="float32", directory=generated, parallel=False)


def require_same_artifact(folder: Path, trained_on: str, robot: CompiledRobot) -> None:
    """SolverError when the robot's artifact is not the one, by its hash, that the run in a folder was trained on."""
    if trained_on != robot.hash:
        raise SolverError(
            f"{folder} was trained on artifact {trained_on[:12]} of {robot.name}, but generated/{robot.name} is now "
            f"{robot.hash[:12]}: the model or modelgen changed since. Go back to the old ones or train anew."
        )
