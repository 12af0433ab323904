"""A robot as a page of LaTeX: its quantities in tables, its equations of motion and its cost in formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sympy import Add, Expr, Float, Symbol, latex

from modelgen.equations import EquationsOfMotion
from modelgen.metadata import Metadata

LETTERS = {
    "kg": "m",
    "m": "l",
    "kg m^2": "I",
    "N s/m": "d",
    "N m s": "d",
    "N/m": "c",
    "N m/rad": "c",
    "Ohm": "R",
    "N m/A": "k",
    "V s/rad": "k",
    "rad": r"\alpha",
    "m/s^2": "g",
    "1": r"\eta",
}
INPUT_LETTERS = {"N": "F", "N m": r"\tau", "V": "U"}
DIGITS = 6
WIDTH = 110  # characters of source in one line of a long sum

PREAMBLE = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\begin{document}
"""


def document(metadata: Metadata, equations: EquationsOfMotion) -> str:
    """A document that compiles as it stands; fixed parameters are the numbers they were folded into."""
    names = symbols(metadata, equations)
    parts = [PREAMBLE + rf"\section*{{{_escaped(metadata.name)}}}", _escaped(metadata.description), ""]
    positions = [state for state in metadata.states if state.kind == "position"]
    rates = metadata.states[len(positions) :]
    parts += _tabular(
        ("", "coordinate", "limit", "limit of its rate", ""),
        (
            (
                f"${names[symbol]}$",
                _escaped(each.name),
                _limit(each.limit, each.unit, each.continuous),
                _limit(rate.limit, rate.unit),
                _escaped(each.meaning),
            )
            for symbol, each, rate in zip(equations.coordinates, positions, rates, strict=True)
        ),
    )
    parts += _tabular(
        ("", "input", "limit", ""),
        (
            (f"${names[symbol]}$", _escaped(each.name), _limit(each.limit, each.unit), _escaped(each.meaning))
            for symbol, each in zip(equations.inputs, metadata.inputs, strict=True)
        ),
    )
    if metadata.parameters:
        parts += _tabular(
            ("", "parameter", "value", "bounds", ""),
            (
                (
                    f"${names[symbol]}$",
                    _escaped(each.name),
                    f"{each.value:g} {_unit(each.unit)}",
                    f"{each.lower:g} to {each.upper:g}",
                    _escaped(each.meaning),
                )
                for symbol, each in zip(equations.parameters, metadata.parameters, strict=True)
            ),
        )
    plain = list(equations.coordinate_rates) == list(equations.velocities)
    speeds = r"$v = \dot q$" if plain else r"$\dot q = G(q)\,v$"
    parts += [rf"Equations of motion: $M(q)\,\dot v = f(q, v) + B(q)\,u$ with {speeds} and"]
    parts += [r"\begin{align*}", " \\\\\n".join(formulas(equations, names)), r"\end{align*}"]
    parts += ["State cost:", r"\begin{align*}", _formula("q_c", equations.state_cost, names), r"\end{align*}"]
    return "\n".join([*parts, r"\end{document}"])


def symbols(metadata: Metadata, equations: EquationsOfMotion) -> dict[Symbol, str]:
    """A letter for every symbol, by its unit, numbered where several share it."""
    turns = [state.unit == "rad" for state in metadata.states]
    letters = {symbol: r"\varphi" if turn else "s" for symbol, turn in zip(equations.coordinates, turns, strict=False)}
    letters |= {s: INPUT_LETTERS.get(e.unit, "u") for s, e in zip(equations.inputs, metadata.inputs, strict=True)}
    letters |= {s: LETTERS.get(e.unit, "p") for s, e in zip(equations.parameters, metadata.parameters, strict=True)}
    letters |= {symbol: "e" for symbol, _ in equations.definitions}
    total, seen, names = Counter(letters.values()), Counter[str](), {}
    for symbol, letter in letters.items():
        seen[letter] += 1
        names[symbol] = f"{letter}_{{{seen[letter]}}}" if total[letter] > 1 else letter
    speeds = zip(equations.coordinates, equations.velocities, equations.coordinate_rates, strict=True)
    for place, (coordinate, speed, rate) in enumerate(speeds, start=1):
        names[speed] = _dotted(names[coordinate]) if rate == speed else rf"w_{{{place}}}"
    return names


def _dotted(name: str) -> str:
    letter, _, number = name.partition("_")
    return rf"\dot{{{letter}}}" + (f"_{number}" if number else "")


def formulas(equations: EquationsOfMotion, names: dict[Symbol, str]) -> list[str]:
    """`left &= right` for the definitions and for every entry of M (its upper triangle), f and B that is not zero."""
    size = len(equations.velocities)
    result = [_formula(names[symbol], value, names) for symbol, value in equations.definitions]
    states = zip(equations.coordinates, equations.velocities, equations.coordinate_rates, strict=True)
    result += [_formula(_dotted(names[q]), rate, names) for q, speed, rate in states if rate != speed]
    entries = [(f"M_{{{i + 1}{j + 1}}}", equations.mass_matrix[i, j]) for i in range(size) for j in range(i, size)]
    entries += [(f"f_{{{i + 1}}}", equations.force[i]) for i in range(size)]
    columns = range(len(equations.inputs))
    entries += [(f"B_{{{i + 1}{j + 1}}}", equations.input_matrix[i, j]) for i in range(size) for j in columns]
    return result + [_formula(left, value, names) for left, value in entries if value != 0]


def _formula(left: str, value: Expr, names: dict[Symbol, str]) -> str:
    """`left &= right`, a long sum on several lines."""
    rounded = value.xreplace({number: Float(number, DIGITS) for number in value.atoms(Float)})
    lines = [""]
    for term in rounded.as_ordered_terms() if isinstance(rounded, Add) else [rounded]:
        text = latex(term, symbol_names=names, full_prec=False)
        if lines != [""]:
            text = f" - {text[1:].strip()}" if text.startswith("-") else f" + {text}"
        if len(lines[-1]) + len(text) > WIDTH and lines[-1]:
            lines.append("")
        lines[-1] += text
    return f"{left} &= " + " \\\\\n  &\\quad".join(lines)


def _tabular(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [" & ".join(row) + r" \\" for row in rows]
    start = rf"\begin{{tabular}}{{{'l' * len(head)}}}"
    return [start, " & ".join(head) + r" \\ \hline", *body, r"\end{tabular}", "", r"\medskip", ""]


def _limit(limit: float, unit: str, continuous: bool = False) -> str:
    return "turns without end" if continuous else rf"$\pm {limit:g}$ {_unit(unit)}"


def _unit(unit: str) -> str:
    """`kg m^2` with its exponent raised."""
    return " ".join(
        f"{base}$^{{{power}}}$" if power else base for base, _, power in (part.partition("^") for part in unit.split())
    )


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter) or (f"\\{letter}" if letter in "_%&#${}" else letter) for letter in text)
