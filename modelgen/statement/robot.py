"""`Robot`: what a model file calls. Each method records one line; `derivation` makes equations of motion of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sympy import Basic, Expr, Float, MatrixBase, S, Symbol

from modelgen.errors import Place, calling_place, mistake, suggestion
from modelgen.statement import bodies
from modelgen.statement.action_costs import ActionCost
from modelgen.statement.bodies import Link, Point, make_link, make_point
from modelgen.statement.declared import Energy, Internal
from modelgen.statement.drawing import Line, shape_lines
from modelgen.statement.forces import Forces
from modelgen.statement.joints import Coordinate, Joint, Speed
from modelgen.statement.loops import Loop, make_loop, roll
from modelgen.statement.tasks import make_task


class Robot(Forces):
    """A robot in generalized coordinates: joints, parameters, inputs, energies, forces and the default task.

    Every method checks its arguments and raises `ModelError` with the line of the model file. Quantities are in SI
    units. The last component of a position is the height.
    """

    def __init__(self, name: str, description: str = "") -> None:
        super().__init__(name, description)
        self.file_hash = ""  # of the model file, if it was declared in one
        self.links: list[Link] = []
        self.points: list[Point] = []
        self.loops: list[Loop] = []
        self.downward_acceleration: Expr = Float("9.81")
        self.gravity_place: Place | None = None  # None: the file does not set it
        self.lines: list[tuple[Line, Place]] = []  # drawn by the file; without them, the rods and masses are drawn
        self.rods: list[Line] = []  # one per planar body
        self.masses: list[list[Expr]] = []  # positions of the point masses
        self._complete = True

    def __setattr__(self, name: str, value: object) -> None:
        if "_complete" in vars(self) and name not in vars(self):
            known = [method for method in dir(type(self)) if not method.startswith("_")]
            instead = f"Call robot.{name}(...) instead."
            if name not in known:
                instead = f"There is no robot.{name}(...).{suggestion(name, known)} It has: {', '.join(known)}."
            raise mistake(f"robot.{name} = ... does not declare anything. {instead}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        known = [attribute for attribute in (*dir(type(self)), *vars(self)) if not attribute.startswith("_")]
        raise AttributeError(f"a Robot has no `{name}`.{suggestion(name, known)}")

    def __repr__(self) -> str:
        parts = {
            "coordinates": [joint.symbol for joint in self.joints],
            "inputs": [declared.symbol for declared in self.inputs],
            "parameters": [parameter.symbol for parameter in self.parameters if not parameter.fixed],
        }
        listed = [f"{kind}=({', '.join(map(str, symbols))})" for kind, symbols in parts.items()]
        return f"Robot({', '.join([repr(self.name), *listed])})"

    @property
    def velocities(self) -> tuple[Speed, ...]:
        """v: the rate of each coordinate, or what replaces it: a speed of robot.mechanics, an angular velocity."""
        return self._velocities(self.system.own if self.system else {})

    @property
    def limits(self) -> dict[Symbol, float]:
        """The entries of the state x = (q, v, z), each with its limit."""
        entries: list[Joint | Speed | Internal] = [*self.joints, *self.velocities, *self.internal]
        return {entry.symbol: entry.limit for entry in entries}

    @property
    def rates(self) -> dict[Symbol, Expr]:
        """Rate of a coordinate that is not an entry of the state -> expression in q and v."""
        rates = dict(self.system.rates) if self.system else {}
        rates |= {symbol.rate: rolling.rate for symbol, rolling in self.rolls.items()}
        return rates | {rate: value for ball in self.balls for rate, value in ball.quaternion_rates.items()}

    @property
    def quaternions(self) -> list[slice]:
        """The entries of the state that are unit quaternions."""
        symbols = [joint.symbol for joint in self.joints]
        first = [symbols.index(ball.quaternion[0]) for ball in self.balls]
        return [slice(index, index + 4) for index in first]

    def gravity(self, acceleration: object) -> None:
        """Set the gravitational acceleration (m/s^2, downward, default 9.81). Call it before any body."""
        place = calling_place()
        if self.kinetic or self.potential or self.links:
            raise mistake("gravity is set after a body or an energy; move this line above the first of them.")
        self.downward_acceleration = self._check.coefficient(acceleration, "gravity (downward)", "", "m/s^2")
        self.gravity_place = place

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
        """Add a rigid link of a kinematic tree, with its weight. z is up; on=None is the ground.

        joint: the coordinate that moves it; (x, height, angle) if it floats in a plane; robot.ball(...) or
        robot.floating(...); () if fixed.
        at: position of the joint in the frame of `on`.
        turned: roll, pitch, yaw of the link's frame in the frame of `on`, at coordinate 0.
        axis: of the joint, in the link's frame. centre: centre of mass, in the link's frame.
        inertia: about the centre: (xx, yy, zz) or (xx, yy, zz, xy, xz, yz), or one number for all axes.
        """
        arguments = dict(name=name, joint=joint, on=on, at=at, turned=turned, axis=axis)
        arguments |= dict(mass=mass, centre=centre, inertia=inertia)
        link = make_link(self.links, self._check, arguments)
        self.links.append(link)
        return link

    def push(self, link: Link, force: object, *, at: object = (0, 0, 0), torque: object = (0, 0, 0)) -> None:
        """Push a link with a force (N) at a point (m), and a torque (N m): (x, y, z) in the link's frame.

        It is the thrust of a rotor or a nozzle that the link carries.
        """
        self.loads += bodies.push(self._check, self.links, link, force, at, torque)

    def point(self, name: str, position: Sequence[object], *, on: Link | None = None) -> Point:
        """Name a point for `robot.loop` and the kernel `forward_kinematics`, which gives its position and Jacobian.

        position: (x, height) or (x, y, height) in the world frame, or (x, y, z) in the frame of the link `on`. The
        origin of each link is a point with the link's name already. The equations of motion do not change.
        """
        point = make_point(self._check, self.points, self.links, name, position, on)
        self.points.append(point)
        return point

    def loop(
        self,
        first: object,
        second: object,
        *,
        dependent: Mapping[Coordinate, float],
        at: Mapping[Coordinate, float] | None = None,
    ) -> None:
        """Close a loop: two points are one, or the frames of two links.

        first, second: positions (x, height) or (x, y, height), points of `robot.point`, or two links.
        dependent: the coordinates that the loop determines -> about their values at the starting posture. They are
        not in the state and have no rate_limit. As many as the degrees of freedom that the loop takes.
        at: values of the other coordinates at the starting posture, zero by default.
        """
        if self.system:
            raise mistake("a loop is closed in a robot with robot.mechanics; close it in that system.")
        self.loops.append(make_loop(self._check, self.points, self.links, (first, second), dependent, at or {}))

    def point_mass(self, mass: object, position: Sequence[object]) -> None:
        """Add a mass (kg) at a position (m), (x, height) or (x, y, height), with its weight."""
        kinetic, weight, centre = bodies.point_mass(self._check, mass, position, self.downward_acceleration)
        self.kinetic.append(kinetic)
        self.potential.append(weight)
        self.masses.append(centre)

    def body(self, mass: object, inertia: object, position: Sequence[object], angle: object) -> None:
        """Add a planar body: mass (kg), inertia about its centre (kg m^2), centre (x, height), angle."""
        gravity = self.downward_acceleration
        kinetic, weight, rod = bodies.planar_body(self._check, mass, inertia, position, angle, gravity)
        self.kinetic += kinetic
        self.potential.append(weight)
        self.rods.append(rod)

    def kinetic_energy(self, energy: object) -> None:
        """Add a kinetic energy (J), quadratic in the rates."""
        self.kinetic.append(Energy(self._check.smooth(energy, "kinetic energy", "qv", "J")))

    def potential_energy(self, energy: object) -> None:
        """Add a potential energy (J)."""
        self.potential.append(Energy(self._check.smooth(energy, "potential energy", "q", "J")))

    def mechanics(
        self,
        system: object,
        *,
        coordinates: Mapping[Any, Any],
        parameters: Mapping[Any, Any] | None = None,
        inputs: Mapping[Any, Any] | None = None,
        speeds: Mapping[Any, Any] | None = None,
    ) -> None:
        """Take the equations of a system of sympy.physics.mechanics: a System, KanesMethod or LagrangesMethod.

        Each mapping replaces symbols of that script: coordinates {q1: robot.revolute(...)}, parameters
        {m: robot.parameter(...) or a number}, inputs {F: robot.input(...)}. speeds {u1: robot.speed(...)} holds the
        speeds that are not the rate of a coordinate. Energies, forces and losses may be added to the system.
        """
        from modelgen.statement.sympy_mechanics import make_system  # SymPy's mechanics take a while to import

        if self.system:
            raise mistake("robot.mechanics is called twice; a robot has one system.")
        if self.rolls:
            raise mistake(
                "robot.mechanics and robot.roll do not go together; give the velocity constraints to KanesMethod."
            )
        if self.loops:
            raise mistake("robot.mechanics and robot.loop do not go together; close it in that system.")
        replaced = {**(parameters or {}), **(inputs or {})}
        self.system = make_system(self._check, system, coordinates, speeds or {}, replaced)

    def roll(self, rates: Mapping[Coordinate, object]) -> None:
        """Let wheels roll without slip: the rates of some coordinates follow from the speeds of the state.

        rates: coordinate -> its rate, linear in rates of other coordinates and in speeds of `robot.speed`, such as
        {x: speed * cos(yaw), y: speed * sin(yaw)}. These coordinates have no rate_limit. The state has fewer speeds
        than coordinates. The forces that prevent slip do no work and are left out.
        """
        if self.system:
            raise mistake(
                "robot.roll and robot.mechanics do not go together; give the velocity constraints to KanesMethod."
            )
        if not isinstance(rates, Mapping) or not rates:
            raise mistake(f"robot.roll gets {rates!r}; write {{coordinate: rate, ...}}.")
        roll(self._check, rates)

    def draw(self, *unnamed: object, **shape: object) -> None:
        """Draw one shape, for `modelgen animate` and renderers. Points are (x, height) or (x, y, height) in m.

        line=[point, point, ...]; box=(centre, (width, height), angle); circle=(centre, radius, angle).
        The optional angle leans the shape to the right and gives a circle a spoke.
        """
        lines = shape_lines(unnamed, shape, lambda value, what: self._check.term(value, what, "q"))
        self.lines += [(line, calling_place()) for line in lines]

    def task(
        self,
        *,
        state_cost: object,
        action_cost: ActionCost | None = None,
        start: Mapping[str, object],
        horizon: float,
        weight_at_horizon: float,
        control_rate: int,
        simulation_rate: int | None = None,
        target: Mapping[str, object] | None = None,
        free: Sequence[str] = (),
    ) -> None:
        """Declare the default task. It is the last line of the file.

        state_cost: zero at the target, positive elsewhere (its negative is the reward per second).
        action_cost: LogCos, Quadratic or Tanh of a weight, or another subclass of ActionCost; left out without inputs.
        start: state -> (mean, standard deviation); default: exactly the target. A ball joint has the mean
        (roll, pitch, yaw) and one deviation (rad), of pi for any rotation.
        target: state -> value; default: zero, and for states of first order the value with which the target is held. A
        ball joint has (roll, pitch, yaw). A value, or a mean start, may be an affine expression of references.
        free: names of states whose final value does not count for success.
        horizon in s; weight_at_horizon: the discount factor left at the horizon; rates in Hz.
        """
        self._check_complete()
        bodies.check_gravity(self.gravity_place, [*self.masses, *self.rods, *self.links])
        arguments = dict(state_cost=state_cost, action_cost=action_cost, start=start, target=target, free=free)
        arguments |= dict(horizon=horizon, weight_at_horizon=weight_at_horizon)
        arguments |= dict(control_rate=control_rate, simulation_rate=simulation_rate)
        self.stated_task = make_task(self._check, self.limits, arguments)


@dataclass(frozen=True)
class ModelExpression:
    """One expression of a model file, or a matrix of expressions, with its line."""

    value: Basic
    place: Place
    slopes: int  # how many times kernels differentiate it

    @property
    def entries(self) -> list[Basic]:
        """The expressions as a list."""
        return entries(self.value)


def entries(value: Basic) -> list[Basic]:
    """The entries of a matrix, or a list with the one expression."""
    return list(value) if isinstance(value, MatrixBase) else [value]


def model_expressions(robot: Robot) -> Iterator[ModelExpression]:
    """Energies, loads, flows, commands, links, gravity, a system of SymPy's mechanics, state cost, in this order."""
    for energy in (*robot.kinetic, *robot.potential):
        yield ModelExpression(energy.value, energy.place, 2)
    for load in robot.loads:
        yield ModelExpression(load.force, load.place, 1)
        yield ModelExpression(load.displacement, load.place, 2)
    for flow in robot.flows:
        yield ModelExpression(flow.rate, flow.place, 1)
    for commanded in robot.commanded:
        yield ModelExpression(commanded.acceleration, commanded.place, 1)
    for link in robot.links:
        yield from (ModelExpression(term, link.place, 1) for term in link.terms)
    for rolling in robot.rolls.values():
        yield ModelExpression(rolling.rate, rolling.place, 2)
    for loop in robot.loops:
        ends = [end.position for end in loop.ends if isinstance(end, Point)]
        yield from (ModelExpression(position, loop.place, 2) for position in ends)
    if robot.gravity_place:
        yield ModelExpression(robot.downward_acceleration, robot.gravity_place, 1)
    if robot.system:
        yield from (ModelExpression(term, robot.system.place, 1) for term in robot.system.terms)
    task = robot.declared_task
    yield ModelExpression(task.state_cost, task.place, 1)


def fixed_values(robot: Robot) -> dict[Symbol, Expr]:
    """Expressions for the symbols that are not entries of x, u or theta: fixed parameters, and replaced rates.

    An ignored coordinate is zero.
    """
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    fixed |= {joint.symbol: S.Zero for joint in robot.ignored}
    return fixed | {symbol: value.xreplace(fixed) for symbol, value in robot.rates.items()}
