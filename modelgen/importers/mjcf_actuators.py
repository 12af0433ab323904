"""One actuator of a compiled MJCF file: its command, its limits and its unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.importers.mechanism import Actuator, Linear, Passive

RATE = 10.0  # of the coordinate, for the command of a velocity servo without limits
FASTEST = 0.1  # s, in which a motor without limits reaches RATE: the guess of its limit


@dataclass
class Sum:
    """A sum of moving joints and the constant part of joints that are held."""

    along: Linear
    constant: float


class ActuatorReader:
    """One actuator: the force gain * control + b0 + b1 * length + b2 * velocity, within limits."""

    def __init__(self, model: Any, index: int, name: str, length: Sum, lengths: tuple[float, float]) -> None:
        self._model, self._own, self._name = model, model.actuator(index), name
        self._length, self._lengths = length, lengths
        self.guessed = False
        self._gain = float(self._own.gainprm[0])
        bias = self._own.biasprm[:3] * bool(self._own.biastype[0])
        self._bias = (float(bias[0] + bias[1] * length.constant), float(bias[1]), float(bias[2]))

    def read(self, kept: bool) -> tuple[Actuator, bool]:
        """The actuator, and whether its input is its force. kept: the input is the command in any case."""
        limited = bool(self._own.ctrllimited[0])
        control: tuple[float, float] = tuple(self._own.ctrlrange) if limited else (-np.inf, np.inf)
        force = self._forces()
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

    def _forces(self) -> tuple[float, float]:
        """The limits of the force, also those of the joint or tendon that it drives."""
        model, own = self._model, self._own
        lower, upper = own.forcerange if own.forcelimited[0] else (-np.inf, np.inf)
        if self._length.along:
            target = int(own.trnid[0])
            tendon = len(self._length.along) > 1 or own.trntype[0] == 3
            limited = model.tendon_actfrclimited if tendon else model.jnt_actfrclimited
            ranges = model.tendon_actfrcrange if tendon else model.jnt_actfrcrange
            if limited[target]:
                # MuJoCo limits the force of a joint behind the gear, and that of a tendon before it
                ends = np.sort(ranges[target] / (1.0 if tendon else float(own.gear[0])))
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
        dof = int(self._model.jnt_dofadr[int(self._own.trnid[0])])
        reach = float(self._model.dof_M0[dof]) * RATE / FASTEST / abs(self._gain * self._length.along[0][1])
        reach = float(f"{reach:.2g}")
        return -reach, reach

    def _unit(self, kind: str) -> str:
        """The unit of a command at one joint; a number without unit at several."""
        own = self._own
        if not self._length.along:
            return "N" if np.any(own.gear[:3]) else "N m"
        if own.trntype[0] == 3 or kind == "other":
            return "1"
        slides = bool(self._model.jnt_type[int(own.trnid[0])] == 2)
        turning = {"force": "N m", "position": "rad", "velocity": "rad/s"}
        sliding = {"force": "N", "position": "m", "velocity": "m/s"}
        return (sliding if slides else turning)[kind]

    def losses(self) -> list[Passive]:
        """Damping and inertia of the actuator itself."""
        model, index = self._model, self._own.id
        damping, armature = float(model.actuator_damping[index]), float(model.actuator_armature[index])
        return [Passive(self._length.along, damping=damping, armature=armature)] if damping or armature else []
