"""Compiled robots for the solver, and the check that a run was trained on the same artifact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import modelgen
from modelgen.artifact.folder import find, read
from modelgen.errors import ModelError, StaleArtifactWarning, warn
from modelgen.loader import CompiledRobot
from solver.errors import SolverError

POSES = 256  # random coordinates at which dq/dt = G(q) v is maximised


def load_robot(name: str, device: str, generated: str | None, nominal: Sequence[float] = ()) -> CompiledRobot:
    """Float32 kernels of a robot, single-threaded because the solver has threads of its own: llvm, or Torch on a GPU.

    device: cpu or cuda. generated: folder of artifacts, by default the shipped ones. nominal: parameters (p,) that
    replace those of the model file. Raises SolverError for a robot without inputs, or if Torch finds no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise SolverError("--device is cuda, but Torch finds no CUDA device; use --device cpu")
    backend = "torch" if device == "cuda" else "llvm"
    robot = modelgen.load(name, backend=backend, dtype="float32", directory=generated, parallel=False)
    if not robot.input_names:
        raise SolverError(
            f"{robot.name} has no input, so that there is nothing to control. modelgen builds, simulates and "
            "identifies it; to train a policy, declare an input in its model file: robot.input(name, limit, unit)."
        )
    return robot.with_nominal(nominal) if nominal else robot


def largest_rates(robot: CompiledRobot) -> NDArray[np.float64]:
    """Largest |dq/dt| that the limits of the velocities v allow, over POSES random coordinates in the domain.

    One for every coordinate, three for a quaternion. Of a kinematic robot, those that the limits of the inputs allow.
    dq/dt = G(q) v. If the velocities are the rates of the coordinates, G is the identity and the result is their
    limits. A quaternion has the limits of its angular velocity. The kernels of `robot` must compute on the CPU.
    """
    metadata = robot.metadata
    count, v, limits = metadata.nq, metadata.velocities, np.array([state.limit for state in metadata.states])
    poses = np.random.default_rng(0).uniform(-1.0, 1.0, (POSES, len(limits))) * limits
    x = torch.from_numpy(poses).to(getattr(torch, robot.dtype))
    if metadata.kinematic:
        a, B = (np.asarray(part, np.float64)[:, :count] for part in robot.affine_dynamics(x))
        middle, half = (np.array([getattr(entry, name) for entry in metadata.inputs]) for name in ("middle", "limit"))
        fastest: NDArray[np.float64] = (np.abs(a + B @ middle) + np.abs(B) @ half).max(0)
        return fastest
    kinematics = np.abs(np.asarray(robot.jacobians(x)[2], np.float64)[:, :count, v])
    rates: NDArray[np.float64] = (kinematics @ limits[v]).max(0)
    parts, first = [], 0
    for rotation in metadata.rotations:
        parts += [rates[first : rotation.coordinate], limits[rotation.speeds]]
        first = rotation.quaternion.stop
    return np.concatenate([*parts, rates[first:]])


def require_current(robot: CompiledRobot) -> None:
    """Raises SolverError, before a training, for an artifact that was not built from the present model file."""
    if robot.outdated:
        raise SolverError(robot.outdated)


def warn_of_rebuild(name: str, generated: str | None, trained_on: str) -> None:
    """Gives a ReliabilityWarning where the artifact of a training, with the hash `trained_on`, has been replaced."""
    try:
        folder = find(name, generated)
        found = f"has the hash {read(folder).hash[:12]}"
        replaced = trained_on[:12] not in found
    except ModelError as error:
        found, replaced = f"cannot be opened ({error})", True
    if replaced:
        warn(
            f"the artifact of {name} was replaced during this training: it {found}, and the training began with "
            f"{trained_on[:12]}. Its policy fits the old one only. Stop and train again, or restore the old model file "
            "and build it.",
            StaleArtifactWarning,
        )


def require_same_artifact(folder: Path, trained_on: str, robot: CompiledRobot) -> None:
    """Raises SolverError unless `trained_on`, the hash in a run folder, is the hash of the robot's artifact."""
    if trained_on != robot.hash:
        raise SolverError(
            f"{folder} was trained on artifact {trained_on[:12]} of {robot.name}, but generated/{robot.name} now has "
            f"the hash {robot.hash[:12]}: the model file or modelgen has changed. Restore the old version, or train "
            "again."
        )
