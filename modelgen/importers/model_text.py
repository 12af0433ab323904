"""The text of a model file: numbers, axes and names in a readable form, lines of one joint, and the parts in order.

Messages about what a model file guesses, because the imported file does not say it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from keyword import iskeyword

import numpy as np

from modelgen.arrays import Array
from modelgen.importers.mechanism import FLOATING, PLANAR, Inertial, Joint
from modelgen.metadata import RATE, TIME
from modelgen.statement.checker import LONGEST_NAME

AXES = {(1, 0, 0): "x", (0, 1, 0): "y", (0, 0, 1): "z", (-1, 0, 0): "-x", (0, -1, 0): "-y", (0, 0, -1): "-z"}
CONTROL_RATE = 250  # Hz, of the task in the file
TOLERANCE = 0.3  # of the masses, which have none in a file
EPSILON = 1e-12  # smaller differences are rounding errors of the imported file


UNREACHED = 1000.0  # rad/s, m/s: what published files write where no limit is known; no joint reaches it
GUESS = 10.0  # m, the limit of a prismatic joint if its own is too large
TOO_STRONG = 100.0  # times the rate limit, reached within a control period: the effort is too strong to be simulated


#: Messages about the guesses in the file, by kind.
GUESSES = {
    "rates": "the {format} has no velocity limit{unless} for {names}; the rate_limit in the file is a guess. Correct "
    "it.",
    "endless": "the limits of {names} are too large: revolute joints turn without end in the file, and others have a "
    f"limit of {GUESS:g} m, which is a guess. Correct it.",
    "ranges": "limits are symmetric in the file, and the task ends at zero; the {format} has {names}. Write the real "
    "range with robot.end_stops(coordinate, (lower, upper), stiffness, width=...), and a target and a start within it.",
    "middle": "zero does not lie in the middle half of some ranges; these coordinates are measured from the middle, "
    "where the task ends unless a coupling moves it: {names}.",
    "strong": f"the effort of {{names}} moves the load to {TOO_STRONG:g} times the rate limit or more within "
    f"1/{CONTROL_RATE} s, which is too fast to be simulated. Correct the effort, or add the motor's inertia: "
    "robot.rotor(coordinate, inertia, gear=...).",
    "friction": "the dry friction of {names} is strong for light links; it fades over a wide range of rates in the "
    "file, so that it can be simulated. Correct the friction or its smoothing, or add the motor's inertia.",
    "coupled": "joints that follow others ({follow}): {names}; the stiffness and damping that couple them are guesses. "
    "Correct them, or hold the joints with {hold}.",
}


@dataclass
class ModelLines:
    """The lines of a model file by their part, and the names of coordinates with a guess."""

    settings: list[str] = field(default_factory=list)
    coordinates: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    forces: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)  # lines before the task
    costs: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)  # where it is not zero
    control_rate: int = CONTROL_RATE  # Hz
    kind: str = "LogCos"  # of the action cost
    weights: list[str] = field(default_factory=list)  # of the inputs in the action cost
    remarks: list[str] = field(default_factory=list)
    #: What is guessed -> the coordinates of which it is; the keys are those of `GUESSES`.
    guessed: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in GUESSES})

    def add_planar(self, name: str, joint: Joint) -> None:
        """Write two displacements and an angle, usually with guessed limits."""
        first, second, turn = (f"{name}_{word}" for word in PLANAR[joint.type])
        reach = max((abs(bound) for bound in (joint.lower, joint.upper) if bound), default=0.0)
        rate = max(joint.velocity, 0.0)
        if not reach or not rate:
            self.remarks.append(f"The limits of {first}, {second}, {turn} and their rates are guesses; correct them.")
        if joint.effort or joint.damping or joint.friction:
            self.remarks.append(
                f"The effort, damping and friction of {name} are left out; write them with robot.apply."
            )
        for coordinate in (first, second):
            limits = f"limit={number(reach or 2)}, rate_limit={number(rate or 5)}"
            self.coordinates.append(f'{coordinate} = robot.prismatic("{coordinate}", {limits})')
            self.costs += [f"{coordinate}**2", f"0.1 * {coordinate}.rate**2"]
        turns = f"continuous=True, rate_limit={number(rate or 15)}"
        self.coordinates.append(f'{turn} = robot.revolute("{turn}", {turns})')
        self.costs += [f"(pi * sin({turn} / 2)) ** 2", f"0.1 * {turn}.rate**2"]

    def add_rotations(self, name: str, joint: Joint) -> None:
        """Write a ball or floating joint with guessed limits, and its damping."""
        floats = joint.type == FLOATING
        turns = f", {'turn_' * floats}limit={number(joint.upper)}" if joint.upper else ""
        limits = "limit=2, rate_limit=5, turn_rate_limit=15" if floats else "rate_limit=10"
        self.coordinates.append(f'{name} = robot.{joint.type}("{name}", {limits}{turns})  # a guess')
        self.remarks.append(f"The limits of {name} and its rates are guesses; correct them.")
        self.tasks.append(f"{name}_away = {name}.away()")
        if floats:
            self.costs.append(f"sum(displacement**2 for displacement in {name}.position)")
            self.costs.append(f"0.1 * sum(rate**2 for rate in {name}.velocity)")
        self.costs += [f"{name}_away.dot({name}_away)", f"0.1 * sum(rate**2 for rate in {name}.rate)"]
        if joint.damping:
            moved = f"(*{name}.position, *{name}.turn)" if floats else f"{name}.turn"
            self.forces.append(f"for moved in {moved}:\n    robot.damp(moved, {decimal(joint.damping)})")

    def remark_range(self, name: str, joint: Joint, endless: bool) -> None:
        """Say where the range of a joint is not that of its coordinate."""
        if joint.lower is None or joint.upper is None:
            return
        if joint.zero:
            lower, upper = joint.lower + joint.zero, joint.upper + joint.zero
            self.remarks.append(
                f"{name} is measured from {joint.zero:.12g}, the middle of its range {lower:g} ... {upper:g}."
            )
            if not joint.centred:
                self.guessed["middle"].append(f"{name} from {joint.zero:g}")
        elif abs(joint.lower + joint.upper) > EPSILON and not endless:
            self.guessed["ranges"].append(f"{name} from {joint.lower:g} to {joint.upper:g}")
            self.remarks.append(
                f"{name} was limited to {joint.lower:g} ... {joint.upper:g}; limits are symmetric here."
            )

    def mass(self, name: str, inertial: Inertial, unmoved: bool) -> Iterator[str]:
        """The arguments of a link for its mass, centre and inertia. unmoved: its mass becomes a fixed parameter."""
        frame = inertial.origin
        if inertial.mass:
            uncertain = "fixed=True" if unmoved else f"tolerance={TOLERANCE}"
            self.parameters.append(
                f'{name}_mass = robot.parameter("{name}_mass", {number(inertial.mass)}, "kg", {uncertain})'
            )
            yield f"mass={name}_mass"
            if np.abs(frame[:3, 3]).max() > EPSILON:
                yield f"centre={vector(frame[:3, 3])}"
        if inertial.inertia is not None and np.abs(inertial.inertia).max() > EPSILON * inertial.mass:
            tensor = frame[:3, :3] @ inertial.inertia @ frame[:3, :3].T
            entries = [max(tensor[i, i], 0.0) for i in range(3)]  # less is a rounding error of the file
            entries += [tensor[i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
            entries = entries if np.abs(entries[3:]).max() > EPSILON * np.abs(entries).max() else entries[:3]
            yield f"inertia=({', '.join(f'{entry:.12g}' for entry in entries)})"


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles about x, y and z, in this order, of a rotation matrix (3, 3)."""
    level = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], level)
    if level < 1e-9:  # at a pitch of a quarter turn, roll and yaw are one angle
        return math.atan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0
    return math.atan2(rotation[2, 1], rotation[2, 2]), pitch, math.atan2(rotation[1, 0], rotation[0, 0])


def axis(direction: Iterable[float]) -> str:
    """A direction as text: the name of an axis, or a vector."""
    values = np.array(list(direction), np.float64)
    unit = values / (np.linalg.norm(values) or 1.0)
    whole = tuple(int(component) for component in np.round(unit))
    return f'"{AXES[whole]}"' if np.abs(unit - whole).max() < EPSILON and whole in AXES else vector(values)


def vector(values: Iterable[float]) -> str:
    """Three components as text, in parentheses."""
    return f"({', '.join(map(number, values))})"


def number(value: float) -> str:
    """A number as text, with twelve digits or as a simple fraction of pi."""
    for divisor in (1, 2, 3, 4, 6):
        times = value * divisor / math.pi
        if round(times) and abs(times - round(times)) < EPSILON and abs(round(times)) <= 2 * divisor:
            count = {1: "", -1: "-"}.get(round(times), f"{round(times)} * ")
            return f"{count}pi" + (f" / {divisor}" if divisor > 1 else "")
    return f"{value:.12g}" if abs(value) > EPSILON else "0"


def decimal(value: float) -> str:
    """A number as text with a decimal point or an exponent, so that it may have any unit."""
    text = f"{value:.12g}"
    return text if set(text) & set(".e") else f"{text}.0"


def rest_of(rest: float) -> str:
    """The argument for the rest position of a spring, if it is not zero."""
    return f", {decimal(rest)}" if abs(rest) > EPSILON else ""


def offset(gap: float) -> str:
    """A constant to be added, if it is not zero."""
    return f" {'+' if gap > 0 else '-'} {decimal(abs(gap))}" if abs(gap) > EPSILON else ""


def fixed(name: str, value: float, unit: str) -> str:
    """The line of a fixed parameter."""
    return f'{name} = robot.parameter("{name}", {number(value)}, "{unit}", fixed=True)'


def model_file_text(source: str, name: str, written: ModelLines) -> str:
    """The text of the model file NAME, imported from the file `source`."""
    source = re.sub(r"[^\w. -]", "_", source, flags=re.ASCII)
    cost = "\n    + ".join(written.costs)
    cost_of_inputs = f"{written.kind}([{', '.join(written.weights)}])"
    parts = [written.settings, written.coordinates, written.parameters, written.inputs, written.links, written.forces]
    body = "\n\n".join("\n".join(part) for part in parts if part)
    before = "".join(f"{line}\n" for line in written.tasks)
    at = "where the couplings hold" if written.target else "at zero"
    target = f"    target=dict({', '.join(written.target)}),\n" if written.target else ""
    body += (
        f"\n\n# A first task: come to rest {at}.\n{before}robot.task(\n"
        f"    state_cost={cost},\n    action_cost={cost_of_inputs},\n    start={{}},\n{target}    horizon=5,\n"
        f"    weight_at_horizon=0.65,\n    control_rate={written.control_rate},\n)\n"
    )
    words = [word for word in ("cos", "pi", "sin") if re.search(rf"\b{word}\b", body)]
    head = [f'"""{name}, imported from {source}; yours to edit.', ""]
    head += [*(f"{remark}" for remark in written.remarks), '"""', ""]
    head = [f'"""{name}, imported from {source}; yours to edit."""', ""] if not written.remarks else head
    head += [f"from sympy import {', '.join(words)}", ""] if words else []
    head += [
        f"from modelgen import {written.kind}, Robot",
        "",
        f'robot = Robot("{name}", "Imported from {source}")',
        "",
        "",
    ]
    return "\n".join(head) + body


def guesses(written: ModelLines, format: str) -> Iterator[str]:
    """Messages about the guesses in the file. format: "URDF" or "MJCF"."""
    words = {"format": format, "unless": "", "follow": "<equality>", "hold": "--fix"}
    if format == "URDF":
        words |= {"unless": f", or one of {UNREACHED:g} or more,", "follow": "<mimic>", "hold": "--fix mimic"}
    for kind, names in written.guessed.items():
        if names:
            yield GUESSES[kind].format(names=", ".join(names), **words)


#: Names that mean something else in the written file.
TAKEN = (TIME, "rate", "robot", "pi", "sin", "cos", "LogCos", "Quadratic", "Robot")
#: Endings of the names that belong to a joint or link.
TURNED = tuple(f"{kind}{axis}" for kind in ("turn_", "q") for axis in ("w", "x", "y", "z"))
MOVED = ("x", "y", "z", "turn", "height", "pitch", *TURNED)
OF_JOINTS = ("rate", "effort", "damping", "friction", "armature", "mass", "away")
ADDED = (*MOVED, *(f"{word}{RATE}" for word in MOVED), *OF_JOINTS)
LONGEST = LONGEST_NAME - 22  # characters of a name, which gets an ending and, if it is taken, `_joint_99`


def identifiers(*kinds: tuple[str, Iterable[str]]) -> dict[tuple[str, str], str]:
    """Identifiers by ("joint", "link" or "input", name). All differ, also with the endings in `ADDED`."""
    result: dict[tuple[str, str], str] = {}
    used: set[str] = set(TAKEN)
    for kind, name in ((kind, name) for kind, names in kinds for name in names):
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "part"
        start = (plain if plain[0].isalpha() else f"part_{plain}")[:LONGEST]
        others = chain([start, f"{start}_{kind}"], (f"{start}_{kind}_{number}" for number in count(2)))
        for plain in others:
            made = [plain, *(f"{plain}_{word}" for word in ADDED if kind != "input")]
            if not (iskeyword(plain) or used & set(made)):
                break
        used.update(made)
        result[kind, name] = plain
    return result
