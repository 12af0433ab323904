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

from modelgen.loader import CompiledRobot
from solver.game.held_input_policy import Held
from solver.problem.action_cost import ActionCost, make_action_cost


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
    """Dynamics, costs and limits of a compiled robot as Torch tensors on one device, and the players' moves."""

    def __init__(
        self, robot: CompiledRobot, radii: Radii, device: torch.device | str = "cpu", limit_cost: float = 0.0
    ) -> None:
        task = robot.metadata.task
        self.robot, self.radii = robot, radii

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        self.state_limits, self.input_limits = tensor(robot.state_limits), tensor(robot.input_limits)
        self.continuous = [i for i, state in enumerate(robot.metadata.states) if state.continuous]
        self.clipped = torch.tensor([not s.continuous for s in robot.metadata.states], device=device)
        self.theta, self.theta_bounds = tensor(robot.nominal_parameters), tensor(robot.parameter_bounds)
        self.spread = radii.parameters * self.theta.abs()
        self.target = tensor(task.target)
        self.control_step = 1.0 / task.control_rate
        self.substeps = task.simulation_rate // task.control_rate
        self.discount_rate = -math.log(task.weight_at_horizon) / task.horizon
        self.action_cost: ActionCost = make_action_cost(task.action_cost, self.input_limits)
        self.bound = torch.where(self.clipped, self.state_limits, torch.inf)
        self.limit_cost = limit_cost and limit_cost * float(self.state_cost(self.state_limits[None]))  # per second

    def respond(self, x: Tensor, costate: Tensor, held: Held | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The policy at x (N, n), the closed form or that of a held input: u (N, m), g_c(u) (N,), B^T dV/dx (N, m)."""
        _, control_matrix = self.robot.affine_dynamics(x)
        w = torch.einsum("bnm,bn->bm", control_matrix, costate)
        cost = self.action_cost
        at = w if held is None else held.gain(cost, self.input_limits, x, control_matrix, w)
        return cost.policy(at), cost.cost_of_policy(at), w

    def state_cost(self, x: Tensor) -> Tensor:
        """q_c (N,) at x (N, n), at the nominal parameters."""
        cost: Tensor = self.robot.state_cost(x)[0]
        return cost

    def rates(self, x: Tensor) -> Tensor:
        """dq/dt (N, c) of the continuous joints at x (N, n), which no input changes; at the nominal parameters."""
        drift: Tensor = self.robot.affine_dynamics(x)[0]
        return drift[:, self.continuous]

    def move(self, x: Tensor, costate: Tensor, radius: Modulation, held: Held | None = None) -> Move:
        """Both players' moves at x (N, n) for the costate dV/dx (N, n)."""
        u, cost, w = self.respond(x, costate, held)
        z = {"state": costate, "action": w}
        theta = None
        if self.radii.observation > 0.0 or self.radii.parameters > 0.0:
            z["observation"], _, z_theta = self.robot.hamiltonian_gradient(x, u, costate)
            if self.radii.parameters > 0.0:
                disturbed = self.theta - self.spread * torch.sign(z_theta)
                theta = torch.clamp(disturbed, self.theta_bounds[:, 0], self.theta_bounds[:, 1])

        def against(name: str) -> Tensor | None:
            return None if getattr(self.radii, name) == 0.0 else -radius(name) * direction(z[name])

        return Move(u, cost, against("state"), against("action"), against("observation"), theta)

    def hold(self, x: Tensor, u: Tensor, theta: Tensor | None, xi_observation: Tensor | None = None) -> Tensor:
        """One control period of explicit Euler substeps under a held input: (N, n), (N, m) -> (N, n)."""
        h = self.control_step / self.substeps
        for _ in range(self.substeps):
            seen = x if xi_observation is None else x + xi_observation
            x = self.confine(torch.add(x, self.robot.dynamics(seen, u, theta), alpha=h))
        return x

    def advance(self, x: Tensor, move: Move, periods: int) -> tuple[Tensor, Tensor]:
        """Hold `move` for `periods` control periods.

        Returns the next state (N, n) and the discounted cost of the interval (N,): state and action cost per control
        period, and the cost of a limit where the period ends at one, each period discounted by exp(-rho t).
        """
        u = move.u if move.xi_action is None else move.u + move.xi_action
        cost = torch.zeros_like(move.cost)
        for period in range(periods):
            cost.add_(self.state_cost(x) + move.cost, alpha=self.control_step * self.discount(period))
            x = self.hold(x, u, move.theta, move.xi_observation)
            if self.limit_cost > 0.0:
                stopped = self.stopped(x).any(1)
                cost.add_(stopped, alpha=self.control_step * self.discount(period) * self.limit_cost)
        if move.xi_state is not None:
            x = self.confine(x + move.xi_state)
        return x, cost

    def discount(self, periods: float) -> float:
        """exp(-rho t) after so many control periods."""
        return math.exp(-self.discount_rate * self.control_step * periods)

    def confine(self, x: Tensor) -> Tensor:
        """Clip every state to its limit and wrap continuous angles to [-pi, pi); changes x (N, n) and returns it."""
        x = torch.clamp(x, -self.bound, self.bound, out=x)
        for i in self.continuous:
            angle = x[:, i]
            angle.add_(math.pi).remainder_(2.0 * math.pi).sub_(math.pi)
        return x

    def stopped(self, x: Tensor) -> Tensor:
        """Which of the states x (..., n) the simulation holds at their limit, bool."""
        return x.abs() >= self.bound

    def sample_starts(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n) from the task's Gaussian start distribution, confined to the state domain."""
        task, device = self.robot.metadata.task, generator.device
        draw = torch.randn(size, len(task.start_mean), generator=generator, device=device)
        mean, deviation = torch.tensor([task.start_mean, task.start_deviation], device=device)
        return self.confine(mean + draw * deviation)

    def sample_domain(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n) uniform in the compact domain |x_i| <= limit_i."""
        unit = torch.rand(size, len(self.state_limits), generator=generator, device=generator.device)
        return (2.0 * unit - 1.0) * self.state_limits


def direction(z: Tensor) -> Tensor:
    """z/|z| row by row, zero where z is zero."""
    unit: Tensor = z / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_min(1e-12)
    return unit
