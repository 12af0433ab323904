"""`Robot`: what a model file writes. Every method records one line of the file; `derivation` makes equations of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sympy import Expr, Float, Symbol

from modelgen.errors import ModelError, Place, calling_place, suggestion
from modelgen.statement import bodies
from modelgen.statement.action_costs import ActionCost
from modelgen.statement.checker import identifier, text
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import Coordinate, Energy, Joint, Speed, StatedTask
from modelgen.statement.figure import Line, stated_lines
from modelgen.statement.forces import Forces
from modelgen.statement.links import Link, make_link
from modelgen.statement.points import Point, stated_point
from modelgen.statement.tasks import numeric_task, stated_action_cost

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem


class Robot(Forces):
    """A robot in generalized coordinates: joints, parameters, inputs, energies, forces and the default task.

    Every method checks what it is given and raises `ModelError` with the line of the model file. Quantities are in
    SI units; the last component of a position is the height.
    """

    def __init__(self, name: str, description: str = "") -> None:
        super().__init__()
        self.place = calling_place()
        self.name = identifier(name, "robot", self.place)
        self.description = text(description, "description", self.place)
        declared = Declarations(name, self.place)
        self.joints, self.parameters, self.inputs = declared.joints, declared.parameters, declared.inputs
        self.symbols = declared.symbols
        self.links: list[Link] = []
        self.points: list[Point] = []
        self.system: MechanicalSystem | None = None
        self.downward_acceleration: Expr = Float("9.81")
        self.gravity_place: Place | None = None  # None: not set in the file
        self.lines: list[tuple[Line, Place]] = []  # that the file draws; without them, the rods and masses are drawn
        self.rods: list[Line] = []  # one for each planar body
        self.masses: list[list[Expr]] = []  # positions of point masses
        self._declared = declared

    def __setattr__(self, name: str, value: object) -> None:
        if "_declared" in vars(self) and name not in vars(self):
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            instead = f"Call robot.{name}(...) instead."
            if name not in known:
                instead = f"There is no robot.{name}(...).{suggestion(name, known)} It has: {', '.join(known)}."
            raise ModelError(
                f"robot.{name} = ... is not how a model file states things. {instead}",
                calling_place(),
            )
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        known = [each for each in (*dir(type(self)), *vars(self)) if not each.startswith("_")]
        raise AttributeError(f"a Robot has no `{name}`.{suggestion(name, known)}")

    @property
    def velocities(self) -> tuple[Speed, ...]:
        """v, one entry for each coordinate: its rate, or the speed that robot.mechanics put in its place."""
        return self._declared.velocities(self.system.own if self.system else {})

    @property
    def stated_task(self) -> StatedTask:
        """The default task. Raises ModelError when there is none."""
        return self._declared.stated_task

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
        return self._declared.revolute(name, limit, rate_limit, continuous, meaning, calling_place())

    def prismatic(self, name: str, *, limit: float, rate_limit: float | None = None, meaning: str = "") -> Coordinate:
        """Declare a displacement (m); rate_limit (m/s) as for an angle."""
        return self._declared.prismatic(name, limit, rate_limit, meaning, calling_place())

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
        return self._declared.parameter(name, value, unit, bounds, tolerance, fixed, meaning, calling_place())

    def input(self, name: str, limit: float, unit: str, *, meaning: str = "") -> Symbol:
        """Declare an input u with |u| <= limit."""
        return self._declared.input(name, limit, unit, meaning, calling_place())

    def speed(self, name: str, *, limit: float, unit: str, meaning: str = "") -> Symbol:
        """Declare a speed other than the rate of a coordinate, such as an angular velocity; for robot.mechanics."""
        return self._declared.speed(name, limit, unit, meaning, calling_place())

    def gravity(self, acceleration: object) -> None:
        """Set the gravitational acceleration (m/s^2, downward; 9.81 unless set), before any body."""
        place = calling_place()
        if self.kinetic or self.potential or self.links:
            raise ModelError("gravity is set after a body or an energy; move this line above the first of them.", place)
        self.downward_acceleration = self._check().coefficient(acceleration, "gravity (downward)", "", "m/s^2")
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
        """Add a rigid link of a kinematic tree, with its weight; z is up, and `on` None is the ground.

        joint: the coordinate that moves it, (x, height, angle) for one that floats in a plane, () if fixed.
        at: the joint in the frame of `on`; turned: roll, pitch, yaw of the link's frame there at coordinate 0.
        axis: of the joint, in the link's frame; centre: of mass, in the link's frame.
        inertia: about the centre, (xx, yy, zz) or (xx, yy, zz, xy, xz, yz), or one number for all axes.
        """
        stated = dict(name=name, joint=joint, on=on, at=at, turned=turned, axis=axis)
        stated |= dict(mass=mass, centre=centre, inertia=inertia)
        link = make_link(self.links, self._check(), stated)
        self.links.append(link)
        return link

    def point(self, name: str, position: Sequence[object], *, on: Link | None = None) -> None:
        """Name a point for the kernel `forward_kinematics`: its position and Jacobian. Nothing else changes.

        position: (x, height) or (x, y, height) in the world, or (x, y, z) in the frame of the link `on`. The origins
        of links have their links' names without this.
        """
        self.points.append(stated_point(self._check(), self.points, self.links, name, position, on))

    def point_mass(self, mass: object, position: Sequence[object]) -> None:
        """Add a mass (kg) at a position (m), (x, height) or (x, y, height), with its weight."""
        added, where = bodies.point_mass(self._check(), mass, position, self.downward_acceleration)
        self._add(added)
        self.masses.append(where)

    def body(self, mass: object, inertia: object, position: Sequence[object], angle: object) -> None:
        """Add a planar body: mass (kg), inertia about its centre (kg m^2), centre (x, height), angle."""
        added, rod = bodies.planar_body(self._check(), mass, inertia, position, angle, self.downward_acceleration)
        self._add(added)
        self.rods.append(rod)

    def kinetic_energy(self, energy: object) -> None:
        """Add a kinetic energy (J), quadratic in the rates."""
        check = self._check()
        self.kinetic.append(Energy(check.smooth(energy, "kinetic energy", "qv", "J"), check.place))

    def potential_energy(self, energy: object) -> None:
        """Add a potential energy (J)."""
        check = self._check()
        self.potential.append(Energy(check.smooth(energy, "potential energy", "q", "J"), check.place))

    def mechanics(
        self,
        system: object,
        *,
        coordinates: Mapping[Any, Any],
        parameters: Mapping[Any, Any] | None = None,
        inputs: Mapping[Any, Any] | None = None,
        speeds: Mapping[Any, Any] | None = None,
    ) -> None:
        """Take over a system of sympy.physics.mechanics: a System, KanesMethod or LagrangesMethod, as it is.

        Each mapping says what stands for what in that script: coordinates {q1: robot.revolute(...)}, parameters
        {m: robot.parameter(...) or a number}, inputs {F: robot.input(...)}, and speeds {u1: robot.speed(...)} for
        those that are not the rate of a coordinate. Energies, forces and losses may be added to it.
        """
        from modelgen.statement.sympy_mechanics import stated_system  # SymPy's mechanics take a while to import

        check = self._check()
        if self.system:
            raise ModelError("robot.mechanics is called twice; a robot is one system.", check.place)
        replaced = {**(parameters or {}), **(inputs or {})}
        self.system = stated_system(check, system, coordinates, speeds or {}, replaced)

    def draw(self, **shape: object) -> None:
        """Draw one shape, for `modelgen animate` and renderers; points are (x, height) or (x, y, height) in m.

        line=[point, point, ...]; box=(centre, (width, height), angle); circle=(centre, radius, angle).
        An angle, which may be left out, leans the shape to the right and gives a circle a spoke.
        """
        check = self._check()
        stated = stated_lines(shape, lambda value, what: check.term(value, what, "q"), check.place)
        self.lines += [(line, check.place) for line in stated]

    def task(
        self,
        *,
        state_cost: object,
        action_cost: ActionCost,
        start: Mapping[str, object],
        horizon: float,
        weight_at_horizon: float,
        control_rate: int,
        simulation_rate: int | None = None,
        target: Mapping[str, object] | None = None,
        free: Sequence[str] = (),
    ) -> None:
        """State the default task, last in the file.

        state_cost: zero at the target, positive elsewhere (its negative is the reward per second).
        action_cost: LogCos, Quadratic or Tanh of a weight, or another class made from ActionCost.
        start: coordinate or rate -> (mean, standard deviation); exactly the target unless given.
        target: coordinate or rate -> value, zero unless given.
        free: coordinates and rates that may end anywhere, by name: a rollout succeeds without them.
        horizon in s; weight_at_horizon, the discount factor left there; rates in Hz.
        """
        check = self._check()
        self._declared.check_complete(check.place)
        bodies.check_gravity(self.gravity_place, [*self.masses, *self.rods, *self.links])
        cost = check.term(state_cost, "state cost", "qv")
        check.dimensions("state cost", bare=True).check_arguments(cost)
        states: list[Joint | Speed] = [*self.joints, *self.velocities]
        limits = {each.symbol: each.limit for each in self.inputs}
        named, input_costs = stated_action_cost(action_cost, limits, check.place)
        numbers = numeric_task(
            [state.symbol.name for state in states],
            [state.limit for state in states],
            action_cost=named,
            target=target,
            start=start,
            horizon=horizon,
            weight_at_horizon=weight_at_horizon,
            control_rate=control_rate,
            simulation_rate=simulation_rate,
            free=free,
            place=check.place,
        )
        self._declared.task = StatedTask(cost, input_costs, numbers, check.place)
