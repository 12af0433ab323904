"""One step of a plan: how far the targets of an iteration look ahead, against whom, and how V is fitted to them.

Checks of the targets and of the fit, which end an iteration that explodes before its checkpoint is written.

The fit of V to its targets, weighted by the relative error, with optimisers that live from one fit to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

import torch
from torch import Tensor

from solver.errors import DivergenceError
from solver.game.adversaries.adversary import Adversary
from solver.game.game import Game
from solver.game.policies import ClosedFormPolicy, make_policy
from solver.plants.outcome import sample_starts
from solver.problem.problem import Problem
from solver.streams import EVALUATION_SEED, Purpose, stream
from solver.value.fitting import FitPlan, fit_ensemble
from solver.value.frozen import FrozenValue, ValueFunction
from solver.value.network import Ensemble, Factor
from solver.value.optimiser import Optimiser


@dataclass(frozen=True)
class Lookahead:
    """The look-ahead of a target: how far, in which value steps, and with which policy (paper, section III-C)."""

    decay: float  # lambda, per value step
    floor: float  # of the weight of the last return, which sets the number of steps
    step_periods: int  # control periods of a value step, in which both players hold their moves
    reaction_periods: float = 0.0  # control periods that an input acts before the next one can; 0: the closed form
    drift: bool = False  # whether the policy counts on the drift within the hold
    modulation: str = "stationary"  # of the adversaries' radii, see `solver.game.game`

    def policy(self, problem: Problem, value: ValueFunction) -> ClosedFormPolicy:
        """Policy of V in a value step."""
        return make_policy(problem, value, self.reaction_periods, self.step_periods, self.drift)

    @property
    def steps(self) -> int:
        """Number of value steps N: the least for which the next weight, lambda^N, is at most `floor`."""
        return max(1, math.ceil(math.log(self.floor) / math.log(self.decay))) if self.decay > 0.0 else 1

    def weights(self) -> Iterator[float]:
        """Weights of the returns R_1 ... R_N. Their sum is one."""
        for n in range(self.steps - 1):
            yield (1.0 - self.decay) * self.decay**n
        yield self.decay ** (self.steps - 1)


@dataclass(frozen=True)
class Step:
    """One iteration of a plan.

    (run_seed, number, purpose) seeds every random stream of the iteration, so that a resumed training repeats an
    uninterrupted one bit for bit.
    """

    number: int  # no other iteration of the training has it
    run_seed: int
    states: int  # N
    lookahead: Lookahead
    adversaries: tuple[Adversary, ...]
    minibatch: int
    learning_rates: tuple[float, ...]  # of the epochs of the fit
    fresh_optimiser: bool  # whether the fit begins without the moments of the fit before
    adversary_share: float = 0.0  # of the full radii, for the metrics

    def seed(self, purpose: Purpose) -> int:
        """Seed of the random stream with this purpose."""
        return stream(self.run_seed, self.number, purpose)

    def generator(self, purpose: Purpose, device: torch.device | str) -> torch.Generator:
        """Random numbers of the stream with this purpose."""
        return torch.Generator(device=device).manual_seed(self.seed(purpose))


LARGE = 0.5  # share of the targets that V^k had before, at which V is the cause
BEYOND = 3.0  # times the lowest value: no mean is so low, unless V explodes


def require_targets(target: Tensor, value: ValueFunction, x: Tensor, lowest: float, step: Step) -> None:
    """Check of the targets (N,) of an iteration at its states x (N, n + k). value: V^k.

    Raises DivergenceError if one is not finite, or if their mean is far below the lowest value.
    """
    if not bool(torch.isfinite(target).all()):
        raise DivergenceError(
            f"iteration {step.number}: {int((~torch.isfinite(target)).sum())} of {len(target)} value targets are not "
            "finite. The dynamics blow up within a time step, or the value function did. Raise the task's control_rate "
            "or lower the learning_rate. The last good checkpoint is kept."
        )
    mean = float(target.mean())
    if mean < BEYOND * lowest:
        cause = _cause(mean, float(value(x)[0].mean()))
        raise DivergenceError(
            f"iteration {step.number}: the value targets exploded to a mean of {mean:.3g}. The costliest behaviour in "
            f"the state domain is worth {lowest:.3g}. {cause} The last good checkpoint is kept."
        )


def _cause(mean: float, before: float) -> str:
    """Cause of targets with this mean, if V^k had the mean `before`, and what to change."""
    if before < LARGE * mean:
        return f"V itself had fallen to {before:.3g} before, likely by the learning_rate: lower it."
    return (
        f"V was worth {before:.3g} before, so the cost is paid within the look-ahead, by states that move beyond their "
        "limits and are clipped: raise the task's control_rate, widen these limits, or lower limit_cost."
    )


def require_fit(mean: float, loss: float, lowest: float, step: Step) -> None:
    """Check of a fit: the mean V at its states, and its loss.

    Raises DivergenceError if one is not finite, or if the mean is far below the lowest value.
    """
    if not math.isfinite(loss + mean) or mean < BEYOND * lowest:
        raise DivergenceError(
            f"iteration {step.number}: the fit left a mean value of {mean:.3g} and a loss of {loss:.3g}. The costliest "
            f"behaviour in the state domain is worth {lowest:.3g}. The likely cause is the learning_rate, now "
            f"{step.learning_rates[0]:.2g}: lower it. The checkpoint of the iteration before is kept."
        )


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
