"""Checks of the expressions in one line of a model file: symbols, smoothness, signs and units."""

from __future__ import annotations

from math import inf

from sympy import Expr, Float, S

from modelgen.errors import ModelError, Place
from modelgen.statement.checker import check_finite, check_smooth, check_symbols, expression
from modelgen.statement.declarations import RATE_UNITS, UNITS, Declarations, DeclaredInput, DeclaredParameter, Internal
from modelgen.statement.dimensions import Dimensions
from modelgen.units import Dimension, dimension

Unit = str | Dimension | None  # None: any unit

_ACTING = "Inputs act through robot.apply(coordinate, force) and have their cost in action_cost."
#: The end of a message, by what an expression may contain besides parameters: q, v (rates and speeds), z and u.
ALLOWED = {
    "": "it may depend on parameters only.",
    "q": "it may depend on coordinates and parameters only. Forces that depend on rates or inputs go "
    "into robot.apply(coordinate, force).",
    "qt": "it may depend on coordinates, turns of ball joints and parameters only.",
    "qv": "it may depend on coordinates, rates and parameters, not on an input. " + _ACTING,
    "qvz": "it may depend on states and parameters, not on an input. " + _ACTING,
}


class Terms:
    """Checks the expressions of one line against the declarations of the robot.

    In every method, `what` names the expression in messages. `may_contain` lists the symbols that it may contain
    besides parameters: "q", "t" (the turns of ball joints), "v", "z" (states of first order) and "u", in this order.
    `unit` is the unit of each of its terms. Every method raises ModelError with the line.
    """

    def __init__(self, declared: Declarations, place: Place) -> None:
        self.declared = declared
        self.place = place

    def term(self, value: object, what: str, may_contain: str, unit: Unit = None) -> Expr:
        """A finite real expression."""
        term = expression(value, what, self.place)
        declared = self.declared
        allowed = {parameter.symbol for parameter in declared.parameters}
        if "q" in may_contain:
            allowed |= {joint.symbol for joint in declared.coordinates}
        turns = {turn for ball in declared.balls for turn in ball.turn}
        if "t" in may_contain:
            allowed |= turns
        if "v" in may_contain:
            rates = {symbol.rate for symbol in (*turns, *(joint.symbol for joint in declared.coordinates))}
            allowed |= rates | {speed.symbol for speed in declared.speeds}
        if "z" in may_contain:
            allowed |= {state.symbol for state in declared.internal}
        if "u" in may_contain:
            allowed |= {declared_input.symbol for declared_input in declared.inputs}
        check_symbols(term, what, allowed, declared.symbols, ALLOWED.get(may_contain, ""), self.place)
        fixed = {parameter.symbol: Float(parameter.value) for parameter in declared.parameters if parameter.fixed}
        check_finite(term.xreplace(fixed), what, self.place)
        if unit is not None and not term.is_number:
            self.dimensions(what).check(term, dimension(unit) if isinstance(unit, str) else unit)
        return term.xreplace(declared.lagged)

    def smooth(self, value: object, what: str, may_contain: str, unit: Unit = None) -> Expr:
        """An expression without kinks. Forces are its derivatives."""
        check_smooth(expression(value, what, self.place), what, self.place)
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

        A parameter is judged by its bounds, another expression of parameters by its nominal value. An expression that
        contains coordinates is not judged.
        """
        term = self.term(value, what, may_contain, unit)
        parameters = {parameter.symbol: parameter for parameter in self.declared.parameters}
        nominal = self.nominal(term)
        if not nominal.is_number:
            return term
        uncertain = term in parameters and not parameters[term].fixed
        least = parameters[term].bounds[0] if uncertain else float(nominal)
        if least < 0 or (least == 0 and not zero):
            value_text = f"may be {least:g} by the bounds of `{term}`" if uncertain else f"is {least:g}"
            wanted = "must not be negative" if zero else "must be greater than zero"
            raise ModelError(f"the {what} {value_text}; it {wanted}.", self.place)
        if float(nominal) > most:
            raise ModelError(f"the {what} is {float(nominal):g}; it must not exceed {most:g}.", self.place)
        return term

    def nominal(self, term: Expr) -> Expr:
        """The expression at the nominal values of the parameters."""
        return term.xreplace({parameter.symbol: Float(parameter.value) for parameter in self.declared.parameters})

    def never_negative(self, value: object, what: str, may_contain: str, unit: Unit) -> Expr:
        """A smooth expression that is never negative, such as a mass. See `coefficient`."""
        check_smooth(expression(value, what, self.place), what, self.place)
        return self.coefficient(value, what, may_contain, unit)

    def along(self, displacement: object, *, turns: bool = False) -> tuple[Expr, Dimension | None]:
        """A displacement along which a force acts, which contains a coordinate; its dimension, or None if unknown.

        turns: whether it may contain turns of ball joints. They are no states, so that nothing may depend on them.
        """
        turning = {turn for ball in self.declared.balls for turn in ball.turn}
        along = self.smooth(displacement, "displacement", "qt")
        used = sorted(map(str, along.free_symbols & turning))
        if used and not turns:
            raise ModelError(
                f"a force or inertia depends on the turn `{used[0]}`, which is no state: three turns are not three "
                "angles. Write robot.apply, robot.damp or robot.dry_friction along it, or a robot.potential_energy of "
                "the joint's `rotation`.",
                self.place,
            )
        if any(along.diff(turn).free_symbols & turning for turn in turning):
            raise ModelError(
                f"the displacement {along} is not linear in the turn `{used[0]}`; write the turn alone.", self.place
            )
        if not along.free_symbols & ({joint.symbol for joint in self.declared.coordinates} | turning):
            raise ModelError(
                f"a force is applied along {along}, which contains no coordinate. "
                "Write the coordinate first: robot.apply(coordinate, force), robot.spring(coordinate, stiffness).",
                self.place,
            )
        return along, self.dimensions("displacement").span(along)

    def velocity(self, displacement: Expr) -> Expr:
        """The time derivative of an expression of the coordinates."""
        symbols = [joint.symbol for joint in self.declared.coordinates]
        symbols += [turn for ball in self.declared.balls for turn in ball.turn]
        return sum((displacement.diff(symbol) * symbol.rate for symbol in symbols), S.Zero)

    def dimensions(self, what: str, bare: bool = False) -> Dimensions:
        """The dimensions of expressions, from the units of all symbols. `bare` as in `Dimensions`."""
        declared = self.declared
        sources: list[DeclaredParameter | DeclaredInput | Internal]
        sources = [*declared.parameters, *declared.inputs, *declared.internal]
        units = {source.symbol: source.unit for source in (*sources, *declared.speeds)}
        for joint in declared.coordinates:
            units[joint.symbol], units[joint.symbol.rate] = UNITS[joint.kind], RATE_UNITS[joint.kind]
        for turn in (turn for ball in declared.balls for turn in ball.turn):
            units[turn], units[turn.rate] = "rad", "rad/s"
        return Dimensions(units, frozenset(source.symbol for source in sources), what, self.place, bare)
