"""What every model file states first: coordinates, parameters and inputs, and the check of each expression."""

from __future__ import annotations

from math import inf, pi
from typing import TYPE_CHECKING, NoReturn

from sympy import Expr, Float, S, Symbol

from modelgen.errors import ModelError, Place, calling_place, suggestion
from modelgen.metadata import RATE
from modelgen.statement.checker import (
    check_finite,
    check_smooth,
    check_symbols,
    expression,
    flag,
    identifier,
    number,
    parameter_range,
    positive,
    text,
)
from modelgen.statement.declared import Constant, Coordinate, Drive, Energy, Joint, Load, Speed, StatedTask
from modelgen.statement.dimensions import Dimensions
from modelgen.statement.figure import Line
from modelgen.statement.links import Kind, Link
from modelgen.statement.units import Dimension, dimension, parse

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem

UNITS = {"revolute": "rad", "prismatic": "m"}
#: Of a state's limit, beyond what a robot does, and of what an angle that does not wrap turns to.
LARGEST, LARGEST_ANGLE = 1e6, 100.0
RATE_UNITS = {"revolute": "rad/s", "prismatic": "m/s"}


class Statement:
    """The declarations of a robot, recorded and checked; `Actuators` and `Robot` add what uses them."""

    __slots__ = (
        "constants",
        "description",
        "downward_acceleration",
        "drives",
        "gravity_place",
        "joints",
        "kinetic",
        "lines",
        "links",
        "loads",
        "masses",
        "name",
        "place",
        "potential",
        "rods",
        "speeds",
        "stated_task",
        "symbols",
        "system",
    )

    def __init__(self, name: str, description: str = "") -> None:
        self.place = calling_place()
        self.name = identifier(name, "robot", self.place)
        self.description = text(description, "description", self.place)
        self.joints: list[Joint] = []
        self.constants: list[Constant] = []
        self.drives: list[Drive] = []
        self.links: list[Link] = []
        self.kinetic: list[Energy] = []
        self.potential: list[Energy] = []
        self.loads: list[Load] = []
        self.lines: list[Line] = []  # drawn
        self.rods: list[Line] = []  # of bodies, drawn when nothing else is
        self.masses: list[list[Expr]] = []  # positions of point masses, likewise
        self.symbols: dict[str, Symbol] = {}  # all that may stand in an expression, by name
        self.downward_acceleration: Expr = Float("9.81")
        self.gravity_place: Place | None = None  # None: not stated
        self.speeds: list[Speed] = []
        self.system: MechanicalSystem | None = None
        self.stated_task: StatedTask | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Statement.__slots__:
            raise ModelError(
                f"robot.{name} = ... is not how a model file states things; call robot.{name}(...) instead.",
                calling_place(),
            )
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        known = [method for method in dir(type(self)) if not method.startswith("_")]
        raise AttributeError(f"a Robot has no `{name}`.{suggestion(name, known)}")

    def revolute(
        self,
        name: str,
        *,
        rate_limit: float | None = None,
        limit: float | None = None,
        continuous: bool = False,
        meaning: str = "",
    ) -> Coordinate:
        """Declare an angle (rad). A continuous one turns without end and has the limit pi.

        rate_limit (rad/s) is left out only where robot.mechanics puts another speed in the rate's place.
        """
        place = calling_place()
        flag(continuous, f"continuous of `{name}`", place)
        if continuous == (limit is not None):
            raise ModelError(
                f"the angle `{name}` needs either continuous=True (it turns without end) or a limit=... in rad.",
                place,
            )
        return self._joint(name, "revolute", pi if limit is None else limit, rate_limit, continuous, meaning, place)

    def prismatic(self, name: str, *, limit: float, rate_limit: float | None = None, meaning: str = "") -> Coordinate:
        """Declare a displacement (m); rate_limit (m/s) as for an angle."""
        return self._joint(name, "prismatic", limit, rate_limit, False, meaning, calling_place())

    def parameter(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        bounds: tuple[float, float] | None = None,
        tolerance: float | None = None,
        fixed: bool = False,
        meaning: str = "",
    ) -> Symbol:
        """Declare a physical parameter: nominal value, and the range of its true value unless it is fixed.

        bounds: (lower, upper); or tolerance: 0.5 for half to one and a half times the value.
        """
        place = calling_place()
        identifier(name, "parameter", place)
        self._unit(unit, name, place)
        text(meaning, f"meaning of `{name}`", place)
        flag(fixed, f"fixed of `{name}`", place)
        nominal = number(value, f"value of `{name}`", place)
        lower, upper = parameter_range(name, nominal, bounds, tolerance, fixed, place)
        symbol = Symbol(name, positive=True) if lower > 0 else Symbol(name, real=True)
        self._declare(name, "parameter", symbol, place)
        self.constants.append(Constant(symbol, nominal, unit, (lower, upper), fixed, meaning, place))
        return symbol

    def input(self, name: str, limit: float, unit: str, *, meaning: str = "") -> Symbol:
        """Declare an input u with |u| <= limit."""
        place = calling_place()
        identifier(name, "input", place)
        self._unit(unit, name, place)
        text(meaning, f"meaning of `{name}`", place)
        symbol = Symbol(name, real=True)
        self._declare(name, "input", symbol, place)
        self.drives.append(Drive(symbol, unit, positive(limit, f"limit of `{name}`", place), meaning, place))
        return symbol

    def speed(self, name: str, *, limit: float, unit: str, meaning: str = "") -> Symbol:
        """Declare a speed that is no coordinate's rate, such as a body's angular velocity; for robot.mechanics."""
        place = calling_place()
        identifier(name, "speed", place)
        self._unit(unit, name, place)
        text(meaning, f"meaning of `{name}`", place)
        symbol = Symbol(name, real=True)
        self._declare(name, "speed", symbol, place)
        self.speeds.append(Speed(symbol, unit, positive(limit, f"limit of `{name}`", place), meaning, place))
        return symbol

    @property
    def velocities(self) -> tuple[Speed, ...]:
        """v, one entry a coordinate: its rate, or the speed that robot.mechanics put in its place."""
        own = self.system.own if self.system else {}
        result = []
        for joint in self.joints:
            name, limit = joint.symbol.name, joint.rate_limit
            if joint.symbol not in own and limit is None:
                raise ModelError(
                    f"the coordinate `{name}` needs rate_limit=..., in {RATE_UNITS[joint.kind]}.", joint.place
                )
            rate = Speed(joint.symbol.rate, RATE_UNITS[joint.kind], limit or 0.0, f"rate of {name}", joint.place)
            result.append(own.get(joint.symbol, rate))
        for speed in self.speeds:
            if speed not in result:
                raise ModelError(
                    f"the speed `{speed.symbol}` is no speed of the robot. Write robot.mechanics(system, ..., "
                    f"speeds={{u: {speed.symbol}}}), or remove the line; a coordinate's rate needs no declaration.",
                    speed.place,
                )
        return tuple(result)

    def _joint(
        self,
        name: str,
        kind: Kind,
        limit: float,
        rate_limit: float | None,
        continuous: bool,
        meaning: str,
        place: Place,
    ) -> Coordinate:
        """Declare a coordinate and its rate."""
        coordinate = Coordinate(identifier(name, "coordinate", place), real=True)
        text(meaning, f"meaning of `{name}`", place)
        self._declare(name, "coordinate", coordinate, place)
        self._declare(f"{name}{RATE}", "rate", coordinate.rate, place)
        self.joints.append(
            Joint(
                coordinate,
                kind,
                self._limit(limit, f"limit of `{name}`", LARGEST_ANGLE if kind == "revolute" else LARGEST, place),
                None if rate_limit is None else self._limit(rate_limit, f"rate_limit of `{name}`", LARGEST, place),
                continuous,
                meaning,
                place,
            )
        )
        return coordinate

    def _limit(self, value: object, what: str, largest: float, place: Place) -> float:
        """A limit of the state domain, which is sampled as a whole."""
        limit = positive(value, what, place)
        if limit > largest:
            raise ModelError(
                f"the {what} is {limit:g}; write {largest:g} at most, in SI units (180 degrees are pi): what the robot "
                "can reach, for the solver learns on all of it.",
                place,
            )
        return limit

    def _declare(self, name: str, what: str, symbol: Symbol, place: Place) -> None:
        """Enter a symbol under a name of its own."""
        if self.stated_task:
            raise ModelError(
                f"the {what} `{name}` is declared after robot.task(...); move the task to the end of the file.",
                place,
            )
        if name in self.symbols:
            raise ModelError(
                f"the name `{name}` is used twice in robot `{self.name}`; give the second, a {what}, another name.",
                place,
            )
        self.symbols[name] = symbol

    def _unit(self, unit: object, name: str, place: Place) -> None:
        what = f"unit of `{name}`"
        parse(text(unit, what, place), what, place)

    def _term(
        self, value: object, what: str, may_contain: str, place: Place, unit: str | Dimension | None = None
    ) -> Expr:
        """A checked expression in the parameters and, as `may_contain` lists, q, v and u, in `unit`."""
        term = expression(value, what, place)
        allowed = {constant.symbol for constant in self.constants}
        if "q" in may_contain:
            allowed |= {joint.symbol for joint in self.joints}
        if "v" in may_contain:
            allowed |= {joint.symbol.rate for joint in self.joints} | {speed.symbol for speed in self.speeds}
        if "u" in may_contain:
            allowed |= {drive.symbol for drive in self.drives}
        why = {
            "": "it may depend on parameters only.",
            "q": "it may depend on coordinates and parameters only. Forces that depend on rates or inputs go "
            "into robot.apply(coordinate, force).",
            "qv": "it may depend on coordinates, rates and parameters, not on an input. Inputs act through "
            "robot.apply(coordinate, force) and are paid for by action_cost.",
        }
        check_symbols(term, what, allowed, self.symbols, why.get(may_contain, ""), place)
        fixed = {constant.symbol: Float(constant.value) for constant in self.constants if constant.fixed}
        check_finite(term.xreplace(fixed), what, place)
        if unit is not None and not term.is_number:
            self._dimensions(what, place).check(term, dimension(unit) if isinstance(unit, str) else unit)
        return term

    def _smooth(
        self, value: object, what: str, may_contain: str, place: Place, unit: str | Dimension | None = None
    ) -> Expr:
        """The same without kinks, for what forces are derivatives of."""
        check_smooth(expression(value, what, place), what, place)
        return self._term(value, what, may_contain, place, unit)

    def _coefficient(
        self,
        value: object,
        what: str,
        may_contain: str,
        place: Place,
        unit: str | Dimension | None,
        *,
        zero: bool = True,
        most: float = inf,
    ) -> Expr:
        """The same, never negative (a parameter within its bounds), nor zero unless that is allowed, nor above `most`.

        What depends on coordinates is not looked at.
        """
        term = self._term(value, what, may_contain, place, unit)
        constants = {constant.symbol: constant for constant in self.constants}
        nominal = term.xreplace({symbol: Float(constant.value) for symbol, constant in constants.items()})
        if not nominal.is_number:
            return term
        loose = term in constants and not constants[term].fixed
        least = constants[term].bounds[0] if loose else float(nominal)
        if least < 0 or (least == 0 and not zero):
            found = f"may be {least:g} by the bounds of `{term}`" if loose else f"is {least:g}"
            raise ModelError(f"the {what} {found}; it is {'never negative' if zero else 'always above zero'}.", place)
        if float(nominal) > most:
            raise ModelError(f"the {what} is {float(nominal):g}; it is {most:g} at most.", place)
        return term

    def _dimensions(self, what: str, place: Place, bare: bool = False) -> Dimensions:
        """What the units of all symbols say about an expression."""
        stated: list[Constant | Drive] = [*self.constants, *self.drives]
        units = {each.symbol: each.unit for each in (*stated, *self.speeds)}
        for joint in self.joints:
            units[joint.symbol], units[joint.symbol.rate] = UNITS[joint.kind], RATE_UNITS[joint.kind]
        return Dimensions(units, frozenset(each.symbol for each in stated), what, place, bare)

    def _velocity(self, displacement: Expr) -> Expr:
        """The time derivative of an expression of the coordinates."""
        return sum((displacement.diff(joint.symbol) * joint.symbol.rate for joint in self.joints), S.Zero)
