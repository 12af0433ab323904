"""Interface of a plant: the simulated robot on which a policy is evaluated.

A plant has a true state, from which the reward is computed, and a measured state, which the policy gets.

Nominal plant: the robot of the model file, integrated by the problem's scheme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

from torch import Tensor

from solver.observer import Sensing, make_sensing
from solver.parallel import Replayed
from solver.problem import Problem
from solver.problem.integrator import integrate_period, steps_for

Seeds = int | Sequence[int]  # of a plant's noise: one for all rollouts, or one for each of equal parts of them


class Simulation(Protocol):
    """N rollouts in progress on a plant."""

    x: Tensor  # (N, n) true state
    measured: Tensor  # (N, n) state that the policy gets

    def step(self, u: Tensor) -> Tensor:
        """Integral (N,) of the state cost over one control period, which is simulated with the policy's input u (N, m).

        Changes `x` and `measured`.
        """


class Plant(Protocol):
    """A simulated robot on which a policy is evaluated.

    theta: parameters (p,) or (N, p), nominal by default. References among (N, p) may change while rollouts run.
    """

    @property
    def theta(self) -> Tensor | None:
        """Parameters of the robot."""

    @property
    def sensing(self) -> Sensing:
        """Errors of the measurements and delay of the inputs, for an observer.

        An observer gets the first entries of `Simulation.measured`, one for each entry of `Sensing.deviation`.
        """

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from the true states x (N, n). It must not change x."""


class PlantModule(Protocol):
    """Contents of the module, or of the class, that makes a plant."""

    EFFECTS: tuple[str, ...]  # names of effects that a user can switch on; empty for most plants

    def make(self, problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Plant:
        """Plant with the parameters theta (p,) or (N, p), nominal by default.

        effects: text of the user, such as `noise=2x`; all of EFFECTS if it is empty. seed: of the plant's noise.
        Raises SolverError for effects that it cannot read, and for a robot that it cannot simulate.
        """


EFFECTS: tuple[str, ...] = ()


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Nominal:  # noqa: ARG001
    """Plant without effects and noise."""
    return Nominal(problem, theta)


class EulerPlant:
    """Plant of the paper's authors: explicit Euler at the task's simulation rate, and their sum of the cost.

    It adds energy to the robot, so that returns are too good. Results that are compared with the paper use it.
    """

    EFFECTS: tuple[str, ...] = ()

    @staticmethod
    def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Nominal:  # noqa: ARG004
        """Plant without effects and noise."""
        return Nominal(problem.integrated_by("euler"), theta)


@dataclass(frozen=True)
class Nominal:
    """Robot with parameters theta (p,) or (N, p), nominal by default.

    States are confined to the domain and measured exactly.
    """

    problem: Problem
    theta: Tensor | None = None
    least: int | None = None  # integration steps in a control period, by default those that the parameters need

    @cached_property
    def steps(self) -> int:
        """Integration steps in a control period."""
        return steps_for(self.problem, self.theta) if self.least is None else self.least

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
        self.period = Replayed(partial(integrate_period, plant.problem, theta=plant.theta, steps=plant.steps))

    def step(self, u: Tensor) -> Tensor:
        self.x, cost = self.period(self.x, u)
        self.measured = self.x
        return cost
