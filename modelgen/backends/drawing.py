"""The drawing of a robot: line segments as a function of the state, evaluated with NumPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelgen.arrays import Array, on_sphere
from modelgen.backends.arrays import check_mask, check_shape, sample_count
from modelgen.metadata import Metadata
from modelgen.program.functions import Program
from modelgen.program.graph import ARITHMETIC, BINARY, FLAT_POWER, UNARY, Node

SAMPLES = 512  # states whose drawings the view encloses
MARGIN = 0.05  # of the view, on every side
#: NumPy's names for the functions of a program that it calls otherwise.
_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
_OPERATIONS = ARITHMETIC | {name: getattr(np, _NUMPY.get(name, name)) for name in (*UNARY, *BINARY)}
_OPERATIONS[FLAT_POWER] = np.power


class Drawing:
    """What there is to see of a robot, in a vertical plane; lengths in m."""

    def __init__(self, program: Program, robot: Metadata) -> None:
        self._program = program
        self._joined = np.array(program.segments, int).reshape(-1, 2)  # (k, 2) the points at the ends of every segment
        self._limits = np.array([state.limit for state in robot.states])
        self._quaternions = [rotation.quaternion for rotation in robot.rotations]
        self._nominal = np.array([parameter.value for parameter in robot.parameters])

    def segments(self, x: ArrayLike, theta: ArrayLike | None = None) -> Array:
        """Segments (N, k, 2, 2) at the states x (N, n): k segments, their two ends, across and height of an end.

        They are (k, 2, 2) for one state x (n,).

        theta: (p,) or (N, p), nominal unless given. Raises ModelError for other shapes.
        """
        check_mask("x", x)
        check_mask("theta", theta)
        arrays = {"x": np.asarray(x, np.float64), "theta": self._nominal if theta is None else np.asarray(theta, float)}
        for name, array in arrays.items():
            check_shape(name, array.shape, len(self._limits if name == "x" else self._nominal))
        one = sample_count(arrays) is None
        segments = self._points(np.atleast_2d(arrays["x"]), arrays["theta"])[:, self._joined]
        return segments[0] if one else segments

    def _points(self, x: Array, theta: Array) -> Array:
        """(N, P, 2): across and height of every point."""
        function, graph = self._program.drawing, self._program.graph
        if function is None:
            return np.empty((len(x), 0, 2))
        values: dict[Node, Any] = {}
        for argument, array in zip(function.arguments, (x, theta), strict=True):
            values |= {node: array[..., j] for j, node in enumerate(argument.entries)}
        graph.evaluate(function.roots, values, _OPERATIONS)
        points = np.empty((len(x), len(function.roots)))
        for column, root in enumerate(function.roots):
            points[:, column] = values[root]
        return points.reshape(len(x), -1, 2)

    @cached_property
    def view(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of what the robot reaches within its limits, with a margin; never empty."""
        random = np.random.default_rng(0)
        states = random.uniform(-self._limits, self._limits, (SAMPLES, len(self._limits)))
        on_sphere(states, self._quaternions)
        ends = np.concatenate([np.zeros((1, 2)), self.segments(states).reshape(-1, 2)])
        low, high = ends.min(axis=0), ends.max(axis=0)
        margin = MARGIN * max(high - low) or 1.0
        return float(low[0] - margin), float(high[0] + margin), float(low[1] - margin), float(high[1] + margin)
