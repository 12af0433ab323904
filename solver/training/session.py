"""A training in memory: value iteration assembled from settings, and the observers of its iterations."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import DivergenceError, SolverError
from solver.fvi.algorithm import Iteration, value_iteration
from solver.fvi.fit import Fitter
from solver.fvi.states import MIXTURES, StateSource
from solver.game import Game
from solver.local.basin import find_basin
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.identified import IdentifiedSet
from solver.streams import serial_torch
from solver.training.schedule import Convergence, Schedule
from solver.training.selection import Polish, Selection
from solver.training.settings import Settings
from solver.training.solution import make_ensemble, make_optimiser
from solver.value.family import Basin, BasinFamily
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

Row = dict[str, float]  # metrics of an iteration


class LoopObserver(Protocol):
    """Observer of a training. It may add metrics to the row of an iteration and change the schedule's next step."""

    def observe(self, iteration: Iteration, row: Row) -> None:
        """React to an iteration. Observers are called in the order of `Session.observers`."""

    def state(self) -> dict[str, Any]:
        """Entries of a checkpoint."""

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Inverse of `state`."""


class Session:
    """Problem, value function, source of states, fit, schedule and observers of a training."""

    def __init__(
        self,
        robot: CompiledRobot,
        settings: Settings,
        checkpoint: dict[str, Any] | None = None,
        identified: IdentifiedSet | None = None,
        given: tuple[Given, ...] = (),
    ) -> None:
        """Begin a training, or continue from a checkpoint. Raises SolverError if the checkpoint does not fit."""
        self.robot, self.settings = robot, settings
        self.problem = Problem(robot, settings.device, "euler" if settings.authors else "rk4", identified, given)
        self.game = Game(self.problem, limit_cost=settings.limit_cost)
        self.value = make_ensemble(robot, settings, self.problem.context).to(settings.device)
        if settings.basin:
            self.value.see_less_of(self.problem.fast)
        self.states = StateSource(self.problem, MIXTURES[settings.sampling])
        self.lowest_value, loss_scale = lowest_value(self.game), 0.0 if settings.authors else LOSS_SCALE
        least = LEAST_SCALE * -self.lowest_value
        self.fitter = Fitter(self.problem, partial(make_optimiser, settings=settings), loss_scale, least)
        self.schedule = Schedule(settings)
        self.selection = Selection(self.problem, settings, self.value, self.schedule)
        self.observers: list[LoopObserver] = [
            self.selection,
            Convergence(self.schedule, self.selection, settings.convergence),
            Polish(self.schedule, self.selection),
        ]
        if checkpoint:
            self._restore(checkpoint)
        elif settings.basin and (basin := find_basin(self.problem, settings.hold)):
            self.value.place(basin)
            if bool(self.problem.fast.any()) and not basin.empty:
                self.value.become_form()
            self._begin_with(basin)
        else:
            self._begin_with(None)

    def rows(self, workers: ThreadPoolExecutor) -> Iterator[Row]:
        """Metrics of every iteration to the end of the schedule, after all observers.

        Raises DivergenceError for targets or weights that explode.
        """
        iterations = value_iteration(self.game, self.value, self.states, self.fitter, self.schedule, workers)
        for iteration in iterations:
            require_targets(iteration, self.lowest_value)
            require_fit(iteration, self.value, self.lowest_value)
            row, begin = _metrics(iteration, self.schedule.added), time.perf_counter()
            for observer in self.observers:
                observer.observe(iteration, row)
            yield row | {"seconds_evaluation": time.perf_counter() - begin}

    def checkpoint(self) -> dict[str, Any]:
        """Content of a checkpoint, from which another process can continue. `torch.load` reads it with weights_only."""
        content = {
            "ensemble": self.value.state_dict(),
            "visited": self.states.visited,
            "optimisers": [optimiser.state for optimiser in self.fitter.optimisers],
            **self.schedule.state(),
        }
        for observer in self.observers:
            content |= observer.state()
        return content

    def _begin_with(self, basin: Basin | BasinFamily | None) -> None:
        """Draw states and make optimisers for the value function with this basin."""
        self.states.basin = basin
        if basin is not None and basin.empty:
            self.fitter.loss_scale *= UNKNOWN
        elif basin is not None:
            self.value.hold(self.problem.fast)
        self.fitter.renew(self.value)

    def _buffer(self, visited: Tensor) -> Tensor:
        """Buffer of visited states of a checkpoint. Raises SolverError for one of another robot."""
        empty = self.states.visited
        if visited.ndim != 2 or visited.shape[1] != empty.shape[1]:
            raise SolverError(f"the checkpoint's buffer has shape {tuple(visited.shape)}; give (N, {empty.shape[1]})")
        return visited.to(empty)

    def _restore(self, checkpoint: dict[str, Any]) -> None:
        """Inverse of `checkpoint`."""
        try:
            self.value.load_state_dict(checkpoint["ensemble"])
            basin = self.value.frame.basin
            self._begin_with(None if basin.empty and not self.value.basin.unit else basin)
            for optimiser, state in zip(self.fitter.optimisers, checkpoint["optimisers"], strict=True):
                optimiser.restore(state)
            self.states.visited = self._buffer(checkpoint["visited"])
            self.schedule.restore(checkpoint)
            for observer in self.observers:
                observer.restore(checkpoint)
        except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            raise SolverError(
                "the checkpoint does not fit: run.json was edited, or another version of solver wrote it. Restore the "
                f"old run.json or train again ({' '.join(str(error).split())})"
            ) from error


SAMPLES = 65536  # random states of the domain, over which the largest cost is searched
LOSS_SCALE = 0.2  # scale c of a fit, as a share of the mean |V| at the starts
UNKNOWN = 0.1  # of this scale where the basin is empty: the networks have to resolve the small V near the target
LEAST_SCALE = 1e-5  # smallest scale c of a fit, as a share of the lowest value
LARGE = 0.5  # share of the targets that V^k had before, at which V is the cause
BEYOND = 3.0  # times the lowest value: no mean is so low, unless V explodes


def lowest_value(game: Game) -> float:
    """Lower bound of every V: the discounted integral, without end, of the largest cost rate in the domain."""
    problem = game.problem
    generator = torch.Generator(device=problem.device).manual_seed(0)
    states, theta = problem.split(problem.sample_domain(SAMPLES, generator))
    x = torch.cat([states, problem.corner])
    theta = theta if theta is None else torch.cat([theta, theta[:1]])
    state_cost = (1.0 + game.limit_share) * float(problem.state_cost(x, theta).max())
    ends = problem.input_of(0.99 * torch.tensor([[-1.0], [1.0]], device=problem.device))
    action_cost = float(problem.action_cost.cost(ends).max())
    return -(state_cost + 2.0 * action_cost) / max(problem.discount_rate, 1e-3)


def require_targets(iteration: Iteration, lowest: float) -> None:
    """Check of the targets of an iteration. lowest: lower bound of every V.

    Raises DivergenceError if one is not finite, or if their mean is far below the lowest value.
    """
    step, target, mean = iteration.step, iteration.target, float(iteration.target.mean())
    if not bool(torch.isfinite(target).all()):
        raise DivergenceError(
            f"iteration {step.number}: {int((~torch.isfinite(target)).sum())} of {len(target)} value targets are not "
            "finite. The dynamics blow up within a time step, or the value function did. Raise the task's control_rate "
            "or lower the learning_rate. The last good checkpoint is kept."
        )
    if mean < BEYOND * lowest:
        before = float(iteration.before(iteration.x)[0].mean())
        cause = (
            f"V itself had fallen to {before:.3g} before, likely by the learning_rate: lower it."
            if before < LARGE * mean
            else f"V was worth {before:.3g} before, so the cost is paid within the look-ahead, by states that move "
            "beyond their limits and are clipped: raise the task's control_rate, widen these limits, or lower "
            "limit_cost."
        )
        raise DivergenceError(
            f"iteration {step.number}: the value targets exploded to a mean of {mean:.3g}. The costliest behaviour in "
            f"the state domain is worth {lowest:.3g}. {cause} The last good checkpoint is kept."
        )


def require_fit(iteration: Iteration, value: Ensemble, lowest: float) -> None:
    """Check of the fit that ended an iteration: the mean V at its states, and its loss.

    Raises DivergenceError if one is not finite, or if the mean is far below the lowest value.
    """
    loss, mean = iteration.loss, float(FrozenValue(value)(iteration.x)[0].mean())
    if not math.isfinite(loss + mean) or mean < BEYOND * lowest:
        raise DivergenceError(
            f"iteration {iteration.step.number}: the fit left a mean value of {mean:.3g} and a loss of {loss:.3g}. The "
            f"costliest behaviour in the state domain is worth {lowest:.3g}. The likely cause is the learning_rate, "
            f"now {iteration.step.learning_rates[0]:.2g}: lower it. The checkpoint of the iteration before is kept."
        )


def _metrics(iteration: Iteration, waited: int) -> Row:
    """Row of an iteration before the observers."""
    step, target = iteration.step, iteration.target
    return {
        "iteration": float(step.number),
        "waited": float(waited),
        "seconds_targets": iteration.seconds_targets,
        "seconds_fit": iteration.seconds_fit,
        "learning_rate": step.learning_rates[0],
        "step_periods": float(step.lookahead.step_periods),
        "steps": float(step.lookahead.steps),
        "adversary": step.adversary_share,
        "value_error": iteration.loss,
        "target_mean": float(target.mean()),
        "target_worst": float(target.min()),
    }


@contextmanager
def workers_of(settings: Settings) -> Iterator[ThreadPoolExecutor]:
    """Worker threads, each with serial Torch operations. One thread on a GPU."""
    with serial_torch():
        pool = ThreadPoolExecutor(settings.threads if settings.device == "cpu" else 1)
        wait = True
        try:
            yield pool
        except KeyboardInterrupt:
            wait = False  # do not wait for a long fit
            raise
        finally:
            pool.shutdown(wait, cancel_futures=True)
