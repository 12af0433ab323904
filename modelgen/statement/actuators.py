"""Forces, actuators and losses of a robot: what acts along a coordinate or along any expression of them.

Each method is one line of a model file. A loss takes energy at every rate; an actuator is affine in its input.
"""

from __future__ import annotations

from sympy import Abs, Expr, Float, Max, exp, log, sqrt, tanh

from modelgen.errors import ModelError, Place, calling_place
from modelgen.statement.declared import Energy, Load
from modelgen.statement.dimensions import per
from modelgen.statement.statement import Statement
from modelgen.statement.units import Dimension, divided


class Actuators(Statement):
    """The part of `Robot` that pushes, brakes and couples."""

    __slots__ = ()

    def apply(self, displacement: object, force: object) -> None:
        """Add a force (N) along a coordinate or displacement, or a torque (N m) along an angle.

        The displacement may be any expression of the coordinates: the work is force * d(displacement).
        """
        place = calling_place()
        along, span = self._along(displacement, place)
        self.loads.append(Load(along, self._term(force, "applied force", "qvu", place, per("J", span)), place))

    def damp(self, displacement: object, coefficient: object) -> None:
        """Add viscous friction: the force -coefficient * rate along a coordinate (N s/m or N m s)."""
        place = calling_place()
        along, span = self._along(displacement, place)
        resistance = self._coefficient(coefficient, "damping coefficient", "q", place, per("J s", span, 2))
        self.loads.append(Load(along, -resistance * self._velocity(along), place))

    def dry_friction(self, displacement: object, force: object, *, smoothing: object) -> None:
        """Add Coulomb friction: `force` (N or N m) against the motion, faded out at rates below `smoothing`.

        The force is -force * tanh(rate / smoothing): smooth, so that it creeps instead of sticking.
        """
        place = calling_place()
        along, span = self._along(displacement, place)
        friction = self._coefficient(force, "friction", "q", place, per("J", span))
        fading = self._velocity(along) / self._coefficient(
            smoothing, "smoothing rate", "", place, per("Hz", span, -1), zero=False
        )
        self.loads.append(Load(along, -friction * tanh(fading), place))

    def spring(self, displacement: object, stiffness: object, rest: object = 0) -> None:
        """Add a linear spring along a coordinate (N/m or N m), relaxed at `rest`."""
        place = calling_place()
        along, span = self._along(displacement, place)
        stretch = along - self._term(rest, "rest position", "q", place, span)
        hardness = self._term(stiffness, "stiffness", "q", place, per("J", span, 2))
        self.potential.append(Energy(hardness * stretch**2 / 2, place))

    def coupling(
        self, first: object, second: object, *, stiffness: object, ratio: object = 1, damping: object = 0
    ) -> None:
        """Add a belt, shaft or gear between two coordinates that pulls them to first = ratio * second.

        stiffness (N/m or N m) and damping act along first - ratio * second. A coupling without give needs no
        method: write ratio * second wherever the first coordinate would stand.
        """
        place = calling_place()
        (one, span), (other, reach) = self._along(first, place), self._along(second, place)
        fits = divided(span, reach) if span and reach else None
        gap = one - self._term(ratio, "ratio", "", place, fits) * other
        hardness = self._term(stiffness, "stiffness", "q", place, per("J", span, 2))
        self.potential.append(Energy(hardness * gap**2 / 2, place))
        loss = self._coefficient(damping, "damping coefficient", "q", place, per("J s", span, 2))
        if loss != 0:
            self.loads.append(Load(gap, -loss * self._velocity(gap), place))

    def end_stops(
        self, displacement: object, limit: object, stiffness: object, *, width: object, damping: object = 0
    ) -> None:
        """Add elastic stops at +-limit, or at limit=(lower, upper), that push back with `stiffness` beyond it.

        The force bends from nothing to stiffness * depth within some `width` around the limit, so that it is
        smooth; damping (N s/m or N m s) acts in contact only. With the depth y beyond the limit the force inward is
        stiffness * width * log(1 + exp(y / width)) + damping * dy/dt / (1 + exp(-y / width)).
        """
        place = calling_place()
        along, span = self._along(displacement, place)
        if not isinstance(limit, tuple | list):
            upper = self._term(limit, "limit", "", place, span)
            lower = -upper
        elif len(limit) == 2:
            lower, upper = (self._term(end, "limit", "", place, span) for end in limit)
        else:
            raise ModelError(f"the limit of the end stops is {limit!r}; write limit or (lower, upper).", place)
        nominal = {constant.symbol: Float(constant.value) for constant in self.constants}
        if not (upper - lower).xreplace(nominal) > 0:
            raise ModelError(f"the end stops are at ({lower}, {upper}), the larger first; write (lower, upper).", place)
        hardness = self._term(stiffness, "stiffness", "", place, per("J", span, 2))
        loss = self._coefficient(damping, "damping coefficient", "", place, per("J s", span, 2))
        bend = self._coefficient(width, "width", "", place, span, zero=False)
        for depth in (along - upper, lower - along):
            # As the doc string has it, in a form that does not overflow.
            bent = Max(depth, 0) + bend * log(1 + exp(-Abs(depth) / bend))
            contact = (1 + tanh(depth / (2 * bend))) / 2
            push = hardness * bent + loss * contact * self._velocity(depth)
            self.loads.append(Load(depth, -push, place))

    def rotor(self, displacement: object, inertia: object, *, gear: object = 1) -> None:
        """Add the inertia (kg m^2) of a rotor that turns `gear` rad per unit of the displacement.

        Only its spin counts: where the rotor is carried along, add its mass to the body that carries it.
        """
        place = calling_place()
        along, span = self._along(displacement, place)
        speed = self._term(gear, "gear", "q", place, per("1", span)) * self._velocity(along)
        moment = self._coefficient(inertia, "rotor inertia", "q", place, "kg m^2")
        self.kinetic.append(Energy(moment * speed**2 / 2, place))

    def motor(
        self,
        displacement: object,
        torque: object,
        *,
        gear: object = 1,
        gear_efficiency: object = 1,
        rotor_inertia: object = 0,
        corner_speed: object | None = None,
    ) -> None:
        """Add a motor commanded by its shaft's torque (N m), behind a gear of `gear` rad per unit of displacement.

        corner_speed (rad/s, of the shaft): the torque falls off by 1 / sqrt(1 + (speed / corner_speed)^2), so that
        the power never exceeds torque * corner_speed; the force stays affine in the input.
        """
        place = calling_place()
        along, span = self._along(displacement, place)
        ratio = self._term(gear, "gear", "q", place, per("1", span))
        given = self._term(torque, "torque", "qvu", place, "N m")
        if corner_speed is not None:
            corner = self._coefficient(corner_speed, "corner speed", "", place, "rad/s", zero=False)
            given = given / sqrt(1 + (ratio * self._velocity(along) / corner) ** 2)
        passed = self._coefficient(gear_efficiency, "gear efficiency", "q", place, "1", most=1.0)
        self._drive(along, given, ratio, passed, rotor_inertia, place)

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
        along, span = self._along(displacement, place)
        ratio = self._term(gear, "gear", "q", place, per("1", span))
        constant = self._term(torque_constant, "torque constant", "q", place, "N m/A")
        emf = constant if back_emf is None else self._term(back_emf, "back-EMF constant", "q", place, "V s/rad")
        ohms = self._coefficient(resistance, "resistance", "", place, "Ohm", zero=False)
        current = (self._term(voltage, "voltage", "qvu", place, "V") - emf * (ratio * self._velocity(along))) / ohms
        torque = self._coefficient(efficiency, "efficiency", "q", place, "1", most=1.0) * constant * current
        passed = self._coefficient(gear_efficiency, "gear efficiency", "q", place, "1", most=1.0)
        self._drive(along, torque, ratio, passed, rotor_inertia, place)

    def _drive(self, along: Expr, torque: Expr, ratio: Expr, passed: Expr, inertia: object, place: Place) -> None:
        """A shaft's torque behind a gear that passes a fraction of it, and of what its rotor needs."""
        rotor = self._coefficient(inertia, "rotor inertia", "q", place, "kg m^2")
        self.loads.append(Load(along, passed * ratio * torque, place))
        if rotor != 0:
            speed = ratio * self._velocity(along)
            self.kinetic.append(Energy(passed * rotor * speed**2 / 2, place))

    def _along(self, displacement: object, place: Place) -> tuple[Expr, Dimension | None]:
        """A checked expression that contains a coordinate, and its dimension where it is known."""
        along = self._smooth(displacement, "displacement", "q", place)
        if not along.free_symbols & {joint.symbol for joint in self.joints}:
            raise ModelError(
                f"a force is applied along {along}, which contains no coordinate. "
                "Write the coordinate first: robot.apply(coordinate, force).",
                place,
            )
        return along, self._dimensions("displacement", place).span(along)
