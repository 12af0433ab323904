"""A replayed rollout as files: figure, CSV and animation."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from matplotlib.figure import Figure

from modelgen.files import replacing
from solver.certification.counterexample import Counterexample, replay
from solver.errors import SolverError
from solver.evaluation.animation import Scene, animate
from solver.evaluation.plots import over_time
from solver.plants.outcome import Rollouts, decimals
from solver.problem.problem import Problem
from solver.runs.folder import write_text


def record(found: Counterexample, stem: Path, generated: str | None = None) -> tuple[float, list[Path]]:
    """Play the counterexample and write STEM.png, STEM.csv and, for a robot that is drawn, STEM.gif.

    Returns the return of this rollout, and the paths.
    """
    problem, result = replay(found, generated)
    files = paths(stem)
    with replacing(files[0], SolverError) as unfinished:
        motion(found, problem, result).savefig(unfinished, dpi=140)
    write_text(files[1], table(problem, result))
    total = float(result.returns[0])
    theta = problem.theta.new_tensor(list(found.parameters.values())).numpy()
    scene = Scene(problem.robot, theta, result.x[:, 0].numpy(), f"worst case: return {total:.{decimals(total, 1)}f}")
    if not scene.segments().shape[1]:
        return total, files[:2]
    animate([scene], files[2])
    return total, files


def paths(stem: Path) -> list[Path]:
    """STEM.png, STEM.csv and STEM.gif."""
    return [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "csv", "gif")]


def motion(found: Counterexample, problem: Problem, result: Rollouts) -> Figure:
    """States and inputs over time, under the parameters and what came of them."""
    parameters = ", ".join(f"{name} {value:.4g}" for name, value in found.parameters.items())
    title = f"{found.robot}, {found.conditions.plant} plant\n{parameters}"
    return over_time(problem, result, title, found.judgement)


def table(problem: Problem, result: Rollouts) -> str:
    """CSV of the first rollout: time (s), states and inputs, a row a control period; the last row has no inputs."""
    metadata, text = problem.robot.metadata, io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *(each.name for each in metadata.states), *(each.name for each in metadata.inputs)])
    inputs = [*result.u[:, 0].tolist(), [""] * len(metadata.inputs)]
    for index, (x, u) in enumerate(zip(result.x[:, 0].tolist(), inputs, strict=True)):
        writer.writerow([f"{index * problem.control_step:.9g}", *x, *u])
    return text.getvalue()
