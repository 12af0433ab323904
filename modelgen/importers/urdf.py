"""URDF import: the text of a model file, for a person to read and edit."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from itertools import chain, count
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.errors import ModelError, Place
from modelgen.importers.model_text import (
    CONTROL_RATE,
    EPSILON,
    ModelLines,
    axis,
    model_file_text,
    number,
    roll_pitch_yaw,
    vector,
)
from modelgen.importers.urdf_tree import (
    FLOATING,
    GROUND,
    IN_PLANE,
    PLANAR,
    carried_inertia,
    coupling,
    has_effort,
    motionless,
    tree,
)
from modelgen.importers.urdf_xml import ValidatedUrdf, validate
from modelgen.metadata import RATE, TIME
from modelgen.statement.checker import LONGEST_NAME, identifier
from modelgen.statement.declarations import LARGEST

Names = dict[tuple[str, str], str]

TAKEN = (TIME, "robot", "pi", "sin", "LogCos", "Robot")  # names that mean something else in the written file
UNITS = {"prismatic": ("N", "N s/m"), "revolute": ("N m", "N m s"), "continuous": ("N m", "N m s")}
#: Endings of the names that belong to a joint or link.
MOVED = (
    "x",
    "y",
    "z",
    "turn",
    "height",
    "pitch",
    *(f"q{axis}" for axis in "wxyz"),
    *(f"turn_{axis}" for axis in "xyz"),
)
ADDED = (*MOVED, *(f"{word}{RATE}" for word in MOVED), "rate", "effort", "damping", "friction", "mass")
LONGEST = LONGEST_NAME - 22  # characters of a name, which gets an ending and, if it is taken, `_joint_99`
RATES = {"revolute": 10.0, "continuous": 10.0, "prismatic": 1.0}  # rad/s, m/s, if a URDF has no velocity
PLACEHOLDER = 1000.0  # rad/s, m/s: a common placeholder in published files; no joint reaches it
GUESS = 10.0  # m, the limit of a prismatic joint if its own is too large
TOO_STRONG = 100.0  # times the rate limit, reached within a control period: the effort is too strong to be simulated
SMOOTHING = 0.01  # rad/s, m/s: the rate where dry friction fades
STIFFEST = 2000.0  # 1/s, of the dry friction of a link alone; a build resolves twice as much at CONTROL_RATE
TOLERANCE = 0.3  # of the masses, which have none in a URDF


def model_file(
    path: Path,
    name: str,
    fixed: Collection[str] = (),
    planar: Collection[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    passive: Collection[str] = (),
) -> str:
    """The text of a model file for the robot of a URDF. `warn` gets a message for each guess and omission.

    fixed: joints that are held at zero, or shell patterns of names. planar: floating joints, or the root link, that
    move in the x-z plane of their frame. passive: shell patterns of joints that get no input. Raises ModelError for a
    file that cannot be read, and for a robot that a model file cannot hold.
    """
    identifier(name, "robot", None)
    described, validated = _parsed(path, warn)
    place = Place(str(path), 1)
    root, joints, motors = tree(described, fixed, planar, passive, place, validated)
    unmoved = motionless(described, joints)
    names = _names([joint.name for joint in joints if joint.type != "fixed"], [link.name for link in described.links])
    bodies = {link.name: link for link in described.links}
    written = ModelLines()
    if root != GROUND:
        _add_link(written, names["link", root], None, None, None, names)
    still = {root}
    for joint in joints:
        if joint.type == "fixed" and joint.parent in still:
            still.add(joint.child)
        if joint.type in PLANAR:
            _add_planar(written, joint, names["joint", joint.name])
        elif joint.type == FLOATING:
            _add_floating(written, joint, names["joint", joint.name])
        elif joint.type != "fixed":
            inertia = carried_inertia(described, joints, joint)
            _add_coordinate(written, joint, names["joint", joint.name], inertia, joint.name in motors)
            _add_losses(written, joint, names["joint", joint.name], carried_inertia(described, joints, joint, True))
            if joint.mimic is not None:
                leader = names["joint", joint.mimic.joint]
                _add_coupling(written, names["joint", joint.name], leader, *coupling(described, joints, joint))
        carrier = None if joint.parent == GROUND else names["link", joint.parent]
        body = None if joint.child in still else bodies[joint.child]
        _add_link(written, names["link", joint.child], body, joint, carrier, names, joint.child in unmoved)
    for message in _guesses(written):
        warn(f"{path}: {message}")
    if validated.driven is None:
        warn(
            f"{path}: the URDF does not say which joints have a motor (<transmission>, <ros2_control>): "
            f"{', '.join(motors)} got one because of their effort limit. Name those without one with --passive."
        )
    if any(bodies[link].inertial is not None for link in still):
        warn(
            f"{path}: `{root}` is fixed to the ground. If it should move (legs, wheels, wings), import with "
            f"--planar {root}: it then floats in a vertical plane."
        )
        written.remarks.append(f"{', '.join(sorted(still))}: on the ground, so that the mass has no effect.")
    return model_file_text(path.name, name, written)


def _guesses(written: ModelLines) -> Iterator[str]:
    """Messages about the guesses in the file."""
    if written.guessed:
        yield (
            f"the URDF has no velocity limit, or one of {PLACEHOLDER:g} or more, for {', '.join(written.guessed)}; the "
            "rate_limit in the file is a guess. Correct it."
        )
    if written.endless:
        yield (
            f"the limits of {', '.join(written.endless)} are too large: revolute joints turn without end in the file, "
            f"and others have a limit of {GUESS:g} m, which is a guess. Correct it."
        )
    if written.ranges:
        yield (
            f"limits are symmetric in the file, and the task ends at zero; the URDF has {', '.join(written.ranges)}. "
            "Write the real range with robot.end_stops(coordinate, (lower, upper), stiffness, width=...), and a target "
            "and a start within it."
        )
    if written.strong:
        yield (
            f"the effort of {', '.join(written.strong)} moves the load to {TOO_STRONG:g} times the rate limit or more "
            f"within 1/{CONTROL_RATE} s, which is too fast to be simulated. Correct the effort, or add the motor's "
            "inertia: robot.rotor(coordinate, inertia, gear=...)."
        )
    if written.smoothed:
        yield (
            f"the dry friction of {', '.join(written.smoothed)} is strong for light links; it fades over a wide range "
            "of rates in the file, so that it can be simulated. Correct the friction or its smoothing, or add the "
            "motor's inertia."
        )
    if written.coupled:
        yield (
            f"{', '.join(written.coupled)} follow other joints (<mimic>); the stiffness and damping that couple them "
            "are guesses. Correct them, or hold the joints with --fix mimic."
        )


def _parsed(path: Path, warn: Callable[[str], None]) -> tuple[Any, ValidatedUrdf]:
    """The robot as the parser returns it, and the validated file."""
    try:
        reader = import_module("yourdfpy").URDF
    except ImportError as error:
        raise ModelError(
            "reading a URDF needs yourdfpy, which is not installed. Install it with: pip install yourdfpy"
        ) from error
    if not path.is_file():
        raise ModelError(f"there is no file {path}.")
    validated = validate(path, warn)
    try:
        robot = reader.load(io.BytesIO(validated.content), build_scene_graph=False, load_meshes=False).robot
    except Exception as error:  # the XML library of the parser may raise any exception
        words = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"the URDF cannot be read: {words}.", Place(str(path), 1)) from error
    return robot, validated


def _names(joints: Iterable[str], links: Iterable[str]) -> Names:
    """Identifiers by ("joint" or "link", name). All differ, also with the endings in `ADDED`."""
    result: Names = {}
    used: set[str] = set(TAKEN)
    for kind, name in [*(("joint", joint) for joint in joints), *(("link", link) for link in links)]:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "part"
        start = (plain if plain[0].isalpha() else f"part_{plain}")[:LONGEST]
        others = chain([start, f"{start}_{kind}"], (f"{start}_{kind}_{number}" for number in count(2)))
        for plain in others:
            made = [plain, *(f"{plain}_{word}" for word in ADDED)]
            if not (iskeyword(plain) or used & set(made)):
                break
        used.update(made)
        result[kind, name] = plain
    return result


def _add_planar(written: ModelLines, joint: Any, name: str) -> None:
    """Write two displacements and an angle, usually with guessed limits."""
    limit = joint.limit
    first, second, turn = (f"{name}_{word}" for word in PLANAR[joint.type])
    reach = max((abs(bound) for bound in (limit.lower, limit.upper) if bound) if limit else (), default=0.0)
    rate = max(limit.velocity, 0.0) if limit and limit.velocity else 0.0
    if not reach or not rate:
        written.remarks.append(f"The limits of {first}, {second}, {turn} and their rates are guesses; correct them.")
    losses = joint.dynamics
    if (limit and limit.effort) or (losses is not None and (float(losses.damping or 0) or float(losses.friction or 0))):
        written.remarks.append(f"The effort, damping and friction of {name} are left out; write them with robot.apply.")
    for coordinate in (first, second):
        limits = f"limit={number(reach or 2)}, rate_limit={number(rate or 5)}"
        written.coordinates.append(f'{coordinate} = robot.prismatic("{coordinate}", {limits})')
        written.costs += [f"{coordinate}**2", f"0.1 * {coordinate}.rate**2"]
    turns = f"continuous=True, rate_limit={number(rate or 15)}"
    written.coordinates.append(f'{turn} = robot.revolute("{turn}", {turns})')
    written.costs += [f"(pi * sin({turn} / 2)) ** 2", f"0.1 * {turn}.rate**2"]


def _add_floating(written: ModelLines, joint: Any, name: str) -> None:
    """Write a joint without restriction, with limits that are guesses."""
    written.remarks.append(f"The limits of {name} and of its rates are guesses; correct them.")
    losses = joint.dynamics
    if losses is not None and (float(losses.damping or 0) or float(losses.friction or 0)):
        written.remarks.append(f"The damping and friction of {name} are left out; write them with robot.damp.")
    written.coordinates.append(f'{name} = robot.floating("{name}", limit=2, rate_limit=5, turn_rate_limit=15)')
    written.costs += [f"sum(each**2 for each in {name}.position)", f"{name}.away().dot({name}.away())"]
    written.costs += [f"0.1 * sum(each**2 for each in ({name}.velocity + {name}.rate))"]


def _add_coordinate(written: ModelLines, joint: Any, name: str, inertia: float, motor: bool) -> None:
    """Write a coordinate, and its input if it has a motor. inertia: of its load, kg m^2 or kg."""
    limit, (force, _) = joint.limit, UNITS[joint.type]
    reach = math.inf if joint.type == "continuous" else max(abs(limit.lower), abs(limit.upper))
    endless = reach > LARGEST.get(joint.type, 0.0)
    if endless and joint.type != "continuous":
        written.endless.append(name)
    if endless and joint.type != "prismatic":
        declared, span = "revolute", "continuous=True"
        written.costs.append(f"(pi * sin({name} / 2)) ** 2")
    else:
        declared, span = joint.type, f"limit={number(GUESS if endless else reach)}"
        written.costs.append(f"{name}**2")
        if abs(limit.lower + limit.upper) > EPSILON and not endless:
            written.ranges.append(f"{name} from {limit.lower:g} to {limit.upper:g}")
            written.remarks.append(
                f"{name} was limited to {limit.lower:g} ... {limit.upper:g}; limits are symmetric here."
            )
    written.costs.append(f"0.1 * {name}.rate**2")
    rate_limit, known = _rate_limit(joint)
    line = f'{name} = robot.{declared}("{name}", {span}, rate_limit={number(rate_limit)})'
    if not known:
        written.guessed.append(name)
        velocity = (limit.velocity if limit is not None else None) or 0.0
        line += f"  # a guess: the URDF has {f'{velocity:g}' if velocity > 0 else 'no velocity'}"
    written.coordinates.append(line)
    if motor:
        written.inputs.append(f'{name}_effort = robot.input("{name}_effort", {number(limit.effort)}, "{force}")')
        written.forces.append(f"robot.apply({name}, {name}_effort)")
        if limit.effort > TOO_STRONG * rate_limit * inertia * CONTROL_RATE:
            written.strong.append(name)
    elif has_effort(joint):
        written.remarks.append(f"{name} is passive: it has an effort and no motor, so it has no input.")
    elif joint.mimic is None:
        written.remarks.append(f"{name} has no effort, so it has no input.")


def _add_losses(written: ModelLines, joint: Any, name: str, inertia: float) -> None:
    """Write damping and dry friction. inertia (kg m^2 or kg) of the link: the friction of a light link fades slowly."""
    losses, (force, damping) = joint.dynamics, UNITS[joint.type]
    if losses is not None and float(losses.damping or 0):
        written.parameters.append(_fixed(f"{name}_damping", float(losses.damping), damping))
        written.forces.append(f"robot.damp({name}, {name}_damping)")
    friction = float(losses.friction or 0) if losses is not None else 0.0
    if not friction:
        return
    smoothing, note = SMOOTHING, ""
    if inertia and friction > STIFFEST * SMOOTHING * inertia:
        smoothing, note = friction / (STIFFEST * inertia), "  # a guess: wide, because its link is light"
        written.smoothed.append(name)
    written.parameters.append(_fixed(f"{name}_friction", friction, force))
    written.forces.append(f"robot.dry_friction({name}, {name}_friction, smoothing={smoothing:.3g}){note}")


def _rate_limit(joint: Any) -> tuple[float, bool]:
    """The rate limit of a joint in rad/s or m/s, and whether it is the URDF's."""
    velocity = (joint.limit.velocity if joint.limit is not None else None) or 0.0
    known = 0 < velocity < PLACEHOLDER
    return (velocity, True) if known else (RATES[joint.type], False)


def _add_coupling(written: ModelLines, name: str, leader: str, ratio: float, stiffness: float, damping: float) -> None:
    """Write a spring and damper that pull a coordinate to `ratio` times its leader. The coordinate has no input."""
    written.coupled.append(name)
    options = f"ratio={number(ratio)}, stiffness={stiffness:.3g}, damping={damping:.3g}"
    written.forces.append(f"robot.coupling({name}, {leader}, {options})  # a guess: in the URDF the coupling is rigid")


def _fixed(name: str, value: float, unit: str) -> str:
    return f'{name} = robot.parameter("{name}", {number(value)}, "{unit}", fixed=True)'


def _add_link(
    written: ModelLines,
    name: str,
    body: Any,
    joint: Any,
    on: str | None,
    names: Names,
    unmoved: bool = False,
) -> None:
    """Write a link with the values that are not zero.

    body: None for a link whose mass has no effect. on: the link that carries it, None for the ground. unmoved: its
    centre of mass does not move, so that its mass becomes a fixed parameter.
    """
    arguments = [f'"{name}"']
    if joint is not None and joint.type in PLANAR:
        coordinates = (f"{names['joint', joint.name]}_{word}" for word in PLANAR[joint.type])
        arguments.append(f"({', '.join(coordinates)})")
    elif joint is not None and joint.type != "fixed":
        arguments.append(names["joint", joint.name])
    if on is not None:
        arguments.append(f"on={on}")
    origin = np.eye(4) if joint is None or joint.origin is None else np.asarray(joint.origin, np.float64)
    if np.abs(origin[:3, 3]).max() > EPSILON:
        arguments.append(f"at={vector(origin[:3, 3])}")
    turned = roll_pitch_yaw(origin[:3, :3])
    if max(map(abs, turned)) > EPSILON:
        arguments.append(f"turned={vector(turned)}")
    if joint is not None and joint.type not in ("fixed", IN_PLANE, FLOATING):
        arguments.append(f"axis={axis([1, 0, 0] if joint.axis is None else joint.axis)}")
    inertial = body.inertial if body is not None else None
    frame = np.eye(4) if inertial is None or inertial.origin is None else np.asarray(inertial.origin, np.float64)
    if inertial is not None and inertial.mass:
        uncertain = "fixed=True" if unmoved else f"tolerance={TOLERANCE}"
        written.parameters.append(
            f'{name}_mass = robot.parameter("{name}_mass", {number(inertial.mass)}, "kg", {uncertain})'
        )
        arguments.append(f"mass={name}_mass")
        if np.abs(frame[:3, 3]).max() > EPSILON:
            arguments.append(f"centre={vector(frame[:3, 3])}")
    weight = EPSILON * (inertial.mass or 0.0) if inertial is not None else 0.0
    if inertial is not None and inertial.inertia is not None and np.abs(inertial.inertia).max() > weight:
        tensor = frame[:3, :3] @ np.asarray(inertial.inertia, np.float64) @ frame[:3, :3].T
        entries = [max(tensor[i, i], 0.0) for i in range(3)]  # less is a rounding error of the file
        entries += [tensor[i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
        entries = entries if np.abs(entries[3:]).max() > EPSILON * np.abs(entries).max() else entries[:3]
        arguments.append(f"inertia=({', '.join(f'{entry:.12g}' for entry in entries)})")
    text = f"{name} = robot.link({', '.join(arguments)})"
    if len(text) > 110:
        text = "\n".join([f"{name} = robot.link(", *(f"    {argument}," for argument in arguments), ")"])
    written.links.append(text)
