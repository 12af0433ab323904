"""An ONNX graph written as arithmetic: `x + 2.0 * y` adds nodes. Kernels of an artifact come in through CasADi.

All values are float32 tensors (N, k), one row a sample; `|`, `columns` and `picked` go along their columns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np
from numpy.typing import ArrayLike

from solver.errors import SolverError

try:
    import onnx
    from onnx import helper, numpy_helper
except ImportError as error:
    raise SolverError(
        "--onnx needs ONNX, which is not installed: pip install 'robust-value-iteration[onnx]'"
    ) from error

OPSET, IR_VERSION = 17, 8  # of 2022; every runtime since reads them


class Graph:
    """The nodes and constants of a graph that grows."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}  # type, shape, bytes -> tensor

    def constant(self, values: ArrayLike, dtype: type = np.float32) -> Value:
        """Numbers in the graph; equal ones are kept once."""
        array: np.ndarray[Any, Any] = np.ascontiguousarray(np.asarray(values, dtype))
        key = (array.dtype.str, np.shape(values), array.tobytes())
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array.reshape(np.shape(values)), name)
        return Value(self, self.constants[key].name)

    def apply(self, kind: str, *values: Value | ArrayLike, **attributes: Any) -> Value:
        """The result of one operation of ONNX."""
        given = [(value if isinstance(value, Value) else self.constant(value)).name for value in values]
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, given, [name], **attributes))
        return Value(self, name)

    def model(self, widths: dict[str, int], outputs: dict[str, tuple[Value, int]], facts: dict[str, str]) -> Any:
        """The checked model: inputs by name and width, outputs by name with value and width, facts as metadata."""
        nodes = [
            *self.nodes,
            *(helper.make_node("Identity", [value.name], [name]) for name, (value, _) in outputs.items()),
        ]
        graph = helper.make_graph(
            nodes,
            "policy",
            [_info(name, width) for name, width in widths.items()],
            [_info(name, width) for name, (_, width) in outputs.items()],
            list(self.constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        helper.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return model


def _info(name: str, width: int) -> Any:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", width])


class Value:
    """A tensor of the graph. Operators work entry by entry, `@` is the product of matrices, `|` puts side by side."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("Add", self, other)

    def __sub__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("Sub", self, other)

    def __mul__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("Mul", self, other)

    def __truediv__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("Div", self, other)

    def __matmul__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("MatMul", self, other)

    def __or__(self, other: Value) -> Value:
        return self.graph.apply("Concat", self, other, axis=1)

    def __lt__(self, other: Value | ArrayLike) -> Value:
        return self.graph.apply("Less", self, other)

    def __neg__(self) -> Value:
        return self.graph.apply("Neg", self)

    def __abs__(self) -> Value:
        return self.graph.apply("Abs", self)

    def picked(self, columns: Sequence[int]) -> Value:
        """The columns of these numbers, in this order."""
        return self.graph.apply("Gather", self, self.graph.constant(columns, np.int64), axis=1)

    def columns(self, count: int) -> list[Value]:
        """Every column, (N, 1) each."""
        return [self.picked([i]) for i in range(count)]

    def row_sum(self) -> Value:
        """(N, 1)."""
        return self.graph.apply("ReduceSum", self, self.graph.constant([1], np.int64), keepdims=1)


def where(condition: Value, yes: Value | ArrayLike, no: Value | ArrayLike) -> Value:
    """yes where the condition holds, else no."""
    return condition.graph.apply("Where", condition, yes, no)


def _named(kind: str) -> Callable[..., Value]:
    return lambda first, *others: first.graph.apply(kind, first, *others)


def _log1p(a: Value) -> Value:
    """log(1 + a) with the digits that 1 + a loses (Kahan): log(s) a / (s - 1) with s = 1 + a as it was rounded."""
    s = a + 1.0
    away = s - 1.0
    rounded = away.graph.apply("Equal", away, 0.0)
    return where(rounded, a, _named("Log")(s) * a / where(rounded, 1.0, away))


def _atan2(y: Value, x: Value) -> Value:
    """The angle of (x, y), 0 at the origin."""
    angle = _named("Atan")(where(abs(x) + abs(y) < 1e-37, 0.0, y / x))
    half = where(y < 0.0, -np.pi, np.pi)
    return angle + where(x < 0.0, half, 0.0)


#: Operations of CasADi's scalar functions. What an artifact holds is a subset, for `modelgen` has a fixed list.
_OPERATIONS: dict[int, Callable[..., Value]] = {
    casadi.OP_ASSIGN: lambda a: a,
    casadi.OP_ADD: operator.add,
    casadi.OP_SUB: operator.sub,
    casadi.OP_MUL: operator.mul,
    casadi.OP_DIV: operator.truediv,
    casadi.OP_NEG: operator.neg,
    casadi.OP_FABS: abs,
    casadi.OP_SQ: lambda a: a * a,
    casadi.OP_TWICE: lambda a: a * 2.0,
    casadi.OP_INV: _named("Reciprocal"),
    casadi.OP_POW: _named("Pow"),
    casadi.OP_CONSTPOW: _named("Pow"),
    casadi.OP_FMIN: _named("Min"),
    casadi.OP_FMAX: _named("Max"),
    casadi.OP_LOG1P: _log1p,
    casadi.OP_ATAN2: _atan2,
    **{
        getattr(casadi, f"OP_{name.upper()}"): _named(name.capitalize())
        for name in ("sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign")
    },
}


def entries(function: Any, argument: Value) -> list[Value | None]:
    """The outputs of a scalar CasADi function of one column, as columns (N, 1) in CasADi's order; None is a zero.

    The function has one sparse output. Raises SolverError for an operation that no artifact has had until now.
    """
    graph, work, found = argument.graph, {}, {}
    given = argument.columns(function.size1_in(0))
    rows = function.sparsity_in(0).row()
    for k in range(function.n_instructions()):
        kind, reads, writes = (
            function.instruction_id(k),
            function.instruction_input(k),
            function.instruction_output(k),
        )
        if kind == casadi.OP_CONST:
            work[writes[0]] = graph.constant([[function.instruction_constant(k)]])
        elif kind == casadi.OP_INPUT:
            work[writes[0]] = given[rows[reads[1]]]
        elif kind == casadi.OP_OUTPUT:
            found[writes[1]] = work[reads[0]]
        elif kind in _OPERATIONS:
            work[writes[0]] = _OPERATIONS[kind](*(work[i] for i in reads))
        else:
            raise SolverError(f"{function.name()} has operation {kind} of CasADi, which the ONNX export does not know")
    sparsity = function.sparsity_out(0)
    places = [row + column * sparsity.size1() for row, column in zip(*sparsity.get_triplet(), strict=True)]
    dense: list[Value | None] = [None] * (sparsity.size1() * sparsity.size2())
    for i, place in enumerate(places):
        dense[place] = found[i]
    return dense
