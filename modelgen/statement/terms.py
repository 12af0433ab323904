"""The expressions in one line of a model file, checked: their symbols, smoothness, signs and units."""

from __future__ import annotations

from math import inf

from sympy import Expr, Float, S

from modelgen.errors import ModelError, Place
from modelgen.statement.checker import check_finite, check_smooth, check_symbols, expression
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import RATE_UNITS, UNITS, StatedInput, StatedParameter
from modelgen.statement.dimensions import Dimensions
from modelgen.statement.units import Dimension, dimension

Unit = str | Dimension | None  # None: any

#: What a message adds, by what an expression may contain besides parameters: q, v (rates and speeds) and u.
ALLOWED = {
    "": "it may depend on parameters only.",
    "q": "it may depend on coordinates and parameters only. Forces that depend on rates or inputs go "
    "into robot.apply(coordinate, force).",
    "qv": "it may depend on coordinates, rates and parameters, not on an input. Inputs act through "
    "robot.apply(coordinate, force) and are paid for by action_cost.",
}


class Terms:
    """Checks the expressions of one line against what the robot has declared.

    In every method, `what` names the expression in messages, `may_contain` lists what it may depend on besides
    parameters ("q", "v" and "u", in this order), and `unit` is the unit of every term of it. Every method raises
    ModelError with the line.
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
            allowed |= {joint.symbol for joint in declared.joints}
        if "v" in may_contain:
            allowed |= {joint.symbol.rate for joint in declared.joints} | {each.symbol for each in declared.speeds}
        if "u" in may_contain:
            allowed |= {each.symbol for each in declared.inputs}
        check_symbols(term, what, allowed, declared.symbols, ALLOWED.get(may_contain, ""), self.place)
        fixed = {each.symbol: Float(each.value) for each in declared.parameters if each.fixed}
        check_finite(term.xreplace(fixed), what, self.place)
        if unit is not None and not term.is_number:
            self.dimensions(what).check(term, dimension(unit) if isinstance(unit, str) else unit)
        return term

    def smooth(self, value: object, what: str, may_contain: str, unit: Unit = None) -> Expr:
        """An expression without kinks, because forces are its derivatives."""
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
        """An expression that is never negative, zero only where `zero` allows it, and `most` at most.

        A parameter is judged by its bounds, other expressions of parameters by their nominal value. An expression
        that depends on coordinates is not judged.
        """
        term = self.term(value, what, may_contain, unit)
        parameters = {parameter.symbol: parameter for parameter in self.declared.parameters}
        nominal = self.nominal(term)
        if not nominal.is_number:
            return term
        uncertain = term in parameters and not parameters[term].fixed
        least = parameters[term].bounds[0] if uncertain else float(nominal)
        if least < 0 or (least == 0 and not zero):
            found = f"may be {least:g} by the bounds of `{term}`" if uncertain else f"is {least:g}"
            wanted = "never negative" if zero else "always above zero"
            raise ModelError(f"the {what} {found}; it is {wanted}.", self.place)
        if float(nominal) > most:
            raise ModelError(f"the {what} is {float(nominal):g}; it is {most:g} at most.", self.place)
        return term

    def nominal(self, term: Expr) -> Expr:
        """The term with the nominal value of every parameter."""
        return term.xreplace({parameter.symbol: Float(parameter.value) for parameter in self.declared.parameters})

    def never_negative(self, value: object, what: str, may_contain: str, unit: Unit) -> Expr:
        """A smooth expression that is never negative, such as a mass; judged as `coefficient` judges."""
        check_smooth(expression(value, what, self.place), what, self.place)
        return self.coefficient(value, what, may_contain, unit)

    def along(self, displacement: object) -> tuple[Expr, Dimension | None]:
        """An expression that contains a coordinate, for a force to act along; and its dimension where it is known."""
        along = self.smooth(displacement, "displacement", "q")
        if not along.free_symbols & {joint.symbol for joint in self.declared.joints}:
            raise ModelError(
                f"a force is applied along {along}, which contains no coordinate. "
                "Write the coordinate first: robot.apply(coordinate, force), robot.spring(coordinate, stiffness).",
                self.place,
            )
        return along, self.dimensions("displacement").span(along)

    def velocity(self, displacement: Expr) -> Expr:
        """The time derivative of an expression of the coordinates."""
        joints = self.declared.joints
        return sum((displacement.diff(joint.symbol) * joint.symbol.rate for joint in joints), S.Zero)

    def dimensions(self, what: str, bare: bool = False) -> Dimensions:
        """Dimensions of expressions from the units of all symbols; `bare` as in `Dimensions`."""
        declared = self.declared
        stated: list[StatedParameter | StatedInput] = [*declared.parameters, *declared.inputs]
        units = {each.symbol: each.unit for each in (*stated, *declared.speeds)}
        for joint in declared.joints:
            units[joint.symbol], units[joint.symbol.rate] = UNITS[joint.kind], RATE_UNITS[joint.kind]
        return Dimensions(units, frozenset(each.symbol for each in stated), what, self.place, bare)
