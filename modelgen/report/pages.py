"""Pages about a robot: one self-contained HTML file of its artifact or of its model file, or a LaTeX document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from typing import Any

import numpy as np
from sympy import Matrix, Symbol
from sympy.printing.mathml import MathMLPresentationPrinter

from modelgen import style
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.frames import sketch
from modelgen.derivation.loops import definitions
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.report.contents import (
    Amount,
    Cell,
    Contents,
    Formula,
    Letter,
    ReportTable,
    broken,
    contents,
    latex,
    terms,
)
from modelgen.statement.robot import Robot

WIDTH = 75  # characters in one line of a long sum
GREEK = {"varphi": "φ", "alpha": "α", "eta": "η", "tau": "τ"}
ENTITY = re.compile(r"&(?!lt;|gt;|amp;)\w+;")  # named characters of HTML, which XML does not have
PICTURE = 240  # pixels, the larger side

STYLE = """\
.formulas td { border: 0; padding: .15rem var(--near) .15rem 0; font-size: var(--text); }
.formulas td:first-child { text-align: right; }
svg { stroke: var(--policy-1); stroke-linecap: round; fill: none; }
"""


def document(contents: Contents, drawn: Sequence[Any] = ()) -> str:
    """The HTML file.

    drawn: drawings (k, 2, 2) on top of each other; the last one is strong, the others are faint.
    """
    speeds = "<mi>v</mi>" if contents.rates_are_speeds else "<mi>G</mi><mo>(</mo><mi>q</mi><mo>)</mo><mi>v</mi>"
    form = f"<p>{_math(MOTION)} with {_math('<mover><mi>q</mi><mo>˙</mo></mover><mo>=</mo>' + speeds)} and</p>"
    parts = [
        f"<p>{escape(contents.description)}</p>",
        picture(drawn) if any(len(drawing) for drawing in drawn) else "",
        *map(_table, contents.tables),
        "<h2>Equations of motion</h2>",
        form if contents.has_masses else "",
        _formulas(contents.motion, contents.letters),
        "<h2>State cost</h2>",
        _formulas([contents.state_cost], contents.letters),
    ]
    return style.document(contents.name, parts, STYLE)


MOTION = (
    "<mi>M</mi><mo>(</mo><mi>q</mi><mo>)</mo><mover><mi>v</mi><mo>˙</mo></mover><mo>=</mo><mi>f</mi><mo>(</mo>"
    "<mi>q</mi><mo>,</mo><mi>v</mi><mo>)</mo><mo>+</mo><mi>B</mi><mo>(</mo><mi>q</mi><mo>)</mo><mi>u</mi>"
)


def picture(drawn: Sequence[Any]) -> str:
    """An SVG picture of drawings, the last one strong and the others fainter the earlier, with the height upward."""
    ends = [end for drawing in drawn for segment in drawing for end in segment]
    left, right = min(end[0] for end in ends), max(end[0] for end in ends)
    bottom, top = min(end[1] for end in ends), max(end[1] for end in ends)
    scale = PICTURE / (max(right - left, top - bottom) or 1.0)
    lines = []
    for index, drawing in enumerate(drawn):
        opacity = 1 if index + 1 == len(drawn) else round(0.3 * (index + 1) / (len(drawn) - 1), 2)
        points = [[((x - left) * scale, (top - y) * scale) for x, y in segment] for segment in drawing]
        paths = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for (a, b), (c, d) in points)
        lines.append(f'<path d="{paths}" stroke-opacity="{opacity}" stroke-width="7"/>')
    width, height = (right - left) * scale + 20, (top - bottom) * scale + 20
    box = f'viewBox="-10 -10 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg {box} role="img" aria-label="drawing">{"".join(lines)}</svg>'


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """A printer of MathML that prints every symbol as its letter."""

    def __init__(self, letters: dict[Symbol, Letter]) -> None:
        super().__init__()
        self._letters = letters

    def _print_Symbol(self, symbol: Symbol, style: str = "plain") -> Any:  # noqa: ARG002
        letter = self._letters[symbol]
        element = self._element("mi", GREEK.get(letter.base, letter.base))
        if letter.dotted:
            element = self._element("mover", element, self._element("mo", "˙"))
        return self._element("msub", element, self._element("mn", letter.number)) if letter.number else element

    def _element(self, name: str, *children: Any) -> Any:
        element = self.dom.createElement(name)
        for child in children:
            element.appendChild(self.dom.createTextNode(child) if isinstance(child, str) else child)
        return element


def _letter(letter: Letter) -> str:
    symbol = Symbol("letter")
    return _math(str(_Printer({symbol: letter}).doprint(symbol)))


def _math(content: str) -> str:
    return f'<math displaystyle="true"><mrow>{content}</mrow></math>'


def _formulas(formulas: Sequence[Formula], letters: dict[Symbol, Letter]) -> str:
    """A table with one row per line: the left-hand side, the equals sign, the terms."""
    rows = []
    for formula in formulas:
        sign = "="
        left = _letter(formula.left)
        for line in broken(_terms(formula, letters), WIDTH, lambda text: len(re.sub("<[^>]*>", "", text))):
            rows.append(f"<tr><td>{left}</td><td>{sign}</td><td>{_math(line)}</td></tr>")
            left = sign = ""
    return "\n".join(['<div class="scroll"><table class="formulas">', *rows, "</table></div>"])


def _terms(formula: Formula, letters: dict[Symbol, Letter]) -> list[str]:
    """The terms with their signs. The first one has no plus."""
    printer = _Printer(letters)
    texts: list[str] = []
    for term in terms(formula.value):
        negative = bool(texts) and term.could_extract_minus_sign()
        text = ENTITY.sub(lambda entity: unescape(entity[0]), printer.doprint(-term if negative else term))
        texts.append((f"<mo>{'−' if negative else '+'}</mo>" if texts else "") + text)
    return texts


def _table(table: ReportTable) -> str:
    return style.table(([_cell(cell) for cell in row] for row in table.rows), [escape(title) for title in table.head])


def _cell(cell: Cell) -> str:
    if isinstance(cell, Letter):
        return _letter(cell)
    if isinstance(cell, Amount):
        unit = style.unit(cell.unit)
        return f"{escape(cell.text.replace('-', '−'))} {unit}".rstrip()
    return escape(cell)


def latex_document(robot: Robot) -> str:
    """A LaTeX document of the robot: quantities, task, equations of motion, state cost."""
    equations = equations_of_motion(robot)
    return latex(contents(metadata(robot, equations), equations)) + "\n"


def html_page(robot: Robot) -> str:
    """An HTML page of the robot, with a picture of it at its start (grey) and at its target."""
    equations, drawn = equations_of_motion(robot), sketch(robot)
    described = metadata(robot, equations)
    named = (*definitions(robot), *drawn.definitions)
    points = numpy_evaluator([*equations.state, *equations.parameters], Matrix(drawn.points), named)
    states = np.array([described.task.start_mean, described.task.target])
    theta = np.tile([parameter.value for parameter in described.parameters], (2, 1))
    segments = np.array(drawn.segments, int).reshape(-1, 2)
    pictures = list(points(*states.T, *theta.T)[:, segments]) if len(segments) else ()
    return document(contents(described, equations), pictures)
