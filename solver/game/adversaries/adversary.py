"""What an adversary is: a direction, an admissible set, and the disturbance that it applies to the robot.

To add one, write a file beside this one with a subclass of `Adversary`, and a line in `ADVERSARIES`.
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

#: How the radius changes along a rollout: see `solver.game.modulation`.
RadiusInTime = Literal["constant", "walk", "displacement"]


class Hamiltonian:
    """H = dV/dx . (a + B u) at N states and the policy's inputs, and its gradients.

    x, costate = dV/dx (N, n), u (N, m), dH_du = B^T dV/dx (N, m). The other gradients come from one reverse sweep of
    the robot's kernel, which runs when the first of them is asked for.
    """

    def __init__(self, problem: Problem, x: Tensor, u: Tensor, costate: Tensor, dH_du: Tensor) -> None:
        self.problem, self.x, self.u, self.costate, self.dH_du = problem, x, u, costate, dH_du

    @cached_property
    def _swept(self) -> tuple[Tensor, Tensor, Tensor]:
        swept: tuple[Tensor, Tensor, Tensor] = self.problem.robot.hamiltonian_gradient(self.x, self.u, self.costate)
        return swept

    @property
    def dH_dx(self) -> Tensor:
        """(N, n)."""
        return self._swept[0]

    @property
    def dH_dtheta(self) -> Tensor:
        """(N, p)."""
        return self._swept[2]


@dataclass(frozen=True)
class Disturbed:
    """What the robot undergoes in one value step of N states."""

    u: Tensor  # (N, m) the input that reaches the robot
    theta: Tensor | None = None  # (p,) or (N, p) its parameters, nominal by default
    offset: Tensor | None = None  # (N, n) added to the state that the dynamics are evaluated at
    displacement: Tensor | None = None  # (N, n) added to the state at the end of the step


@dataclass(frozen=True)
class Adversary(ABC):
    """One adversary with the radius alpha of its admissible set."""

    name: ClassVar[str]
    usual: ClassVar[float]  # the radius where no setting states another
    most: ClassVar[float] = inf  # the largest radius
    radius_in_time: ClassVar[RadiusInTime] = "walk"

    alpha: float

    @abstractmethod
    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """The gradient (N, d) of the Hamiltonian with respect to this adversary's variable."""

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """The values that the variable may take for a radius, one number or (N, 1); by default a Euclidean ball, with
        semi-axes in the proportions of what recordings leave unexplained where the robot was identified."""
        proportions = problem.identified and problem.identified.proportions(self.name)
        return Ball(radius, problem.target.new_tensor(proportions)) if proportions else Ball(radius)

    @abstractmethod
    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """What the robot undergoes when this adversary, too, plays its choice (N, d)."""
