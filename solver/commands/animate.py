"""`solver animate`: a moving picture of trained policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.errors import SolverError

EPISODES = 100  # of an evaluation


@dataclass(frozen=True)
class Options:
    """All runs have the same start and the nominal plant."""

    runs: Annotated[list[Path], Positional, arg(metavar="RUN ...")]
    """Run folders or policies of `solver policies`, all of one robot."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Changed parameters of the plant, as in `solver evaluate`."""
    start: Annotated[int, Range(0, EPISODES - 1)] = 0
    """Number of the start among the 100 starts of an evaluation."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """File to write, with the ending .gif. By default ROBOT.gif."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Roll out, draw, and print the path."""
    from solver.commands.changes import read_changes
    from solver.evaluation.plots import Scene, animate
    from solver.plants import make_plant
    from solver.plants.outcome import decimals, rollouts, sample_starts
    from solver.problem.parameters import changed_parameters
    from solver.runs.kinds import load_rollout_policy, told_and_untold
    from solver.streams import EVALUATION_SEED

    if not options.runs:
        raise SolverError("name a run, for example `solver animate pendulum-rfvi`")
    require_writable({"--out": options.out or Path("ROBOT.gif")}, error=SolverError)
    scenes: list[Scene] = []
    for folder in options.runs:
        told, untold = told_and_untold(folder, read_changes(options.changes))
        problem, act, label = load_rollout_policy(folder, options.generated, told=told)
        robot = problem.robot
        if scenes and robot.hash != scenes[0].robot.hash:
            raise SolverError(f"{folder} is a run of another robot than {options.runs[0]}; name runs of one robot")
        theta = changed_parameters(problem, untold)
        start = sample_starts(problem, EPISODES, EVALUATION_SEED)[options.start]
        result = rollouts(problem, act, start[None], make_plant("nominal", problem, theta))
        total = float(result.returns[0])
        title = f"{label}: return {total:.{decimals(total, least=1)}f}"
        scenes.append(Scene(robot, theta.numpy(), result.x[:, 0].numpy(), title))
    path = options.out or Path(f"{scenes[0].robot.name}.gif")
    animate(scenes, path)
    print(f"{path}: {len(scenes)} rollouts, {path.stat().st_size / 1024:.0f} KiB")
