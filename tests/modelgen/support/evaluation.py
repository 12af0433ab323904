"""Evaluation of a graph node by node with any kind of number, as a reference for emitted code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.lowering import mechanism
from modelgen.program.differentiate import program
from modelgen.program.graph import Graph

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "negative": operator.neg,
    "solution": lambda value: value,
    "abs": abs,
    "minimum": min,
    "maximum": max,
    "pow": operator.pow,
}


def evaluate(graph: Graph, roots: Sequence[int], inputs: dict[str, Any], functions: Any = mpmath) -> list[Any]:
    """The values of the roots, in the type of the inputs: float, mpmath number, or (with NumPy's functions) array."""
    values: dict[int, Any] = {}
    for node in graph.reachable(roots):
        operation = graph.operations[node]
        if operation.kind == "constant":
            values[node] = operation.value
        elif operation.kind == "input":
            values[node] = inputs[operation.name]
        else:
            function = getattr(functions, operation.kind, None) or ARITHMETIC[operation.kind]
            values[node] = function(*(values[argument] for argument in operation.arguments))
    return [values[root] for root in roots]


class Uncompiled:
    """The methods of a loaded robot by evaluation of its program node by node with NumPy; no code is emitted."""

    def __init__(self, equations: EquationsOfMotion, nominal: Sequence[float] | np.ndarray) -> None:
        self.nominal_parameters = np.array(nominal, np.float64)
        self.program = program(mechanism(equations))

    def affine_dynamics(self, x: np.ndarray, theta: Any = None) -> tuple[np.ndarray, ...]:
        return self._call("affine_dynamics", {"x": x}, theta)

    def dynamics(self, x: np.ndarray, u: np.ndarray, theta: Any = None) -> np.ndarray:
        (rates,) = self._call("dynamics", {"x": x, "u": u}, theta)
        return rates

    def jacobians(self, x: np.ndarray, theta: Any = None) -> tuple[np.ndarray, ...]:
        return self._call("jacobians", {"x": x}, theta)

    def hamiltonian_gradient(
        self, x: np.ndarray, u: np.ndarray, costate: np.ndarray, theta: Any = None
    ) -> tuple[np.ndarray, ...]:
        return self._call("hamiltonian_gradient", {"x": x, "u": u, "costate": costate}, theta)

    def _call(self, name: str, arrays: dict[str, np.ndarray], theta: Any) -> tuple[np.ndarray, ...]:
        function, count = self.program.function(name), len(arrays["x"])
        theta = self.nominal_parameters if theta is None else theta
        arrays["theta"] = np.broadcast_to(theta, (count, len(self.nominal_parameters)))
        graph, inputs = self.program.graph, {}
        for argument in function.arguments:
            for node, column in zip(argument.entries, arrays[argument.name].T, strict=True):
                inputs[graph.operations[node].name] = column
        values = iter(evaluate(graph, function.roots, inputs, np))
        results = []
        for output in function.outputs:
            columns = [np.broadcast_to(next(values), count) for _ in output.entries]
            flat = np.stack(columns, axis=-1) if columns else np.empty((count, 0))
            results.append(flat.reshape(count, *output.shape))
        return tuple(results)
