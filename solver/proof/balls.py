"""Balls of numbers (Arb) with their slopes, and the equations of a program file evaluated on them.

A ball is an interval that surely holds the exact number. `Dual` adds its derivatives by dual numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from solver.errors import SolverError

try:
    from flint import arb, arb_mat, arb_series, ctx
except ImportError as error:  # pragma: no cover
    raise SolverError("solver check needs python-flint: pip install 'robust-value-iteration[proof]'") from error

__all__ = [
    "Dual",
    "Equations",
    "Number",
    "arb",
    "arb_mat",
    "ball",
    "contains",
    "ctx",
    "definite",
    "in_time",
    "inflated",
    "largest_norm",
    "shifted",
    "summed",
]

Number = Any  # an arb, or an arb_series in time


class Dual:
    """A number and its slopes along k variables; None is a slope of zero."""

    __slots__ = ("slopes", "value")

    def __init__(self, value: Number, slopes: list[Number | None]) -> None:
        self.value, self.slopes = value, slopes

    def through(self, value: Number, slope: Number) -> Dual:
        """The value of a function of this number, whose derivative is `slope`."""
        return Dual(value, [None if s is None else slope * s for s in self.slopes])

    def function(self, kind: str) -> Dual:
        """sin, cos, ... of this number."""
        return self.through(*UNARY[kind](self.value))

    def chosen(self, other: Dual, larger: bool) -> Dual:
        """The larger or smaller of two balls; both slopes where it is not known which."""
        first, second = (self, other) if larger else (other, self)
        if first.value >= second.value:
            return self
        if first.value <= second.value:
            return other
        value = self.value.max(other.value) if larger else self.value.min(other.value)
        zero = arb(0)
        pairs = zip(self.slopes, other.slopes, strict=True)
        return Dual(value, [(zero if s is None else s).union(zero if t is None else t) for s, t in pairs])

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, [_plus(a, b) for a, b in zip(self.slopes, other.slopes, strict=True)])

    def __neg__(self) -> Dual:
        return Dual(-self.value, [None if s is None else -s for s in self.slopes])

    def __sub__(self, other: Dual) -> Dual:
        return self + -other

    def __mul__(self, other: Dual) -> Dual:
        pairs = zip(self.slopes, other.slopes, strict=True)
        slopes = [_plus(a if a is None else a * other.value, b if b is None else b * self.value) for a, b in pairs]
        return Dual(self.value * other.value, slopes)

    def __truediv__(self, other: Dual) -> Dual:
        inverse = 1 / other.value
        return self * other.through(inverse, -inverse * inverse)


def _plus(a: Number | None, b: Number | None) -> Number | None:
    return b if a is None else a if b is None else a + b


def _square(x: Number) -> Number:
    """x^2, which is no negative number where x is a ball."""
    return (x * x).max(arb(0)) if isinstance(x, arb) else x * x


UNARY: dict[str, Callable[[Number], tuple[Number, Number]]] = {
    "sin": lambda x: (x.sin(), x.cos()),
    "cos": lambda x: (x.cos(), -x.sin()),
    "exp": lambda x: (x.exp(), x.exp()),
    "log": lambda x: (x.log(), 1 / x),
    "sqrt": lambda x: (x.sqrt(), 1 / (2 * x.sqrt())),
    "atan": lambda x: (x.atan(), 1 / (1 + _square(x))),
    "tanh": lambda x: (x.tanh(), 1 - _square(x.tanh())),
}


class Equations:
    """Functions of a program file, whose format `modelgen.program.stored` describes."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.nodes, self.arguments, self.functions = content["nodes"], content["arguments"], content["functions"]

    def __call__(self, function: str, known: dict[str, list[Any]], constant: Callable[[float], Any]) -> list[Any]:
        """Entries of each output, at the entries of each argument."""
        values = {at: entry for name, row in known.items() for at, entry in zip(self.arguments[name], row, strict=True)}
        outputs = self.functions[function]["outputs"]
        for at in self._order(function):
            if at not in values:
                values[at] = self._value(self.nodes[at], values, constant)
        return [[values[at] for at in entries] for _, _, entries in outputs]

    @cache  # noqa: B019
    def _order(self, function: str) -> list[int]:
        waiting, needed = [at for output in self.functions[function]["outputs"] for at in output[2]], set()
        while waiting:
            at = waiting.pop()
            if at not in needed:
                needed.add(at)
                if isinstance(node := self.nodes[at], list):
                    waiting += node[1:2] if node[0] == "solution" else node[1:]
        return sorted(needed)

    def _value(self, node: Any, values: dict[int, Any], constant: Callable[[float], Any]) -> Any:
        if isinstance(node, (int, float)):
            return constant(float(node))
        if isinstance(node, str):
            raise SolverError(f"the equations need the number `{node}`, which the check does not know")
        kind, a = node[0], values[node[1]]
        if kind == "solution":
            return a
        if kind == "negative":
            return -a
        if kind in UNARY:
            return a.function(kind)
        b = values[node[2]]
        if kind in {"minimum", "maximum"}:
            return a.chosen(b, kind == "maximum")
        if kind == "add":
            return a + b
        if kind == "sub":
            return a - b
        if kind == "mul":
            return a * b
        if kind == "div":
            return a / b
        raise SolverError(f"the check has no rule for the operation `{kind}` of the equations")


def ball(low: float, high: float) -> Number:
    """The ball of an interval."""
    return arb(low).union(arb(high))


def largest_norm(values: Sequence[Number]) -> Number:
    """Upper bound of the norm of a vector."""
    return sum((value.abs_upper() ** 2 for value in values), arb(0)).sqrt().upper()


def summed(terms: Iterator[Dual]) -> Dual:
    """The sum of one number or more."""
    total = next(terms)
    for term in terms:
        total = total + term
    return total


def in_time(values: Sequence[Number | None], order: int) -> Number:
    """The power series in time of some coefficients; None is a zero."""
    return arb_series([arb(0) if value is None else value for value in values], prec=order + 1)


def shifted(start: Dual, rate: Dual, during: Number) -> Dual:
    """start + rate * during, with the slopes of both."""
    pairs = zip(start.slopes, rate.slopes, strict=True)
    slopes = [_plus(a, None if b is None else b * during) for a, b in pairs]
    return Dual(start.value + rate.value * during, slopes)


def inflated(entry: Dual) -> Dual:
    """A slightly wider ball, with wider slopes."""

    def wider(value: Number | None) -> Number | None:
        return None if value is None else value + ball(-1, 1) * (value.rad() * 0.1 + 1e-15 + abs(value) * 1e-15)

    return Dual(wider(entry.value), [wider(slope) for slope in entry.slopes])


def contains(outer: Dual, inner: Dual) -> bool:
    """Whether an enclosure contains another."""
    pairs = zip(outer.slopes, inner.slopes, strict=True)
    return inner.value in outer.value and all(
        (arb(0) if b is None else b) in (arb(0) if a is None else a) for a, b in pairs
    )


def definite(matrix: Number) -> bool:
    """Whether every symmetric matrix of a matrix of balls is positive definite, by elimination of its middle."""
    d = matrix.nrows()
    spread = sum((matrix[i, j].rad() ** 2 for i in range(d) for j in range(d)), arb(0)).sqrt()
    rest = [[(matrix[i, j].mid() + matrix[j, i].mid()) / 2 - spread * (i == j) for j in range(d)] for i in range(d)]
    for k in range(d):
        if not rest[k][k] > 0:
            return False
        for i in range(k + 1, d):
            factor = rest[i][k] / rest[k][k]
            for j in range(k + 1, d):
                rest[i][j] = rest[i][j] - factor * rest[k][j]
    return True
