"""Robust fitted value iteration: targets from the frozen V^k, then a fit, again and again (paper, Algorithm 1).

Random numbers are drawn from generators seeded with (seed, iteration, purpose), so that the iteration number is the
whole random state and a resumed run repeats an uninterrupted one bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import modelgen
from modelgen.loader import CompiledRobot
from solver.errors import DivergenceError, SolverError
from solver.evaluation import controller, rollouts, sample_starts, summary
from solver.fitting import Fit, fit_ensemble, make_optimiser
from solver.game import NO_ADVERSARY, Game
from solver.run_folder import (
    CHECKPOINT,
    MetricsLog,
    Run,
    load_checkpoint,
    load_run,
    save_checkpoint,
    save_run,
)
from solver.sampling import StateSource
from solver.serial import serial_torch
from solver.settings import Settings
from solver.value_function import Ensemble, FrozenValue
from solver.value_target import value_targets

Report = Callable[[dict[str, float]], None]
EVALUATION_SEED = 20210725  # the same starts for every run, so that returns compare


class Purpose(IntEnum):
    """What a random stream is for."""

    WEIGHTS = 0
    STATES = 1
    ADVERSARY = 2
    MINIBATCHES = 3


def stream(seed: int, iteration: int, purpose: Purpose) -> int:
    """An independent 62-bit seed for one purpose of one iteration; adding small numbers to it is safe."""
    words = np.random.SeedSequence([seed, iteration, int(purpose)]).generate_state(2)
    return (int(words[0]) << 30) ^ int(words[1])


def load_robot(name: str, device: str, generated: str | None) -> CompiledRobot:
    """The float32 kernels a device needs: serial Numba kernels under the solver's own threads, or Torch's."""
    if device == "cuda" and not torch.cuda.is_available():
        raise SolverError("device cuda was asked for, but Torch sees no CUDA device; use --device cpu")
    if device == "cuda":
        return modelgen.load(name, backend="torch", dtype="float32", directory=generated)
    return modelgen.load(name, backend="numba", dtype="float32", directory=generated, parallel=False)


def make_ensemble(robot: CompiledRobot, settings: Settings) -> Ensemble:
    """The untrained value function of a run."""
    metadata = robot.metadata
    scale = []
    for state in metadata.states:
        share = settings.position_scale if state.kind == "position" else settings.rate_scale
        scale.append(share / state.limit if share > 0.0 else 1.0)
    return Ensemble(
        continuous=[state.continuous for state in metadata.states],
        target=list(metadata.task.target),
        scale=scale,
        members=settings.members,
        layers=settings.layers,
        width=settings.width,
        generator=torch.Generator().manual_seed(stream(settings.seed, 0, Purpose.WEIGHTS)),
    ).to(settings.device)


class Trainer:
    """The state of a run between two iterations."""

    def __init__(self, robot: CompiledRobot, settings: Settings) -> None:
        self.robot, self.settings = robot, settings
        self.nominal = Game(robot, NO_ADVERSARY, settings.device)
        self.ensemble = make_ensemble(robot, settings)
        self.optimisers = self._fresh_optimisers()
        self.source = StateSource(self.nominal, settings)
        self.iteration = 0
        self.worst_value = worst_value(self.nominal, settings)

    def _fresh_optimisers(self) -> list[torch.optim.Adam]:
        s = self.settings
        return [make_optimiser(m, s.learning_rate, s.weight_decay, s.amsgrad) for m in self.ensemble.factors]

    def step(self, workers: ThreadPoolExecutor) -> dict[str, float]:
        """One iteration; returns its metrics. DivergenceError when targets or weights left all bounds."""
        s, k = self.settings, self.iteration
        started = time.perf_counter()
        generator = torch.Generator(device=s.device).manual_seed(stream(s.seed, k, Purpose.STATES))
        value, trace = FrozenValue(self.ensemble), s.trace(k)
        x = self.source.draw(controller(self.nominal, value), generator)
        game = Game(self.robot, s.radii(k), s.device, s.limit_cost)
        seed = stream(s.seed, k, Purpose.ADVERSARY)
        target = value_targets(x, value, game, trace, s.modulation, seed, s.chunk, workers)
        self._check(target)
        targets_made = time.perf_counter()
        if not s.keep_optimiser:
            self.optimisers = self._fresh_optimisers()
        rate = self._learning_rate()
        for optimiser in self.optimisers:
            optimiser.param_groups[0]["lr"] = rate
        fit = Fit(s.epochs, s.minibatch, s.loss_power)
        seed = stream(s.seed, k, Purpose.MINIBATCHES)
        loss = fit_ensemble(self.ensemble, self.optimisers, x, target, fit, seed, workers)
        fitted = float(FrozenValue(self.ensemble)(x)[0].mean())
        if not math.isfinite(loss + fitted) or fitted < 3.0 * self.worst_value:
            raise DivergenceError(
                f"iteration {k}: the fit left a mean value of {fitted:.3g} and a loss of {loss:.3g}, while the "
                f"costliest behaviour in the state domain is worth {self.worst_value:.3g}. The learning rate "
                f"{rate:.2g} is the likely cause; train again with a smaller --learning-rate. The checkpoint of the "
                "iteration before is kept."
            )
        self.iteration += 1
        return {
            "iteration": float(k),
            "seconds_targets": targets_made - started,
            "seconds_fit": time.perf_counter() - targets_made,
            "learning_rate": rate,
            "hold": float(trace.periods),
            "steps": float(trace.steps),
            "adversary": s.adversary_share(k),
            "value_error": loss,
            "target_mean": float(target.mean()),
            "target_worst": float(target.min()),
        }

    def evaluate(self) -> dict[str, float]:
        """Rollouts of the present policy on the nominal robot from the task's starts."""
        x = sample_starts(self.nominal, self.settings.episodes, EVALUATION_SEED)
        return summary(rollouts(self.nominal, controller(self.nominal, FrozenValue(self.ensemble)), x))

    def checkpoint(self) -> dict[str, Any]:
        """All that another process needs to go on; every entry loads weights-only."""
        return {
            "iteration": self.iteration,
            "artifact_hash": self.robot.hash,
            "ensemble": self.ensemble.state_dict(),
            "visited": self.source.visited,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "settings": {key: list(v) if isinstance(v, tuple) else v for key, v in vars(self.settings).items()},
        }

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """The inverse of `checkpoint`; SolverError when it was made with other settings."""
        try:
            self.ensemble.load_state_dict(checkpoint["ensemble"])
            for optimiser, state in zip(self.optimisers, checkpoint["optimisers"], strict=True):
                optimiser.load_state_dict(state)
            self.source.restore(checkpoint["visited"])
        except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise SolverError(
                "the checkpoint does not fit the settings in run.json, which was edited; put the old settings back "
                f"or train again ({' '.join(str(error).split())})"
            ) from error
        self.iteration = checkpoint["iteration"]

    def _learning_rate(self) -> float:
        """Half a cosine from the first to the last iteration."""
        s = self.settings
        share = self.iteration / max(1, s.iterations - 1)
        return s.final_learning_rate + (s.learning_rate - s.final_learning_rate) * 0.5 * (
            1.0 + math.cos(math.pi * share)
        )

    def _check(self, target: Tensor) -> None:
        """DivergenceError for targets that are not finite or below what the costliest policy could get."""
        if not bool(torch.isfinite(target).all()):
            raise DivergenceError(
                f"iteration {self.iteration}: {int((~torch.isfinite(target)).sum())} of {len(target)} value targets "
                "are not finite. The dynamics blow up within a time step, or the value function did; raise the "
                "task's simulation_rate or lower --learning-rate. The last good checkpoint is kept."
            )
        mean = float(target.mean())
        if mean < 3.0 * self.worst_value:
            raise DivergenceError(
                f"iteration {self.iteration}: the value targets exploded to a mean of {mean:.3g}, while the costliest "
                f"behaviour in the state domain is worth {self.worst_value:.3g}. The learning rate is the likely "
                "cause; lower --learning-rate. The last good checkpoint is kept."
            )


def worst_value(game: Game, settings: Settings) -> float:
    """A lower bound on any V: the largest cost rate in the domain, for ever, discounted."""
    generator = torch.Generator(device=settings.device).manual_seed(0)
    x = game.sample_domain(65536, generator)
    state_cost = (1.0 + settings.limit_cost) * float(game.state_cost(torch.cat([x, game.state_limits[None]])).max())
    action_cost = float(game.action_cost.cost(0.99 * game.input_limits[None]).max())
    return -(state_cost + 2.0 * action_cost) / max(game.discount_rate, 1e-3)


@contextmanager
def workers_of(settings: Settings) -> Iterator[ThreadPoolExecutor]:
    """Worker threads that each run Torch serially; one on a GPU."""
    with serial_torch():
        pool = ThreadPoolExecutor(settings.threads if settings.device == "cpu" else 1)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def start(
    robot_name: str, preset: str, settings: Settings, folder: Path, generated: str | None, report: Report
) -> None:
    """Train a new run in `folder`. SolverError when the folder already holds one."""
    if (folder / CHECKPOINT).exists():
        raise SolverError(
            f"{folder} already holds a run. Go on with `solver train --resume {folder}`, replace it with "
            "--overwrite, or give another folder with --out."
        )
    robot = load_robot(robot_name, settings.device, generated)
    save_run(folder, Run(robot_name, robot.hash, generated, preset, settings))
    trainer = Trainer(robot, settings)
    save_checkpoint(folder, trainer.checkpoint())
    train(trainer, folder, report)


def resume(folder: Path, report: Report) -> None:
    """Go on where the folder's checkpoint stands, with the run's own settings."""
    run = load_run(folder)
    robot = load_robot(run.robot, run.settings.device, run.generated)
    require_same_artifact(folder, run, robot)
    trainer = Trainer(robot, run.settings)
    trainer.restore(load_checkpoint(folder, run.settings.device))
    train(trainer, folder, report)


def require_same_artifact(folder: Path, run: Run, robot: CompiledRobot) -> None:
    """SolverError when the artifact is not the one the run was trained on."""
    if run.artifact_hash != robot.hash:
        raise SolverError(
            f"{folder} was trained on artifact {run.artifact_hash[:12]} of {run.robot}, but generated/{run.robot} is "
            f"now {robot.hash[:12]}: the model or modelgen changed since. Go back to the old ones or train anew."
        )


def train(trainer: Trainer, folder: Path, report: Report) -> None:
    """Iterate to the end, checkpoint after every iteration, log metrics and report each row."""
    settings = trainer.settings
    try:
        with closing(MetricsLog(folder, trainer.iteration)) as log, workers_of(settings) as workers:
            while trainer.iteration < settings.iterations:
                row = trainer.step(workers)
                last = trainer.iteration == settings.iterations
                if last or trainer.iteration % settings.evaluate_every == 0:
                    row |= trainer.evaluate()
                log.write(row)
                save_checkpoint(folder, trainer.checkpoint())
                report(row)
    except OSError as error:
        raise SolverError(
            f"cannot write metrics to {folder}: {error}. The last checkpoint is whole: free some space and go on "
            f"with `solver train --resume {folder}`."
        ) from error
