"""Rollouts of the game: the policy against its adversaries."""

from __future__ import annotations

import torch
from torch import Tensor

from solver.fvi.targets import Trace, game_step
from solver.game.game import Game, Modulation
from solver.value.frozen import ValueFunction


@torch.no_grad()
def play(
    game: Game, value: ValueFunction, x: Tensor, trace: Trace, modulation: str, generator: torch.Generator
) -> Tensor:
    """States (T, N, n) at the ends of the T value steps of the task's horizon, from x (N, n) under both players' moves.

    The modulation of the radii starts again after every look-ahead, as it does in every target.
    """
    problem = game.problem
    seconds = trace.step_periods * problem.control_step
    modulated = Modulation(modulation, seconds, generator)
    step = game_step(game, value, trace.policy(problem, value), modulated, trace.step_periods)
    states, costate = [], value(x)[1]
    with torch.inference_mode():
        for k in range(round(problem.robot.metadata.task.horizon / seconds)):
            if k % trace.steps == 0:
                modulated.restart()
            x, _, _, costate = step(x, costate)
            states.append(x)
    return torch.stack(states)
