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

from modelgen.errors import abridged, checked
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.problem.action_cost import TensorActionCost
from solver.problem.context import Context, Given
from solver.problem.domain import Domain, wrap_in_place
from solver.problem.geometry import exponential, product, uniform
from solver.problem.identified import IdentifiedSet
from solver.problem.integrator import SCHEMES, SchemeName, nominal_steps
from solver.problem.robots import largest_rates

#: Distribution of an episode's first state: `gaussian` as the task defines it, `angle` the same with continuous angles
#: uniform, or `uniform` in the state domain.
StartDistribution = Literal["gaussian", "angle", "uniform"]

FAST = 2.0  # control periods in which full inputs take a fast state to its limit
UNIFORM = 3.14  # rad, standard deviation of a start from which on a rotation is uniform
SAMPLES = 64  # states at which the state cost is compared with its value after one turn
SLOWEST = 4.0  # longest horizon of a family, in horizons of the task
STEADY = 1e-4  # of half the range of an input: a trim that moves less with the context stands still
ROUNDING = 1e-5  # of the largest cost: a smaller difference after one turn is rounding


class Problem(Domain):
    """A compiled robot with the limits, costs, time steps and start distributions of its task, float32 on one device.

    robot: kernels in float32, from `solver.problem.robots.load_robot`.
    scheme: integration scheme, a key of `solver.problem.integrator.SCHEMES`.
    identified: admissible sets from recordings. If it is given, the robot's nominal parameters must be the identified
    ones.
    given: parameters that the policy is told. `context` is None without them.

    Tensors of the base class, and `input_limits` (m,) half of the ranges of the inputs about `input_middle` (m,),
    `lower_input` and `upper_input` (m,), `trim` (m,) the input that holds the target at the model file's parameters,
    `theta` (p,) nominal parameters, `theta_bounds` (p, 2). `targets` has the targets of other references.
    Times: `control_step` in seconds, `substeps` integration steps in a control period. `discount_rate` is rho in 1/s,
    from the task's weight at its horizon: exp(-rho horizon) = weight_at_horizon. `horizon` is the length of a rollout
    in seconds: the task's, and in a family that of its slowest robot (`_slowness`). Raises SolverError for another
    robot, device or scheme.
    """

    @checked(SolverError, "robot")
    def __init__(
        self,
        robot: CompiledRobot,
        device: torch.device | str = "cpu",
        scheme: SchemeName = "rk4",
        identified: IdentifiedSet | None = None,
        given: tuple[Given, ...] = (),
    ) -> None:
        if not hasattr(robot, "metadata"):
            raise SolverError(
                f"robot is {abridged(repr(robot))}; give a compiled one, such as "
                "modelgen.load('pendulum', dtype='float32')"
            )
        super().__init__(robot, device)
        task = robot.metadata.task
        self.robot, self.device, self.scheme = robot, device, SCHEMES[scheme]
        self.identified = identified

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        self.input_limits, self.input_middle = tensor(robot.input_limits), tensor(robot.input_middle)  # (m,), (m,)
        self.lower_input = self.input_middle - self.input_limits
        self.upper_input = self.input_middle + self.input_limits
        self.trim = tensor(robot.trim)  # (m,)
        self.theta, self.theta_bounds = tensor(robot.nominal_parameters), tensor(robot.parameter_bounds)  # (p,), (p, 2)
        self.control_step = 1.0 / task.control_rate  # s
        self.discount_rate = -math.log(task.weight_at_horizon) / task.horizon  # 1/s
        self.action_cost = TensorActionCost(robot, device)
        self.context = Context(given, robot.metadata, self.theta) if given else None
        self.substeps = nominal_steps(self)  # integration steps in a control period
        self.moving_trim = self.context is not None and self._trim_moves(self.context)
        self.horizon = task.horizon  # s
        if self.context is not None:
            self.horizon = math.ceil(10.0 * task.horizon * self._slowness(self.context) - ROUNDING) / 10.0

    def around(self, share: float | Tensor) -> tuple[Tensor, Tensor]:
        """Ends (p,) of the box of parameters that differ by this share of the nominal ones, within their bounds.

        Parameters that the policy is told have their ranges.
        """
        spread, (lowest, highest) = share * self.theta.abs(), self.theta_bounds.T
        ends = [torch.clamp(self.theta + side, lowest, highest) for side in (-spread, spread)]
        if self.context is not None:
            for end, side in zip(ends, (-1.0, 1.0), strict=True):
                end[self.context.columns] = self.context.middle + side * self.context.half
        return ends[0], ends[1]

    def hold(self, trim: Tensor) -> None:
        """Take another trim (m,), from which the action cost is then measured."""
        self.trim, self.action_cost = trim, self.action_cost.about(trim)

    def told_that(self, theta: Tensor) -> Problem:
        """The problem of the one robot with the told parameters of theta (p,); itself without a context.

        Raises SolverError for one out of its range.
        """
        if self.context is None:
            return self
        self.context.require_within(theta)
        problem = Problem(self.robot.with_nominal(theta.tolist()), self.device)
        problem.horizon = self.horizon
        if self.moving_trim:
            problem.hold(self.trim_of(theta[None])[0])
        return problem

    def trim_of(self, theta: Tensor) -> Tensor:
        """Smallest inputs (N, m) within their limits that hold the target with the parameters theta (N, p).

        Where no input holds it, they come nearest to it.
        """
        return self.robot.trim_at(self.targets_of(theta).double(), theta.double()).to(self.trim)

    def _trim_moves(self, context: Context) -> bool:
        """Whether the trim of the model file holds the target, and is another one for some context."""
        nominal = self.trim_of(self.theta[None])
        moved = (self.trim_of(context.theta(context.corners())) - nominal).abs() / self.input_limits
        missed = (nominal - self.trim).abs() / self.input_limits
        return float(missed.max()) < STEADY < float(moved.max())

    def _slowness(self, context: Context) -> float:
        """Time that the slowest robot of a family needs, as a multiple of the nominal robot's: from 1 to SLOWEST.

        From rest, an acceleration a moves a coordinate by d in sqrt(2 d/a). So the time grows with the square root of
        a(nominal)/a(c), where a is what all inputs give a velocity at the target, each with its smaller room between
        trim and limits. The corners of the told ranges count, and the velocity that loses most. Where inputs command
        velocities, the time grows with the ratio of these itself.
        """
        metadata = self.robot.metadata
        moved, power = (slice(metadata.nq), 1.0) if metadata.kinematic else (metadata.velocities, 0.5)
        corners, columns = context.corners(), list(context.references)
        corners[:, columns] = context.of(self.theta)[columns]
        theta = torch.cat([self.theta[None], context.replaced(self.theta, corners)])
        trim = self.trim_of(theta) if self.moving_trim else self.trim.expand(len(theta), -1)
        room = torch.minimum(self.upper_input - trim, trim - self.lower_input).clamp_min(0.0)
        B = self.robot.affine_dynamics(self.targets_of(theta), theta)[1][:, moved]
        nominal, *others = (B.abs() @ room[..., None])[..., 0].unbind(0)  # accelerations or velocities
        driven = nominal > 0.0
        least = torch.stack([nominal, *others])[:, driven] / nominal[driven]
        return float(least.pow(-power).amax().clamp_max(SLOWEST)) if bool(driven.any()) else 1.0

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

    def targets(self, rows: Tensor) -> Tensor:
        """Targets (..., n) of the rows (..., n + k), or the one target (n,) where no reference is told."""
        if self.context is None or self.context.shift is None:
            return self.target
        return self.context.target + rows[..., len(self.target) :] @ self.context.shift

    def targets_of(self, theta: Tensor) -> Tensor:
        """Targets (N, n) of the parameters theta (N, p), whose told references are held within their ranges."""
        target = theta.new_zeros(len(theta), 1) + self.target
        return target if self.context is None or self.context.shift is None else self.targets(self.told(target, theta))

    def at_target(self, rows: Tensor) -> Tensor:
        """States (N, n) at the targets of the rows (N, n + k)."""
        return self.targets(rows).expand(len(rows), -1).contiguous()

    def join(self, x: Tensor, rows: Tensor) -> Tensor:
        """Rows (N, n + k) of the states x (N, n) with the contexts of `rows` (N, n + k)."""
        return x if self.context is None else torch.cat([x, rows[:, len(self.target) :]], 1)

    def told(self, x: Tensor, theta: Tensor) -> Tensor:
        """Rows (N, n + k) of the states x (N, n) with the contexts of theta (p,) or (N, p), held within the ranges."""
        return x if self.context is None else torch.cat([x, self.context.of(theta).expand(len(x), -1)], 1)

    def with_contexts(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Rows (N, n + k) of the states x (N, n) with random contexts."""
        return x if self.context is None else torch.cat([x, self.context.draw(len(x), generator)], 1)

    def sample_targets(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k) at the targets of random contexts."""
        rows = self.with_contexts(self.target.expand(size, -1), generator)
        return self.join(self.at_target(rows), rows)

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
            wrap_in_place(x, self.unwrapped_costs)
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
        found, ends = [], self.context.middle + self.context.half
        for column, end in zip(self.context.columns.tolist(), ends.tolist(), strict=True):
            theta = self.theta.clone()
            theta[column] = end
            found += [column] if self._cost_moves(theta=theta) else []
        return torch.tensor(found, dtype=torch.long, device=self.device)

    @cached_property
    def unwrapped_costs(self) -> list[int]:
        """Indices of the continuous angles in which the state cost of the model file is not periodic, as a square."""
        turn = 2.0 * math.pi * torch.eye(len(self.target), device=self.device)
        return [i for i in self.continuous if self._cost_moves(turn[i])]

    def _cost_moves(self, shift: Tensor | float = 0.0, theta: Tensor | None = None) -> bool:
        """Whether the state cost of random states changes with a shift (n,) of the states, or with theta (p,)."""
        x = self.sample_states(SAMPLES, torch.Generator(device=self.device).manual_seed(0))
        cost, moved = self.robot.state_cost(x)[0], self.robot.state_cost(x + shift, theta)[0]
        return float((moved - cost).abs().max()) > ROUNDING * float(cost.max())

    def rates(self, x: Tensor) -> Tensor:
        """Rates (N, nv) at x (N, n) and the nominal parameters: dq/dt, and the angular velocity for a quaternion.

        Where wheels roll without slip or coordinates are ignored, they are the speeds of the state.
        """
        if self.robot.metadata.uneven:
            return x[:, self.robot.metadata.velocities]
        drift: Tensor = self.robot.affine_dynamics(x)[0]
        parts, first = [], 0
        for rotation in self.rotations:
            parts += [drift[:, first : rotation.coordinate], x[:, rotation.speeds]]
            first = rotation.quaternion.stop
        rest = drift[:, first : self.robot.metadata.nq]
        return torch.cat([*parts, rest], 1) if parts else rest

    @cached_property
    def largest_rates(self) -> Tensor:
        """Largest `rates` (nv,) that the limits of the velocities allow."""
        if self.robot.metadata.uneven:
            return self.state_limits[self.robot.metadata.velocities]
        return torch.as_tensor(largest_rates(self.robot), dtype=torch.float32, device=self.device)

    def discount(self, periods: float) -> float:
        """Discount factor exp(-rho t) after a number of control periods."""
        return math.exp(-self.discount_rate * self.control_step * periods)

    @cached_property
    def fast(self) -> Tensor:
        """Mask (n,) of the fast states: full inputs take them from the target to their limit in FAST control periods.

        Such a state follows the inputs. Its limit is no brake, because an input stops it as soon.
        """
        B = self.robot.affine_dynamics(self.target[None])[1][0]
        return FAST * self.control_step * (B.abs() * self.input_limits).sum(1) > self.state_limits

    def braked(self, x: Tensor) -> Tensor:
        """Mask (...) of the states x (..., n) that are held by the limit of a state that is not fast."""
        return (self.at_limit(x) & ~self.fast).any(-1)

    def beyond(self, x: Tensor) -> Tensor:
        """Distance (N,) of the states x (N, n) beyond their limits, as the sum of distance / limit over the states that
        are not fast."""
        distance = ((x.abs() - self.bound).clamp_min_(0.0) / self.state_limits * ~self.fast).sum(1)
        for rotation in self.limited:
            distance += self.angle_beyond(x, rotation).clamp_min_(0.0) / rotation.limit
        return distance

    def sample_starts(self, size: int, generator: torch.Generator, contexts: Tensor | None = None) -> Tensor:
        """Rows (size, n + k): states from the task's Gaussian start distribution, confined to the state domain.

        A rotation is the mean turned by a Gaussian rotation vector; with a deviation of pi it is uniform. contexts:
        (size, k), random by default.
        """
        task, device = self.robot.metadata.task, generator.device
        draw = torch.randn(size, len(task.start_mean), generator=generator, device=device)
        mean, deviation = torch.tensor([task.start_mean, task.start_deviation], device=device)
        x = mean + draw * deviation
        for rotation in self.rotations:
            q, spread = rotation.quaternion, task.start_deviation[rotation.coordinate]
            turned = product(mean[q].expand(size, 4), exponential(draw[:, q][:, 1:] * spread))
            x[:, q] = uniform(size, generator) if spread >= UNIFORM else turned
        if self.context is None:
            return self.confine(x)
        c = self.context.draw(size, generator) if contexts is None else contexts
        if self.context.start_shift is not None:
            x = x + self.context.start_offset + c @ self.context.start_shift
        return torch.cat([self.confine(x), c], 1)

    def sample_angles(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k) from `sample_starts`, but with every continuous angle and rotation uniform."""
        x = self.sample_starts(size, generator)
        turns = torch.rand(size, len(self.continuous), generator=generator, device=generator.device)
        x[:, self.continuous] = math.pi * (2.0 * turns - 1.0)
        self.turn_in_place(x, generator)
        return x

    def scatter(self, rows: Tensor, spread: float, generator: torch.Generator) -> Tensor:
        """Rows (N, n + k) with Gaussian noise on their states, confined to the state domain.

        The standard deviation of each row is drawn uniformly between 0 and `spread` times the state limits.
        """
        if spread == 0.0:
            return rows
        x, _ = self.split(rows)
        draw = torch.randn(len(x), self.geometry.size, generator=generator, device=generator.device)
        scale = torch.rand((len(x), 1), generator=generator, device=generator.device)
        moved = self.confine(self.geometry.spread(x, spread * scale * self.tangent_limits * draw))
        return self.join(moved, rows)

    def sample_domain(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k): states uniform in the domain: |x_i| <= limit_i, and rotations within their limits."""
        return self.with_contexts(self.sample_states(size, generator), generator)
