"""`modelgen predict`: comparison of new recordings with their predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline.program import FAILED
from modelgen.errors import ModelError
from modelgen.files import replacing, require_writable


@dataclass(frozen=True)
class Options:
    """Predicts new recordings half a second ahead, and counts the samples within the bands of the identification. The
    exit code is 1 where these are too few: the robot has changed, or moves in a way that was not recorded."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    logs: Annotated[tuple[Path, ...], Positional, arg(metavar="LOG.csv ...")]
    """New recordings, which the identification has not used."""
    identified: Annotated[Path | None, arg(metavar="FILE")] = None
    """The file of `modelgen identify`. By default NAME.identified.json."""
    columns: Annotated[tuple[str, ...], arg(metavar="NAME=EXPRESSION ...")] = ()
    """Columns with other names, units, signs or zeros, as for `modelgen identify`."""
    plot: Annotated[Path | None, arg(metavar="FILE.png")] = None
    """Draw the worst prediction of every state, with its band and the measurement."""
    json: bool = False
    """Print JSON instead of lines."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> int:
    """Read, predict, print, draw."""
    from modelgen.identification.prediction import predict, read
    from modelgen.identification.recordings import read_all
    from modelgen.loader import load

    robot = load(options.name, directory=options.generated, parallel=False)
    identified = options.identified or Path(f"{robot.name}.identified.json")
    if options.plot and options.plot.suffix.lower() != ".png":
        raise ModelError(f"{options.plot} is not a .png file; write --plot {options.plot.with_suffix('.png')}.")
    require_writable({"--plot": options.plot}, [identified, *options.logs])
    predictor = read(identified, robot)
    recordings = read_all(options.logs, options.columns, robot.metadata)
    prediction = predict(predictor, recordings)
    print(json.dumps(prediction.results(), indent=2) if options.json else prediction.text())
    if options.plot:
        from modelgen.identification.figures import worst

        figure = worst(robot, recordings, prediction.outcomes)
        with replacing(options.plot) as unfinished:
            figure.savefig(unfinished, format="png", dpi=110)
        if not options.json:
            print(f"{options.plot} is written")
    return 0 if prediction.holds else FAILED
