"""The value's networks as vector code for a processor: V and its derivatives, 64 bytes of samples at a time.

Matrix products and passes over their outputs become one call, which keeps the numbers of a few samples in the nearest
cache and lets other threads run. A result depends neither on the batch's size nor on the sample's place in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from modelgen.backends import llvm
from modelgen.backends.llvm import elementary, vectors
from modelgen.backends.llvm.vectors import Code, Number, Value
from modelgen.files import sources
from solver.value.network import DIAGONAL_FLOOR, Factor

REALS = {torch.float32: "float", torch.float64: "double"}


@dataclass(frozen=True)
class Folded:
    """Fixed weights of E networks with the logistic function, with the affine maps of their activations folded in.

    Their outputs are the K entries of a lower triangular L (n_z, n_z), before the softplus on its diagonal.
    """

    weights: list[Tensor]  # (E, in, out)
    biases: list[Tensor]  # (E, out)
    rows: Tensor  # (K,) places of the entries in L
    columns: Tensor  # (K,)
    features: int  # n_z

    @classmethod
    def of(cls, members: Sequence[Factor]) -> Folded:
        """Weights of members: tanh(y) = 2 sigmoid(2 y) - 1."""
        weights, biases, first = [], [], members[0]
        last = len(first.weights) - 1
        for i in range(last + 1):
            w = torch.stack([member.weights[i].detach() for member in members])
            b = torch.stack([member.biases[i].detach() for member in members])
            if i > 0:
                b -= w.sum(1)
                w *= 2.0
            outer = 1.0 if i == last else 2.0
            weights.append(w * outer)
            biases.append(b * outer)
        return cls(weights, biases, first.rows, first.columns, first.column_sum.shape[1])


class CompiledNetworks:
    """V and its derivatives of networks on a processor."""

    def __init__(self, folded: Folded) -> None:
        weights, biases, self._features = folded.weights, folded.biases, folded.features
        self._real = REALS[weights[0].dtype]
        backward = [w.mT for w in (weights[0][:, : self._features], *weights[1:])]
        parts = [part.reshape(len(weights[0]), -1) for part in (*weights, *biases, *backward)]
        self._numbers = torch.cat(parts, 1).contiguous()
        layers = (weights[0].shape[1], *[w.shape[2] for w in weights])
        places = tuple(folded.rows.tolist()), tuple(folded.columns.tolist())
        self._kernel = _kernel(Shape(len(weights[0]), layers, self._features, *places), self._real)

    def __call__(self, inputs: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """V (N,) and its derivatives (N, n_z) in the first n_z of the inputs and in the error.

        inputs: (N, n_z + k). error: (N, n_z).
        """
        size, few = len(inputs), max(vectors.LANES[self._real] - len(inputs), 0)
        given = torch.cat([inputs, error], 1)
        given = (torch.cat([given, given.new_zeros(few, given.shape[1])]) if few else given).T.contiguous()
        made = given.new_empty(1 + 2 * self._features, size + few)
        self._kernel(0, size + few, given.data_ptr(), self._numbers.data_ptr(), made.data_ptr())
        value, by_input, by_error = torch.split(made[:, :size], [1, self._features, self._features])
        return value[0], by_input.T, by_error.T


class Shape(NamedTuple):
    """Shape of E networks from n_z + k inputs to the K entries of L."""

    members: int  # E
    layers: tuple[int, ...]  # sizes of all layers, inputs to K
    features: int  # n_z
    rows: tuple[int, ...]  # places of the entries in L
    columns: tuple[int, ...]


@functools.cache
def _kernel(shape: Shape, real: str) -> Callable[..., None]:
    """The compiled networks of a shape, for any weights."""
    side_by_side = llvm.vector_bytes() // 8  # sums stay in the registers
    source = Path(__file__).read_text("utf-8")
    made_from = f"{sources(vectors, elementary)} {source} {real} {side_by_side} {shape} {DIAGONAL_FLOOR}"
    return llvm.machine_code("networks", 3, f"networks.{real}", made_from, _Writer(shape, real, side_by_side).text)


class _Writer:
    """LLVM code of the networks of a shape: a loop over vectors of samples, which calls a function for every layer."""

    def __init__(self, shape: Shape, real: str, side_by_side: int) -> None:
        """side_by_side: outputs of a layer whose sums are computed together."""
        self._shape, self._real, self._side_by_side = shape, real, side_by_side
        self._layers = list(pairwise(shape.layers))
        self._functions: list[str] = []
        self._declared: dict[str, None] = {}

    def text(self) -> str:
        """The module with `networks(first, last, given, numbers, made)`, for all columns: first is 0."""
        last = len(self._layers) - 1
        for i, (into, out) in enumerate(self._layers):
            self._layer(f"forward{i}", into, out, _stored if i == last else _logistic, bias=True)
            self._layer(f"backward{i}", out, into if i else self._shape.features, _sloped if i else _added)
        self._all()
        return "\n".join([*self._declared, *self._functions])

    def _layer(self, name: str, into: int, out: int, finish: Finish, bias: bool = False) -> None:
        """Function that finishes the sums b + x W of `out` outputs, for vectors x (into,) of samples."""
        code, whole = Code(self._real), out - out % self._side_by_side
        for first, last, count in ((0, whole, self._side_by_side), (whole, out, out - whole)):
            if first < last:
                with _loop(code, f"part{first}", first, last, count) as (j, _):
                    starts = [_spread(code, "b", j, k) if bias else "zeroinitializer" for k in range(count)]
                    for k, total in enumerate(_sums(code, f"sums{first}", (into, out), j, starts)):
                        finish(code, Number(code, Value(total)), code.make(f"add i64 {j}, {k}"))
        self._add(code, name, ("w", "b", "x", "y", "h"))

    def _add(self, code: Code, name: str, arrays: Sequence[str], counts: str = "", internal: bool = True) -> None:
        arguments = counts + ", ".join(f"ptr noalias %{array}" for array in arrays)
        self._functions.append(code.function(name, arguments, internal))
        self._declared |= code.declared

    def _all(self) -> None:
        """Function of all samples."""
        shape, code = self._shape, Code(self._real)
        inputs, *hidden, entries = shape.layers
        widest, results = max(hidden), 1 + 2 * shape.features
        sizes = {"x": inputs, "error": shape.features, "entries": entries, "outer": entries, "sums": results}
        sizes |= {f"h{i + 1}": width for i, width in enumerate(hidden)} | {"g0": widest, "g1": widest}
        for array, size in sizes.items():
            code.do(f"%{array} = alloca [{size} x {code.vector}], align 64")
        with _loop(code, "samples", 0, "%last", code.lanes) as (sample, _):
            end = code.make(f"sub i64 %last, {code.lanes}")
            inside = code.make(f"icmp slt i64 {sample}, {end}")
            at = code.make(f"select i1 {inside}, i64 {sample}, i64 {end}")  # the last vector overlaps the one before
            for array, first, count in (("x", 0, inputs), ("error", inputs, shape.features)):
                with _loop(code, f"read_{array}", 0, count) as (k, _):
                    _store(code, array, k, _given(code, "given", k, first, at))
            with _loop(code, "clear", 0, results) as (k, _):
                _store(code, "sums", k, "zeroinitializer")
            with _loop(code, "members", 0, shape.members) as (member, _):
                self._member(code, member)
            for first, count, factor in ((0, 1, -1.0), (1, results - 1, -2.0)):
                with _loop(code, f"write{first}", 0, count) as (k, _):
                    row = code.make(f"add i64 {k}, {first}")
                    mean = Number(code, Value(_loaded(code, "sums", row))) * (factor / shape.members)
                    address = _address(code, "made", row, at)
                    code.do(f"store {code.vector} {mean.value.text}, ptr {address}, align {SIZE[code.real]}")
        self._add(code, "networks", ("given", "numbers", "made"), "i64 %first, i64 %last, ", internal=False)

    def _member(self, code: Code, member: str) -> None:
        """One network: forward, from the entries of L to V, and back."""
        layers, count = self._layers, len(self._layers)
        sizes = [into * out for into, out in layers] + [out for _, out in layers]
        sizes += [(into if i else self._shape.features) * out for i, (into, out) in enumerate(layers)]
        *starts, stride = accumulate(sizes, initial=0)
        base = code.make(f"mul i64 {member}, {stride}")
        slopes = code.make(f"getelementptr inbounds {code.vector}, ptr %sums, i64 1")
        values = ["%x", *(f"%h{i}" for i in range(1, count)), "%entries"]
        adjoints = [slopes, *(f"%g{i % 2}" for i in range(1, count)), "%outer"]

        def call(layer: str, weights: int, biases: int, x: str, y: str, h: str) -> None:
            w, b = (_number(code, "numbers", base, starts[k]) for k in (weights, biases))
            code.do(f"call void @{layer}(ptr {w}, ptr {b}, ptr {x}, ptr {y}, ptr {h})")

        for i in range(count):
            call(f"forward{i}", i, count + i, values[i], values[i + 1], "null")
        self._factor(code)
        for i in reversed(range(count)):
            call(f"backward{i}", 2 * count + i, count, adjoints[i + 1], adjoints[i], values[i])

    def _factor(self, code: Code) -> None:
        """With y = L^T error: add y^T y and L y to the sums, and write the slopes of V in the entries of L."""
        features, places = self._shape.features, list(zip(self._shape.rows, self._shape.columns, strict=True))

        def numbers(array: str, first: int, count: int) -> list[Number]:
            return [Number(code, Value(_loaded(code, array, str(first + k)))) for k in range(count)]

        entries, slopes = numbers("entries", 0, len(places)), dict[int, Number]()
        for k, (row, column) in enumerate(places):
            if row == column:
                entries[k], slopes[k] = _softplus(entries[k])
                entries[k] = entries[k] + DIAGONAL_FLOOR
        error = numbers("error", 0, features)
        y: list[Number | float] = [0.0] * features
        for entry, (row, column) in zip(entries, places, strict=True):
            y[column] = entry * error[row] + y[column]
        (value,), slope = numbers("sums", 0, 1), numbers("sums", 1 + features, features)
        for one in y:
            value = value + one * one
        for k, (row, column) in enumerate(places):
            slope[row] = slope[row] + entries[k] * y[column]
            outer = error[row] * y[column]
            _store(code, "outer", str(k), (outer * slopes[k] if k in slopes else outer).value.text)
        for k, total in ((0, value), *enumerate(slope, 1 + features)):
            _store(code, "sums", str(k), total.value.text)


SIZE = {"double": 8, "float": 4}
Finish = Callable[[Code, Number, str], None]


def _stored(code: Code, total: Number, place: str) -> None:
    _store(code, "y", place, total.value.text)


def _logistic(code: Code, total: Number, place: str) -> None:
    _stored(code, 1.0 / (_exp(-total) + 1.0), place)


def _sloped(code: Code, total: Number, place: str) -> None:
    h = Number(code, Value(_loaded(code, "h", place)))
    _stored(code, total * (h - h * h), place)


def _added(code: Code, total: Number, place: str) -> None:
    _stored(code, total + Number(code, Value(_loaded(code, "y", place))), place)


def _exp(x: Number) -> Number:
    real = x.code.real
    result: Number = elementary.exp(x, *elementary.EXP[real], *elementary.LOG_2[real])
    return result


def _softplus(x: Number) -> tuple[Number, Number]:
    """log(1 + e^x), and its slope."""
    small = _exp(-abs(x))
    rest: Number = elementary.log1p(small, *elementary.LOG_2[x.code.real])
    return elementary.maximum(x, 0.0) + rest, elementary.select(x > 0.0, 1.0, small) / (small + 1.0)


@contextmanager
def _loop(
    code: Code, name: str, first: int, last: int | str, step: int = 1, carried: Sequence[tuple[str, str]] = ()
) -> Iterator[tuple[str, list[str]]]:
    """A loop that runs at least once: its counter, and the names of what it carries from one turn to the next.

    carried: names and first values of vectors; the body defines the next value of `NAME` as `NAME.next`.
    """
    code.do(f"br label %{name}.begin\n{name}.begin:")
    code.do(f"br label %{name}\n{name}:")
    counter = f"%{name}.i"
    code.do(f"{counter} = phi i64 [{first}, %{name}.begin], [{counter}.next, %{name}.again]")
    for one, start in carried:
        code.do(f"{one} = phi {code.vector} [{start}, %{name}.begin], [{one}.next, %{name}.again]")
    yield counter, [one for one, _ in carried]
    code.do(f"br label %{name}.again\n{name}.again:")
    code.do(f"{counter}.next = add nuw nsw i64 {counter}, {step}")
    more = code.make(f"icmp slt i64 {counter}.next, {last}")
    code.do(f"br i1 {more}, label %{name}, label %{name}.end\n{name}.end:")


def _sums(code: Code, name: str, shape: tuple[int, int], j: str, starts: Sequence[str]) -> list[str]:
    """Vectors of the sums over the inputs x of the outputs from j on, each from its start."""
    multiply = f"@llvm.fmuladd.v{code.lanes}f{8 * SIZE[code.real]}"
    code.declared[f"declare {code.vector} {multiply}({', '.join([code.vector] * 3)})"] = None
    carried = [(f"%{name}.{k}", start) for k, start in enumerate(starts)]
    with _loop(code, name, 0, shape[0], carried=carried) as (i, totals):
        x, row = _loaded(code, "x", i), code.make(f"mul i64 {i}, {shape[1]}")
        place = code.make(f"add i64 {row}, {j}")
        for k, total in enumerate(totals):
            factors = f"{code.vector} {x}, {code.vector} {_spread(code, 'w', place, k)}, {code.vector} {total}"
            code.do(f"{total}.next = call {code.vector} {multiply}({factors})")
    return [f"{total}.next" for total in totals]


def _number(code: Code, array: str, place: str, more: int) -> str:
    """Address of the number at `place + more`."""
    start = code.make(f"getelementptr inbounds {code.real}, ptr %{array}, i64 {place}")
    return code.make(f"getelementptr inbounds {code.real}, ptr {start}, i64 {more}")


def _spread(code: Code, array: str, place: str, more: int) -> str:
    """Vector of a number in all lanes."""
    number = code.make(f"load {code.real}, ptr {_number(code, array, place, more)}")
    one = code.make(f"insertelement {code.vector} poison, {code.real} {number}, i32 0")
    lanes = f"<{code.lanes} x i32> zeroinitializer"
    return code.make(f"shufflevector {code.vector} {one}, {code.vector} poison, {lanes}")


def _loaded(code: Code, array: str, place: str) -> str:
    """A vector of samples."""
    address = code.make(f"getelementptr inbounds {code.vector}, ptr %{array}, i64 {place}")
    return code.make(f"load {code.vector}, ptr {address}, align 64")


def _store(code: Code, array: str, place: str, vector: str) -> None:
    address = code.make(f"getelementptr inbounds {code.vector}, ptr %{array}, i64 {place}")
    code.do(f"store {code.vector} {vector}, ptr {address}, align 64")


def _address(code: Code, array: str, row: str, at: str) -> str:
    """Address of the samples from `at` on, in a row of all samples."""
    start = code.make(f"mul i64 {row}, %last")
    place = code.make(f"add i64 {start}, {at}")
    return code.make(f"getelementptr inbounds {code.real}, ptr %{array}, i64 {place}")


def _given(code: Code, array: str, row: str, first: int, at: str) -> str:
    address = _address(code, array, code.make(f"add i64 {row}, {first}"), at)
    return code.make(f"load {code.vector}, ptr {address}, align {SIZE[code.real]}")
