"""Prototype of a fit to values and slopes: what it does for a robot that V alone does not balance (triple_cart).

    python benchmarks/slopes.py triple_cart --generated generated --out runs/whole --iterations 80 --stop 50
    python benchmarks/slopes.py triple_cart --generated generated --out runs/one --start-from runs/whole --steps 1

The policy follows the slope of V, and a fit to values leaves it rough. Here a target has a slope, too: its derivative
in the state at fixed moves of the policy, which is exact where V^k is right (envelope theorem). The generated kernels
`hamiltonian_gradient` and `state_cost` give it by a reverse sweep through the look-ahead. The loss is

    mean of w |V - V_tar| + 1/2 k sqrt(w) |R (dV/dx - slope)|,  w = 1/(c + |V_tar|),  R^T R = (P + |V_tar| D)^-1,

with P of the basin and D of the limits, so that both terms are errors relative to c + |V_tar|. Only for cFVI of robots
without rotations and told parameters, with `--drift`; not part of the package. docs/results/gallery.md has the results.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import solver
from modelgen.loader import CompiledRobot
from solver.fvi import algorithm, step
from solver.fvi.fit import FitPlan
from solver.fvi.step import Lookahead
from solver.fvi.targets import CHUNK, value_targets
from solver.game.game import Game
from solver.problem.problem import Problem
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble
from solver.value.optimiser import Optimiser


class Dynamics(torch.autograd.Function):
    """Rates of the states; backwards, the generated gradient of the Hamiltonian."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, u: Tensor, robot: CompiledRobot) -> Tensor:
        """Rates (N, n) at x (N, n) for the inputs u (N, m)."""
        ctx.save_for_backward(x, u)
        ctx.robot = robot
        rates: Tensor = robot.dynamics(x.detach(), u)
        return rates

    @staticmethod
    def backward(ctx: Any, costate: Tensor) -> tuple[Tensor, None, None]:
        """Derivative of costate . rates in x."""
        x, u = ctx.saved_tensors
        return ctx.robot.hamiltonian_gradient(x.detach(), u, costate.contiguous())[0], None, None


class StateCost(torch.autograd.Function):
    """State cost with its generated derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, robot: CompiledRobot) -> Tensor:
        """Cost (N,) at x (N, n)."""
        cost, slope = robot.state_cost(x.detach())
        ctx.save_for_backward(slope)
        result: Tensor = cost
        return result

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor, None]:
        """The weights (N,) times the derivative in x."""
        return ctx.saved_tensors[0] * weight[:, None], None


rates: Callable[..., Tensor] = Dynamics.apply
cost: Callable[..., Tensor] = StateCost.apply


def period(problem: Problem, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """States (N, n) after a control period by classical Runge-Kutta, and the state cost (N,), both differentiable.

    `integrate_period` confines states in place, which autograd cannot reverse.
    """
    seconds, total = problem.control_step / problem.substeps, torch.zeros_like(x[:, 0])
    for _ in range(problem.substeps):
        first = rates(x, u, problem.robot)
        second = rates(half := x + 0.5 * seconds * first, u, problem.robot)
        third = rates(again := x + 0.5 * seconds * second, u, problem.robot)
        fourth = rates(whole := x + seconds * third, u, problem.robot)
        costs = [cost(at, problem.robot) for at in (x, half, again, whole)]
        total = total + seconds / 6.0 * (costs[0] + 2.0 * costs[1] + 2.0 * costs[2] + costs[3])
        x = x + seconds / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
        x = torch.minimum(torch.maximum(x, -problem.bound), problem.bound)
    return x, total


def slopes(game: Game, value: FrozenValue, x: Tensor, lookahead: Lookahead, steps: int) -> Tensor:
    """Slopes (N, n) of the targets at x (N, n), with a look-ahead of `steps` value steps."""
    problem, policy, held = game.problem, lookahead.policy(game.problem, value), lookahead.step_periods
    start = x.clone().requires_grad_(True)
    now, costate = start, value(x)[1]
    target, paid = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    weights = list(lookahead.weights())[:steps]
    weights[-1] += 1.0 - sum(weights)
    for n, weight in enumerate(weights):
        with torch.no_grad():
            response = policy.respond(now.detach(), costate)
        for k in range(held):
            now, states = period(problem, now, response.u)
            paid = paid + problem.discount(n * held + k) * (states + problem.control_step * response.cost)
        end, costate = value(now.detach())
        linear = end + (costate * (now - now.detach())).sum(1)
        target = target + weight * (problem.discount((n + 1) * held) * linear - paid)
    result: Tensor = torch.autograd.grad(target.sum(), start)[0]
    return result


class Sloped:
    """Targets and fit in place of those of the package. The slopes of an iteration go from one to the other."""

    def __init__(self, steps: int, weight: float) -> None:
        self.steps, self.weight = steps, weight
        self.slopes, self.limits = torch.empty(0), torch.empty(0)

    def targets(
        self, game: Game, value: FrozenValue, x: Tensor, lookahead: Lookahead, seed: int, workers: Executor
    ) -> Tensor:
        """Values (N,), as in the package."""
        parts = [slopes(game, value, part, lookahead, self.steps) for part in torch.split(x, CHUNK)]
        self.slopes, self.limits = torch.cat(parts), game.problem.state_limits
        return value_targets(game, value, x, lookahead, seed, workers)

    def fit(
        self,
        ensemble: Ensemble,
        optimisers: Sequence[Optimiser],
        x: Tensor,
        target: Tensor,
        plan: FitPlan,
        seed: int,
        _: Executor,
    ) -> float:
        """Mean |V - V_tar| of the last epoch, by autograd."""
        features, size = ensemble.features, plan.scale + target.abs()
        form = ensemble.basin_cost.double() * self.limits * self.limits[:, None]
        values, vectors = torch.linalg.eigh(form)
        root, values, losses = (vectors.T * self.limits).float(), values.clamp_min(0.0).float(), 0.0
        for member, optimiser in zip(ensemble.factors, optimisers, strict=True):
            generator = torch.Generator().manual_seed(seed)
            for rate in plan.learning_rates:
                optimiser.learning_rate, losses = rate, 0.0
                for rows in torch.split(torch.randperm(len(x), generator=generator), plan.minibatch):
                    states = x[rows].requires_grad_(True)
                    z = features(states)
                    v = member(z, features.error(z))
                    gradient = torch.autograd.grad(v.sum(), states, create_graph=True)[0]
                    across = (gradient - self.slopes[rows]) @ root.T * (values + target[rows, None].abs()).rsqrt()
                    residual = (v - target[rows]).abs()
                    along = torch.linalg.vector_norm(across, dim=1)
                    loss = (residual / size[rows] + 0.5 * self.weight * along / size[rows].sqrt()).mean()
                    for parameter, slope in zip(
                        member.parameters(), torch.autograd.grad(loss, list(member.parameters())), strict=True
                    ):
                        parameter.grad = slope if parameter.grad is None else parameter.grad.copy_(slope)
                    optimiser.compute(optimiser.kind)
                    optimiser.count()
                    losses += float(residual.detach().sum())
        return losses / len(x)


def main() -> None:
    """Train, and print every evaluation with the processor time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot")
    parser.add_argument("--generated")
    parser.add_argument("--out", required=True)
    parser.add_argument("--start-from")
    parser.add_argument("--steps", type=int, default=1000, help="value steps of the slopes; default: all")
    parser.add_argument("--weight", type=float, help="k; default: 1 for one step, else 0.3")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--stop", type=int, default=10**6, help="end after this iteration")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sloped = Sloped(options.steps, options.weight or (1.0 if options.steps == 1 else 0.3))
    begin = time.process_time()

    def report(row: dict[str, Any]) -> bool:
        if row.get("success_rate") is not None:
            success, seconds = 100.0 * row["success_rate"], time.process_time() - begin
            print(f"{row['iteration'] + 1:.0f} {row['return_mean']:.1f} {success:.0f} % {seconds:.0f} s", flush=True)
        return bool(row["iteration"] + 1 >= options.stop)

    settings: dict[str, Any] = {"iterations": options.iterations} if options.iterations else {}
    with patch.object(algorithm, "value_targets", sloped.targets), patch.object(step, "fit_ensemble", sloped.fit):
        solver.train(
            options.robot,
            algorithm="cfvi",
            out=options.out,
            overwrite=True,
            generated=options.generated,
            preview=0.0,
            start_from=options.start_from,
            callback=report,
            threads=1,
            seed=options.seed,
            drift=True,
            states=6144,
            members=1,
            epochs=6,
            **settings,
        )


if __name__ == "__main__":
    main()
