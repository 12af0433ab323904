"""Basin of a robot: the states around the target where the Riccati equation gives the value function.

Near the target V = -e^T P e, where P solves the Riccati equation of the discounted task, xdot = (A - rho/2) x + B u.
The basin is the largest sublevel set of e^T P e on which the policy of this V works on the nonlinear robot, whose
inputs are limited and held. Every rollout from its boundary arrives at the target, reaches no state limit, and costs at
most COST_ERROR more than e^T P e.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from modelgen.arrays import Array
from modelgen.linear import regulator
from solver.local.linearization import linearization
from solver.plants.nominal import Nominal
from solver.plants.rollouts import controller, rollouts, sample_starts, without_input
from solver.problem.problem import Problem
from solver.value.quadratic_form import Basin

REST = 1e-6  # limits per second: a slower drift at the target is an equilibrium
HALVINGS = 30  # of the level, from the cost with every state at its limit to the smallest level that is tried
SAMPLES = 256  # states on a shell
#: A rollout may cost more than the Riccati equation says, by the larger of these shares.
COST_ERROR = 0.15  # of the cost of the Riccati equation
NEGLIGIBLE = 0.005  # of the cost of the task from its starts
STARTS = 64  # for the estimate of the cost of the task
ARRIVED = 0.05  # share of the level at which a rollout has arrived
TIME_CONSTANTS = 5.0  # duration of a rollout, in time constants of the slowest closed-loop motion
LEAST_PERIODS, MOST_HORIZONS = 10, 2.0  # bounds of this duration, in control periods and in horizons of the task
NEAREST, SPREAD = 0.1, 3000.0  # smallest level of `near_target` by the basin's, and its largest level by its smallest
SEED = 0


def cost_to_go(problem: Problem) -> tuple[Array, float] | None:
    """P (nt, nt) in SI units, and the decay (1/s) of the slowest closed-loop motion that the cost observes.

    None if the target is no equilibrium under the trim, or if no regulator exists.
    """
    local = linearization(problem.robot)
    limits = local.limits
    if np.abs(local.drift / limits).max() > REST:
        return None
    A, B = local.scaled_dynamics(problem.discount_rate)
    Q, R = local.scaled_weights()
    if regulator.obstacle(A, B, Q):
        return None
    P = regulator.cost_to_go(A, B, Q, R)
    if P is None:
        return None
    decays = -np.linalg.eigvals(A - B @ np.linalg.solve(R, B.T @ P)).real
    slowest = decays[decays > regulator.DECAY * np.abs(decays).max()].min()
    return P / np.outer(limits, limits), float(slowest)


def find_basin(problem: Problem, reaction_periods: float) -> Basin | None:
    """Basin of a problem, or None. Bisection with rollouts finds its level.

    reaction_periods: of the policy, as in `Settings`.
    """
    riccati = cost_to_go(problem)
    if riccati is None:
        return None
    P, decay = riccati
    cost = torch.as_tensor(P, dtype=torch.float32, device=problem.target.device)
    shortest = LEAST_PERIODS * problem.control_step
    seconds = min(max(TIME_CONSTANTS / decay, shortest), MOST_HORIZONS * problem.robot.metadata.task.horizon)
    largest = float(torch.trace(cost * problem.tangent_limits * problem.tangent_limits[:, None]))

    continuous = problem.geometry.continuous

    def basin(exponent: int) -> Basin:
        return Basin(problem.target, continuous, cost, largest * 2.0**exponent, problem.geometry.rotations)

    negligible = NEGLIGIBLE * _start_cost(problem, basin(0))
    good, bad = -HALVINGS, 0  # exponents
    while bad - good > 1:
        between = (good + bad) // 2
        if _arrives(problem, basin(between), seconds, reaction_periods, negligible):
            good = between
        else:
            bad = between
    return basin(good) if good > -HALVINGS else None


def _start_cost(problem: Problem, basin: Basin) -> float:
    """Estimate of the cost of the task from its starts: the Riccati equation's, or the trim's if that is less."""
    x = sample_starts(problem, STARTS, SEED)
    idle = -rollouts(problem, without_input(problem), x).returns
    return float(torch.minimum(basin.distance(x), idle).mean())


def shell(problem: Problem, basin: Basin, size: int) -> Tensor:
    """States (size, n) on the boundary of a basin. States without cost are drawn up to their limits."""
    generator = torch.Generator(device=problem.target.device).manual_seed(SEED)
    away = torch.randn(size, problem.geometry.size, generator=generator, device=problem.target.device)
    e = away @ _inverse_root(problem, basin.cost, basin.level)
    e = e * (basin.level / ((e @ basin.cost) * e).sum(1, keepdim=True)).sqrt()
    return problem.geometry.moved(problem.target, e)


def _inverse_root(problem: Problem, cost: Tensor, level: float) -> Tensor:
    """S (nt, nt) with S^T (P + level/limits^2) S = 1."""
    limits = problem.tangent_limits.double()
    scaled = cost.double() * limits * limits[:, None] + level * torch.eye(len(limits)).to(limits)
    values, vectors = torch.linalg.eigh(scaled)
    root: Tensor = ((vectors * values.clamp_min(1e-12 * values.max()).rsqrt()) @ vectors.T * limits).float()
    return root


def _arrives(problem: Problem, basin: Basin, seconds: float, reaction_periods: float, negligible: float) -> bool:
    """Whether the policy of the quadratic form brings the robot from the basin's boundary to the target.

    A rollout must reach no limit, and cost no more than COST_ERROR and `negligible` allow.
    """
    x = shell(problem, basin, SAMPLES)
    if bool(problem.at_limit(x).any()):
        return False

    def value(at: Tensor) -> tuple[Tensor, Tensor]:
        return basin.quadratic(at)[:2]

    result = rollouts(problem, controller(problem, value, reaction_periods), x, Nominal(problem), seconds)
    arrived = basin.distance(result.x[-1]) < ARRIVED * basin.level
    paid = -result.returns < basin.level + max(COST_ERROR * basin.level, negligible)
    return bool((arrived & paid & ~result.at_limit.any(-1)).all())


def near_target(problem: Problem, basin: Basin, size: int, generator: torch.Generator) -> Tensor:
    """States (size, n) around the target in the metric of P, within the limits.

    The logarithm of their level is uniform, from a tenth of the basin's level to 300 times the basin's level.
    """
    device = generator.device
    limits, cost = problem.tangent_limits.double(), basin.cost.double()
    values, vectors = torch.linalg.eigh(cost * limits * limits[:, None])
    exponent = torch.rand(size, 1, generator=generator, device=device)
    level = basin.level * NEAREST * SPREAD**exponent
    away = torch.randn(size, len(limits), generator=generator, device=device)
    away = away / torch.linalg.vector_norm(away, dim=1, keepdim=True)
    axes = (values.clamp_min(0.0) / level.double() + 1.0).rsqrt()  # half axes, as shares of the limits
    e = ((away * axes).float() @ vectors.T.float()) * problem.tangent_limits
    return problem.confine(problem.geometry.moved(problem.target, e))
