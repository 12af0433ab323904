"""`solver robustness`: runs over a range of one or two parameters, as a figure, a JSON file and a table."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from modelgen.commandline.options import Argument
from solver.errors import SolverError
from solver.plants import PlantName

if TYPE_CHECKING:
    from solver.evaluation.parameter_box import ParameterRange
    from solver.evaluation.robustness import Robustness

WORDS = {
    "return_25": "25th percentile of the return",
    "return_50": "median return",
    "return_mean": "mean return",
    "return_worst": "return of a single rollout",
    "success_rate": "success rate, %",
}


@dataclass(frozen=True)
class Options:
    """The policies are not told what is changed. Prints the lowest result of each group of runs, and writes a figure
    and a JSON file with all of them."""

    runs: Annotated[list[Path], Argument(positional=True, metavar="RUN")]
    """Run folders, or policies of `solver policies`, of one robot. Runs that differ only by their seeds form one
    group."""
    parameter: Annotated[list[str], Argument(metavar="NAME")]
    """The parameter to change, or two of them for a grid."""
    start: Annotated[list[float], Argument("from")]
    """First multiple of the nominal value: one number, or one for each parameter."""
    end: Annotated[list[float], Argument("to")]
    """Last multiple of the nominal value: one number, or one for each parameter."""
    points: list[int] = field(default_factory=list)
    """Points of the range: one number, or one for each parameter. By default 21, or 11 for each of two."""
    offset: bool = False
    """Add --from and --to to the nominal value, in its SI unit, instead of multiplying by them."""
    plant: PlantName = "nominal"
    """The plant, as in `solver evaluate`."""
    harsh: Annotated[list[str], Argument(metavar="EFFECT[=MULTIPLEx]")] = field(default_factory=list)
    """Effects of the harsh plant, as in `solver evaluate`."""
    observer: bool = False
    """Give the policies the states of an observer, as in `solver evaluate`."""
    reaction_periods: float | None = None
    """Control periods that an input acts, as in `solver evaluate`, for every run."""
    episodes: int = 100
    """Rollouts of every run at every point."""
    seed: int | None = None
    """Seed of the starts and of the harsh plant's noise. By default the one of the evaluations in training."""
    out: Path | None = None
    """Figure and JSON file without their endings. By default
    runs/robustness-ROBOT-PLANT[-EFFECTS][-observer][-reactionK]-PARAMETERS."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Processes that make the rollouts on this machine. The results do not depend on it."""
    cluster: Annotated[str | None, Argument(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers make the rollouts, as in `solver sweep`."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""

    def ranges(self) -> list[ParameterRange]:
        """The ranges asked for. Raises SolverError when their numbers do not match."""
        from solver.evaluation.parameter_box import ParameterRange

        count = len(self.parameter)
        columns: dict[str, list[float] | list[int]] = {"--from": self.start, "--to": self.end}
        columns["--points"] = self.points or [21 if count == 1 else 11]
        for flag, numbers in columns.items():
            if len(numbers) not in (1, count):
                raise SolverError(f"{flag} has {len(numbers)} numbers for {count} parameters; give one, or one each")
        start, end, points = (numbers * count if len(numbers) == 1 else numbers for numbers in columns.values())
        rows = zip(self.parameter, start, end, points, strict=True)
        return [ParameterRange(name, low, high, int(steps), self.offset) for name, low, high, steps in rows]


def run(options: Options) -> None:
    """Measure, write both files and print the table."""
    from modelgen.files import replacing
    from solver.evaluation.robustness import Trial, measure
    from solver.evaluation.robustness_plot import figure
    from solver.jobs.engines import workers
    from solver.runs.folder import write_text
    from solver.streams import EVALUATION_SEED, require_seed

    seed = EVALUATION_SEED if options.seed is None else options.seed
    require_seed(seed)
    trial = Trial(
        options.plant, tuple(options.harsh), options.episodes, seed, options.reaction_periods, options.observer
    )
    if options.out is not None and (options.out.is_dir() or options.out.name in ("", "..")):
        raise SolverError(f"--out {options.out} is a folder; name the figure, for example {options.out / 'masses'}")
    ranges = options.ranges()
    with workers(options.jobs, options.cluster) as executor:
        result = measure(options.runs, ranges, trial, options.generated, _announce, executor)
    reaction = [] if options.reaction_periods is None else [f"reaction{options.reaction_periods:g}"]
    chosen = [*options.harsh, *(["observer"] if options.observer else []), *reaction]
    name = "-".join(["robustness", result.robot, options.plant, *chosen, *options.parameter])
    out = options.out or Path("runs") / name
    text = json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"
    drawn = figure(result)
    files = [out.with_name(f"{out.name}.{ending}") for ending in ("json", "png")]
    write_text(files[0], text)
    with replacing(files[1], SolverError) as unfinished:
        drawn.savefig(unfinished, dpi=140)
    print(_table(result))
    print(*files, sep="\n")


def _announce(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def _table(result: Robustness) -> str:
    """The lowest result of each group over all points, with its interval and the parameters where it is."""
    lines = []
    for group in result.groups:
        lines.append(f"{group.label}, {len(group.runs)} {'run' if len(group.runs) == 1 else 'runs'}")
        for name, case in group.worst.items():
            share, form = (100.0, ".0f") if name == "success_rate" else (1.0, ".2f")
            number = case.statistic
            interval = ""
            if number.low is not None:
                interval = f"  [{share * number.low:{form}}, {share * number.high:{form}}]"
            where = ", ".join(f"{parameter} {value:.4g}" for parameter, value in case.parameters.items())
            lines.append(f"  lowest {WORDS[name]:<32}{share * number.value:>8{form}}{interval}   at {where}")
    return "\n".join(lines)
