"""`solver robustness`: rollouts over a range of one or two parameters, as a figure, a JSON file and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.commands import MOST_JOBS, PlantOptions, announce
from solver.errors import SolverError

if TYPE_CHECKING:
    from solver.evaluation.statistics import ParameterRange
COMMON = ("runs", "parameter", "start", "end", "points", "plant", "observer", "estimate", "episodes", "out", "jobs")


@dataclass(frozen=True, kw_only=True)
class Options(PlantOptions):
    """The policies do not know what is changed, apart from the parameters that their training gave. Prints the lowest
    result of every group of runs, and writes a figure and a JSON file with all results."""

    runs: Annotated[list[Path], Positional, arg(metavar="RUN ...")]
    """Run folders, or policies of `solver policies`, of one robot. Runs that differ only by their seeds form one
    group."""
    parameter: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """The parameter to change, or two of them for a grid. By default every parameter that has a tolerance in the model
    file, one after the other, from -60 to +60 % in steps of 5 %."""
    start: Annotated[list[str], arg(name="from", metavar="CHANGE ...")] = field(default_factory=list)
    """First change of the range, one for all parameters or one for each: 0.5x multiplies the nominal value, -0.1 is
    added to it, in SI units."""
    end: Annotated[list[str], arg(name="to", metavar="CHANGE ...")] = field(default_factory=list)
    """Last change of the range, in the same form: 1.5x or +0.1."""
    points: list[Annotated[int, Range(2, 10_000)]] = field(default_factory=list)
    """Points of the range, one number for all parameters or one for each. By default 21, or 11 for each of two."""
    episodes: Annotated[int, Range(1, 100_000)] = 100
    """Rollouts of every run at every point."""
    out: Path | None = None
    """Figure and JSON file without their endings. By default
    runs/robustness-ROBOT-PLANT[-EFFECTS][-observer][-estimate-NAMES][-blind][-reactionK]-PARAMETERS."""
    jobs: Annotated[int | None, Range(1, MOST_JOBS)] = None
    """Processes of the rollouts on this machine, by default one a core. The results do not depend on it."""
    cluster: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers make the rollouts, as in `solver sweep`."""

    def ranges(self) -> list[ParameterRange]:
        """The ranges of the parameters; none without --parameter. Raises SolverError for changes that do not match."""
        from solver.commands.changes import read_range

        if not self.parameter:
            if self.start or self.end or self.points:
                raise SolverError("--from, --to and --points are of --parameter; name one, or leave them out")
            return []
        if not (self.start and self.end):
            raise SolverError(
                f"--parameter {' '.join(self.parameter)} needs --from and --to, for example 0.5x and 1.5x"
            )
        count = len(self.parameter)
        columns: dict[str, list[Any]] = {"--from": self.start, "--to": self.end}
        columns["--points"] = self.points or [21 if count == 1 else 11]
        for flag, values in columns.items():
            if len(values) not in (1, count):
                raise SolverError(f"{flag} has {len(values)} values for {count} parameters; give one, or one for each")
        start, end, points = (values * count if len(values) == 1 else values for values in columns.values())
        return [read_range(*row) for row in zip(self.parameter, start, end, points, strict=True)]


def run(options: Options) -> None:
    """Measure, write both files and print the table."""
    from solver.commands.changes import read_estimate
    from solver.evaluation.robustness import Trial, measure, measure_each, shares
    from solver.evaluation.robustness_figures import robustness_files, save_robustness
    from solver.jobs.engines import workers
    from solver.streams import EVALUATION_SEED

    trial = Trial(
        options.plant,
        options.effects,
        options.episodes,
        EVALUATION_SEED if options.seed is None else options.seed,
        options.reaction_periods,
        options.observer,
        read_estimate(options.estimate),
        options.blind,
    )
    if options.out is not None and (options.out.is_dir() or options.out.name in ("", "..")):
        raise SolverError(f"--out {options.out} is a folder; name the figure, for example {options.out / 'masses'}")
    stem = options.out or Path("runs") / "robustness"  # the default ends with the name of the robot
    require_writable({"--out": robustness_files(stem)[0]}, error=SolverError)
    ranges = options.ranges()
    with workers(options.jobs, options.cluster) as executor:
        way = (trial, options.generated, announce, executor)
        results = [measure(options.runs, ranges, *way)] if ranges else measure_each(options.runs, *way)
    files = save_robustness(results, trial, options.parameter, options.out)
    for each in results:
        print(*([] if ranges else [each.axes[0].parameter]), each.table(), sep="\n")
    for label, share in ({} if ranges else shares(results)).items():
        print(f"{label}: at least 95 % success at {100 * share:.0f} % of the points within 20 %")
    for folder in options.runs:
        if text := _told(folder, trial.estimate, options.blind):
            print(text)
    print(*files, sep="\n")


def _told(run: Path, estimate: Sequence[str], blind: bool) -> str:
    """What a policy was told; empty for one that is told nothing."""
    from solver.runs import kinds

    description = kinds.description_of(run)
    names = [name for name in description.told_names if name not in description.reference_names]
    values = "those of the point, held within the ranges of its training"
    if blind:
        values = "nominal"
    elif estimate:
        estimated = " ".join(kinds.names_to_estimate(run, estimate))
        values = f"{values}, but the observer's estimates for {estimated}"
    told = [f"{' '.join(names)}: {values}"] if names else []
    if description.reference_names:
        told.append(f"{' '.join(description.reference_names)}: random in every rollout")
    return f"{run} was told {'; '.join(told)}" if told else ""
