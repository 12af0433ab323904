"""The energy balance along rollouts of a kernel: what integrates wrongly shows, whatever single points say."""

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
UNRESOLVED = 1e-3  # an imbalance above it may be the integration's
SECONDS = (0.5, 0.05, 0.005)  # of a rollout; the shorter for robots whose inputs throw them about
LOOKS = 50  # at the size of the energy along a rollout, which is a scale for errors only


def energy_balance(robot: Robot, equations: EquationsOfMotion, kernels: Any) -> Check:
    """Change of energy less the work of all forces along rollouts of the llvm kernel, beside the energy.

    Half of the rollouts are unforced, half have a constant input; all run for half a second, or less where no step
    resolves that. The step is halved until the integration error is below the limit, so that what remains is the
    kernel's.
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
                break  # a smaller step does not help: the kernel is at fault, or the motion too wild
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
    """Runge-Kutta of order 4 for the state and the work together; the energy is looked at LOOKS times."""
    state, work = start, np.zeros(len(start))
    largest = size(start)
    for step_number in range(1, steps + 1):
        rates, powers = zip(*_stages(flow, state, step), strict=True)
        state = state + step / 6 * (rates[0] + 2 * rates[1] + 2 * rates[2] + rates[3])
        work = work + step / 6 * (powers[0] + 2 * powers[1] + 2 * powers[2] + powers[3])
        if step_number % (steps // LOOKS) == 0:
            largest = np.maximum(largest, size(state) + np.abs(work))
        if not np.isfinite(state).all():
            return math.inf
    return float((np.abs(energy(state) - energy(start) - work) / largest).max())


def _stages(flow: Callable[[Array], tuple[Array, Array]], state: Array, step: float) -> list[tuple[Array, Array]]:
    stages = [flow(state)]
    for fraction in (0.5, 0.5, 1.0):
        stages.append(flow(state + fraction * step * stages[-1][0]))
    return stages
