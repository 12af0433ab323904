"""The commands of `solver`, one file each: each with a dataclass `Options` and a function `run`. cli.py lists them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from modelgen.commandline import Range
from modelgen.commandline.program import FAILED, INTERRUPTED, USAGE
from solver.errors import SolverError
from solver.plants import PlantName, all_effects
from solver.streams import SEEDS

if TYPE_CHECKING:
    from solver.lab.reproduction.runs import Failure

MOST_JOBS = 1024  # processes at once

__all__ = ["FAILED", "INTERRUPTED", "USAGE"]  # of every program


@dataclass(frozen=True, kw_only=True)
class PlantOptions:
    """The plant of the rollouts, and what the policies are told there."""

    plant: PlantName = "nominal"
    """`nominal` is the model, `euler` the model with the authors' integrator, `harsh` the model with the drive and the
    sensors of a small laboratory robot, `mujoco` another engine."""
    harsh: Annotated[list[str] | None, arg(metavar="[EFFECT[=MULTIPLEx] ...]")] = None
    """Effects of the harsh plant: delay, saturation, backlash, stiction, encoder, noise; noise=2x doubles the noise. By
    default all effects."""
    observer: bool = False
    """Estimate the state from measurements and inputs, and predict it over the delay. Without an observer the policy
    gets the measurements: on the harsh plant, encoder positions and their filtered differences."""
    estimate: Annotated[list[str] | None, arg(metavar="[NAME ...]")] = None
    """Parameters that the observer estimates too, with --observer: their names, `all`, or `told`. A run of `solver
    train --given` is told the estimates in every control period. No name means `told`: what that run is told."""
    blind: bool = False
    """Tell the policy the nominal parameters, and not the changed ones. It matters for runs of `solver train --given`
    only."""
    reaction_periods: Annotated[float | None, Range(0.0, 100.0)] = None
    """Control periods that an input acts before the next one can: 1 for a zero-order hold, 2 with one period of sensor
    delay. The policy takes this time into account. 0 is the closed form of continuous time. By default as in
    training."""
    seed: Annotated[int | None, Range(0, SEEDS - 1)] = None
    """Seed of the starts and of the noise of the harsh plant. By default all runs have the same one. A training
    chooses its V from other starts."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""

    @property
    def effects(self) -> tuple[str, ...]:
        """The words of --harsh. Raises SolverError where it stands alone and the plant has no effects."""
        if self.harsh is not None and not all_effects(self.plant, self.harsh):
            raise SolverError(f"--harsh is for --plant harsh, and not for the {self.plant} plant; give both, or none")
        return tuple(self.harsh or ())


@dataclass(frozen=True, kw_only=True)
class ManyTrainings:
    """How many trainings run, and where."""

    jobs: Annotated[int | None, Range(1, MOST_JOBS)] = None
    """Simultaneous trainings on this machine, by default one a core. They share the cores."""
    cluster: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786: its workers train, one thread each. They must see the
    folder of the runs."""
    preview: Annotated[float, Range(0.0, 86_400.0)] = 20.0
    """Seconds of a search for a motion to the target of every robot before the trainings, as in `solver train`."""
    unheld_target: bool = False
    """Train for targets that no input within the limits holds."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""

    @property
    def threads(self) -> int:
        """Threads of a training."""
        return 1 if self.cluster or self.jobs is None else max(1, (os.cpu_count() or 1) // self.jobs)

    @property
    def ways(self) -> dict[str, Any]:
        """How `solver.lab.reproduction.runs.run_plan` trains."""
        names = ("jobs", "cluster", "preview", "unheld_target")
        return {"announce": say, **{name: getattr(self, name) for name in names}}


def say(text: str) -> None:
    """Print a line on the progress."""
    print(text, file=sys.stderr, flush=True)


def show_failures(failures: Sequence[Failure]) -> int:
    """Print the trainings that failed. Returns the exit code."""
    for failure in failures:
        t = failure.training
        say(f"error: {t.method}, {t.robot}, seed {t.seed} {failure.reason}")
    return FAILED if failures else 0


def announce(text: str) -> None:
    """Print a line on the progress to a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
