"""The kinds of run, and the functions that start, resume and load them.

A run folder holds one description file, run.json or baseline.json. The name of this file is the kind of the run. A kind
is one module with the functions of `Training`, and one line in KINDS.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

from modelgen.errors import in_shell, suggestion, warn
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.outcome import Controller
from solver.problem import Problem
from solver.problem.parameters import TOLD, Change, expanded, names_in, require_told_names
from solver.problem.robots import warn_of_rebuild
from solver.runs import folder as files
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT, METRICS
from solver.runs.metrics import Report


class RolloutPolicy(NamedTuple):
    """Policy of a run, ready for rollouts."""

    problem: Problem  # nominal
    act: Controller
    label: str


@dataclass(frozen=True)
class Description(ABC):
    """Content of the description file of a run. Each kind has its own subclass and its own settings."""

    robot: str
    artifact_hash: str  # of the artifact of the training
    generated: str | None  # folder of that artifact, if the user named one
    settings: Any  # a dataclass with `algorithm` and `seed`

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the run folder if the user gives none."""

    @property
    def told_names(self) -> tuple[str, ...]:
        """Names of the parameters that the policy is told; none for most runs."""
        return ()

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of the references among them, which nobody estimates."""
        return ()

    def told_among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that are parameters which the policy is told."""
        return tuple(name for name in names if name in self.told_names)

    @property
    def label(self) -> str:
        """Robot and algorithm, in figures and tables."""
        return f"{self.robot}-{self.settings.algorithm}"

    def label_at(self, done: int, unit: str) -> str:
        """Label with the progress of the training, unless it has ended."""
        return self.label if done == self.length else f"{self.label} (after {done} of {self.length} {unit})"

    @property
    @abstractmethod
    def length(self) -> int:
        """Iterations or actions until the training ends, in the unit of the kind's counter."""

    def results(self) -> dict[str, Any]:
        """Everything that the results of a training depend on, as in JSON. A checkpoint has a copy."""
        content: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        del content["generated"]
        for name in ("threads", "device"):
            content["settings"].pop(name, None)
        return content

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Settings that the policy depends on: runs with equal robots, artifacts and identities have equal policies."""

    def identity_but_seed(self) -> str:
        """Identity without the seed, as JSON: it is equal for runs that differ by their seeds only."""
        settings = {name: value for name, value in comparable(self).items() if name != "seed"}
        return json.dumps(settings, sort_keys=True)


def comparable(run: Description) -> dict[str, Any]:
    """Identity of a run with whole numbers as floats, because 1 and 1.0 are the same setting."""
    return {name: float(value) if type(value) is int else value for name, value in run.identity().items()}


class Training(Protocol):
    """Functions of a module that trains one kind of run."""

    def describe(self, robot: CompiledRobot, generated: str | None, **choices: Any) -> Description:
        """Description of a new run. Raises SolverError for an unknown choice or setting."""

    def start(self, run: Description, folder: Path, report: Report, robot: CompiledRobot | None = None) -> None:
        """Train a new run to its end. Replaces a run in the folder.

        robot: the run's robot with float32 kernels on the CPU and the run's parameters, if the caller has it open.
        """

    def resume(self, folder: Path, report: Report) -> None:
        """Continue the run in a folder to its end, with its own settings."""

    def read(self, folder: Path) -> Description:
        """Description in a folder. Raises SolverError if it is missing or damaged."""

    def diagnosis(self, folder: Path) -> str:
        """Paragraph on a finished run that does not solve its task, with changes to try. Empty for other runs."""

    def load_rollout_policy(
        self,
        folder: Path,
        generated: str | None = None,
        reaction_periods: float | None = None,
        told: Mapping[str, Change] = MappingProxyType({}),
        contexts: bool = False,
    ) -> RolloutPolicy:
        """Policy of the last checkpoint; see `load_rollout_policy` below.

        told, contexts: given only for a run whose description has `told_names`.
        """


@dataclass(frozen=True)
class Kind:
    """One kind of run."""

    description: str  # name of the description file
    module: str  # with the functions of `Training`; imported when a run of this kind is used
    algorithms: tuple[str, ...]
    command: str  # of `solver`, which starts and resumes it
    counter: str  # entry of checkpoint and metrics that holds the progress of the training
    unit: str  # of the counter
    files: tuple[str, ...] = ()  # written besides description, checkpoint, metrics and figures

    @property
    def training(self) -> Training:
        """The imported module."""
        return cast(Training, import_module(self.module))

    def done(self, folder: Path) -> int:
        """Progress of the training in a folder, in units of the counter. Raises SolverError for damage."""
        begun = (folder / CHECKPOINT).exists()
        return int(files.load_checkpoint(folder, keys=(self.counter,))[self.counter]) if begun else 0


#: The table of kinds. To add one, write its module and a line here.
KINDS = [
    Kind("run.json", "solver.training.lifecycle", ("rfvi", "cfvi"), "train", "iteration", "iteration"),
    Kind(
        "baseline.json",
        "solver.lab.baselines.lifecycle",
        ("sac", "ddpg", "ppo"),
        "baseline",
        "steps",
        "action",
        files=("model.zip",),
    ),
    Kind("classical.json", "solver.lab.baselines.classical", ("energy", "tvlqr"), "classical", "steps", "attempt"),
]


def kind_in(folder: str | Path) -> Kind | None:
    """Kind of the run in a folder, or None."""
    try:
        return next((kind for kind in KINDS if (Path(folder) / kind.description).is_file()), None)
    except OSError:  # a name that no folder can have
        return None


def kind_of(folder: str | Path, command: str | None = None) -> Kind:
    """Kind of the run in a folder.

    command: accepts only the kind that this command of `solver` trains. Raises SolverError if the folder holds no run,
    or a run of another kind.
    """
    kind, wanted = kind_in(folder), [other for other in KINDS if command in (None, other.command)]
    if kind is None:
        names = " or ".join(other.description for other in wanted)
        parent = Path(folder).parent
        runs = [str(path.parent) for other in wanted for path in parent.glob(f"*/{other.description}")]
        runs += shipped.names()
        commands = " or ".join(f"`solver {other.command}`" for other in wanted)
        raise SolverError(
            f"{folder} is not a run folder: it has no {names}.{suggestion(str(folder), runs)} Name "
            f"a folder that {commands} wrote, or one of `solver policies`."
        )
    if kind not in wanted:
        raise SolverError(
            f"{folder} holds a run of `solver {kind.command}`, and this needs one of `solver {wanted[0].command}`. "
            f"Test its policy with `solver evaluate {in_shell(folder)}`, or continue it with "
            f"`solver {kind.command} --resume {in_shell(folder)}`."
        )
    return kind


def kind_that_trains(algorithm: str) -> Kind:
    """Kind of run of an algorithm. Raises SolverError for an unknown algorithm."""
    known = {name: kind for kind in KINDS for name in kind.algorithms}
    if algorithm not in known:
        raise SolverError(
            f"unknown algorithm '{algorithm}'.{suggestion(algorithm, known)} Algorithms: {', '.join(known)}"
        )
    return known[algorithm]


def remove_run(folder: Path) -> None:
    """Delete the files of the run in a folder, of any kind. Other files stay."""
    files.remove_run(folder, _written())


def _written() -> list[str]:
    """Files of runs besides checkpoint and metrics."""
    return [name for kind in KINDS for name in (kind.description, *kind.files)]


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run or a checkpoint."""
    return kind_in(folder) is not None or (folder / CHECKPOINT).exists()


def start(
    kind: Kind,
    run: Description,
    folder: Path,
    report: Report,
    overwrite: bool = False,
    before: Callable[[], None] = lambda: None,
    robot: CompiledRobot | None = None,
) -> None:
    """Train a new run in `folder`, which stays locked for other processes.

    before: called after the checks of the folder and before the training. robot: as in `Training.start`. Raises
    SolverError if the folder cannot be written, if it holds a run that must not be replaced, or if another process
    trains in it.
    """
    with files.owned(folder):
        files.require_free(folder, kind.command, overwrite)
        if not holds_run(folder):
            files.require_own(folder, _written())
        before()
        kind.training.start(run, folder, _watched(run, report), robot)


def resume(folder: Path, report: Report) -> None:
    """Continue the run in a folder to its end, with its own settings; begin one that has only its description.

    Raises SolverError if the folder holds no run, a damaged run or a run of another artifact, and if another process
    trains in it.
    """
    training = kind_of(folder).training
    with files.owned(folder):
        run = training.read(folder)
        if any((folder / name).exists() for name in (CHECKPOINT, METRICS)):  # a lost checkpoint is an error
            training.resume(folder, _watched(run, report))
        else:
            training.start(run, folder, _watched(run, report))


def _watched(run: Description, report: Report) -> Report:
    """The report of a training, after which the artifact is compared with the one that the training began with."""

    def after(row: dict[str, float]) -> None:
        report(row)
        warn_of_rebuild(run.robot, run.generated, run.artifact_hash)

    return after


def warn_unfinished(run: str | Path) -> None:
    """Give a ReliabilityWarning if the training of a run folder has not ended."""
    if shipped.is_shipped(run):
        return
    folder, kind = Path(run), kind_of(run)
    done, length = kind.done(folder), kind.training.read(folder).length
    if done < length:
        warn(
            f"the training in {folder} has {done} of {length} {kind.unit}s; this is its policy so far. "
            f"`solver {kind.command} --resume {in_shell(folder)}` continues it"
        )


def load_rollout_policy(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    told: Mapping[str, Change] = MappingProxyType({}),
    contexts: bool = False,
) -> RolloutPolicy:
    """Policy of a run for rollouts: the nominal problem, the controller, and the label.

    folder: of the run, or the name of a shipped policy. generated: the folder of artifacts if it has moved.
    reaction_periods: control periods that an input acts before the next one can, by default as in training.
    told: parameters that the policy is told, where its training gave some. They are then the nominal ones of the
    problem. contexts: instead, the policy of a run that is told parameters takes rows with contexts, and the problem
    has them.

    Raises SolverError for a folder without a run, a damaged checkpoint, another artifact, for `reaction_periods` of a
    run without a value function, and for a parameter that the policy cannot be told.
    """
    name, folder = folder, shipped.run_folder(folder)
    training = kind_of(folder).training
    names = training.read(folder).told_names
    require_told_names(name, names, told)
    if contexts and names:
        return training.load_rollout_policy(folder, generated, reaction_periods, contexts=True)
    if told:
        return training.load_rollout_policy(folder, generated, reaction_periods, told)
    return training.load_rollout_policy(folder, generated, reaction_periods)


def description_of(folder: str | Path) -> Description:
    """Description of a run, or of a shipped policy by its name."""
    folder = shipped.run_folder(folder)
    return kind_of(folder).training.read(folder)


def told_and_untold(folder: str | Path, changes: Mapping[str, Change]) -> tuple[dict[str, Change], dict[str, Change]]:
    """Changes of the parameters that the policy of a run is told, and of the others."""
    names = description_of(folder).told_names
    told = {name: change for name, change in changes.items() if name in names}
    return told, {name: change for name, change in changes.items() if name not in names}


def names_to_estimate(folder: str | Path, names: Iterable[str]) -> tuple[str, ...]:
    """The names of parameters that an observer estimates, with those that the policy of a run is told for TOLD.

    Raises SolverError if there is TOLD, but the policy is told no parameter.
    """
    names = names_in(names)
    if TOLD not in names:
        return names
    run = description_of(folder)
    return expanded(names, tuple(name for name in run.told_names if name not in run.reference_names), folder)
