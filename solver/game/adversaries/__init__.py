"""The four adversaries of the paper (Theorems 1-4), one of families, and the table of all, which settings, radii and
game follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.admissible_sets import AdmissibleSet, Box, Ellipsoid
from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian, RadiusInTime
from solver.observer.observability import remaining_error
from solver.problem.problem import Problem


@dataclass(frozen=True)
class StateAdversary(Adversary):
    """State adversary: xdot = a + B u + xi (Theorem 1).

    Its choice (N, n) is the displacement of the state over a value step. alpha: in SI units of the state per second
    (stationary radius) or per square root of a second (Wiener process).
    """

    name: ClassVar[str] = "state"
    usual: ClassVar[float] = 0.025
    radius_in_time: ClassVar[RadiusInTime] = "displacement"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dV/dx (N, n)."""
        return hamiltonian.costate

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add the displacement (N, n)."""
        before = disturbed.displacement
        return replace(disturbed, displacement=choice if before is None else before + choice)


@dataclass(frozen=True)
class ActionAdversary(Adversary):
    """Action adversary: xdot = a + B (u + xi) with xi (N, m) (Theorem 2). alpha: in units of the input."""

    name: ClassVar[str] = "action"
    usual: ClassVar[float] = 0.1

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """B^T dV/dx (N, m)."""
        return hamiltonian.dH_du

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add xi (N, m) to the input that reaches the robot."""
        return replace(disturbed, u=disturbed.u + choice)


@dataclass(frozen=True)
class ObservationAdversary(Adversary):
    """Observation adversary: xdot = a(x + xi) + B(x + xi) u, xi (N, n) (Theorem 3). alpha: in units of the state."""

    name: ClassVar[str] = "observation"
    usual: ClassVar[float] = 0.025

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dx (N, n)."""
        return hamiltonian.dH_dx

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add the offset (N, n)."""
        return replace(disturbed, offset=choice if disturbed.offset is None else disturbed.offset + choice)


@dataclass(frozen=True)
class ParameterAdversary(Adversary):
    """Model adversary: xdot = a(x, theta) + B(x, theta) u (Theorem 4). Its choice is theta (N, p) itself.

    alpha: share of every nominal parameter, or of the semi-axes of the identified ellipsoid. The paper's table has
    da/dx in the row of this adversary; Theorem 4 and the appendix have da/dtheta, as here.
    """

    name: ClassVar[str] = "parameters"
    usual: ClassVar[float] = 0.15
    most: ClassVar[float] = 1.0
    radius_in_time: ClassVar[RadiusInTime] = "constant"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dtheta (N, p)."""
        return hamiltonian.dH_dtheta

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """Box of nominal parameters +- radius * nominal, within the bounds of the model file.

        If the robot was identified, the set is its confidence ellipsoid with semi-axes times radius.
        """
        if problem.identified is not None:
            return Ellipsoid(problem.theta, radius * problem.theta.new_tensor(problem.identified.semi_axes()))
        spread, (lowest, highest) = radius * problem.theta.abs(), problem.theta_bounds.T
        lower, upper = (torch.clamp(problem.theta + side, lowest, highest) for side in (-spread, spread))
        return Box(lower, upper, problem.theta)

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Replace the parameters (N, p)."""
        return replace(disturbed, theta=choice)


@dataclass(frozen=True)
class ToldAdversary(Adversary):
    """Error of what the policy of a family is told (Theorem 4 about each context): the robot has theta(c) + xi (N, p).

    alpha: semi-axes of the set, in standard deviations that an observer's filter gives its estimates of what is told
    (`remaining_error`). References are known.
    """

    name: ClassVar[str] = "told"
    usual: ClassVar[float] = 0.0  # the paper has no families
    radius_in_time: ClassVar[RadiusInTime] = "constant"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dtheta (N, p)."""
        return hamiltonian.dH_dtheta

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """Ellipsoid about zero. Raises SolverError if the policy is told nothing."""
        context = problem.context
        columns = [] if context is None else context.columns.tolist()
        known = [i for k, i in enumerate(columns) if context is not None and k not in context.references]
        if not known:
            raise SolverError(
                "the adversary told plays on the parameters that a policy is told, and this one is told none; give "
                "--given, or leave the adversary out"
            )
        wide = problem.theta.new_zeros(len(problem.theta), len(known))
        wide[known] = torch.linalg.cholesky(remaining_error(problem, tuple(known))).to(wide)
        return Ellipsoid(torch.zeros_like(problem.theta), radius * wide)

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add xi (N, p) to the parameters of the context."""
        return replace(disturbed, mistold=choice)


#: Every class of adversary, in the order in which they draw random numbers and disturb the robot.
ADVERSARIES: list[type[Adversary]] = [
    StateAdversary,
    ActionAdversary,
    ObservationAdversary,
    ParameterAdversary,
    ToldAdversary,
]


def make_adversaries(radii: Mapping[str, float]) -> tuple[Adversary, ...]:
    """Adversaries of the table whose radius alpha, by name, is positive."""
    return tuple(kind(radii[kind.name]) for kind in ADVERSARIES if radii.get(kind.name, 0.0) > 0.0)
