"""The kinds of run: what starts, resumes and loads them.

A run folder holds one description file, run.json or baseline.json, whose name says which kind of run it is. A kind of
run is one module with the functions of `Training`, and one line in KINDS.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from modelgen.errors import ReliabilityWarning, suggestion
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.rollouts import Controller
from solver.problem.problem import Problem
from solver.runs import folder as files
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT
from solver.runs.metrics import Report


class Settings(Protocol):
    """What the settings of every kind of run have."""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that they make."""

    @property
    def seed(self) -> int:
        """The seed of the training."""


@dataclass(frozen=True)
class Description(ABC):
    """What the description file says of a run. Each kind has its own subclass, with settings of its own."""

    robot: str
    artifact_hash: str  # of the artifact that the run is trained on
    generated: str | None  # the folder of that artifact, when one was named
    settings: Any  # a dataclass

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the run's folder, when the user gives none."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Iterations or actions until the training ends, in the units of the kind's counter."""

    def results(self) -> dict[str, Any]:
        """Everything that the results of a training depend on, as JSON has it; a checkpoint keeps a copy."""
        content: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        del content["generated"]
        for name in ("threads", "device"):
            content["settings"].pop(name, None)
        return content

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """The settings that the result depends on: two runs that agree in them give the same policy."""


class Training(Protocol):
    """The functions of a module that trains one kind of run."""

    def describe(self, robot: CompiledRobot, generated: str | None, **choices: Any) -> Description:
        """A new run on a robot from the folder `generated`. Raises SolverError for an unknown choice or setting."""

    def start(self, run: Description, folder: Path, report: Report) -> None:
        """Train a new run to its end, in place of a run in the folder."""

    def resume(self, folder: Path, report: Report) -> None:
        """Continue the run in a folder to its end, with its own settings."""

    def read(self, folder: Path) -> Description:
        """Read the description. Raises SolverError when it is missing or damaged."""

    def diagnosis(self, folder: Path) -> str:
        """A paragraph on a finished run that does not solve its task: what is seen, and what to try. Else nothing."""

    def load_controller(
        self, folder: Path, generated: str | None = None, reaction_periods: float | None = None
    ) -> tuple[Problem, Controller, str]:
        """Load the policy of the last checkpoint; see `load_controller` below."""


@dataclass(frozen=True)
class Kind:
    """One kind of run."""

    description: str  # the file by which a folder is recognised
    module: str  # has the functions of `Training`; imported when a run of this kind is at hand
    algorithms: tuple[str, ...]  # the names by which a user asks for it
    command: str  # of `solver`, that starts and resumes it
    counter: str  # the entry of its checkpoint and of its metrics that says how far the training has come
    unit: str  # what the counter counts
    files: tuple[str, ...] = ()  # what it writes besides description, checkpoint, metrics and figures

    @property
    def training(self) -> Training:
        """The module."""
        return cast(Training, import_module(self.module))

    def done(self, folder: Path) -> int:
        """How far the training in a folder has come, in units of the counter. Raises SolverError for damage."""
        return int(files.load_checkpoint(folder, keys=(self.counter,))[self.counter])


#: The table of kinds. To add one, write its module and a line here.
KINDS = [
    Kind("run.json", "solver.training.kind", ("rfvi", "cfvi"), "train", "iteration", "iteration"),
    Kind(
        "baseline.json",
        "solver.lab.baselines.training",
        ("sac", "ddpg", "ppo"),
        "baseline",
        "steps",
        "action",
        files=("model.zip",),
    ),
]


def kind_in(folder: str | Path) -> Kind | None:
    """The kind of run that a folder holds, or None."""
    return next((kind for kind in KINDS if (Path(folder) / kind.description).is_file()), None)


def kind_of(folder: str | Path, command: str | None = None) -> Kind:
    """The kind of run that a folder holds.

    command: the command of the kind that the caller needs. Raises SolverError when the folder holds no run, or a run of
    another kind.
    """
    kind, wanted = kind_in(folder), [each for each in KINDS if command in (None, each.command)]
    if kind is None:
        names = " or ".join(each.description for each in wanted)
        parent = Path(folder).parent
        runs = [str(path.parent) for each in wanted for path in parent.glob(f"*/{each.description}")]
        runs += shipped.names()
        commands = " or ".join(f"`solver {each.command}`" for each in wanted)
        raise SolverError(
            f"{folder} is not a run folder: it has no {names}.{suggestion(str(folder), runs)} Name a folder that "
            f"{commands} wrote, or one of `solver policies`."
        )
    if kind not in wanted:
        raise SolverError(
            f"{folder} holds a run of `solver {kind.command}`, and this needs one of `solver {wanted[0].command}`. "
            f"Test its policy with `solver evaluate {folder}`, or continue it with "
            f"`solver {kind.command} --resume {folder}`."
        )
    return kind


def kind_that_trains(algorithm: str) -> Kind:
    """The kind of run that an algorithm makes. Raises SolverError for an unknown algorithm."""
    known = {name: kind for kind in KINDS for name in kind.algorithms}
    if algorithm not in known:
        raise SolverError(
            f"unknown algorithm '{algorithm}'.{suggestion(algorithm, known)} Algorithms: {', '.join(known)}"
        )
    return known[algorithm]


def remove_run(folder: Path) -> None:
    """Delete the run in a folder, of whatever kind. Files of others stay."""
    files.remove_run(folder, [name for kind in KINDS for name in (kind.description, *kind.files)])


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run, or what is left of one."""
    return kind_in(folder) is not None or (folder / CHECKPOINT).exists()


def start(
    kind: Kind,
    run: Description,
    folder: Path,
    report: Report,
    overwrite: bool = False,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Train a new run in `folder`, which no other process can train in meanwhile.

    before: called before the training and after the checks of the folder. Raises SolverError when the folder holds a
    run that must not be replaced, or when another process trains in it.
    """
    with files.owned(folder):
        files.require_free(folder, kind.command, overwrite)
        before()
        kind.training.start(run, folder, report)


def resume(folder: Path, report: Report) -> None:
    """Continue the run in a folder to its end, with its own settings.

    Raises SolverError when the folder holds no run, a damaged one, or one of another artifact, and when another process
    trains in it.
    """
    kind = kind_of(folder)
    with files.owned(folder):
        kind.training.resume(folder, report)


def warn_unfinished(run: str | Path) -> None:
    """Give a ReliabilityWarning where the training of a run folder has not come to its end."""
    if shipped.is_shipped(run):
        return
    folder, kind = Path(run), kind_of(run)
    done, length = kind.done(folder), kind.training.read(folder).length
    if done < length:
        warnings.warn(
            f"the training in {folder} has come to {done} of {length} {kind.unit}s, and this is the policy so far. "
            f"`solver {kind.command} --resume {folder}` continues it",
            ReliabilityWarning,
            stacklevel=3,
        )


def load_controller(
    folder: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> tuple[Problem, Controller, str]:
    """Load a run's policy for rollouts: the nominal problem, the controller, and a label.

    folder: of the run, or the name of a policy that ships with the package.
    generated: the folder of artifacts when it has moved. reaction_periods: control periods that an input acts before
    the next one can, by default as in training. The label names everything that was chosen but the seed, and where the
    training stopped before its end: runs that differ by their seeds only have the same label.

    Raises SolverError for a folder without a run, a damaged checkpoint, another artifact, and reaction_periods for a
    run without a value function.
    """
    folder = shipped.run_folder(folder)
    return kind_of(folder).training.load_controller(folder, generated, reaction_periods)
