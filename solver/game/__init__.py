"""One step of the Hamilton-Jacobi-Isaacs game: the policy against its adversaries.

z is the gradient of the Hamiltonian dV/dx . (a + B u) in an adversary's variable xi. The adversary plays the point of
its admissible set that minimises z . xi (Theorems 1-4). The policy and the adversaries move simultaneously, and their
moves are held for one value step.

The policy of continuous time has a closed form. `solver.game.policies` has its form for an input under a zero-order
hold, which the robots of the gallery use.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from modelgen.arrays import CORNERS
from modelgen.errors import checked
from solver.errors import SolverError
from solver.game.adversaries import Adversary, Disturbed, Hamiltonian, Modulation
from solver.problem import Problem
from solver.problem.action_cost import TensorActionCost
from solver.problem.integrator import integrate_period, steps_for
from solver.value.features import times

ABSORBED = 0.1  # of the horizon: clipping a state by its whole limit costs as much as this time at the limit


class Response(NamedTuple):
    """Input of a policy at N states, and its cost."""

    u: Tensor  # (N, m) input
    cost: Tensor  # (N,) action cost g_c(u)
    w: Tensor  # (N, m) B^T dV/dx at the states


class ClosedFormPolicy:
    """Policy of continuous time, u = grad g~(B(x)^T dV/dx), which maximises dV/dx . (a + B u) - g_c(u) (eq. 10)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def respond(self, x: Tensor, costate: Tensor) -> Response:
        """Input at the rows x (N, n + k) for the costate dV/dx (N, n), its cost, and w."""
        control_matrix = self._control_matrix(x)
        w = times(costate, control_matrix)
        cost = self.problem.cost_at(x)
        argument = self._argument(x, control_matrix, w, cost)
        return Response(cost.policy(argument), cost.cost_of_policy(argument), w)

    def argument(self, x: Tensor, costate: Tensor) -> Tensor:
        """Argument (N, m) of grad g~ in the policy, at the rows x (N, n + k) for the costate dV/dx (N, n)."""
        control_matrix = self._control_matrix(x)
        w = times(costate, control_matrix)
        return self._argument(x, control_matrix, w, self.problem.cost_at(x))

    def equation(self, x: Tensor, costate: Tensor) -> tuple[Tensor, Tensor | None]:
        """w = B^T dV/dx (N, m), and P (N, m, m) of the equation y = w - P (grad g~(y) - u0) that the argument y solves.

        P is None if y is w.
        """
        return times(costate, self._control_matrix(x)), None

    def _control_matrix(self, x: Tensor) -> Tensor:
        """B (N, n, m) at the rows x (N, n + k)."""
        matrix: Tensor = self.problem.robot.affine_dynamics(*self.problem.split(x))[1]
        return matrix

    def _argument(self, _x: Tensor, _control_matrix: Tensor, w: Tensor, _cost: TensorActionCost) -> Tensor:
        """Argument (N, m) of grad g~ in the policy, from w = B^T dV/dx (N, m) and B (N, n, m) at the rows x."""
        return w


@dataclass(frozen=True)
class Move:
    """Moves of both players for one value step of N states."""

    u: Tensor  # (N, m) input of the policy, without the adversaries
    cost: Tensor  # (N,) action cost g_c(u)
    choices: dict[str, Tensor]  # (N, d) choice of every adversary, by its name
    disturbed: Disturbed  # effect of all moves on the robot


class Game:
    """The game of a policy against adversaries on a problem.

    limit_cost: cost per second while a state is held at its limit, as a multiple of the state cost with all states at
    their limits. The distance by which a limit clips a state costs too, see ABSORBED. Otherwise the limit of a rate
    would act as a free brake: it stops a fast link within milliseconds. Raises SolverError for other arguments.
    """

    @checked(SolverError)
    def __init__(self, problem: Problem, adversaries: Sequence[Adversary] = (), limit_cost: float = 0.0) -> None:
        self.problem, self.limit_share = problem, limit_cost
        self.limit_cost = limit_cost and limit_cost * float(problem.state_cost(problem.corner))  # per second
        self.absorbed_cost = ABSORBED * problem.robot.metadata.task.horizon * self.limit_cost
        self._play(adversaries)

    def _play(self, adversaries: Sequence[Adversary]) -> None:
        self.adversaries = tuple(adversaries)
        constant = (adversary for adversary in adversaries if adversary.radius_in_time == "constant")
        self._constant_sets = {one.name: one.admissible_set(self.problem, one.alpha) for one in constant}
        self.steps = steps_for(self.problem, self._extremes())  # integration steps in a control period

    def _extremes(self) -> Tensor | None:
        """Parameters (K, p) on the boundary of what the adversaries may choose; None if they leave them as they are."""
        movers = [adversary for adversary in self.adversaries if adversary.moves_parameters]
        if not movers:
            return None
        problem, generator = self.problem, torch.Generator(device=self.problem.device).manual_seed(0)
        theta = problem.theta.expand(CORNERS, -1)
        if problem.context is not None:
            theta = problem.context.replaced(theta, problem.context.draw(len(theta), generator).sign())
        disturbed = Disturbed(theta.new_zeros(len(theta), len(problem.input_limits)), theta)
        for adversary in movers:
            z = torch.randn(theta.shape, generator=generator, device=problem.device)
            disturbed = adversary.disturb(disturbed, self._constant_sets[adversary.name].extreme_point(z))
        assert disturbed.theta is not None
        moved = disturbed.theta if disturbed.mistold is None else disturbed.theta + disturbed.mistold
        return torch.clamp(moved, *problem.theta_bounds.T)

    def against(self, adversaries: Sequence[Adversary]) -> Game:
        """Copy of the game with other adversaries."""
        other = copy.copy(self)
        other._play(adversaries)
        return other

    def move(self, x: Tensor, costate: Tensor, policy: ClosedFormPolicy, modulation: Modulation) -> Move:
        """Moves of both players at the rows x (N, n + k) for the costate dV/dx (N, n)."""
        u, cost, w = policy.respond(x, costate)
        states, theta = self.problem.split(x)
        hamiltonian, disturbed = Hamiltonian(self.problem, states, u, costate, w, theta), Disturbed(u, theta)
        choices = {}
        for adversary in self.adversaries:
            z = adversary.direction(hamiltonian)
            admissible = self._constant_sets.get(adversary.name)
            if admissible is None:
                admissible = adversary.admissible_set(self.problem, modulation.radius(adversary, z.shape))
            choice = choices[adversary.name] = admissible.extreme_point(z)
            disturbed = adversary.disturb(disturbed, choice)
        context = self.problem.context
        if context is not None and disturbed.theta is not None:  # only the adversary `told` moves what is told
            told = context.replaced(disturbed.theta, x[:, len(self.problem.target) :])
            if disturbed.mistold is not None:
                told = torch.clamp(told + disturbed.mistold, *self.problem.theta_bounds.T)
            disturbed = replace(disturbed, theta=told)
        return Move(u, cost, choices, disturbed)

    def advance(self, rows: Tensor, move: Move, periods: int) -> tuple[Tensor, Tensor]:
        """Rows (N, n + k) after `move` was held for `periods` control periods, and the discounted cost (N,) of that
        time.

        The cost of each control period is discounted by exp(-rho t). It has the state cost, the action cost, and the
        cost of limits that clipped a state in the period or hold one at its end.
        """
        problem, disturbed = self.problem, move.disturbed
        x, _ = problem.split(rows)
        cost = torch.zeros_like(move.cost)
        for period in range(periods):
            weight = problem.control_step * problem.discount(period)
            absorbed = torch.zeros_like(cost) if self.limit_cost > 0.0 else None
            x, state_cost = integrate_period(
                problem, x, disturbed.u, disturbed.theta, disturbed.offset, self.steps, absorbed
            )
            cost.add_(state_cost, alpha=problem.discount(period)).add_(move.cost, alpha=weight)
            if absorbed is not None:
                cost.add_(problem.braked(x), alpha=weight * self.limit_cost)
                cost.add_(absorbed, alpha=problem.discount(period) * self.absorbed_cost)
        if disturbed.displacement is not None:
            x = x + disturbed.displacement
            problem.confine_in_place(x)
        return problem.join(x, rows), cost
