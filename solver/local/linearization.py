"""A robot at the target of its task: the linearised dynamics and the quadratic cost there.

The presets' time scale, the basin and the warnings before a training read them here.
"""

from __future__ import annotations

import numpy as np
import torch

import modelgen
from modelgen.arrays import Array
from modelgen.linear.regulator import weights
from modelgen.loader import CompiledRobot


def linearized(robot: CompiledRobot) -> tuple[Array, Array, Array]:
    """Drift (n,), A (n, n) and B (n, m) at the task's target under the trim, in SI units.

    `robot` has kernels on the CPU, of either precision.
    """
    x = torch.tensor([robot.metadata.task.target], dtype=getattr(torch, robot.dtype))
    a, B, da_dx, dB_dx, *_ = (np.asarray(each, np.float64)[0] for each in robot.jacobians(x))
    trim = np.array([entry.trim for entry in robot.metadata.inputs])
    return a + B @ trim, da_dx + np.einsum("nmk,m->nk", dB_dx, trim), B


def in_units_of_limits(robot: CompiledRobot, A: Array, B: Array) -> tuple[Array, Array]:
    """A (n, n) and B (n, m) of states and inputs divided by their limits, as `modelgen.linear` expects them."""
    limits, reach = _limits(robot)
    return A * limits / limits[:, None], B * reach / limits[:, None]


def scaled_weights(robot: CompiledRobot) -> tuple[Array, Array]:
    """Q (n, n) and R (m, m) of the task's cost x' Q x + u' R u near its target, in units of the limits.

    They are differences, so `robot` has kernels in double precision.
    """
    limits, reach = _limits(robot)
    Q, R = weights(robot)
    return Q * np.outer(limits, limits), R * np.outer(reach, reach)


def in_double_precision(robot: CompiledRobot) -> CompiledRobot:
    """The same robot with double-precision kernels on the CPU."""
    found = modelgen.load(robot.name, directory=robot.folder.parent)
    return found.with_nominal([each.value for each in robot.metadata.parameters])


def _limits(robot: CompiledRobot) -> tuple[Array, Array]:
    """Of states (n,) and inputs (m,)."""
    return np.asarray(robot.state_limits, np.float64), np.asarray(robot.input_limits, np.float64)
