"""Integration schemes for one step of xdot = f(x) and of the cost along it, the input held (zero-order hold).

To add a scheme, write a class beside these and a line in SCHEMES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from modelgen.metadata import Task

Field = Callable[[Tensor], Tensor]  # x (N, n) -> a rate (N, n), or a cost (N,)


class Scheme(ABC):
    """How states and costs advance; it has no state of its own."""

    @abstractmethod
    def steps(self, task: Task) -> int:
        """Integration steps in a control period."""

    @abstractmethod
    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """The states (N, n) so many seconds after x (N, n), and the mean (N,) of the cost in between."""

    @abstractmethod
    def of_period(self, costs: list[Tensor]) -> Tensor:
        """The mean cost (N,) of a control period, from those of its steps."""


class RungeKutta(Scheme):
    """The classical method of fourth order, of the state together with the integral of its cost.

    The number of steps was chosen when the robot was built, by comparison with half the step.
    """

    def steps(self, task: Task) -> int:
        """As the artifact states."""
        return task.integration_steps

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """Four evaluations of the rates, and one of the costs of all four states."""
        first = rates(x)
        second_at = torch.add(x, first, alpha=0.5 * seconds)
        second = rates(second_at)
        third_at = torch.add(x, second, alpha=0.5 * seconds)
        third = rates(third_at)
        fourth_at = torch.add(x, third, alpha=seconds)
        slope = first.add_(rates(fourth_at)).add_(second.add_(third), alpha=2.0)
        # One call for all four: of a hundred states, most of a call's time does not depend on how many there are.
        costs = cost(torch.cat((x, second_at, third_at, fourth_at))).chunk(4)
        mean = (costs[0] + costs[3]).add_(costs[1] + costs[2], alpha=2.0)
        return torch.add(x, slope, alpha=seconds / 6.0), mean.div_(6.0)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """The mean."""
        return costs[0] if len(costs) == 1 else torch.stack(costs).mean(0)


class Euler(Scheme):
    """The authors': explicit Euler at the task's simulation rate. It adds energy, so that returns flatter."""

    def steps(self, task: Task) -> int:
        """As the model file states by its simulation rate."""
        return task.simulation_rate // task.control_rate

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """One evaluation of either function."""
        return torch.add(x, rates(x), alpha=seconds), cost(x)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """The cost of the period's first state, as the authors count it."""
        return costs[0]


SCHEMES: dict[str, Scheme] = {"rk4": RungeKutta(), "euler": Euler()}

if TYPE_CHECKING:
    SchemeName = str
else:
    SchemeName = Literal[tuple(SCHEMES)]  # the choices on the command line
