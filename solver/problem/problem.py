"""The nominal robot and its task on a device: what every policy, plant and oracle takes.

Shapes: n states, m inputs, p parameters, N samples; SI units.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.problem.action_cost import ActionCost
from solver.problem.identified import Identified
from solver.problem.robots import largest_rates
from solver.problem.schemes import SCHEMES, SchemeName

#: Of the starts of episodes: the task's own, or uniform in the state domain.
StartDistribution = Literal["gaussian", "angle", "uniform"]

SAMPLES, REPEATS = 64, 1e-5  # states, and the share of the cost that a turn may change by rounding

#: Largest size of a state (SI) that a loaded or exported policy is computed at; float32 has no digits left beyond it.
FARTHEST = 1e6


class Problem:
    """A compiled robot with the limits, costs, times and distributions of its task, float32 on one device.

    scheme: how it is integrated, one of `solver.problem.schemes`. identified: the admissible sets that recordings
    leave; the robot's nominal parameters are then the identified ones.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        device: torch.device | str = "cpu",
        scheme: SchemeName = "rk4",
        identified: Identified | None = None,
    ) -> None:
        task = robot.metadata.task
        self.robot, self.device, self.scheme = robot, device, SCHEMES[scheme]
        self.identified = identified

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        self.state_limits, self.input_limits = tensor(robot.state_limits), tensor(robot.input_limits)  # (n,), (m,)
        self.continuous = [i for i, state in enumerate(robot.metadata.states) if state.continuous]
        self.clipped = torch.tensor([not s.continuous for s in robot.metadata.states], device=device)  # (n,) bool
        self.bound = torch.where(self.clipped, self.state_limits, torch.inf)  # (n,) where a state is clipped
        self.lower_bound = -self.bound
        self.theta, self.theta_bounds = tensor(robot.nominal_parameters), tensor(robot.parameter_bounds)  # (p,), (p, 2)
        self.target = tensor(task.target)  # (n,)
        self.control_step = 1.0 / task.control_rate  # s
        self.substeps = self.scheme.steps(task)  # integration steps in a control period
        self.discount_rate = -math.log(task.weight_at_horizon) / task.horizon  # rho, per second
        self.action_cost = ActionCost(robot)

    def integrated_by(self, scheme: SchemeName) -> Problem:
        """The same problem under another integration scheme."""
        return Problem(self.robot, self.device, scheme, self.identified)

    def state_cost(self, x: Tensor) -> Tensor:
        """q_c (N,) at x (N, n), at the nominal parameters; that of the wrapped angles where a joint has turned on."""
        if self.unwrapped_costs:
            x = x.clone()
            self._wrap_in_place(x, self.unwrapped_costs)
        cost: Tensor = self.robot.state_cost(x)[0]
        return cost

    @cached_property
    def unwrapped_costs(self) -> list[int]:
        """The continuous joints whose state cost, as written, does not repeat after a turn: a square of the angle."""
        if not self.continuous:
            return []
        x = self.sample_domain(SAMPLES, torch.Generator(device=self.device).manual_seed(0))
        cost, found = self.robot.state_cost(x)[0], []
        for i in self.continuous:
            turned = x.clone()
            turned[:, i] += 2.0 * math.pi
            if float((self.robot.state_cost(turned)[0] - cost).abs().max()) > REPEATS * float(cost.max()):
                found.append(i)
        return found

    def rates(self, x: Tensor) -> Tensor:
        """dq/dt (N, q) at x (N, n), which no input changes; at the nominal parameters."""
        drift: Tensor = self.robot.affine_dynamics(x)[0]
        return drift[:, : len(self.robot.metadata.coordinates)]

    @cached_property
    def largest_rates(self) -> Tensor:
        """(q,) the largest |dq/dt| that the limits of the velocities allow."""
        return torch.as_tensor(largest_rates(self.robot), dtype=torch.float32, device=self.device)

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
        torch.clamp(x, self.lower_bound, self.bound, out=x)
        self._wrap_in_place(x, self.continuous)

    def _wrap_in_place(self, x: Tensor, joints: list[int]) -> None:
        for i in joints:
            x[:, i].add_(math.pi).remainder_(2.0 * math.pi).sub_(math.pi)

    def beyond(self, x: Tensor) -> Tensor:
        """How far the states x (N, n) lie beyond their limits, as the sum of shares of these, (N,)."""
        return ((x.abs() - self.bound).clamp_min_(0.0) / self.state_limits).sum(1)

    def at_limit(self, x: Tensor) -> Tensor:
        """Which of the states x (..., n) the simulation holds at their limit, bool."""
        return x.abs() >= self.bound

    def sample_starts(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n) from the task's Gaussian start distribution, confined to the state domain."""
        task, device = self.robot.metadata.task, generator.device
        draw = torch.randn(size, len(task.start_mean), generator=generator, device=device)
        mean, deviation = torch.tensor([task.start_mean, task.start_deviation], device=device)
        return self.confine(mean + draw * deviation)

    def sample_angles(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n) as those of `sample_starts`, but every angle that wraps is uniform."""
        x = self.sample_starts(size, generator)
        turns = torch.rand(size, len(self.continuous), generator=generator, device=generator.device)
        x[:, self.continuous] = math.pi * (2.0 * turns - 1.0)
        return x

    def scatter(self, x: Tensor, spread: float, generator: torch.Generator) -> Tensor:
        """x (N, n) with Gaussian noise, confined. A row's standard deviation is uniform up to `spread` limits."""
        if spread == 0.0:
            return x
        draw = torch.randn(x.shape, generator=generator, device=generator.device)
        scale = torch.rand((len(x), 1), generator=generator, device=generator.device)
        return self.confine(x + spread * scale * self.state_limits * draw)

    def sample_domain(self, size: int, generator: torch.Generator) -> Tensor:
        """States (size, n) uniform in the compact domain |x_i| <= limit_i."""
        unit = torch.rand(size, len(self.state_limits), generator=generator, device=generator.device)
        return (2.0 * unit - 1.0) * self.state_limits
