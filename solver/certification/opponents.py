"""The closed-form adversaries of a run, played against its policy in rollouts (paper, Theorems 1 to 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from solver.certification.experiment import Experiment
from solver.game.adversaries import make_adversaries
from solver.game.game import Game
from solver.game.held_input_policy import make_policy
from solver.game.modulation import Modulation
from solver.plants.outcome import Rollouts, succeeded
from solver.streams import Purpose, stream
from solver.training.solution import Solution

EPISODES = 200


@dataclass(frozen=True)
class Opposed:
    """Rollouts against the run's adversaries at their full radii."""

    adversaries: tuple[str, ...]
    episodes: int
    failures: int
    return_worst: float

    def to_json(self) -> dict[str, Any]:
        """The same in built-in types."""
        return vars(self) | {"adversaries": list(self.adversaries)}


@torch.no_grad()
def play_adversaries(experiment: Experiment, solution: Solution, seed: int) -> Opposed | None:
    """Roll out from the specification's starts, both players moving once a control period; None for a run without
    adversaries.

    The robot is the nominal one on the nominal plant, but for what the adversaries disturb.
    """
    problem, told, settings = experiment.problem, experiment.specification, solution.run.settings
    adversaries = make_adversaries(settings.adversaries)
    if not adversaries:
        return None
    value, game = solution.value.sparing, Game(problem, adversaries)
    policy = make_policy(problem, value, settings.reaction_periods)
    number = stream(seed, 0, Purpose.ADVERSARY)
    x, _ = told.distribution(problem, told.distribution.sample(EPISODES, number))
    modulated = Modulation("stationary", problem.control_step, torch.Generator().manual_seed(number))
    states, inputs, reward = [x], [], torch.zeros(EPISODES)
    for _ in range(round(told.conditions.horizon / problem.control_step)):
        move = game.move(x, value(x)[1], policy, modulated)
        x, cost = game.advance(x, move, 1)
        reward -= cost
        states.append(x)
        inputs.append(move.u)
    passed = torch.stack(states)
    at_limit = problem.at_limit(passed[1:]).any(0)
    done = succeeded(problem, passed)
    result = Rollouts(passed, torch.stack(inputs), reward, torch.zeros_like(reward), done, at_limit)
    failures = int(told.failure.judge(result).sum())
    return Opposed(tuple(each.name for each in adversaries), EPISODES, failures, float(reward.min()))
