"""Linearisation of a robot at the target of its task: dynamics, quadratic cost, authority of the inputs, time scales.

With the left eigenvector w of an eigenvalue s with positive real part, z = w.x obeys zdot = s z + w.(B u + xi). The
inputs can bring z back if |z| < |w.B| u_max/s.

They depend on the robot and on the horizon of its task, and not on its control rate.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen import linear
from modelgen.arrays import Array
from modelgen.linear import weights
from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata
from modelgen.tangent import Tangent

GROWING = 1e-3  # 1/s: a motion that grows faster is unstable


@dataclass(frozen=True, eq=False)
class Linearization:
    """edot = drift + A e + B (u - trim) near the target under the trim, in SI units and double precision.

    e (nt,) is the error of `modelgen.tangent`: x - target, and three numbers for a rotation.
    """

    robot: CompiledRobot  # with double-precision kernels on the CPU
    metadata: Metadata
    drift: Array  # (nt,)
    A: Array  # (nt, nt)
    B: Array  # (nt, m)

    @property
    def tangent(self) -> Tangent:
        """Names, units and limits of the errors."""
        return Tangent(self.metadata)

    @property
    def limits(self) -> Array:
        """Limits (nt,) of the errors."""
        return self.tangent.limits

    @property
    def input_limits(self) -> Array:
        """Half of the ranges (m,) of the inputs."""
        return np.array([entry.limit for entry in self.metadata.inputs])

    @property
    def free(self) -> list[int]:
        """Numbers of the errors that the task leaves free."""
        return [i for i, name in enumerate(self.tangent.names) if name in self.tangent.free]

    def scaled_dynamics(self, discount_rate: float = 0.0) -> tuple[Array, Array]:
        """A - discount_rate/2 (n, n) and B (n, m) of states and inputs divided by their limits."""
        A = self.A - 0.5 * discount_rate * np.eye(len(self.A))
        return A * self.limits / self.limits[:, None], self.B * self.input_limits / self.limits[:, None]

    def scaled_weights(self) -> tuple[Array, Array]:
        """Q (n, n) and R (m, m) of the task's cost x' Q x + u' R u near its target, in units of the limits."""
        Q, R = weights(self.robot)
        return Q * np.outer(self.limits, self.limits), R * np.outer(self.input_limits, self.input_limits)


@lru_cache(maxsize=16)
def linearization(robot: CompiledRobot) -> Linearization:
    """Linearization of a robot of any precision at its nominal parameters.

    Cached for each robot object, because presets, checks and basin of one training share it.
    """
    return linearize(robot.with_kernels(), robot.metadata)


def linearize(robot: CompiledRobot, metadata: Metadata) -> Linearization:
    """Linearization of a robot that has double-precision kernels on the CPU, at the target and with the limits in
    `metadata`."""
    x = torch.tensor([metadata.task.target], dtype=torch.float64)
    a, B, da_dx, dB_dx, *_ = (np.asarray(derivative)[0] for derivative in robot.jacobians(x))
    trim = np.array([entry.trim for entry in metadata.inputs])
    drift, slope = a + B @ trim, da_dx + np.einsum("nmk,m->nk", dB_dx, trim)
    if metadata.rotations:
        tangent, at = Tangent(metadata), np.array(metadata.task.target)
        inward = tangent.projection(at)
        drift, slope, B = inward @ drift, inward @ slope @ tangent.basis(at), inward @ B
    return Linearization(robot, metadata, drift, slope, B)


def holding(robot: CompiledRobot, trim: Sequence[float]) -> CompiledRobot:
    """The robot with another trim (m,). Its action cost is still measured from its own, and has the same curvature."""
    inputs = zip(robot.metadata.inputs, trim, strict=True)
    held = copy.copy(robot)
    held.metadata = replace(robot.metadata, inputs=tuple(replace(entry, trim=u0) for entry, u0 in inputs))
    held.trim = np.array(trim, np.float64)
    return held


@dataclass(frozen=True)
class UnstableDirection:
    """One unstable motion at the target."""

    rate: float  # real part of its eigenvalue, 1/s
    w: NDArray[np.complex128]  # (nt,) left eigenvector
    joint: int  # index in the error of the coordinate with the largest entry in w
    authority: float  # |w.B| u_max, with the room of the inputs between trim and limits
    reach: float  # largest deflection of the coordinate that the inputs can bring back, in its unit


def unstable_directions(local: Linearization) -> list[UnstableDirection]:
    """Unstable motions at the target, one of each complex pair."""
    count = local.metadata.pose
    away = np.array([entry.trim - entry.middle for entry in local.metadata.inputs])
    up, down = local.input_limits - away, local.input_limits + away
    directions = []
    values, vectors = np.linalg.eig(local.A.T)
    for value, w in zip(values, vectors.T, strict=True):
        if value.real > GROWING and value.imag >= 0.0:
            joint = int(np.abs(w[:count]).argmax())
            push = w @ local.B
            rooms = np.where(push.real > 0, up, down), np.where(push.real > 0, down, up)  # either way from the trim
            authority = float(min(np.abs(push) @ room for room in rooms))
            reach = authority / float(value.real * np.abs(w[joint]))
            directions.append(UnstableDirection(float(value.real), w, joint, authority, reach))
    return directions


LIVELY = 0.3  # largest ratio of decay to |eigenvalue| of a motion that swings or grows
SLOWEST = 0.4  # share of the horizon: slower motions are ignored


def time_scale(local: Linearization) -> float:
    """Time 1/|s| in seconds of a motion at the target with eigenvalue s, at most 0.4 of the horizon.

    The motion is the first of these that exists:

    - the fastest motion that swings or grows without inputs;
    - the median motion of the robot under its linear-quadratic regulator;
    - a double integrator: the full input moves the state that it changes most to its limit.
    """
    A, B = local.scaled_dynamics()
    slowest = SLOWEST * local.metadata.task.horizon
    values = np.linalg.eigvals(A)
    sizes = np.abs(values)
    lively = sizes[(values.real > -LIVELY * sizes) & (sizes > 1.0 / slowest)]
    if len(lively):
        return float(1.0 / lively.max())
    regulated = _regulated_rates(local)
    if regulated is not None:
        fast = regulated[regulated > 1.0 / slowest]
        return float(1.0 / np.median(fast)) if len(fast) else slowest
    across = np.abs(B).sum(1)
    return float(min(slowest, 1.0 / np.sqrt(max(across.max(), slowest**-2))))


def crossing_time(local: Linearization) -> float:
    """Least time in seconds that full inputs need to move a state from the target to its limit, at its initial rate.

    Infinite if no input moves a state.
    """
    fastest = float(np.abs(local.scaled_dynamics()[1]).sum(1).max())
    return 1.0 / fastest if fastest > 0.0 else np.inf


def _regulated_rates(local: Linearization) -> Array | None:
    """|s| (n,) of the motions under the regulator, or None if there is no regulator."""
    (A, B), (Q, R) = local.scaled_dynamics(), local.scaled_weights()
    gain = None if linear.obstacle(A, B, Q) else linear.gain(A, B, Q, R)
    return None if gain is None else np.abs(np.linalg.eigvals(A - B @ gain))
