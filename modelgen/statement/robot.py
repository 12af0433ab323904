"""`Robot`: what a model file writes. It records and checks declarations; `mechanics` derives from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sympy import Expr, Matrix

from modelgen.errors import ModelError, Place, calling_place
from modelgen.statement.actuators import Actuators
from modelgen.statement.declared import Energy, StatedTask
from modelgen.statement.figure import rod, stated_lines
from modelgen.statement.links import Link, make_link
from modelgen.statement.tasks import LogCos, Quadratic, Tanh, numeric_task
from modelgen.statement.units import dimension, divided

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem


class Robot(Actuators):
    """A robot in generalized coordinates: joints, parameters, inputs, energies, forces and the default task.

    Every method checks what it is given and raises `ModelError` with the line of the model file.
    Quantities are in SI units; the last component of a position is the height.
    """

    __slots__ = ()

    def gravity(self, acceleration: object) -> None:
        """Set the gravitational acceleration (m/s^2, downward; 9.81 unless set), before any body."""
        place = calling_place()
        if self.kinetic or self.potential or self.links:
            raise ModelError("gravity is set after a body or an energy; move this line above the first of them.", place)
        self.downward_acceleration = self._coefficient(acceleration, "gravity (downward)", "", place, "m/s^2")
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
        place = calling_place()
        stated = dict(name=name, joint=joint, on=on, at=at, turned=turned, axis=axis)
        stated |= dict(mass=mass, centre=centre, inertia=inertia)
        link = make_link(
            self.links, self.joints, lambda value, what, unit: self._term(value, what, "", place, unit), place, stated
        )
        self.links.append(link)
        return link

    def point_mass(self, mass: object, position: Sequence[object]) -> None:
        """Add a mass (kg) at a position (m), (x, height) or (x, y, height), with its weight."""
        _, where = self._mass(mass, position, calling_place())
        self.masses.append(where)

    def body(self, mass: object, inertia: object, position: Sequence[object], angle: object) -> None:
        """Add a planar body: mass (kg), inertia about its centre (kg m^2), centre (x, height), angle."""
        place = calling_place()
        kilograms, where = self._mass(mass, position, place)
        turned = self._smooth(angle, "angle of the body", "q", place, "rad")
        moment = self._smooth(inertia, "inertia of the body", "q", place, "kg m^2")
        self.kinetic.append(Energy(moment * self._velocity(turned) ** 2 / 2, place))
        self.rods.append(rod(kilograms, moment, where, turned))

    def draw(self, **shape: object) -> None:
        """Draw one shape, for `modelgen animate` and renderers; points are (x, height) or (x, y, height) in m.

        line=[point, point, ...]; box=(centre, (width, height), angle); circle=(centre, radius, angle).
        An angle, which may be left out, leans the shape to the right and gives a circle a spoke.
        """
        place = calling_place()
        self.lines += stated_lines(shape, lambda value, what: self._term(value, what, "q", place), place)

    def kinetic_energy(self, energy: object) -> None:
        """Add a kinetic energy (J), quadratic in the rates."""
        place = calling_place()
        self.kinetic.append(Energy(self._smooth(energy, "kinetic energy", "qv", place, "J"), place))

    def potential_energy(self, energy: object) -> None:
        """Add a potential energy (J)."""
        place = calling_place()
        self.potential.append(Energy(self._smooth(energy, "potential energy", "q", place, "J"), place))

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
        from modelgen.statement.sympy_mechanics import read_system  # SymPy's mechanics take a while to import

        place = calling_place()
        if self.system:
            raise ModelError("robot.mechanics is called twice; a robot is one system.", place)
        joints = {joint.symbol for joint in self.joints}
        declared = {speed.symbol: speed for speed in self.speeds}
        for what, given, known in (("coordinates", coordinates, joints), ("speeds", speeds or {}, declared)):
            for key, value in given.items():
                if value not in known:
                    raise ModelError(
                        f"{what}={{{key}: ...}} gives {value!r}, which is none of this robot's {what}.", place
                    )
        replaced = {
            key: self._term(value, f"replacement of {key}", "u", place)
            for key, value in {**(parameters or {}), **(inputs or {})}.items()
        }
        chosen = {key: declared[value] for key, value in (speeds or {}).items()}
        self.system = read_system(system, dict(coordinates), chosen, replaced, place)
        self._check_system(self.system, place)
        for joint in self.joints:
            if joint.symbol in self.system.own and joint.rate_limit is not None:
                raise ModelError(
                    f"the coordinate `{joint.symbol}` has a rate_limit, but its rate is no speed of the system; the "
                    f"limit that counts is that of `{self.system.own[joint.symbol].symbol}`. Leave rate_limit out.",
                    joint.place,
                )

    def _check_system(self, system: MechanicalSystem, place: Place) -> None:
        """Units of its energies and loads."""
        self._dimensions("kinetic energy of the system", place).check(system.kinetic, dimension("J"))
        self._dimensions("potential energy of the system", place).check(system.potential, dimension("J"))
        for load in system.loads:
            along = self._dimensions("load of the system", place)
            along.check(load.force, divided(dimension("J"), along.span(load.displacement) or dimension("1")))

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
        if self.gravity_place and not (self.masses or self.rods or self.links):
            raise ModelError(
                "gravity is set, but only robot.point_mass, robot.body and robot.link weigh anything; an energy states "
                "its own. Write it in robot.potential_energy(...), and remove this line.",
                self.gravity_place,
            )
        cost = self._term(state_cost, "state cost", "qv", place)
        self._dimensions("state cost", place, bare=True).check_arguments(cost)
        speeds = self.velocities
        numbers = numeric_task(
            [joint.symbol.name for joint in self.joints] + [speed.symbol.name for speed in speeds],
            [joint.limit for joint in self.joints] + [speed.limit for speed in speeds],
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

    def _mass(self, mass: object, position: object, place: Place) -> tuple[Expr, list[Expr]]:
        """Kinetic energy and weight of a mass at a position; both, checked."""
        if not isinstance(position, tuple | list | Matrix) or len(position) not in (2, 3):
            raise ModelError(
                f"the position is {position!r}; write (x, height) or (x, y, height), the height last.", place
            )
        kilograms = self._smooth(mass, "mass", "q", place, "kg")
        where = [self._smooth(component, "position", "q", place, "m") for component in position]
        self.kinetic.append(Energy(kilograms * sum(self._velocity(each) ** 2 for each in where) / 2, place))
        self.potential.append(Energy(kilograms * self.downward_acceleration * where[-1], place))
        return kilograms, where
