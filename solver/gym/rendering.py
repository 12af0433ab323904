"""Pictures of a robot as pixels, drawn from the line segments in its artifact."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from modelgen.loader import CompiledRobot

LONGER_SIDE = 400  # pixels
DPI = 100


class Camera:
    """Looks at a robot from the side; the view holds all that it reaches within its limits."""

    def __init__(self, robot: CompiledRobot) -> None:
        self._drawing = robot.drawing
        left, right, bottom, top = self._drawing.view
        scale = LONGER_SIDE / DPI / max(right - left, top - bottom)
        figure = Figure(((right - left) * scale, (top - bottom) * scale), dpi=DPI)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(left, right), ylim=(bottom, top))
        axes.set_axis_off()
        self._lines = LineCollection([], linewidths=5.0, colors="tab:blue", capstyle="round")
        axes.add_collection(self._lines)
        self._canvas = FigureCanvasAgg(figure)

    def picture(self, x: ArrayLike, theta: ArrayLike) -> NDArray[np.uint8]:
        """The state x (n,) of a robot with parameters theta (p,): red, green and blue, (height, width, 3)."""
        (segments,) = self._drawing.segments(np.asarray(x)[None], np.asarray(theta))
        self._lines.set_segments(list(segments))
        self._canvas.draw()  # type: ignore[no-untyped-call]
        pixels = self._canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        return np.array(np.asarray(pixels)[..., :3])
