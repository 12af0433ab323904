"""A function as straight-line code, the same for every language, its readable text, and that text as a module."""

from __future__ import annotations

import hashlib
import marshal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType

from modelgen.errors import ModelError
from modelgen.files import kept
from modelgen.program.functions import Function
from modelgen.program.graph import Graph, Node

#: A subexpression used once is written where it is used, up to this many operations.
INLINE_LIMIT = 8
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
#: How tightly an expression binds: sum, product, sign, name or call.
_SUM, _PRODUCT, _SIGN, _ATOM = range(4)


@dataclass(frozen=True)
class Entry:
    """name = array[index]: an entry of an argument that the function uses."""

    array: str
    index: int
    node: Node


@dataclass(frozen=True)
class Assignment:
    """name = expression. Sine and cosine of one angle are assigned together."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Result:
    """array[index] = expression: an entry of an output, given as soon as it is known."""

    array: str
    index: int
    node: Node


@dataclass
class Statements:
    """A function in order: entries, then assignments and results. Nodes without a name are written where they are used.

    Every result stands as early as it can, so that no register has to keep it.
    """

    graph: Graph
    names: dict[Node, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    body: list[Assignment | Result] = field(default_factory=list)

    def shown(self, node: Node) -> Node:
        """The node that is written for a node: the solution of a linear system is the node of its value."""
        while node not in self.names and self.graph.operations[node].kind == "solution":
            (node,) = self.graph.operations[node].arguments
        return node


def statements(graph: Graph, function: Function) -> Statements:
    """The function with names t1, t2, ... for what is used more than once or is long."""
    code = Statements(graph)
    order = graph.reachable(function.roots)
    used = set(order)
    for argument in function.arguments:
        entries = (Entry(argument.name, j, node) for j, node in enumerate(argument.entries) if node in used)
        code.entries += entries
    code.names = {entry.node: graph.operations[entry.node].name for entry in code.entries}
    uses = Counter(argument for node in order for argument in graph.operations[node].arguments)
    uses.update(function.roots)
    pairs = _sine_and_cosine(graph, order)
    assignments: list[Assignment] = []
    sizes: dict[Node, int] = {}  # operations inside an expression, and the last assignment that it needs
    needs: dict[Node, int] = {}
    for node in order:
        if node in sizes:
            continue
        operation = graph.operations[node]
        free = operation.kind in ("input", "constant", "solution")
        sizes[node] = (not free) + sum(sizes[argument] for argument in operation.arguments)
        needs[node] = max((needs[argument] for argument in operation.arguments), default=0)
        if node in pairs or (sizes[node] and (uses[node] > 1 or sizes[node] > INLINE_LIMIT)):
            together = pairs.get(node, (node,))
            assignments.append(Assignment(together))
            for one, suffix in zip(together, "sc" if len(together) == 2 else ("",), strict=True):
                code.names[one] = f"t{len(assignments)}{suffix}"
                sizes[one], needs[one] = 0, len(assignments)
    results: list[list[Assignment | Result]] = [[] for _ in range(len(assignments) + 1)]
    for output in function.outputs:
        for index, root in enumerate(output.entries):
            results[needs[root]].append(Result(output.name, index, root))
    code.body = [*results[0]]
    for assignment, known in zip(assignments, results[1:], strict=True):
        code.body += [assignment, *known]
    return code


def _sine_and_cosine(graph: Graph, order: list[Node]) -> dict[Node, tuple[Node, Node]]:
    """Sine and cosine of the same argument, by either of them."""
    by_argument: dict[tuple[Node, ...], dict[str, Node]] = {}
    for node in order:
        operation = graph.operations[node]
        if operation.kind in ("sin", "cos"):
            by_argument.setdefault(operation.arguments, {})[operation.kind] = node
    pairs = [(pair["sin"], pair["cos"]) for pair in by_argument.values() if len(pair) == 2]
    return {node: pair for pair in pairs for node in pair}


@dataclass(frozen=True)
class Text:
    """Expressions of a function in a language with + - * /: how it writes a number, and the call of a function."""

    code: Statements
    literal: Callable[[float], str]
    call: Callable[[str, list[str]], str]

    def __call__(self, node: Node) -> str:
        """The name of a node, or the expression of one without a name."""
        return self._named(node)[0]

    def assigned(self, assignment: Assignment) -> list[tuple[str, str]]:
        """Names and expressions of an assignment."""
        return [(self.code.names[node], self._written(node)[0]) for node in assignment.nodes]

    def _named(self, node: Node) -> tuple[str, int]:
        """Text, and how tightly it binds."""
        node = self.code.shown(node)
        return (self.code.names[node], _ATOM) if node in self.code.names else self._written(node)

    def _written(self, node: Node) -> tuple[str, int]:
        operation = self.code.graph.operations[node]
        kind, arguments = operation.kind, operation.arguments
        if kind == "solution":
            return self._named(arguments[0])
        if kind == "constant":
            return self.literal(operation.value), _ATOM if operation.value >= 0 else _SIGN
        if kind == "negative":
            return f"-{self._bound(arguments[0], _SIGN)}", _SIGN
        if kind in _INFIX:
            binding = _SUM if kind in ("add", "sub") else _PRODUCT
            # a * (b / c) and a + (b - c) keep their brackets: the order of operations is the graph's
            right = self._bound(arguments[1], binding + 1)
            return f"{self._bound(arguments[0], binding)} {_INFIX[kind]} {right}", binding
        return self.call(kind, [self(argument) for argument in arguments]), _ATOM

    def _bound(self, node: Node, least: int) -> str:
        """In brackets where it binds less tightly."""
        text, binding = self._named(node)
        return text if binding >= least else f"({text})"


def module(path: Path, content: bytes) -> ModuleType:
    """The module of that text, run once a process; `path` is where tracebacks and Numba say that it stands."""
    return _run_once(path, hashlib.sha256(content).hexdigest(), lambda: compile(content, path, "exec"))


def kept_module(path: Path, made_from: str, make: Callable[[], str]) -> ModuleType:
    """The module of a text, whose compiled code is kept; `make` returns the text and is called where there is none.

    made_from: text that identifies the module's, as in `kept`. Numba's jitted functions cannot be kept in this way.
    """
    key = f"{MAGIC_NUMBER.hex()} {made_from}"

    def made() -> bytes:
        return marshal.dumps(compile(make(), path, "exec"))

    return _run_once(
        path, hashlib.sha256(key.encode()).hexdigest(), lambda: marshal.loads(kept(path.stem, ".code", key, made))
    )


def _run_once(path: Path, key: str, code: Callable[[], CodeType]) -> ModuleType:
    name = f"modelgen_made_{key}"
    if name in sys.modules:
        return sys.modules[name]
    made = ModuleType(name)
    made.__file__ = str(path)
    sys.modules[name] = made
    try:
        exec(code(), made.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise ModelError(f"this backend needs a package that is not installed: {error}.") from error
        raise
    return made
