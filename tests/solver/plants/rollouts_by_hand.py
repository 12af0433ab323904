"""Controllers and rollouts with given inputs, for the tests of plants."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.plants.plant import Plant
from solver.problem import Problem

Load = Callable[[str], CompiledRobot]


def feedback(problem: Problem, share: float = 1.0) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Arbitrary bounded controller that uses every input in both directions. share: of the input limits."""
    n, m = len(problem.state_limits), len(problem.input_limits)
    weights = torch.linspace(-2.0, 3.0, n * m).reshape(n, m)

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = share * problem.input_limits * torch.tanh(torch.sin(x) @ weights)
        return u, problem.action_cost.cost(0.9 * u)

    return act


def moved(plant: Plant, x: Tensor, inputs: list[Tensor]) -> Tensor:
    """True states (len(inputs) + 1, N, n) of a rollout with given inputs (N, m)."""
    motion = plant.begin(x)
    states = [motion.x]
    for u in inputs:
        motion.step(u)
        states.append(motion.x)
    return torch.stack(states)


def wrapped(angle: Tensor) -> Tensor:
    """The angle in [-pi, pi)."""
    return torch.remainder(angle + math.pi, 2.0 * math.pi) - math.pi
