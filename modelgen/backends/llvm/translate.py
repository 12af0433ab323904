"""A function of one sample as LLVM code that runs it on vectors of samples.

A batch is stored sample after sample, and vector code needs the same entry of many samples. Gathers and scatters
cost as much as the arithmetic. Rows of less than TILE entries are read as whole vectors, whose lanes are picked;
longer ones in tiles of TILE entries by TILE samples, transposed in three steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from modelgen.backends.llvm import elementary
from modelgen.backends.llvm.vectors import FLAGS, Code, Number, Value
from modelgen.backends.statements import Assignment, Statements, statements
from modelgen.program.functions import Function
from modelgen.program.graph import Graph, Node

TILE = 8


class Maker(Protocol):
    """The part of `vectors.Code` that shuffles use."""

    real: str
    lanes: int
    vector: str

    def make(self, instruction: str) -> str:
        """The name of an instruction's result."""

    def do(self, instruction: str) -> None:
        """An instruction without a result."""

    def address(self, array: str, width: int, row: int, column: int) -> str:
        """Where an entry of the sample `row` lanes after the loop's lies."""


def load_columns(code: Maker, array: str, width: int, wanted: Sequence[int]) -> dict[int, str]:
    """Vectors of the wanted entries of the next samples."""
    if width < TILE:
        if not wanted:
            return {}
        sources = [_load(code, code.address(array, width, 0, k * code.lanes), code.lanes) for k in range(width)]
        if width == 4:
            return dict(enumerate(_dealt(code, sources)))
        return {
            c: _picked(code, sources, [divmod(s * width + c, code.lanes) for s in range(code.lanes)]) for c in wanted
        }
    columns: dict[int, str] = {}
    for start in sorted({*range(0, width - TILE + 1, TILE), width - TILE}):  # the last tile overlaps the one before
        if columns.keys() >= {c for c in wanted if start <= c < start + TILE}:
            continue
        rows = []
        for row in range(TILE):
            pieces = [
                _load(code, code.address(array, width, row + group, start), TILE)
                for group in range(0, code.lanes, TILE)
            ]
            rows.append(pieces[0] if len(pieces) == 1 else _joined(code, *pieces))
        columns |= {start + c: vector for c, vector in enumerate(_transposed(code, rows))}
    return columns


def store_columns(code: Maker, array: str, width: int, columns: dict[int, str]) -> None:
    """Store the entries of the next samples, of which `columns` holds those known by now.

    Called after each new column, it stores a tile as soon as its last column is there.
    """
    if width < TILE:
        if len(columns) == width:
            ordered = [columns[c] for c in range(width)]
            if width == 4:
                for k, vector in enumerate(_dealt_back(code, ordered)):
                    _store(code, vector, code.address(array, width, 0, k * code.lanes), code.lanes)
                return
            for k in range(width):
                places = [divmod(k * code.lanes + lane, width)[::-1] for lane in range(code.lanes)]
                _store(code, _picked(code, ordered, places), code.address(array, width, 0, k * code.lanes), code.lanes)
        return
    newest = next(reversed(columns))
    last = width - TILE
    for start in sorted({min(newest - newest % TILE, last), last}):
        tile = range(start, start + TILE)
        if newest not in tile or not all(c in columns for c in tile):
            continue
        for row, vector in enumerate(_transposed(code, [columns[c] for c in tile])):
            for group in range(0, code.lanes, TILE):
                piece = vector if code.lanes == TILE else _part(code, vector, group)
                _store(code, piece, code.address(array, width, row + group, start), TILE)


def _transposed(code: Maker, vectors: Sequence[str]) -> list[str]:
    """TILE vectors with rows and columns exchanged in every group of TILE lanes."""
    result = list(vectors)
    for step in (1, 2, 4):
        for low in (k for k in range(TILE) if not k & step):
            a, b = result[low], result[low + step]
            lanes = range(code.lanes)
            result[low] = _shuffled(code, a, b, [k - step + code.lanes if k & step else k for k in lanes])
            result[low + step] = _shuffled(code, a, b, [k + code.lanes if k & step else k + step for k in lanes])
    return result


def _dealt(code: Maker, vectors: Sequence[str]) -> list[str]:
    """Four columns from four vectors of whole rows: every second lane, twice; a third fewer shuffles than `_picked`."""
    even, odd = ([*range(start, 2 * code.lanes, 2)] for start in (0, 1))
    a, b, c, d = vectors
    low, high = (
        (_shuffled(code, a, b, even), _shuffled(code, a, b, odd)),
        (_shuffled(code, c, d, even), _shuffled(code, c, d, odd)),
    )
    return [_shuffled(code, low[k % 2], high[k % 2], even if k < 2 else odd) for k in range(4)]


def _dealt_back(code: Maker, columns: Sequence[str]) -> list[str]:
    """Vectors of whole rows from four columns."""
    n = code.lanes
    halves = [[k // 2 + (k % 2) * n + half * n // 2 for k in range(n)] for half in (0, 1)]
    evens = [_shuffled(code, columns[0], columns[2], mask) for mask in halves]
    odds = [_shuffled(code, columns[1], columns[3], mask) for mask in halves]
    return [_shuffled(code, evens[k // 2], odds[k // 2], halves[k % 2]) for k in range(4)]


def _picked(code: Maker, sources: Sequence[str], places: Sequence[tuple[int, int]]) -> str:
    """The vector whose lanes are (source, lane of it)."""
    first, *others = sorted({source for source, _ in places})
    result, at = sources[first], [lane for _, lane in places]
    here = list(range(code.lanes))
    for other in others:
        mask = [code.lanes + lane if source == other else k for (source, lane), k in zip(places, at, strict=True)]
        result, at = _shuffled(code, result, sources[other], mask), here
    return result if at == here else _shuffled(code, result, result, at)


def _shuffled(code: Maker, a: str, b: str, mask: Sequence[int]) -> str:
    lanes = ", ".join(f"i32 {lane}" for lane in mask)
    return code.make(f"shufflevector {code.vector} {a}, {code.vector} {b}, <{len(mask)} x i32> <{lanes}>")


def _joined(code: Maker, a: str, b: str) -> str:
    half = f"<{TILE} x {code.real}>"
    lanes = ", ".join(f"i32 {lane}" for lane in range(2 * TILE))
    return code.make(f"shufflevector {half} {a}, {half} {b}, <{2 * TILE} x i32> <{lanes}>")


def _part(code: Maker, vector: str, start: int) -> str:
    lanes = ", ".join(f"i32 {start + lane}" for lane in range(TILE))
    return code.make(f"shufflevector {code.vector} {vector}, {code.vector} poison, <{TILE} x i32> <{lanes}>")


def _load(code: Maker, address: str, count: int) -> str:
    size = 8 if code.real == "double" else 4
    return code.make(f"load <{count} x {code.real}>, ptr {address}, align {size}")


def _store(code: Maker, vector: str, address: str, count: int) -> None:
    size = 8 if code.real == "double" else 4
    code.do(f"store <{count} x {code.real}> {vector}, ptr {address}, align {size}")


_INFIX = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
#: What the processor has, by LLVM's names.
_INSTRUCTIONS = {"abs": "fabs", "sqrt": "sqrt"}


def llvm_code(graph: Graph, function: Function, real: str, shared: bool) -> str:
    """The module with `function(first, last, addresses...)` over the samples first to last.

    With `shared`, theta is one row for all samples, and what depends on theta alone is computed once.
    """
    code, lines = Code(real), statements(graph, function)
    uniform = {"theta"} if shared else set()
    widths = {argument.name: len(argument.entries) for argument in function.arguments}
    widths |= {output.name: len(output.entries) for output in function.outputs}
    translation = _Translation(code, lines, _entries(code, lines, widths, uniform))
    outputs: dict[str, dict[int, str]] = {}
    for line in lines.body:
        if isinstance(line, Assignment):
            translation.assign(line)
        else:
            columns = outputs.setdefault(line.array, {})
            columns[line.index] = code.wide(translation(line.node))
            store_columns(code, line.array, widths[line.array], columns)
        code.end_statement()
    return code.text(function.name, widths, outputs.keys(), uniform)


def _entries(code: Code, lines: Statements, widths: dict[str, int], uniform: set[str]) -> dict[Node, Value]:
    """The values of the entries of arguments."""
    known: dict[Node, Value] = {}
    for array, width in widths.items():
        wanted = {entry.index: entry.node for entry in lines.entries if entry.array == array}
        if array in uniform:
            known |= {node: code.number(array, index) for index, node in wanted.items()}
        else:
            columns = load_columns(code, array, width, sorted(wanted))
            known |= {node: Value(columns[index]) for index, node in wanted.items()}
    return known


class _Translation:
    """Nodes as values; a call of the instance makes the code of one that has no name."""

    def __init__(self, code: Code, lines: Statements, known: dict[Node, Value]) -> None:
        self._code = code
        self._lines = lines
        self._known = known
        self._sines: dict[Value, tuple[Value, Value]] = {}

    def assign(self, line: Assignment) -> None:
        for node, value in zip(line.nodes, [self._made(node) for node in line.nodes], strict=True):
            self._known[node] = value

    def __call__(self, node: Node) -> Value:
        node = self._lines.shown(node)
        return self._known[node] if node in self._known else self._made(node)

    def _made(self, node: Node) -> Value:
        operation = self._lines.graph.operations[node]
        if operation.kind == "constant":
            return self._code.constant(operation.value)
        if operation.kind == "solution":
            return self(operation.arguments[0])
        values = [self(argument) for argument in operation.arguments]
        if operation.kind == "negative":
            return self._code.apply(f"fneg {FLAGS}", *values)
        if operation.kind in _INFIX:
            return self._code.apply(f"{_INFIX[operation.kind]} {FLAGS}", *values)
        return self._called(operation.kind, values)

    def _called(self, name: str, values: Sequence[Value]) -> Value:
        code, first = self._code, Number(self._code, values[0])
        if name in ("sin", "cos"):
            if first.value not in self._sines:
                sine, cosine = elementary.sine_and_cosine(first, *elementary.HALF_PI[code.real])
                self._sines[first.value] = sine.value, cosine.value
            return self._sines[first.value][name == "cos"]
        if name in _INSTRUCTIONS:
            return code.instruction(_INSTRUCTIONS[name], first.value)
        if name == "log1p":
            made: Number = elementary.log1p(first, *elementary.LOG_2[code.real])
            return made.value
        if name in elementary.INLINED:
            made = elementary.INLINED[name](*(Number(code, value) for value in values))
            return made.value
        return code.library(name, values)
