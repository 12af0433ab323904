"""What a policy is tried on: the robot as its model has it, a harsher one, or another engine.

A plant begins rollouts and moves them on by one control period at a time. It keeps apart the true state, which the
reward is computed from, and what it shows to the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem


class Motion(Protocol):
    """N rollouts under way on a plant."""

    x: Tensor  # (N, n) the true state
    seen: Tensor  # (N, n) what the policy is shown

    def step(self, u: Tensor) -> None:
        """One control period under the policy's input u (N, m)."""


class Plant(Protocol):
    """A robot that a policy is tried on."""

    def begin(self, x: Tensor) -> Motion:
        """Rollouts from the true states x (N, n), which are left as they are."""


@dataclass(frozen=True)
class Nominal:
    """The robot of the model: explicit Euler at the simulation rate, states confined to the domain and seen exactly.

    theta (p,) or (N, p) replaces the nominal parameters.
    """

    problem: Problem
    theta: Tensor | None = None

    def begin(self, x: Tensor) -> Motion:
        """Rollouts from x (N, n)."""
        return _NominalMotion(self, x)


class _NominalMotion:
    def __init__(self, plant: Nominal, x: Tensor) -> None:
        self.plant, self.x, self.seen = plant, x, x

    def step(self, u: Tensor) -> None:
        self.x = self.seen = integrate_period(self.plant.problem, self.x, u, self.plant.theta)
