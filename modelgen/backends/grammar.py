"""The only Python that an emitted file may hold: arithmetic, assigned line after line. Nothing of a file is run here.

    angle = x[0]                              an entry of an argument; in a drawing x[..., 0]
    t1 = 1.0 / (mass * math.sin(angle))       numbers, names that are known by then, + - * /, listed functions
    t2s, t2c = math.sin(angle), math.cos(angle)
    xdot[1] = t1                              an entry of a result, each once; in a drawing points[:, 1, 0]

`kernels` is what the backend `llvm` and the JavaScript translate, `drawing` what draws a robot. Artifacts come from
other people: what is written in any other way is refused at its line, and so is an entry outside of its array, for
vector code would read or write the memory beside it.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from modelgen.artifact.manifest import Signature
from modelgen.backends import helpers
from modelgen.errors import ArtifactError
from modelgen.program.graph import BINARY, UNARY

#: Functions of plain Python that a kernel calls without `math.`: Python's own, and those that the file states itself.
PLAIN = {"abs", "sign", "minimum", "maximum"}
#: NumPy's other names for functions of the graph.
NUMPY = {name: f"arc{name[1:]}" for name in ("asin", "acos", "atan")} | {"atan2": "arctan2", "pow": "power"}
_ARGUMENTS = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2)
_KERNEL_CALLS = {name if name in PLAIN else f"math.{name}": count for name, count in _ARGUMENTS.items()}
_DRAWING_CALLS = {f"np.{NUMPY.get(name, name)}": count for name, count in _ARGUMENTS.items()}
_HELPERS = {
    each.name: ast.dump(each)
    for each in ast.parse(inspect.getsource(helpers)).body
    if isinstance(each, ast.FunctionDef)
}
#: What no symbol may be called, since it would stand for something else.
_TAKEN = {"math", "np", "len", "int", *PLAIN}

#: Operations within each other; what modelgen emits has less than a tenth of them.
MOST_NESTED = 100


def kernels(
    path: Path, content: bytes, functions: Mapping[str, Signature], sizes: Mapping[str, int]
) -> dict[str, ast.FunctionDef]:
    """The functions of an emitted module by name, which are those of the manifest.

    sizes: entries per sample of every array argument. Raises ArtifactError for any other text.
    """
    file = _File(path, content)
    found: dict[str, ast.FunctionDef] = {}
    for statement in file.statements():
        match statement:
            case ast.Import(names=[ast.alias(name="math", asname=None)]):
                continue
            case ast.FunctionDef(name=name) if name in _HELPERS:
                file.require(ast.dump(statement) == _HELPERS[name], statement, f"it is not modelgen's own `{name}`")
            case ast.FunctionDef(name=name):
                file.require(name in functions and name not in found, statement, "the manifest names no such function")
                found[name] = statement
                outputs = {output: math.prod(shape) for output, shape in functions[name].outputs}
                known = [each for each in functions[name].arguments if each in sizes]
                file.require(known == [*functions[name].arguments], statement, "the manifest gives it other arguments")
                inputs = {each: sizes[each] for each in known}
                file.signature(statement, [*inputs, *outputs])
                _body(file, statement, statement.body, inputs, outputs, _entry, _KERNEL_CALLS)
            case _:
                file.refuse(statement)
    missing = [name for name in functions if name not in found]
    if missing:
        raise ArtifactError(f"{path} lacks the function `{missing[0]}` that its manifest names; build it again.")
    return found


def drawing(path: Path, content: bytes, sizes: Mapping[str, int]) -> tuple[list[list[int]], ast.FunctionDef]:
    """The pairs of points that a drawing joins, and its function `points`. Raises ArtifactError for any other text."""
    file = _File(path, content)
    match file.statements():
        case [
            ast.Import(names=[ast.alias(name="numpy", asname="np")]),
            ast.Assign(targets=[ast.Name(id="SEGMENTS")], value=joined) as pairs,
            ast.FunctionDef(name="points") as function,
        ]:
            segments = _segments(joined)
        case [*_, last]:
            file.refuse(last, "a drawing is the lines `import numpy as np`, `SEGMENTS = ...` and the function `points`")
        case _:
            file.refuse(ast.Pass(lineno=1), "a drawing is not empty")
    file.require(segments is not None, pairs, "write SEGMENTS = np.array([[0, 1], ...], int).reshape(-1, 2)")
    file.signature(function, ["x", "theta"])
    match function.body:
        case [ast.Expr(value=ast.Constant(value=str())), made, *body, ast.Return(value=ast.Name(id="points"))]:
            entries = [each for each in body if isinstance(each, ast.Assign) and _column(each.targets[0])]
            count = len(entries) // 2
            file.require(_text(made) == f"points = np.empty((len(x), {count}, 2))", made, f"{count} points are drawn")
        case _:
            file.refuse(function, "it is a doc string, `points = np.empty(...)`, assignments and `return points`")
    inputs = {name: sizes[name] for name in ("x", "theta")}
    _body(file, function, body, inputs, {"points": 2 * count}, _column, _DRAWING_CALLS)
    assert segments is not None
    file.require(all(0 <= end < count for pair in segments for end in pair), pairs, f"there are {count} points")
    return segments, function


class _File:
    """An emitted file, whose lines messages name."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        try:
            self._text = content.decode()
            self._tree = ast.parse(self._text)
        except SyntaxError as error:
            self.refuse(ast.Pass(lineno=error.lineno or 1), error.msg)
        except (ValueError, RecursionError, MemoryError) as error:
            self.refuse(ast.Pass(lineno=1), str(error) or "it is nested too deep")

    def statements(self) -> list[ast.stmt]:
        """All but the doc string."""
        body = self._tree.body
        return body[1:] if ast.get_docstring(self._tree, clean=False) is not None else body

    def signature(self, function: ast.FunctionDef, arguments: Sequence[str]) -> None:
        """Refuse a function that does not take exactly these arguments, by nothing but their names."""
        plain = ast.parse(f"def {function.name}({', '.join(each for each in arguments if each.isidentifier())}): 0")
        (expected,) = plain.body
        assert isinstance(expected, ast.FunctionDef)
        given = [function.args, function.decorator_list, function.returns, getattr(function, "type_params", [])]
        same = ast.dump(function.args) == ast.dump(expected.args) and given[1:] == [[], None, []]
        ascii_names = all(each.isascii() for each in (function.name, *arguments))
        self.require(same and ascii_names, function, f"its arguments are {', '.join(arguments)}, and nothing else")

    def require(self, holds: bool, node: ast.AST, why: str) -> None:
        if not holds:
            self.refuse(node, why)

    def refuse(self, node: ast.AST, why: str = "") -> NoReturn:
        line = getattr(node, "lineno", 1)
        lines = getattr(self, "_text", "").splitlines()
        shown = lines[line - 1].strip()[:80] if 0 < line <= len(lines) else ""
        reason = f" ({why})" if why else ""
        raise ArtifactError(
            f"{self.path}:{line}: `{shown}` is no arithmetic that modelgen emits{reason}. Nothing of the file was run. "
            "Somebody has written it by other means: build the artifact again from its model file."
        )


def _body(
    file: _File,
    function: ast.FunctionDef,
    body: Iterable[ast.stmt],
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    entry: Callable[[ast.expr], tuple[str, int] | None],
    calls: Mapping[str, int],
) -> None:
    """Refuse a function's body unless it assigns every entry of the outputs once, by arithmetic on inputs."""
    known: set[str] = set()
    assigned: set[tuple[str, int]] = set()

    def name(target: ast.expr) -> None:
        match target:
            case ast.Name(id=new) if new not in known and new not in _TAKEN and new not in {*inputs, *outputs}:
                known.add(new)
            case _:
                file.refuse(target, "a name is assigned once, and not that of an argument or function")

    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                _arithmetic(file, value, known, calls)
                place = entry(target)
                inside = place is not None and 0 <= place[1] < outputs.get(place[0], 0) and place not in assigned
                file.require(inside, statement, "it is no entry of a result, or assigned a second time")
                assigned.add(place or ("", 0))
            case ast.Assign(targets=[ast.Name() as target], value=ast.Subscript() as value):
                place = _column(value, rows=1) if entry is _column else entry(value)
                inside = place is not None and 0 <= place[1] < inputs.get(place[0], 0)
                file.require(inside, statement, "it is no entry of an argument")
                name(target)
            case ast.Assign(targets=[ast.Tuple(elts=[first, second])], value=ast.Tuple(elts=[one, other])):
                for value in (one, other):
                    _arithmetic(file, value, known, calls)
                name(first)
                name(second)
            case ast.Assign(targets=[target], value=value):
                _arithmetic(file, value, known, calls)
                name(target)
            case _:
                file.refuse(statement)
    for output, size in outputs.items():
        count = sum(array == output for array, _ in assigned)
        file.require(count == size, function, f"it assigns {count} of {size} entries of `{output}`")


def _arithmetic(file: _File, value: ast.expr, known: set[str], calls: Mapping[str, int]) -> None:
    """Refuse what is not arithmetic on numbers and known names."""
    left = [(value, 0)]
    while left:
        node, depth = left.pop()
        file.require(depth < MOST_NESTED, node, "it is nested too deep")
        inside: list[ast.expr] = []
        match node:
            case ast.Constant(value=bool()):
                file.refuse(node)
            case ast.Constant(value=int() | float() as number):
                file.require(abs(number) <= sys.float_info.max, node, "a number is finite")
            case ast.Name(id=name):
                file.require(name in known, node, f"`{name[:40]}` is not known here")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inside = [operand]
            case ast.BinOp(left=first, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=second):
                inside = [first, second]
            case ast.Call(func=function, args=arguments, keywords=[]) if calls.get(_called(function)) == len(arguments):
                inside = arguments
            case ast.Call():
                file.refuse(node, "it calls another function than those of arithmetic")
            case _:
                file.refuse(node)
        left += [(each, depth + 1) for each in inside]


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


def _entry(node: ast.expr) -> tuple[str, int] | None:
    """Array and place of x[3]."""
    match node:
        case ast.Subscript(value=ast.Name(id=array), slice=ast.Constant(value=index)) if type(index) is int:
            return array, index
    return None


def _column(node: ast.expr, rows: int = 2) -> tuple[str, int] | None:
    """Array and place of x[..., 3] (rows 1), and of points[:, 2, 1] (rows 2), whose rows have two entries."""
    match node:
        case ast.Subscript(
            value=ast.Name(id=array), slice=ast.Tuple(elts=[ast.Constant(value=all_), ast.Constant(value=index)])
        ) if rows == 1 and all_ is ... and type(index) is int:
            return array, index
        case ast.Subscript(
            value=ast.Name(id=array),
            slice=ast.Tuple(
                elts=[ast.Slice(None, None, None), ast.Constant(value=row), ast.Constant(value=0 | 1 as column)]
            ),
        ) if rows == 2 and type(row) is int and type(column) is int:
            return array, 2 * row + column
    return None


def _segments(value: ast.expr) -> list[list[int]] | None:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[ast.List(elts=pairs), ast.Name()])) as method):
            found = [
                [each.value for each in pair.elts if isinstance(each, ast.Constant)]
                for pair in pairs
                if isinstance(pair, ast.List)
            ]
            same = _text(value) == f"np.array({found}, int).reshape(-1, 2)" and method.attr == "reshape"
            whole = all(len(pair) == 2 and all(type(end) is int for end in pair) for pair in found)
            return found if same and whole else None  # type: ignore[return-value]
    return None


def _text(node: ast.AST) -> str:
    return ast.unparse(node)
