"""CasADi: one casadi.Function for each function of a program, parameters as input, mapped over the batch.

Columns in, one dense matrix an output: (n,) is n x 1, (n, m, k) is (n m) x k with rows in row-major order.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import casadi
import numpy as np

from modelgen.backends.arrays import Array, HostKernels, threads
from modelgen.files import kept, sources
from modelgen.metadata import Metadata
from modelgen.program import graph
from modelgen.program.functions import Function, Program
from modelgen.program.graph import ARITHMETIC, FLAT_POWER, UNARY, Graph, Node


def _extreme(extreme: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """fmin or fmax with the NaN of either argument, which CasADi drops as C does."""

    def of(a: Any, b: Any) -> Any:
        ordered = (a <= b) + (a > b)  # 1, or 0 if one of them is NaN
        return extreme(a, b) * casadi.sqrt(2 * ordered - 1)  # CasADi would simplify ordered / ordered

    return of


def _flat_power(base: Any, exponent: Any) -> Any:
    """max(0, w)**p, all of whose derivatives are zero at w <= 0."""
    closed = casadi.sign(base)  # 0 or 1, and an operation that ONNX has, unlike if_else
    # The factor alone would leave 0 * inf = NaN in second derivatives: the open side takes the power of 1.
    return closed * casadi.power(base + (1 - closed), exponent)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    "abs": casadi.fabs,
    "minimum": _extreme(casadi.fmin),
    "maximum": _extreme(casadi.fmax),
    "pow": casadi.power,
    FLAT_POWER: _flat_power,
    **{name: getattr(casadi, name) for name in (*UNARY, "atan2") if name != "abs"},
}


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """One file a function: what casadi.Function.load reads, in Python, C++ and MATLAB."""
    return {f"{one.name}.casadi": _serialized(compiled(program.graph, one, robot.name)) for one in program.functions}


def _serialized(function: Any) -> bytes:
    serializer = casadi.StringSerializer()
    serializer.pack(function)
    text: str = serializer.encode()
    return text.encode()


def compiled(graph: Graph, function: Function, robot: str) -> Any:
    """One function of a program as a casadi.Function of one sample."""
    values: dict[Node, Any] = {}
    inputs = []
    for argument in function.arguments:
        symbols = [casadi.SX.sym(graph.operations[node].name) for node in argument.entries]
        values.update(zip(argument.entries, symbols, strict=True))
        inputs.append(casadi.vertcat(*symbols) if symbols else casadi.SX(0, 1))
    graph.evaluate(function.roots, values, _OPERATIONS, casadi.SX)
    outputs = []
    for output in function.outputs:
        rows, columns = _matrix_shape(output.shape)
        entries = casadi.vertcat(*(casadi.densify(values[node]) for node in output.entries))
        outputs.append(casadi.reshape(entries, columns, rows).T if output.entries else casadi.SX(rows, columns))
    return casadi.Function(
        re.sub("_+", "_", f"{robot}_{function.name}"),  # CasADi refuses two underscores in a row
        inputs,
        outputs,
        [argument.name for argument in function.arguments],
        [output.name for output in function.outputs],
    )


def _matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """CasADi's two dimensions for an output: every axis but the last makes the rows."""
    if len(shape) < 2:
        return (shape[0] if shape else 1), 1
    return int(np.prod(shape[:-1])), shape[-1]


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> CasadiKernels:
    """The functions, made when they are first called; `parallel` maps them over threads."""
    return CasadiKernels(program, robot, dtype, parallel)


def _kept(program: Program, function: Function, robot: str) -> Any:
    """The same as `compiled`, read from the folder of compiled code where an earlier process made it."""
    versions = f"{casadi.CasadiMeta.version()} {sources(sys.modules[__name__], graph)}"

    def make() -> bytes:
        text: str = compiled(program.graph, function, robot).serialize()
        return text.encode()

    name = f"{robot}_{program.digest[:12]}.{function.name}"
    text = kept(name, ".casadi", f"{versions} {robot} {function.name} {program.digest}", make)
    return casadi.Function.deserialize(text.decode())


class CasadiKernels(HostKernels):
    """The functions over batches by casadi.Function.map; CasADi computes in float64 whatever the dtype."""

    def __init__(self, program: Program, robot: Metadata, dtype: str, parallel: bool) -> None:
        super().__init__(program, robot, dtype)
        self._threads = threads() if parallel else 1
        self._compiled = cache(lambda name: _kept(program, self._functions[name], robot.name))
        self._mapped = lru_cache(maxsize=16)(self._map)

    def casadi_function(self, name: str) -> Any:
        """The function of one sample, for optimisation problems."""
        self.require(name)
        return self._compiled(name)

    def _map(self, function: str, samples: int) -> Any:
        if self._threads > 1 and samples >= self._threads:
            return self._compiled(function).map(samples, "thread", self._threads)
        return self._compiled(function).map(samples)

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        if not samples:
            return
        described = self._functions[function]
        buffer, evaluate = self._mapped(function, samples).buffer()
        kept: list[Any] = []  # the buffer holds no reference to the arrays
        for index, argument in enumerate(described.arguments):
            rows = np.broadcast_to(arrays[argument.name], (samples, len(argument.entries)))
            kept.append(np.ascontiguousarray(rows, dtype=np.float64))
            buffer.set_arg(index, _memory(kept[-1]))
        outputs: list[Any] = []
        for index, output in enumerate(described.outputs):
            outputs.append(np.empty((samples, *_matrix_shape(output.shape)[::-1])))
            buffer.set_res(index, _memory(outputs[-1]))
        evaluate()
        for result, columns in zip(results, outputs, strict=True):
            result[...] = columns.swapaxes(1, 2).reshape(result.shape)


def _memory(array: Any) -> memoryview:
    return memoryview(array.reshape(-1))
