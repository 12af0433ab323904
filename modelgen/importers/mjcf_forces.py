"""Forces of a compiled MJCF file: joint springs, tendons of joints, equality constraints, and actuators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.polynomial import Polynomial

from modelgen.errors import ModelError, Place, suggestion
from modelgen.importers.mechanism import Actuator, Coupling, Linear, Passive

if TYPE_CHECKING:
    from pathlib import Path

HINGED = 2  # the smallest number of MuJoCo's types of joints with one coordinate
RATE = 10.0  # of the coordinate, for the command of a velocity servo without limits
FASTEST = 0.1  # s, in which a motor without limits reaches RATE: the guess of its limit
PLACES = {
    "mjTRN_TENDON": "spatial tendons",
    "mjTRN_SITE": "sites with a reference site, a bias or no motion",
    "mjTRN_BODY": "bodies",
}
PARTS = {"mjDYN": "state", "mjGAIN": "gain", "mjBIAS": "bias"}
PLAIN = "mjGAIN_FIXED", ("mjBIAS_NONE", "mjBIAS_AFFINE")


class Compiled(Protocol):
    """What is read of the compiled file."""

    path: Path
    mujoco: Any
    spec: Any
    model: Any

    def leave_out(self, what: str, *elements: Any) -> None: ...
    def place(self, element: Any) -> Place: ...
    def name(self, kind: str, index: int, otherwise: str = "") -> str: ...


@dataclass(frozen=True)
class Command:
    """An input and its actuator, by number. force: the input is the force that the actuator exerts, not its command."""

    actuator: int
    force: bool


@dataclass
class Forces:
    """Actuators with the commands of their inputs, springs and dampers, couplings."""

    actuators: list[Actuator] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    at_sites: dict[str, int] = field(default_factory=dict)  # name of an actuator at a site -> its number
    passive: list[Passive] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    fastest: float = 0.0  # 1/s


def read_forces(
    compiled: Compiled,
    moving: Mapping[int, str],
    passive: Collection[str],
    command: Collection[str],
    warn: Callable[[str], None],
) -> Forces:
    """The forces on the joints `moving` (number -> name). passive, command: patterns of joints and actuators."""
    reader = _Reader(compiled, moving)
    forces = Forces()
    reader.springs(forces)
    reader.tendons(forces)
    reader.equalities(forces)
    reader.actuators(forces, passive, command, warn)
    forces.fastest = reader.fastest(forces)
    return forces


@dataclass
class _Sum:
    """A sum of moving joints and the constant part of joints that are held."""

    along: Linear
    constant: float


class _Reader:
    def __init__(self, compiled: Compiled, moving: Mapping[int, str]) -> None:
        self._compiled, self._model, self._moving = compiled, compiled.model, moving
        enums = compiled.mujoco
        self._kinds = {
            kind: {int(value): name for name, value in getattr(enums, kind).__members__.items()}
            for kind in ("mjtTrn", "mjtGain", "mjtBias", "mjtDyn", "mjtEq", "mjtWrap")
        }

    def _off(self, *bits: str) -> bool:
        flags = self._compiled.mujoco.mjtDisableBit
        return any(int(self._model.opt.disableflags) & int(getattr(flags, bit)) for bit in bits)

    def _sum(self, terms: Mapping[int, float]) -> _Sum:
        """A sum of joints by number; joints that are held are in their reference position."""
        model = self._model
        held = sum(
            coefficient * float(model.qpos0[model.jnt_qposadr[joint]])
            for joint, coefficient in terms.items()
            if joint not in self._moving
        )
        along = tuple((self._moving[joint], size) for joint, size in terms.items() if joint in self._moving and size)
        return _Sum(along, held)

    def springs(self, forces: Forces) -> None:
        """Springs of joints."""
        model = self._model
        for joint in self._moving:
            stiffness = float(model.jnt_stiffness[joint])
            if stiffness and not self._off("mjDSBL_SPRING"):
                rest = float(model.qpos_spring[model.jnt_qposadr[joint]])
                forces.passive.append(Passive(self._sum({joint: 1.0}).along, stiffness, rest))

    def _tendon(self, tendon: int) -> dict[int, float] | None:
        """The coefficients of the joints of a fixed tendon; None for a spatial tendon."""
        model, terms = self._model, dict[int, float]()
        first = int(model.tendon_adr[tendon])
        for wrap in range(first, first + int(model.tendon_num[tendon])):
            if self._kinds["mjtWrap"][int(model.wrap_type[wrap])] != "mjWRAP_JOINT":
                return None
            joint = int(model.wrap_objid[wrap])
            terms[joint] = terms.get(joint, 0.0) + float(model.wrap_prm[wrap])
        return terms

    def tendons(self, forces: Forces) -> None:
        """Springs, dampers, friction and inertia of fixed tendons."""
        model, compiled = self._model, self._compiled
        elements = {tendon.id: tendon for tendon in compiled.spec.tendons}
        for tendon in range(model.ntendon):
            terms = self._tendon(tendon)
            if terms is None:
                compiled.leave_out("spatial tendons", elements[tendon])
                continue
            if model.tendon_limited[tendon]:
                compiled.leave_out("ranges of tendons", elements[tendon])
            lower, upper = model.tendon_lengthspring[tendon]
            stiffness = 0.0 if self._off("mjDSBL_SPRING") else float(model.tendon_stiffness[tendon])
            curved = np.abs([*model.tendon_stiffnesspoly[tendon], *model.tendon_dampingpoly[tendon]]).max(initial=0)
            if (stiffness and lower != upper) or curved or model.tendon_springyield[tendon]:
                compiled.leave_out("springs and dampers of tendons that are not linear", elements[tendon])
                stiffness = 0.0 if lower != upper else stiffness
            length = self._sum(terms)
            losses = dict(
                damping=0.0 if self._off("mjDSBL_DAMPER") else float(model.tendon_damping[tendon]),
                friction=float(model.tendon_frictionloss[tendon]),
                armature=float(model.tendon_armature[tendon]),
            )
            if length.along and (stiffness or any(losses.values())):
                forces.passive.append(Passive(length.along, stiffness, float(lower) - length.constant, **losses))

    def equalities(self, forces: Forces) -> None:
        """Couplings of joints and of fixed tendons. Raises ModelError for a closed loop or weld."""
        model, compiled = self._model, self._compiled
        elements = {equality.id: equality for equality in compiled.spec.equalities}
        for index in range(model.neq):
            if not model.eq_active0[index]:
                continue
            kind = self._kinds["mjtEq"][int(model.eq_type[index])].removeprefix("mjEQ_").lower()
            if kind not in ("joint", "tendon"):
                raise ModelError(
                    f"<equality> has a <{kind}>, which closes a loop. A model file holds a tree: remove it from a "
                    "copy of the file, and add a stiff spring in the model file if necessary.",
                    compiled.place(elements[index]),
                )
            sides = [self._side(kind, int(number)) for number in (model.eq_obj1id[index], model.eq_obj2id[index])]
            if any(side is None for side in sides):
                compiled.leave_out("equality constraints of spatial tendons", elements[index])
                continue
            self._couple(forces, sides, Polynomial(model.eq_data[index, :5]), elements[index])

    def _side(self, kind: str, index: int) -> tuple[_Sum, float] | None:
        """One side of an equality and its reference value; None for a spatial tendon."""
        model = self._model
        if index < 0:
            return _Sum((), 0.0), 0.0
        if kind == "joint":
            return self._sum({index: 1.0}), float(model.qpos0[model.jnt_qposadr[index]])
        terms = self._tendon(index)
        return None if terms is None else (self._sum(terms), float(model.tendon_length0[index]))

    def _couple(self, forces: Forces, sides: list[Any], polynomial: Polynomial, element: Any) -> None:
        """Add first - first0 = polynomial(second - second0)."""
        (first, first_reference), (second, second_reference) = sides
        value = first_reference + polynomial(Polynomial([second.constant - second_reference, 1.0])) - first.constant
        coefficients = tuple(float(each) for each in np.trim_zeros(value.coef, "b"))
        if first.along and not second.along:
            constant = float(value(0.0))
            forces.couplings.append(Coupling(first.along, (), (constant,)))
        elif first.along:
            forces.couplings.append(Coupling(first.along, second.along, coefficients or (0.0,)))
        elif second.along:
            self._compiled.leave_out("equality constraints whose first joint is held", element)

    def actuators(
        self, forces: Forces, passive: Collection[str], command: Collection[str], warn: Callable[[str], None]
    ) -> None:
        """Actuators with a plain gain and an affine bias. Others are left out."""
        elements = {actuator.id: actuator for actuator in self._compiled.spec.actuators}
        names = list[str]()
        for index in range(self._model.nactuator):
            name = self._actuator_name(index)
            names.append(name if name not in names else f"{name}_{index}")
        for option, patterns in (("--passive", passive), ("--command", command)):
            known = [*names, *(self._moving.values() if option == "--passive" else ())]
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in known):
                    words = f"`{pattern}` of {option} matches no actuator or joint.{suggestion(pattern, known)}"
                    raise ModelError(words, Place(str(self._compiled.path), 1))
        by_force, unlimited = list[str](), list[str]()
        if self._off("mjDSBL_ACTUATION"):
            return
        for index, name in enumerate(names):
            length = self._transmission(index, elements[index])
            if length is None or not self._is_plain(index, elements[index]):
                continue
            if not length.along:
                forces.at_sites[name] = index
            if any(fnmatchcase(each, pattern) for pattern in passive for each in (name, *dict(length.along))):
                continue
            self._note_lag(index, elements[index])
            reader = _ActuatorReader(self._model, index, name, length, self._lengths(length))
            kept = any(fnmatchcase(name, pattern) for pattern in command)
            actuator, force = reader.read(kept)
            by_force += [name] * force
            unlimited += [name] * reader.guessed
            forces.actuators.append(actuator)
            forces.commands.append(Command(index, force))
            forces.passive += reader.losses()
        if by_force:
            warn(
                f"{', '.join(by_force)}: servos whose force is limited (forcerange, actuatorfrcrange). Their input is "
                "the force here, within its limits; the control law stays outside. --command PATTERN keeps the "
                "servo's command as the input, and leaves out the limit."
            )
        if unlimited:
            warn(f"{', '.join(unlimited)}: neither control nor force has a limit; the one here is a guess. Correct it.")

    def fastest(self, forces: Forces) -> float:
        """The largest rate of a joint alone under its springs and dampers, 1/s, in the reference position."""
        model, stiffness, damping = self._model, dict[str, float](), dict[str, float]()
        pulls = [(passive.along, passive.stiffness, passive.damping) for passive in forces.passive]
        pulls += [(actuator.along, -actuator.bias[1], -actuator.bias[2]) for actuator in forces.actuators]
        for along, hard, lossy in pulls:
            for name, size in along:
                stiffness[name] = stiffness.get(name, 0.0) + hard * size**2
                damping[name] = damping.get(name, 0.0) + lossy * size**2
        dofs = {name: int(model.jnt_dofadr[joint]) for joint, name in self._moving.items()}
        rates = [0.0]
        for name, dof in dofs.items():
            mobility = float(model.dof_invweight0[dof])
            rates.append((damping.get(name, 0.0) + float(model.dof_damping[dof])) * mobility)
            rates.append(float(np.sqrt(max(stiffness.get(name, 0.0), 0.0) * mobility)))
        return max(rates)

    def _actuator_name(self, index: int) -> str:
        target = int(self._model.actuator_trnid[index, 0])
        joint = self._moving.get(target, "") if "JOINT" in self._transmission_kind(index) else ""
        return self._compiled.name("actuator", index, f"{joint}_motor" if joint else "")

    def _transmission_kind(self, index: int) -> str:
        return str(self._kinds["mjtTrn"][int(self._model.actuator_trntype[index])])

    def _transmission(self, index: int, element: Any) -> _Sum | None:
        """The length of an actuator as a sum of joints; None if it pulls at nothing that moves, or at a site."""
        model, kind = self._model, self._transmission_kind(index)
        gear, target = float(model.actuator_gear[index, 0]), int(model.actuator_trnid[index, 0])
        terms: dict[int, float] | None = None
        if kind == "mjTRN_SITE" and self._pushes(index):
            return _Sum((), 0.0)
        if kind in ("mjTRN_JOINT", "mjTRN_JOINTINPARENT") and int(model.jnt_type[target]) < HINGED:
            kind = "ball and free joints"
        if kind in ("mjTRN_JOINT", "mjTRN_JOINTINPARENT"):
            terms = {target: 1.0}
        elif kind == "mjTRN_TENDON":
            terms = self._tendon(target)
        if terms is None:
            self._compiled.leave_out(f"actuators at {PLACES.get(kind, kind)}", element)
            return None
        length = self._sum({joint: gear * size for joint, size in terms.items()})
        return length if length.along else None

    def _pushes(self, index: int) -> bool:
        """Whether an actuator at a site pushes a moving body, without a reference site and a bias."""
        model = self._model
        site, reference = (int(number) for number in model.actuator_trnid[index])
        moves = bool(model.body_weldid[model.site_bodyid[site]])
        return moves and reference < 0 and not np.any(model.actuator_biasprm[index, :3])

    def _is_plain(self, index: int, element: Any) -> bool:
        """Whether the force is affine in the control, the length and the velocity."""
        gain = self._kinds["mjtGain"][int(self._model.actuator_gaintype[index])]
        bias = self._kinds["mjtBias"][int(self._model.actuator_biastype[index])]
        dynamics = self._kinds["mjtDyn"][int(self._model.actuator_dyntype[index])]
        follows = dynamics in ("mjDYN_NONE", "mjDYN_FILTER", "mjDYN_FILTEREXACT")
        plain = gain == PLAIN[0] and bias in PLAIN[1] and follows and self._model.actuator_gainprm[index, 0]
        if not plain:
            reason = dynamics if not follows else gain if gain != PLAIN[0] else bias
            kind, _, name = reason.partition("_")
            self._compiled.leave_out(f"actuators with the {PARTS[kind]} `{name.lower()}`", element)
        return bool(plain)

    def _note_lag(self, index: int, element: Any) -> None:
        model = self._model
        if self._kinds["mjtDyn"][int(model.actuator_dyntype[index])] != "mjDYN_NONE":
            self._compiled.leave_out("lags of actuators (dyntype filter); they act at once", element)
        if model.actuator_delay[index]:
            self._compiled.leave_out("delays of actuators", element)

    def _lengths(self, length: _Sum) -> tuple[float, float]:
        """The smallest and the largest length of a sum within the ranges of its joints."""
        model = self._model
        numbers = {name: joint for joint, name in self._moving.items()}
        ends = np.full(2, float(length.constant))
        for name, size in length.along:
            joint = numbers[name]
            limited = bool(model.jnt_limited[joint])
            ends += np.sort(size * model.jnt_range[joint]) if limited else np.array([-np.inf, np.inf])
        return float(ends[0]), float(ends[1])


class _ActuatorReader:
    """One actuator: the force gain * control + b0 + b1 * length + b2 * velocity, within limits."""

    def __init__(self, model: Any, index: int, name: str, length: _Sum, lengths: tuple[float, float]) -> None:
        self._model, self._index, self._name = model, index, name
        self._length, self._lengths = length, lengths
        self.guessed = False
        self._gain = float(model.actuator_gainprm[index, 0])
        bias = model.actuator_biasprm[index, :3] * bool(int(model.actuator_biastype[index]))
        self._bias = (float(bias[0] + bias[1] * length.constant), float(bias[1]), float(bias[2]))

    def read(self, kept: bool) -> tuple[Actuator, bool]:
        """The actuator, and whether its input is its force. kept: the input is the command in any case."""
        control, force = self._controls(), self._forces()
        servo = any(self._bias)
        if servo and not kept and self._binds(control, force):
            return self._made(1.0, (0.0, 0.0, 0.0), force, self._unit("force")), True
        if not servo and self._gain > 0:
            control = (max(control[0], force[0] / self._gain), min(control[1], force[1] / self._gain))
        elif not servo:
            control = (max(control[0], force[1] / self._gain), min(control[1], force[0] / self._gain))
        lower, upper = control if np.isfinite(control).all() else self._guess()
        unit = self._unit("force" if not servo and self._gain == 1 else self._kind())
        return self._made(self._gain, self._bias, (lower, upper), unit), False

    def _made(self, gain: float, bias: tuple[float, float, float], limits: tuple[float, float], unit: str) -> Actuator:
        return Actuator(self._name, self._length.along, gain, bias, float(limits[0]), float(limits[1]), unit)

    def _controls(self) -> tuple[float, float]:
        model, index = self._model, self._index
        if not model.actuator_ctrllimited[index]:
            return -np.inf, np.inf
        lower, upper = model.actuator_ctrlrange[index]
        return float(lower), float(upper)

    def _forces(self) -> tuple[float, float]:
        """The limits of the force, also those of the joint or tendon that it drives."""
        model, index = self._model, self._index
        lower, upper = -np.inf, np.inf
        if model.actuator_forcelimited[index]:
            lower, upper = model.actuator_forcerange[index]
        if not self._length.along:
            return float(lower), float(upper)
        target, gear = int(model.actuator_trnid[index, 0]), float(model.actuator_gear[index, 0])
        tendon = len(self._length.along) > 1 or model.actuator_trntype[index] == 3
        limited = model.tendon_actfrclimited if tendon else model.jnt_actfrclimited
        ranges = model.tendon_actfrcrange if tendon else model.jnt_actfrcrange
        if limited[target]:
            ends = np.sort(ranges[target] / gear)
            lower, upper = max(lower, ends[0]), min(upper, ends[1])
        return float(lower), float(upper)

    def _binds(self, control: tuple[float, float], force: tuple[float, float]) -> bool:
        """Whether the force at rest can pass its limits."""
        if not np.isfinite(force).all():
            return False
        constant, by_length, _ = self._bias
        moved = [by_length * end if by_length else 0.0 for end in (self._lengths[0], self._lengths[1])]
        pulls = [self._gain * end for end in control]
        return max(pulls) + constant + max(moved) > force[1] or min(pulls) + constant + min(moved) < force[0]

    def _kind(self) -> str:
        """What the command of a servo is."""
        if self._bias[1] and self._bias[1] == -self._gain:
            return "position"
        if not self._bias[1] and self._bias[2] == -self._gain:
            return "velocity"
        return "other"

    def _guess(self) -> tuple[float, float]:
        """Limits of a control without limits."""
        constant, by_length, by_velocity = self._bias
        if by_length and np.isfinite(self._lengths).all():  # the controls that hold the ends of the range
            ends = sorted(-(constant + by_length * end) / self._gain for end in self._lengths)
            return ends[0], ends[1]
        self.guessed = True
        if not self._length.along:
            return -1.0, 1.0
        if by_length:
            return -np.pi, np.pi
        if by_velocity:
            reach = abs(by_velocity / self._gain * RATE * self._length.along[0][1])
            return -reach, reach
        dof = int(self._model.jnt_dofadr[int(self._model.actuator_trnid[self._index, 0])])
        reach = float(self._model.dof_M0[dof]) * RATE / FASTEST / abs(self._gain * self._length.along[0][1])
        reach = float(f"{reach:.2g}")
        return -reach, reach

    def _unit(self, kind: str) -> str:
        """The unit of a command at one joint; a number without unit at several."""
        model, index = self._model, self._index
        if not self._length.along:
            return "N" if np.any(model.actuator_gear[index, :3]) else "N m"
        slides = bool(model.jnt_type[int(model.actuator_trnid[index, 0])] == 2)
        if model.actuator_trntype[index] == 3 or kind == "other":
            return "1"
        turning = {"force": "N m", "position": "rad", "velocity": "rad/s"}
        sliding = {"force": "N", "position": "m", "velocity": "m/s"}
        return (sliding if slides else turning)[kind]

    def losses(self) -> list[Passive]:
        """Damping and inertia of the actuator itself."""
        damping = float(self._model.actuator_damping[self._index])
        armature = float(self._model.actuator_armature[self._index])
        return [Passive(self._length.along, damping=damping, armature=armature)] if damping or armature else []
