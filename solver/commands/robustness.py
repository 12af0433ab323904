"""`solver robustness`: runs over a range of one or two parameters, as a figure, a JSON file and a table."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from solver.errors import SolverError
from solver.plants import PlantName

if TYPE_CHECKING:
    from solver.studies.robustness import Range, Robustness

WORDS = {
    "return_25": "25th percentile of the return",
    "return_50": "median return",
    "return_mean": "mean return",
    "return_worst": "return of a single rollout",
    "success_rate": "success rate, %",
}


@dataclass(frozen=True)
class Options:
    """Try policies over a range of one parameter, or a grid of two, that they were not told about."""

    runs: Positional[list[Path]]
    """Run folders of one robot. Those that differ by their seeds only are one group; groups stand side by side."""
    parameter: list[str]
    """The parameter to change, or two of them for a grid."""
    start: Annotated[list[float], arg(name="from")]
    """First multiple of the nominal value; one number, or one for each parameter."""
    end: Annotated[list[float], arg(name="to")]
    """Last multiple of the nominal value; one number, or one for each parameter."""
    points: list[int] = field(default_factory=list)
    """Steps of the range; one number, or one for each parameter; 21, or 11 for each of two."""
    offset: FlagCreatePairsOff[bool] = False
    """--from and --to are added to the nominal value, in its unit (a weight in kg), and are no multiples."""
    plant: PlantName = "nominal"
    """`nominal`, `harsh` or `mujoco`, as in `solver evaluate`."""
    harsh: list[str] = field(default_factory=list)
    """What makes the harsh plant harsh, as in `solver evaluate`."""
    sampled: float | None = None
    """For every run, as in `solver evaluate`."""
    episodes: int = 100
    """Rollouts of every run at every point."""
    seed: int | None = None
    """Seed of the starts and of the harsh plant's noise; by default the one used in training."""
    out: Path | None = None
    """Figure and JSON file without their endings; by default
    runs/robustness-ROBOT-PLANT[-EFFECTS][-sampledK]-PARAMETERS."""
    generated: str | None = None
    """Folder of artifacts when it has moved."""

    def ranges(self) -> list[Range]:
        """The ranges asked for; SolverError when their numbers do not match."""
        from solver.studies.robustness import Range

        count = len(self.parameter)
        columns: dict[str, list[float] | list[int]] = {"--from": self.start, "--to": self.end}
        columns["--points"] = self.points or [21 if count == 1 else 11]
        for flag, numbers in columns.items():
            if len(numbers) not in (1, count):
                raise SolverError(f"{flag} has {len(numbers)} numbers for {count} parameters; give one, or one each")
        start, end, points = (numbers * count if len(numbers) == 1 else numbers for numbers in columns.values())
        rows = zip(self.parameter, start, end, points, strict=True)
        return [Range(name, low, high, int(steps), self.offset) for name, low, high, steps in rows]


def run(options: Options) -> None:
    """Measure, write both files, print the table."""
    from solver.fvi.run_folder import write_atomically
    from solver.streams import EVALUATION_SEED, require_seed
    from solver.studies.robustness import Trial, measure
    from solver.studies.robustness_plot import figure

    seed = EVALUATION_SEED if options.seed is None else options.seed
    require_seed(seed)
    trial = Trial(options.plant, tuple(options.harsh), options.episodes, seed, options.sampled)
    if options.out is not None and (options.out.is_dir() or options.out.name in ("", "..")):
        raise SolverError(f"--out {options.out} is a folder; name the figure, for example {options.out / 'masses'}")
    result = measure(options.runs, options.ranges(), trial, options.generated, _announce)
    sampled = [] if options.sampled is None else [f"sampled{options.sampled:g}"]
    name = "-".join(["robustness", result.robot, options.plant, *options.harsh, *sampled, *options.parameter])
    out = options.out or Path("runs") / name
    text = json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"
    drawn = figure(result)
    files = [out.with_name(f"{out.name}.{ending}") for ending in ("json", "png")]
    write_atomically(files[0], lambda stream: stream.write(text.encode()))
    write_atomically(files[1], lambda stream: drawn.savefig(stream, format="png", dpi=140))
    print(_table(result))
    print(*files, sep="\n")


def _announce(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def _table(result: Robustness) -> str:
    """The lowest of each group over the box, with the interval and the parameters where it is."""
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
