"""What all text-emitting backends share: a function's nodes as a list of named, readable assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from modelgen.program.functions import Function
from modelgen.program.graph import Graph, Node

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
#: How tightly an expression binds: sum, product, sign, name or call.
_SUM, _PRODUCT, _SIGN, _CALL, _ATOM = range(5)
#: A subexpression used once is written where it is used, up to this many operations.
_INLINE_LIMIT = 8


@dataclass(frozen=True)
class Dialect:
    """How one language writes what is not + - * / and a name."""

    literal: Callable[[float], str]
    call: Callable[[str, list[str]], str]
    sincos: Callable[[str], str] | None = None  # sine and cosine at once of an argument


@dataclass(frozen=True)
class Listing:
    """Assignments to be made in order, and the text that gives every root."""

    assignments: tuple[tuple[str, str], ...]
    roots: dict[Node, str]


def listing(graph: Graph, function: Function, dialect: Dialect) -> Listing:
    """The function as assignments t1 = ..., t2 = ...; a node that is used once is written into its user."""
    order = graph.reachable(function.roots)
    uses = Counter(argument for node in order for argument in graph.operations[node].arguments)
    uses.update(function.roots)
    texts: dict[Node, tuple[str, int, int]] = {}  # node -> text, binding, operations inside
    assignments: list[tuple[str, str]] = []
    pairs = _sincos_pairs(graph, order) if dialect.sincos else {}
    for node in order:
        operation = graph.operations[node]
        if node in texts:
            continue
        if dialect.sincos and node in pairs:
            sine, cosine = pairs[node]
            names = [f"t{len(assignments) + 1}{suffix}" for suffix in "sc"]
            assignments.append((", ".join(names), dialect.sincos(texts[operation.arguments[0]][0])))
            texts[sine], texts[cosine] = ((name, _ATOM, 0) for name in names)
            continue
        text, binding, size = _write(graph, node, texts, dialect)
        if binding < _ATOM and operation.kind != "constant" and (uses[node] > 1 or size > _INLINE_LIMIT):
            name = f"t{len(assignments) + 1}"
            assignments.append((name, text))
            text, binding, size = name, _ATOM, 0
        texts[node] = text, binding, size
    return Listing(tuple(assignments), {root: texts[root][0] for root in function.roots})


def _write(graph: Graph, node: Node, texts: dict[Node, tuple[str, int, int]], dialect: Dialect) -> tuple[str, int, int]:
    operation = graph.operations[node]
    kind, arguments = operation.kind, operation.arguments
    if kind == "constant":
        return dialect.literal(operation.value), _ATOM if operation.value >= 0 else _SIGN, 0
    if kind == "input":
        return operation.name, _ATOM, 0
    if kind == "solution":
        return texts[arguments[0]]
    size = 1 + sum(texts[argument][2] for argument in arguments)
    if kind == "negative":
        return f"-{_bound(texts[arguments[0]], _SIGN)}", _SIGN, size
    if kind in _INFIX:
        binding = _SUM if kind in ("add", "sub") else _PRODUCT
        left = _bound(texts[arguments[0]], binding)
        right = _bound(texts[arguments[1]], binding + (1 if kind != "add" else 0))
        # a * (b / c) and a + (b - c) keep their brackets: the order of operations is the graph's
        if kind in ("add", "mul") and texts[arguments[1]][1] == binding:
            right = f"({texts[arguments[1]][0]})"
        return f"{left} {_INFIX[kind]} {right}", binding, size
    return dialect.call(kind, [texts[argument][0] for argument in arguments]), _CALL, size


def _sincos_pairs(graph: Graph, order: list[Node]) -> dict[Node, tuple[Node, Node]]:
    """sine and cosine of the same argument, by either of them."""
    found: dict[tuple[Node, ...], dict[str, Node]] = {}
    for node in order:
        operation = graph.operations[node]
        if operation.kind in ("sin", "cos"):
            found.setdefault(operation.arguments, {})[operation.kind] = node
    pairs = [(pair["sin"], pair["cos"]) for pair in found.values() if len(pair) == 2]
    return {node: pair for pair in pairs for node in pair}


def _bound(text: tuple[str, int, int], binding: int) -> str:
    return text[0] if text[1] >= binding else f"({text[0]})"


def columns(graph: Graph, function: Function) -> list[str]:
    """Assignments of the used entries of every argument, for code over the last axis of arrays."""
    used = set(graph.reachable(function.roots))
    return [
        f"{graph.operations[node].name} = {argument.name}[..., {j}]"
        for argument in function.arguments
        for j, node in enumerate(argument.entries)
        if node in used
    ]
