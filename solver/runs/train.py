"""Train from Python, with the same meaning as `solver train` and `solver baseline`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solver.problem.robots import load_robot
from solver.runs.kinds import kind_of, kind_that_trains
from solver.runs.metrics import Report
from solver.runs.shipped import require_no_shipped


def train(
    robot: str,
    *,
    algorithm: str = "rfvi",
    out: str | Path | None = None,
    overwrite: bool = False,
    generated: str | None = None,
    report: Report = lambda _: None,
    **choices: Any,
) -> Path:
    """Train a policy for a built robot and return the run folder.

    algorithm: rfvi, cfvi, sac, ddpg or ppo. out: the run folder, by default one below runs/ that is named after robot,
    algorithm, preset and seed. overwrite: replace a run in that folder. generated: the folder of artifacts. report:
    called with the metrics of every iteration. choices: `preset`, and any setting by its name.

    Raises SolverError for an unknown name or a folder with a run, ModelError for an unknown robot, DivergenceError when
    the training diverges.
    """
    kind = kind_that_trains(algorithm)
    run = kind.training.describe(load_robot(robot, "cpu", generated), generated, algorithm=algorithm, **choices)
    folder = Path("runs") / run.name if out is None else Path(out)
    kind.training.start(run, folder, report, overwrite)
    return folder


def resume(folder: str | Path, report: Report = lambda _: None) -> None:
    """Continue the run in a folder to its end, with its own settings.

    Raises SolverError when the folder holds no run, or one that is damaged or of another artifact.
    """
    require_no_shipped(folder)
    kind_of(folder).training.resume(Path(folder), report)
