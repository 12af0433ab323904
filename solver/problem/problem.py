"""The nominal robot and its task on a device: what every policy, plant and oracle takes.

Shapes: n states, m inputs, p parameters, N samples; SI units.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.problem.action_cost import ActionCost
from solver.problem.schemes import SCHEMES, SchemeName

#: Of the starts of episodes: the task's own, or uniform in the state domain.
StartDistribution = Literal["gaussian", "uniform"]


class Problem:
    """A compiled robot with the limits, costs, times and distributions of its task, float32 on one device.

    scheme: how it is integrated, one of `solver.problem.schemes`.
    """

    def __init__(self, robot: CompiledRobot, device: torch.device | str = "cpu", scheme: SchemeName = "rk4") -> None:
        task = robot.metadata.task
        self.robot, self.device, self.scheme = robot, device, SCHEMES[scheme]

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        self.state_limits, self.input_limits = tensor(robot.state_limits), tensor(robot.input_limits)  # (n,), (m,)
        self.continuous = [i for i, state in enumerate(robot.metadata.states) if state.continuous]
        self.clipped = torch.tensor([not s.continuous for s in robot.metadata.states], device=device)  # (n,) bool
        self.bound = torch.where(self.clipped, self.state_limits, torch.inf)  # (n,) where a state is clipped
        self.theta, self.theta_bounds = tensor(robot.nominal_parameters), tensor(robot.parameter_bounds)  # (p,), (p, 2)
        self.target = tensor(task.target)  # (n,)
        self.control_step = 1.0 / task.control_rate  # s
        self.substeps = self.scheme.steps(task)  # integration steps in a control period
        self.discount_rate = -math.log(task.weight_at_horizon) / task.horizon  # rho, per second
        self.action_cost = ActionCost(robot)

    def integrated_by(self, scheme: SchemeName) -> Problem:
        """The same problem under another integration scheme."""
        return Problem(self.robot, self.device, scheme)

    @property
    def integration_step(self) -> float:
        """Seconds that the integrator advances at once."""
        return self.control_step / self.substeps

    def state_cost(self, x: Tensor) -> Tensor:
        """q_c (N,) at x (N, n), at the nominal parameters."""
        cost: Tensor = self.robot.state_cost(x)[0]
        return cost

    def rates(self, x: Tensor) -> Tensor:
        """dq/dt (N, c) of the continuous joints at x (N, n), which no input changes; at the nominal parameters."""
        drift: Tensor = self.robot.affine_dynamics(x)[0]
        return drift[:, self.continuous]

    def discount(self, periods: float) -> float:
        """exp(-rho t) after so many control periods."""
        return math.exp(-self.discount_rate * self.control_step * periods)

    def confine(self, x: Tensor) -> Tensor:
        """x (N, n) with every state clipped to its limit and continuous angles wrapped to [-pi, pi); a new tensor."""
        x = x.clone()
        self.confine_in_place(x)
        return x

    def confine_in_place(self, x: Tensor) -> None:
        """The same without a copy, for the integrator's loop: overwrites x (N, n)."""
        torch.clamp(x, -self.bound, self.bound, out=x)
        for i in self.continuous:
            x[:, i].add_(math.pi).remainder_(2.0 * math.pi).sub_(math.pi)

    def at_limit(self, x: Tensor) -> Tensor:
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
