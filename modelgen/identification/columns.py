"""Columns of a recording that stand for the time, the states and the inputs, given as `--columns NAME=EXPRESSION`."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError, suggestion
from modelgen.metadata import TIME, Metadata

LONGEST = 500  # characters of an expression
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


@dataclass(frozen=True)
class Expression:
    """A quantity in SI units, as a function of columns."""

    text: str
    columns: tuple[int, ...]  # the places of the columns that it reads
    tree: ast.expr

    def __call__(self, cells: Mapping[int, Array]) -> Array:
        """The quantity (K,) from the columns (K,); a constant has no axis."""
        with np.errstate(all="ignore"):
            return np.asarray(_value(self.tree, cells), float)


def columns(pairs: Sequence[str], robot: Metadata) -> dict[str, str]:
    """The expression for the time, every state and every input, by default the column of the same name.

    pairs: NAME=EXPRESSION. Raises ModelError for a name that the robot does not have, and for two equal names or
    expressions.
    """
    names = [TIME, *(state.name for state in robot.states), *(entry.name for entry in robot.inputs)]
    given: dict[str, str] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in names or not text.strip() or len(text) > LONGEST:
            raise ModelError(
                f"--columns {pair[:LONGEST]} names no quantity of `{robot.name}` and its column."
                f"{suggestion(name, names)} Write --columns {names[1]}=COLUMN, or an expression such as "
                f"{names[1]}=COLUMN*pi/180+pi; there are {', '.join(names)}."
            )
        if name in given:
            raise ModelError(f"--columns names `{name}` twice: {name}={given[name]} and {pair}. Name it once.")
        given[name] = text.strip()
    return {name: given.get(name, name) for name in names}


def expression(text: str, header: Sequence[str], name: str) -> Expression:
    """Read an expression of columns, numbers, `pi`, + - * / ^, brackets, and % for a hundredth of what stands directly
    before it. name: its quantity.

    A header may hold any characters: the longest one that fits is taken. Raises ModelError for a column that the
    header does not name, and for what is not an expression.
    """
    if text in header:
        return Expression(text, (header.index(text),), ast.Name(f"c{header.index(text)}"))
    source, places, last, opened, start = "", [], "", list[int](), 0  # start: of the last value in `source`
    for match in _tokens(header).finditer(text):
        kind, token = str(match.lastgroup), match[0].strip()
        joined = kind == "word" and last == "number"  # as 2pi
        start = len(source) if kind in ("column", "number", "word") and not joined else start
        if kind == "column":
            places.append(header.index(token))
            source += f"c{places[-1]}"
        elif kind == "number":
            source += repr(float(token))
        elif token == "pi":
            source += "*" * joined + repr(math.pi)
        elif token == "%":
            source = f"{source[:start]}({source[start:]}/100.0)"
        elif kind == "operator":
            if token == "(":
                opened.append(len(source))
            elif token == ")" and opened:
                start = opened.pop()
            source += {"^": "**"}.get(token, token)
        elif kind == "word":
            raise ModelError(
                f"there is no column `{token}` for `{name}`.{suggestion(token, header)} The header names "
                f"{', '.join(header) or 'no column'}. Write --columns {name}=COLUMN, or an expression of columns."
            )
        elif kind == "other":
            raise _no_expression(text, name)
        last = kind
    try:
        made = Expression(text, tuple(dict.fromkeys(places)), ast.parse(source, mode="eval").body)
        made({place: np.ones(1) for place in places})
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise _no_expression(text, name) from error
    return made


def _tokens(header: Sequence[str]) -> re.Pattern[str]:
    """The tokens of an expression, with columns first; a column is no part of a longer word."""
    known = sorted((name for name in header if name and not re.fullmatch(NUMBER, name)), key=len, reverse=True)
    parts = [
        (r"(?<!\w)" if re.match(r"\w", name) else "") + re.escape(name) + (r"(?!\w)" if re.search(r"\w$", name) else "")
        for name in known
    ]
    column = f"(?P<column>{'|'.join(parts)})|" if parts else ""
    return re.compile(
        rf"{column}(?P<number>{NUMBER})|(?P<word>[^\W\d]\w*)|(?P<operator>\*\*|[-+*/()^%])|(?P<space>\s+)|(?P<other>.)"
    )


def _value(node: ast.AST, cells: Mapping[int, Array]) -> Any:
    """The value of a part of an expression. Raises ValueError for a part that is not arithmetic."""
    match node:
        case ast.Constant(value=float(value)):
            return np.float64(value)
        case ast.Name(id=name):
            return cells[int(name[1:])]
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATIONS[type(op)](_value(operand, cells))
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATIONS[type(op)](_value(left, cells), _value(right, cells))
    raise ValueError(f"{type(node).__name__} is not arithmetic")


def _no_expression(text: str, name: str) -> ModelError:
    return ModelError(
        f"--columns {name}={text} is not an expression. Write a column, a number, or both with + - * / ^ and brackets, "
        f"such as {name}=COLUMN*2*pi/4096, {name}=COLUMN% for per cent, or {name}=0."
    )
