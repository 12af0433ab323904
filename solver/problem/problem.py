"""Robot and task as tensors on one device: the argument of every policy, plant and oracle.

Shapes: n states, q coordinates, m inputs, p parameters, k told parameters, N samples. SI units. Rows (N, n + k) are
states with their contexts (`solver.problem.context`); in most problems k is 0, and rows are states.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.problem.action_cost import TensorActionCost
from solver.problem.context import Context, Given
from solver.problem.identified import Identified
from solver.problem.robots import largest_rates
from solver.problem.schemes import SCHEMES, SchemeName

#: Distribution of an episode's first state: `gaussian` as the task defines it, `angle` the same with continuous angles
#: uniform, or `uniform` in the state domain.
StartDistribution = Literal["gaussian", "angle", "uniform"]

SAMPLES = 64  # states at which the state cost is compared with its value after one turn
SMALLEST = 1e-10  # weight of the size of the inputs in a trim, which makes redundant ones small
STEADY = 1e-4  # of half the range of an input: a trim that moves less with the context stands still
ROUNDING = 1e-5  # of the largest cost: a smaller difference after one turn is rounding

#: Largest size of a state (SI) that a loaded or exported policy is computed at; float32 has no digits left beyond it.
FARTHEST = 1e6


class Problem:
    """A compiled robot with the limits, costs, time steps and start distributions of its task, float32 on one device.

    robot: kernels in float32, from `solver.problem.robots.load_robot`.
    scheme: integration scheme, a key of `solver.problem.schemes.SCHEMES`.
    identified: admissible sets from recordings. If it is given, the robot's nominal parameters must be the identified
    ones.
    given: parameters that the policy is told. `context` is None without them.

    Tensors: `state_limits` (n,), `input_limits` (m,) half of the ranges of the inputs about `input_middle` (m,),
    `lower_input` and `upper_input` (m,), `trim` (m,) the input that holds the target at the model file's parameters,
    `theta` (p,) nominal parameters, `theta_bounds` (p, 2), `target` (n,).
    Times: `control_step` in seconds, `substeps` integration steps in a control period. `discount_rate` is rho in 1/s,
    from the task's weight at its horizon: exp(-rho horizon) = weight_at_horizon.
    """

    def __init__(
        self,
        robot: CompiledRobot,
        device: torch.device | str = "cpu",
        scheme: SchemeName = "rk4",
        identified: Identified | None = None,
        given: tuple[Given, ...] = (),
    ) -> None:
        task = robot.metadata.task
        self.robot, self.device, self.scheme = robot, device, SCHEMES[scheme]
        self.identified = identified

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        self.state_limits, self.input_limits = tensor(robot.state_limits), tensor(robot.input_limits)  # (n,), (m,)
        self.input_middle, self.trim = tensor(robot.input_middle), tensor(robot.trim)  # (m,), (m,)
        self.lower_input = self.input_middle - self.input_limits
        self.upper_input = self.input_middle + self.input_limits
        self.continuous = [i for i, state in enumerate(robot.metadata.states) if state.continuous]
        self.clipped = torch.tensor([not s.continuous for s in robot.metadata.states], device=device)  # (n,) bool
        self.bound = torch.where(self.clipped, self.state_limits, torch.inf)  # (n,) infinite for angles that wrap
        self.lower_bound = -self.bound
        self.theta, self.theta_bounds = tensor(robot.nominal_parameters), tensor(robot.parameter_bounds)  # (p,), (p, 2)
        self.target = tensor(task.target)  # (n,)
        self.control_step = 1.0 / task.control_rate  # s
        self.substeps = self.scheme.steps(task)  # integration steps in a control period
        self.discount_rate = -math.log(task.weight_at_horizon) / task.horizon  # 1/s
        self.action_cost = TensorActionCost(robot, device)
        self.context = Context(given, robot.parameter_names, self.theta) if given else None
        self.moving_trim = self.context is not None and self._trim_moves(self.context)

    def hold(self, trim: Tensor) -> None:
        """Take another trim (m,), from which the action cost is then measured."""
        self.trim, self.action_cost = trim, self.action_cost.about(trim)

    def trim_of(self, theta: Tensor) -> Tensor:
        """Smallest inputs (N, m) that hold the target with the parameters theta (N, p), or that come nearest to it.

        Inputs are measured in units of half their range, as in `modelgen.derivation.trim`.
        """
        task, count = self.robot.metadata.task, len(self.robot.metadata.coordinates)
        names = self.robot.state_names
        held = [i for i in range(count, len(names)) if names[i] not in task.free]
        a, B = self.robot.affine_dynamics(self.target.repeat(len(theta), 1), theta)
        scale, limits = self.input_limits.double(), self.state_limits[held].double()
        A = B[:, held].double() * scale / limits[:, None]
        normal = A.mT @ A
        size = normal.diagonal(dim1=1, dim2=2).sum(1)[:, None, None].clamp_min(1e-12)
        regular = normal + SMALLEST * size * torch.eye(len(scale)).to(normal)
        wanted = A.mT @ (-a[:, held].double() / limits)[..., None]
        z: Tensor = torch.linalg.solve_ex(regular, wanted).result[..., 0]
        return (z * scale).to(self.trim)

    def _trim_moves(self, context: Context) -> bool:
        """Whether the trim of the model file holds the target, and is another one for some context."""
        generator = torch.Generator(device=self.device).manual_seed(0)
        corners = torch.sign(context.draw(SAMPLES, generator))
        nominal = self.trim_of(self.theta[None])
        moved = (self.trim_of(context.theta(corners)) - nominal).abs() / self.input_limits
        missed = (nominal - self.trim).abs() / self.input_limits
        return float(missed.max()) < STEADY < float(moved.max())

    def cost_at(self, rows: Tensor) -> TensorActionCost:
        """Action cost at the rows (N, n + k), measured from the trims of their contexts."""
        if not self.moving_trim:
            return self.action_cost
        _, theta = self.split(rows)
        assert theta is not None
        return self.action_cost.about(self.trim_of(theta))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """States x (N, n) of rows (N, n + k), and their parameters theta (N, p), or None without a context."""
        if self.context is None:
            return rows, None
        n = len(self.target)
        return rows[:, :n].contiguous(), self.context.theta(rows[:, n:])

    def join(self, x: Tensor, rows: Tensor) -> Tensor:
        """Rows (N, n + k) of the states x (N, n) with the contexts of `rows` (N, n + k)."""
        return x if self.context is None else torch.cat([x, rows[:, len(self.target) :]], 1)

    def with_contexts(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Rows (N, n + k) of the states x (N, n) with random contexts."""
        return x if self.context is None else torch.cat([x, self.context.draw(len(x), generator)], 1)

    def input_of(self, share: Tensor) -> Tensor:
        """Inputs (N, m) of shares (N, m) from -1, the lower limit, to 1, the upper limit."""
        return self.input_middle + share * self.input_limits

    def integrated_by(self, scheme: SchemeName) -> Problem:
        """The same problem with another integration scheme."""
        return Problem(self.robot, self.device, scheme, self.identified, self.context.given if self.context else ())

    def state_cost(self, x: Tensor, theta: Tensor | None = None) -> Tensor:
        """State cost q_c (N,) in 1/s at x (N, n).

        It is the cost of the nominal parameters, but of the told ones in theta (p,) or (M, p) with N a multiple of M.
        Angles listed in `unwrapped_costs` are wrapped first: a stage of the integrator may lie beyond the seam at pi.
        """
        if self.unwrapped_costs:
            x = x.clone()
            self._wrap_in_place(x, self.unwrapped_costs)
        if theta is not None and len(self.told_costs):
            told = self.theta.repeat(len(x), 1)
            columns = theta.expand(len(theta) if theta.ndim == 2 else 1, -1)[:, self.told_costs]
            told[:, self.told_costs] = columns.repeat(len(x) // len(columns), 1)
            theta = told
        else:
            theta = None
        cost: Tensor = self.robot.state_cost(x, theta)[0]
        return cost

    @cached_property
    def told_costs(self) -> Tensor:
        """Columns of theta of the told parameters that the state cost depends on."""
        if self.context is None:
            return torch.empty(0, dtype=torch.long, device=self.device)
        generator = torch.Generator(device=self.device).manual_seed(0)
        x, _ = self.split(self.sample_domain(SAMPLES, generator))
        cost = self.robot.state_cost(x)[0]
        columns = []
        for column, end in zip(
            self.context.columns.tolist(), (self.context.middle + self.context.half).tolist(), strict=True
        ):
            theta = self.theta.repeat(len(x), 1)
            theta[:, column] = end
            if float((self.robot.state_cost(x, theta)[0] - cost).abs().max()) > ROUNDING * float(cost.max()):
                columns.append(column)
        return torch.tensor(columns, dtype=torch.long, device=self.device)

    @cached_property
    def unwrapped_costs(self) -> list[int]:
        """Indices of the continuous angles in which the state cost of the model file is not periodic, such as a square.

        Found by comparing the cost of random states with their cost after one turn.
        """
        if not self.continuous:
            return []
        x, _ = self.split(self.sample_domain(SAMPLES, torch.Generator(device=self.device).manual_seed(0)))
        cost, unwrapped = self.robot.state_cost(x)[0], []
        for i in self.continuous:
            turned = x.clone()
            turned[:, i] += 2.0 * math.pi
            if float((self.robot.state_cost(turned)[0] - cost).abs().max()) > ROUNDING * float(cost.max()):
                unwrapped.append(i)
        return unwrapped

    def rates(self, x: Tensor) -> Tensor:
        """Rates of the coordinates dq/dt (N, q) at x (N, n) and the nominal parameters. No input acts on them."""
        drift: Tensor = self.robot.affine_dynamics(x)[0]
        return drift[:, : len(self.robot.metadata.coordinates)]

    @cached_property
    def largest_rates(self) -> Tensor:
        """Largest |dq/dt| (q,) that the limits of the velocities allow."""
        return torch.as_tensor(largest_rates(self.robot), dtype=torch.float32, device=self.device)

    def discount(self, periods: float) -> float:
        """Discount factor exp(-rho t) after a number of control periods."""
        return math.exp(-self.discount_rate * self.control_step * periods)

    def confine(self, x: Tensor) -> Tensor:
        """Copy of x (N, n) with continuous angles wrapped to [-pi, pi) and the other states clipped to their limits."""
        x = x.clone()
        self.confine_in_place(x)
        return x

    def confine_in_place(self, x: Tensor) -> None:
        """Like `confine`, but overwrites x (N, n)."""
        torch.clamp(x, self.lower_bound, self.bound, out=x)
        self._wrap_in_place(x, self.continuous)

    def _wrap_in_place(self, x: Tensor, joints: list[int]) -> None:
        for i in joints:
            x[:, i].add_(math.pi).remainder_(2.0 * math.pi).sub_(math.pi)

    def beyond(self, x: Tensor) -> Tensor:
        """Distance (N,) of the states x (N, n) beyond their limits, as the sum over the states of distance / limit."""
        return ((x.abs() - self.bound).clamp_min_(0.0) / self.state_limits).sum(1)

    def at_limit(self, x: Tensor) -> Tensor:
        """Boolean mask (..., n) of the states in x (..., n) that the simulation clips to their limit."""
        return x.abs() >= self.bound

    def sample_starts(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k): states from the task's Gaussian start distribution, confined to the state domain."""
        task, device = self.robot.metadata.task, generator.device
        draw = torch.randn(size, len(task.start_mean), generator=generator, device=device)
        mean, deviation = torch.tensor([task.start_mean, task.start_deviation], device=device)
        return self.with_contexts(self.confine(mean + draw * deviation), generator)

    def sample_angles(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k) from `sample_starts`, but with every continuous angle uniform."""
        x = self.sample_starts(size, generator)
        turns = torch.rand(size, len(self.continuous), generator=generator, device=generator.device)
        x[:, self.continuous] = math.pi * (2.0 * turns - 1.0)
        return x

    def scatter(self, rows: Tensor, spread: float, generator: torch.Generator) -> Tensor:
        """Rows (N, n + k) with Gaussian noise on their states, confined to the state domain.

        The standard deviation of each row is drawn uniformly between 0 and `spread` times the state limits.
        """
        if spread == 0.0:
            return rows
        x, _ = self.split(rows)
        draw = torch.randn(x.shape, generator=generator, device=generator.device)
        scale = torch.rand((len(x), 1), generator=generator, device=generator.device)
        return self.join(self.confine(x + spread * scale * self.state_limits * draw), rows)

    def sample_domain(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k): states uniform in the domain |x_i| <= limit_i."""
        unit = torch.rand(size, len(self.state_limits), generator=generator, device=generator.device)
        return self.with_contexts((2.0 * unit - 1.0) * self.state_limits, generator)
