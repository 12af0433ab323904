"""The energy balance along rollouts of a kernel. It finds wrong dynamics also between the points of other checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import evaluator
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check
from modelgen.verification.points import sample_points
from modelgen.verification.reference import Energies

Array = NDArray[np.float64]

BALANCE = 1e-8
UNRESOLVED = 1e-3  # a larger imbalance may come from the integration, so a shorter rollout is tried
SECONDS = (0.5, 0.05, 0.005)  # duration of a rollout; the shorter ones are for robots with violent motions
ENERGY_SAMPLES = 50  # a rollout; their largest energy is the scale of the error


def energy_balance(robot: Robot, equations: EquationsOfMotion, kernels: Any) -> Check:
    """Check that the energy changes by the work of all forces, along rollouts of the llvm kernel.

    The error is |change of energy - work|, relative to the largest energy of the rollout. Half of the rollouts have no
    input, half a constant one. They last half a second, or less where no step size resolves that. The step is halved
    until the error is below the limit: then the integration contributes less than the limit.
    """
    points = sample_points(robot, 32)
    x, u = points.x / 2, points.u.copy()
    u[::2] = 0
    energies = Energies(robot, equations)
    rest = [*u.T, *points.theta.T]

    def measure(what: Any) -> Callable[[Array], Array]:
        function = evaluator(energies.arguments, what, energies.definitions)
        return lambda state: function(*state.T, *rest)

    energy, size, power = measure(energies.energy), measure(energies.size), measure(energies.power)

    def flow(state: Array) -> tuple[Array, Array]:
        return np.asarray(kernels.dynamics(np.ascontiguousarray(state), u, theta=points.theta)), power(state)

    for seconds in SECONDS:
        error, before, steps = math.inf, math.inf, 250
        while error > BALANCE and steps <= 16_000:
            before, error = error, _imbalance(flow, energy, size, x, seconds / steps, steps)
            steps *= 2
            if error > before / 2 and (math.isfinite(error) or steps > 2_000):
                break  # a smaller step does not help: the kernel is wrong, or the motion too fast to integrate
        if error <= UNRESOLVED:
            break
    return Check("energy balance along rollouts", "llvm", error, BALANCE)


def _imbalance(
    flow: Callable[[Array], tuple[Array, Array]],
    energy: Callable[[Array], Array],
    size: Callable[[Array], Array],
    start: Array,
    step: float,
    steps: int,
) -> float:
    """The error after `steps` steps of Runge-Kutta of order 4, which integrates the state and the work together."""
    state, work = start, np.zeros(len(start))
    largest = size(start)
    for step_number in range(1, steps + 1):
        rates, powers = zip(*_stages(flow, state, step), strict=True)
        state = state + step / 6 * (rates[0] + 2 * rates[1] + 2 * rates[2] + rates[3])
        work = work + step / 6 * (powers[0] + 2 * powers[1] + 2 * powers[2] + powers[3])
        if step_number % (steps // ENERGY_SAMPLES) == 0:
            largest = np.maximum(largest, size(state) + np.abs(work))
        if not np.isfinite(state).all():
            return math.inf
    return float((np.abs(energy(state) - energy(start) - work) / largest).max())


def _stages(flow: Callable[[Array], tuple[Array, Array]], state: Array, step: float) -> list[tuple[Array, Array]]:
    stages = [flow(state)]
    for fraction in (0.5, 0.5, 1.0):
        stages.append(flow(state + fraction * step * stages[-1][0]))
    return stages
