"""Integration schemes: one step of xdot = f(x) and of the cost along it, how many steps a control period needs, and a
control period of such steps.

To add a scheme, write a subclass of `Scheme` in this file, its name in `SchemeName` and a line in SCHEMES.

Value targets, rollouts, plants, the observer and the Gymnasium environment all call `integrate_period`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from modelgen.arrays import CORNERS, MOST_STEPS, SAMPLES, Array, least_steps
from modelgen.loader import CompiledRobot
from solver.errors import SolverError

if TYPE_CHECKING:
    from solver.problem import Problem

Field = Callable[[Tensor], Tensor]  # from states (N, n) to their rates (N, n) or their costs (N,)


class Scheme(ABC):
    """Rule by which states and costs advance. Its objects hold no data."""

    @abstractmethod
    def steps(self, robot: CompiledRobot, theta: Tensor | None = None) -> int:
        """Number of integration steps in a control period of robots with the parameters theta (p,) or (K, p).

        theta: by default those of the model file. Raises SolverError if no number suffices.
        """

    @abstractmethod
    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """States (N, n) after `seconds` from x (N, n), and the mean cost (N,) over that time."""

    @abstractmethod
    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Mean cost (N,) of a control period, from the costs (N,) of its steps."""


class RungeKutta(Scheme):
    """Classical Runge-Kutta method of fourth order for the state and the integral of its cost."""

    def steps(self, robot: CompiledRobot, theta: Tensor | None = None) -> int:
        """Number in the artifact. `modelgen build` chose it by comparison with steps of half the length.

        For other parameters the same comparison is made here, and the larger number counts.
        """
        least = robot.metadata.task.integration_steps
        return least if theta is None else max(least, _sufficient(robot, theta))

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """Four evaluations of the rates, and one evaluation of the costs of all four states."""
        first = rates(x)
        second_at = torch.add(x, first, alpha=0.5 * seconds)
        second = rates(second_at)
        third_at = torch.add(x, second, alpha=0.5 * seconds)
        third = rates(third_at)
        fourth_at = torch.add(x, third, alpha=seconds)
        slope = first.add_(rates(fourth_at)).add_(second.add_(third), alpha=2.0)
        # One call for all four stages: for a hundred states, most of the time of a call is overhead.
        costs = cost(torch.cat((x, second_at, third_at, fourth_at))).chunk(4)
        mean = (costs[0] + costs[3]).add_(costs[1] + costs[2], alpha=2.0)
        return torch.add(x, slope, alpha=seconds / 6.0), mean.div_(6.0)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Mean over the steps."""
        return costs[0] if len(costs) == 1 else torch.stack(costs).mean(0)


def _sufficient(robot: CompiledRobot, theta: Tensor) -> int:
    """The least power of two of Runge-Kutta steps that resolve a control period with each theta (p,) or (K, p)."""
    samples = SAMPLES if theta.ndim == 1 else CORNERS
    if theta.ndim == 2:
        theta = theta[torch.linspace(0, len(theta) - 1, samples, device=theta.device).round().long()]

    def dynamics(x: Array, u: Array) -> Array:
        xdot: Array = robot.dynamics(theta.new_tensor(x), theta.new_tensor(u), theta).cpu().double().numpy()
        return xdot

    steps, worst = least_steps(robot.metadata, dynamics, samples)
    if steps:
        return steps
    raise SolverError(
        f"with these parameters, {robot.metadata.states[worst].name} of {robot.name} moves too fast to be simulated: "
        f"{MOST_STEPS} Runge-Kutta steps in a control period are not enough. Take parameters nearer to those of the "
        "model file, narrow their bounds there, or raise its control_rate."
    )


class Euler(Scheme):
    """Explicit Euler at the task's simulation rate, as in the authors' code.

    It adds energy to the robot, so that returns are better than those of the exact equations.
    """

    def steps(self, robot: CompiledRobot, theta: Tensor | None = None) -> int:  # noqa: ARG002
        """Simulation rate of the model file divided by its control rate, whatever the parameters."""
        task = robot.metadata.task
        return task.simulation_rate // task.control_rate

    def step(self, rates: Field, cost: Field, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
        """One evaluation of the rates and one of the cost."""
        return torch.add(x, rates(x), alpha=seconds), cost(x)

    def of_period(self, costs: list[Tensor]) -> Tensor:
        """Cost of the first state of the period, as in the authors' code."""
        return costs[0]


SCHEMES: dict[SchemeName, Scheme] = {"rk4": RungeKutta(), "euler": Euler()}

SchemeName = Literal["rk4", "euler"]


def nominal_steps(problem: Problem) -> int:
    """Integration steps that suffice for the nominal parameters and for all that the policy may be told."""
    if (context := problem.context) is not None:
        return problem.scheme.steps(problem.robot, context.replaced(problem.theta, context.corners()))
    declared = torch.as_tensor(problem.robot.declared_parameters, dtype=torch.float32, device=problem.device)
    return problem.scheme.steps(problem.robot, None if torch.equal(problem.theta, declared) else problem.theta)


def steps_for(problem: Problem, theta: Tensor | None) -> int:
    """Integration steps in a control period that suffice for the parameters theta (p,), or for each of (K, p).

    Raises SolverError if no number suffices.
    """
    if theta is None or torch.equal(theta, problem.theta.expand_as(theta)):
        return problem.substeps
    if problem.context is not None and problem.context.has(theta, problem.theta):
        return problem.substeps
    return max(problem.substeps, problem.scheme.steps(problem.robot, theta))


def steps_within(problem: Problem, lower: Tensor, upper: Tensor) -> int:
    """Integration steps in a control period that suffice at the corners of a box of parameters, two ends (p,)."""
    generator = torch.Generator(device=lower.device).manual_seed(0)
    sides = torch.rand(CORNERS, len(lower), generator=generator, device=lower.device)
    return steps_for(problem, torch.where(sides < 0.5, lower, upper))


def steps_estimating(problem: Problem, estimated: Sequence[int]) -> int:
    """Integration steps in a control period that suffice wherever within their bounds some parameters are."""
    ends = problem.theta.repeat(2, 1)
    ends[:, list(estimated)] = problem.theta_bounds.T[:, list(estimated)]
    return steps_within(problem, *ends)


class Period(NamedTuple):
    """Result of one control period."""

    x: Tensor  # (N, n) states at its end
    state_cost: Tensor  # (N,) integral of the state cost over the period


def integrate_period(
    problem: Problem,
    x: Tensor,
    u: Tensor | Callable[[Tensor], Tensor],
    theta: Tensor | None = None,
    offset: Tensor | None = None,
    steps: int | None = None,
    absorbed: Tensor | None = None,
) -> Period:
    """One control period from the states x (N, n). States are confined to the domain after every integration step.

    u: the input (N, m), held over the period, or a function from the states (N, n) to the input, which is called at the
    start of every integration step.
    theta: parameters (p,) or (N, p), nominal by default. The state cost depends on the told ones only.
    offset: (N, n), added to the state at which the dynamics are evaluated.
    steps: number of integration steps, by default the problem's. Forces that are not smooth need more.
    absorbed: (N,), changed in place. Each step adds the distance by which the states are clipped, as the sum over the
    states of distance / limit.
    """
    costs, steps = [], steps or problem.substeps

    def cost_rate(at: Tensor) -> Tensor:
        return problem.state_cost(at, theta)

    for _ in range(steps):
        acting = u if isinstance(u, Tensor) else u(x)

        def rates(at: Tensor, acting: Tensor = acting) -> Tensor:
            xdot: Tensor = problem.robot.dynamics(at if offset is None else at + offset, acting, theta)
            return xdot

        x, cost = problem.scheme.step(rates, cost_rate, x, problem.control_step / steps)
        if absorbed is not None:
            absorbed.add_(problem.beyond(x))
        problem.confine_in_place(x)
        costs.append(cost)
    return Period(x, problem.scheme.of_period(costs) * problem.control_step)
