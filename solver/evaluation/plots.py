"""Plots of a run, and animations of its motions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from modelgen.errors import suggestion
from modelgen.files import replacing
from modelgen.loader import CompiledRobot
from modelgen.style import POLICIES, colour_map
from modelgen.style.gif import FRAMES, moving_axes, pictures, save_gif
from solver.errors import SolverError
from solver.plants.outcome import Rollouts, decimals, rollouts, sample_starts
from solver.plants.plant import Nominal
from solver.problem import Problem
from solver.problem.geometry import exponential, product
from solver.problem.parameters import Change, changed_parameters, in_words
from solver.runs.folder import DRAWINGS, FIGURES
from solver.runs.kinds import told_and_untold
from solver.runs.metrics import read_metrics
from solver.runs.shipped import is_shipped, run_folder
from solver.streams import EVALUATION_SEED
from solver.training.solution import KEYS, Solution, load_solution

GRID = 161  # points of a map in each state
DRAWN = 10  # rollouts in a figure


def plot_run(
    folder: Path, joint: str | None, changes: Mapping[str, Change], generated: str | None, directory: Path | None = None
) -> list[Path]:
    """Paths of the figures of a run, which are written to `directory`, by default folder/figures.

    folder: of the run, or name of a shipped policy, whose figures go to runs/NAME/figures by default.
    joint: coordinate of the maps, see `coordinate`. changes: of the parameters in the rollouts, of which
    the policy is told those that its training gave.

    A run without metrics has no learning curve. Raises SolverError for an unknown joint or parameter.
    """
    told, untold = told_and_untold(folder, changes)
    solution = load_solution(folder, generated, told=told)
    problem = solution.problem
    theta = changed_parameters(problem, untold)
    starts = sample_starts(problem, DRAWN, EVALUATION_SEED)
    result = rollouts(problem, solution.controller(), starts, Nominal(problem, theta))
    trained = solution.label
    arrived = f"success {100 * float(result.success.float().mean()):.0f} % of {len(result.success)}"
    title = f"{trained}, rollouts with {in_words(changes)}" if changes else trained
    figures = [
        value_and_policy(solution, coordinate(problem, joint), result, title),
        over_time(problem, result, title, arrived),
    ]
    metrics = read_metrics(run_folder(folder), KEYS)
    if metrics:
        figures.append(learning_curve(metrics, trained))
    target = directory or (Path("runs") / folder if is_shipped(folder) else folder) / FIGURES
    return [save_figure(figure, target / f"{name}.png") for name, figure in zip(DRAWINGS, figures, strict=False)]


def save_figure(figure: Figure, path: Path) -> Path:
    """Path of the figure, written as PNG. Raises SolverError where it cannot be written."""
    with replacing(path, SolverError) as unfinished:
        figure.savefig(unfinished, dpi=140)
    return path


def coordinate(problem: Problem, joint: str | None) -> int:
    """Index of the coordinate on the horizontal axis: `joint`, or by default the first continuous one if there is
    one."""
    names = problem.robot.metadata.coordinates
    if joint is None:
        return problem.continuous[0] if problem.continuous else 0
    if joint not in names:
        raise SolverError(
            f"robot {problem.robot.name} has no coordinate '{joint}'.{suggestion(joint, names)} Coordinates: "
            f"{', '.join(names)}"
        )
    return names.index(joint)


def value_and_policy(solution: Solution, i: int, result: Rollouts, title: str) -> Figure:
    """Figure with maps of V and of every input over coordinate i and its rate. Other states are at the target."""
    width = 5.2 * (1 + len(solution.problem.robot.metadata.inputs))
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    draw_value_and_policy(figure, solution, i, result, title)
    return figure


def draw_value_and_policy(figure: FigureBase, solution: Solution, i: int, result: Rollouts, title: str) -> QuadMesh:
    """Map of V, after it and the maps of the inputs were drawn in `figure`; see `value_and_policy`.

    For an entry of a quaternion it is over turns from the target about an axis, and the speed about it.
    """
    problem = solution.problem
    states = problem.robot.metadata.states
    rotation = next(
        (each for each in problem.geometry.rotations if i in range(*each.quaternion.indices(len(states)))), None
    )
    j = rotation.speed + max(0, i - rotation.coordinate - 1) if rotation else problem.robot.metadata.partner(i)
    reach, across = (
        (rotation.limit, f"turn of {rotation.name} [rad]")
        if rotation
        else (states[i].limit, f"{states[i].name} [{states[i].unit}]")
    )
    horizontal, vertical = np.meshgrid(
        np.linspace(-reach, reach, GRID), np.linspace(-states[j].limit, states[j].limit, GRID)
    )
    x = problem.target.repeat(GRID * GRID, 1)
    along = torch.from_numpy(horizontal.ravel()).float()
    if rotation:
        q, turn = rotation.quaternion, torch.zeros(len(x), 3)
        turn[:, j - rotation.speed] = along
        x[:, q] = product(x[:, q], exponential(turn))
    else:
        x[:, i] = along
    x[:, j] = torch.from_numpy(vertical.ravel()).float()
    value, u = solution.value(x)[0], solution.controller()(x)[0]
    inputs = problem.robot.metadata.inputs
    axes = np.atleast_1d(figure.subplots(1, 1 + len(inputs), sharey=True))
    meshes: list[QuadMesh] = []
    maps: list[tuple[str, torch.Tensor, str, tuple[float, float] | tuple[None, None]]]
    maps = [("value V(x)", value, "sequential", (None, None))]
    for k, entry in enumerate(inputs):
        signed, most = entry.lower < 0 < entry.upper, max(-entry.lower, entry.upper)  # the middle colour is zero
        colours, ends = ("signed", (-most, most)) if signed else ("sequential", (entry.lower, entry.upper))
        maps.append((f"policy: {entry.name} [{entry.unit}]", u[:, k], colours, ends))
    for axis, (label, field, colours, (low, high)) in zip(axes, maps, strict=True):
        mesh = axis.pcolormesh(
            horizontal,
            vertical,
            field.numpy().reshape(GRID, GRID),
            cmap=colour_map(colours),
            vmin=low,
            vmax=high,
            rasterized=True,
        )
        meshes.append(mesh)
        figure.colorbar(mesh, ax=axis)
        for k in range(0 if rotation else result.x.shape[1]):
            axis.plot(*_broken(result.x[:, k, i], states[i].continuous, result.x[:, k, j]), "k", lw=0.7, alpha=0.6)
        axis.set(title=label, xlabel=across)
    axes[0].set_ylabel(f"{states[j].name} [{states[j].unit}]")
    figure.suptitle(title)
    return meshes[0]


def over_time(problem: Problem, result: Rollouts, title: str, outcome: str) -> Figure:
    """Figure of every state and input of rollouts over time. outcome: text in its title, after the mean return."""
    metadata = problem.robot.metadata
    rows = len(metadata.states) + len(metadata.inputs)
    figure = Figure(figsize=(7.5, 1.6 * rows + 0.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, 1, sharex=True))
    time = torch.arange(len(result.x)) * problem.control_step
    for each in axes:
        each.set_prop_cycle(color=POLICIES)
    for i, state in enumerate(metadata.states):
        for k in range(result.x.shape[1]):
            axes[i].plot(*_broken(result.x[:, k, i], state.continuous, time)[::-1], lw=1.2, alpha=0.9)
        _label(axes[i], f"{state.name}\n[{state.unit}]")
    for i, entry in enumerate(metadata.inputs):
        axis = axes[len(metadata.states) + i]
        axis.plot(time[:-1], result.u[:, :, i], lw=1.2, alpha=0.9, drawstyle="steps-post")
        axis.set_ylim(entry.middle - 1.05 * entry.limit, entry.middle + 1.05 * entry.limit)
        _label(axis, f"{entry.name}\n[{entry.unit}]")
    axes[-1].set_xlabel("time [s]")
    figure.align_ylabels(axes)
    mean = float(result.returns.mean())
    figure.suptitle(f"{title}: return {mean:.{decimals(mean, 1)}f}, {outcome}")
    return figure


def learning_curve(rows: list[dict[str, float]], title: str) -> Figure:
    """Figure of the return with its spread, and of the value error, over the iterations."""
    figure = Figure(figsize=(7.0, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    evaluated = [row for row in rows if "return_mean" in row]
    iteration = np.array([row["iteration"] for row in evaluated])
    mean = np.array([row["return_mean"] for row in evaluated])
    spread = np.array([row["return_spread"] for row in evaluated])
    upper.fill_between(iteration, mean - spread, mean + spread, alpha=0.25, lw=0)
    upper.plot(iteration, mean, marker="o", ms=3)
    upper.set(ylabel="return, mean ± 1.96 sd", title=title)
    lower.semilogy([row["iteration"] for row in rows], [row["value_error"] for row in rows])
    lower.set(xlabel="iteration", ylabel="value error")
    for axis in (upper, lower):
        axis.grid(alpha=0.3)
    return figure


def _label(axis: Axes, text: str) -> None:
    axis.set_ylabel(text)
    axis.grid(alpha=0.3)


def _broken(angle: torch.Tensor, wraps: bool, other: torch.Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Both series with a gap where a continuous angle jumps, so that no line crosses the figure."""
    first, second = angle.numpy().copy(), other.numpy().copy()
    if wraps:
        jumps = np.flatnonzero(np.abs(np.diff(first)) > math.pi) + 1
        first, second = np.insert(first, jumps, np.nan), np.insert(second, jumps, np.nan)
    return first, second


SIDE, DPI = 2.6, 80  # longer side of one picture in inches, and dots per inch
LINE, LETTERS = 0.16, 26  # height of a line of a title in inches, and its largest number of letters


@dataclass(frozen=True)
class Scene:
    """One rollout: a robot with the parameters theta (p,), its states x (T + 1, n) at the control rate, and a title."""

    robot: CompiledRobot
    theta: NDArray[np.float32]
    x: NDArray[np.float32]
    title: str

    def segments(self) -> NDArray[np.float64]:
        """Line segments (frames, k, 2, 2) of the drawing. The last frame is the last state."""
        rate = self.robot.metadata.task.control_rate
        frames = np.arange(0.0, len(self.x), rate / FRAMES).round().astype(int)
        chosen = np.append(frames[frames < len(self.x) - 1], len(self.x) - 1)
        return np.asarray(self.robot.drawing.segments(self.x[chosen].astype(float), self.theta.astype(float)))


def animate(scenes: list[Scene], path: Path) -> None:
    """Write the scenes of one robot as a GIF, which shows its last frame for a second.

    Raises SolverError for another suffix, and for a robot without a drawing.
    """
    if path.suffix != ".gif":
        raise SolverError(f"{path} is not a .gif file; write --out {path.with_suffix('.gif')}")
    drawn = [scene.segments() for scene in scenes]
    robot = scenes[0].robot
    if not drawn[0].shape[1]:
        raise SolverError(f"{robot.name} has no drawing; add robot.draw(...) to its model file and build it again")
    left, right, bottom, top = robot.drawing.view
    scale = SIDE / max(right - left, top - bottom)
    width, height = max(1.5, scale * (right - left)), scale * (top - bottom)
    titles = [textwrap.wrap(scene.title, LETTERS) for scene in scenes]
    whole = height + LINE * (1 + max(map(len, titles)))
    figure = Figure((width * len(scenes), whole), DPI)
    moving = []
    for index, title in enumerate(titles):
        place = (index / len(scenes), 0.0, 1.0 / len(scenes), height / whole)
        axes = moving_axes(figure, place, robot.drawing.view)
        axes.set_title("\n".join(title), fontsize=8)
        moving.append((axes, drawn[index]))
    clock = figure.text(0.01, 0.01, "", family="monospace", fontsize=8)
    save_gif(pictures(figure, clock, moving), path, rest=1.0)
