"""Forces, losses, motors and flows: the methods of `Robot` that state what acts on the joints.

To add a kind of actuator, add a method to `Forces`. It checks the units of its arguments with `Terms`, then adds loads
and energies. A force must be affine in the inputs, and a loss must take energy at every rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sympy import Abs, Expr, Max, Symbol, exp, log, sqrt, tanh

from modelgen.errors import ModelError, mistake
from modelgen.statement.checker import shown
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import Commanded, Energy, Flow, Load
from modelgen.statement.joints import UNITS
from modelgen.statement.terms import Terms, Varying, per
from modelgen.units import Dimension, dimension, divided

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem

UNITS_SECOND = {"revolute": "rad/s^2", "prismatic": "m/s^2"}
BEYOND_LAG = 1.01  # limit of a lagged input, as a multiple of the input's, so that it is never reached
NARROWEST_STOP = 1e-4  # smallest width of an end stop, as a share of the distance between the two stops


class Forces(Declarations):
    """Energies and loads of a robot, and the methods that add to them. Each call records one line of a model file.

    Every method raises ModelError for an argument whose unit or sign is wrong, or which contains a symbol that is not
    allowed there.
    """

    def __init__(self, name: str, description: str = "") -> None:
        super().__init__(name, description)
        self._check = Terms(self)
        self.kinetic: list[Energy] = []
        self.potential: list[Energy] = []
        self.loads: list[Load] = []
        self.commanded: list[Commanded] = []
        self.system: MechanicalSystem | None = None

    @property
    def varying(self) -> list[Varying]:
        """The coefficients that contain coordinates, or that may be least between the corners of the bounds."""
        return self._check.varying

    def apply(self, displacement: object, force: object) -> None:
        """Add a force (N) along a coordinate or displacement, or a torque (N m) along an angle.

        The displacement may be any expression of the coordinates: the work is force * d(displacement).
        """
        along, span = self._check.along(displacement, turns=True)
        self.loads.append(Load(along, self._check.term(force, "applied force", "qvzu", per("J", span))))

    def damp(self, displacement: object, coefficient: object) -> None:
        """Add viscous friction: the force -coefficient * rate along a coordinate (N s/m or N m s)."""
        along, span = self._check.along(displacement, turns=True)
        resistance = self._check.coefficient(coefficient, "damping coefficient", "q", per("J s", span, 2))
        self.loads.append(Load(along, -resistance * self._check.velocity(along)))

    def dry_friction(self, displacement: object, force: object, *, smoothing: object) -> None:
        """Add Coulomb friction: `force` (N or N m) against the motion, which fades at rates below `smoothing`.

        The force is -force * tanh(rate / smoothing). It is smooth: under a small force the joint creeps and does not
        stick.
        """
        along, span = self._check.along(displacement, turns=True)
        friction = self._check.coefficient(force, "friction", "q", per("J", span))
        fading = self._check.coefficient(smoothing, "smoothing rate", "", per("Hz", span, -1), zero=False)
        self.loads.append(Load(along, -friction * tanh(self._check.velocity(along) / fading)))

    def spring(self, displacement: object, stiffness: object, rest: object = 0) -> None:
        """Add a linear spring along a coordinate (N/m or N m), relaxed at `rest`."""
        along, span = self._check.along(displacement)
        stretch = along - self._check.term(rest, "rest position", "q", span)
        hardness = self._check.term(stiffness, "stiffness", "q", per("J", span, 2))
        self.potential.append(Energy(hardness * stretch**2 / 2, elastic=True))

    def coupling(
        self, first: object, second: object, *, stiffness: object, ratio: object = 1, damping: object = 0
    ) -> None:
        """Add a belt, shaft or gear between two coordinates that pulls them to first = ratio * second.

        stiffness (N/m or N m) and damping act along first - ratio * second. A rigid coupling needs no method: write
        ratio * second in place of the first coordinate.
        """
        (one, span), (other, other_span) = self._check.along(first), self._check.along(second)
        ratio_unit = divided(span, other_span) if span and other_span else None
        gap = one - self._check.term(ratio, "ratio", "", ratio_unit) * other
        if one == other:
            raise mistake(f"{one} is coupled with itself; name two coordinates.")
        hardness = self._check.coefficient(stiffness, "stiffness", "q", per("J", span, 2))
        loss = self._check.coefficient(damping, "damping coefficient", "q", per("J s", span, 2))
        self.potential.append(Energy(hardness * gap**2 / 2, elastic=True))
        if loss != 0:
            self.loads.append(Load(gap, -loss * self._check.velocity(gap)))

    def end_stops(
        self, displacement: object, limit: object, stiffness: object, *, width: object, damping: object = 0
    ) -> None:
        """Add elastic stops at +-limit, or at limit=(lower, upper), that push back with `stiffness` beyond it.

        The force rises smoothly from 0 to stiffness * depth over about `width` around the limit. The damping (N s/m
        or N m s) acts only in contact. At the depth y beyond the limit, the inward force is
        stiffness * width * log(1 + exp(y / width)) + damping * dy/dt / (1 + exp(-y / width)).
        """
        along, span = self._check.along(displacement)
        lower, upper = _stop_positions(self._check, limit, span)
        hardness = self._check.coefficient(stiffness, "stiffness", "", per("J", span, 2))
        loss = self._check.coefficient(damping, "damping coefficient", "", per("J s", span, 2))
        bend = self._check.coefficient(width, "width", "", span, zero=False)
        least = NARROWEST_STOP * float(self._check.nominal(upper - lower))
        if self._check.nominal(bend) < least:
            raise mistake(
                f"the width {float(self._check.nominal(bend)):g} is too small for the derivatives of the force; write "
                f"width={least:.2g} or more, which is {NARROWEST_STOP:g} of the distance between the stops."
            )
        for depth in (along - upper, lower - along):
            # log(1 + exp(y / width)) and 1 / (1 + exp(-y / width)) in forms that do not overflow.
            bent = Max(depth, 0) + bend * log(1 + exp(-Abs(depth) / bend))
            contact = (1 + tanh(depth / (2 * bend))) / 2
            push = hardness * bent + loss * contact * self._check.velocity(depth)
            self.loads.append(Load(depth, -push))

    def rotor(self, displacement: object, inertia: object, *, gear: object = 1) -> None:
        """Add the inertia (kg m^2) of a rotor that turns `gear` rad per unit of the displacement.

        Only the spin counts. Where a body carries the rotor, add the rotor's mass to that body.
        """
        along, span = self._check.along(displacement)
        speed = _gear_ratio(self._check, gear, span) * self._check.velocity(along)
        moment = self._check.coefficient(inertia, "rotor inertia", "q", "kg m^2")
        self.kinetic.append(Energy(moment * speed**2 / 2))

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
        """Add a motor that is commanded by its shaft torque (N m), behind a gear of `gear` rad per displacement unit.

        corner_speed (rad/s, of the shaft): the torque falls by 1 / sqrt(1 + (speed / corner_speed)^2), so that the
        power never exceeds torque * corner_speed. The force stays affine in the input.
        """
        along, span = self._check.along(displacement)
        ratio = _gear_ratio(self._check, gear, span)
        shaft_torque = self._check.term(torque, "torque", "qvzu", "N m")
        if corner_speed is not None:
            corner = self._check.coefficient(corner_speed, "corner speed", "", "rad/s", zero=False)
            shaft_torque = shaft_torque / sqrt(1 + (ratio * self._check.velocity(along) / corner) ** 2)
        self._add_geared(along, shaft_torque, ratio, gear_efficiency, rotor_inertia)

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
        of ratio k). Its torque is efficiency * torque_constant * (voltage - back_emf * motor speed) / resistance.
        The rotor's inertia takes its share of the torque, and the gear passes the fraction `gear_efficiency` of the
        rest. resistance in Ohm, torque_constant in N m/A, back_emf in V s/rad (default: the torque constant).
        """
        along, span = self._check.along(displacement)
        ratio = _gear_ratio(self._check, gear, span)
        constant = self._check.term(torque_constant, "torque constant", "q", "N m/A")
        emf = constant if back_emf is None else self._check.term(back_emf, "back-EMF constant", "q", "V s/rad")
        ohms = self._check.coefficient(resistance, "resistance", "", "Ohm", zero=False)
        across = self._check.term(voltage, "voltage", "qvzu", "V") - emf * (ratio * self._check.velocity(along))
        shaft_torque = (
            self._check.coefficient(efficiency, "efficiency", "q", "1", most=1.0) * constant * (across / ohms)
        )
        self._add_geared(along, shaft_torque, ratio, gear_efficiency, rotor_inertia)

    def flow(self, state: object, rate: object) -> None:
        """Set the rate of change of a state of first order, in its unit per second; affine in the inputs.

        Of a coordinate: a velocity that the inputs command, as of a car whose speed and steering are inputs. Then every
        coordinate has a flow, and the robot neither masses nor forces.
        """
        joints = {joint.symbol: joint for joint in self.joints if joint.kind != "quaternion"}
        units = {joint.symbol: UNITS[joint.kind] for joint in joints.values()}
        units |= {declared.symbol: declared.unit for declared in self.internal}
        symbol = next((symbol for symbol in units if symbol == state), None)
        if symbol is None:
            names = ", ".join(f"`{known}`" for known in units) or "none"
            raise mistake(
                f"robot.flow is called for {shown(state)}, which is neither a state of first order nor a coordinate of "
                f'this robot; it has {names}. Write current = robot.state("current", limit=..., unit="A") first.'
            )
        earlier = next((flow for flow in self.flows if flow.state == symbol), None)
        if earlier:
            raise mistake(f"the flow of `{symbol}` is set twice, first at {earlier.place}; write one sum.")
        if symbol in joints and joints[symbol].rate_limit is not None:
            raise ModelError(
                f"the coordinate `{symbol}` has a rate_limit, but robot.flow gives its rate. Leave rate_limit out.",
                joints[symbol].place,
            )
        unit = divided(dimension(units[symbol]), dimension("s")) if units[symbol] else None
        self.flows.append(Flow(symbol, self._check.term(rate, f"flow of `{symbol}`", "qvzu", unit)))

    def lag(self, command: object, *, seconds: object, name: str | None = None) -> Symbol:
        """Let an input follow its command with a time constant (s): d state/dt = (command - state) / seconds.

        The result is a state of first order with the input's unit, named NAME_lagged. Every later force that contains
        the input acts with this state. seconds: a number or a parameter. No force may contain the input before.
        """
        declared = next((declared for declared in self.inputs if declared.symbol == command), None)
        if declared is None:
            raise mistake(
                f"robot.lag is called for {shown(command)}, which is not an input. Write the return value of "
                "robot.input(...)."
            )
        if declared.symbol in self.lagged:
            raise mistake(f"the input `{command}` has a lag already; keep one of the two.")
        terms = [(load.force, load.place) for load in self.loads] + [(flow.rate, flow.place) for flow in self.flows]
        terms += [(each.acceleration, each.place) for each in self.commanded]
        terms += [(term, self.system.place) for term in self.system.terms] if self.system else []
        for term, place in terms:
            if declared.symbol in term.free_symbols:
                raise mistake(
                    f"the input `{command}` acts already at {place}, without the lag. Move robot.lag directly below "
                    "robot.input."
                )
        constant = self._check.coefficient(seconds, "time constant of the lag", "", "s", zero=False)
        largest = BEYOND_LAG * max(map(abs, declared.range))
        meaning = f"{declared.symbol} as it acts, after its lag"
        chosen = f"{declared.symbol}_lagged" if name is None else name
        state = self.state(chosen, limit=largest, unit=declared.unit, meaning=meaning)
        self.flows.append(Flow(state, (declared.symbol - state) / constant))
        self.lagged[declared.symbol] = state
        return state

    def accelerate(self, coordinate: object, command: object) -> None:
        """Command the acceleration (m/s^2 or rad/s^2) of a coordinate, as a stepper or a stiff servo does.

        The command is affine in the inputs. The force that the drive needs for it is the function `reaction` of the
        built robot; whatever force acts along the coordinate changes this force, and not the motion.
        """
        joint = next(
            (joint for joint in self.joints if joint.symbol == coordinate and joint.kind in UNITS_SECOND), None
        )
        if joint is None:
            raise mistake(
                f"robot.accelerate is called for {shown(coordinate)}. Write the return value of robot.prismatic(...) "
                "or robot.revolute(...): a coordinate whose acceleration is commanded."
            )
        if any(earlier.coordinate == joint.symbol for earlier in self.commanded):
            raise mistake(f"the acceleration of `{coordinate}` is commanded twice; write one sum.")
        term = self._check.term(command, f"acceleration of `{coordinate}`", "qvzu", UNITS_SECOND[joint.kind])
        self.commanded.append(Commanded(joint.symbol, term))

    def _add_geared(
        self, along: Expr, shaft_torque: Expr, ratio: Expr, gear_efficiency: object, rotor_inertia: object
    ) -> None:
        """Add a shaft torque behind a gear. The gear passes a fraction of it and of the rotor's inertial torque."""
        passed = self._check.coefficient(gear_efficiency, "gear efficiency", "q", "1", most=1.0)
        inertia = self._check.coefficient(rotor_inertia, "rotor inertia", "q", "kg m^2")
        if inertia != 0:
            speed = ratio * self._check.velocity(along)
            self.kinetic.append(Energy(passed * inertia * speed**2 / 2))
        self.loads.append(Load(along, passed * ratio * shaft_torque))


def _stop_positions(check: Terms, limit: object, span: Dimension | None) -> tuple[Expr, Expr]:
    """Positions of the two end stops, the lower one first."""
    if not isinstance(limit, tuple | list):
        upper = check.term(limit, "limit", "", span)
        lower = -upper
    elif len(limit) == 2:
        lower, upper = (check.term(end, "limit", "", span) for end in limit)
    else:
        raise mistake(f"the limit of the end stops is {limit!r}; write limit or (lower, upper).")
    if not check.nominal(upper - lower) > 0:
        raise mistake(f"the end stops are at ({lower}, {upper}), the larger first; write (lower, upper).")
    return lower, upper


def _gear_ratio(check: Terms, gear: object, span: Dimension | None) -> Expr:
    """Radians that a shaft turns per unit of a displacement with the dimension `span`."""
    ratio = check.term(gear, "gear", "q", per("1", span))
    if ratio == 0:
        raise mistake("the gear is 0, so that the shaft never turns; write its radians per unit.")
    return ratio
