"""Dimensions of expressions, and the check that they fit. The check refuses only what it is sure of.

Whole numbers, fractions and pi have no unit. A number with a decimal point may have any unit, because it may be a
length or the gravity. A term is not checked when it contains such a number or a quantity whose unit is left empty, or
when it contains no parameter or input with a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sympy import Abs, Add, Expr, Float, Function, Max, Min, Mul, Pow, Symbol, atan2, exp, sign

from modelgen.errors import ModelError, Place, abridged
from modelgen.units import Dimension, dimension, divided, multiplied, named, parse, raised

NONE = dimension("1")


@dataclass(frozen=True)
class Found:
    """A dimension, and whether it follows from a parameter or input with a unit, which makes it sure."""

    dimension: Dimension
    sure: bool


class Dimensions:
    """Dimensions of the expressions in one place of a model file.

    units: the units of the symbols, as written. vouching: the symbols of parameters and inputs. bare: whole numbers
    may have a unit too, as the weights of a cost have.
    """

    def __init__(
        self,
        units: Mapping[Symbol, str],
        vouching: frozenset[Symbol],
        what: str,
        place: Place,
        bare: bool = False,
    ) -> None:
        self.units = units
        self.vouching = vouching
        self.what = what
        self.place = place
        self.bare = bare
        self._seen: dict[Expr, Found | None] = {}

    def of(self, expression: Expr) -> Found | None:
        """The dimension, or None where it is not known. Raises ModelError where terms or an argument do not fit."""
        if expression not in self._seen:
            self._seen[expression] = self._found(expression)
        return self._seen[expression]

    def span(self, displacement: Expr) -> Dimension | None:
        """The dimension of a displacement, sure or not; None where it is not known."""
        found = self.of(displacement)
        return found.dimension if found else None

    def check(self, expression: Expr, expected: Dimension) -> None:
        """Raise ModelError for a term that surely has another dimension than the expected one."""
        for term in Add.make_args(expression):
            found = self.of(term)
            if found and found.sure and found.dimension != expected:
                raise ModelError(
                    f"the {self.what} contains the term {_short(term)}, which is in {named(found.dimension)}"
                    f"{self._named(term)}; it should be in {named(expected)}. Correct the term or a unit. A number "
                    "with a unit of its own is a parameter with fixed=True, or has a decimal point: 2.0 * ...",
                    self.place,
                )

    def check_arguments(self, expression: Expr) -> None:
        """Raise ModelError for an argument of a function that has a unit; other terms may have any."""
        for function in sorted(expression.atoms(Function), key=str):
            self.of(function)

    def _named(self, term: Expr) -> str:
        """The units of the parameters and inputs in a term."""
        symbols = sorted(term.free_symbols & self.vouching, key=str)
        return f" ({', '.join(f'`{symbol}` in {self.units[symbol]}' for symbol in symbols)})" if symbols else ""

    def _found(self, expression: Expr) -> Found | None:
        if isinstance(expression, Symbol):
            own = parse(self.units[expression], "unit", self.place)
            return None if own is None else Found(own, expression in self.vouching and own != NONE)
        if expression.is_number:
            unknown = expression.has(Float) or (self.bare and expression not in (1, -1))
            return None if unknown else Found(NONE, False)
        if isinstance(expression, Mul):
            factors = [self.of(factor) for factor in expression.args]
            known = [factor for factor in factors if factor]
            if len(known) < len(factors):
                return None
            return Found(multiplied(*(each.dimension for each in known)), any(each.sure for each in known))
        if isinstance(expression, Add | Max | Min):
            return self._alike(expression)
        if isinstance(expression, exp):  # which is a power too to some versions of SymPy
            return self._without_unit(expression)
        if isinstance(expression, Pow):
            return self._power(*expression.args)
        if isinstance(expression, Abs):
            return self.of(expression.args[0])
        if isinstance(expression, sign | atan2):
            self._alike(expression)
            return Found(NONE, False)
        return self._without_unit(expression)

    def _alike(self, expression: Expr) -> Found | None:
        """The dimension of a sum, minimum or maximum. Its sure terms must have the same one."""
        founds = [(term, self.of(term)) for term in expression.args]
        sure = [(term, found) for term, found in founds if found and found.sure]
        for term, found in sure[1:]:
            first, other = sure[0]
            if found.dimension != other.dimension:
                raise ModelError(
                    f"the {self.what} contains {_short(expression)}, where {_short(first)} is in "
                    f"{named(other.dimension)}{self._named(first)} and {_short(term)} in {named(found.dimension)}"
                    f"{self._named(term)}. "
                    "Correct a term or a unit.",
                    self.place,
                )
        if sure:
            return sure[0][1]
        dimensions = {found.dimension if found else None for _, found in founds}
        return founds[0][1] if len(dimensions) == 1 else None

    def _power(self, base: Expr, exponent: Expr) -> Found | None:
        found, power = self.of(base), self.of(exponent)
        if not exponent.is_number:
            return found if found and power and found.dimension == NONE else None
        return found and Found(raised(found.dimension, Fraction(float(exponent)).limit_denominator(1000)), found.sure)

    def _without_unit(self, expression: Expr) -> Found:
        """The dimension of sin, exp and the like, whose argument has no unit."""
        for argument in expression.args:
            found = self.of(argument)
            if found and found.sure and found.dimension != NONE:
                raise ModelError(
                    f"the {self.what} contains {_short(expression)}, but {_short(argument)} is in "
                    f"{named(found.dimension)}{self._named(argument)}, and {type(expression).__name__} takes an angle "
                    "or a plain number. Divide it by a quantity of its kind.",
                    self.place,
                )
        return Found(NONE, False)


def per(work: str, displacement: Dimension | None, power: int = 1) -> Dimension | None:
    """The dimension that gives `work` when multiplied by a power of the displacement; None where that is not known."""
    return None if displacement is None else divided(dimension(work), raised(displacement, Fraction(power)))


def _short(expression: Expr) -> str:
    """An expression, abridged for a message."""
    return abridged(str(expression), 120)
