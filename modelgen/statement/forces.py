"""The part of `Robot` that states forces, losses and motors."""

from __future__ import annotations

from modelgen.errors import calling_place
from modelgen.statement import actuators
from modelgen.statement.declarations import Declarations
from modelgen.statement.declared import Contribution, Energy, Load
from modelgen.statement.terms import Terms


class Forces:
    """What acts on the joints. Every method records one line of a model file."""

    _declared: Declarations  # what a force may be made of

    def __init__(self) -> None:
        self.kinetic: list[Energy] = []
        self.potential: list[Energy] = []
        self.loads: list[Load] = []

    def apply(self, displacement: object, force: object) -> None:
        """Add a force (N) along a coordinate or displacement, or a torque (N m) along an angle.

        The displacement may be any expression of the coordinates: the work is force * d(displacement).
        """
        self._add(actuators.applied(self._check(), displacement, force))

    def damp(self, displacement: object, coefficient: object) -> None:
        """Add viscous friction: the force -coefficient * rate along a coordinate (N s/m or N m s)."""
        self._add(actuators.damping(self._check(), displacement, coefficient))

    def dry_friction(self, displacement: object, force: object, *, smoothing: object) -> None:
        """Add Coulomb friction: `force` (N or N m) against the motion, faded out at rates below `smoothing`.

        The force is -force * tanh(rate / smoothing): smooth, so that it creeps instead of sticking.
        """
        self._add(actuators.dry_friction(self._check(), displacement, force, smoothing))

    def spring(self, displacement: object, stiffness: object, rest: object = 0) -> None:
        """Add a linear spring along a coordinate (N/m or N m), relaxed at `rest`."""
        self._add(actuators.spring(self._check(), displacement, stiffness, rest))

    def coupling(
        self, first: object, second: object, *, stiffness: object, ratio: object = 1, damping: object = 0
    ) -> None:
        """Add a belt, shaft or gear between two coordinates that pulls them to first = ratio * second.

        stiffness (N/m or N m) and damping act along first - ratio * second. A coupling without give needs no
        method: write ratio * second wherever the first coordinate would stand.
        """
        self._add(actuators.coupling(self._check(), first, second, stiffness, ratio, damping))

    def end_stops(
        self, displacement: object, limit: object, stiffness: object, *, width: object, damping: object = 0
    ) -> None:
        """Add elastic stops at +-limit, or at limit=(lower, upper), that push back with `stiffness` beyond it.

        The force bends from nothing to stiffness * depth within some `width` around the limit, so that it is
        smooth; damping (N s/m or N m s) acts in contact only. With the depth y beyond the limit the force inward is
        stiffness * width * log(1 + exp(y / width)) + damping * dy/dt / (1 + exp(-y / width)).
        """
        self._add(actuators.end_stops(self._check(), displacement, limit, stiffness, width, damping))

    def rotor(self, displacement: object, inertia: object, *, gear: object = 1) -> None:
        """Add the inertia (kg m^2) of a rotor that turns `gear` rad per unit of the displacement.

        Only its spin counts: where the rotor is carried along, add its mass to the body that carries it.
        """
        self._add(actuators.rotor(self._check(), displacement, inertia, gear))

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
        check = self._check()
        self._add(actuators.motor(check, displacement, torque, gear, gear_efficiency, rotor_inertia, corner_speed))

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
        stated = dict(resistance=resistance, torque_constant=torque_constant, back_emf=back_emf, gear=gear)
        stated |= dict(efficiency=efficiency, gear_efficiency=gear_efficiency, rotor_inertia=rotor_inertia)
        self._add(actuators.dc_motor(self._check(), displacement, voltage, stated))

    def _check(self) -> Terms:
        """Checks expressions for the line of the model file that is being executed."""
        return Terms(self._declared, calling_place())

    def _add(self, contribution: Contribution) -> None:
        self.kinetic += contribution.kinetic
        self.potential += contribution.potential
        self.loads += contribution.loads
