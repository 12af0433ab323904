"""Animated GIFs of line drawings. The background is drawn once; each frame draws only the lines and the clock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from modelgen.files import replacing

FRAMES = 25  # per second


def moving_axes(figure: Figure, place: tuple[float, float, float, float], view: Sequence[float]) -> Axes:
    """Axes without a border at `place` in the figure, with the view (left, right, bottom, top) in m."""
    left, right, bottom, top = view
    axes = figure.add_axes(place, xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    return axes


def pictures(figure: Figure, clock: Text, moving: Sequence[tuple[Axes, NDArray[np.float64]]]) -> list[Image.Image]:
    """Grey pictures of the figure, FRAMES per second. moving: axes and their line segments (frames, k, 2, 2) in m."""
    canvas: Any = FigureCanvasAgg(figure)
    lines = [LineCollection([], colors="black", linewidths=2.5, capstyle="round") for _ in moving]
    for collection, (axes, _) in zip(lines, moving, strict=True):
        axes.add_collection(collection)
    canvas.draw()
    still, drawn = canvas.copy_from_bbox(figure.bbox), []
    for frame in range(len(moving[0][1])):
        canvas.restore_region(still)
        for collection, (_, segments) in zip(lines, moving, strict=True):
            collection.set_segments(list(segments[frame]))
            figure.draw_artist(collection)
        clock.set_text(f"{frame / FRAMES:.1f} s")
        figure.draw_artist(clock)
        drawn.append(Image.fromarray(np.array(canvas.buffer_rgba())).convert("L"))
    return drawn


def save_gif(frames: Sequence[Image.Image], path: Path, rest: float = 0.0) -> None:
    """Write the frames as a GIF that repeats without end and holds its last frame for `rest` more seconds."""
    milliseconds = [1000 // FRAMES] * len(frames)
    milliseconds[-1] += round(1000 * rest)
    with replacing(path) as beside:
        frames[0].save(beside, "GIF", save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
