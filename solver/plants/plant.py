"""A plant: what simulates the robot when a policy is evaluated.

It keeps apart the true state, from which the reward is computed, and the state that it shows to the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from solver.observer.sensing import Sensing
from solver.problem.problem import Problem

Seeds = int | Sequence[int]  # of a plant's noise: one for all rollouts, or one for each, whatever stands beside it


class Simulation(Protocol):
    """N rollouts under way on a plant."""

    x: Tensor  # (N, n) the true state
    seen: Tensor  # (N, n) the state that the policy is shown

    def step(self, u: Tensor) -> Tensor:
        """Simulate one control period under the policy's input u (N, m); returns the integral (N,) of the state cost
        over it."""


class Plant(Protocol):
    """A robot to evaluate a policy on."""

    @property
    def sensing(self) -> Sensing:
        """What is measured of it: for an observer, which sees as much of `Simulation.seen` and nothing else."""

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from the true states x (N, n), which it does not change."""


class PlantModule(Protocol):
    """What the module of a plant has, beside its classes."""

    EFFECTS: tuple[str, ...]  # the names of what a user can switch on; empty for most plants

    def make(self, problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Plant:
        """The plant at the parameters theta (p,) or (N, p), nominal by default.

        effects: the words of the user, all of EFFECTS when empty. seed: of the plant's noise. Raises SolverError for
        effects that it cannot read, and robots that it cannot simulate.
        """
