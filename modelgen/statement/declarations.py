"""Declarations of a robot: its joints, parameters, inputs, speeds, loads and task, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Literal

from sympy import Expr, Symbol

from modelgen.errors import ModelError, Place
from modelgen.metadata import RATE, TIME, Task
from modelgen.statement.action_costs import InputCost
from modelgen.statement.checker import flag, identifier, number, parameter_range, positive, shown, text
from modelgen.statement.units import parse

Kind = Literal["revolute", "prismatic"]

UNITS = {"revolute": "rad", "prismatic": "m"}
#: Largest limits of coordinates and rates. No robot moves farther, and the solver samples the whole domain.
LARGEST, LARGEST_RATE = {"revolute": 100.0, "prismatic": 1e6}, 1e6
RATE_UNITS = {"revolute": "rad/s", "prismatic": "m/s"}


class Coordinate(Symbol):  # type: ignore[misc]
    """A generalized coordinate: a SymPy symbol with the symbol of its rate."""

    @property
    def rate(self) -> Symbol:
        """The symbol of the coordinate's rate, named NAME_rate."""
        return Symbol(f"{self.name}{RATE}", real=True)


@dataclass(frozen=True)
class Joint:
    """A declared coordinate."""

    symbol: Coordinate
    kind: Kind
    limit: float
    rate_limit: float | None  # None: its rate is not an entry of the state
    continuous: bool
    meaning: str
    place: Place


@dataclass(frozen=True)
class Speed:
    """An entry of v: the rate of a coordinate, or a speed declared for a system of sympy.physics.mechanics."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place


@dataclass(frozen=True)
class Internal:
    """An entry of z: a state of first order, such as a current, whose rate of change is its flow."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place


@dataclass(frozen=True)
class Flow:
    """The rate of change of an internal state, affine in the inputs."""

    state: Symbol
    rate: Expr
    place: Place


@dataclass(frozen=True)
class DeclaredParameter:
    """A declared parameter. A fixed one becomes a number in the equations and is not an entry of theta."""

    symbol: Symbol
    value: float
    unit: str
    bounds: tuple[float, float]
    fixed: bool
    meaning: str
    place: Place


@dataclass(frozen=True)
class DeclaredInput:
    """A declared input, an entry of u."""

    symbol: Symbol
    unit: str
    limit: float  # half of the range
    meaning: str
    place: Place
    middle: float = 0.0  # of the range

    @property
    def range(self) -> tuple[float, float]:
        """Lower and upper limit."""
        return self.middle - self.limit, self.middle + self.limit


@dataclass(frozen=True)
class Load:
    """A generalized force, which does the work `force * d(displacement)`."""

    displacement: Expr
    force: Expr
    place: Place


@dataclass(frozen=True)
class Energy:
    """A term of the kinetic or potential energy (J)."""

    value: Expr
    place: Place
    elastic: bool = False  # the energy of a spring; False: an inertia or a weight


@dataclass(frozen=True)
class DeclaredTask:
    """The default task: the symbolic state cost and action cost, and the numbers."""

    state_cost: Expr
    input_costs: tuple[InputCost, ...]  # the action cost, per input
    numbers: Task
    place: Place
    unstated: frozenset[str] = frozenset()  # internal states without an entry in target; they rest where the trim holds
    unstarted: frozenset[str] = frozenset()  # internal states without an entry in start; they start at their target


WEAKEST, STRONGEST = 1e-15, 1e15  # limits of inputs


class Declarations:
    """The declarations of one robot. Every method raises ModelError for a value or a name that is not allowed."""

    def __init__(self, robot: str, place: Place) -> None:
        self.robot = robot
        self.place = place
        self.joints: list[Joint] = []
        self.parameters: list[DeclaredParameter] = []
        self.inputs: list[DeclaredInput] = []
        self.speeds: list[Speed] = []
        self.internal: list[Internal] = []
        self.flows: list[Flow] = []
        self.lagged: dict[Symbol, Symbol] = {}  # input -> the state with which its forces act
        self.symbols: dict[str, Symbol] = {}  # all symbols that an expression may contain, by name
        self.task: DeclaredTask | None = None  # declared last, because it needs all states and inputs

    @property
    def declared_task(self) -> DeclaredTask:
        """The task. Raises ModelError if the model file has none."""
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
            raise ModelError(
                f"robot.task(...) is called twice, first at {self.task.place}; keep one of the two.", place
            )
        if not self.joints or not self.inputs:
            missing = "coordinate; declare it with robot.revolute(...) or robot.prismatic(...)"
            missing = missing if not self.joints else "input; declare it with robot.input(name, limit, unit)"
            raise ModelError(f"robot `{self.robot}` has no {missing} before robot.task(...).", place)

    def revolute(
        self, name: str, limit: float | None, rate_limit: float | None, continuous: bool, meaning: str, place: Place
    ) -> Coordinate:
        """Declare an angle and its rate. A continuous angle has the limit pi."""
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
        """Declare a parameter. Its symbol is positive if its bounds are, which lets SymPy simplify more."""
        self._describe(name, "parameter", unit, meaning, place)
        flag(fixed, f"fixed of `{name}`", place)
        nominal = number(value, f"value of `{name}`", place)
        lower, upper = parameter_range(name, nominal, bounds, tolerance, fixed, place)
        symbol = Symbol(name, positive=True) if lower > 0 else Symbol(name, real=True)
        self._enter(name, "parameter", symbol, place)
        self.parameters.append(DeclaredParameter(symbol, nominal, unit, (lower, upper), fixed, meaning, place))
        return symbol

    def input(self, name: str, limit: object, unit: str, meaning: str, place: Place) -> Symbol:
        """Declare an input. limit: one number for -limit to limit, or (lower, upper)."""
        symbol = self._bounded(name, "input", unit, meaning, place)
        middle, reach = _middle_and_half(limit, name, place)
        if not WEAKEST <= reach <= STRONGEST:
            raise ModelError(
                f"the limit of `{name}` is {reach:g} {unit}; write {WEAKEST:g} to {STRONGEST:g}: kernels compute with "
                "its square, also in single precision.",
                place,
            )
        self.inputs.append(DeclaredInput(symbol, unit, reach, meaning, place, middle))
        return symbol

    def speed(self, name: str, limit: float, unit: str, meaning: str, place: Place) -> Symbol:
        """Declare a speed that is not the rate of a coordinate."""
        symbol = self._bounded(name, "speed", unit, meaning, place)
        reach = _limit(limit, f"limit of `{name}`", LARGEST_RATE, place)
        self.speeds.append(Speed(symbol, unit, reach, meaning, place))
        return symbol

    def state(self, name: str, limit: float, unit: str, meaning: str, place: Place) -> Symbol:
        """Declare a state of first order."""
        symbol = self._bounded(name, "state", unit, meaning, place)
        self.internal.append(Internal(symbol, unit, _limit(limit, f"limit of `{name}`", STRONGEST, place), meaning, place))
        return symbol

    def internal_state(self, symbol: object, place: Place) -> Internal:
        """The declared state of a symbol. Raises ModelError for anything else."""
        known = {each.symbol: each for each in self.internal}
        if isinstance(symbol, Symbol) and symbol in known:
            return known[symbol]
        names = ", ".join(f"`{each}`" for each in known) or "none"
        raise ModelError(
            f"robot.flow is called for {shown(symbol)}, which is not a state of first order of this robot; it has "
            f'{names}. Write current = robot.state("current", limit=..., unit="A") first. A coordinate moves by forces: '
            "robot.apply(coordinate, force).",
            place,
        )

    def velocities(self, own: Mapping[Coordinate, Speed]) -> tuple[Speed, ...]:
        """v, one entry per coordinate: its rate, or the speed of `own` that replaces it."""
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
                    f"the speed `{speed.symbol}` is not a speed of the system. Write robot.mechanics(system, ..., "
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
        """Check the name, unit and meaning of a symbol that is not a coordinate."""
        identifier(name, what, place)
        unit_of = f"unit of `{name}`"
        parse(text(unit, unit_of, place), unit_of, place)
        text(meaning, f"meaning of `{name}`", place)

    def _enter(self, name: str, what: str, symbol: Symbol, place: Place) -> None:
        """Enter a symbol under its name. Raises ModelError if the name is taken or the task is already declared."""
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


def _middle_and_half(limit: object, name: str, place: Place) -> tuple[float, float]:
    """The middle and half of the range of an input. Raises ModelError for limits that are not a range."""
    if not isinstance(limit, tuple | list):
        return 0.0, positive(limit, f"limit of `{name}`", place)
    if len(limit) != 2:
        raise ModelError(f"the limits of `{name}` are {limit!r}; write (lower, upper), or one number.", place)
    lower, upper = (number(value, f"limit of `{name}`", place) for value in limit)
    if lower >= upper:
        raise ModelError(f"the limits of `{name}` are {lower:g} and {upper:g}; write the lower one first.", place)
    return (lower + upper) / 2, (upper - lower) / 2


def _limit(value: object, what: str, largest: float, place: Place) -> float:
    """A limit of the state domain. Raises ModelError if it is above `largest`."""
    limit = positive(value, what, place)
    if limit > largest:
        raise ModelError(
            f"the {what} is {limit:g}; write {largest:g} at most, in SI units (180 degrees are pi). The solver learns "
            "on the whole domain, so the limit should be what the robot can reach.",
            place,
        )
    return limit
