"""Forces of a compiled MJCF file: joint springs, tendons of joints, equality constraints, and actuators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from modelgen.errors import ModelError, Place, suggestion
from modelgen.importers.mechanism import Actuator, Coupling, Passive
from modelgen.importers.mjcf_actuators import ActuatorReader, Sum
from modelgen.importers.mjcf_tree import Compiled

HINGED = 2  # the smallest number of MuJoCo's types of joints with one coordinate
PLACES = {
    "mjTRN_TENDON": "spatial tendons",
    "mjTRN_SITE": "sites with a reference site, a bias or no motion",
    "mjTRN_BODY": "bodies",
}
PARTS = {"mjDYN": "state", "mjGAIN": "gain", "mjBIAS": "bias"}
PLAIN = "mjGAIN_FIXED", ("mjBIAS_NONE", "mjBIAS_AFFINE")


@dataclass(frozen=True)
class MjcfCommand:
    """An input and its actuator, by number. force: the input is the force that the actuator exerts, not its command."""

    actuator: int
    force: bool


class MjcfForces:
    """Actuators with the commands of their inputs, springs and dampers, couplings."""

    def __init__(
        self,
        compiled: Compiled,
        moving: Mapping[int, str],
        passive: Collection[str],
        command: Collection[str],
        warn: Callable[[str], None],
    ) -> None:
        """moving: joints by number. passive, command: patterns of joints and actuators."""
        self._compiled, self._model, self._moving = compiled, compiled.model, moving
        self._kinds = {
            kind: {int(value): name for name, value in getattr(compiled.mujoco, kind).__members__.items()}
            for kind in ("mjtTrn", "mjtGain", "mjtBias", "mjtDyn", "mjtEq", "mjtWrap")
        }
        self.actuators: list[Actuator] = []
        self.commands: list[MjcfCommand] = []
        self.at_sites: dict[str, int] = {}  # name of an actuator at a site -> its number
        self.passive: list[Passive] = []
        self.couplings: list[Coupling] = []
        self._read_springs()
        self._read_tendons()
        self._read_equalities()
        self._read_actuators(passive, command, warn)
        self._note_shared_limits()

    def _is_off(self, actuator: int) -> bool:
        """Whether a flag of the file disables all actuators, or the group of this one."""
        option, flag = self._model.opt, int(self._compiled.mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        group = int(self._model.actuator_group[actuator])
        return bool(int(option.disableflags) & flag or int(option.disableactuator) >> group & 1)

    def _sum(self, terms: Mapping[int, float]) -> Sum:
        """A sum of joints by number; joints that are held are in their reference position."""
        model = self._model
        held = sum(
            coefficient * float(model.qpos0[model.jnt_qposadr[joint]])
            for joint, coefficient in terms.items()
            if joint not in self._moving
        )
        along = tuple((self._moving[joint], size) for joint, size in terms.items() if joint in self._moving and size)
        return Sum(along, held)

    def _read_springs(self) -> None:
        model = self._model
        for joint in self._moving:
            stiffness = float(model.jnt_stiffness[joint])
            if stiffness:
                rest = float(model.qpos_spring[model.jnt_qposadr[joint]])
                self.passive.append(Passive(self._sum({joint: 1.0}).along, stiffness, rest))

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

    def _read_tendons(self) -> None:
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
            stiffness = float(model.tendon_stiffness[tendon])
            curved = np.abs([*model.tendon_stiffnesspoly[tendon], *model.tendon_dampingpoly[tendon]]).max(initial=0)
            if (stiffness and lower != upper) or curved or model.tendon_springyield[tendon]:
                compiled.leave_out("springs and dampers of tendons that are not linear", elements[tendon])
                stiffness = 0.0 if lower != upper else stiffness
            length = self._sum(terms)
            losses = dict(
                damping=float(model.tendon_damping[tendon]),
                friction=float(model.tendon_frictionloss[tendon]),
                armature=float(model.tendon_armature[tendon]),
            )
            if length.along and (stiffness or any(losses.values())):
                self.passive.append(Passive(length.along, stiffness, float(lower) - length.constant, **losses))

    def _read_equalities(self) -> None:
        """Couplings of joints and of fixed tendons. `LoopReader` reads the loops."""
        model, compiled = self._model, self._compiled
        elements = {equality.id: equality for equality in compiled.spec.equalities}
        for index in range(model.neq):
            if not model.eq_active0[index]:
                continue
            kind = self._kinds["mjtEq"][int(model.eq_type[index])].removeprefix("mjEQ_").lower()
            if kind in ("connect", "weld"):
                continue
            if kind not in ("joint", "tendon"):
                compiled.leave_out(f"equality constraints of the kind {kind}", elements[index])
                continue
            sides = [self._side(kind, int(number)) for number in (model.eq_obj1id[index], model.eq_obj2id[index])]
            if any(side is None for side in sides):
                compiled.leave_out("equality constraints of spatial tendons", elements[index])
                continue
            self._couple(sides, Polynomial(model.eq_data[index, :5]), elements[index])

    def _side(self, kind: str, index: int) -> tuple[Sum, float] | None:
        """One side of an equality and its reference value; None for a spatial tendon."""
        model = self._model
        if index < 0:
            return Sum((), 0.0), 0.0
        if kind == "joint":
            return self._sum({index: 1.0}), float(model.qpos0[model.jnt_qposadr[index]])
        terms = self._tendon(index)
        return None if terms is None else (self._sum(terms), float(model.tendon_length0[index]))

    def _couple(self, sides: list[Any], polynomial: Polynomial, element: Any) -> None:
        """Add first - first0 = polynomial(second - second0)."""
        (first, first_reference), (second, second_reference) = sides
        value = first_reference + polynomial(Polynomial([second.constant - second_reference, 1.0])) - first.constant
        coefficients = tuple(float(each) for each in np.trim_zeros(value.coef, "b"))
        if first.along and not second.along:
            constant = float(value(0.0))
            self.couplings.append(Coupling(first.along, (), (constant,)))
        elif first.along:
            self.couplings.append(Coupling(first.along, second.along, coefficients or (0.0,)))
        elif second.along:
            self._compiled.leave_out("equality constraints whose first joint is held", element)

    def _read_actuators(self, passive: Collection[str], command: Collection[str], warn: Callable[[str], None]) -> None:
        """Actuators with a plain gain and an affine bias. Others are left out."""
        compiled = self._compiled
        elements = {actuator.id: actuator for actuator in compiled.spec.actuators}
        names = list[str]()
        for index in range(self._model.nactuator):
            name = self._actuator_name(index)
            names.append(name if name not in names else f"{name}_{index}")
        for option, patterns in (("--passive", passive), ("--command", command)):
            known = [*names, *(self._moving.values() if option == "--passive" else ())]
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in known):
                    words = f"`{pattern}` of {option} matches no actuator or joint.{suggestion(pattern, known)}"
                    raise ModelError(words, Place(str(compiled.path), 1))
        by_force, unlimited = list[str](), list[str]()
        for index, name in enumerate(names):
            length = self._transmission(index, elements[index])
            if length is None:
                continue
            reader = ActuatorReader(self._model, index, name, length, self._lengths(length))
            self.passive += reader.losses()  # which stay where the actuator itself is off
            if np.any(self._model.actuator_dampingpoly[index]):
                compiled.leave_out("dampers of actuators that are not linear", elements[index])
            if self._is_off(index) or not self._is_plain(index, elements[index]):
                continue
            if not length.along:
                self.at_sites[name] = index
            if any(fnmatchcase(each, pattern) for pattern in passive for each in (name, *dict(length.along))):
                continue
            self._note_lag(index, elements[index])
            kept = any(fnmatchcase(name, pattern) for pattern in command)
            actuator, force = reader.read(kept)
            by_force += [name] * force
            unlimited += [name] * reader.guessed
            self.actuators.append(actuator)
            self.commands.append(MjcfCommand(index, force))
        if by_force:
            warn(
                f"{', '.join(by_force)}: servos whose force is limited (forcerange, actuatorfrcrange). Their input is "
                "the force here, within its limits; the control law stays outside. --command PATTERN keeps the "
                "servo's command as the input, and leaves out the limit."
            )
        if unlimited:
            warn(f"{', '.join(unlimited)}: neither control nor force has a limit; the one here is a guess. Correct it.")

    def _note_shared_limits(self) -> None:
        """Note the joints with a limit of the sum of what several actuators, or one at a tendon, do to them."""
        kinds = [self._transmission_kind(command.actuator) == "mjTRN_TENDON" for command in self.commands]
        elements = {joint.id: joint for joint in self._compiled.spec.joints}
        for joint, name in self._moving.items():
            drives = zip(self.actuators, kinds, strict=True)
            driven = [at_tendon for actuator, at_tendon in drives if name in dict(actuator.along)]
            if self._model.jnt_actfrclimited[joint] and (len(driven) > 1 or any(driven)):
                what = "limits of what several actuators, or one at a tendon, do to a joint together (actuatorfrcrange)"
                self._compiled.leave_out(what, elements[joint])

    @property
    def fastest(self) -> float:
        """The largest rate of a joint alone under its springs and dampers, 1/s, in the reference position."""
        model, stiffness, damping = self._model, dict[str, float](), dict[str, float]()
        pulls = [(passive.along, passive.stiffness, passive.damping) for passive in self.passive]
        pulls += [(actuator.along, -actuator.bias[1], -actuator.bias[2]) for actuator in self.actuators]
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

    def _transmission(self, index: int, element: Any) -> Sum | None:
        """The length of an actuator as a sum of joints; None if it pulls at nothing that moves, or at a site."""
        model, kind = self._model, self._transmission_kind(index)
        gear, target = float(model.actuator_gear[index, 0]), int(model.actuator_trnid[index, 0])
        terms: dict[int, float] | None = None
        if kind == "mjTRN_SITE" and self._pushes(index):
            return Sum((), 0.0)
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
        if self._model.actuator_plugin[index] >= 0:
            self._compiled.leave_out("actuators that are plugins", element)
            return False
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

    def _lengths(self, length: Sum) -> tuple[float, float]:
        """The smallest and the largest length of a sum within the ranges of its joints."""
        model = self._model
        numbers = {name: joint for joint, name in self._moving.items()}
        ends = np.full(2, float(length.constant))
        for name, size in length.along:
            joint = numbers[name]
            limited = bool(model.jnt_limited[joint])
            ends += np.sort(size * model.jnt_range[joint]) if limited else np.array([-np.inf, np.inf])
        return float(ends[0]), float(ends[1])
