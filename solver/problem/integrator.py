"""Integration of the state and of the state cost over one control period, by the problem's scheme.

Value targets, rollouts, plants, the observer and the Gymnasium environment all call `integrate_period`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from solver.problem.problem import Problem


class Period(NamedTuple):
    """Result of one control period."""

    x: Tensor  # (N, n) states at its end
    state_cost: Tensor  # (N,) integral of the state cost over the period


def integrate_period(
    problem: Problem,
    x: Tensor,
    u: Tensor | Callable[[Tensor], Tensor],
    theta: Tensor | None = None,
    offset: Tensor | None = None,
    steps: int | None = None,
    absorbed: Tensor | None = None,
) -> Period:
    """One control period from the states x (N, n). States are confined to the domain after every integration step.

    u: the input (N, m), held over the period, or a function from the states (N, n) to the input, which is called at the
    start of every integration step.
    theta: parameters (p,) or (N, p), nominal by default. The state cost depends on the told ones only.
    offset: (N, n), added to the state at which the dynamics are evaluated.
    steps: number of integration steps, by default the problem's. Forces that are not smooth need more.
    absorbed: (N,), changed in place. Each step adds the distance by which the states are clipped, as the sum over the
    states of distance / limit.
    """
    costs, steps = [], steps or problem.substeps

    def cost_rate(at: Tensor) -> Tensor:
        return problem.state_cost(at, theta)

    for _ in range(steps):
        acting = u if isinstance(u, Tensor) else u(x)

        def rates(at: Tensor, acting: Tensor = acting) -> Tensor:
            xdot: Tensor = problem.robot.dynamics(at if offset is None else at + offset, acting, theta)
            return xdot

        x, cost = problem.scheme.step(rates, cost_rate, x, problem.control_step / steps)
        if absorbed is not None:
            absorbed.add_(problem.beyond(x))
        problem.confine_in_place(x)
        costs.append(cost)
    return Period(x, problem.scheme.of_period(costs) * problem.control_step)
