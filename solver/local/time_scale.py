"""Time scales of a robot in seconds, from its linearisation at the target. Presets measure their look-ahead in them.

They depend on the robot and on the horizon of its task, and not on its control rate.
"""

from __future__ import annotations

import numpy as np

from modelgen.arrays import Array
from modelgen.linear import regulator
from solver.local.linearization import Linearization

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
    gain = None if regulator.obstacle(A, B, Q) else regulator.gain(A, B, Q, R)
    return None if gain is None else np.abs(np.linalg.eigvals(A - B @ gain))
