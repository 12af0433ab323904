"""Python interface: `train` a policy, `load` a run, and the functions of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from modelgen.errors import abridged, checked, warn, worded
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation import Evaluation, evaluate
from solver.plants import PlantName
from solver.policy import Policy, Value, load_policy, load_value
from solver.preflight import Preflight, preflight
from solver.problem.parameters import Change, GivenRanges
from solver.problem.robots import load_robot
from solver.runs.folder import ARTIFACT
from solver.runs.kinds import (
    Description,
    Kind,
    kind_of,
    kind_that_trains,
    names_to_estimate,
    start,
    warn_unfinished,
)
from solver.runs.kinds import resume as resume_run
from solver.runs.metrics import Pace, Report, pace, read_metrics
from solver.runs.shipped import is_shipped, named, require_no_shipped, run_folder
from solver.training.lifecycle import Adversaries, plan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from solver.certification import Certificate
    from solver.evaluation.trajectory import Trajectory
    from solver.jax.solution import JaxSolution
    from solver.oracles.limit import Limit

Format = Literal["c", "onnx", "js", "fmu"]
Callback = Callable[[dict[str, float]], bool | np.bool_ | None]
#: Choices of value iteration alone, and what they are where nothing is chosen.
PLANNED = {"adversaries": None, "identified": None, "given": (), "start_from": None, "preset": "fast"}


class Run:
    """A training in a run folder, or a policy that ships with the package."""

    @checked(SolverError)
    def __init__(self, folder: str | PathLike[str], generated: str | None = None) -> None:
        """Open a folder, or a shipped policy by its name. generated: folder of artifacts if it has moved.

        Raises SolverError for a folder without a run and for a damaged description.
        """
        self.name, self.generated = named(folder, generated)
        self.folder = run_folder(self.name)
        self._kind = kind_of(self.folder)
        self.description: Description = self._kind.training.read(self.folder)

    def __repr__(self) -> str:
        done, length = self._kind.done(self.folder), self.description.length
        state = "finished" if done >= length or is_shipped(self.name) else f"{done} of {length} {self._kind.unit}s"
        return f"<solver run {self.name}: {self.description.robot}, {self.settings.algorithm}, {state}>"

    def __fspath__(self) -> str:
        """What names the run: functions that take a run folder take a run."""
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.name, self.generated)

    @property
    def settings(self) -> Any:
        """Settings of the training."""
        return self.description.settings

    @cached_property
    def robot(self) -> CompiledRobot:
        """Robot with float64 kernels and the parameters that the policy was trained on."""
        run, nominal = self.description, getattr(self.description, "nominal", ())  # identified parameters
        return load_robot(run.robot, "cpu", self.generated or run.generated, nominal).with_kernels()

    @cached_property
    def policy(self) -> Policy:
        """Policy as a function of arrays: `run.policy(x)` maps (N, n) or (n,) to inputs (N, m) or (m,)."""
        return load_policy(self.folder, self.generated)

    @cached_property
    def value(self) -> Value:
        """Value function as a function of arrays: `run.value(x)` gives V (N,) and dV/dx (N, n)."""
        return load_value(self.folder, self.generated)

    @checked(SolverError)
    def to_jax(self, dtype: str = "float32") -> JaxSolution:
        """Policy and value function as pure functions of JAX: `f = run.to_jax(); f.policy(x); jax.grad(f.value)(x)`.

        dtype: float32 or float64, of the results. Those of a family are told parameters: `f.policy(x, mass=1.3)`.
        Raises SolverError without JAX, and for a run without a value function.
        """
        from solver.jax.solution import make
        from solver.training.solution import load_solution

        return make(load_solution(self.folder, self.generated, contexts=True), dtype)

    @property
    def metrics(self) -> list[dict[str, float]]:
        """Metrics of every iteration."""
        return read_metrics(self.folder)

    @property
    def pace(self) -> Pace | None:
        """Seconds until the policy had 99 % of its final return; None before the first evaluation."""
        return pace(self.metrics)

    @property
    def diagnosis(self) -> str:
        """Paragraph on a finished run that does not solve its task, with changes to try; empty for other runs."""
        return worded(self._kind.training.diagnosis(self.folder))

    def evaluate(
        self,
        parameters: Mapping[str, Change] = MappingProxyType({}),
        plant: PlantName = "nominal",
        episodes: int = 100,
        **options: Any,
    ) -> Evaluation:
        """Statistics of rollouts on a plant whose parameters may differ from the model's; see `solver.evaluate`."""
        return evaluate(self, parameters=parameters, plant=plant, episodes=episodes, **options)

    def simulate(
        self, x0: ArrayLike | Mapping[str, float] | None = None, seconds: float | None = None, **options: Any
    ) -> Trajectory:
        """Trajectory of the robot under the policy from one state; see `solver.simulate`."""
        from solver.evaluation.trajectory import simulate

        return simulate(self, x0, seconds, **options)

    @checked(SolverError)
    def certify(self, specification: str | Path | None = None, seed: int = 0) -> Certificate:
        """Bound on the failure probability and the worst case, under a specification file or the task's own."""
        from solver.certification import certify

        return certify(self.folder, None if specification is None else Path(specification), seed, self.generated)

    @checked(SolverError)
    def limit(
        self, guesses: int = 24, starts: int = 5, parameters: Mapping[str, Change] = MappingProxyType({})
    ) -> Limit:
        """Best return of trajectory optimisation, and the gap of this run to it."""
        from solver.oracles.limit import find_limit

        return find_limit(self.name, parameters, guesses, 0, self.generated, starts)

    @checked(SolverError)
    def plot(
        self,
        directory: str | Path | None = None,
        joint: str | None = None,
        parameters: Mapping[str, Change] = MappingProxyType({}),
    ) -> list[Path]:
        """Figures of the value function, the policy, rollouts and the learning curve. Returns their paths.

        directory: by default `figures` in the run folder. joint: coordinate of the maps. parameters: changed ones, in
        the rollouts. Raises SolverError for an unknown joint or parameter.
        """
        from solver.evaluation.plots import plot_run

        place = None if directory is None else Path(directory)
        return plot_run(Path(self.name), joint, parameters, self.generated, place)

    @checked(SolverError)
    def export(
        self,
        directory: str | Path,
        *formats: Format,
        observer: bool = False,
        fmi: int = 3,
        estimate: Sequence[str] = (),
        told: Mapping[str, Change] = MappingProxyType({}),
    ) -> list[Path]:
        """Files of the policy in a directory: C99, ONNX, JavaScript or an FMU. Returns their paths.

        directory: for "onnx", "js" or "fmu" alone also the file itself, such as "policy.onnx". observer: with "c" and
        "fmu", the observer too. fmi: version of an FMU, 2 or 3. estimate: parameters that the observer in "c"
        estimates, as in `load_controller`. told: parameters that the policy is told, where its training gave some: the
        files hold the policy of this robot. Without, the files of a family are told them when they are used. Raises
        SolverError for an unknown format, a file where a folder is needed, and a parameter that the policy cannot be
        told.
        """
        from solver.export import places, policy_files, require_formats
        from solver.runs.folder import write_bytes
        from solver.training.solution import load_solution

        estimate = names_to_estimate(self.name, estimate)
        require_formats(formats, observer, estimate)
        warn_unfinished(self.name)
        solution = load_solution(self.name, self.generated, told=told, contexts=not told)
        where = places(Path(directory), formats, solution.problem.robot.name)
        files = policy_files(solution, where, observer, fmi, estimate)
        for path, content in files.items():
            write_bytes(path, content)
        return list(files)


@checked(SolverError, "adversaries", "robot")
def train(
    robot: str | Path | CompiledRobot,
    *,
    algorithm: str = "rfvi",
    adversaries: Adversaries | None = None,
    preset: str = "fast",
    out: str | Path | None = None,
    overwrite: bool = False,
    generated: str | None = None,
    identified: str | Path | None = None,
    given: GivenRanges = (),
    start_from: str | PathLike[str] | None = None,
    preview: float = 20.0,
    unheld_target: bool = False,
    callback: Callback = lambda _: None,
    **settings: Any,
) -> Run:
    """Train a policy for a robot.

    robot: name of a built robot, or a robot of `modelgen.compile`, whose artifact then lies in the run folder.
    algorithm: rfvi, cfvi (without adversaries), sac, ddpg or ppo. adversaries: in place of the preset's, for example
    [solver.Parameters(0.03), solver.Action(0.3)]. out: run folder, by default one below runs/ with robot, algorithm,
    preset and seed in its name. overwrite: replace a run in that folder. generated: folder of artifacts.
    identified: file of `modelgen identify`. given: parameters that the policy is told, for example ["mass"] within the
    bounds of the model file, or {"mass": (0.5, 1.5)}; see docs/how-to/train-a-family.md. start_from: run whose value
    function the training begins with. preview: seconds of the search for a motion to the target before the training, 0
    for none. unheld_target: train for a target that no input within the limits holds. callback: called with the metrics
    of every iteration. The training ends after the iteration in which it returns True, and `resume` continues it.
    settings: any of `solver.Settings` by name.

    Warnings of the checks before the training are given with `warnings`. Raises SolverError for an unknown name, a
    folder with a run or a target that no input holds, ModelError for an unknown robot, DivergenceError if the training
    diverges.
    """
    new = new_training(
        robot,
        algorithm=algorithm,
        adversaries=adversaries,
        preset=preset,
        out=out,
        generated=generated,
        identified=identified,
        given=given,
        start_from=start_from,
        preview=preview,
        unheld_target=unheld_target,
        **settings,
    )
    with stoppable(callback) as report:
        new.start(report, overwrite)
    return Run(new.folder)


def _give(checks: Preflight) -> None:
    """Give the warnings of some checks with `warnings`."""
    for text in checks.warnings:
        warn(text)


@dataclass(frozen=True)
class NewTraining:
    """A training that is planned and has not begun."""

    kind: Kind
    description: Description
    folder: Path
    robot: CompiledRobot  # with float32 kernels on the CPU and the parameters of the training
    check: Callable[[], Preflight]  # of value iteration: raises SolverError for a training that must fail

    def start(self, report: Report, overwrite: bool = False, say: Callable[[Preflight], None] = _give) -> None:
        """Check and train. say: gets what the checks found."""
        run, before = self.description, lambda: say(self.check())
        start(self.kind, run, self.folder, report, overwrite, before, self.robot)


def new_training(
    robot: str | Path | CompiledRobot,
    *,
    algorithm: str = "rfvi",
    out: str | Path | None = None,
    generated: str | None = None,
    preview: float = 20.0,
    unheld_target: bool = False,
    **choices: Any,
) -> NewTraining:
    """A training of any kind, its folder and its checks; the arguments are those of `train`, whose errors it raises.

    Another algorithm than value iteration takes none of adversaries, identified, given, start_from and preset.
    """
    kind, artifact = kind_that_trains(algorithm), None
    if isinstance(robot, CompiledRobot):
        artifact, generated, robot = robot.folder, str(robot.folder.parent), robot.name
    elif isinstance(robot, str | PathLike):
        robot = fspath(robot)
    else:
        raise SolverError(
            f"robot is {abridged(repr(robot))}; give the name of a built robot, or modelgen.compile(robot)"
        )
    if kind.command != "train":
        refused = [name for name, usual in PLANNED.items() if (choices.pop(name, usual) or usual) != usual]
        refused += [] if artifact is None else ["robot of modelgen.compile"]
        if refused:
            raise SolverError(
                f"{algorithm} takes no {' and no '.join(refused)}: leave it out, use modelgen.build, or train rfvi"
            )
        compiled = load_robot(robot, "cpu", generated)
        described = kind.training.describe(compiled, generated, algorithm=algorithm, **choices)
        folder = Path("runs") / described.name if out is None else Path(out)
        return NewTraining(kind, described, folder, compiled, lambda: Preflight((), ()))
    compiled, run = plan(robot, generated, algorithm=algorithm, **choices)
    folder = Path("runs") / run.name if out is None else Path(out)
    if artifact is not None:
        run = replace(run, generated=str(folder / ARTIFACT))
    return NewTraining(kind, run, folder, compiled, lambda: preflight(compiled, run, preview, unheld_target))


class _Stop(Exception):
    """A callback has ended the training."""


@contextmanager
def stoppable(callback: Callback) -> Iterator[Report]:
    """A report of a training that leaves the block when the callback returns True."""

    def report(row: dict[str, float]) -> None:
        stop = callback(row)
        if isinstance(stop, bool | np.bool_) and stop:
            raise _Stop

    with suppress(_Stop):
        yield report


@checked(SolverError)
def resume(folder: str | PathLike[str], callback: Callback = lambda _: None) -> Run:
    """Continue the run in a folder to its end, with its own settings. callback: as in `train`.

    Raises SolverError if the folder holds no run, or one that is damaged or of another artifact.
    """
    folder = fspath(folder)
    require_no_shipped(folder)
    with stoppable(callback) as report:
        resume_run(Path(folder), report)
    return Run(folder)


@checked(SolverError)
def plot(
    run: str | Path | Run,
    directory: str | Path | None = None,
    joint: str | None = None,
    parameters: Mapping[str, Change] = MappingProxyType({}),
) -> list[Path]:
    """Figures of a run folder, of a shipped policy by its name, or of a run; see `Run.plot`."""
    return (run if isinstance(run, Run) else Run(run)).plot(directory, joint, parameters)


@checked(SolverError)
def page(*runs: str | Path | Run, out: str | Path) -> Path:
    """HTML file in which one can push a robot under one to four policies: run folders, shipped names or runs.

    Raises SolverError for runs of several robots and for a robot without a drawing.
    """
    from solver.export.page_export import emit
    from solver.runs.folder import write_bytes
    from solver.training.solution import load_solution

    loaded = [run if isinstance(run, Run) else Run(run) for run in runs]
    solutions = [load_solution(run.folder, run.generated, contexts=True) for run in loaded]
    write_bytes(Path(out), emit(solutions).encode())
    return Path(out)


@checked(SolverError)
def load(run: str | PathLike[str], generated: str | None = None) -> Run:
    """The run in a folder, or a shipped policy by its name, for example `solver.load("pendulum-rfvi")`."""
    return Run(run, generated)
