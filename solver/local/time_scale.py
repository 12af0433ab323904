"""The time scales of a robot, in seconds, from its linearisation at the target: the units of the presets' look-ahead.

They are properties of the robot and of how long its task lasts. Its control rate does not enter.
"""

from __future__ import annotations

import numpy as np

from modelgen.arrays import Array
from modelgen.linear import regulator
from modelgen.loader import CompiledRobot
from solver.local.linearization import in_double_precision, in_units_of_limits, linearized, scaled_weights

LIVELY = 0.3  # largest share of an eigenvalue's size that is decay, for a motion that swings or grows
SLOWEST = 0.4  # of the horizon: a motion that is slower counts for nothing


def time_scale(robot: CompiledRobot) -> float:
    """1/|s| in seconds of a motion at the target with eigenvalue s, at most 0.4 of the horizon. It is that of the first
    that exists of

    - the fastest motion that swings or grows without inputs;
    - the median motion of the robot under its linear-quadratic regulator;
    - a full input that takes the state which it changes most across its limit, as a double integrator.

    `robot` has kernels on the CPU, of either precision.
    """
    _, A, B = linearized(robot)
    A, B = in_units_of_limits(robot, A, B)
    slowest = SLOWEST * robot.metadata.task.horizon
    values = np.linalg.eigvals(A)
    sizes = np.abs(values)
    lively = sizes[(values.real > -LIVELY * sizes) & (sizes > 1.0 / slowest)]
    if len(lively):
        return float(1.0 / lively.max())
    regulated = _regulated(robot, A, B)
    if regulated is not None:
        fast = regulated[regulated > 1.0 / slowest]
        return float(1.0 / np.median(fast)) if len(fast) else slowest
    across = np.abs(B).sum(1)
    return float(min(slowest, 1.0 / np.sqrt(max(across.max(), slowest**-2))))


def crossing_time(robot: CompiledRobot) -> float:
    """Seconds in which full inputs take a state from the target to its limit, if they go on as they begin: the least of
    all states; infinite where no input moves a state."""
    _, A, B = linearized(robot)
    _, B = in_units_of_limits(robot, A, B)
    fastest = float(np.abs(B).sum(1).max())
    return 1.0 / fastest if fastest > 0.0 else np.inf


def _regulated(robot: CompiledRobot, A: Array, B: Array) -> Array | None:
    """|s| (n,) of the motions under the regulator; None where there is no regulator. A and B in units of the limits."""
    Q, R = scaled_weights(in_double_precision(robot))
    gain = None if regulator.obstacle(A, B, Q) else regulator.gain(A, B, Q, R)
    return None if gain is None else np.abs(np.linalg.eigvals(A - B @ gain))
