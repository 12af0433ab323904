"""The declarations of a robot: coordinates, parameters, inputs and speeds by name; the task ends them."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

from sympy import Symbol

from modelgen.errors import ModelError, Place
from modelgen.metadata import RATE, TIME
from modelgen.statement.checker import flag, identifier, number, parameter_range, positive, text
from modelgen.statement.declared import (
    LARGEST,
    LARGEST_RATE,
    RATE_UNITS,
    Coordinate,
    Joint,
    Kind,
    Speed,
    StatedInput,
    StatedParameter,
    StatedTask,
)
from modelgen.statement.units import parse

WEAKEST, STRONGEST = 1e-15, 1e15  # limits of inputs


class Declarations:
    """The declarations of one robot. Every method raises ModelError for a value or name that is not allowed."""

    def __init__(self, robot: str, place: Place) -> None:
        self.robot = robot
        self.place = place
        self.joints: list[Joint] = []
        self.parameters: list[StatedParameter] = []
        self.inputs: list[StatedInput] = []
        self.speeds: list[Speed] = []
        self.symbols: dict[str, Symbol] = {}  # all that may stand in an expression, by name
        self.task: StatedTask | None = None  # the last line of a file: it names the states and counts the inputs

    @property
    def stated_task(self) -> StatedTask:
        """The task. Raises ModelError when there is none."""
        if self.task is None:
            raise ModelError(
                f"robot `{self.robot}` has no task. End the file with robot.task(state_cost=..., "
                "action_cost=LogCos(...), start=dict(...), horizon=..., weight_at_horizon=..., "
                "control_rate=...).",
                self.place,
            )
        return self.task

    def check_complete(self, place: Place) -> None:
        """Raise ModelError for a second task, and for a task without a coordinate or an input before it."""
        if self.task:
            raise ModelError(f"the task is stated twice, first at {self.task.place}; keep one robot.task(...).", place)
        if not self.joints or not self.inputs:
            missing = "coordinate; declare it with robot.revolute(...) or robot.prismatic(...)"
            missing = missing if not self.joints else "input; declare it with robot.input(name, limit, unit)"
            raise ModelError(f"robot `{self.robot}` has no {missing} before robot.task(...).", place)

    def revolute(
        self, name: str, limit: float | None, rate_limit: float | None, continuous: bool, meaning: str, place: Place
    ) -> Coordinate:
        """Declare an angle and its rate; a continuous one has the limit pi."""
        flag(continuous, f"continuous of `{name}`", place)
        if continuous == (limit is not None):
            raise ModelError(
                f"the angle `{name}` needs either continuous=True (it turns without end) or a limit=... in rad.",
                place,
            )
        return self._joint(name, "revolute", pi if limit is None else limit, rate_limit, continuous, meaning, place)

    def prismatic(self, name: str, limit: float, rate_limit: float | None, meaning: str, place: Place) -> Coordinate:
        """Declare a displacement and its rate."""
        return self._joint(name, "prismatic", limit, rate_limit, False, meaning, place)

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
        coordinate = Coordinate(identifier(name, "coordinate", place), real=True)
        text(meaning, f"meaning of `{name}`", place)
        self._enter(name, "coordinate", coordinate, place)
        self._enter(f"{name}{RATE}", "rate", coordinate.rate, place)
        reach = _limit(limit, f"limit of `{name}`", LARGEST[kind], place)
        fastest = None if rate_limit is None else _limit(rate_limit, f"rate_limit of `{name}`", LARGEST_RATE, place)
        self.joints.append(Joint(coordinate, kind, reach, fastest, continuous, meaning, place))
        return coordinate

    def parameter(
        self,
        name: str,
        value: float,
        unit: str,
        bounds: object,
        tolerance: object,
        fixed: bool,
        meaning: str,
        place: Place,
    ) -> Symbol:
        """Declare a parameter; its symbol is positive where its bounds are, which lets SymPy simplify more."""
        self._describe(name, "parameter", unit, meaning, place)
        flag(fixed, f"fixed of `{name}`", place)
        nominal = number(value, f"value of `{name}`", place)
        lower, upper = parameter_range(name, nominal, bounds, tolerance, fixed, place)
        symbol = Symbol(name, positive=True) if lower > 0 else Symbol(name, real=True)
        self._enter(name, "parameter", symbol, place)
        self.parameters.append(StatedParameter(symbol, nominal, unit, (lower, upper), fixed, meaning, place))
        return symbol

    def input(self, name: str, limit: float, unit: str, meaning: str, place: Place) -> Symbol:
        """Declare an input."""
        symbol = self._bounded(name, "input", unit, meaning, place)
        reach = positive(limit, f"limit of `{name}`", place)
        if not WEAKEST <= reach <= STRONGEST:
            raise ModelError(
                f"the limit of `{name}` is {reach:g} {unit}; write {WEAKEST:g} to {STRONGEST:g}: kernels compute with "
                "its square, in single precision too.",
                place,
            )
        self.inputs.append(StatedInput(symbol, unit, reach, meaning, place))
        return symbol

    def speed(self, name: str, limit: float, unit: str, meaning: str, place: Place) -> Symbol:
        """Declare a speed that is not the rate of a coordinate."""
        symbol = self._bounded(name, "speed", unit, meaning, place)
        reach = _limit(limit, f"limit of `{name}`", LARGEST_RATE, place)
        self.speeds.append(Speed(symbol, unit, reach, meaning, place))
        return symbol

    def velocities(self, own: Mapping[Coordinate, Speed]) -> tuple[Speed, ...]:
        """v, one entry for each coordinate: its rate, or the speed that takes its place in `own`."""
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

    def _bounded(self, name: str, what: str, unit: str, meaning: str, place: Place) -> Symbol:
        self._describe(name, what, unit, meaning, place)
        symbol = Symbol(name, real=True)
        self._enter(name, what, symbol, place)
        return symbol

    def _describe(self, name: str, what: str, unit: str, meaning: str, place: Place) -> None:
        """Check what every symbol but a coordinate is declared with."""
        identifier(name, what, place)
        unit_of = f"unit of `{name}`"
        parse(text(unit, unit_of, place), unit_of, place)
        text(meaning, f"meaning of `{name}`", place)

    def _enter(self, name: str, what: str, symbol: Symbol, place: Place) -> None:
        """Enter a symbol under a name of its own."""
        if self.task:
            raise ModelError(
                f"the {what} `{name}` is declared after robot.task(...); move the task to the end of the file.",
                place,
            )
        if name == TIME:
            raise ModelError(
                f"the {what} cannot be named `{TIME}`, which is the first column of a recording; give it another name.",
                place,
            )
        if name in self.symbols:
            raise ModelError(
                f"the name `{name}` is used twice in robot `{self.robot}`; give the second, a {what}, another name.",
                place,
            )
        self.symbols[name] = symbol


def _limit(value: object, what: str, largest: float, place: Place) -> float:
    """A limit of the state domain."""
    limit = positive(value, what, place)
    if limit > largest:
        raise ModelError(
            f"the {what} is {limit:g}; write {largest:g} at most, in SI units (180 degrees are pi): what the robot "
            "can reach, because the solver learns on all of it.",
            place,
        )
    return limit
