"""Integration of the equations of motion and of the state cost over one control period, by the problem's scheme.

Targets, rollouts, plants and the Gymnasium environment all integrate here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from solver.problem.problem import Problem


class Period(NamedTuple):
    """What one control period leads to."""

    x: Tensor  # (N, n) the states at its end
    state_cost: Tensor  # (N,) the integral of the state cost over it


def integrate_period(
    problem: Problem,
    x: Tensor,
    u: Tensor | Callable[[Tensor], Tensor],
    theta: Tensor | None = None,
    offset: Tensor | None = None,
    steps: int | None = None,
    absorbed: Tensor | None = None,
) -> Period:
    """One control period from x (N, n), confined to the state domain after every integration step.

    u is the input (N, m), held, or a function of the state that gives it for each integration step. theta (p,) or
    (N, p) are the parameters, nominal by default. The dynamics are evaluated at x + offset, offset (N, n). steps: more
    integration steps than the problem's, for forces that are not smooth. absorbed (N,): what the limits take from the
    states is added to it, as the sum over all states of its share of the limit.
    """
    costs, steps = [], steps or problem.substeps
    for _ in range(steps):
        acting = u if isinstance(u, Tensor) else u(x)

        def rates(at: Tensor, acting: Tensor = acting) -> Tensor:
            found: Tensor = problem.robot.dynamics(at if offset is None else at + offset, acting, theta)
            return found

        x, cost = problem.scheme.step(rates, problem.state_cost, x, problem.control_step / steps)
        if absorbed is not None:
            absorbed.add_(problem.beyond(x))
        problem.confine_in_place(x)
        costs.append(cost)
    return Period(x, problem.scheme.of_period(costs) * problem.control_step)
