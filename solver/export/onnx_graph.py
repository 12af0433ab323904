"""ONNX graphs from arithmetic: `x + 2.0 * y` adds nodes. CasADi functions of a robot become nodes too.

All tensors are float32 (N, k), one row a sample. `|`, `columns` and `picked` act on the columns.
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

OPSET, IR_VERSION = 17, 8  # of 2022; all later runtimes read them


class OnnxGraph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}  # type, shape, bytes -> tensor

    def constant(self, values: ArrayLike, dtype: type = np.float32) -> OnnxTensor:
        """Constant of the graph. Equal constants are stored once."""
        array: np.ndarray[Any, Any] = np.ascontiguousarray(np.asarray(values, dtype))
        key = (array.dtype.str, np.shape(values), array.tobytes())
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array.reshape(np.shape(values)), name)
        return OnnxTensor(self, self.constants[key].name)

    def apply(self, kind: str, *values: OnnxTensor | ArrayLike, **attributes: Any) -> OnnxTensor:
        """Result of an ONNX operation, which becomes a node."""
        names = [(value if isinstance(value, OnnxTensor) else self.constant(value)).name for value in values]
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return OnnxTensor(self, name)

    def model(self, widths: dict[str, int], outputs: dict[str, tuple[OnnxTensor, int]], facts: dict[str, str]) -> Any:
        """Checked model. widths: of the inputs by name. outputs: tensor and width by name. facts: metadata."""
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


class OnnxTensor:
    """Tensor of a graph. Operators act on every entry; `@` is the matrix product, `|` joins columns."""

    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("Add", self, other)

    def __sub__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("Sub", self, other)

    def __mul__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("Mul", self, other)

    def __truediv__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("Div", self, other)

    def __matmul__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("MatMul", self, other)

    def __or__(self, other: OnnxTensor) -> OnnxTensor:
        return self.graph.apply("Concat", self, other, axis=1)

    def __lt__(self, other: OnnxTensor | ArrayLike) -> OnnxTensor:
        return self.graph.apply("Less", self, other)

    def __neg__(self) -> OnnxTensor:
        return self.graph.apply("Neg", self)

    def __abs__(self) -> OnnxTensor:
        return self.graph.apply("Abs", self)

    def picked(self, columns: Sequence[int]) -> OnnxTensor:
        """Columns with these numbers, in this order."""
        return self.graph.apply("Gather", self, self.graph.constant(columns, np.int64), axis=1)

    def columns(self, count: int) -> list[OnnxTensor]:
        """All columns, each (N, 1)."""
        return [self.picked([i]) for i in range(count)]

    def row_sum(self) -> OnnxTensor:
        """Sum (N, 1) of the columns."""
        return self.graph.apply("ReduceSum", self, self.graph.constant([1], np.int64), keepdims=1)


def where(condition: OnnxTensor, yes: OnnxTensor | ArrayLike, no: OnnxTensor | ArrayLike) -> OnnxTensor:
    """`yes` where the condition holds, and `no` elsewhere."""
    return condition.graph.apply("Where", condition, yes, no)


def _named(kind: str) -> Callable[..., OnnxTensor]:
    return lambda first, *others: first.graph.apply(kind, first, *others)


def _log1p(a: OnnxTensor) -> OnnxTensor:
    """log(1 + a) without the rounding of 1 + a (Kahan): log(s) a / (s - 1) with the rounded s = 1 + a."""
    s = a + 1.0
    away = s - 1.0
    rounded = away.graph.apply("Equal", away, 0.0)
    return where(rounded, a, _named("Log")(s) * a / where(rounded, 1.0, away))


def _atan2(y: OnnxTensor, x: OnnxTensor) -> OnnxTensor:
    """Angle of (x, y), 0 at the origin."""
    angle = _named("Atan")(where(abs(x) + abs(y) < 1e-37, 0.0, y / x))
    half = where(y < 0.0, -np.pi, np.pi)
    return angle + where(x < 0.0, half, 0.0)


#: ONNX forms of CasADi's scalar operations. `modelgen` emits a subset of them.
_OPERATIONS: dict[int, Callable[..., OnnxTensor]] = {
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


def entries(function: Any, argument: OnnxTensor) -> list[OnnxTensor | None]:
    """Entries of the output of a CasADi function as columns (N, 1) in CasADi's order; None is a structural zero.

    The function has one column as its argument and one sparse output. Raises SolverError for an unknown operation.
    """
    graph, work, outputs = argument.graph, {}, {}
    inputs = argument.columns(function.size1_in(0))
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
            work[writes[0]] = inputs[rows[reads[1]]]
        elif kind == casadi.OP_OUTPUT:
            outputs[writes[1]] = work[reads[0]]
        elif kind in _OPERATIONS:
            work[writes[0]] = _OPERATIONS[kind](*(work[i] for i in reads))
        else:
            raise SolverError(
                f"{function.name()} has operation {kind} of CasADi, which the ONNX export does not support"
            )
    sparsity = function.sparsity_out(0)
    places = [row + column * sparsity.size1() for row, column in zip(*sparsity.get_triplet(), strict=True)]
    dense: list[OnnxTensor | None] = [None] * (sparsity.size1() * sparsity.size2())
    for i, place in enumerate(places):
        dense[place] = outputs[i]
    return dense
