"""The basin of a robot: where the Riccati solution at the target is its value function.

The linear-quadratic regulator of the discounted task, xdot = (A - rho/2) x + B u, is optimal near the target. The basin
is the largest sublevel set of its cost from which the closed loop of the whole robot, inputs limited and held, comes to
the target, hits no limit and costs what the Riccati equation says.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import modelgen
from modelgen.linear import regulator
from modelgen.linear.weights import weights
from solver.plants.nominal import Nominal
from solver.plants.rollouts import controller, rollouts
from solver.problem.problem import Problem
from solver.value.basin import Basin, wraps_of

Array = NDArray[np.float64]

HALVINGS = 30  # of the level, from the cost with every state at its limit to the smallest that is tried
SAMPLES = 256  # states on a shell
COST_ERROR = 0.15  # most by which the cost of a motion may exceed the Riccati equation's
ARRIVED = 0.05  # share of the level that is left when a motion counts as arrived
TIME_CONSTANTS = 5.0  # of the closed loop's slowest motion, for which it is followed
SEED = 0


def cost_to_go(problem: Problem) -> tuple[Array, float] | None:
    """P (n, n) in SI units and the decay (1/s) of the slowest closed-loop motion that the cost sees.

    None where the target is no equilibrium without inputs, or where no regulator exists.
    """
    robot = modelgen.load(problem.robot.name, directory=problem.robot.folder.parent)
    a, B, A, *_ = (np.asarray(each)[0] for each in robot.jacobians(np.array([robot.metadata.task.target])))
    scale, reach = np.asarray(robot.state_limits), np.asarray(robot.input_limits)
    if np.abs(a / scale).max() > 1e-6:
        return None
    A = A - 0.5 * problem.discount_rate * np.eye(len(A))
    A, B = A * scale / scale[:, None], B * reach / scale[:, None]
    Q, R = weights(robot)
    Q, R = Q * scale * scale[:, None], R * reach * reach[:, None]
    if regulator.obstacle(A, B, Q):
        return None
    P = regulator.cost_to_go(A, B, Q, R)
    if P is None:
        return None
    values = np.linalg.eigvals(A - B @ np.linalg.solve(R, B.T @ P)).real
    decaying = values[values < -regulator.DECAY * np.abs(values).max()]
    return P / scale / scale[:, None], float(-decaying.max())


def find_basin(problem: Problem, reaction_periods: float) -> Basin | None:
    """The basin of a problem; None where there is none. reaction_periods: as in `Settings`."""
    found = cost_to_go(problem)
    if found is None:
        return None
    P, decay = found
    device = problem.target.device
    cost = torch.as_tensor(P, dtype=torch.float32, device=device)
    wraps = wraps_of([bool(clipped) is False for clipped in problem.clipped]).to(device)

    def basin(level: float) -> Basin:
        return Basin(problem.target, wraps, cost, level)

    seconds = min(max(TIME_CONSTANTS / decay, 10 * problem.control_step), 2.0 * problem.robot.metadata.task.horizon)
    largest = float(torch.trace(cost * problem.state_limits * problem.state_limits[:, None]))
    good, bad = -HALVINGS, 0  # levels as powers of two of the largest
    while bad - good > 1:
        between = (good + bad) // 2
        tried = basin(largest * 2.0**between)
        if _arrives(problem, tried, shell(problem, tried, SAMPLES), seconds, reaction_periods):
            good = between
        else:
            bad = between
    return basin(largest * 2.0**good) if good > -HALVINGS else None


def shell(problem: Problem, basin: Basin, size: int) -> Tensor:
    """States (size, n) on the boundary of a basin; what its cost does not see is uniform in the domain."""
    generator = torch.Generator(device=problem.target.device).manual_seed(SEED)
    away = torch.randn(size, len(problem.target), generator=generator, device=problem.target.device)
    e = away @ _inverse_root(problem, basin.cost, basin.level)
    e = e * (basin.level / ((e @ basin.cost) * e).sum(1, keepdim=True)).sqrt()
    return problem.target + e


def _inverse_root(problem: Problem, cost: Tensor, level: float) -> Tensor:
    """S (n, n) with S^T (P + level/limits^2) S = 1."""
    limits = problem.state_limits.double()
    scaled = cost.double() * limits * limits[:, None] + level * torch.eye(len(limits), dtype=torch.float64)
    values, vectors = torch.linalg.eigh(scaled)
    root: Tensor = ((vectors * values.clamp_min(1e-12 * values.max()).rsqrt()) @ vectors.T * limits).float()
    return root


def _arrives(problem: Problem, basin: Basin, x: Tensor, seconds: float, reaction_periods: float) -> bool:
    """Whether the regulator brings the robot to the target from every x (N, n) at its cost, away from all limits."""
    if bool(problem.at_limit(x).any()):
        return False

    def value(at: Tensor) -> tuple[Tensor, Tensor]:
        return -basin.distance(at), -2.0 * basin.error(at) @ basin.cost

    result = rollouts(problem, controller(problem, value, reaction_periods), x, Nominal(problem), seconds)
    end = basin.distance(result.x[-1])
    paid = -result.returns
    return bool(
        (end < ARRIVED * basin.level).all() & (paid < (1.0 + COST_ERROR) * basin.level).all() & ~result.at_limit.any()
    )


def near_target(problem: Problem, basin: Basin, size: int, generator: torch.Generator) -> Tensor:
    """States (size, n) around the target in the metric of P, at every scale from a tenth to 300 times the basin's level
    and within the limits."""
    device = generator.device
    limits, cost = problem.state_limits.double(), basin.cost.double()
    values, vectors = torch.linalg.eigh(cost * limits * limits[:, None])
    exponent = torch.rand(size, 1, generator=generator, device=device)
    level = basin.level * 0.1 * 3000.0**exponent
    away = torch.randn(size, len(limits), generator=generator, device=device)
    away = away / torch.linalg.vector_norm(away, dim=1, keepdim=True)
    axes = (values.clamp_min(0.0) / level.double() + 1.0).rsqrt()  # half axes, as shares of the limits
    return problem.confine(problem.target + ((away * axes).float() @ vectors.T.float()) * problem.state_limits)
