"""The four adversaries of the paper (Theorems 1-4), one of families, their admissible sets, and the table of all.

An adversary has a direction, an admissible set, and a disturbance of the robot. It minimises the Hamiltonian, which is
linear in xi to first order. Its best choice is therefore the extreme point of the set against the gradient z. To add
one, write a subclass of `Adversary` and a line in `ADVERSARIES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.observer.observability import remaining_error
from solver.problem import Problem

SMALLEST_NORM = 1e-12  # a row with a smaller norm is shortened towards zero, because it has no direction


class AdmissibleSet(Protocol):
    """A compact, convex set of values (d,)."""

    def extreme_point(self, z: Tensor) -> Tensor:
        """Minimisers xi (N, d) of z . xi in the set, for every row of z (N, d). The centre if z is zero."""


@dataclass(frozen=True)
class Ball:
    """Euclidean ball |xi| <= radius about zero. radius: one number, or (N, 1) with one for every sample.

    scale (d,): if given, the set is an ellipsoid with semi-axes radius * scale along the components.
    """

    radius: Tensor | float
    scale: Tensor | None = None

    def extreme_point(self, z: Tensor) -> Tensor:
        """-radius z/|z| (Theorems 1-3)."""
        if self.scale is None:
            return -self.radius * unit_rows(z)
        return -self.radius * self.scale * unit_rows(z * self.scale)


@dataclass(frozen=True)
class Box:
    """Box lower <= xi <= upper, component by component. All three have the shape (d,)."""

    lower: Tensor
    upper: Tensor
    centre: Tensor

    def extreme_point(self, z: Tensor) -> Tensor:
        """Corner against the sign of z (Theorem 4)."""
        return torch.where(z > 0.0, self.lower, torch.where(z < 0.0, self.upper, self.centre))


@dataclass(frozen=True)
class Ellipsoid:
    """Ellipsoid xi = centre + factor b with |b| <= 1: (xi - centre)^T P^-1 (xi - centre) <= 1, P = factor factor^T.

    centre (d,), factor (d, k). P may be singular: the ellipsoid is then flat.
    """

    centre: Tensor
    factor: Tensor

    @staticmethod
    def from_matrix(centre: Tensor, matrix: Tensor) -> Ellipsoid:
        """Ellipsoid with a centre (d,) and P (d, d).

        Raises SolverError unless P is symmetric and positive semidefinite.
        """
        if matrix.shape != (len(centre), len(centre)):
            raise SolverError(f"the matrix of an ellipsoid in {len(centre)} dimensions has shape {tuple(matrix.shape)}")
        exact = matrix.double()
        values, vectors = torch.linalg.eigh(exact)
        scale = float(exact.abs().max())
        if not torch.allclose(exact, exact.T, rtol=0.0, atol=1e-6 * scale) or float(values.min()) < -1e-6 * scale:
            raise SolverError("the matrix of an ellipsoid is symmetric and positive semidefinite, and this one is not")
        return Ellipsoid(centre, (vectors * values.clamp_min(0.0).sqrt()).to(centre))

    def extreme_point(self, z: Tensor) -> Tensor:
        """centre - P z/sqrt(z^T P z)."""
        return self.centre - unit_rows(z @ self.factor) @ self.factor.T


def unit_rows(z: Tensor) -> Tensor:
    """z/|z| row by row, zero where z is zero."""
    unit: Tensor = z / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_min(SMALLEST_NORM)
    return unit


#: How the radius changes along a rollout, see `Modulation`.
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
    most: ClassVar[float] = math.inf  # largest alpha
    radius_in_time: ClassVar[RadiusInTime] = "walk"
    moves_parameters: ClassVar[bool] = False  # its set is then constant in time, and its choices are (N, p)

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
    moves_parameters: ClassVar[bool] = True

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dtheta (N, p)."""
        return hamiltonian.dH_dtheta

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """Box of nominal parameters +- radius * nominal, within the bounds of the model file.

        If the robot was identified, the set is its confidence ellipsoid with semi-axes times radius.
        """
        if problem.identified is not None:
            return Ellipsoid(problem.theta, radius * problem.theta.new_tensor(problem.identified.semi_axes()))
        return Box(*problem.around(radius), problem.theta)

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
    moves_parameters: ClassVar[bool] = True

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


class Modulation:
    """Radii of the adversaries along a rollout: fixed, or modulated by a Wiener process.

    kind `stationary`: the radius is alpha, which defines a stationary Hamilton-Jacobi-Isaacs equation. If an adversary
    displaces the state (`radius_in_time` is "displacement"), alpha is a rate: the radius is alpha h in a step of h
    seconds.

    kind `wiener`, as in the authors' code: in every step each adversary draws sqrt(h) alpha/1.96 N(0, I). By
    `radius_in_time`, the radius is the norm of the sum of these draws since the start of the rollout ("walk"), the norm
    of the draw of this step ("displacement"), or alpha ("constant").

    seconds: length h of a value step. generator: source of the draws, on the device of the states.
    """

    def __init__(self, kind: str, seconds: float, generator: torch.Generator) -> None:
        self.kind, self.seconds, self.generator = kind, seconds, generator
        self.walks: dict[str, Tensor] = {}

    def radius(self, adversary: Adversary, shape: torch.Size) -> Tensor | float:
        """Radius at this step: (N, 1), or one number for all samples. shape: (N, d) of the adversary's variable."""
        in_time, name, alpha = adversary.radius_in_time, adversary.name, adversary.alpha
        if in_time == "constant":
            return alpha
        if self.kind == "stationary":
            return alpha * self.seconds if in_time == "displacement" else alpha
        draw = torch.randn(shape, generator=self.generator, device=self.generator.device)
        draw.mul_(math.sqrt(self.seconds) * alpha / 1.96)
        if in_time == "walk":
            draw = self.walks.setdefault(name, torch.zeros_like(draw)).add_(draw)
        norm: Tensor = torch.linalg.vector_norm(draw, dim=1, keepdim=True)
        return norm
