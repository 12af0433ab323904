"""Authority of the inputs over the unstable motions at the target.

With the left eigenvector w of an eigenvalue s with positive real part, z = w.x obeys zdot = s z + w.(B u + xi). The
inputs can bring z back from |z| < |w.B| u_max/s, and from no further.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot

GROWING = 1e-3  # per second: a faster motion is unstable


@dataclass(frozen=True)
class UnstableDirection:
    """One unstable motion at the target."""

    rate: float  # real part of its eigenvalue, per second
    w: NDArray[np.complex128]  # (n,) left eigenvector
    joint: int  # the coordinate that moves most in it
    authority: float  # |w.B| u_max, with the room of the inputs between trim and limits
    reach: float  # largest deflection of the coordinate that the inputs can bring back, in its unit


def unstable_directions(
    robot: CompiledRobot, A: NDArray[np.float64], B: NDArray[np.float64]
) -> list[UnstableDirection]:
    """Unstable motions of xdot = A x + B u in SI units, one of each complex pair."""
    count = len(robot.metadata.coordinates)
    limits, away = np.asarray(robot.input_limits, np.float64), np.asarray(robot.trim) - robot.input_middle
    up, down = limits - away, limits + away
    directions = []
    values, vectors = np.linalg.eig(A.T)
    for value, w in zip(values, vectors.T, strict=True):
        if value.real > GROWING and value.imag >= 0.0:
            joint = int(np.abs(w[:count]).argmax())
            push = w @ B
            rooms = np.where(push.real > 0, up, down), np.where(push.real > 0, down, up)  # either way from the trim
            authority = float(min(np.abs(push) @ room for room in rooms))
            reach = authority / float(value.real * np.abs(w[joint]))
            directions.append(UnstableDirection(float(value.real), w, joint, authority, reach))
    return directions
