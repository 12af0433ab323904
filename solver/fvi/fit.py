"""The fit of V to its targets, weighted by the relative error, with optimisers that live from one fit to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from torch import Tensor

from solver.fvi.step import Step
from solver.game.game import Game
from solver.plants.outcome import sample_starts
from solver.streams import EVALUATION_SEED, Purpose
from solver.value.fitting import FitPlan, fit_ensemble
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble, Factor
from solver.value.optimiser import Optimiser


@dataclass
class Fitter:
    """Fits an ensemble to its targets, a state with the weight c/(c + |V_tar|).

    c is `loss_scale` times the mean |V| at the task's starts, or infinite for a loss_scale of 0, the authors' choice.
    """

    game: Game
    make_optimiser: Callable[[Factor], Optimiser]
    loss_scale: float = 0.0
    starts: int = 256  # states at which the scale of V is taken
    least_scale: float = 1e-5  # of c, as a share of the lowest value
    optimisers: list[Optimiser] = field(default_factory=list)  # one for each member; empty before the first fit

    def renew(self, value: Ensemble) -> None:
        """Replace the optimisers by fresh ones."""
        self.optimisers = [self.make_optimiser(member) for member in value.factors]

    def fit(self, value: Ensemble, x: Tensor, target: Tensor, step: Step, workers: Executor) -> float:
        """Mean loss over the members of a fit to the targets (N,) at x (N, n)."""
        if step.fresh_optimiser or not self.optimisers:
            self.renew(value)
        plan = FitPlan(step.minibatch, step.learning_rates, self._scale(value))
        return fit_ensemble(value, self.optimisers, x, target, plan, step.seed(Purpose.MINIBATCHES), workers)

    def _scale(self, value: Ensemble) -> float:
        if self.loss_scale == 0.0:
            return math.inf
        starts = sample_starts(self.game.problem, self.starts, EVALUATION_SEED)
        size = self.loss_scale * float(FrozenValue(value)(starts)[0].abs().mean())
        return max(size, self.least_scale * -self.game.lowest_value)
