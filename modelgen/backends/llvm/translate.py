"""One sample's statements, as an emitted module states them -> LLVM code that runs them on vectors of samples."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from pathlib import Path

from modelgen.backends import helpers
from modelgen.backends.llvm import elementary
from modelgen.backends.llvm.transpose import load_columns, store_columns
from modelgen.backends.llvm.vectors import Code, Value

#: Fused multiply-add and the freedom to ignore the sign of zero; NaN and infinity keep their meaning.
_FLAGS = "contract nsz"
_INFIX = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_COMPARISONS = {ast.Lt: "olt", ast.Gt: "ogt", ast.GtE: "oge", ast.Eq: "oeq", ast.NotEq: "une"}
#: What the processor has, by LLVM's names.
_INSTRUCTIONS = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor"}


def llvm_code(function: ast.FunctionDef, widths: dict[str, int], real: str, shared: bool) -> str:
    """The module with `function(first, last, addresses...)` over the samples first to last.

    widths are the entries per sample of every array argument. With `shared`, theta is one row for all samples, and
    what depends on theta alone is computed once.
    """
    code = Code(real)
    uniform = {"theta"} if shared else set()
    statements = [each for each in function.body if isinstance(each, ast.Assign)]
    known = _entries(code, statements, widths, uniform)
    translation = _Translation(code, known)
    outputs: dict[str, dict[int, str]] = {}
    for statement in statements:
        (target,) = statement.targets
        if isinstance(statement.value, ast.Subscript):
            continue
        if isinstance(target, ast.Subscript):
            name, index = _entry(target)
            columns = outputs.setdefault(name, {})
            columns[index] = code.wide(translation(statement.value))
            store_columns(code, name, widths[name], columns)
        else:
            translation.assign(statement)
        code.end_statement()
    return code.text(function.name, widths, outputs.keys(), uniform)


def _entries(
    code: Code, statements: Sequence[ast.Assign], widths: dict[str, int], uniform: set[str]
) -> dict[str, Value]:
    """The names that statements such as `angle = x[1]` give to the entries of arrays."""
    known: dict[str, Value] = {}
    names: dict[str, dict[int, str]] = {name: {} for name in widths}
    for statement in statements:
        (target,) = statement.targets
        if isinstance(statement.value, ast.Subscript) and isinstance(target, ast.Name):
            array, index = _entry(statement.value)
            names[array][index] = target.id
    for array, wanted in names.items():
        if array in uniform:
            values = {index: code.number(array, index) for index in wanted}
        else:
            columns = load_columns(code, array, widths[array], sorted(wanted))
            values = {index: Value(columns[index]) for index in wanted}
        known |= {name: values[index] for index, name in wanted.items()}
    return known


def _entry(subscript: ast.Subscript) -> tuple[str, int]:
    assert isinstance(subscript.value, ast.Name)
    return subscript.value.id, int(ast.literal_eval(subscript.slice))


class _Translation:
    """Expressions of named values; a call of the instance makes the code of one."""

    def __init__(self, code: Code, known: dict[str, Value]) -> None:
        self._code = code
        self._known = known
        self._sines: dict[Value, list[Value]] = {}

    def assign(self, statement: ast.Assign) -> None:
        """`name = expression`, or two names at once."""
        (target,) = statement.targets
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        match statement.value:
            case ast.Tuple(elts=sources):
                values = [self(source) for source in sources]
            case ast.Call(func=ast.Name(id="split"), args=[source]):
                values = [*self._code.split(self(source))]
            case source:
                values = [self(source)]
        for name, value in zip(targets, values, strict=True):
            assert isinstance(name, ast.Name)
            self._known[name.id] = value

    def __call__(self, node: ast.expr) -> Value:
        code = self._code
        match node:
            case ast.Name(id=name):
                return self._known[name]
            case ast.Constant(value=int() | float() as number):
                return code.constant(number)
            case ast.Attribute(attr="nan" | "inf" as name):
                return code.constant(float(name))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return code.apply("or", self(left), self(right), type="i1")
            case ast.BinOp(left=left, op=operation, right=right):
                return code.apply(f"{_INFIX[type(operation)]} {_FLAGS}", self(left), self(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return code.apply(f"fneg {_FLAGS}", self(operand))
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                return code.apply(f"fcmp {_COMPARISONS[type(comparison)]}", self(left), self(right), type="i1")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return code.select(self(test), self(body), self(orelse))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                return self._called(name, [self(argument) for argument in arguments])
        raise AssertionError(ast.unparse(node))

    def _called(self, name: str, values: list[Value]) -> Value:
        if name in ("sin", "cos"):
            (angle,) = values
            if angle not in self._sines:
                parts = [self._code.constant(part) for part in elementary.HALF_PI[self._code.real]]
                self._sines[angle] = self._inlined("sine_and_cosine", [angle, *parts])
            return self._sines[angle][name == "cos"]
        if name in _INSTRUCTIONS:
            return self._code.instruction(_INSTRUCTIONS[name], values[0])
        if name == "log1p":
            values = [*values, *(self._code.constant(part) for part in elementary.LOG_2[self._code.real])]
        if name in _helpers():
            (result,) = self._inlined(name, values)
            return result
        return self._code.library(name, values)

    def _inlined(self, name: str, values: Sequence[Value]) -> list[Value]:
        """The statements of a function of `elementary` or `helpers`, in place of a call."""
        function = _helpers()[name]
        inner = _Translation(self._code, dict(zip((each.arg for each in function.args.args), values, strict=True)))
        for statement in function.body:
            if isinstance(statement, ast.Assign):
                inner.assign(statement)
        final = function.body[-1]
        assert isinstance(final, ast.Return)
        return [
            inner(each) for each in (final.value.elts if isinstance(final.value, ast.Tuple) else [final.value]) if each
        ]


@functools.cache
def _helpers() -> dict[str, ast.FunctionDef]:
    """The functions whose statements replace a call, by name."""
    files = [Path(str(module.__file__)) for module in (elementary, helpers)]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}
