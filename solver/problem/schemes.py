"""Integration schemes: one step of xdot = f(x) and of the cost along it, with the input held (zero-order hold).

To add a scheme, write a subclass of `Scheme` in this file and a line in SCHEMES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from modelgen.metadata import Task

Field = Callable[[Tensor], Tensor]  # from states (N, n) to their rates (N, n) or their costs (N,)


class Scheme(ABC):
    """Rule by which states and costs advance. Its objects hold no data."""

    @abstractmethod
    def steps(self, task: Task) -> int:
        """Number of integration steps in a control period."""

    @abstractmethod
    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """States (N, n) after `seconds` from x (N, n), and the mean cost (N,) over that time."""

    @abstractmethod
    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Mean cost (N,) of a control period, from the costs (N,) of its steps."""


class RungeKutta(Scheme):
    """Classical Runge-Kutta method of fourth order for the state and the integral of its cost."""

    def steps(self, task: Task) -> int:
        """Number in the artifact. `modelgen build` chose it by comparison with steps of half the length."""
        return task.integration_steps

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """Four evaluations of the rates, and one evaluation of the costs of all four states."""
        first = rates(x)
        second_at = torch.add(x, first, alpha=0.5 * seconds)
        second = rates(second_at)
        third_at = torch.add(x, second, alpha=0.5 * seconds)
        third = rates(third_at)
        fourth_at = torch.add(x, third, alpha=seconds)
        slope = first.add_(rates(fourth_at)).add_(second.add_(third), alpha=2.0)
        # One call for all four stages: for a hundred states, most of the time of a call is overhead.
        costs = cost(torch.cat((x, second_at, third_at, fourth_at))).chunk(4)
        mean = (costs[0] + costs[3]).add_(costs[1] + costs[2], alpha=2.0)
        return torch.add(x, slope, alpha=seconds / 6.0), mean.div_(6.0)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Mean over the steps."""
        return costs[0] if len(costs) == 1 else torch.stack(costs).mean(0)


class Euler(Scheme):
    """Explicit Euler at the task's simulation rate, as in the authors' code.

    It adds energy to the robot, so that returns are better than those of the exact equations.
    """

    def steps(self, task: Task) -> int:
        """Simulation rate of the model file divided by its control rate."""
        return task.simulation_rate // task.control_rate

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """One evaluation of the rates and one of the cost."""
        return torch.add(x, rates(x), alpha=seconds), cost(x)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Cost of the first state of the period, as in the authors' code."""
        return costs[0]


SCHEMES: dict[str, Scheme] = {"rk4": RungeKutta(), "euler": Euler()}

if TYPE_CHECKING:
    SchemeName = str
else:
    SchemeName = Literal[tuple(SCHEMES)]  # tyro reads the choices of the command line from it
