"""The nominal plant: the robot as its model file states it, under the problem's integration scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from solver.cuda_graphs import Replayed
from solver.observer.sensing import Sensing, make_sensing
from solver.plants.plant import Seeds, Simulation
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

EFFECTS: tuple[str, ...] = ()


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Nominal:  # noqa: ARG001
    """The plant; it has no effects and no noise."""
    return Nominal(problem, theta)


@dataclass(frozen=True)
class Nominal:
    """The robot at theta (p,) or (N, p), by default the nominal parameters.

    States are confined to the domain and shown to the policy exactly.
    """

    problem: Problem
    theta: Tensor | None = None

    @property
    def sensing(self) -> Sensing:
        """Exact, without delay."""
        return make_sensing(self.problem)

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from x (N, n)."""
        return _NominalSimulation(self, x)


class _NominalSimulation:
    def __init__(self, plant: Nominal, x: Tensor) -> None:
        self.x, self.seen = x, x
        self.period = Replayed(partial(integrate_period, plant.problem, theta=plant.theta))

    def step(self, u: Tensor) -> Tensor:
        self.x, cost = self.period(self.x, u)
        self.seen = self.x
        return cost
