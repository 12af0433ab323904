"""Base class of the adversaries: a direction, an admissible set, and a disturbance of the robot.

To add an adversary, write a subclass of `Adversary` in a new file of this folder, and a line in `ADVERSARIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar, Literal

from torch import Tensor

from solver.game.admissible_sets import AdmissibleSet, Ball
from solver.problem.problem import Problem

#: How the radius changes along a rollout, see `solver.game.game.Modulation`.
RadiusInTime = Literal["constant", "walk", "displacement"]


class Hamiltonian:
    """Gradients of the Hamiltonian H = dV/dx . (a + B u) at N states and the policy's inputs.

    x and costate = dV/dx (N, n), u (N, m), dH_du = B^T dV/dx (N, m), theta (N, p), nominal by default. `dH_dx` and
    `dH_dtheta` come from one reverse sweep of the robot's kernel, which runs when one of them is first read.
    """

    def __init__(
        self, problem: Problem, x: Tensor, u: Tensor, costate: Tensor, dH_du: Tensor, theta: Tensor | None = None
    ) -> None:
        self.problem, self.x, self.u, self.costate, self.dH_du = problem, x, u, costate, dH_du
        self.theta = theta

    @cached_property
    def _gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        arguments = self.x, self.u, self.costate, self.theta
        gradients: tuple[Tensor, Tensor, Tensor] = self.problem.robot.hamiltonian_gradient(*arguments)
        return gradients

    @property
    def dH_dx(self) -> Tensor:
        """Gradient in the state (N, n)."""
        return self._gradients[0]

    @property
    def dH_dtheta(self) -> Tensor:
        """Gradient in the parameters (N, p)."""
        return self._gradients[2]


@dataclass(frozen=True)
class Disturbed:
    """Disturbed inputs, parameters and states of the robot in one value step of N states."""

    u: Tensor  # (N, m) input that reaches the robot
    theta: Tensor | None = None  # (p,) or (N, p) parameters, nominal by default
    offset: Tensor | None = None  # (N, n) added to the state at which the dynamics are evaluated
    mistold: Tensor | None = None  # (N, p) added to the parameters of the contexts
    displacement: Tensor | None = None  # (N, n) added to the state at the end of the step


@dataclass(frozen=True)
class Adversary(ABC):
    """An adversary with the radius alpha of its admissible set.

    It disturbs the robot by a variable xi (N, d), its choice. The choice is the point of the admissible set that
    minimises the Hamiltonian to first order, that is z . xi with z from `direction` (paper, Theorems 1-4).
    """

    name: ClassVar[str]
    usual: ClassVar[float]  # alpha of the preset `paper`
    most: ClassVar[float] = inf  # largest alpha
    radius_in_time: ClassVar[RadiusInTime] = "walk"

    alpha: float

    @abstractmethod
    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """Gradient (N, d) of the Hamiltonian with respect to this adversary's variable."""

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """Set of the values that the variable may take. radius: one number, or (N, 1).

        The default is a Euclidean ball. If the problem has identified radii for this adversary, it is an ellipsoid with
        semi-axes in their proportions.
        """
        proportions = problem.identified and problem.identified.proportions(self.name)
        return Ball(radius, problem.target.new_tensor(proportions)) if proportions else Ball(radius)

    @abstractmethod
    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Disturbance of the robot with the choice (N, d) of this adversary added to `disturbed`."""
