"""The time scale of a robot, in seconds, from its linearisation at the target: what the presets look ahead by."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import modelgen
from modelgen.linear import regulator
from modelgen.linear.weights import weights
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

LIVELY = 0.3  # share of a motion's eigenvalue that may be decay, for a motion that swings or grows
SLOWEST = 2.0  # s


def linearized(robot: CompiledRobot) -> tuple[Array, Array, Array]:
    """Drift (n,), A (n, n) and B (n, m) at the task's target with no input, in units of the limits.

    `robot` has kernels on the CPU, of either precision.
    """
    x = torch.tensor([robot.metadata.task.target], dtype=getattr(torch, robot.dtype))
    a, B, A, *_ = (np.asarray(each, np.float64)[0] for each in robot.jacobians(x))
    scale, reach = (np.asarray(each, np.float64) for each in (robot.state_limits, robot.input_limits))
    return a / scale, A * scale / scale[:, None], B * reach / scale[:, None]


def time_scale(robot: CompiledRobot) -> float:
    """1/omega of the fastest motion at the target that grows or swings; of the regulator's motions where none does.

    Without a regulator it is the shortest time in which a full input takes a state across half its range.
    """
    _, A, B = linearized(robot)
    values = np.linalg.eigvals(A)
    sizes = np.abs(values)
    lively = sizes[(values.real > -LIVELY * sizes) & (sizes > 1.0 / SLOWEST)]
    if len(lively):
        return float(1.0 / lively.max())
    exact = modelgen.load(robot.name, directory=robot.folder.parent)
    scale, reach = np.asarray(exact.state_limits), np.asarray(exact.input_limits)
    Q, R = weights(exact)
    Q, R = Q * np.outer(scale, scale), R * np.outer(reach, reach)
    gain = None if regulator.obstacle(A, B, Q) else regulator.gain(A, B, Q, R)
    if gain is not None:
        closed = np.abs(np.linalg.eigvals(A - B @ gain))
        return float(1.0 / np.median(closed[closed > 1.0 / SLOWEST]))
    across = np.abs(B).sum(1)
    return float(min(SLOWEST, 1.0 / np.sqrt(max(across.max(), SLOWEST**-2))))
