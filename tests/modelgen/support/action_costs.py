"""Closed forms of the action costs, and robots with two inputs and one of these costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modelgen import Robot
from modelgen.builder import build_artifact
from modelgen.statement.action_costs import ACTION_COSTS, ActionCost

LIMITS, WEIGHTS = (2.5, 0.8), (0.5, 1.7)


def log_cos(u: Any, limit: Any, weight: Any, m: Any = math) -> Any:
    """The paper's log-cos barrier with its constants; for a limit below 1 the pole is at 1.001 limit."""
    a, beta = limit + 1e-3 * min(1.0, limit), 4.0 * limit**2 * weight / m.pi
    return -2.0 * beta * a / m.pi * m.log(m.cos(m.pi * u / (2.0 * a)))


def quadratic(u: Any, _limit: Any, weight: Any, _m: Any = math) -> Any:
    """The quadratic cost, weight u^2."""
    return weight * u**2


def tanh(u: Any, limit: Any, weight: Any, m: Any = math) -> Any:
    """The cost 2 weight limit^2 [s atanh(s) + log(1 - s^2)/2] with s = u/limit."""
    s = u / limit
    return 2.0 * weight * limit**2 * (s * m.atanh(s) + 0.5 * m.log(1.0 - s**2))


#: g(u, limit, weight), with the functions of `math`, or of `mpmath` as the fourth argument.
REFERENCES: dict[type[ActionCost], Callable[..., Any]] = dict(
    zip(ACTION_COSTS, (log_cos, quadratic, tanh), strict=True)
)


def name(cost: type[ActionCost]) -> str:
    """The name of a cost in an artifact."""
    return cost(1.0).name


def pair(cost: type[ActionCost]) -> Robot:
    """Two masses on rails, each with its own force."""
    robot = Robot(f"pair_{name(cost)}")
    forces = []
    for side, limit in zip(("left", "right"), LIMITS, strict=True):
        slide = robot.prismatic(side, limit=1, rate_limit=3)
        robot.point_mass(robot.parameter(f"mass_{side}", 1.0, "kg", tolerance=0.5), (slide, 0))
        robot.apply(slide, robot.input(f"force_{side}", limit, "N"))
        forces.append(slide)
    robot.task(
        state_cost=sum(slide**2 + slide.rate**2 for slide in forces),
        action_cost=cost(WEIGHTS),
        start={},
        horizon=3,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return robot


def build_pairs(folder: Path) -> None:
    """The artifacts of `pair` for every cost of the package, in `folder`."""
    for cost in ACTION_COSTS:
        build_artifact(pair(cost), folder)
