"""`modelgen excite`: an input that shows the parameters of a robot and stays within the limits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable


@dataclass(frozen=True)
class Options:
    """Looks for the sum of sines after which the confidence set is smallest. The robot starts at rest. The input stays
    within the limits, and begins and ends at zero."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    identified: Annotated[Path | None, arg(metavar="FILE")] = None
    """A file of `modelgen identify` with what is known already. By default the bounds of the model file."""
    out: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """The file to write: time and inputs. By default NAME.excite.csv."""
    seconds: Annotated[float, Range(0.01, 60.0)] = 10.0
    """Length of the motion."""
    highest: Annotated[float, Range(0.001, 1000.0)] = 3.0
    """Highest frequency of the input, in Hz."""
    share: Annotated[float, Range(0.001, 1.0)] = 0.8
    """Share of the inputs' limits that is used."""
    start: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Initial states, at which the robot rests. By default, and for the other states, the mean start of the task."""
    noise: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Standard deviations of sensors. By default as in FILE, or a thousandth of the limit of each coordinate."""
    window: Annotated[float, Range(0.001, 60.0)] = 0.5
    """The --window of the identification, in seconds."""
    generations: Annotated[int, Range(1, 100_000)] = 60
    """Generations of the search."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Search, write the input, and print what it makes visible."""
    from modelgen.commandline import assigned, number
    from modelgen.identification import excitation
    from modelgen.identification.experiment import experiment
    from modelgen.loader import load
    from modelgen.tangent import Tangent

    robot = load(options.name, directory=options.generated, parallel=False)

    def numbers(option: str, pairs: tuple[str, ...], names: Sequence[str]) -> dict[str, float]:
        texts = assigned(option, pairs, names, f"state of `{robot.name}`")
        return {name: number(option, name, text) for name, text in texts.items()}

    task = experiment(
        robot,
        identified=options.identified,
        seconds=options.seconds,
        window=options.window,
        highest=options.highest,
        share=options.share,
        start=numbers("--start", options.start, robot.state_names),
        noise=numbers("--noise", options.noise, Tangent(robot.metadata).names),
    )
    path = options.out or Path(f"{robot.name}.excite.csv")
    require_writable({"--out": path}, [options.identified] if options.identified else [])
    best = excitation.excite(robot, task, options.generations, lambda line: print(line, file=sys.stderr, flush=True))
    excitation.write(path, robot, best)
    print(f"{excitation.text(robot, task, best)}\n{path} is written")
