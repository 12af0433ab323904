"""The value's networks as vector code for a processor: V and its derivatives, or the gradient of a fit.

64 bytes of samples are computed at a time. Matrix products and passes over their outputs become one call, which keeps
the numbers of few samples in the nearest cache and lets other threads run. A result depends neither on the batch's size
nor on the sample's place in it. The formula is that of `solver.value.network.Factor.forward`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import torch

from modelgen.backends import llvm
from modelgen.backends.llvm import elementary, vectors
from modelgen.backends.llvm.vectors import LANES as LANES
from modelgen.backends.llvm.vectors import Code, Number, Value
from modelgen.files import sources
from solver.value.network import DIAGONAL_FLOOR, Factor

REALS = {torch.float32: "float", torch.float64: "double"}
SIZE = {real: layout.size // 8 for real, layout in vectors.BITS.items()}  # bytes


class Shape(NamedTuple):
    """Shape of E networks from n_z + k inputs to the K entries of a lower triangular L (n_z, n_z)."""

    members: int  # E
    layers: tuple[int, ...]  # sizes of all layers, inputs to K
    features: int  # n_z
    rows: tuple[int, ...]  # places of the entries in L
    columns: tuple[int, ...]

    @classmethod
    def of(cls, members: Sequence[Factor]) -> Shape:
        """Shape of members, which are alike."""
        first = members[0]
        layers = (len(first.weights[0]), *(len(bias) for bias in first.biases))
        places = tuple(first.rows.tolist()), tuple(first.columns.tolist())
        return cls(len(members), layers, first.column_sum.shape[1], *places)


@functools.cache
def value_kernel(shape: Shape, real: str) -> Callable[..., None]:
    """Kernel of V and its derivatives: (N, N, addresses of inputs and error (n_z + k + n_z, N), weights, results)."""
    return _compiled(_ValueWriter(shape, real, LANES[real]))


@functools.cache
def pass_kernel(shape: Shape, real: str, columns: int) -> tuple[Callable[..., None], dict[str, slice]]:
    """Kernel of the passes of a fit, and the rows of its memory by name: those of `_PassWriter`."""
    writer = _PassWriter(shape, real, columns)
    rows = {name: slice(first, first + writer.sizes[name]) for name, first in writer.first.items()}
    return _compiled(writer), rows


def _compiled(writer: _Writer) -> Callable[..., None]:
    """The kernel (columns of what is given, samples, addresses), for any weights."""
    identity = type(writer).__name__, writer.shape, writer.real, writer.columns, writer.side_by_side, DIAGONAL_FLOOR
    made_from = f"{sources(vectors, elementary)} {Path(__file__).read_text('utf-8')} {identity}"
    return llvm.machine_code("networks", len(writer.arrays), f"networks.{writer.real}", made_from, writer.text)


class Rows(Code):
    """Code of a function on vectors of samples, which are rows of arrays: `columns` numbers from row to row."""

    def __init__(self, real: str, columns: int) -> None:
        super().__init__(real)
        self.columns = columns

    def at(self, array: str, place: str, more: int = 0) -> str:
        """Address of the number at `place + more`."""
        start = self.make(f"getelementptr inbounds {self.real}, ptr {array}, i64 {place}")
        return self.make(f"getelementptr inbounds {self.real}, ptr {start}, i64 {more}") if more else start

    def _row(self, array: str, row: str) -> str:
        return self.at(array, self.make(f"mul i64 {row}, {self.columns}"))

    def load(self, address: str) -> Number:
        """The vector at an address."""
        return Number(self, Value(self.make(f"load {self.vector}, ptr {address}, align {SIZE[self.real]}")))

    def store(self, address: str, vector: str) -> None:
        """Store a vector at an address."""
        self.do(f"store {self.vector} {vector}, ptr {address}, align {SIZE[self.real]}")

    def row(self, array: str, row: str) -> Number:
        """A row of an array."""
        return self.load(self._row(array, row))

    def rows(self, array: str, count: int) -> list[Number]:
        """The first rows of an array."""
        return [self.row(array, str(k)) for k in range(count)]

    def set(self, array: str, row: str, value: Number | str) -> None:
        """Replace a row of an array."""
        self.store(self._row(array, row), value if isinstance(value, str) else value.value.text)

    def spread(self, array: str, place: str, more: int) -> str:
        """Vector of a number in all lanes."""
        number = self.make(f"load {self.real}, ptr {self.at(array, place, more)}")
        one = self.make(f"insertelement {self.vector} poison, {self.real} {number}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.make(f"shufflevector {self.vector} {one}, {self.vector} poison, {zeros}")

    @contextmanager
    def loop(
        self, name: str, first: int, last: int | str, step: int = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[str]:
        """A loop that runs at least once, with its counter.

        carried: vectors and their first values; the body defines the next value of `NAME` as `NAME.next`.
        """
        counter = f"%{name}.i"
        self.do(f"br label %{name}.begin\n{name}.begin:\n  br label %{name}\n{name}:")
        self.do(f"{counter} = phi i64 [{first}, %{name}.begin], [{counter}.next, %{name}.again]")
        for one, start in carried:
            self.do(f"{one} = phi {self.vector} [{start}, %{name}.begin], [{one}.next, %{name}.again]")
        yield counter
        self.do(f"br label %{name}.again\n{name}.again:")
        self.do(f"{counter}.next = add nuw nsw i64 {counter}, {step}")
        more = self.make(f"icmp slt i64 {counter}.next, {last}")
        self.do(f"br i1 {more}, label %{name}, label %{name}.end\n{name}.end:")


Finish = Callable[[Rows, Number, str], None]


class _Writer(ABC):
    """LLVM code of networks: a loop over vectors of samples, which calls a function for every layer.

    What it computes are rows of one memory, `columns` numbers long.
    """

    arrays: tuple[str, ...]  # whose addresses the kernel takes
    lowest: int  # layer at which the reverse pass ends

    def __init__(self, shape: Shape, real: str, columns: int) -> None:
        self.shape, self.real, self.columns = shape, real, columns
        self.side_by_side = llvm.vector_bytes() // 8  # outputs whose sums are computed together, in the registers
        self.layers = list(pairwise(shape.layers))
        hidden = list(enumerate(shape.layers[1:-1], 1))
        self.sizes = {"x": shape.layers[0], "error": shape.features, "entries": shape.layers[-1]}
        self.sizes |= {f"{name}{i}": width for name in "hg" for i, width in hidden} | self.results
        *starts, self.size = accumulate(self.sizes.values(), initial=0)
        self.first = dict(zip(self.sizes, starts, strict=True))  # rows
        self._functions: list[str] = []
        self._declared: dict[str, None] = {}

    @property
    @abstractmethod
    def results(self) -> dict[str, int]:
        """Names and numbers of further rows."""

    @abstractmethod
    def write(self, code: Rows, at: str) -> None:
        """Code of the samples from `at` on, within the loop."""

    @abstractmethod
    def use(self, code: Rows, places: dict[str, str], entries: list[Number], y: list[Number]) -> list[Number]:
        """Use of y = L^T error. Returns the factors of the error in the slopes of the entries of L: y, or multiples."""

    def text(self) -> str:
        """The module with `networks(step, last, addresses)`, for `last` samples of arrays with rows of `step`."""
        for i, (into, out) in enumerate(self.layers):
            self._layer(f"forward{i}", into, out, (out, 1), _tanh if i + 1 < len(self.layers) else _kept, bias=True)
            if i >= self.lowest:
                rows = into if i else self.shape.features
                self._layer(f"backward{i}", out, rows, (1, out), _sloped if i else _added)
        code = Rows(self.real, self.columns)
        if "space" not in self.arrays:
            code.do(f"%space = alloca [{self.size * self.columns} x {self.real}], align 64")
        with code.loop("samples", 0, "%last", code.lanes) as sample:
            end = code.make(f"sub i64 %last, {code.lanes}")
            inside = code.make(f"icmp slt i64 {sample}, {end}")
            # The last vector overlaps the one before.
            self.write(code, code.make(f"select i1 {inside}, i64 {sample}, i64 {end}"))
        self._add(code, "networks", "i64 %step, i64 %last, ", self.arrays, internal=False)
        return "\n".join([*self._declared, *self._functions])

    def _layer(
        self, name: str, into: int, out: int, steps: tuple[int, int], finish: Finish, bias: bool = False
    ) -> None:
        """Function that finishes the sums of `out` outputs over `into` rows of x.

        steps: from one weight to that of the next input, and of the next output.
        """
        code, whole = Rows(self.real, self.columns), out - out % self.side_by_side
        for first, last, count in ((0, whole, self.side_by_side), (whole, out, out - whole)):
            if first < last:
                with code.loop(f"part{first}", first, last, count) as j:
                    starts = [code.spread("%b", j, k) if bias else "zeroinitializer" for k in range(count)]
                    for k, total in enumerate(_sums(code, f"sums{first}", into, steps, j, starts)):
                        finish(code, total, code.make(f"add i64 {j}, {k}"))
        self._add(code, name, "", ("w", "b", "x", "y", "h"))

    def _add(self, code: Rows, name: str, counts: str, arrays: Sequence[str], internal: bool = True) -> None:
        arguments = counts + ", ".join(f"ptr noalias %{array}" for array in arrays)
        self._functions.append(code.function(name, arguments, internal))
        self._declared |= code.declared

    def places(self, code: Rows, at: str) -> dict[str, str]:
        """Addresses of all rows, at a sample."""
        return {name: code.at("%space", at, row * self.columns) for name, row in self.first.items()}

    def read(self, code: Rows, array: str, to: str, first: int, at: str, place: str) -> None:
        """Copy rows of what is given, from the row `first` on, to those of a name."""
        with code.loop(f"read_{to}", 0, self.sizes[to]) as k:
            start = code.make(f"mul i64 {code.make(f'add i64 {k}, {first}')}, %step")
            code.set(place, k, code.load(code.at(array, code.make(f"add i64 {start}, {at}"))))

    def member(self, code: Rows, places: dict[str, str], base: str) -> None:
        """One network, whose weights begin at `base`: forward, from the entries of L to V, and back."""
        count = len(self.layers)
        *starts, _ = accumulate([*(into * out for into, out in self.layers), *self.shape.layers[1:]], initial=0)
        values = ["x", *(f"h{i}" for i in range(1, count)), "entries"]
        adjoints = ["slopes", *(f"g{i}" for i in range(1, count)), "entries"]

        def call(layer: str, i: int, x: str, y: str, h: str) -> None:
            w, b = (code.at("%numbers", base, starts[k]) for k in (i, count + i))
            code.do(f"call void @{layer}{i}(ptr {w}, ptr {b}, ptr {places[x]}, ptr {places[y]}, ptr {h})")

        for i in range(count):
            call("forward", i, values[i], values[i + 1], "null")
        self._factor(code, places)
        for i in reversed(range(self.lowest, count)):
            call("backward", i, adjoints[i + 1], adjoints[i], places[values[i]])

    def _factor(self, code: Rows, places: dict[str, str]) -> None:
        """Replace the outputs of the network by the slopes of V, or of the loss, in them."""
        of = list(zip(self.shape.rows, self.shape.columns, strict=True))
        entries, error = code.rows(places["entries"], len(of)), code.rows(places["error"], self.shape.features)
        steepness = dict[int, Number]()
        for k, (row, column) in enumerate(of):
            if row == column:
                entries[k], steepness[k] = _softplus(entries[k])
                entries[k] = entries[k] + DIAGONAL_FLOOR
        y: list[Number] = []
        for column in range(self.shape.features):
            terms = [entries[k] * error[row] for k, (row, its) in enumerate(of) if its == column]
            y.append(functools.reduce(lambda a, b: a + b, terms))
        factors = self.use(code, places, entries, y)
        for k, (row, column) in enumerate(of):
            slope = factors[column] * error[row]
            code.set(places["entries"], str(k), slope * steepness[k] if k in steepness else slope)


class _ValueWriter(_Writer):
    """V and its derivatives, means over the members: rows of `made`."""

    arrays, lowest = ("given", "numbers", "made"), 0

    @property
    def results(self) -> dict[str, int]:
        return {"value": 1, "slopes": self.shape.features, "direct": self.shape.features}

    def write(self, code: Rows, at: str) -> None:
        """As in the base class. The memory holds the samples of one vector."""
        places, made = self.places(code, "0"), sum(self.results.values())
        self.read(code, "%given", "x", 0, at, places["x"])
        self.read(code, "%given", "error", self.sizes["x"], at, places["error"])
        with code.loop("clear", 0, made) as k:
            code.set(places["value"], k, "zeroinitializer")
        with code.loop("members", 0, self.shape.members) as member:
            weights = sum((into + 1) * out for into, out in self.layers)
            self.member(code, places, code.make(f"mul i64 {member}, {weights}"))
        for first, last, factor in ((0, 1, -1.0), (1, made, -2.0)):
            with code.loop(f"write{first}", first, last) as k:
                mean = code.row(places["value"], k) * (factor / self.shape.members)
                place = code.make(f"add i64 {code.make(f'mul i64 {k}, %step')}, {at}")
                code.store(code.at("%made", place), mean.value.text)

    def use(self, code: Rows, places: dict[str, str], entries: list[Number], y: list[Number]) -> list[Number]:
        """Add y^T y to the value, and L y to the slopes in the error."""
        value, direct = code.row(places["value"], "0"), code.rows(places["direct"], self.shape.features)
        code.set(places["value"], "0", functools.reduce(lambda total, one: total + one * one, y, value))
        for entry, row, column in zip(entries, self.shape.rows, self.shape.columns, strict=True):
            direct[row] = direct[row] + entry * y[column]
        for k, total in enumerate(direct):
            code.set(places["direct"], str(k), total)
        return y


class _PassWriter(_Writer):
    """Hidden layers, and derivatives of w |V - V_tar|: rows of `space`, for a minibatch."""

    arrays, lowest = ("z", "error", "target", "weight", "numbers", "space"), 1

    @property
    def results(self) -> dict[str, int]:
        return {"target": 1, "weight": 1, "residual": 1}

    def write(self, code: Rows, at: str) -> None:
        """As in the base class."""
        places = self.places(code, at)
        for array, to in (("%z", "x"), ("%error", "error"), ("%target", "target"), ("%weight", "weight")):
            self.read(code, array, to, 0, at, places[to])
        self.member(code, places, "0")

    def use(self, code: Rows, places: dict[str, str], entries: list[Number], y: list[Number]) -> list[Number]:  # noqa: ARG002
        """Write the residual, and take its sign and the weight."""
        target, weight = code.row(places["target"], "0"), code.row(places["weight"], "0")
        residual = -functools.reduce(lambda total, one: total + one * one, y, target)
        code.set(places["residual"], "0", residual)
        zero = residual * 0.0  # NaN where the residual is
        slope = (residual > 0.0).select(weight, (residual < 0.0).select(-weight, zero)) * -2.0
        return [one * slope for one in y]


def _sums(code: Rows, name: str, into: int, steps: tuple[int, int], j: str, starts: Sequence[str]) -> list[Number]:
    """Sums over the rows of x of the outputs from j on, each from its start."""
    multiply = f"@llvm.fmuladd.v{code.lanes}f{8 * SIZE[code.real]}"
    code.declared[f"declare {code.vector} {multiply}({', '.join([code.vector] * 3)})"] = None
    carried = [(f"%{name}.{k}", start) for k, start in enumerate(starts)]
    with code.loop(name, 0, into, carried=carried) as i:
        x = code.row("%x", i).value.text
        places = [code.make(f"mul i64 {k}, {step}") for k, step in zip((i, j), steps, strict=True)]
        place = code.make(f"add i64 {', '.join(places)}")
        for k, (total, _) in enumerate(carried):
            factors = (
                f"{code.vector} {x}, {code.vector} {code.spread('%w', place, k * steps[1])}, {code.vector} {total}"
            )
            code.do(f"{total}.next = call {code.vector} {multiply}({factors})")
    return [Number(code, Value(f"{total}.next")) for total, _ in carried]


def _kept(code: Rows, total: Number, place: str) -> None:
    code.set("%y", place, total)


def _tanh(code: Rows, total: Number, place: str) -> None:
    code.set("%y", place, 2.0 / (_exp(total * -2.0) + 1.0) - 1.0)


def _sloped(code: Rows, total: Number, place: str) -> None:
    h = code.row("%h", place)
    code.set("%y", place, total * (1.0 - h * h))


def _added(code: Rows, total: Number, place: str) -> None:
    code.set("%y", place, total + code.row("%y", place))


def _exp(x: Number) -> Number:
    real = x.code.real
    result: Number = elementary.exp(x, *elementary.EXP[real], *elementary.LOG_2[real])
    return result


def _softplus(x: Number) -> tuple[Number, Number]:
    """log(1 + e^x), and its slope."""
    small = _exp(-abs(x))
    rest: Number = elementary.log1p(small, *elementary.LOG_2[x.code.real])
    return elementary.maximum(x, 0.0) + rest, elementary.select(x > 0.0, 1.0, small) / (small + 1.0)
