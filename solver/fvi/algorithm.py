"""Robust fitted value iteration (paper, Algorithm 1): targets from the frozen V^k, then a fit, again and again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from torch import Tensor

from solver.fvi.fit import Fitter
from solver.fvi.states import StateSource
from solver.fvi.targets import Step, value_targets
from solver.game import Game
from solver.plants.outcome import controller
from solver.streams import Purpose
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble


@dataclass(frozen=True)
class Iteration:
    """The result of one value iteration: V^k, states x (N, n), their targets (N,), the mean loss, the seconds taken."""

    step: Step
    before: FrozenValue
    x: Tensor
    target: Tensor
    loss: float
    seconds_targets: float
    seconds_fit: float


def value_iteration(
    nominal: Game, value: Ensemble, states: StateSource, fitter: Fitter, plan: Iterable[Step], workers: Executor
) -> Iterator[Iteration]:
    """Iterations of a plan, each of which has changed `value` in place. `nominal` is the game without adversaries.

    Observers of an iteration may change what the plan yields next.
    """
    for step in plan:
        begin, frozen, game = time.perf_counter(), FrozenValue(value), nominal.against(step.adversaries)
        policy = controller(game.problem, frozen, step.lookahead.hold)
        x = states.draw(policy, step.states, step.generator(Purpose.STATES, game.problem.device))
        target = value_targets(game, frozen, x, step.lookahead, step.seed(Purpose.ADVERSARY), workers)
        middle = time.perf_counter()
        loss = fitter.fit(value, x, target, step, workers)
        yield Iteration(step, frozen, x, target, loss, middle - begin, time.perf_counter() - middle)
