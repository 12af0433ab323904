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
import marshal
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from modelgen.program.functions import SIGNATURES, Argument, Function, Output, Program, unique_names
from modelgen.program.graph import BINARY, UNARY, Graph, Node, Operation

#: How many arguments each operation has.
ARGUMENTS = dict.fromkeys((*UNARY, "negative", "solution"), 1) | dict.fromkeys((*BINARY, "add", "sub", "mul", "div"), 2)
#: Entries of an output, or of an argument, for one sample; a hundred states and as many inputs have a tenth of them.
MOST_ENTRIES = 10_000_000
LONGEST_NAME = 200  # characters


def write(program: Program) -> bytes:
    """The file of a program. Nodes that no function needs are left out; the order of the others stays."""
    graph, arguments = program.graph, program.arguments
    functions = [*program.functions, *([program.drawing] if program.drawing else [])]
    entries = [entry for argument in arguments.values() for entry in argument.entries]
    roots = [root for function in functions for root in function.roots]
    kept = graph.reachable([graph.zero, graph.one, *entries, *roots])
    places = {node: place for place, node in enumerate(kept)}
    nodes = [_text(_node(graph.operations[node], places)) for node in kept]
    of_arguments = {name: [places[entry] for entry in argument.entries] for name, argument in arguments.items()}
    described = [f"{_text(function.name)}: {_text(_described(function, places))}" for function in program.functions]
    parts = [f'"arguments": {_text(of_arguments)}', _block('"functions": {', described, "}")]
    if program.drawing:
        parts.append(f'"drawing": {_text(_described(program.drawing, places))}')
        parts.append(f'"segments": {_text(program.segments)}')
    return (_block("{", [*parts, _block('"nodes": [', nodes, "]")], "}") + "\n").encode()


def _block(start: str, lines: list[str], end: str) -> str:
    return "\n".join([start, ",\n".join(lines), end])


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _described(function: Function, places: dict[Node, int]) -> dict[str, Any]:
    outputs = [(output.name, output.shape, [places[entry] for entry in output.entries]) for output in function.outputs]
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
    _require(required <= data.keys() <= required | optional, f"its entries are {_shown(sorted(data))}")
    reader = _Reader(_graph(data["nodes"]), data["arguments"])
    functions = []
    for name, entry in _items(data["functions"], "functions"):
        _require(name in SIGNATURES, f"there is no function {_shown(name)}")
        functions.append(reader.function(name, entry, *SIGNATURES[name]))
    if not optional & data.keys():
        return Program(reader.graph, tuple(functions), digest=hashlib.sha256(content).hexdigest())
    _require(optional <= data.keys(), "a drawing has points and segments")
    drawing = reader.function("points", data["drawing"], ("x", "theta"), ("points",))
    segments = _segments(drawing.outputs[0].shape, data["segments"])
    return Program(reader.graph, tuple(functions), drawing, segments, hashlib.sha256(content).hexdigest())


def outline(program: Program) -> bytes:
    """The program that was read from a file, without its nodes: what `reopened` needs besides the file."""
    arguments = {name: argument.entries for name, argument in program.arguments.items()}
    functions = [
        (one.name, [argument.name for argument in one.arguments], [(o.name, o.shape, o.entries) for o in one.outputs])
        for one in (*program.functions, *([program.drawing] if program.drawing else []))
    ]
    drawn = program.drawing is not None
    return marshal.dumps((arguments, functions, drawn, program.segments, program.operations))


def reopened(kept: bytes, content: bytes) -> Program:
    """The program of a file that was read before; its nodes are read when they are needed.

    kept: its outline, from this user's own folder, not from the artifact. content: the file.
    """
    entries, described, drawn, segments, operations = marshal.loads(kept)
    arguments = {name: Argument(name, places) for name, places in entries.items()}
    functions = [
        Function(name, tuple(arguments[argument] for argument in names), tuple(Output(*output) for output in outputs))
        for name, names, outputs in described
    ]
    drawing = functions.pop() if drawn else None
    digest = hashlib.sha256(content).hexdigest()
    program = Program(_Unread(content), tuple(functions), drawing, segments, digest)
    vars(program)["operations"] = operations  # in place of counting them
    return program


class _Unread(Graph):
    """The graph of a file, which is read at the first use of an attribute."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        if "operations" not in vars(self) and not name.startswith("__"):
            vars(self).update(vars(_graph(json.loads(self._content)["nodes"])))
        if name not in vars(self):
            raise AttributeError(name)
        return vars(self)[name]


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
        if graph.append(_operation(graph, entry, place)) != place and place > 1:
            raise ValueError(f"nodes[{place}] is {_shown(entry)}, as an earlier node is")
    names = [operation.name for operation in graph.operations if operation.kind == "input"]
    for name, free in zip(names, unique_names(names), strict=True):
        _require(name == free, f"an input is named {_shown(name)}, a name that emitted code cannot have")
    return graph


def _operation(graph: Graph, entry: Any, place: int) -> Operation:
    if type(entry) is list and entry and type(entry[0]) is str:
        kind, *arguments = entry
        row = arguments.pop() if kind == "solution" and len(arguments) == 2 else 0
        if ARGUMENTS.get(kind) != len(arguments):
            raise ValueError(f"nodes[{place}] is {_shown(entry)}: there is no such operation of so many nodes")
        for argument in arguments:
            if type(argument) is not int or not 0 <= argument < place:
                raise ValueError(f"nodes[{place}] is {_shown(entry)}: a node names the places of earlier nodes")
        if kind == "pow" and graph.operations[arguments[1]].kind != "constant":
            raise ValueError(f"nodes[{place}] is {_shown(entry)}: the exponent is not a number")
        if kind != "solution":
            return Operation(kind, tuple(arguments))
        _require(type(row) is int and 0 <= row < MOST_ENTRIES, f"nodes[{place}] is {_shown(entry)}: it has no row")
        return Operation(kind, tuple(arguments), name=str(row))
    if type(entry) is str and len(entry) <= LONGEST_NAME:
        return Operation("input", name=entry)
    if type(entry) is float and math.isfinite(entry):
        return Operation("constant", value=entry + 0.0)
    raise ValueError(f"nodes[{place}] is {_shown(entry)}: a node is a finite number with a point, a name or a list")


class _Reader:
    """Arguments and functions, by the places of their entries among the nodes."""

    def __init__(self, graph: Graph, arguments: Any) -> None:
        self.graph = graph
        self._arguments: dict[str, Argument] = {}
        self._reads = [0] * len(graph.operations)  # one bit for each argument that a node is a function of
        for name, places in _items(arguments, "arguments"):
            known = any(name in names for names, _ in SIGNATURES.values())
            _require(known, f"there is no argument {_shown(name)}")
            self._arguments[name] = Argument(name, self._places(places, f"the argument {name}"))
            for entry in self._arguments[name].entries:
                free = graph.operations[entry].kind == "input" and not self._reads[entry]
                _require(free, f"the argument {name} has node {entry}, which is not an input or has a place already")
                self._reads[entry] = 1 << len(self._arguments)
        for node, operation in enumerate(graph.operations):
            _require(operation.kind != "input" or self._reads[node] > 0, "an input is no entry of an argument")
            for argument in operation.arguments:
                self._reads[node] |= self._reads[argument]

    def function(self, name: str, entry: Any, arguments: tuple[str, ...], outputs: tuple[str, ...]) -> Function:
        """A function whose names are those of its signature, and which reads its own arguments only."""
        _require(type(entry) is dict and entry.keys() == {"arguments", "outputs"}, f"{name} is {_shown(entry)}")
        _require(entry["arguments"] == [*arguments], f"{name} takes {_shown(entry['arguments'])}")
        _require({*arguments} <= self._arguments.keys(), f"{name} takes an argument that the file lacks")
        _require(type(entry["outputs"]) is list, f"{name} returns {_shown(entry['outputs'])}")
        made = tuple(self._output(name, output) for output in entry["outputs"])
        _require([output.name for output in made] == [*outputs], f"{name} does not return {', '.join(outputs)}")
        own = sum(1 << place for place, other in enumerate(self._arguments, start=1) if other in arguments)
        function = Function(name, tuple(self._arguments[argument] for argument in arguments), made)
        _require(all(self._reads[root] | own == own for root in function.roots), f"{name} reads what it does not take")
        return function

    def _output(self, function: str, entry: Any) -> Output:
        _require(type(entry) is list and len(entry) == 3, f"{function} has the output {_shown(entry)}")
        name, shape, places = entry
        whole = type(shape) is list and len(shape) <= 4 and all(type(size) is int and size >= 0 for size in shape)
        _require(type(name) is str and whole, f"{function} has the output {_shown([name, shape])}")
        nodes = self._places(places, f"an output of {function}")
        _require(math.prod(shape) == len(nodes), f"{function} has {len(nodes)} entries for {_shown([name, shape])}")
        return Output(name, tuple(shape), nodes)

    def _places(self, value: Any, where: str) -> tuple[Node, ...]:
        _require(type(value) is list and len(value) <= MOST_ENTRIES, f"{where} is {_shown(value)}")
        count = len(self.graph.operations)
        for place in value:
            _require(type(place) is int and 0 <= place < count, f"{where} names the node {_shown(place)} of {count}")
        return tuple(value)


def _segments(shape: tuple[int, ...], pairs: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of points that are joined."""
    _require(len(shape) == 2 and shape[1] == 2, f"the points of the drawing have the shape {shape}, not (P, 2)")
    _require(type(pairs) is list, f"segments is {_shown(pairs)}")
    for pair in pairs:
        whole = type(pair) is list and len(pair) == 2 and all(type(end) is int and 0 <= end < shape[0] for end in pair)
        _require(whole, f"segments joins {_shown(pair)} of {shape[0]} points")
    return tuple((first, second) for first, second in pairs)
