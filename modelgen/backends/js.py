"""JavaScript for one sample: a module for browsers and Node without a dependency, and the same text for web pages.

As a backend it is run by V8 from the wheel `mini-racer`, in an engine that can reach neither files nor network. It
evaluates a sample at a time, and numbers travel as text: for checks, not for speed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from modelgen.backends.arrays import Array, HostKernels
from modelgen.backends.statements import Assignment, Text, statements
from modelgen.errors import ModelError
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program

#: Written into every text: what JavaScript lacks, or where it treats NaN in another way than the other backends.
HELPERS = """\
function sign(a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
function minimum(a, b) { return a < b || a !== a ? a : b; }
function maximum(a, b) { return a > b || a !== a ? a : b; }
"""
_OWN = {"sign", "minimum", "maximum"}
#: A symbol of one of these names gets a dollar, which no Python name has.
_RESERVED = {
    "Infinity", "Math", "NaN", "arguments", "await", "break", "case", "catch", "class", "const", "continue",
    "debugger", "default", "delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for",
    "function", "if", "implements", "import", "in", "instanceof", "interface", "let", "new", "null", "package",
    "private", "protected", "public", "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof",
    "undefined", "var", "void", "while", "with", "yield",
}  # fmt: skip
_NOTE = """\
// {name}: functions of one sample, made by modelgen; not to be edited.
// Arrays in, arrays filled: dynamics(x, u, theta, xdot). SI units; matrices row by row. `facts` names every entry.
"""


_CALL = """\
((rows, sizes) => rows.map((row) => {{
  const outputs = sizes.map((size) => new {array}(size));
  {function}(...row.map((entries) => {array}.from(entries)), ...outputs);
  return outputs.map((entries) => entries.join(" ")).join(" ");
}}).join(" "))({rows}, {sizes})
"""
_ARRAYS = {"float64": "Float64Array", "float32": "Float32Array"}


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """NAME.mjs: the functions of the program, `facts` (the metadata) and the parameters `nominal`."""
    facts = json.dumps(asdict(robot), indent=1)
    nominal = ", ".join(repr(parameter.value) for parameter in robot.parameters)
    head = f"{_NOTE.format(name=robot.name)}\nexport const facts = {facts};\nexport const nominal = [{nominal}];\n\n"
    names = ", ".join(function.name for function in program.functions)
    return {f"{robot.name}.mjs": f"{head}{functions(program)}\nexport {{ {names} }};\n".encode()}


def functions(program: Program) -> str:
    """The functions of the program as text."""
    return "\n".join([HELPERS, *(_function(program, function) for function in program.functions)])


def with_drawing(program: Program) -> tuple[str, list[str]]:
    """The functions and the drawing of a program as text, and their names.

    points(x, theta, points) fills (P, 2), across and height; the constant SEGMENTS joins them.
    """
    drawn = [_function(program, program.drawing)] if program.drawing else []
    segments = f"const SEGMENTS = {[list(pair) for pair in program.segments]};\n"
    names = [function.name for function in program.functions] + ["points"] * len(drawn)
    return "\n".join([functions(program), *drawn, segments]), [*names, "SEGMENTS"]


def _function(program: Program, function: Function) -> str:
    code = statements(program.graph, function)
    code.names = {node: f"{name}$" if name in _RESERVED else name for node, name in code.names.items()}
    text = Text(code, repr, _call)
    lines = [f"const {code.names[entry.node]} = {entry.array}[{entry.index}];" for entry in code.entries]
    for line in code.body:
        if isinstance(line, Assignment):
            lines += [f"const {name} = {value};" for name, value in text.assigned(line)]
        else:
            lines.append(f"{line.array}[{line.index}] = {text(line.node)};")
    arguments = ", ".join(function.arrays)
    return "\n".join([f"function {function.name}({arguments}) {{", *(f"  {line}" for line in lines), "}\n"])


def _call(name: str, arguments: list[str]) -> str:
    return f"{name if name in _OWN else f'Math.{name}'}({', '.join(arguments)})"


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> V8Kernels:  # noqa: ARG001
    """The functions in arrays of the dtype; JavaScript computes in float64 in between. `parallel` changes nothing.

    Raises ModelError without mini-racer.
    """
    return V8Kernels(program, robot, dtype)


class V8Kernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, program: Program, robot: Metadata, dtype: str) -> None:
        try:
            from py_mini_racer import MiniRacer
        except ModuleNotFoundError as error:
            raise ModelError("JavaScript needs an engine to run in; pip install mini-racer") from error
        super().__init__(program, robot, dtype)
        self._array_type = _ARRAYS[dtype]
        self._engine = MiniRacer()
        self._engine.eval(functions(program))

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        given = [arrays[argument.name] for argument in self._functions[function].arguments]
        columns = [np.broadcast_to(array, (samples, array.shape[-1])).tolist() for array in given]
        rows = json.dumps([list(row) for row in zip(*columns, strict=True)])
        sizes = [math.prod(result.shape[1:]) for result in results]
        answer = self._engine.eval(_CALL.format(array=self._array_type, function=function, rows=rows, sizes=sizes))
        numbers = np.array(str(answer).split(), dtype=np.float64).reshape(samples, sum(sizes))
        for result, values in zip(results, np.split(numbers, np.cumsum(sizes)[:-1], axis=1), strict=True):
            result[...] = values.reshape(result.shape)
