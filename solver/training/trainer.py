"""Robust fitted value iteration: targets from the frozen V^k, then a fit, again and again (paper, Algorithm 1).

Random numbers are drawn from generators seeded with (seed, iterations done, purpose), so that this number is the
whole random state and a resumed run repeats an uninterrupted one bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.fvi.play import play
from solver.fvi.states import StateSource
from solver.fvi.targets import Trace, value_targets
from solver.game.game import Game
from solver.local.basin import find_basin
from solver.plants.outcome import summary
from solver.plants.rollouts import controller, sample_starts
from solver.problem.identified import Identified
from solver.problem.problem import Problem
from solver.serial import serial_torch
from solver.streams import EVALUATION_SEED, Purpose, stream
from solver.training import polish
from solver.training.divergence import require_fit, require_targets, worst_value
from solver.training.initial_value import make_ensemble
from solver.training.optimisers import make_optimiser
from solver.training.schedule import Schedule
from solver.training.selection import Score, Selection
from solver.training.settings import Settings
from solver.training.stated import present_settings
from solver.value.fitting import FitPlan, fit_ensemble
from solver.value.frozen import FrozenValue
from solver.value.optimiser import Optimiser
from solver.value.quadratic_form import Basin


def _stored(settings: Settings) -> dict[str, Any]:
    """The settings that results depend on, in types that `torch.load` reads with weights_only."""
    values = {name: value for name, value in vars(settings).items() if name not in ("threads", "device", "backend")}
    return {name: _listed(value) for name, value in values.items()}


def _listed(value: Any) -> Any:
    """A setting as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


STARTS = 256  # at which the scale of V is taken
LEAST_SCALE = 1e-5  # of this scale, as a share of the costliest behaviour
REACH = 100.0  # levels of the basin, up to which errors are measured by its quadratic form


DEFAULTS = vars(Settings())  # stand for settings that are newer than a checkpoint


@dataclass(frozen=True)
class Kept:
    """The best value function so far."""

    iteration: int  # after how many
    score: Score
    ensemble: dict[str, Tensor]  # weights


class Trainer:
    """The state of a run between two iterations."""

    def __init__(
        self,
        robot: CompiledRobot,
        settings: Settings,
        checkpoint: dict[str, Any] | None = None,
        identified: Identified | None = None,
    ) -> None:
        """A new run, or one that continues from a checkpoint (`load_run_checkpoint`).

        SolverError when the checkpoint was made with other settings; threads, device and backend may differ.
        """
        self.robot, self.settings = robot, settings
        self.problem = Problem(robot, settings.device, settings.integrator, identified)
        self.ensemble = make_ensemble(robot, settings).to(settings.device)
        self.optimisers = self._fresh_optimisers()
        self.source = StateSource(self.problem, settings)
        self.schedule = Schedule(settings)
        self.selection = Selection(self.problem, settings)
        self.best: Kept | None = None
        self.nominal = -math.inf  # the best nominal return of a V with as many successes as the best
        self.worst_value = worst_value(self.problem, settings)
        if checkpoint:
            self._restore(checkpoint)
        elif settings.basin and not settings.relative_values:
            self._found(find_basin(self.problem, settings.reaction_periods))

    def _found(self, basin: Basin | None) -> None:
        """Overlay the basin on V, and draw states and measure errors in its metric."""
        if basin:
            self.ensemble.set_basin(basin)
            if self.settings.metric:
                self.ensemble.set_metric(basin.cost, REACH * basin.level)
        self.source.basin = basin

    def _fresh_optimisers(self) -> list[Optimiser]:
        return [make_optimiser(member, self.settings) for member in self.ensemble.factors]

    def step(self, workers: ThreadPoolExecutor) -> dict[str, float]:
        """Run one iteration and return its metrics. DivergenceError when targets or weights explode."""
        s, k, done = self.settings, self.schedule.iteration, self.schedule.done
        started, trace = time.perf_counter(), s.trace(k)
        x, target, best = self._targets(trace, workers)
        targets_made = time.perf_counter()
        if self.schedule.polishing or not s.keep_optimiser:
            self.optimisers = self._fresh_optimisers()
        rates = self.schedule.learning_rates
        fit = FitPlan(s.minibatch, s.loss_power, rates, self._loss_scale())
        seed = stream(s.seed, done, Purpose.MINIBATCHES)
        loss = fit_ensemble(self.ensemble, self.optimisers, x, target, fit, seed, workers)
        fitted = float(FrozenValue(self.ensemble)(x)[0].mean())
        require_fit(fitted, loss, self.worst_value, done, rates[0])
        self.schedule.iteration += 1
        return {
            "iteration": float(done),
            "waited": float(self.schedule.waited),
            "seconds_targets": targets_made - started,
            "seconds_fit": time.perf_counter() - targets_made,
            "learning_rate": rates[0],
            "step_periods": float(trace.step_periods),
            "steps": float(trace.steps),
            "adversary": s.adversary_share(k),
            "value_error": loss,
            "target_best": best,
            "target_mean": float(target.mean()),
            "target_worst": float(target.min()),
        }

    def _targets(self, trace: Trace, workers: ThreadPoolExecutor) -> tuple[Tensor, Tensor, float]:
        """States (N, n) of this iteration, their targets (N,), and the value subtracted from all targets, or 0."""
        s, k, done = self.settings, self.schedule.iteration, self.schedule.done
        generator = torch.Generator(device=s.device).manual_seed(stream(s.seed, done, Purpose.STATES))
        value, game = FrozenValue(self.ensemble), Game(self.problem, s.adversaries(k), s.limit_cost)
        against = partial(play, game, value, trace=trace, modulation=s.modulation, generator=generator)
        act = controller(self.problem, value, s.reaction_periods)
        times = polish.STATES if self.schedule.polishing else 1
        x = self.source.draw(act, generator, against if game.adversaries else None, times)
        seed = stream(s.seed, done, Purpose.ADVERSARY)
        target = value_targets(x, value, game, trace, s.modulation, seed, s.chunk, workers)
        require_targets(target, self.worst_value, done)
        best = float(target.max()) if s.relative_values and game.adversaries else 0.0
        return x, target.sub_(best), best

    def evaluate(self) -> dict[str, float]:
        """Metrics of rollouts of the present policy on the nominal robot from the task's starts; keeps the present
        value function if it is the best so far."""
        x = sample_starts(self.problem, self.settings.episodes, EVALUATION_SEED)
        value = FrozenValue(self.ensemble)
        act = controller(self.problem, value.sparing, self.settings.reaction_periods)
        score, result = self.selection.judge(act, x, self.settings.adversary_share(self.schedule.iteration - 1))
        if self.best is None or score.successes >= self.best.score.successes:
            first = self.best is None or score.successes > self.best.score.successes
            self.nominal = score.nominal if first else max(self.nominal, score.nominal)
        if self.best is None or self._is_better(score, self.best.score):
            weights = {name: value.clone() for name, value in self.ensemble.state_dict().items()}
            self.best = Kept(self.schedule.done, score, weights)
        mismatch = polish.value_mismatch(self.problem, value, result, self.selection.idle_return)
        found = {
            "value_mismatch": mismatch,
            "selection_success": score.successes,
            "selection_quarters": score.quarters,
            "selection_return": score.value,
            "selection_nominal": score.nominal,
            "kept": self.best.iteration,
        }
        seen = summary(result)
        self.schedule.look(seen["success_rate"], seen["return_mean"], mismatch)
        return seen | found

    def _is_better(self, score: Score, before: Score) -> bool:
        """Whether it is better than the best so far; robustness costs little beside the best nominal return."""
        least = self.selection.least(self.nominal)
        return score.rank(least) > before.rank(least)

    def pace(self) -> None:
        """Go on in the schedule, see `Schedule.pace`; a polish begins with the best V."""
        if self.schedule.pace(self.best.score.successes if self.best else 0.0) and self.best:
            self.ensemble.load_state_dict(self.best.ensemble)

    def checkpoint(self) -> dict[str, Any]:
        """What another process needs to continue; `torch.load` reads every entry with weights_only."""
        return {
            **self.schedule.state(),
            "artifact_hash": self.robot.hash,
            "ensemble": self.ensemble.state_dict(),
            "visited": self.source.visited,
            "optimisers": [optimiser.state for optimiser in self.optimisers],
            "settings": _stored(self.settings),
            "nominal": self.nominal,
            "best": vars(self.best) | {"score": list(vars(self.best.score).values())} if self.best else {},
        }

    def _restore(self, checkpoint: dict[str, Any]) -> None:
        """The inverse of `checkpoint`."""
        self._require_settings(checkpoint["settings"])
        try:
            self.ensemble.load_state_dict(checkpoint["ensemble"])
            self.source.basin = self.ensemble.basin if self.ensemble.basin.level else None
            for optimiser, state in zip(self.optimisers, checkpoint["optimisers"], strict=True):
                optimiser.restore(state)
            self.source.restore(checkpoint["visited"])
            self.nominal = float(checkpoint.get("nominal", -math.inf))
            self.schedule.restore(checkpoint)
            if checkpoint["best"]:
                self.best = Kept(**checkpoint["best"] | {"score": Score(*checkpoint["best"]["score"])})
        except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise SolverError(
                "the checkpoint does not fit: run.json was edited, or another version of solver wrote it; put the old "
                f"settings back or train again ({' '.join(str(error).split())})"
            ) from error

    def _require_settings(self, stored: object) -> None:
        """SolverError unless the settings in a checkpoint are those of run.json."""
        if not isinstance(stored, dict):
            raise SolverError("the checkpoint is damaged: it holds no settings; train again")
        before = DEFAULTS | present_settings(stored)
        for name in _stored(self.settings):
            value, trained_with = getattr(self.settings, name), before[name]
            if trained_with != value:
                raise SolverError(
                    f"run.json has {name} {_listed(value)}, the checkpoint {_listed(trained_with)}: it was edited. "
                    "Put the old value back, or train again with the new one."
                )

    def _loss_scale(self) -> float:
        """c of the fit's weights: a share of the mean |V^k| at the starts."""
        share = self.settings.loss_scale
        if share == 0.0:
            return math.inf
        starts = sample_starts(self.problem, STARTS, EVALUATION_SEED)
        return max(share * float(FrozenValue(self.ensemble)(starts)[0].abs().mean()), LEAST_SCALE * -self.worst_value)


@contextmanager
def workers_of(settings: Settings) -> Iterator[ThreadPoolExecutor]:
    """Worker threads that each run Torch serially; one on a GPU."""
    with serial_torch():
        pool = ThreadPoolExecutor(settings.threads if settings.device == "cpu" else 1)
        wait = True
        try:
            yield pool
        except KeyboardInterrupt:
            wait = False  # a fit may take long, and nobody wants it any more
            raise
        finally:
            pool.shutdown(wait, cancel_futures=True)
