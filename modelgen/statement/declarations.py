"""Declarations of a robot: its joints, parameters, inputs, speeds, loads and task, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import pi
from typing import Any, TypeVar

from sympy import ImmutableMatrix, Symbol

from modelgen.errors import ModelError, calling_place, mistake
from modelgen.metadata import RATE, TIME
from modelgen.statement.checker import (
    flag,
    identifier,
    limit_of,
    middle_and_half,
    number,
    parameter_range,
    shown,
    text,
    three,
)
from modelgen.statement.declared import DeclaredInput, DeclaredParameter, DeclaredTask, Flow, Internal, Rolling
from modelgen.statement.joints import LARGEST, LARGEST_RATE, RATE_UNITS, Ball, Coordinate, Floating, Joint, Kind, Speed
from modelgen.units import parse

B = TypeVar("B", bound=Ball)
WEAKEST, STRONGEST = 1e-15, 1e15  # limits of inputs


class Declarations:
    """The symbols of one robot, and the methods of `Robot` that declare them.

    Every method raises ModelError for a value or a name that is not allowed.
    """

    def __init__(self, name: str, description: str = "") -> None:
        self.place = calling_place()
        self.name = identifier(name, "robot")
        self.description = text(description, "description")
        self.joints: list[Joint] = []  # of the coordinates in the state
        self.dependent: list[Joint] = []  # of the coordinates that closed loops determine
        self.ignored: list[Joint] = []  # of the coordinates on which nothing depends; only their rates are in the state
        self.rolls: dict[Coordinate, Rolling] = {}  # coordinates whose rates follow from other speeds
        self.parameters: list[DeclaredParameter] = []
        self.inputs: list[DeclaredInput] = []
        self.speeds: list[Speed] = []
        self.internal: list[Internal] = []
        self.flows: list[Flow] = []
        self.lagged: dict[Symbol, Symbol] = {}  # input -> the state with which its forces act
        self.balls: list[Ball] = []
        self.symbols: dict[str, Symbol] = {}  # all symbols that an expression may contain, by name
        self.stated_task: DeclaredTask | None = None  # declared last, because it needs all states and inputs

    @property
    def declared_task(self) -> DeclaredTask:
        """The task. Raises ModelError if the model file has none."""
        if self.stated_task is None:
            raise ModelError(
                f"robot `{self.name}` has no task. End the file with robot.task(state_cost=..., "
                "action_cost=LogCos(...), start=dict(...), horizon=..., weight_at_horizon=..., "
                "control_rate=...).",
                self.place,
            )
        return self.stated_task

    def _check_complete(self) -> None:
        """Raise ModelError for a second task, and for a task without a coordinate before it."""
        if self.stated_task:
            raise mistake(f"robot.task(...) is called twice, first at {self.stated_task.place}; keep one of the two.")
        if not self.joints:
            raise mistake(
                f"robot `{self.name}` has no coordinate before robot.task(...); declare it with robot.revolute(...), "
                "robot.prismatic(...) or robot.floating(...)."
            )

    def revolute(
        self,
        name: str,
        *,
        rate_limit: float | None = None,
        limit: float | None = None,
        continuous: bool = False,
        meaning: str = "",
    ) -> Coordinate:
        """Declare an angle (rad). A continuous angle turns without end and has the limit pi.

        rate_limit (rad/s) is left out where another speed replaces the rate (robot.mechanics, robot.roll), and of a
        dependent coordinate of robot.loop.
        """
        flag(continuous, f"continuous of `{name}`")
        if continuous == (limit is not None):
            raise mistake(
                f"the angle `{name}` needs either continuous=True (it turns without end) or a limit=... in rad."
            )
        return self._joint(name, "revolute", pi if limit is None else limit, rate_limit, continuous, meaning)

    def prismatic(self, name: str, *, limit: float, rate_limit: float | None = None, meaning: str = "") -> Coordinate:
        """Declare a displacement (m); rate_limit (m/s) as for an angle."""
        return self._joint(name, "prismatic", limit, rate_limit, meaning=meaning)

    def ball(self, name: str, *, rate_limit: object, limit: float | None = None, meaning: str = "") -> Ball:
        """Declare a joint with three rotations, for robot.link: a unit quaternion and an angular velocity.

        rate_limit (rad/s): of the angular velocity, one number or (x, y, z), in the frame that the joint moves.
        limit (rad): the largest angle from the target's rotation; left out: any rotation.
        The result has `rotation` (3 by 3), `rate` (the angular velocity), `turn` (along which torques act) and
        `away(target)`, a turn from a target whose square is a state cost.
        """
        return self._ball(Ball, name, limit, rate_limit, meaning)

    def floating(
        self,
        name: str,
        *,
        limit: object,
        rate_limit: object,
        turn_rate_limit: object,
        turn_limit: float | None = None,
        meaning: str = "",
    ) -> Floating:
        """Declare a joint without restriction, for robot.link: three displacements, and the rotations of robot.ball.

        limit (m) and rate_limit (m/s): of the displacements, along the axes of the frame before the joint.
        turn_limit, turn_rate_limit: limit and rate_limit of robot.ball. Each is one number or (x, y, z).
        The result has `position` and `velocity` besides what robot.ball gives.
        """
        limits = three(limit, f"limit of `{name}`", LARGEST_RATE)
        rates = three(rate_limit, f"rate_limit of `{name}`", LARGEST_RATE)
        position = [
            self._joint(f"{name}_{axis}", "prismatic", reach, rate)
            for axis, reach, rate in zip("xyz", limits, rates, strict=True)
        ]
        return self._ball(Floating, name, turn_limit, turn_rate_limit, meaning, position=ImmutableMatrix(position))

    def _ball(self, kind: type[B], name: str, limit: float | None, rate_limit: object, meaning: str, **more: Any) -> B:
        """A ball joint, whose quaternion, turns and rates are entered. more: fields of `kind`."""
        identifier(name, "joint")
        text(meaning, f"meaning of `{name}`")
        self._enter(name, "joint", Symbol(name))
        quaternion = tuple(self._joint(f"{name}_q{axis}", "quaternion", 1.0, None) for axis in "wxyz")
        rates, turns = three(rate_limit, f"rate_limit of `{name}`", LARGEST_RATE), []
        for axis in "xyz":
            turns.append(Coordinate(f"{name}_turn_{axis}", real=True))
            self._enter(turns[-1].name, "turn", turns[-1])
            self._enter(turns[-1].rate.name, "rate", turns[-1].rate)
        reach = pi if limit is None else limit_of(limit, f"limit of `{name}`", pi)
        made = kind(name, quaternion, tuple(turns), reach, rates, meaning, **more)
        self.balls.append(made)
        return made

    def _joint(
        self, name: str, kind: Kind, limit: float, rate_limit: float | None, continuous: bool = False, meaning: str = ""
    ) -> Coordinate:
        coordinate = Coordinate(identifier(name, "coordinate"), real=True)
        text(meaning, f"meaning of `{name}`")
        self._enter(name, "coordinate", coordinate)
        self._enter(f"{name}{RATE}", "rate", coordinate.rate)
        reach = limit_of(limit, f"limit of `{name}`", LARGEST[kind])
        fastest = None if rate_limit is None else limit_of(rate_limit, f"rate_limit of `{name}`", LARGEST_RATE)
        self.joints.append(Joint(coordinate, kind, reach, fastest, continuous, meaning))
        return coordinate

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
        """Declare a physical parameter with its nominal value, and the range of its true value unless it is fixed.

        bounds: (lower, upper). Or tolerance: 0.5 for half to one and a half times the value; below 1. The symbol is
        positive if its bounds are, which lets SymPy simplify more.
        """
        self._describe(name, "parameter", unit, meaning)
        flag(fixed, f"fixed of `{name}`")
        nominal = number(value, f"value of `{name}`")
        lower, upper = parameter_range(name, nominal, bounds, tolerance, fixed)
        symbol = Symbol(name, positive=True) if lower > 0 else Symbol(name, real=True)
        self._enter(name, "parameter", symbol)
        self.parameters.append(DeclaredParameter(symbol, nominal, unit, (lower, upper), fixed, meaning))
        return symbol

    def reference(self, name: str, *, limit: float, unit: str, meaning: str = "") -> Symbol:
        """Declare a set-point from -limit to limit: the policy is told its value whenever it is asked.

        It is used in robot.task: in state_cost, in target, and in mean starts. Targets and starts are affine in it. It
        is a parameter whose nominal value is zero.
        """
        symbol = self._bounded(name, "reference", unit, meaning)
        reach = limit_of(limit, f"limit of `{name}`", STRONGEST)
        self.parameters.append(DeclaredParameter(symbol, 0.0, unit, (-reach, reach), False, meaning, reference=True))
        return symbol

    @property
    def references(self) -> list[DeclaredParameter]:
        """The set-points among the parameters."""
        return [parameter for parameter in self.parameters if parameter.reference]

    def input(self, name: str, limit: float | tuple[float, float], unit: str, *, meaning: str = "") -> Symbol:
        """Declare an input u with |u| <= limit, or with lower <= u <= upper where limit is (lower, upper)."""
        symbol = self._bounded(name, "input", unit, meaning)
        middle, reach = middle_and_half(limit, name)
        if not WEAKEST <= reach <= STRONGEST:
            raise mistake(
                f"the limit of `{name}` is {reach:g} {unit}; write {WEAKEST:g} to {STRONGEST:g}: kernels compute with "
                "its square, also in single precision."
            )
        self.inputs.append(DeclaredInput(symbol, unit, reach, meaning, middle=middle))
        return symbol

    def speed(self, name: str, *, limit: float, unit: str, meaning: str = "") -> Symbol:
        """Declare a speed other than the rate of a coordinate, for robot.roll or robot.mechanics."""
        if str(name).endswith(RATE):
            raise mistake(f"the speed `{name}` ends as the rate of a coordinate does; write it without {RATE}.")
        symbol = self._bounded(name, "speed", unit, meaning)
        reach = limit_of(limit, f"limit of `{name}`", LARGEST_RATE)
        self.speeds.append(Speed(symbol, unit, reach, meaning))
        return symbol

    def state(self, name: str, *, limit: float, unit: str, meaning: str = "") -> Symbol:
        """Declare a state of first order, such as a current, with |state| <= limit. robot.flow gives its rate."""
        symbol = self._bounded(name, "state", unit, meaning)
        self.internal.append(Internal(symbol, unit, limit_of(limit, f"limit of `{name}`", STRONGEST), meaning))
        return symbol

    def _velocities(self, own: Mapping[Coordinate, Speed | None]) -> tuple[Speed, ...]:
        """v: the rate of every coordinate or the speed of `own` that replaces it; three for a quaternion.

        None in `own`: the rate follows from the other speeds, as those of `rolls` do.
        """
        if self.kinematic:
            return ()
        result: list[Speed] = []
        turning = {ball.quaternion[0]: ball.speeds for ball in self.balls}
        for joint in self.independent:
            if joint.kind == "quaternion":
                result += turning.get(joint.symbol, ())
                continue
            if joint.symbol in self.rolls:
                continue
            name, limit = joint.symbol.name, joint.rate_limit
            if joint.symbol not in own and limit is None:
                raise ModelError(
                    f"the coordinate `{name}` needs rate_limit=..., in {RATE_UNITS[joint.kind]}.", joint.place
                )
            rate = Speed(joint.symbol.rate, RATE_UNITS[joint.kind], limit or 0.0, f"rate of {name}", joint.place)
            replaced = own.get(joint.symbol, rate)
            result += [replaced] if replaced else []
        rolling = set().union(*(roll.rate.free_symbols for roll in self.rolls.values()))
        for speed in self.speeds:
            if speed.symbol in rolling:
                result.append(speed)
            elif speed not in result:
                raise ModelError(
                    f"the speed `{speed.symbol}` is not a speed of the system. Write robot.mechanics(system, ..., "
                    f"speeds={{u: {speed.symbol}}}) or robot.roll({{x: {speed.symbol}}}), or remove the line; a "
                    "coordinate's rate needs no declaration.",
                    speed.place,
                )
        return tuple(result)

    @property
    def kinematic(self) -> bool:
        """Whether robot.flow gives the rates of coordinates, so that the state is (q, z) and nothing has mass."""
        moved = {flow.state for flow in self.flows}
        return any(joint.symbol in moved for joint in self.joints)

    @property
    def turns(self) -> list[Coordinate]:
        """The small turns of all ball joints, along which torques act."""
        return [turn for ball in self.balls for turn in ball.turn]

    @property
    def independent(self) -> list[Joint]:
        """The joints of the state, then the ignored ones."""
        return [*self.joints, *self.ignored]

    @property
    def coordinates(self) -> list[Joint]:
        """The independent joints, then the dependent ones."""
        return [*self.independent, *self.dependent]

    def ignore(self, coordinate: object) -> None:
        """Leave a coordinate on which nothing depends out of the state, such as the angle of a free wheel.

        Its rate stays, as an entry of the state or, in `robot.roll`, as an expression in other speeds. Neither forces,
        inertias and costs nor points may depend on it; drawings show it at zero.
        """
        joint = next((joint for joint in self.joints if joint.symbol == coordinate), None)
        if joint is None or joint.kind == "quaternion":
            raise mistake(
                f"robot.ignore is called for {shown(coordinate)}. Write the return value of robot.revolute(...) or "
                "robot.prismatic(...), of a coordinate that no robot.loop determines."
            )
        if self.stated_task:
            raise mistake(f"`{coordinate}` is ignored after robot.task(...); move the task to the end of the file.")
        if len(self.joints) == 1:
            raise mistake(f"`{coordinate}` is the only coordinate of the state; keep it.")
        self.joints.remove(joint)
        self.ignored.append(replace(joint, place=calling_place()))

    def _bounded(self, name: str, what: str, unit: str, meaning: str) -> Symbol:
        self._describe(name, what, unit, meaning)
        symbol = Symbol(name, real=True)
        self._enter(name, what, symbol)
        return symbol

    def _describe(self, name: str, what: str, unit: str, meaning: str) -> None:
        """Check the name, unit and meaning of a symbol that is not a coordinate."""
        identifier(name, what)
        unit_of = f"unit of `{name}`"
        parse(text(unit, unit_of), unit_of)
        text(meaning, f"meaning of `{name}`")

    def _enter(self, name: str, what: str, symbol: Symbol) -> None:
        """Enter a symbol under its name. Raises ModelError if the name is taken or the task is already declared."""
        if self.stated_task:
            raise mistake(
                f"the {what} `{name}` is declared after robot.task(...); move the task to the end of the file."
            )
        if name == TIME:
            raise mistake(
                f"the {what} cannot be named `{TIME}`, which is the first column of a recording; give it another name."
            )
        if name in self.symbols:
            raise mistake(
                f"the name `{name}` is used twice in robot `{self.name}`; give the second, a {what}, another name."
            )
        self.symbols[name] = symbol
