"""Loading a compiled robot for the solver, and checking that it is the one that a run was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import modelgen
from modelgen.loader import CompiledRobot
from solver.errors import SolverError

POSES = 256


def load_robot(
    name: str, device: str, generated: str | None, backend: str = "auto", nominal: Sequence[float] = ()
) -> CompiledRobot:
    """Load the float32 kernels of a robot, serial where they run under the solver's own threads.

    backend: one of `modelgen.load`, or `auto`, which is llvm on the CPU and torch on a GPU. nominal: parameters (p,) in
    place of the model file's. Raises SolverError where
    Torch sees no GPU, and for a backend that does not compute on one.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise SolverError("device cuda was asked for, but Torch sees no CUDA device; use --device cpu")
    if device == "cuda" and backend not in ("auto", "torch"):
        raise SolverError(f"backend {backend} computes on the CPU only; with --device cuda use --backend torch")
    if backend == "auto":
        backend = "torch" if device == "cuda" else "llvm"
    robot = modelgen.load(name, backend=backend, dtype="float32", directory=generated, parallel=False)
    return robot.with_nominal(nominal) if nominal else robot


def largest_rates(robot: CompiledRobot) -> NDArray[np.float64]:
    """(q,) the largest |dq/dt| that the limits of the velocities v allow: these limits themselves where v = dq/dt.

    dq/dt = G(q) v elsewhere, and the largest is over POSES drawn from the domain. `robot` has kernels on the CPU.
    """
    metadata = robot.metadata
    count, limits = len(metadata.coordinates), np.array([state.limit for state in metadata.states])
    poses = np.random.default_rng(0).uniform(-1.0, 1.0, (POSES, len(limits))) * limits
    x = torch.from_numpy(poses).to(getattr(torch, robot.dtype))
    kinematics = np.abs(np.asarray(robot.jacobians(x)[2], np.float64)[:, :count, count:])
    rates: NDArray[np.float64] = (kinematics @ limits[count:]).max(0)
    return rates


def require_same_artifact(folder: Path, trained_on: str, robot: CompiledRobot) -> None:
    """SolverError unless the run in a folder was trained on the robot's artifact, which its hash tells."""
    if trained_on != robot.hash:
        raise SolverError(
            f"{folder} was trained on artifact {trained_on[:12]} of {robot.name}, but generated/{robot.name} is now "
            f"{robot.hash[:12]}: the model or modelgen changed since. Go back to the old ones or train anew."
        )
