"""A robot as a LaTeX document: its quantities in tables, its equations of motion and state cost as formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sympy import Symbol, latex

from modelgen.report.contents import Amount, Cell, Contents, Formula, Letter, ReportTable, broken, terms

WIDTH = 110  # characters of source in one line of a long sum

PREAMBLE = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\begin{document}
"""


def document(contents: Contents) -> str:
    """The LaTeX document, which compiles without changes."""
    names = {symbol: letter_text(letter) for symbol, letter in contents.letters.items()}
    parts = [PREAMBLE + rf"\section*{{{_escaped(contents.name)}}}", _escaped(contents.description), ""]
    parts += [line for table in contents.tables for line in _tabular(table)]
    speeds = r"$v = \dot q$" if contents.rates_are_speeds else r"$\dot q = G(q)\,v$"
    parts += [rf"Equations of motion: $M(q)\,\dot v = f(q, v) + B(q)\,u$ with {speeds} and"]
    motion = " \\\\\n".join(_formula(formula, names) for formula in contents.motion)
    parts += [r"\begin{align*}", motion, r"\end{align*}"]
    parts += ["State cost:", r"\begin{align*}", _formula(contents.state_cost, names), r"\end{align*}"]
    return "\n".join([*parts, r"\end{document}"])


def letter_text(letter: Letter) -> str:
    """A letter in math mode."""
    base = letter.base if len(letter.base) == 1 else f"\\{letter.base}"
    base = rf"\dot{{{base}}}" if letter.dotted else base
    return f"{base}_{{{letter.number}}}" if letter.number else base


def _formula(formula: Formula, names: Mapping[Symbol, str]) -> str:
    """`left &= right`, with a long sum on several lines."""
    first, *others = (latex(term, symbol_names=names, full_prec=False) for term in terms(formula.value))
    texts = [first, *(f" - {text[1:].strip()}" if text.startswith("-") else f" + {text}" for text in others)]
    return f"{letter_text(formula.left)} &= " + " \\\\\n  &\\quad".join(broken(texts, WIDTH))


def _tabular(table: ReportTable) -> list[str]:
    body = [" & ".join(map(_cell, row)) + r" \\" for row in table.rows]
    start = rf"\begin{{tabular}}{{{'l' * len(table.head)}}}"
    return [start, " & ".join(table.head) + r" \\ \hline", *body, r"\end{tabular}", "", r"\medskip", ""]


def _cell(cell: Cell) -> str:
    if isinstance(cell, Letter):
        return f"${letter_text(cell)}$"
    if isinstance(cell, Amount):
        number = f"${cell.text.replace('±', chr(92) + 'pm')}$" if "±" in cell.text else cell.text
        return f"{number} {_unit(cell.unit)}".rstrip()
    return _escaped(cell)


def _unit(unit: str) -> str:
    """A unit such as `kg m^2` with a raised exponent."""
    return re.sub(r"\^(-?\d+)", r"$^{\1}$", unit)


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter) or (f"\\{letter}" if letter in "_%&#${}" else letter) for letter in text)
