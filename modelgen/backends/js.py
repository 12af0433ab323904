"""JavaScript for one sample: a module for browsers and Node without a dependency, and the same text for web pages.

It is translated from the module of plain Python that `python.py` emits, as the vector code of `llvm` is. An artifact
holds that module, so a page can be made of an artifact alone. Only assignments of arithmetic are translated; anything
else in a file is refused, and nothing of it is ever run here.
"""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from pathlib import Path

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest
from modelgen.backends import grammar, python
from modelgen.errors import ArtifactError
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

#: Written into every text: what JavaScript lacks, or where it treats NaN in another way than the other backends.
HELPERS = """\
function sign(a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
function minimum(a, b) { return a < b || a !== a ? a : b; }
function maximum(a, b) { return a > b || a !== a ? a : b; }
"""
_HELPER_NAMES = {"sign", "minimum", "maximum"}
_MATH = {"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"}
_MATH |= {"exp", "log", "log1p", "expm1", "sqrt", "floor", "pow", "abs"}
#: NumPy's names for them, which drawings use.
_NUMPY = {spelled: name for name, spelled in grammar.NUMPY.items()}
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


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """NAME.mjs: the functions of the program, `facts` (the metadata) and the parameters `nominal`."""
    (kernels,) = python.emit(program, robot).values()
    source, names = translated(kernels.decode())
    facts = json.dumps(asdict(robot), indent=1)
    nominal = ", ".join(repr(each.value) for each in robot.parameters)
    head = f"{_NOTE.format(name=robot.name)}\nexport const facts = {facts};\nexport const nominal = [{nominal}];\n\n"
    return {f"{robot.name}.mjs": f"{head}{source}\nexport {{ {', '.join(names)} }};\n".encode()}


def of_artifact(folder: Path, manifest: Manifest) -> tuple[str, list[str]]:
    """The kernels and `points`, the drawing, of an artifact as JavaScript, and the names of the functions.

    points(x, theta, points) fills (P, 2), across and height; the constant SEGMENTS joins them. Raises ArtifactError for
    files that are missing, were edited, or hold more than arithmetic.
    """
    path, content = source(folder, manifest, "llvm")
    kernels = grammar.kernels(path, content, manifest.functions, manifest.sizes())
    drawn, drawing = source(folder, manifest, "drawing")
    segments, points = grammar.drawing(drawn, drawing, manifest.sizes())
    text = "\n".join([HELPERS, *map(_function, kernels.values()), _function(points), f"const SEGMENTS = {segments};\n"])
    return text, [*kernels, "points", "SEGMENTS"]


def translated(module: str) -> tuple[str, list[str]]:
    """An emitted module of Python as JavaScript functions, and their names. Raises ArtifactError for any other text."""
    functions = [each for each in ast.parse(module).body if isinstance(each, ast.FunctionDef)]
    functions = [each for each in functions if each.name not in _HELPER_NAMES]
    return "\n".join([HELPERS, *map(_function, functions)]), [each.name for each in functions]


def _function(function: ast.FunctionDef) -> str:
    arguments = [_name(each.arg) for each in function.args.args]
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    lines = []
    if function.name == "points":
        arguments, body = [*arguments, "points"], body[1:-1]  # its array is made by the caller
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                lines.append(f"const {_name(name)} = {_expression(value)};")
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=True)
                lines += [f"const {_expression(name)} = {_expression(value)};" for name, value in pairs]
            case ast.Assign(targets=[ast.Subscript() as entry], value=value):
                lines.append(f"{_expression(entry)} = {_expression(value)};")
            case _:
                raise _foreign(statement)
    text = "\n".join(f"  {line}" for line in lines)
    return f"function {_name(function.name)}({', '.join(arguments)}) {{\n{text}\n}}\n"


def _expression(node: ast.expr) -> str:
    """The same text in JavaScript: + - * /, signs, brackets and calls are written alike."""
    return ast.unparse(_converted(node))


def _converted(node: ast.expr) -> ast.expr:
    match node:
        case ast.Constant(value=bool()):
            raise _foreign(node)
        case ast.Constant(value=int() | float()):
            return node
        case ast.Name(id=name):
            return ast.Name(_name(name))
        case ast.Attribute(value=ast.Name(id="math" | "np"), attr="nan" | "inf" as name):
            return ast.Name({"nan": "NaN", "inf": "Infinity"}[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.UnaryOp(ast.USub(), _converted(operand))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as operation, right=right):
            return ast.BinOp(_converted(left), operation, _converted(right))
        case ast.Subscript(value=ast.Name(id=array), slice=place):
            return ast.Subscript(ast.Name(_name(array)), ast.Constant(_index(place)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _HELPER_NAMES | {"abs"}:
            function = "Math.abs" if name == "abs" else name
            return ast.Call(ast.Name(function), [_converted(each) for each in arguments], [])
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math" | "np"), attr=name), args=arguments, keywords=[]) if (
            name := _NUMPY.get(name, name)
        ) in _MATH | _HELPER_NAMES:
            function = name if name in _HELPER_NAMES else f"Math.{name}"
            return ast.Call(ast.Name(function), [_converted(each) for each in arguments], [])
    raise _foreign(node)


def _index(place: ast.expr) -> int:
    """Of x[3], x[..., 3], and points[:, 2, 1], whose rows have two entries."""
    match place:
        case ast.Constant(value=int() as index):
            return index
        case ast.Tuple(elts=[ast.Constant(), ast.Constant(value=int() as index)]):
            return index
        case ast.Tuple(elts=[ast.Slice(), ast.Constant(value=int() as row), ast.Constant(value=int() as column)]):
            return 2 * row + column
    raise _foreign(place)


def _name(name: str) -> str:
    return f"{name}$" if name in _RESERVED else name


def _foreign(node: ast.AST) -> ArtifactError:
    return ArtifactError(
        f"`{ast.unparse(node)[:80]}` in the artifact's emitted Python is no arithmetic that modelgen writes, so it is "
        "not translated to JavaScript; build the artifact again from its model file"
    )
