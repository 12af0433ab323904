"""The balance of power at points: the energy of the model file changes by the work of its forces, as a kernel moves.

Nothing is integrated in time, so that fast and stiff robots are judged as exactly as slow ones.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import evaluator
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check
from modelgen.verification.points import sample_points
from modelgen.verification.reference import DIGITS, Energies, slope

Array = NDArray[np.float64]

BALANCE = 1e-12  # rounding of a kernel in float64 stays below 1e-14 of the powers that are added
POINTS = 32
SEED = 5  # other points than those of the other checks


def power_balance(robot: Robot, equations: EquationsOfMotion, kernels: Any, count: int = POINTS) -> Check:
    """Check dE/dt = P at `count` points of the whole domain, half of them without input.

    dE/dt = dE/dq . qdot + dE/dv . vdot with qdot and vdot of the kernel, and derivatives in 50 digits; P is the power
    of all loads. The error is relative to |v|' |M| |vdot| + |dE/dq . qdot| + |P|: a solution of M vdot = f by a stable
    factorisation has an error of rounding times the first term, also where M is badly conditioned. NaN fails.
    """
    points = sample_points(robot, count, SEED)
    x, u, theta = points.x, points.u.copy(), points.theta
    u[::2] = 0
    xdot = np.asarray(kernels.dynamics(np.ascontiguousarray(x), u, theta=theta), np.float64)
    if not np.isfinite(xdot).all():
        return _check(np.nan)
    size = len(equations.coordinates)
    matrix = evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    inertial = np.einsum("ni,nij,nj->n", abs(x[:, size:]), abs(matrix(*x.T, *theta.T)), abs(xdot[:, size:]))
    evaluate = Energies(robot, equations).evaluator()
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for scale, rates, *point in zip(inertial, xdot, x, u, theta, strict=True):
            numbers = [mpf(float(value)) for part in point for value in part]

            def along(first: int, last: int, at: list[mpf] = numbers, rates: Array = rates) -> mpf:
                """dE/dt where only the entries `first` to `last` of the state move."""

                def moved(time: list[mpf]) -> list[mpf]:
                    ahead = [at[i] + time[0] * mpf(float(rates[i])) for i in range(first, last)]
                    return evaluate(*at[:first], *ahead, *at[last:])

                return slope(moved, [mpf(0)], 0)[0]

            by_position, by_velocity, power = along(0, size), along(size, len(rates)), evaluate(*numbers)[1]
            largest = float(scale) + float(abs(by_position)) + float(abs(power))
            error = float(abs(by_position + by_velocity - power))
            worst = max(worst, error / largest if largest else error)
    return _check(worst)


def _check(error: float) -> Check:
    return Check("energy changes by the power of the forces", "llvm", error, BALANCE)
