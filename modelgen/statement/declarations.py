"""Declarations of a robot: its joints, parameters, inputs, speeds, loads and task, each with its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import cos, pi, sin
from typing import Literal

from sympy import Expr, Float, Matrix, Symbol

from modelgen.errors import ModelError, Place, calling_place, mistake
from modelgen.metadata import RATE, TIME, Task
from modelgen.statement.action_costs import InputCost
from modelgen.statement.checker import flag, identifier, number, parameter_range, positive, shown, text
from modelgen.units import parse

Kind = Literal["revolute", "prismatic", "quaternion"]

UNITS = {"revolute": "rad", "prismatic": "m", "quaternion": "1"}
#: Largest limits of coordinates and rates. No robot moves farther, and the solver samples the whole domain.
LARGEST, LARGEST_RATE = {"revolute": 100.0, "prismatic": 1e6, "quaternion": 1.0}, 1e6
RATE_UNITS = {"revolute": "rad/s", "prismatic": "m/s", "quaternion": "Hz"}


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
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Speed:
    """An entry of v: the rate of a coordinate, or a speed declared for a system of sympy.physics.mechanics."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Internal:
    """An entry of z: a state of first order, such as a current, whose rate of change is its flow."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Flow:
    """The rate of change of an internal state, affine in the inputs."""

    state: Symbol
    rate: Expr
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Ball:
    """A joint with three rotations: a unit quaternion (w, x, y, z), and the angular velocity in the moved frame."""

    name: str
    quaternion: tuple[Coordinate, ...]  # (4,)
    turn: tuple[Coordinate, ...]  # (3,) small turns about the axes of the moved frame; only their rates are states
    limit: float  # rad, from the target; pi: any rotation
    rate_limits: tuple[float, ...]  # (3,) rad/s
    meaning: str
    place: Place = field(default_factory=calling_place)

    @property
    def rate(self) -> tuple[Symbol, ...]:
        """The angular velocity (3,), rad/s, in the moved frame."""
        return tuple(turn.rate for turn in self.turn)

    @property
    def rotation(self) -> Matrix:
        """The rotation matrix (3, 3) from the moved frame to the frame before it."""
        w, x, y, z = self.quaternion
        return Matrix(
            [
                [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)],
            ]
        )

    def away(self, target: Sequence[float] = (0, 0, 0)) -> Matrix:
        """The turn (3, 1) from a target to the joint's rotation, for squares in a state cost.

        target: (roll, pitch, yaw) in rad. Its length is 2 sin(angle / 2), and its sign that of the quaternion.
        """
        w, x, y, z = (Float(entry) for entry in quaternion_of(target, f"target of `{self.name}`"))
        return 2 * Matrix([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]) * Matrix(self.quaternion)

    @property
    def speeds(self) -> tuple[Speed, ...]:
        """The entries of v."""
        return tuple(
            Speed(rate, "rad/s", limit, f"angular velocity of {self.name} about its {axis} axis", self.place)
            for rate, limit, axis in zip(self.rate, self.rate_limits, "xyz", strict=True)
        )

    @property
    def quaternion_rates(self) -> dict[Symbol, Expr]:
        """Rate of each entry of the quaternion: half its product with the angular velocity."""
        return dict(
            zip((entry.rate for entry in self.quaternion), self._kinematics * Matrix(self.rate) / 2, strict=True)
        )

    @property
    def spin(self) -> Matrix:
        """The angular velocity (3, 1) by the rates of the quaternion."""
        return 2 * self._kinematics.T * Matrix([entry.rate for entry in self.quaternion])

    @property
    def _kinematics(self) -> Matrix:
        w, x, y, z = self.quaternion
        return Matrix([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


@dataclass(frozen=True)
class Floating:
    """A joint without restriction: three displacements along the axes of the frame before it, and a rotation."""

    position: tuple[Coordinate, ...]  # (3,)
    ball: Ball

    @property
    def name(self) -> str:
        """The name of the joint."""
        return self.ball.name

    @property
    def quaternion(self) -> tuple[Coordinate, ...]:
        """As of a ball joint."""
        return self.ball.quaternion

    @property
    def turn(self) -> tuple[Coordinate, ...]:
        """As of a ball joint."""
        return self.ball.turn

    @property
    def rate(self) -> tuple[Symbol, ...]:
        """The angular velocity, as of a ball joint."""
        return self.ball.rate

    @property
    def velocity(self) -> tuple[Symbol, ...]:
        """The rates (3,) of the displacements."""
        return tuple(entry.rate for entry in self.position)

    @property
    def rotation(self) -> Matrix:
        """As of a ball joint."""
        return self.ball.rotation

    def away(self, target: Sequence[float] = (0, 0, 0)) -> Matrix:
        """As of a ball joint."""
        return self.ball.away(target)


def quaternion_of(angles: object, what: str) -> tuple[float, ...]:
    """The unit quaternion (4,), w >= 0, of (roll, pitch, yaw): about x, then y, then z, axes of the frame before."""
    if not isinstance(angles, tuple | list) or len(angles) != 3:
        raise mistake(f"the {what} is {angles!r}; write (roll, pitch, yaw) in rad.")
    halves = [number(angle, what) / 2 for angle in angles]
    (cr, cp, cy), (sr, sp, sy) = map(cos, halves), map(sin, halves)
    entries = (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )
    return entries if entries[0] >= 0 else tuple(-entry for entry in entries)


@dataclass(frozen=True)
class Commanded:
    """A coordinate whose acceleration is commanded, affine in the inputs."""

    coordinate: Coordinate
    acceleration: Expr
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Rolling:
    """The rate of a coordinate of a robot that rolls without slip: linear in the speeds of the state."""

    rate: Expr
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class DeclaredParameter:
    """A declared parameter. A fixed one becomes a number in the equations and is not an entry of theta."""

    symbol: Symbol
    value: float
    unit: str
    bounds: tuple[float, float]
    fixed: bool
    meaning: str
    place: Place = field(default_factory=calling_place)
    reference: bool = False  # a set-point: it moves the target, and no force may contain it


@dataclass(frozen=True)
class DeclaredInput:
    """A declared input, an entry of u."""

    symbol: Symbol
    unit: str
    limit: float  # half of the range
    meaning: str
    place: Place = field(default_factory=calling_place)
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
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Energy:
    """A term of the kinetic or potential energy (J)."""

    value: Expr
    place: Place = field(default_factory=calling_place)
    elastic: bool = False  # the energy of a spring; False: an inertia or a weight


@dataclass(frozen=True)
class DeclaredTask:
    """The default task: the symbolic state cost and action cost, and the numbers."""

    state_cost: Expr
    input_costs: tuple[InputCost, ...]  # the action cost, per input
    numbers: Task
    place: Place = field(default_factory=calling_place)
    unstated: frozenset[str] = frozenset()  # internal states without an entry in target; they rest where the trim holds
    unstarted: frozenset[str] = frozenset()  # internal states without an entry in start; they start at their target


WEAKEST, STRONGEST = 1e-15, 1e15  # limits of inputs


class Declarations:
    """The declarations of one robot. Every method raises ModelError for a value or a name that is not allowed."""

    def __init__(self, robot: str, place: Place) -> None:
        self.robot = robot
        self.place = place
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

    def check_complete(self) -> None:
        """Raise ModelError for a second task, and for a task without a coordinate before it."""
        if self.task:
            raise mistake(f"robot.task(...) is called twice, first at {self.task.place}; keep one of the two.")
        if not self.joints:
            raise mistake(
                f"robot `{self.robot}` has no coordinate before robot.task(...); declare it with robot.revolute(...), "
                "robot.prismatic(...) or robot.floating(...)."
            )

    def revolute(
        self, name: str, limit: float | None, rate_limit: float | None, continuous: bool, meaning: str
    ) -> Coordinate:
        """Declare an angle and its rate. A continuous angle has the limit pi."""
        flag(continuous, f"continuous of `{name}`")
        if continuous == (limit is not None):
            raise mistake(
                f"the angle `{name}` needs either continuous=True (it turns without end) or a limit=... in rad."
            )
        return self._joint(name, "revolute", pi if limit is None else limit, rate_limit, continuous, meaning)

    def prismatic(self, name: str, limit: float, rate_limit: float | None, meaning: str) -> Coordinate:
        """Declare a displacement and its rate."""
        return self._joint(name, "prismatic", limit, rate_limit, False, meaning)

    def ball(self, name: str, limit: float | None, rate_limit: object, meaning: str) -> Ball:
        """Declare a rotation without restriction, or within `limit` of the target; and its angular velocity."""
        identifier(name, "joint")
        text(meaning, f"meaning of `{name}`")
        self._enter(name, "joint", Symbol(name))
        quaternion = [self._joint(f"{name}_q{axis}", "quaternion", 1.0, None, False, "") for axis in "wxyz"]
        rates, turns = _three(rate_limit, f"rate_limit of `{name}`"), []
        for axis in "xyz":
            turns.append(Coordinate(f"{name}_turn_{axis}", real=True))
            self._enter(turns[-1].name, "turn", turns[-1])
            self._enter(turns[-1].rate.name, "rate", turns[-1].rate)
        reach = pi if limit is None else _limit(limit, f"limit of `{name}`", pi)
        made = Ball(name, tuple(quaternion), tuple(turns), reach, rates, meaning)
        self.balls.append(made)
        return made

    def floating(
        self,
        name: str,
        limit: object,
        rate_limit: object,
        turn: float | None,
        turn_rate: object,
        meaning: str,
    ) -> Floating:
        """Declare three displacements and a rotation."""
        limits, rates = (
            _three(value, f"{what} of `{name}`") for what, value in (("limit", limit), ("rate_limit", rate_limit))
        )
        position = [
            self._joint(f"{name}_{axis}", "prismatic", reach, rate, False, "")
            for axis, reach, rate in zip("xyz", limits, rates, strict=True)
        ]
        return Floating(tuple(position), self.ball(name, turn, turn_rate, meaning))

    def _joint(
        self,
        name: str,
        kind: Kind,
        limit: float,
        rate_limit: float | None,
        continuous: bool,
        meaning: str,
    ) -> Coordinate:
        coordinate = Coordinate(identifier(name, "coordinate"), real=True)
        text(meaning, f"meaning of `{name}`")
        self._enter(name, "coordinate", coordinate)
        self._enter(f"{name}{RATE}", "rate", coordinate.rate)
        reach = _limit(limit, f"limit of `{name}`", LARGEST[kind])
        fastest = None if rate_limit is None else _limit(rate_limit, f"rate_limit of `{name}`", LARGEST_RATE)
        self.joints.append(Joint(coordinate, kind, reach, fastest, continuous, meaning))
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
    ) -> Symbol:
        """Declare a parameter. Its symbol is positive if its bounds are, which lets SymPy simplify more."""
        self._describe(name, "parameter", unit, meaning)
        flag(fixed, f"fixed of `{name}`")
        nominal = number(value, f"value of `{name}`")
        lower, upper = parameter_range(name, nominal, bounds, tolerance, fixed)
        symbol = Symbol(name, positive=True) if lower > 0 else Symbol(name, real=True)
        self._enter(name, "parameter", symbol)
        self.parameters.append(DeclaredParameter(symbol, nominal, unit, (lower, upper), fixed, meaning))
        return symbol

    def reference(self, name: str, limit: object, unit: str, meaning: str) -> Symbol:
        """Declare a set-point from -limit to limit, a parameter whose nominal value is zero."""
        symbol = self._bounded(name, "reference", unit, meaning)
        reach = _limit(limit, f"limit of `{name}`", STRONGEST)
        self.parameters.append(DeclaredParameter(symbol, 0.0, unit, (-reach, reach), False, meaning, reference=True))
        return symbol

    @property
    def references(self) -> list[DeclaredParameter]:
        """The set-points among the parameters."""
        return [parameter for parameter in self.parameters if parameter.reference]

    def input(self, name: str, limit: object, unit: str, meaning: str) -> Symbol:
        """Declare an input. limit: one number for -limit to limit, or (lower, upper)."""
        symbol = self._bounded(name, "input", unit, meaning)
        middle, reach = _middle_and_half(limit, name)
        if not WEAKEST <= reach <= STRONGEST:
            raise mistake(
                f"the limit of `{name}` is {reach:g} {unit}; write {WEAKEST:g} to {STRONGEST:g}: kernels compute with "
                "its square, also in single precision."
            )
        self.inputs.append(DeclaredInput(symbol, unit, reach, meaning, middle=middle))
        return symbol

    def speed(self, name: str, limit: float, unit: str, meaning: str) -> Symbol:
        """Declare a speed that is not the rate of a coordinate."""
        symbol = self._bounded(name, "speed", unit, meaning)
        reach = _limit(limit, f"limit of `{name}`", LARGEST_RATE)
        self.speeds.append(Speed(symbol, unit, reach, meaning))
        return symbol

    def state(self, name: str, limit: float, unit: str, meaning: str) -> Symbol:
        """Declare a state of first order."""
        symbol = self._bounded(name, "state", unit, meaning)
        self.internal.append(Internal(symbol, unit, _limit(limit, f"limit of `{name}`", STRONGEST), meaning))
        return symbol

    def internal_state(self, symbol: object) -> Internal:
        """The declared state of a symbol. Raises ModelError for anything else."""
        known = {each.symbol: each for each in self.internal}
        if isinstance(symbol, Symbol) and symbol in known:
            return known[symbol]
        names = ", ".join(f"`{each}`" for each in known) or "none"
        raise mistake(
            f"robot.flow is called for {shown(symbol)}, which is not a state of first order of this robot; it has "
            f'{names}. Write current = robot.state("current", limit=..., unit="A") first. A coordinate moves by '
            "forces: robot.apply(coordinate, force)."
        )

    def velocities(self, own: Mapping[Coordinate, Speed | None]) -> tuple[Speed, ...]:
        """v: the rate of every coordinate or the speed of `own` that replaces it; three for a quaternion.

        None in `own`: the rate follows from the other speeds, as those of `rolls` do.
        """
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
    def independent(self) -> list[Joint]:
        """The joints of the state, then the ignored ones."""
        return [*self.joints, *self.ignored]

    @property
    def coordinates(self) -> list[Joint]:
        """The independent joints, then the dependent ones."""
        return [*self.independent, *self.dependent]

    def ignore(self, coordinate: object) -> None:
        """Move a coordinate out of the state, and keep its rate there."""
        joint = next((joint for joint in self.joints if joint.symbol == coordinate), None)
        if joint is None or joint.kind == "quaternion" or joint.symbol in self.rolls:
            raise mistake(
                f"robot.ignore is called for {shown(coordinate)}. Write the return value of robot.revolute(...) or "
                "robot.prismatic(...), of a coordinate that no robot.loop and no robot.roll determines."
            )
        if self.task:
            raise mistake(f"`{coordinate}` is ignored after robot.task(...); move the task to the end of the file.")
        if len(self.joints) == 1:
            raise mistake(f"`{coordinate}` is the only coordinate of the state; keep it.")
        self.joints.remove(joint)
        self.ignored.append(replace(joint, place=calling_place()))

    def depend(self, coordinate: Coordinate) -> None:
        """Move a coordinate out of the state, because a closed loop determines it."""
        joint = next(joint for joint in self.coordinates if joint.symbol == coordinate)
        if self.task:
            raise mistake("a loop is closed after robot.task(...); move the task to the end of the file.")
        if joint in self.dependent:
            raise mistake(f"`{coordinate}` is a dependent coordinate of an earlier loop; name it once.")
        if joint.rate_limit is not None:
            raise ModelError(
                f"the coordinate `{coordinate}` has a rate_limit, but the loop determines its rate. Leave rate_limit "
                "out.",
                joint.place,
            )
        self.joints.remove(joint)
        self.dependent.append(joint)

    def roll(self, coordinate: Coordinate, rate: Expr) -> None:
        """Enter the rate of a coordinate of the state. Raises ModelError for one that has a rate already."""
        joint = next((joint for joint in self.joints if joint.symbol == coordinate), None)
        if joint is None or joint.kind == "quaternion":
            raise mistake(
                f"robot.roll({{{coordinate}: ...}}) is not a coordinate of the state. Write the return value of "
                "robot.revolute(...) or robot.prismatic(...)."
            )
        if coordinate in self.rolls:
            raise mistake(f"the rate of `{coordinate}` is in an earlier robot.roll already; name it once.")
        if joint.rate_limit is not None:
            raise ModelError(
                f"the coordinate `{coordinate}` has a rate_limit, but its rate follows from other speeds. Leave "
                "rate_limit out.",
                joint.place,
            )
        self.rolls[coordinate] = Rolling(rate)

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
        if self.task:
            raise mistake(
                f"the {what} `{name}` is declared after robot.task(...); move the task to the end of the file."
            )
        if name == TIME:
            raise mistake(
                f"the {what} cannot be named `{TIME}`, which is the first column of a recording; give it another name."
            )
        if name in self.symbols:
            raise mistake(
                f"the name `{name}` is used twice in robot `{self.robot}`; give the second, a {what}, another name."
            )
        self.symbols[name] = symbol


def _middle_and_half(limit: object, name: str) -> tuple[float, float]:
    """The middle and half of the range of an input. Raises ModelError for limits that are not a range."""
    if not isinstance(limit, tuple | list):
        return 0.0, positive(limit, f"limit of `{name}`")
    if len(limit) != 2:
        raise mistake(f"the limits of `{name}` are {limit!r}; write (lower, upper), or one number.")
    lower, upper = (number(value, f"limit of `{name}`") for value in limit)
    if lower >= upper:
        raise mistake(f"the limits of `{name}` are {lower:g} and {upper:g}; write the lower one first.")
    return (lower + upper) / 2, (upper - lower) / 2


def _three(value: object, what: str) -> tuple[float, ...]:
    """Three limits, from one number or three."""
    given = value if isinstance(value, tuple | list) else (value,) * 3
    if len(given) != 3:
        raise mistake(f"the {what} has {len(given)} entries; write one number, or three (x, y, z).")
    return tuple(_limit(entry, what, LARGEST_RATE) for entry in given)


def _limit(value: object, what: str, largest: float) -> float:
    """A limit of the state domain. Raises ModelError if it is above `largest`."""
    if isinstance(value, tuple | list):
        raise mistake(
            f"the {what} is {shown(value)}; write one number: the domain is from -limit to limit. Measure a coordinate "
            "from the middle of its range."
        )
    limit = positive(value, what)
    if limit > largest:
        raise mistake(
            f"the {what} is {limit:g}; write {largest:g} at most, in SI units (180 degrees are pi). The solver learns "
            "on the whole domain, so the limit should be what the robot can reach."
        )
    return limit
