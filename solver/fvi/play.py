"""Rollouts of the game: the policy against its adversaries."""

from __future__ import annotations

import torch
from torch import Tensor

from solver.fvi.targets import Trace
from solver.game.game import Game
from solver.game.modulation import Modulation
from solver.value.protocol import ValueFunction


@torch.no_grad()
def play(
    game: Game, value: ValueFunction, x: Tensor, trace: Trace, modulation: str, generator: torch.Generator
) -> Tensor:
    """States (T, N, n) at the ends of the T value steps of the task's horizon, from x (N, n) under both players' moves.

    The modulation of the radii starts again after every look-ahead, as it does in every target.
    """
    problem = game.problem
    step = trace.step_periods * problem.control_step
    policy = trace.policy(problem, value)
    states = []
    for k in range(round(problem.robot.metadata.task.horizon / step)):
        if k % trace.steps == 0:
            modulated = Modulation(modulation, step, generator)
        x, _ = game.advance(x, game.move(x, value(x)[1], policy, modulated), trace.step_periods)
        states.append(x)
    return torch.stack(states)
