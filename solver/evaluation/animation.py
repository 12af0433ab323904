"""Animation of several policies on one robot: one rollout of each from the same start, in adjacent pictures."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modelgen.gif import FRAMES, moving_axes, pictures, save_gif
from modelgen.loader import CompiledRobot
from solver.errors import SolverError

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
