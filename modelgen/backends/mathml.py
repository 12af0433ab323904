"""The equations of motion as MathML, which browsers show: translated from the arithmetic of an artifact.

Subexpressions that occur more than once keep their names t1, t2, ..., in the order in which they are computed.
"""

from __future__ import annotations

import ast
import html
from pathlib import Path

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest
from modelgen.backends import grammar

SUM, PRODUCT, ATOM = 1, 2, 3  # how tightly a formula holds together
OPEN, CLOSE = '<mo stretchy="false">(</mo>', '<mo stretchy="false">)</mo>'
_SIGNS = {ast.Add: "+", ast.Sub: "−", ast.Mult: "⋅"}


def of_artifact(folder: Path, manifest: Manifest) -> list[str]:
    """A <math> element for every line of the function `dynamics`. Raises ArtifactError as `js.of_artifact` does."""
    path, content = source(folder, manifest, "llvm")
    kernel = grammar.kernels(path, content, manifest.functions, manifest.sizes())["dynamics"]
    states = [html.escape(state.name) for state in manifest.metadata.states]
    equations = [pair for line in kernel.body if isinstance(line, ast.Assign) for pair in _pairs(line)]
    return [
        f'<math display="block"><mrow>{_left(left, states)}<mo>=</mo>{_formula(right)[0]}</mrow></math>'
        for left, right in equations
        if not isinstance(right, ast.Subscript)  # a name for an entry of an argument
    ]


def _pairs(line: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(line.targets[0], ast.Tuple) and isinstance(line.value, ast.Tuple):
        return list(zip(line.targets[0].elts, line.value.elts, strict=True))
    return [(line.targets[0], line.value)]


def _left(node: ast.expr, states: list[str]) -> str:
    match node:
        case ast.Subscript(slice=ast.Constant(value=int() as index)):
            return f"<mfrac><mrow><mi>d</mi><mi>{states[index]}</mi></mrow><mrow><mi>d</mi><mi>t</mi></mrow></mfrac>"
    return _formula(node)[0]


def _formula(node: ast.expr) -> tuple[str, int]:
    """The MathML, and how tightly it holds together. The grammar admits no other expressions."""
    match node:
        case ast.Constant(value=value):
            return f"<mn>{float(str(value)):.6g}</mn>", ATOM
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"<mi>{html.escape(name)}</mi>", ATOM
        case ast.UnaryOp(operand=operand):
            return f"<mo>−</mo>{_bracketed(operand, PRODUCT)}", SUM
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"<mfrac>{_row(left)}{_row(right)}</mfrac>", ATOM
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if ast.dump(left) == ast.dump(right):
            return f"<msup><mrow>{_bracketed(left, ATOM)}</mrow><mn>2</mn></msup>", ATOM
        case ast.BinOp(left=left, op=sign, right=right):
            tight = PRODUCT if isinstance(sign, ast.Mult) else SUM
            other = SUM if isinstance(sign, ast.Add) and not isinstance(right, ast.UnaryOp) else PRODUCT
            return f"{_bracketed(left, tight)}<mo>{_SIGNS[type(sign)]}</mo>{_bracketed(right, other)}", tight
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
            inside = "<mo>,</mo>".join(_formula(each)[0] for each in arguments)
            return f"<mi>{name}</mi>{OPEN}{inside}{CLOSE}", ATOM
    raise AssertionError(ast.dump(node))


def _row(node: ast.expr) -> str:
    return f"<mrow>{_formula(node)[0]}</mrow>"


def _bracketed(node: ast.expr, least: int) -> str:
    """In brackets where it holds together less than that."""
    text, tight = _formula(node)
    return text if tight >= least else f"{OPEN}{text}{CLOSE}"
