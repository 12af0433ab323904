"""The equations of motion as MathML, which browsers show.

Subexpressions that occur more than once are named t1, t2, ..., in the order in which they are computed.
"""

from __future__ import annotations

import html

from modelgen.backends.statements import Assignment, Statements, statements
from modelgen.metadata import Metadata
from modelgen.program.functions import Program
from modelgen.program.graph import Node

SUM, PRODUCT, ATOM = 1, 2, 3  # how tightly a formula holds together
OPEN, CLOSE = '<mo stretchy="false">(</mo>', '<mo stretchy="false">)</mo>'
_SIGNS = {"add": "+", "sub": "−", "mul": "⋅"}


def equations(program: Program, robot: Metadata) -> list[str]:
    """A <math> element for every line of the function `dynamics`."""
    code = statements(program.graph, program.function("dynamics"))
    states = [f"<mi>{html.escape(state.name)}</mi>" for state in robot.states]
    lines = []
    for line in code.body:
        if isinstance(line, Assignment):
            lines += [(f"<mi>{code.names[node]}</mi>", _written(code, node)[0]) for node in line.nodes]
        else:
            rate = f"<mfrac><mrow><mi>d</mi>{states[line.index]}</mrow><mrow><mi>d</mi><mi>t</mi></mrow></mfrac>"
            lines.append((rate, _formula(code, line.node)[0]))
    return [f'<math display="block"><mrow>{left}<mo>=</mo>{right}</mrow></math>' for left, right in lines]


def _formula(code: Statements, node: Node) -> tuple[str, int]:
    """The MathML, and how tightly it holds together."""
    node = code.shown(node)
    return (f"<mi>{html.escape(code.names[node])}</mi>", ATOM) if node in code.names else _written(code, node)


def _written(code: Statements, node: Node) -> tuple[str, int]:
    operation = code.graph.operations[node]
    kind, arguments = operation.kind, operation.arguments
    if kind == "solution":
        return _formula(code, arguments[0])
    if kind == "constant":
        number = f"<mn>{abs(operation.value):.6g}</mn>"
        return (f"<mo>−</mo>{number}", SUM) if operation.value < 0 else (number, ATOM)
    if kind == "negative":
        return f"<mo>−</mo>{_bracketed(code, arguments[0], PRODUCT)}", SUM
    if kind == "div":
        above, below = (f"<mrow>{_formula(code, argument)[0]}</mrow>" for argument in arguments)
        return f"<mfrac>{above}{below}</mfrac>", ATOM
    if kind == "mul" and arguments[0] == arguments[1]:
        return f"<msup><mrow>{_bracketed(code, arguments[0], ATOM)}</mrow><mn>2</mn></msup>", ATOM
    if kind in _SIGNS:
        tight = PRODUCT if kind == "mul" else SUM
        right = code.graph.operations[code.shown(arguments[1])]
        signed = right.kind == "negative" or right.value < 0
        other = SUM if kind == "add" and not signed else PRODUCT
        left = _bracketed(code, arguments[0], tight)
        return f"{left}<mo>{_SIGNS[kind]}</mo>{_bracketed(code, arguments[1], other)}", tight
    inside = "<mo>,</mo>".join(_formula(code, argument)[0] for argument in arguments)
    return f"<mi>{kind}</mi>{OPEN}{inside}{CLOSE}", ATOM


def _bracketed(code: Statements, node: Node, least: int) -> str:
    """In brackets where it holds together less than that."""
    text, tight = _formula(code, node)
    return text if tight >= least else f"{OPEN}{text}{CLOSE}"
