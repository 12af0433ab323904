"""The contents of a report on a robot: tables, equations and letters, and all of it as a LaTeX document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Expr, Float, Matrix, Symbol
from sympy import latex as sympy_latex

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.metadata import Input, Metadata, Parameter

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
    "rad": "alpha",
    "m/s^2": "g",
    "1": "eta",
}
INPUT_LETTERS = {"N": "F", "N m": "tau", "V": "U"}
DIGITS = 6


@dataclass(frozen=True)
class Letter:
    """A letter of a formula: its base (Greek letters by name), a subscript, and a dot above for a rate."""

    base: str
    number: str = ""
    dotted: bool = False


@dataclass(frozen=True)
class Amount:
    """A number as text, and its unit."""

    text: str
    unit: str


Cell = str | Letter | Amount


@dataclass(frozen=True)
class ReportTable:
    """A table: its head, and rows with one cell per column."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Formula:
    """A formula, left = value."""

    left: Letter
    value: Expr


@dataclass(frozen=True)
class Contents:
    """The parts of a report, in the order of reading."""

    name: str
    description: str
    tables: tuple[ReportTable, ...]
    has_masses: bool  # otherwise inputs command velocities
    rates_are_speeds: bool  # v = dq/dt; otherwise dq/dt = G(q) v
    motion: tuple[Formula, ...]  # definitions, dq/dt, and the nonzero entries of M (upper triangle), f and B
    state_cost: Formula
    letters: dict[Symbol, Letter]


def contents(metadata: Metadata, equations: EquationsOfMotion) -> Contents:
    """The contents of the report on a robot. Fixed parameters are numbers."""
    names = letters(metadata, equations)
    return Contents(
        metadata.name,
        metadata.description,
        tuple(table for table in _tables(metadata, equations, names) if table.rows),
        bool(equations.velocities),
        list(equations.coordinate_rates) == list(equations.velocities),
        tuple(_motion(equations, names)),
        Formula(Letter("q", "c"), equations.state_cost),
        names,
    )


def letters(metadata: Metadata, equations: EquationsOfMotion) -> dict[Symbol, Letter]:
    """A letter for every symbol, chosen by its unit, with a number if several symbols share it."""
    turns = [state.unit == "rad" for state in metadata.states]
    q, z = equations.state[: metadata.nq], equations.state[metadata.velocities.stop :]
    bases = {symbol: "varphi" if turn else "s" for symbol, turn in zip(q, turns, strict=False)}
    inputs = zip(equations.inputs, metadata.inputs, strict=True)
    bases |= {symbol: INPUT_LETTERS.get(entry.unit, "u") for symbol, entry in inputs}
    parameters = zip(equations.parameters, metadata.parameters, strict=True)
    bases |= {symbol: LETTERS.get(entry.unit, "p") for symbol, entry in parameters}
    bases |= {symbol: "e" for symbol, _ in equations.definitions}
    total, used, names = Counter(bases.values()), Counter[str](), {}
    for symbol, base in bases.items():
        used[base] += 1
        names[symbol] = Letter(base, str(used[base]) if total[base] > 1 else "")
    owners = {rate: symbol for symbol, rate in zip(equations.coordinates, equations.coordinate_rates, strict=True)}
    for place, speed in enumerate(equations.velocities, start=1):
        names[speed] = replace(names[owners[speed]], dotted=True) if speed in owners else Letter("w", str(place))
    names |= {symbol: Letter("z", str(place)) for place, symbol in enumerate(z, start=1)}
    return names


def _tables(metadata: Metadata, equations: EquationsOfMotion, names: dict[Symbol, Letter]) -> Iterator[ReportTable]:
    task, symbols = metadata.task, [names[symbol] for symbol in equations.state]
    states = list(zip(symbols, metadata.states, strict=True))
    limits = {state.name: _within(state.limit, state.unit) for state in metadata.states}
    rates = [*map(str, equations.coordinate_rates)] or [""] * metadata.nq  # of a kinematic robot, no rate has a limit
    yield _table(
        ("", "coordinate", "limit", "limit of its rate", ""),
        (
            (
                letter,
                state.name,
                "turns without end" if state.continuous else limits[state.name],
                limits.get(rate, ""),
                state.meaning,
            )
            for (letter, state), rate in zip(states, rates, strict=False)
        ),
    )
    yield _table(
        ("", "state of first order", "limit", ""),
        ((letter, z.name, limits[z.name], z.meaning) for letter, z in states if z.kind == "internal"),
    )
    inputs = zip(equations.inputs, metadata.inputs, strict=True)
    yield _table(
        ("", "input", "limit", ""), ((names[u], entry.name, _of_input(entry), entry.meaning) for u, entry in inputs)
    )
    parameters = zip(equations.parameters, metadata.parameters, strict=True)
    yield _table(
        ("", "parameter", "value", "bounds", ""),
        (
            (names[symbol], entry.name, _amount(entry), f"{entry.lower:g} to {entry.upper:g}", entry.meaning)
            for symbol, entry in parameters
        ),
    )
    starts = zip(states, task.target, task.start_mean, task.start_deviation, strict=True)
    yield _table(
        ("", "task", "target", "start"),
        (
            (letter, state.name, Amount(f"{target:.5g}", state.unit), Amount(f"{mean:.5g} ± {spread:.3g}", state.unit))
            for (letter, state), target, mean, spread in starts
        ),
    )
    weights = ", ".join(f"{weight:g}" for weight in task.action_cost.weights)
    numbers = (
        f"{task.action_cost.name} ({weights})",
        Amount(f"{task.horizon:g}", "s"),
        f"{task.weight_at_horizon:g}",
        Amount(f"{task.control_rate}", "Hz"),
        Amount(f"{task.simulation_rate}", "Hz"),
    )
    yield _table(("action cost", "horizon", "weight left there", "control rate", "simulation rate"), [numbers])


def _table(head: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> ReportTable:
    return ReportTable(head, tuple(rows))


def _amount(parameter: Parameter) -> Amount:
    return Amount(f"{parameter.value:g}", "" if parameter.unit == "1" else parameter.unit)


def _of_input(entry: Input) -> Amount:
    return Amount(entry.range, entry.unit) if entry.middle else _within(entry.limit, entry.unit)


def _within(limit: float, unit: str) -> Amount:
    return Amount(f"± {limit:g}", unit)


def _motion(equations: EquationsOfMotion, names: dict[Symbol, Letter]) -> Iterator[Formula]:
    size, columns = range(len(equations.velocities)), range(len(equations.inputs))
    for symbol, value in equations.definitions:
        yield Formula(names[symbol], value)
    states = zip(equations.coordinates, equations.coordinate_rates, strict=True)
    yield from (Formula(replace(names[q], dotted=True), rate) for q, rate in states if rate not in equations.velocities)
    between = "," if max(len(size), len(columns)) > 9 else ""
    entries = [("M", f"{i + 1}{between}{j + 1}", equations.mass_matrix[i, j]) for i in size for j in size if j >= i]
    entries += [("f", f"{i + 1}", equations.force[i]) for i in size]
    entries += [("B", f"{i + 1}{between}{j + 1}", equations.input_matrix[i, j]) for i in size for j in columns]
    yield from (Formula(Letter(letter, place), value) for letter, place, value in entries if value != 0)
    u = Matrix(len(equations.inputs), 1, list(equations.inputs))
    flows = equations.flow + equations.flow_matrix * u if equations.internal else ()
    yield from (
        Formula(replace(names[z], dotted=True), flow) for z, flow in zip(equations.internal, flows, strict=True)
    )


def terms(value: Expr) -> list[Expr]:
    """The terms of a sum, with rounded numbers."""
    rounded = value.xreplace({number: Float(number, DIGITS) for number in value.atoms(Float)})
    return list(rounded.as_ordered_terms()) if isinstance(rounded, Add) else [rounded]


def broken(texts: Sequence[str], width: int, length: Callable[[str], int] = len) -> list[str]:
    """Lines of at most `width` characters for the terms of a sum, with their signs. A longer term has its own line."""
    lines, used = [""], 0
    for text in texts:
        if used and used + length(text) > width:
            lines.append("")
            used = 0
        lines[-1] += text
        used += length(text)
    return lines


WIDTH = 110  # characters of source in one line of a long sum

PREAMBLE = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\begin{document}
"""


def latex(contents: Contents) -> str:
    """The LaTeX document, which compiles without changes."""
    names = {symbol: letter_text(letter) for symbol, letter in contents.letters.items()}
    parts = [PREAMBLE + rf"\section*{{{_escaped(contents.name)}}}", _escaped(contents.description), ""]
    parts += [line for table in contents.tables for line in _tabular(table)]
    speeds = r"$v = \dot q$" if contents.rates_are_speeds else r"$\dot q = G(q)\,v$"
    form = rf": $M(q)\,\dot v = f(q, v) + B(q)\,u$ with {speeds} and" if contents.has_masses else ""
    parts += [f"Equations of motion{form}"]
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
    first, *others = (sympy_latex(term, symbol_names=names, full_prec=False) for term in terms(formula.value))
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
