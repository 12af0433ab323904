"""Numbers of second order in common symbols, with a bound of the rest: what a box becomes in equations and networks.

They are Taylor models (Makino and Berz, 2003) of order two. The loops over all coefficients are compiled: they read
every number once, where NumPy reads it once an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.program.graph import Graph, Node
from solver.errors import SolverError
from solver.proof.affine import LIBRARY, TERMS, TINY, UNIT, Affine, Linear, known, rounding, upward


def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as machine code, cached where a folder can be written."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(nogil=True)(loop)


Derivatives = tuple[Array, Array, Array, Array]  # a value and the next three
BLOCK = 64  # numbers that are read row by row while they are in the processor's cache


@compiled
def _present(terms: Array, d: int, start: int, stop: int) -> NDArray[np.bool_]:
    """Whether (1 + d,) a term of first order is there at all."""
    found = np.zeros(d + 1, np.bool_)
    for row in range(1, d + 1):
        for i in range(start, stop):
            if terms[row, i] != 0.0:
                found[row] = True
                break
    return found


@compiled
def _sizes(terms: Array, d: int) -> Array:
    """Sums (2, M) of the sizes of the terms (rows, M) of first and of second order."""
    rows, size = terms.shape
    found = np.zeros((2, size))
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        for row in range(1, rows):
            order = 0 if row <= d else 1
            for i in range(start, stop):
                found[order, i] += abs(terms[row, i])
    return found


@compiled
def _product(a: Array, a_parts: Array, a_rest: Array, b: Array, b_parts: Array, b_rest: Array) -> tuple[Array, Array]:
    """Terms (rows, M) and rest (M,) of a product."""
    rows, size = a.shape
    d = int(np.sqrt(2.0 * rows)) - 1
    found, rest = np.empty((rows, size)), np.empty(size)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        for i in range(start, stop):
            found[0, i] = a[0, i] * b[0, i]
            a0, a1, a2, ar = abs(a[0, i]), a_parts[0, i], a_parts[1, i], a_rest[i]
            b0, b1, b2, br = abs(b[0, i]), b_parts[0, i], b_parts[1, i], b_rest[i]
            known = a0 * br + b0 * ar + a1 * b2 + a2 * b1 + a2 * b2 + ar * br + (a1 + a2) * br + (b1 + b2) * ar
            rest[i] = known + (rows + 4) * UNIT * (a0 + a1 + a2 + ar) * (b0 + b1 + b2 + br) + TINY
        for row in range(1, rows):
            for i in range(start, stop):
                found[row, i] = a[0, i] * b[row, i] + b[0, i] * a[row, i]
        row, of_a, of_b = d, _present(a, d, start, stop), _present(b, d, start, stop)
        for j in range(1, d + 1):
            for other in range(j, d + 1):
                row += 1
                if other == j:
                    for i in range(start, stop):
                        found[row, i] += a[j, i] * b[j, i]
                elif (of_a[j] and of_b[other]) or (of_a[other] and of_b[j]):
                    for i in range(start, stop):
                        found[row, i] += a[j, i] * b[other, i] + a[other, i] * b[j, i]
    return found, rest


@compiled
def _series(
    terms: Array, parts: Array, old: Array, value: Array, slope: Array, second: Array, third: Array
) -> tuple[Array, Array]:
    """Terms (rows, M) and rest (M,) of value + slope t + second t^2 / 2 + ..., t the numbers less their middle."""
    rows, size = terms.shape
    d = int(np.sqrt(2.0 * rows)) - 1
    found, rest = np.empty((rows, size)), np.empty(size)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        for i in range(start, stop):
            found[0, i] = value[i]
            first, beyond = parts[0, i], parts[1, i] + old[i]
            bend = first + beyond
            known = abs(slope[i]) * old[i] + third[i] / 6 * bend**3
            known += 0.5 * abs(second[i]) * (2 * first * beyond + beyond**2)
            whole = abs(value[i]) + abs(slope[i]) + abs(second[i])  # an error may be that of a larger term
            rest[i] = known + LIBRARY * UNIT * whole * (1 + bend) ** 2 + TINY
        for row in range(1, rows):
            for i in range(start, stop):
                found[row, i] = slope[i] * terms[row, i]
        row, there = d, _present(terms, d, start, stop)
        for j in range(1, d + 1):
            for other in range(j, d + 1):
                row += 1
                if there[j] and there[other]:
                    share = 0.5 if other == j else 1.0
                    for i in range(start, stop):
                        found[row, i] += share * second[i] * (terms[j, i] * terms[other, i])
    return found, rest


@dataclass(frozen=True)
class Quadratic:
    """Numbers (N, k) of second order in d symbols, up to a rest.

    terms: (1 + d + p, N, k), the middle, the slopes, and the coefficients of
    the p = d (d + 1)/2 products t_j t_l, j <= l.
    """

    terms: Array
    rest: Array  # (N, k)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", upward(self.rest, TERMS))

    @classmethod
    def of(cls, x: Linear) -> Quadratic:
        """The same numbers."""
        d = len(x.slopes)
        none = np.zeros((d * (d + 1) // 2, *x.middle.shape))
        return cls(np.concatenate([x.middle[None], x.slopes, none]), x.rest)

    @classmethod
    def box(cls, middle: Array, slopes: Mapping[int, Array], rest: Array | float, symbols: int) -> Quadratic:
        """Numbers (N, 1) of a middle (N,) and slopes (N,) by some of the symbols."""
        terms = np.zeros((1 + symbols + symbols * (symbols + 1) // 2, len(middle), 1))
        terms[0, :, 0] = middle
        for place, slope in slopes.items():
            terms[1 + place, :, 0] = slope
        return cls(terms, np.broadcast_to(np.asarray(rest, np.float64), middle.shape)[:, None])

    @property
    def symbols(self) -> int:
        """Number d of symbols."""
        return int((2.0 * len(self.terms)) ** 0.5) - 1

    @property
    def middle(self) -> Array:
        """Middles (N, k)."""
        middle: Array = self.terms[0]
        return middle

    @property
    def whole(self) -> Quadratic:
        """These numbers. Those of `slope.Noisy` are some without noise symbols."""
        return self

    @property
    def opened(self) -> Quadratic:
        """These numbers. Those of `slope.Noisy` are some whose rests are symbols."""
        return self

    @property
    def linear(self) -> Linear:
        """The same numbers, with the terms of second order in the rest. A square is between 0 and 1."""
        d, (first, second) = self.symbols, np.triu_indices(self.symbols)
        squares = self.terms[1 + d :][first == second]
        half, size = 0.5 * squares.sum(0), 0.5 * np.abs(squares).sum(0)
        # the sum of all terms is at least twice `size`, so that the difference loses no digits
        rest = self.rest + upward(self.parts[1] - size, 2 * len(self.terms))
        rest = rest + rounding(np.abs(self.middle) + size, d + 2)
        return Linear(self.middle + half, self.terms[1 : 1 + d], rest)

    def mean(self, place: int) -> Quadratic:
        """The mean over one symbol, on which the numbers do not depend then."""
        first, second = np.triu_indices(self.symbols)
        terms, of_it = self.terms.copy(), 1 + self.symbols + np.flatnonzero((first == place) | (second == place))
        square = 1 + self.symbols + np.flatnonzero((first == place) & (second == place))[0]
        terms[0] += self.terms[square] / 3
        terms[1 + place] = terms[of_it] = 0.0
        return Quadratic(terms, self.rest + rounding(np.abs(terms[0]) + np.abs(self.terms[square])))

    def affine(self, rows: int, columns: int, symbols: int, more: int = 0) -> Affine:
        """Matrices (N, rows, columns) of the numbers, linear in the first symbols and in `more` on which none depends.

        Other symbols are in the rest, and a square is between 0 and 1.
        """
        d, (first, second) = self.symbols, np.triu_indices(self.symbols)
        squares, others = (self.terms[1 + d :][at] for at in (first == second, first != second))
        rest = self.rest + np.abs(others).sum(0) + 0.5 * np.abs(squares).sum(0)
        rest = rest + np.abs(self.terms[1 + symbols : 1 + d]).sum(0) + rounding(self.size, len(self.terms))
        middle = (self.terms[0] + 0.5 * squares.sum(0)).reshape(-1, rows, columns)
        slopes = np.zeros((len(middle), symbols + more, rows, columns))
        slopes[:, :symbols] = np.moveaxis(self.terms[1 : 1 + symbols], 0, 1).reshape(
            len(middle), symbols, rows, columns
        )
        return known(middle, slopes, upward(rest, len(self.terms)).reshape(middle.shape))

    @property
    def _flat(self) -> tuple[Array, Array, Array]:
        """Terms (rows, M), sizes (2, M) and rests (M,) of all numbers in a row."""
        rows = len(self.terms)
        parts = self.terms.reshape(rows, -1), self.parts.reshape(2, -1), self.rest.reshape(-1)
        return tuple(np.ascontiguousarray(part) for part in parts)  # type: ignore[return-value]  # one layout, one loop

    def _made(self, loop: Callable[..., tuple[Array, Array]], *parts: Array) -> Quadratic:
        terms, rest = loop(*self._flat, *parts)
        return Quadratic(terms.reshape(self.terms.shape), rest.reshape(self.rest.shape))

    @cached_property
    def parts(self) -> Array:
        """Largest sizes (2, N, k) of the terms of first and of second order."""
        found: Array = _sizes(np.ascontiguousarray(self.terms.reshape(len(self.terms), -1)), self.symbols)
        return found.reshape(2, *self.rest.shape)

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        size: Array = self.parts[0] + self.parts[1] + self.rest
        return size

    @property
    def size(self) -> Array:
        """Sum (N, k) of the sizes of all terms."""
        size: Array = np.abs(self.middle) + self.parts[0] + self.parts[1]
        return size

    def __getitem__(self, columns: Any) -> Quadratic:
        return Quadratic(np.ascontiguousarray(self.terms[..., columns]), self.rest[..., columns])

    def __add__(self, other: Quadratic) -> Quadratic:
        return Quadratic(self.terms + other.terms, self.rest + other.rest + rounding(self.size + other.size))

    def __sub__(self, other: Quadratic) -> Quadratic:
        return self + other.times(-1.0)

    def __mul__(self, other: Quadratic) -> Quadratic:
        return self._made(_product, *other._flat)

    def through(self, value: Array, slope: Array, second: Array, third: Array | float) -> Quadratic:
        """A function with these derivatives at the middle, and at most this third one in the box."""
        parts = value, slope, second, np.broadcast_to(third, value.shape)
        return self._made(_series, *(part.ravel() for part in parts))

    def cubic(self, derivatives: Derivatives, third: float, fourth: float) -> Quadratic:
        """A function with its value and three derivatives at the middle, and the largest third and fourth ones."""
        value, slope, second, at_middle = derivatives
        return self.through(value, slope, second, np.minimum(third, np.abs(at_middle) + fourth * self.bend))

    def function(self, kind: str) -> Quadratic:
        """A function of FUNCTIONS."""
        return self.through(*FUNCTIONS[kind](self.middle, self.bend))

    def plus(self, values: Array | float) -> Quadratic:
        """The numbers plus exact ones."""
        size = np.abs(self.middle) + np.abs(values)
        terms = self.terms.copy()
        terms[0] += values
        return Quadratic(terms, self.rest + rounding(size))

    def times(self, factor: Array | float) -> Quadratic:
        """The numbers times exact ones."""
        return Quadratic(self.terms * factor, np.abs(factor) * (self.rest + rounding(self.size)))

    def to(self, weight: Array) -> Quadratic:
        """The numbers times a matrix (k, j)."""
        rows, count, k = self.terms.shape
        whole = (self.terms.reshape(rows * count, k) @ weight).reshape(rows, count, weight.shape[1])
        wide = self.rest + rounding(self.size, rows + k)
        return Quadratic(whole, upward(wide @ np.abs(weight), k))


def least(number: Quadratic) -> Array:
    """Lower bounds (N, k): those of a t + q t^2 for each symbol, and the sizes of all other terms."""
    d = number.symbols
    first, second = np.triu_indices(d)
    a, others = np.abs(number.terms[1 : 1 + d]), number.terms[1 + d :]
    q = others[first == second]
    bent = np.where(a < 2 * q, -a * a / np.maximum(4 * q, TINY), q - a)
    found = number.middle + bent.sum(0) - np.abs(others[first != second]).sum(0) - number.rest
    return np.asarray(found - rounding(number.size + number.rest, len(number.terms) + 8))


def beside(parts: list[Quadratic]) -> Quadratic:
    """Numbers of the same symbols as one."""
    terms, rests = ([getattr(part, name) for part in parts] for name in ("terms", "rest"))
    return Quadratic(np.concatenate(terms, -1), np.concatenate(rests, -1))


def _above(m: Array, bend: Array, least: float = 0.0) -> Array:
    """Smallest numbers within `bend` of m, not a number where they are not above `least`."""
    low = m - bend * (1 + 1e-12)
    return np.where(low > least, low, np.nan)


def _logarithm(m: Array, bend: Array, plus: float) -> Derivatives:
    x = m + plus
    value = np.log1p(m) if plus else np.log(m)
    return value, 1 / x, -1 / x**2, 2 / _above(x, bend) ** 3


def _hyperbolic_tangent(m: Array, bend: Array) -> Derivatives:
    t = np.tanh(m)
    with np.errstate(over="ignore"):
        g = np.cosh(m) ** -2.0  # 1 - t^2 would lose its digits
    return t, g, -2 * t * g, np.minimum(2.0, np.abs(2 * g * (1 - 3 * t * t)) + 4.1 * bend)


def _arcsine(m: Array, bend: Array) -> Derivatives:
    g = 1 / np.sqrt(1 - m * m)
    least = _above(1 - np.abs(m), bend)
    return np.arcsin(m), g, m * g**3, 3 / (least * (2 - least)) ** 2.5


def _arccosine(m: Array, bend: Array) -> Derivatives:
    _, slope, second, third = _arcsine(m, bend)
    return np.arccos(m), -slope, -second, third


#: Kind of operation -> value and two derivatives at m, and the largest size of the third one within `bend` of it.
FUNCTIONS: dict[str, Callable[[Array, Array], Derivatives]] = {
    "sin": lambda m, bend: (np.sin(m), np.cos(m), -np.sin(m), np.minimum(1.0, np.abs(np.cos(m)) + bend)),
    "cos": lambda m, bend: (np.cos(m), -np.sin(m), -np.cos(m), np.minimum(1.0, np.abs(np.sin(m)) + bend)),
    "exp": lambda m, bend: (np.exp(m), np.exp(m), np.exp(m), np.exp(m + bend)),
    "log": lambda m, bend: _logarithm(m, bend, 0.0),
    "log1p": lambda m, bend: _logarithm(m, bend, 1.0),
    "sqrt": lambda m, bend: (np.sqrt(m), 0.5 * m**-0.5, -0.25 * m**-1.5, 0.375 * _above(m, bend) ** -2.5),
    "tanh": _hyperbolic_tangent,  # its fourth derivative is below 4.1
    "atan": lambda m, _: (np.arctan(m), 1 / (1 + m * m), -2 * m / (1 + m * m) ** 2, np.full_like(m, 2.0)),
    "asin": _arcsine,
    "acos": _arccosine,
    "sinh": lambda m, bend: (np.sinh(m), np.cosh(m), np.sinh(m), np.cosh(np.abs(m) + bend)),
    "cosh": lambda m, bend: (np.cosh(m), np.sinh(m), np.cosh(m), np.sinh(np.abs(m) + bend)),
    "inverse": lambda m, bend: (1 / m, -1 / m**2, 2 / m**3, 6 / _above(np.abs(m), bend) ** 4),
}


def _size(a: Quadratic) -> Quadratic:
    """|a|: a number between 0 and its largest size where its sign is not known."""
    high = upward(np.abs(a.middle) + a.bend, len(a.terms))
    sign, unknown = np.sign(a.middle), a.bend * (1 + 1e-12) >= np.abs(a.middle)
    found = a.times(sign)
    found.terms[0] = np.where(unknown, 0.5 * high, found.terms[0])
    found.terms[1:] = np.where(unknown, 0.0, found.terms[1:])
    return Quadratic(found.terms, np.where(unknown, 0.5 * high, found.rest))


def _sign(a: Quadratic) -> Quadratic:
    """-1, 0 or 1: any number between them where it is not known."""
    none, sure = np.zeros_like(a.terms), np.abs(a.middle) > a.bend * (1 + 1e-12)
    none[0] = np.where(sure, np.sign(a.middle), 0.0)
    return Quadratic(none, np.where(sure, 0.0, 1.0))


def _power(a: Quadratic, p: float) -> Quadratic:
    """a^p with a >= 0: a number between the powers of its ends where it may be 0 and has no third derivative there."""
    m, low, high = np.maximum(a.middle, 0.0), a.middle - a.bend * (1 + 1e-12), a.middle + a.bend * (1 + 1e-12)
    ends = np.maximum(low, 0.0) if p > 3 else low, high
    steep = m**p, p * m ** (p - 1), p * (p - 1) * m ** (p - 2)
    third = abs(p * (p - 1) * (p - 2)) * np.maximum(*(end ** (p - 3) for end in ends))
    found = a.through(*steep, third)
    unknown = ~(low > 0)
    if p > 0 and unknown.any():
        half = 0.5 * np.maximum(high, 0.0) ** p * (1 + 1e-12)
        found.terms[0] = np.where(unknown, half, found.terms[0])
        found.terms[1:] = np.where(unknown, 0.0, found.terms[1:])
        found = Quadratic(found.terms, np.where(unknown, half, found.rest))
    return found


KINDS = {*FUNCTIONS, "solution", "negative", "abs", "sign", "minimum", "maximum", "add", "sub", "mul", "div"}


def _result(kind: str, a: Quadratic, b: Quadratic | None = None) -> Quadratic:
    if kind in FUNCTIONS:
        return a.function(kind)
    if kind in ("solution", "negative"):
        return a if kind == "solution" else a.times(-1.0)
    if kind in ("abs", "sign"):
        return _size(a) if kind == "abs" else _sign(a)
    assert b is not None
    if kind in ("minimum", "maximum"):
        return (a + b + _size(a - b).times(1.0 if kind == "maximum" else -1.0)).times(0.5)
    if kind == "div":
        return a * b.function("inverse")
    return {"add": a.__add__, "sub": a.__sub__, "mul": a.__mul__}[kind](b)


@np.errstate(all="ignore")  # a number outside the domain of an operation gives NaN, and its rest is unknown
def evaluate(
    graph: Graph, roots: Sequence[Node], inputs: Mapping[Node, Quadratic], count: int, symbols: int
) -> Quadratic:
    """The roots (N, k) of a graph over `count` boxes of its inputs (N, 1), which have so many symbols.

    Raises SolverError for an operation that has no rule.
    """
    values, order, last = dict(inputs), graph.reachable(roots), dict.fromkeys(roots, np.inf)
    for node in order:
        last |= {at: max(node, last.get(at, 0)) for at in graph.operations[node].arguments}
    for node in order:
        if node in values:
            continue
        operation = graph.operations[node]
        kind, arguments = operation.kind, operation.arguments
        if kind == "constant":
            values[node] = Quadratic.box(np.full(count, operation.value), {}, 0.0, symbols)
            continue
        numbers = [values[at] for at in arguments]
        exact = [graph.operations[at].value if graph.operations[at].kind == "constant" else None for at in arguments]
        if kind == "mul" and exact[0] is not None:
            values[node] = numbers[1].times(exact[0])
        elif kind == "mul" and exact[1] is not None:
            values[node] = numbers[0].times(exact[1])
        elif kind == "pow" and exact[1] is not None:
            values[node] = _power(numbers[0], exact[1])
        elif kind in KINDS:
            values[node] = _result(kind, *numbers)
        else:
            raise SolverError(f"`{kind}` has no rule in interval arithmetic, so that nothing can be proven of it")
        for at in {at for at in arguments if last[at] == node}:
            del values[at]  # thousands of numbers of many symbols would fill the memory
    return beside([values[root] for root in roots])
