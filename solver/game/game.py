"""One step of the Hamilton-Jacobi-Isaacs game: the closed-form policy against the closed-form adversaries.

With w = B^T dV/dx the policy is u = grad g~(w); with z_y = (d f_c/d y)^T dV/dx the adversaries are (Theorems 1-4)
    xi_x = -alpha_x z_x/|z_x|, xi_u = -alpha_u z_u/|z_u|, xi_o = -alpha_o z_o/|z_o|, xi_theta = -Delta sign(z_theta),
where z_o and z_theta are the gradients of the Hamiltonian dV/dx . (a + B u) with respect to x and theta at the
policy's u. (The paper's table prints da/dx in the model column; Theorem 3 and the appendix have da/dtheta.)
Policy and adversaries move simultaneously and are held for one value step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.game.closed_form_policy import ClosedFormPolicy
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem


@dataclass(frozen=True)
class Radii:
    """The admissible sets: three energy bounds, and the model adversary's share of every nominal parameter."""

    state: float
    action: float
    observation: float
    parameters: float


NO_ADVERSARY = Radii(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Move:
    """What both players do for one value step of N states."""

    u: Tensor  # (N, m) the policy's input, without the adversary's
    cost: Tensor  # (N,) g_c(u)
    xi_state: Tensor | None  # (N, n) displacement over the whole step
    xi_action: Tensor | None  # (N, m)
    xi_observation: Tensor | None  # (N, n)
    theta: Tensor | None  # (N, p); None is the nominal vector


class Modulation:
    """Radii of the energy-bounded adversaries along one rollout.

    `wiener`: the authors' modulation. Per step of h seconds each adversary draws sqrt(h) alpha/1.96 N(0, I); the
    radius is the norm of the running sum for action and observation, and of the step's own draw, a displacement
    of the state, for the state adversary. `stationary`: fixed radii alpha, which defines a stationary HJI
    equation; the state adversary then displaces the state by alpha h.
    """

    def __init__(
        self, radii: Radii, kind: str, step: float, shape: tuple[int, int, int], generator: torch.Generator
    ) -> None:
        self.radii, self.kind, self.step, self.generator = radii, kind, step, generator
        size, n, m = shape
        self.shapes = {"state": (size, n), "action": (size, m), "observation": (size, n)}
        self.walks: dict[str, Tensor] = {}

    def __call__(self, name: str) -> Tensor | float:
        """The radius of adversary `name` at this step: (N, 1), or one number when stationary."""
        alpha: float = getattr(self.radii, name)
        if self.kind == "stationary":
            return alpha * self.step if name == "state" else alpha
        device = self.generator.device
        draw = torch.randn(self.shapes[name], generator=self.generator, device=device)
        draw.mul_(math.sqrt(self.step) * alpha / 1.96)
        if name != "state":
            draw = self.walks[name] = draw + self.walks.get(name, 0.0)
        norm: Tensor = torch.linalg.vector_norm(draw, dim=1, keepdim=True)
        return norm


class Game:
    """The moves of both players on a problem, and what they lead to."""

    def __init__(self, problem: Problem, radii: Radii = NO_ADVERSARY, limit_cost: float = 0.0) -> None:
        self.problem, self.radii = problem, radii
        self.spread = radii.parameters * problem.theta.abs()
        at_limits = problem.state_limits[None]
        self.limit_cost = limit_cost and limit_cost * float(problem.state_cost(at_limits))  # per second

    def move(self, x: Tensor, costate: Tensor, policy: ClosedFormPolicy, radius: Modulation) -> Move:
        """Both players' moves at x (N, n) for the costate dV/dx (N, n)."""
        u, cost, w = policy.respond(x, costate)
        z = {"state": costate, "action": w}
        theta, problem = None, self.problem
        if self.radii.observation > 0.0 or self.radii.parameters > 0.0:
            z["observation"], _, z_theta = problem.robot.hamiltonian_gradient(x, u, costate)
            if self.radii.parameters > 0.0:
                disturbed = problem.theta - self.spread * torch.sign(z_theta)
                theta = torch.clamp(disturbed, problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])

        def against(name: str) -> Tensor | None:
            return None if getattr(self.radii, name) == 0.0 else -radius(name) * direction(z[name])

        return Move(u, cost, against("state"), against("action"), against("observation"), theta)

    def advance(self, x: Tensor, move: Move, periods: int) -> tuple[Tensor, Tensor]:
        """Hold `move` for `periods` control periods.

        Returns the next state (N, n) and the discounted cost of the interval (N,): state and action cost per control
        period, and the cost of a limit where the period ends at one, each period discounted by exp(-rho t).
        """
        problem = self.problem
        u = move.u if move.xi_action is None else move.u + move.xi_action
        cost = torch.zeros_like(move.cost)
        for period in range(periods):
            weight = problem.control_step * problem.discount(period)
            cost.add_(problem.state_cost(x) + move.cost, alpha=weight)
            x = integrate_period(problem, x, u, move.theta, move.xi_observation)
            if self.limit_cost > 0.0:
                cost.add_(problem.at_limit(x).any(1), alpha=weight * self.limit_cost)
        if move.xi_state is not None:
            x = x + move.xi_state
            problem.confine_in_place(x)
        return x, cost


def direction(z: Tensor) -> Tensor:
    """z/|z| row by row, zero where z is zero."""
    unit: Tensor = z / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_min(1e-12)
    return unit
