"""The model file of a `Mechanism`: a line for each coordinate, input, link and force; a message for each guess."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from modelgen.arrays import Array
from modelgen.importers.mechanism import (
    BALL,
    FLOATING,
    GROUND,
    IN_PLANE,
    PLANAR,
    Actuator,
    Closure,
    Coupling,
    Joint,
    Linear,
    Link,
    Mechanism,
    Passive,
    Push,
)
from modelgen.importers.model_text import (
    CONTROL_RATE,
    EPSILON,
    GUESS,
    TOO_STRONG,
    UNREACHED,
    ModelLines,
    axis,
    decimal,
    fixed,
    guesses,
    identifiers,
    model_file_text,
    number,
    offset,
    rest_of,
    roll_pitch_yaw,
    vector,
)
from modelgen.statement.joints import LARGEST

UNITS = {"prismatic": ("N", "N s/m", "kg"), "revolute": ("N m", "N m s", "kg m^2")}
UNITS["continuous"] = UNITS["revolute"]
RATES = {"revolute": 10.0, "continuous": 10.0, "prismatic": 1.0}  # rad/s, m/s, if a file has no velocity
WEIGHT = 0.4  # of the action cost of an input in half ranges: a second at half of them costs 0.1
RESOLVED = 32.0  # per control period: half of the steps that a build takes at most
FASTEST = 4000  # Hz, of the control of a robot with stiff servos
ENDS = "first", "second"  # of a loop


class Writer:
    """Writes the parts of a mechanism into `written`. format: "URDF" or "MJCF", for messages."""

    def __init__(self, mechanism: Mechanism, format: str) -> None:
        self.mechanism, self.format, self.rest = mechanism, format, mechanism.rest()
        # inputs with one side may hold the target at a limit, where LogCos has no slope that is finite
        self.written = ModelLines(kind="LogCos" if format == "URDF" else "Quadratic")
        moving = [joint.name for joint in mechanism.joints if joint.type != "fixed"]
        own = {actuator.name: actuator.along[0][0] for actuator in mechanism.actuators if actuator.along}
        own = {name: joint for name, joint in own.items() if name == f"{joint}_effort"}
        self.names = identifiers(
            ("joint", moving),
            ("link", [link.name for link in mechanism.links]),
            ("input", [actuator.name for actuator in mechanism.actuators if actuator.name not in own]),
            ("end", [f"loop{k}_{end}" for k, _ in enumerate(mechanism.closures, 1) for end in ENDS]),
        )
        self.names.update({("input", name): f"{self.names['joint', joint]}_effort" for name, joint in own.items()})

    def text(self, source: str, name: str, warn: Callable[[str], None], remarks: Sequence[str] = ()) -> str:
        """The text of the model file NAME of a robot from the file `source`; `warn` gets a message for each guess.

        remarks: for the head of the file, after those of the joints.
        """
        mechanism, written = self.mechanism, self.written
        unmoved, still = mechanism.motionless(), mechanism.still()
        links = {link.name: link for link in mechanism.links}
        while mechanism.fastest > RESOLVED * written.control_rate and written.control_rate < FASTEST:
            written.control_rate *= 2
        if written.control_rate > CONTROL_RATE:
            rate = f"a control rate of {written.control_rate} Hz"
            written.remarks.append(f"Stiff servos need {rate}; with a forcerange in the MJCF, the input is a force.")
        if mechanism.gravity != 9.81:
            written.settings.append(f"robot.gravity({decimal(mechanism.gravity)})")
        if mechanism.root != GROUND:
            self._add_link(mechanism.root, None, None, False)
        for joint in mechanism.joints:
            if joint.type in PLANAR:
                written.add_planar(self.names["joint", joint.name], joint)
            elif joint.type in (BALL, FLOATING):
                written.add_rotations(self.names["joint", joint.name], joint)
            elif joint.type != "fixed":
                self._add_coordinate(joint)
                for actuator in mechanism.actuators:
                    if [each for each, _ in actuator.along] == [joint.name]:
                        self._add_actuator(actuator)
                self._add_losses(joint)
                for coupling in mechanism.couplings:
                    if coupling.first[0][0] == joint.name and len(coupling.first) == 1:
                        self._add_coupling(coupling)
            body = None if joint.child in still else links[joint.child]
            self._add_link(joint.child, body, joint, joint.child in unmoved)
        sums = list(dict.fromkeys(actuator.along for actuator in mechanism.actuators if len(actuator.along) > 1))
        for actuator in (each for along in sums for each in mechanism.actuators if each.along == along):
            self._add_actuator(actuator)
        for passive in mechanism.passive:
            self._add_passive(passive)
        for coupling in mechanism.couplings:
            if len(coupling.first) > 1:
                self._add_coupling(coupling)
        for closure in mechanism.closures:
            self._add_closure(closure)
        for push in mechanism.pushes:
            self._add_push(push)
        self._add_inputs()
        for message in guesses(written, self.format):
            warn(message)
        written.remarks += remarks
        return model_file_text(source, name, written)

    def _add_inputs(self) -> None:
        for actuator in self.mechanism.actuators:
            name, lower, upper = self.names["input", actuator.name], actuator.lower, actuator.upper
            limit = number(upper) if lower == -upper else f"({number(lower)}, {number(upper)})"
            self.written.inputs.append(f'{name} = robot.input("{name}", {limit}, "{actuator.unit}")')
            self.written.weights.append(
                "0.1" if self.format == "URDF" else f"{WEIGHT / ((upper - lower) / 2) ** 2:.2g}"
            )

    def _add_actuator(self, actuator: Actuator) -> None:
        """Write the force of an actuator. Along one joint, the coefficient of the joint is part of the gear."""
        along, gear = actuator.along, 1.0
        if len(along) == 1:
            along, gear = ((along[0][0], 1.0),), along[0][1]
        place, shift, name = self._sum(along), self.mechanism.shift(along), self.names["input", actuator.name]
        constant, by_position, by_velocity = actuator.bias
        gain, constant = gear * actuator.gain, gear * constant
        stiffness, damping = -(gear**2) * by_position, -(gear**2) * by_velocity
        pull = f"{decimal(gain)} * {name}"
        if abs(gain) == 1 and not any(actuator.bias):  # of a servo, a number turns the unit of ctrl into a force's
            pull = name if gain == 1 else f"-{name}"
        self._force(f"apply({place}, {pull})")
        if stiffness:
            self._force(f"spring({place}, {decimal(stiffness)}{rest_of(constant / stiffness - shift)})")
        elif constant:
            self._force(f"apply({place}, {decimal(constant)})")
        if damping:
            self._force(f"damp({place}, {decimal(damping)})")

    def _force(self, call: str) -> None:
        self.written.forces.append(f"robot.{call}")

    def _sum(self, along: Linear) -> str:
        """A sum of joints as an expression of the coordinates."""
        text = ""
        for name, coefficient in along:
            size = "" if abs(coefficient) == 1 else f"{decimal(abs(coefficient))} * "
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {size}{self.names['joint', name]}"
        return text.removeprefix(" + ") if text.startswith(" +") else text.replace(" - ", "-", 1)

    def _add_push(self, push: Push) -> None:
        """Write the force and the torque of an input on a link."""
        name = self.names["input", push.input]

        def times(direction: Array) -> str:
            """A direction times the input."""
            entries = (float(entry) for entry in direction)
            return ", ".join("0" if abs(entry) < EPSILON else f"{decimal(entry)} * {name}" for entry in entries)

        options = f", at={vector(push.point)}" if np.abs(push.point).max() > EPSILON else ""
        options += f", torque=({times(push.torque)})" if np.abs(push.torque).max() > EPSILON else ""
        self._force(f"push({self.names['link', push.link]}, ({times(push.force)}){options})")

    def _add_coordinate(self, joint: Joint) -> None:
        """Write a coordinate and its share of the cost."""
        written, name = self.written, self.names["joint", joint.name]
        endless = joint.reach > LARGEST.get(joint.type, 0.0)
        if endless and joint.type != "continuous":
            written.guessed["endless"].append(name)
        rest = self.rest.get(joint.name, 0.0)
        away = f"({name}{offset(-rest)})" if rest else name
        if endless and joint.type != "prismatic":
            declared, span = "revolute", "continuous=True"
            cost = f"(pi * sin({away} / 2)) ** 2"
        else:
            declared, span = joint.type, f"limit={number(GUESS if endless else joint.reach)}"
            cost = f"{away}{' ** ' if rest else '**'}2"
            written.remark_range(name, joint, endless)
        if joint.name in self.mechanism.dependent:
            written.coordinates.append(f'{name} = robot.{declared}("{name}", {span})  # follows in a loop')
            return
        written.costs += [cost, f"0.1 * {name}.rate**2"]
        if rest:
            written.target.append(f"{name}={decimal(rest)}")
        known = 0 < joint.velocity < UNREACHED
        rate_limit = joint.velocity if known else RATES[joint.type]
        line = f'{name} = robot.{declared}("{name}", {span}, rate_limit={number(rate_limit)})'
        if not known:
            written.guessed["rates"].append(name)
            velocity = f"{joint.velocity:g}" if joint.velocity > 0 else "no velocity"
            line += f"  # a guess: the {self.format} has {velocity}"
        written.coordinates.append(line)
        if joint.remark:
            written.remarks.append(joint.remark.format(name))
        if any(
            max(abs(actuator.lower), abs(actuator.upper)) * abs(actuator.gain * actuator.along[0][1])
            > TOO_STRONG * rate_limit * self.mechanism.carried_inertia(joint) * CONTROL_RATE
            for actuator in self.mechanism.actuators
            if [each for each, _ in actuator.along] == [joint.name]
        ):
            written.guessed["strong"].append(name)

    def _add_losses(self, joint: Joint) -> None:
        """Write damping, dry friction and armature. The friction of a light link fades slowly."""
        written, name = self.written, self.names["joint", joint.name]
        force, damping, inertia = UNITS[joint.type]
        if joint.damping:
            written.parameters.append(fixed(f"{name}_damping", joint.damping, damping))
            self._force(f"damp({name}, {name}_damping)")
        if joint.friction:
            written.parameters.append(fixed(f"{name}_friction", joint.friction, force))
            self._add_friction(((joint.name, 1.0),), name, f"{name}_friction", joint.friction)
        if joint.armature:
            written.parameters.append(fixed(f"{name}_armature", joint.armature, inertia))
            slides = joint.type == "prismatic"
            energy = f"kinetic_energy({name}_armature * {name}.rate**2 / 2)"
            self._force(energy if slides else f"rotor({name}, {name}_armature)")

    def _add_friction(self, along: Linear, place: str, force: str, friction: float) -> None:
        """Write dry friction along a sum of joints."""
        smoothing, wide = self.mechanism.smoothing(along, friction)
        if wide:
            self.written.guessed["friction"].append(place)
        note = "  # a guess: wide, because its link is light" if wide else ""
        self._force(f"dry_friction({place}, {force}, smoothing={smoothing:.3g}){note}")

    def _add_passive(self, passive: Passive) -> None:
        """Write a spring, a damper, dry friction and an inertia along a sum of joints."""
        place, shift = self._sum(passive.along), self.mechanism.shift(passive.along)
        if passive.stiffness:
            self._force(f"spring({place}, {decimal(passive.stiffness)}{rest_of(passive.rest - shift)})")
        if passive.damping:
            self._force(f"damp({place}, {decimal(passive.damping)})")
        if passive.friction:
            self._add_friction(passive.along, place, decimal(passive.friction), passive.friction)
        if passive.armature:
            rates = self._sum(passive.along)
            for name, _ in passive.along:
                rates = re.sub(rf"\b{self.names['joint', name]}\b", r"\g<0>.rate", rates)
            self._force(f"kinetic_energy({decimal(passive.armature)} * ({rates}) ** 2 / 2)")

    def _add_coupling(self, coupling: Coupling) -> None:
        """Write a spring and damper that pull a sum of joints to its value. Stiffness and damping are guesses."""
        mechanism, first = self.mechanism, self._sum(coupling.first)
        stiffness, damping = mechanism.stiffness_and_damping(coupling)
        options = f"stiffness={stiffness:.3g}, damping={damping:.3g}"
        note = f"  # a guess: in the {self.format} the coupling is rigid"
        constant, *slopes = coupling.polynomial
        gap = mechanism.shift(coupling.first) - constant
        self.written.guessed["coupled"] += [self.names["joint", name] for name, _ in coupling.first]
        if not coupling.second or not slopes:
            self._force(f"spring({first}, {decimal(stiffness)}{rest_of(-gap)}){note}")
            self._force(f"damp({first}, {decimal(damping)})")
            return
        second, shift = self._sum(coupling.second), mechanism.shift(coupling.second)
        if len(slopes) > 1:
            moved = f"({second} + {decimal(shift)})" if shift else f"({second})"
            terms = [f"{decimal(slope)} * {moved}**{power}" for power, slope in enumerate(slopes, 1) if slope]
            terms[:1] = [terms[0].removesuffix("**1")]
            follows = " + ".join([*([decimal(-gap)] if gap else []), *terms])
            self._force(f"coupling({first}, {follows}, {options}){note}")
            return
        gap -= slopes[0] * shift
        if any(mechanism.joint(name).type == "continuous" for name, _ in coupling.first + coupling.second):
            times = "" if abs(slopes[0]) == 1 else f"{abs(slopes[0]):.12g} * "
            second = f"({second})" if " " in second else second
            apart = f"{first} {'-' if slopes[0] > 0 else '+'} {times}{second}{offset(gap)}"
            # a spring whose force repeats after a whole turn
            self._force(f"potential_energy({decimal(stiffness)} * (1 - cos({apart}))){note}")
            self._force(f"damp({apart}, {decimal(damping)})")
            return
        kinds = {mechanism.joint(name).type for name, _ in coupling.first + coupling.second}
        ratio = decimal(slopes[0]) if len(kinds) > 1 else number(slopes[0])
        self._force(f"coupling({first}{offset(gap)}, {second}, ratio={ratio}, {options}){note}")

    def _add_closure(self, closure: Closure) -> None:
        """Write a loop with its ends, and the starting posture."""
        place, ends = self.mechanism.closures.index(closure) + 1, list[str]()
        for end, (link, frame) in zip(ENDS, closure.ends, strict=True):
            name = self.names["end", f"loop{place}_{end}"]
            on = "" if link == GROUND else f", on={self.names['link', link]}"
            if closure.welded:
                turned = f", turned={vector(roll_pitch_yaw(frame[:3, :3]))}"
                line = f'{name} = robot.link("{name}"{on}, at={vector(frame[:3, 3])}{turned})'
            else:
                line = f'{name} = robot.point("{name}", {vector(frame[:3, 3])}{on})'
            self.written.links.append(line)
            ends.append(name)

        def posture(positions: Mapping[str, float]) -> str:
            values = {name: value - self.mechanism.joint(name).zero for name, value in positions.items()}
            return ", ".join(f"{self.names['joint', name]}: {number(value)}" for name, value in values.items())

        at = {
            name: value for name, value in closure.at.items() if abs(value - self.mechanism.joint(name).zero) > EPSILON
        }
        start = f", at={{{posture(at)}}}" if at else ""
        self.written.links.append(f"robot.loop({', '.join(ends)}, dependent={{{posture(closure.dependent)}}}{start})")

    def _add_link(self, name: str, body: Link | None, joint: Joint | None, unmoved: bool) -> None:
        """Write a link with the values that are not zero.

        body: None for a link whose mass has no effect. unmoved: its centre of mass does not move, so that its mass
        becomes a fixed parameter.
        """
        name = self.names["link", name]
        arguments = [f'"{name}"']
        origin = np.eye(4)
        if joint is not None:
            if joint.type in PLANAR:
                coordinates = (f"{self.names['joint', joint.name]}_{word}" for word in PLANAR[joint.type])
                arguments.append(f"({', '.join(coordinates)})")
            elif joint.type != "fixed":
                arguments.append(self.names["joint", joint.name])
            if joint.parent != GROUND:
                arguments.append(f"on={self.names['link', joint.parent]}")
            origin = joint.origin
        if np.abs(origin[:3, 3]).max() > EPSILON:
            arguments.append(f"at={vector(origin[:3, 3])}")
        turned = roll_pitch_yaw(origin[:3, :3])
        if max(map(abs, turned)) > EPSILON:
            arguments.append(f"turned={vector(turned)}")
        if joint is not None and joint.type not in ("fixed", IN_PLANE, BALL, FLOATING):
            arguments.append(f"axis={axis(joint.axis)}")
        if body is not None and body.inertial is not None:
            arguments += self.written.mass(name, body.inertial, unmoved)
        text = f"{name} = robot.link({', '.join(arguments)})"
        if len(text) > 110:
            text = "\n".join([f"{name} = robot.link(", *(f"    {argument}," for argument in arguments), ")"])
        self.written.links.append(text)
