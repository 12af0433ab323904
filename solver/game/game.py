"""One step of the Hamilton-Jacobi-Isaacs game: the policy against its adversaries.

With z the gradient of the Hamiltonian dV/dx . (a + B u) in an adversary's variable, each adversary plays the point of
its admissible set that minimises z . xi (Theorems 1-4). Policy and adversaries move simultaneously and are held for one
value step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian
from solver.game.closed_form_policy import ClosedFormPolicy
from solver.game.modulation import Modulation
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

SAMPLES = 65536  # states of the domain, of which one has the largest cost rate
ABSORBED = 0.1  # of the horizon: a limit that takes all of itself from a state costs as much as so long a time at it


@dataclass(frozen=True)
class Move:
    """What both players do for one value step of N states."""

    u: Tensor  # (N, m) the policy's input, without the adversaries'
    cost: Tensor  # (N,) g_c(u)
    choices: dict[str, Tensor]  # (N, d) of every adversary, by its name
    disturbed: Disturbed  # what the robot undergoes by all of it


class Game:
    """The moves of both players on a problem, and what they lead to.

    limit_cost: cost per second while a state is held at its limit, as a multiple of the state cost with all states at
    their limits. What a limit takes from a state costs too: a fast link that runs against the limit of its rate would
    be braked for nothing within milliseconds.
    """

    def __init__(self, problem: Problem, adversaries: Sequence[Adversary] = (), limit_cost: float = 0.0) -> None:
        self.problem, self.limit_share = problem, limit_cost
        at_limits = problem.state_limits[None]
        self.limit_cost = limit_cost and limit_cost * float(problem.state_cost(at_limits))  # per second
        self.absorbed_cost = ABSORBED * problem.robot.metadata.task.horizon * self.limit_cost
        self._play(adversaries)

    def _play(self, adversaries: Sequence[Adversary]) -> None:
        self.adversaries = tuple(adversaries)
        constant = (adversary for adversary in adversaries if adversary.radius_in_time == "constant")
        self._constant_sets = {
            adversary.name: adversary.admissible_set(self.problem, adversary.alpha) for adversary in constant
        }

    def against(self, adversaries: Sequence[Adversary]) -> Game:
        """The same game with other adversaries."""
        other = copy.copy(self)
        other._play(adversaries)
        return other

    @cached_property
    def lowest_value(self) -> float:
        """Lower bound on every V: the discounted cost of the largest cost rate in the domain, paid for ever."""
        problem = self.problem
        generator = torch.Generator(device=problem.device).manual_seed(0)
        x = torch.cat([problem.sample_domain(SAMPLES, generator), problem.state_limits[None]])
        state_cost = (1.0 + self.limit_share) * float(problem.state_cost(x).max())
        action_cost = float(problem.action_cost.cost(0.99 * problem.input_limits[None]).max())
        return -(state_cost + 2.0 * action_cost) / max(problem.discount_rate, 1e-3)

    def move(self, x: Tensor, costate: Tensor, policy: ClosedFormPolicy, modulation: Modulation) -> Move:
        """Both players' moves at x (N, n) for the costate dV/dx (N, n)."""
        u, cost, w = policy.respond(x, costate)
        hamiltonian, disturbed = Hamiltonian(self.problem, x, u, costate, w), Disturbed(u)
        choices = {}
        for adversary in self.adversaries:
            z = adversary.direction(hamiltonian)
            admissible = self._constant_sets.get(adversary.name)
            if admissible is None:
                admissible = adversary.admissible_set(self.problem, modulation.radius(adversary, z.shape))
            choice = choices[adversary.name] = admissible.extreme_point(z)
            disturbed = adversary.disturb(disturbed, choice)
        return Move(u, cost, choices, disturbed)

    def advance(self, x: Tensor, move: Move, periods: int) -> tuple[Tensor, Tensor]:
        """Hold `move` for `periods` control periods.

        Returns the next state (N, n) and the discounted cost of the interval (N,): state and action cost per control
        period, and the cost of a limit where the period ends at one or met one, each discounted by exp(-rho t).
        """
        problem, disturbed = self.problem, move.disturbed
        cost = torch.zeros_like(move.cost)
        for period in range(periods):
            weight = problem.control_step * problem.discount(period)
            absorbed = torch.zeros_like(cost) if self.limit_cost > 0.0 else None
            x, state_cost = integrate_period(
                problem, x, disturbed.u, disturbed.theta, disturbed.offset, absorbed=absorbed
            )
            cost.add_(state_cost, alpha=problem.discount(period)).add_(move.cost, alpha=weight)
            if absorbed is not None:
                cost.add_(problem.at_limit(x).any(1), alpha=weight * self.limit_cost)
                cost.add_(absorbed, alpha=problem.discount(period) * self.absorbed_cost)
        if disturbed.displacement is not None:
            x = x + disturbed.displacement
            problem.confine_in_place(x)
        return x, cost
