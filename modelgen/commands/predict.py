"""`modelgen predict`: whether a robot still moves as it did when it was identified."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.commandline.program import FAILED
from modelgen.errors import ModelError
from modelgen.files import replacing, require_apart


@dataclass(frozen=True)
class Options:
    """Predict new recordings half a second ahead with identified parameters, and print how many samples lie within the
    bands of the file. Exits with 1 where these are fewer than the file states: the robot has changed, or moves in a way
    that was not recorded. Columns are as for `modelgen identify`."""

    name: Annotated[str, Argument(positional=True)]
    """Name of a built robot."""
    logs: Annotated[tuple[Path, ...], Argument(positional=True, metavar="LOG.csv")]
    """New recordings, which were not used to identify."""
    identified: Annotated[Path | None, Argument(metavar="FILE")] = None
    """The file of `modelgen identify`. By default NAME.identified.json."""
    columns: Annotated[tuple[str, ...], Argument(metavar="NAME=EXPRESSION")] = ()
    """Other columns, units, signs or zeros, as for `modelgen identify`."""
    plot: Annotated[Path | None, Argument(metavar="FILE.png")] = None
    """Draw the worst prediction of every state, with its band and what was measured."""
    json: bool = False
    """Print JSON instead of lines."""
    directory: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> int:
    """Read, predict, print and draw; returns the exit code."""
    from modelgen.identification.prediction import predict, read
    from modelgen.identification.recordings import read_all
    from modelgen.loader import load

    robot = load(options.name, directory=options.directory, parallel=False)
    identified = options.identified or Path(f"{robot.name}.identified.json")
    if options.plot and options.plot.suffix.lower() != ".png":
        raise ModelError(f"{options.plot} is no .png file; write --plot {options.plot.with_suffix('.png')}.")
    require_apart({"--plot": options.plot}, [identified, *options.logs])
    predictor = read(identified, robot)
    recordings = read_all(options.logs, options.columns, robot.metadata)
    comparison = predict(predictor, recordings)
    print(json.dumps(comparison.results(), indent=2) if options.json else comparison.text())
    if options.plot:
        from modelgen.identification.figures import worst

        figure = worst(robot, recordings, comparison.outcomes)
        with replacing(options.plot) as beside:
            figure.savefig(beside, format="png", dpi=110)
        if not options.json:
            print(f"{options.plot} is written")
    return 0 if comparison.holds else FAILED
