"""The program as a file: `program.json`, written with the same bytes on every machine and read as a stranger's.

    {"arguments": {"x": [3, 4], "theta": [2]},
     "functions": {"dynamics": {"arguments": ["x", "theta"], "outputs": [["xdot", [2], [4, 6]]]}},
     "drawing": {"arguments": ["x", "theta"], "outputs": [["points", [1, 2], [3, 4]]]},
     "segments": [],
     "nodes": [0.0, 1.0, "length", "angle", "rate", ["sin", 3], ["mul", 2, 5]]}

A node is a number, the name of an input, or an operation with the places of its arguments, which stand before it.
Functions and arguments name nodes by their places. The first two nodes are 0 and 1. ["solution", 9, 0] is node 9, the
first entry of the solution of a linear system.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from modelgen.program.functions import SIGNATURES, Argument, Function, Output, Program, unique_names
from modelgen.program.graph import BINARY, UNARY, Graph, Node, Operation

#: How many arguments each operation has.
ARGUMENTS = dict.fromkeys((*UNARY, "negative", "solution"), 1) | dict.fromkeys((*BINARY, "add", "sub", "mul", "div"), 2)
#: Entries of an output, or of an argument, for one sample; a hundred states and as many inputs have a tenth of them.
MOST_ENTRIES = 10_000_000


def write(program: Program) -> bytes:
    """The file of a program. Nodes that no function needs are left out; the order of the others stays."""
    graph, arguments = program.graph, program.arguments
    functions = [*program.functions, *([program.drawing] if program.drawing else [])]
    entries = [entry for argument in arguments.values() for entry in argument.entries]
    roots = [root for function in functions for root in function.roots]
    kept = graph.reachable([graph.zero, graph.one, *entries, *roots])
    places = {node: place for place, node in enumerate(kept)}
    nodes = [_text(_node(graph.operations[node], places)) for node in kept]
    stated = {name: [places[entry] for entry in argument.entries] for name, argument in arguments.items()}
    described = [f"{_text(each.name)}: {_text(_described(each, places))}" for each in program.functions]
    parts = [f'"arguments": {_text(stated)}', _block('"functions": {', described, "}")]
    if program.drawing:
        parts.append(f'"drawing": {_text(_described(program.drawing, places))}')
        parts.append(f'"segments": {_text(program.segments)}')
    return (_block("{", [*parts, _block('"nodes": [', nodes, "]")], "}") + "\n").encode()


def _block(start: str, lines: list[str], end: str) -> str:
    return "\n".join([start, ",\n".join(lines), end])


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _described(function: Function, places: dict[Node, int]) -> dict[str, Any]:
    outputs = [(each.name, each.shape, [places[entry] for entry in each.entries]) for each in function.outputs]
    return {"arguments": [argument.name for argument in function.arguments], "outputs": outputs}


def _node(operation: Operation, places: dict[Node, int]) -> float | str | list[Any]:
    if operation.kind in ("constant", "input"):
        return operation.value if operation.kind == "constant" else operation.name
    row = [int(operation.name)] if operation.kind == "solution" else []
    return [operation.kind, *(places[argument] for argument in operation.arguments), *row]


def read(content: bytes) -> Program:
    """The program of a file. Raises ValueError, with what is wrong and where, for any other content."""
    try:
        data = json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _require(type(data) is dict, "the file is not an object")
    required, optional = {"arguments", "functions", "nodes"}, {"drawing", "segments"}
    _require(required <= data.keys() <= required | optional, f"its entries are {', '.join(sorted(data))}"[:200])
    graph = _graph(data["nodes"])
    arguments = {name: _argument(graph, name, places) for name, places in _items(data["arguments"], "arguments")}
    inputs = [entry for argument in arguments.values() for entry in argument.entries]
    _require(len(inputs) == len(set(inputs)), "two entries of arguments are the same node")
    _require({*inputs} == _inputs(graph), "an input is no entry of an argument")
    functions = []
    for name, stated in _items(data["functions"], "functions"):
        _require(name in SIGNATURES, f"there is no function {name[:40]!r}")
        functions.append(_function(graph, name, stated, arguments, SIGNATURES[name]))
    drawing, segments = None, ()
    if optional & data.keys():
        _require(optional <= data.keys(), "a drawing has points and segments")
        drawing = _function(graph, "points", data["drawing"], arguments, (("x", "theta"), ("points",)))
        segments = _segments(drawing.outputs[0].shape, data["segments"])
    return Program(graph, tuple(functions), drawing, segments, hashlib.sha256(content).hexdigest())


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise ValueError(why)


def _items(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    _require(type(value) is dict, f"{where} is {_shown(value)}, not an object")
    yield from value.items()


def _shown(value: object) -> str:
    return repr(value)[:60]


def _graph(nodes: Any) -> Graph:
    """The nodes as they stand: nothing is folded, so that the places in the file are the numbers of the graph."""
    _require(type(nodes) is list and nodes[:2] == [0.0, 1.0], "nodes do not begin with 0.0 and 1.0")
    graph = Graph()
    for place, entry in enumerate(nodes):
        operation = _operation(graph, entry, place)
        if place > 1:
            _require(graph.append(operation) == place, f"nodes[{place}] is {_shown(entry)}, as an earlier node is")
    names = [graph.operations[node].name for node in sorted(_inputs(graph))]
    for name, free in zip(names, unique_names(names), strict=True):
        _require(name == free, f"an input is named {_shown(name)}, a name that emitted code cannot have")
    return graph


def _inputs(graph: Graph) -> set[Node]:
    return {node for node, operation in enumerate(graph.operations) if operation.kind == "input"}


def _operation(graph: Graph, entry: Any, place: int) -> Operation:
    if type(entry) is list and entry and type(entry[0]) is str:
        kind, *arguments = entry
        row = arguments.pop() if kind == "solution" and len(arguments) == 2 else ""
        if kind == "solution" and (type(row) is not int or not 0 <= row < MOST_ENTRIES):
            raise ValueError(f"nodes[{place}] is {_shown(entry)}: a solution is an earlier node and a row")
        count = ARGUMENTS.get(kind)
        if count == len(arguments) and all(type(each) is int and 0 <= each < place for each in arguments):
            if kind != "pow" or graph.operations[arguments[1]].kind == "constant":
                return Operation(kind, tuple(arguments), name=str(row))
            raise ValueError(f"nodes[{place}] is {_shown(entry)}: an exponent is a number")
        if count is None:
            raise ValueError(f"nodes[{place}] is {_shown(entry)}: there is no such operation")
        raise ValueError(f"nodes[{place}] is {_shown(entry)}: `{kind}` takes the places of {count} earlier nodes")
    if type(entry) is str and len(entry) <= 200:
        return Operation("input", name=entry)
    if type(entry) is float and math.isfinite(entry):
        return Operation("constant", value=entry + 0.0)
    raise ValueError(f"nodes[{place}] is {_shown(entry)}: a node is a finite number with a point, a name or a list")


def _places(graph: Graph, value: Any, where: str, allowed: Callable[[Node], bool] = lambda _: True) -> tuple[Node, ...]:
    count = len(graph.operations)
    _require(type(value) is list and len(value) <= MOST_ENTRIES, f"{where} is {_shown(value)}, not a list of places")
    for each in value:
        _require(type(each) is int and 0 <= each < count and allowed(each), f"{where} names the node {_shown(each)}")
    return tuple(value)


def _argument(graph: Graph, name: str, places: Any) -> Argument:
    _require(any(name in arguments for arguments, _ in SIGNATURES.values()), f"there is no argument {name[:40]!r}")
    entries = _places(graph, places, f"the argument {name}", lambda node: graph.operations[node].kind == "input")
    return Argument(name, entries)


def _function(
    graph: Graph,
    name: str,
    stated: Any,
    arguments: dict[str, Argument],
    signature: tuple[tuple[str, ...], tuple[str, ...]],
) -> Function:
    """A function whose names are those of the signature, and which reads its own arguments only."""
    _require(type(stated) is dict and stated.keys() == {"arguments", "outputs"}, f"{name} is {_shown(stated)}")
    _require(stated["arguments"] == [*signature[0]], f"{name} takes {_shown(stated['arguments'])}")
    _require({*signature[0]} <= arguments.keys(), f"{name} takes an argument that is not stated")
    _require(type(stated["outputs"]) is list, f"{name} returns {_shown(stated['outputs'])}")
    outputs = tuple(_output(graph, name, each) for each in stated["outputs"])
    _require([each.name for each in outputs] == [*signature[1]], f"{name} does not return {', '.join(signature[1])}")
    function = Function(name, tuple(arguments[each] for each in signature[0]), outputs)
    own = {entry for argument in function.arguments for entry in argument.entries}
    for node in graph.reachable(function.roots):
        operation = graph.operations[node]
        _require(operation.kind != "input" or node in own, f"{name} reads `{operation.name}`, which it does not take")
    return function


def _output(graph: Graph, function: str, stated: Any) -> Output:
    _require(type(stated) is list and len(stated) == 3, f"{function} has the output {_shown(stated)}")
    name, shape, entries = stated
    whole = type(shape) is list and len(shape) <= 4 and all(type(each) is int and each >= 0 for each in shape)
    _require(type(name) is str and whole, f"{function} has the output {_shown([name, shape])}")
    nodes = _places(graph, entries, f"{function}: {name[:40]}")
    _require(math.prod(shape) == len(nodes), f"{function}: {name[:40]} of shape {shape} has {len(nodes)} entries")
    return Output(name, tuple(shape), nodes)


def _segments(shape: tuple[int, ...], pairs: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of points that are joined."""
    _require(len(shape) == 2 and shape[1] == 2, f"the points of the drawing have the shape {shape}, not (P, 2)")
    _require(type(pairs) is list, f"segments is {_shown(pairs)}")
    for pair in pairs:
        whole = type(pair) is list and len(pair) == 2 and all(type(end) is int and 0 <= end < shape[0] for end in pair)
        _require(whole, f"segments joins {_shown(pair)} of {shape[0]} points")
    return tuple((first, second) for first, second in pairs)
