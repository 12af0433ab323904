"""Nominal plant: the robot of the model file, integrated by the problem's scheme."""

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
    """Plant without effects and noise."""
    return Nominal(problem, theta)


@dataclass(frozen=True)
class Nominal:
    """Robot with parameters theta (p,) or (N, p), nominal by default.

    States are confined to the domain and measured exactly.
    """

    problem: Problem
    theta: Tensor | None = None

    @property
    def sensing(self) -> Sensing:
        """Exact sensors without delay."""
        return make_sensing(self.problem)

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from x (N, n)."""
        return _NominalSimulation(self, x)


class _NominalSimulation:
    def __init__(self, plant: Nominal, x: Tensor) -> None:
        self.x, self.measured = x, x
        self.period = Replayed(partial(integrate_period, plant.problem, theta=plant.theta))

    def step(self, u: Tensor) -> Tensor:
        self.x, cost = self.period(self.x, u)
        self.measured = self.x
        return cost
