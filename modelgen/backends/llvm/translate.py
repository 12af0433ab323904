"""A function of one sample as LLVM code that runs it on vectors of samples."""

from __future__ import annotations

from collections.abc import Sequence

from modelgen.backends.llvm import elementary
from modelgen.backends.llvm.transpose import load_columns, store_columns
from modelgen.backends.llvm.vectors import FLAGS, Code, Number, Value
from modelgen.backends.statements import Assignment, Statements, statements
from modelgen.program.functions import Function
from modelgen.program.graph import Graph, Node

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
