"""The drawing of a robot: line segments as a NumPy function of the state, emitted beside the kernels."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest
from modelgen.backends import grammar
from modelgen.backends.array_checks import check_shape, sample_count
from modelgen.backends.listing import Dialect, columns, listing
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

Array = NDArray[np.float64]
Integers = NDArray[np.int_]

#: The drawing's entry among the files of a manifest.
FILES = "drawing"
SAMPLES = 512  # states whose drawings the view encloses
MARGIN = 0.05  # of the view, on every side

_HEADER = '''"""{robot}: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array({segments}, int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), {count}, 2))
'''


def emit(program: Program, segments: Sequence[tuple[int, int]], robot: Metadata) -> dict[str, bytes]:
    """One module that needs only NumPy; `program` is that of `lowering.drawing`."""
    (function,) = program.functions
    (output,) = function.outputs
    lines = listing(program.graph, function, Dialect(repr, _call))
    body = columns(program.graph, function)
    body += [f"{name} = {text}" for name, text in lines.assignments]
    entries = enumerate(lines.roots[node] for node in output.entries)
    body += [f"points[:, {index // 2}, {index % 2}] = {text}" for index, text in entries]
    head = _HEADER.format(robot=robot.name, segments=[list(pair) for pair in segments], count=output.shape[0])
    return {"drawing.py": (head + "".join(f"    {line}\n" for line in [*body, "return points"])).encode()}


def _call(name: str, arguments: list[str]) -> str:
    return f"np.{grammar.NUMPY.get(name, name)}({', '.join(arguments)})"


def load(folder: Path, manifest: Manifest) -> Drawing:
    """Raises ArtifactError when the file is missing, was edited, or holds more than arithmetic."""
    path, content = source(folder, manifest, FILES)
    segments, function = grammar.drawing(path, content, manifest.sizes())
    space: dict[str, Any] = {"np": np, "__builtins__": {"len": len}}
    exec(compile(ast.Module([function], []), path, "exec"), space)
    return Drawing(np.array(segments, int).reshape(-1, 2), space["points"], manifest)


class Drawing:
    """What there is to see of a robot, in a vertical plane; lengths in m."""

    def __init__(self, joined: Integers, points: Callable[[Array, Array], Array], manifest: Manifest) -> None:
        self._joined = joined  # (k, 2) the points at the ends of every segment
        self._points = points
        self._sizes = manifest.sizes()
        self._limits = np.array([state.limit for state in manifest.metadata.states])
        self._nominal = np.array([parameter.value for parameter in manifest.metadata.parameters])

    def segments(self, x: ArrayLike, theta: ArrayLike | None = None) -> Array:
        """(N, k, 2, 2): for every state of x (N, n) the k segments, their two ends, and (across, height) of each.
        For one state x (n,) it is (k, 2, 2).

        theta: (p,) or (N, p), nominal unless given. Raises ModelError for other shapes.
        """
        arrays = {"x": np.asarray(x, np.float64), "theta": self._nominal if theta is None else np.asarray(theta, float)}
        for name, array in arrays.items():
            check_shape(name, array.shape, self._sizes[name])
        one = sample_count({name: array.shape for name, array in arrays.items()}) is None
        segments = self._points(np.atleast_2d(arrays["x"]), arrays["theta"])[:, self._joined]
        return segments[0] if one else segments

    @cached_property
    def view(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of what the robot reaches within its limits, with a margin; never empty."""
        random = np.random.default_rng(0)
        states = random.uniform(-self._limits, self._limits, (SAMPLES, len(self._limits)))
        ends = np.concatenate([np.zeros((1, 2)), self.segments(states).reshape(-1, 2)])
        low, high = ends.min(axis=0), ends.max(axis=0)
        margin = MARGIN * max(high - low) or 1.0
        return float(low[0] - margin), float(high[0] + margin), float(low[1] - margin), float(high[1] + margin)
