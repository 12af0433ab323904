"""Checks of the expressions in one line of a model file: symbols, smoothness, signs and units.

Whole numbers, fractions and pi have no unit. A number with a decimal point may have any unit, because it may be a
length or the gravity. A term is not checked when it contains such a number or a quantity whose unit is left empty, or
when it contains no parameter or input with a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf

from sympy import Abs, Add, Expr, Float, Function, Max, Min, Mul, Pow, S, Symbol, atan2, exp, sign

from modelgen.errors import Place, abridged, calling_place, mistake
from modelgen.statement.checker import check_finite, check_smooth, check_symbols, expression
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import DeclaredInput, DeclaredParameter, Internal
from modelgen.statement.joints import RATE_UNITS, UNITS
from modelgen.units import BASE, Dimension, dimension, divided, multiplied, named, parse, raised

NONE = dimension("1")
MOST_CORNERS = 8  # parameters in a coefficient, at whose 2^8 corners it is judged


@dataclass(frozen=True)
class Found:
    """A dimension, and whether it follows from a parameter or input with a unit, which makes it sure."""

    dimension: Dimension
    sure: bool


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the expressions in one place of a model file."""

    units: Mapping[Symbol, str]  # of the symbols, as written
    vouching: frozenset[Symbol]  # whose units are sure: references, and parameters and inputs with a unit
    what: str
    bare: bool = False  # whether whole numbers may have a unit too, as the weights of a cost have
    _seen: dict[Expr, Found | None] = field(default_factory=dict)

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
                ampere = BASE.index("A")
                current = CURRENT if found.dimension[ampere] and not expected[ampere] else ""
                raise mistake(
                    f"the {self.what} contains the term {_short(term)}, which is in {named(found.dimension)}"
                    f"{self._named(term)}; it should be in {named(expected)}. Correct the term or a unit. A number "
                    f"with a unit of its own is a parameter with fixed=True, or has a decimal point: 2.0 * ...{current}"
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
            own = parse(self.units[expression], "unit")
            return None if own is None else Found(own, expression in self.vouching)
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
                raise mistake(
                    f"the {self.what} contains {_short(expression)}, where {_short(first)} is in "
                    f"{named(other.dimension)}{self._named(first)} and {_short(term)} in {named(found.dimension)}"
                    f"{self._named(term)}. "
                    "Correct a term or a unit."
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
                raise mistake(
                    f"the {self.what} contains {_short(expression)}, but {_short(argument)} is in "
                    f"{named(found.dimension)}{self._named(argument)}, and {type(expression).__name__} takes an angle "
                    "or a plain number. Divide it by a quantity of its kind."
                )
        return Found(NONE, False)


def per(work: str, displacement: Dimension | None, power: int = 1) -> Dimension | None:
    """The dimension that gives `work` when multiplied by a power of the displacement; None where that is not known."""
    return None if displacement is None else divided(dimension(work), raised(displacement, Fraction(power)))


def _short(expression: Expr) -> str:
    """An expression, abridged for a message."""
    return abridged(str(expression), 120)


Unit = str | Dimension | None  # None: any unit
#: The end of the message for a force or an energy with amperes in it.
CURRENT = (
    " A current that follows its voltage late is a state, and not the rate of a coordinate: "
    'current = robot.state("current", limit=..., unit="A") and robot.flow(current, (voltage - R * current) / L).'
)

_ACTING = "Inputs act through robot.apply(coordinate, force) and have their cost in action_cost."
#: The end of a message, by what an expression may contain besides parameters: q, v (rates and speeds), z and u.
ALLOWED = {
    "": "it may depend on parameters only.",
    "q": "it may depend on coordinates and parameters only. Forces that depend on rates or inputs go "
    "into robot.apply(coordinate, force).",
    "qt": "it may depend on coordinates, turns of ball joints and parameters only.",
    "qv": "it may depend on coordinates, rates and parameters, not on an input. " + _ACTING,
    "qvz": "it may depend on states and parameters, not on an input. " + _ACTING,
    "zu": "it may depend on inputs, states of first order and parameters only.",
    "qvzu": "it may depend on states, inputs and parameters. A turn is no state: write the joint's `rotation`.",
}


@dataclass(frozen=True)
class Varying:
    """A coefficient that `modelgen.proof` judges on the whole domain."""

    what: str
    value: Expr
    zero: bool  # whether it may be zero
    most: float
    place: Place = field(default_factory=calling_place)


class Terms:
    """Checks the expressions of one line against the declarations of the robot.

    In every method, `what` names the expression in messages. `may_contain` lists the symbols that it may contain
    besides parameters: "q", "t" (the turns of ball joints), "v", "z" (states of first order) and "u", in this order.
    `unit` is the unit of each of its terms. Every method raises ModelError with the line.
    """

    def __init__(self, declared: Declarations) -> None:
        self.declared = declared
        self.varying: list[Varying] = []

    def term(self, value: object, what: str, may_contain: str, unit: Unit = None) -> Expr:
        """A finite real expression."""
        term = expression(value, what)
        declared = self.declared
        allowed = {parameter.symbol for parameter in declared.parameters}
        if "q" in may_contain:
            allowed |= {joint.symbol for joint in declared.coordinates}
        if "t" in may_contain:
            allowed |= {*declared.turns}
        if "v" in may_contain:
            rates = {symbol.rate for symbol in (*declared.turns, *(joint.symbol for joint in declared.coordinates))}
            allowed |= rates | {speed.symbol for speed in declared.speeds}
        if "z" in may_contain:
            allowed |= {state.symbol for state in declared.internal}
        if "u" in may_contain:
            allowed |= {declared_input.symbol for declared_input in declared.inputs}
        check_symbols(term, what, allowed, declared.symbols, ALLOWED[may_contain])
        fixed = {parameter.symbol: Float(parameter.value) for parameter in declared.parameters if parameter.fixed}
        check_finite(term.xreplace(fixed), what)
        if unit is not None and not term.is_number:
            self.dimensions(what).check(term, dimension(unit) if isinstance(unit, str) else unit)
        return term.xreplace(declared.lagged)

    def smooth(self, value: object, what: str, may_contain: str, unit: Unit = None) -> Expr:
        """An expression without kinks. Forces are its derivatives."""
        check_smooth(expression(value, what), what)
        return self.term(value, what, may_contain, unit)

    def coefficient(
        self,
        value: object,
        what: str,
        may_contain: str,
        unit: Unit,
        *,
        zero: bool = True,
        most: float = inf,
    ) -> Expr:
        """An expression that is never negative, zero only if `zero` is true, and at most `most`.

        An expression of parameters is judged at its nominal value and at the corners of their bounds; one that
        contains coordinates, or that may be least between the corners, is added to `varying`.
        """
        term = self.term(value, what, may_contain, unit)
        nominal = self.nominal(term)
        uncertain = [each for each in self.declared.parameters if each.symbol in term.free_symbols and not each.fixed]
        bent = len(uncertain) > MOST_CORNERS or any(term.diff(each.symbol, 2) != 0 for each in uncertain)
        evident = most == inf and bool(term.is_nonnegative if zero else term.is_positive)  # as the square of a length
        if not evident and (bent or not nominal.is_number):
            self.varying.append(Varying(what, term, zero, most))
        if not nominal.is_number:
            return term
        corners = product(*(each.bounds for each in uncertain)) if len(uncertain) <= MOST_CORNERS else ()
        at = [dict(zip((each.symbol for each in uncertain), map(Float, corner), strict=True)) for corner in corners]
        values = [nominal, *(self.nominal(term.xreplace(corner)) for corner in at)]
        sizes = [float(each) for each in values if each.is_real and each.is_finite]
        bounded = f" by the bounds of {', '.join(f'`{each.symbol}`' for each in uncertain)}"
        least, greatest = min(sizes), max(sizes)
        if least < 0 or (least == 0 and not zero):
            value_text = f"may be {least:g}{bounded}" if least < float(nominal) else f"is {least:g}"
            wanted = "must not be negative" if zero else "must be greater than zero"
            raise mistake(f"the {what} {value_text}; it {wanted}.")
        if greatest > most:
            value_text = f"may be {greatest:g}{bounded}" if greatest > float(nominal) else f"is {greatest:g}"
            raise mistake(f"the {what} {value_text}; it must not exceed {most:g}.")
        return term

    def nominal(self, term: Expr) -> Expr:
        """The expression at the nominal values of the parameters."""
        return term.xreplace({parameter.symbol: Float(parameter.value) for parameter in self.declared.parameters})

    def never_negative(self, value: object, what: str, may_contain: str, unit: Unit) -> Expr:
        """A smooth expression that is never negative, such as a mass. See `coefficient`."""
        check_smooth(expression(value, what), what)
        return self.coefficient(value, what, may_contain, unit)

    def along(self, displacement: object, *, turns: bool = False) -> tuple[Expr, Dimension | None]:
        """A displacement along which a force acts, which contains a coordinate; its dimension, or None if unknown.

        turns: whether it may contain turns of ball joints. They are no states, so that nothing may depend on them.
        """
        turning = {*self.declared.turns}
        along = self.smooth(displacement, "displacement", "qt")
        used = sorted(map(str, along.free_symbols & turning))
        if used and not turns:
            raise mistake(
                f"a force or inertia depends on the turn `{used[0]}`, which is no state: three turns are not three "
                "angles. Write robot.apply, robot.damp or robot.dry_friction along it, or a robot.potential_energy of "
                "the joint's `rotation`."
            )
        if any(along.diff(turn).free_symbols & turning for turn in turning):
            raise mistake(f"the displacement {along} is not linear in the turn `{used[0]}`; write the turn alone.")
        if not along.free_symbols & ({joint.symbol for joint in self.declared.coordinates} | turning):
            raise mistake(
                f"a force is applied along {along}, which contains no coordinate. "
                "Write the coordinate first: robot.apply(coordinate, force), robot.spring(coordinate, stiffness)."
            )
        return along, self.dimensions("displacement").span(along)

    def velocity(self, displacement: Expr) -> Expr:
        """The time derivative of an expression of the coordinates."""
        symbols = [*(joint.symbol for joint in self.declared.coordinates), *self.declared.turns]
        return sum((displacement.diff(symbol) * symbol.rate for symbol in symbols), S.Zero)

    def values_of_states(self, stated: Mapping[str, object], what: str) -> None:
        """Raise ModelError for a value, or mean and deviation, of a state that is an expression in another unit."""
        for name, pair in stated.items():
            value = pair[0] if isinstance(pair, tuple | list) else pair
            if isinstance(value, Expr):
                dimensions = self.dimensions(f"{what} of `{name}`")
                own = next(unit for symbol, unit in dimensions.units.items() if symbol.name == name)
                if expected := parse(own, "unit"):
                    dimensions.check(value, expected)

    def dimensions(self, what: str, bare: bool = False) -> Dimensions:
        """The dimensions of expressions, from the units of all symbols. `bare` as in `Dimensions`."""
        declared = self.declared
        sources: list[DeclaredParameter | DeclaredInput | Internal]
        sources = [*declared.parameters, *declared.inputs, *declared.internal]
        units = {source.symbol: source.unit for source in (*sources, *declared.speeds)}
        for joint in declared.coordinates:
            units[joint.symbol], units[joint.symbol.rate] = UNITS[joint.kind], RATE_UNITS[joint.kind]
        for turn in declared.turns:
            units[turn], units[turn.rate] = "rad", "rad/s"
        known = (source.symbol for source in sources if parse(source.unit, "unit") != NONE)
        return Dimensions(units, frozenset((*known, *(each.symbol for each in declared.references))), what, bare)
