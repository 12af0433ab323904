"""`Robot`: what a model file writes. It records and checks declarations; `mechanics` derives from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi
from typing import NoReturn

from sympy import Expr, Float, Matrix, S, Symbol

from modelgen.declarations import RATE, Constant, Coordinate, Drive, Energy, Joint, Load, StatedTask
from modelgen.errors import ModelError, Place, calling_place, suggestion
from modelgen.links import Kind, Link, make_link
from modelgen.tasks import LogCos, Quadratic, Tanh, numeric_task
from modelgen.values import check_symbols, expression, identifier, number, parameter_range, positive, text


class Robot:
    """A robot in generalized coordinates: joints, parameters, inputs, energies, forces and the default task.

    Every method checks what it is given and raises `ModelError` with the line of the model file.
    Quantities are in SI units; the last component of a position is the height.
    """

    __slots__ = (
        "constants",
        "description",
        "downward_acceleration",
        "drives",
        "joints",
        "kinetic",
        "links",
        "loads",
        "name",
        "place",
        "potential",
        "stated_task",
        "symbols",
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
        self.symbols: dict[str, Symbol] = {}  # all that may stand in an expression, by name
        self.downward_acceleration: Expr = Float("9.81")
        self.stated_task: StatedTask | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self.__slots__:
            raise ModelError(
                f"robot.{name} = ... is not how a model file states things; call robot.{name}(...) instead.",
                calling_place(),
            )
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        known = [method for method in dir(type(self)) if not method.startswith("_")]
        raise AttributeError(f"a Robot has no `{name}`.{suggestion(name, known)}")

    def revolute(
        self, name: str, *, rate_limit: float, limit: float | None = None, continuous: bool = False, meaning: str = ""
    ) -> Coordinate:
        """Declare an angle (rad). A continuous one turns without end and has the limit pi."""
        place = calling_place()
        if continuous == (limit is not None):
            raise ModelError(
                f"the angle `{name}` needs either continuous=True (it turns without end) or a limit=... in rad.",
                place,
            )
        return self._joint(name, "revolute", pi if limit is None else limit, rate_limit, continuous, meaning, place)

    def prismatic(self, name: str, *, limit: float, rate_limit: float, meaning: str = "") -> Coordinate:
        """Declare a displacement (m)."""
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
        text(unit, f"unit of `{name}`", place)
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
        text(unit, f"unit of `{name}`", place)
        symbol = Symbol(name, real=True)
        self._declare(name, "input", symbol, place)
        self.drives.append(Drive(symbol, unit, positive(limit, f"limit of `{name}`", place), meaning, place))
        return symbol

    def gravity(self, acceleration: object) -> None:
        """Set the gravitational acceleration (m/s^2, downward; 9.81 unless set), before any body."""
        place = calling_place()
        if self.kinetic or self.potential or self.links:
            raise ModelError("gravity is set after a body or an energy; move this line above the first of them.", place)
        self.downward_acceleration = self._term(acceleration, "gravity", "q", place)

    def link(
        self,
        name: str,
        joint: object = (),
        *,
        on: Link | None = None,
        at: object = (0, 0, 0),
        turned: object = (0, 0, 0),
        axis: object = "y",
        mass: object = 0,
        centre: object = (0, 0, 0),
        inertia: object = 0,
    ) -> Link:
        """Add a rigid link of a kinematic tree, with its weight; z is up, and `on` None is the ground.

        joint: the coordinate that moves it, (x, height, angle) for one that floats in a plane, () if fixed.
        at: the joint in the frame of `on`; turned: roll, pitch, yaw of the link's frame there at coordinate 0.
        axis: of the joint, in the link's frame; centre: of mass, in the link's frame.
        inertia: about the centre, (xx, yy, zz) or (xx, yy, zz, xy, xz, yz), or one number for all axes.
        """
        place = calling_place()
        stated = dict(name=name, joint=joint, on=on, at=at, turned=turned, axis=axis)
        stated |= dict(mass=mass, centre=centre, inertia=inertia)
        link = make_link(self.links, self.joints, lambda value, what: self._term(value, what, "", place), place, stated)
        self.links.append(link)
        return link

    def point_mass(self, mass: object, position: Sequence[object]) -> None:
        """Add a mass (kg) at a position (m), (x, height) or (x, y, height), with its weight."""
        self._mass(mass, position, calling_place())

    def body(self, mass: object, inertia: object, position: Sequence[object], angle: object) -> None:
        """Add a planar body: mass (kg), inertia about its centre (kg m^2), centre (x, height), angle."""
        place = calling_place()
        self._mass(mass, position, place)
        spin = self._velocity(self._term(angle, "angle of the body", "q", place))
        self.kinetic.append(Energy(self._term(inertia, "inertia of the body", "q", place) * spin**2 / 2, place))

    def kinetic_energy(self, energy: object) -> None:
        """Add a kinetic energy (J), quadratic in the rates."""
        place = calling_place()
        self.kinetic.append(Energy(self._term(energy, "kinetic energy", "qv", place), place))

    def potential_energy(self, energy: object) -> None:
        """Add a potential energy (J)."""
        place = calling_place()
        self.potential.append(Energy(self._term(energy, "potential energy", "q", place), place))

    def apply(self, displacement: object, force: object) -> None:
        """Add a force (N) along a coordinate or displacement, or a torque (N m) along an angle.

        The displacement may be any expression of the coordinates: the work is force * d(displacement).
        """
        place = calling_place()
        along = self._term(displacement, "displacement", "q", place)
        if not along.free_symbols & {joint.symbol for joint in self.joints}:
            raise ModelError(
                f"a force is applied along {along}, which contains no coordinate. "
                "Write the coordinate first: robot.apply(coordinate, force).",
                place,
            )
        self.loads.append(Load(along, self._term(force, "applied force", "qvu", place), place))

    def damp(self, displacement: object, coefficient: object) -> None:
        """Add viscous friction: the force -coefficient * rate along a coordinate (N s/m or N m s)."""
        along = self._term(displacement, "displacement", "q", calling_place())
        self.apply(
            along,
            -self._term(coefficient, "damping coefficient", "q", calling_place()) * self._velocity(along),
        )

    def spring(self, displacement: object, stiffness: object, rest: object = 0) -> None:
        """Add a linear spring along a coordinate (N/m or N m), relaxed at `rest`."""
        place = calling_place()
        stretch = self._term(displacement, "displacement", "q", place) - self._term(rest, "rest position", "q", place)
        self.potential.append(Energy(self._term(stiffness, "stiffness", "q", place) * stretch**2 / 2, place))

    def dc_motor(
        self,
        displacement: object,
        voltage: object,
        *,
        resistance: object,
        torque_constant: object,
        back_emf: object | None = None,
        gear: object = 1,
        efficiency: object = 1,
        gear_efficiency: object = 1,
        rotor_inertia: object = 0,
    ) -> None:
        """Add a DC motor without inductance, driven by a voltage (V).

        The motor turns `gear` rad per unit of the displacement (k / r for a pinion of radius r behind a gear
        of ratio k). Its torque is efficiency * torque_constant * (voltage - back_emf * motor speed) /
        resistance; the gear passes the fraction `gear_efficiency` of what is left after turning the rotor.
        resistance in Ohm, torque_constant in N m/A, back_emf in V s/rad (the torque constant unless given).
        """
        place = calling_place()
        along = self._term(displacement, "displacement", "q", place)
        ratio = self._term(gear, "gear", "q", place)
        speed = ratio * self._velocity(along)
        constant = self._term(torque_constant, "torque constant", "q", place)
        emf = constant if back_emf is None else self._term(back_emf, "back-EMF constant", "q", place)
        current = (self._term(voltage, "voltage", "qvu", place) - emf * speed) / self._term(
            resistance, "resistance", "q", place
        )
        passed = self._term(gear_efficiency, "gear efficiency", "q", place) * ratio
        self.apply(along, passed * self._term(efficiency, "efficiency", "q", place) * constant * current)
        rotor = self._term(rotor_inertia, "rotor inertia", "q", place)
        if rotor != 0:
            self.kinetic.append(Energy(passed / ratio * rotor * speed**2 / 2, place))

    def task(
        self,
        *,
        state_cost: object,
        action_cost: LogCos | Quadratic | Tanh,
        start: Mapping[str, object],
        horizon: float,
        weight_at_horizon: float,
        control_rate: int,
        simulation_rate: int | None = None,
        target: Mapping[str, object] | None = None,
    ) -> None:
        """State the default task, last in the file.

        state_cost: zero at the target, positive elsewhere (its negative is the reward per second).
        start: coordinate or rate -> (mean, standard deviation); exactly the target unless given.
        target: coordinate or rate -> value, zero unless given.
        horizon in s; weight_at_horizon, the discount factor left there; rates in Hz.
        """
        place = calling_place()
        if self.stated_task:
            raise ModelError(
                f"the task is stated twice, first at {self.stated_task.place}; keep one robot.task(...).",
                place,
            )
        if not self.joints or not self.drives:
            missing = "coordinate; declare it with robot.revolute(...) or robot.prismatic(...)"
            missing = missing if not self.joints else "input; declare it with robot.input(name, limit, unit)"
            raise ModelError(f"robot `{self.name}` has no {missing} before robot.task(...).", place)
        cost = self._term(state_cost, "state cost", "qv", place)
        names = [joint.symbol.name for joint in self.joints]
        numbers = numeric_task(
            [*names, *(f"{name}{RATE}" for name in names)],
            [joint.limit for joint in self.joints] + [joint.rate_limit for joint in self.joints],
            len(self.drives),
            action_cost=action_cost,
            target=target,
            start=start,
            horizon=horizon,
            weight_at_horizon=weight_at_horizon,
            control_rate=control_rate,
            simulation_rate=simulation_rate,
            place=place,
        )
        self.stated_task = StatedTask(cost, numbers, place)

    def _joint(
        self, name: str, kind: Kind, limit: float, rate_limit: float, continuous: bool, meaning: str, place: Place
    ) -> Coordinate:
        """Declare a coordinate and its rate."""
        coordinate = Coordinate(identifier(name, "coordinate", place), real=True)
        self._declare(name, "coordinate", coordinate, place)
        self._declare(f"{name}{RATE}", "rate", coordinate.rate, place)
        self.joints.append(
            Joint(
                coordinate,
                kind,
                positive(limit, f"limit of `{name}`", place),
                positive(rate_limit, f"rate_limit of `{name}`", place),
                continuous,
                meaning,
                place,
            )
        )
        return coordinate

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

    def _term(self, value: object, what: str, may_contain: str, place: Place) -> Expr:
        """A checked expression in the parameters and, as `may_contain` lists, q, v and u."""
        term = expression(value, what, place)
        allowed = {constant.symbol for constant in self.constants}
        if "q" in may_contain:
            allowed |= {joint.symbol for joint in self.joints}
        if "v" in may_contain:
            allowed |= {joint.symbol.rate for joint in self.joints}
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
        return term

    def _velocity(self, displacement: Expr) -> Expr:
        """The time derivative of an expression of the coordinates."""
        return sum((displacement.diff(joint.symbol) * joint.symbol.rate for joint in self.joints), S.Zero)

    def _mass(self, mass: object, position: object, place: Place) -> None:
        """Kinetic energy and weight of a mass at a position."""
        if not isinstance(position, tuple | list | Matrix) or len(position) not in (2, 3):
            raise ModelError(
                f"the position is {position!r}; write (x, height) or (x, y, height), the height last.", place
            )
        kilograms = self._term(mass, "mass", "q", place)
        where = [self._term(component, "position", "q", place) for component in position]
        self.kinetic.append(Energy(kilograms * sum(self._velocity(each) ** 2 for each in where) / 2, place))
        self.potential.append(Energy(kilograms * self.downward_acceleration * where[-1], place))
