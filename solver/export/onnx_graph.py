"""ONNX graphs from Torch's own functions: a call with an `OnnxTensor` adds nodes in place of numbers.

So the code of the solver that computes V and the policy writes their graph too. All numbers are float32, but for those
that it asks for in double: redundant inputs of a trim have no digits to lose.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from solver.errors import SolverError
from solver.game.policies import solved

try:
    import onnx
    from onnx import helper, numpy_helper
except ImportError as error:
    raise SolverError(
        "--onnx needs ONNX, which is not installed: pip install 'robust-value-iteration[onnx]'"
    ) from error

OPSET, IR_VERSION = 17, 8  # of 2022; all later runtimes read them
SINGLE = {"Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Softplus"}  # which runtimes lack in double
TRANSPOSES = Tensor.T.__get__, Tensor.mT.__get__  # type: ignore[attr-defined]
OF_SHAPES = {"get", "set", "len", "size", "dim", "numel", "is_floating_point", "is_complex"}  # answered by a shape
BATCH = 7919  # rows in the shapes of tensors: a prime number that no other size has, for the N of the graph


class OnnxGraph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}  # type, shape, bytes -> tensor
        self.doubles: set[str] = set()  # names of what is float64

    def input(self, name: str, width: int) -> Tensor:
        """Input (N, width) of the graph."""
        return OnnxTensor.of(self, name, torch.empty(BATCH, width, device="meta"))

    def constant(self, values: ArrayLike, dtype: type = np.float32) -> str:
        """Name of a constant. Equal constants are stored once."""
        array: np.ndarray[Any, Any] = np.ascontiguousarray(np.asarray(values, dtype))
        key = (array.dtype.str, np.shape(values), array.tobytes())
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(array.reshape(np.shape(values)), name)
            self.doubles |= {name} if dtype is np.float64 else set()
        return str(self.constants[key].name)

    def name(self, value: Any, real: type = np.float32) -> str:
        """Name of a tensor of the graph, of a tensor of Torch or of a number, as a constant where it is one.

        real: float32 or float64, the type of a number that is real.
        """
        if isinstance(value, OnnxTensor):
            return value.label if not value.is_floating_point() else self.cast(value.label, real)
        if isinstance(value, Tensor) and value.dim() and len(value) == BATCH:  # one row for all states
            assert bool((value == value[:1]).all())
            rows = self.apply("Slice", self.apply("Shape", "x"), [0], [1], [0])
            size = self.apply("Concat", rows, self.constant(value.shape[1:], np.int64), axis=0)
            return self.apply("Expand", self.name(value[:1], real), size)
        array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
        kept: dict[str, type] = {"b": np.bool_, "i": np.int64}
        whole = isinstance(value, Tensor)
        return self.constant(array, kept.get(array.dtype.kind, real) if whole else real)

    def cast(self, label: str, real: type) -> str:
        """Name of a real tensor as float32 or float64."""
        if (label in self.doubles) == (real is np.float64):
            return label
        name = f"t{len(self.nodes)}"
        to = onnx.TensorProto.DOUBLE if real is np.float64 else onnx.TensorProto.FLOAT
        self.nodes.append(helper.make_node("Cast", [label], [name], to=to))
        self.doubles |= {name} if real is np.float64 else set()
        return name

    def apply(self, kind: str, *values: Any, **attributes: Any) -> str:
        """Name of the result of an ONNX operation, which becomes a node. values: as in `name`, or lists of integers.

        One value of float64 makes the others and the result such, but for operations that runtimes lack in double.
        """
        double = any(v in self.doubles if isinstance(v, str) else _is_double(v) for v in values)
        real = np.float64 if double and kind not in SINGLE else np.float32
        names = [
            self.constant(v, np.int64) if isinstance(v, list) else v if isinstance(v, str) else self.name(v, real)
            for v in values
        ]
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        if double and kind in SINGLE:
            return self.cast(name, np.float64)
        self.doubles |= {name} if double and kind != "Shape" else set()
        return name

    def model(self, inputs: dict[str, int], outputs: dict[str, Tensor], facts: dict[str, str]) -> Any:
        """Checked model with the nodes that its outputs need. inputs: widths by name. facts: metadata."""
        ends = [helper.make_node("Identity", [self.name(value)], [name]) for name, value in outputs.items()]
        needed, nodes = {name for end in ends for name in end.input}, list[Any]()
        for node in reversed(self.nodes):
            if node.output[0] in needed:
                nodes.append(node)
                needed.update(node.input)
        graph = helper.make_graph(
            [*reversed(nodes), *ends],
            "policy",
            [_info(name, width) for name, width in inputs.items()],
            [_info(name, value.shape[1]) for name, value in outputs.items()],
            [each for each in self.constants.values() if each.name in needed],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        helper.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return model


def _info(name: str, width: int) -> Any:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", width])


class OnnxTensor(Tensor):
    """Tensor of a graph, with a shape of BATCH rows and without numbers."""

    graph: OnnxGraph
    label: str  # in the graph

    @staticmethod
    def of(graph: OnnxGraph, label: str, like: Tensor) -> OnnxTensor:
        """The tensor of the graph with a name, and with the shape and type of another tensor."""
        real = torch.float64 if label in graph.doubles else torch.float32
        dtype = real if like.is_floating_point() else like.dtype
        made: OnnxTensor = torch.Tensor._make_wrapper_subclass(OnnxTensor, like.shape, dtype=dtype)
        made.graph, made.label = graph, label
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        """Raises SolverError: there are no numbers to compute with."""
        raise SolverError(f"the ONNX export has no form of Torch's {function}")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The result as a tensor of the graph. Raises SolverError for a function of Torch without a rule."""
        name = "mT" if function in TRANSPOSES else function.__name__.strip("_")
        if name in OF_SHAPES:
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **(kwargs or {}))
        if name not in RULES:
            raise SolverError(f"the ONNX export has no form of Torch's {name}")
        return RULES[name](*args, **(kwargs or {}))


def _is_double(value: Any) -> bool:
    return isinstance(value, OnnxTensor) and value.dtype == torch.float64


def _graph_of(values: Any) -> OnnxGraph:
    """Graph of the first tensor of a graph among values."""
    for value in values:
        if isinstance(value, OnnxTensor):
            return value.graph
        if isinstance(value, tuple | list) and any(isinstance(each, OnnxTensor) for each in value):
            return _graph_of(value)
    raise TypeError("no tensor of a graph")


def _like(value: Any) -> Any:
    """A tensor of the same shape on the device `meta`, where Torch computes shapes only."""
    if isinstance(value, Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value


def _node(kind: str, shape_of: Callable[..., Tensor]) -> Callable[..., OnnxTensor]:
    """Rule of an operation that ONNX has with the same arguments."""

    def rule(*values: Any) -> OnnxTensor:
        graph = _graph_of(values)
        return OnnxTensor.of(graph, graph.apply(kind, *values), shape_of(*map(_like, values)))

    return rule


def _shaped(x: OnnxTensor, label: str, shape: Sequence[int]) -> OnnxTensor:
    return OnnxTensor.of(x.graph, label, torch.empty(*shape, device="meta"))


def _filled(x: Any, value: float, shape: Sequence[int] | None = None) -> OnnxTensor:
    """A number in every entry, with the shape of x or with another one with N in front."""
    graph, real = x.graph, np.float64 if _is_double(x) else np.float32
    if shape is None or tuple(shape) == tuple(x.shape):
        label = graph.apply("Expand", graph.constant(value, real), graph.apply("Shape", x))
        return _shaped(x, label, x.shape)
    shape = [size for each in shape for size in (each if isinstance(each, tuple | list | torch.Size) else (each,))]
    rows = graph.apply("Slice", graph.apply("Shape", x), [0], [1], [0])
    places = [rows if size == BATCH else graph.constant([size], np.int64) for size in shape]
    sizes = graph.apply("Concat", *places, axis=0)
    return _shaped(x, graph.apply("Expand", graph.constant(value, real), sizes), shape)


def _getitem(x: OnnxTensor, index: Any) -> OnnxTensor:
    """x[index] with whole dimensions, slices, integers, lists of integers and new dimensions."""
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [each if not isinstance(each, Tensor) else None for each in index]:
        at = next(i for i, each in enumerate(index) if each is Ellipsis)
        used = sum(each is not None for each in index) - 1
        index = (*index[:at], *(slice(None),) * (x.dim() - used), *index[at + 1 :])
    graph, label, axis = x.graph, x.label, 0
    for each in index:
        if each is None:
            label = graph.apply("Unsqueeze", label, [axis])
            axis += 1
        elif isinstance(each, slice):
            if each != slice(None):
                stop = 2**40 if each.stop is None else each.stop
                label = graph.apply("Slice", label, [each.start or 0], [stop], [axis])
            axis += 1
        elif isinstance(each, int):
            label = graph.apply("Gather", label, graph.constant(each, np.int64), axis=axis)
        else:
            label = graph.apply("Gather", label, [int(i) for i in each], axis=axis)
            axis += 1
    like = _like(x)[tuple(each if not isinstance(each, Tensor) else each.tolist() for each in index)]
    return OnnxTensor.of(graph, label, like)


def _setitem(x: OnnxTensor, index: tuple[Any, ...], value: Any) -> None:
    """x[:, columns] = value, with one or more whole dimensions before the columns."""
    columns = index[-1]
    width = x.shape[-1]
    chosen = [int(i) for i in (range(width)[columns] if isinstance(columns, slice) else columns)]
    if not chosen:
        return
    if not isinstance(value, Tensor):
        value = _filled(x[..., chosen], value)
    order = list(range(width))
    for k, column in enumerate(chosen):
        order[column] = width + k
    axis = x.dim() - 1
    x.label = x.graph.apply("Gather", x.graph.apply("Concat", x, value, axis=axis), order, axis=axis)


def _sum(x: OnnxTensor, dim: Any, keepdim: bool = False) -> OnnxTensor:
    axes = [d % x.dim() for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    label = x.graph.apply("ReduceSum", x, axes, keepdims=int(keepdim))
    return OnnxTensor.of(x.graph, label, _like(x).sum(tuple(axes), keepdim))


def _joined(values: Sequence[Any], dim: int = 0) -> OnnxTensor:
    graph = _graph_of(values)
    like = torch.cat([_like(value) for value in values], dim)
    kept = [value for value in values if value.shape[dim] > 0]
    return OnnxTensor.of(graph, graph.apply("Concat", *kept, axis=dim % like.dim()), like)


def _stacked(values: Sequence[Any], dim: int = 0) -> OnnxTensor:
    graph, like = _graph_of(values), torch.stack([_like(value) for value in values], dim)
    axis = dim % like.dim()
    parts = [graph.apply("Unsqueeze", value, [axis]) for value in values]
    return OnnxTensor.of(graph, graph.apply("Concat", *parts, axis=axis), like)


def _permuted(x: OnnxTensor, *order: int) -> OnnxTensor:
    return OnnxTensor.of(x.graph, x.graph.apply("Transpose", x, perm=order), _like(x).permute(order))


def _transposed(x: OnnxTensor) -> OnnxTensor:
    *front, rows, columns = range(x.dim())
    return _permuted(x, *front, columns, rows)


def _reshaped(x: OnnxTensor, *shape: Any) -> OnnxTensor:
    like = _like(x).reshape(*shape)
    sizes = [-1 if size == BATCH else size for size in like.shape]
    return OnnxTensor.of(x.graph, x.graph.apply("Reshape", x, sizes), like)


def _expanded(x: Any, *shape: Any) -> Any:
    graph_like = shape[0] if isinstance(shape[0], OnnxTensor) else x
    like = _like(x).expand(graph_like.shape if isinstance(shape[0], Tensor) else shape)
    if tuple(like.shape) == tuple(x.shape):
        return x
    graph = graph_like.graph
    return OnnxTensor.of(graph, graph.apply("Add", _filled(graph_like, 0.0, tuple(like.shape)), x), like)


def _added(x: Any, y: Any, alpha: float = 1.0) -> OnnxTensor:
    return _node("Add", operator.add)(x, y if alpha == 1.0 else y * alpha)


def _clamped(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    x = x if min is None else torch.maximum(x, torch.as_tensor(min))
    return x if max is None else torch.minimum(x, torch.as_tensor(max))


def _cross(a: Tensor, b: Tensor) -> Tensor:
    ahead, behind = [1, 2, 0], [2, 0, 1]
    return a[..., ahead] * b[..., behind] - a[..., behind] * b[..., ahead]


def _einsum(equation: str, *values: Any) -> OnnxTensor:
    graph, like = _graph_of(values), torch.einsum(equation, *map(_like, values))
    return OnnxTensor.of(graph, graph.apply("Einsum", *values, equation=equation), like)


def _log1p(a: Tensor) -> Tensor:
    """log(1 + a) without the rounding of 1 + a (Kahan): log(s) a / (s - 1) with the rounded s = 1 + a."""
    s = a + 1.0
    away = s - 1.0
    return torch.where(away == 0.0, a, torch.log(s) * a / torch.where(away == 0.0, 1.0, away))


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    """Angle of (x, y), 0 at the origin."""
    slope = y / torch.where(x == 0.0, 0.0, x)  # a zero may be negative
    angle = torch.atan(torch.where(x.abs() + y.abs() < 1e-37, 0.0, slope))
    return angle + torch.where(x < 0.0, torch.where(y < 0.0, -torch.pi, torch.pi), 0.0)


def _solve(a: Any, b: OnnxTensor) -> Any:
    """The result of torch.linalg.solve_ex for right sides (N, m, 1)."""
    m = range(a.shape[-1])
    x = solved([[a[:, i, k] for k in m] for i in m], [b[:, i, 0] for i in m])
    return type("Solution", (), {"result": torch.stack(x, 1)[..., None]})


def _converted(x: OnnxTensor, like: Any) -> OnnxTensor:
    """x with the type of a tensor, or with the type `like`."""
    dtype = like.dtype if isinstance(like, Tensor) else like
    kinds = {torch.float32: np.float32, torch.float64: np.float64}
    if dtype not in kinds or not x.is_floating_point():
        return x
    return OnnxTensor.of(x.graph, x.graph.cast(x.label, kinds[dtype]), _like(x))


def _reversed(name: str) -> Callable[..., Any]:
    return lambda a, b: RULES[name](b, a)


#: Rules by the names of Torch's functions and methods, without underscores.
RULES: dict[str, Callable[..., Any]] = {
    "add": _added, "radd": _added, "iadd": _added,
    "sub": _node("Sub", operator.sub), "mul": _node("Mul", operator.mul), "rmul": _node("Mul", operator.mul),
    "div": _node("Div", operator.truediv), "truediv": _node("Div", operator.truediv), "rsub": _reversed("sub"),
    "rtruediv": _reversed("div"), "rdiv": _reversed("div"), "pow": _node("Pow", operator.pow),
    "neg": _node("Neg", operator.neg), "matmul": _node("MatMul", operator.matmul),
    "lt": _node("Less", operator.lt), "gt": _node("Greater", operator.gt), "eq": _node("Equal", operator.eq),
    "le": _node("LessOrEqual", operator.le), "ge": _node("GreaterOrEqual", operator.ge),
    "and": _node("And", operator.and_), "where": _node("Where", torch.where),
    "maximum": _node("Max", torch.maximum), "minimum": _node("Min", torch.minimum),
    **{name: _node(name.capitalize(), getattr(torch, name)) for name in (
        "abs", "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign", "round",
        "sigmoid", "reciprocal")},
    "softplus": _node("Softplus", torch.nn.functional.softplus),
    "rsqrt": lambda x: torch.reciprocal(torch.sqrt(x)), "log1p": _log1p, "atan2": _atan2,
    "isnan": _node("IsNaN", torch.isnan),
    "isfinite": lambda x: x.abs() < torch.inf, "copysign": lambda a, b: torch.where(b < 0.0, -a.abs(), a.abs()),
    "clamp": _clamped, "clamp_min": _clamped, "all": lambda *_: torch.tensor(False),  # no early end of iterations
    "getitem": _getitem, "setitem": _setitem, "sum": _sum, "cat": _joined, "stack": _stacked,
    "unbind": lambda x, dim=0: [x[(*(slice(None),) * (dim % x.dim()), i)] for i in range(x.shape[dim])],
    "iter": lambda x: iter([x[i] for i in range(len(x))]),
    "permute": _permuted, "mT": _transposed, "reshape": _reshaped, "view": _reshaped, "einsum": _einsum,
    "expand": _expanded, "expand_as": _expanded, "linalg_cross": _cross, "linalg_solve_ex": _solve,
    "index_select": lambda x, dim, places: x[(*(slice(None),) * dim, places)],
    "diagonal": lambda x, **_: torch.einsum("bii->bi", x),
    "linalg_vector_norm": lambda x, dim, keepdim=False: torch.sqrt((x * x).sum(dim, keepdim=keepdim)),
    "addmm": lambda base, a, b: a @ b + base,
    "zeros_like": lambda x: _filled(x, 0.0), "ones_like": lambda x: _filled(x, 1.0),
    "empty_like": lambda x: _filled(x, 0.0), "full_like": lambda x, value: _filled(x, float(value)),
    "new_empty": lambda x, *shape: _filled(x, 0.0, shape), "new_zeros": lambda x, *shape: _filled(x, 0.0, shape),
    "to": _converted, "double": lambda x: _converted(x, torch.float64), "float": lambda x: _converted(x, torch.float32),
    **dict.fromkeys(("contiguous", "clone", "detach"), lambda x, *_, **__: x),
}  # fmt: skip
