"""From a URDF to the text of a model file, for a person to read and edit."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import ModelError, Place
from modelgen.statement.checker import identifier
from modelgen.statement.declarations import LARGEST
from modelgen.importers.joints import GROUND, IN_PLANE, PLANAR, motionless, tree
from modelgen.importers.mimic import carried_inertia, coupling
from modelgen.importers.text import (
    CONTROL_RATE,
    EPSILON,
    Written,
    axis,
    model_file_text,
    number,
    roll_pitch_yaw,
    vector,
)
from modelgen.importers.validate import Mechanics, mechanics

Array = NDArray[np.float64]
Names = dict[tuple[str, str], str]

TAKEN = ("robot", "pi", "sin", "LogCos", "Robot")  # names that the written file uses itself
UNITS = {"prismatic": ("N", "N s/m"), "revolute": ("N m", "N m s"), "continuous": ("N m", "N m s")}
#: Words that are added to the name of a joint or link to name what belongs to it.
ADDED = ("x", "y", "turn", "height", "pitch", "rate", "effort", "damping", "friction", "mass")
RATES = {"revolute": 10.0, "continuous": 10.0, "prismatic": 1.0}  # rad/s, m/s, where a URDF states no velocity
PLACEHOLDER = 1000.0  # rad/s, m/s: what files state whose author did not know; no joint reaches it
GUESS = 10.0  # m, the limit of a prismatic joint whose own is too large to be one
TOO_STRONG = 100.0  # times the rate limit, which an effort reaches within a control period
SMOOTHING = 0.01  # rad/s, m/s: the rate where dry friction fades
STIFFEST = 2000.0  # 1/s, of the dry friction of a link alone; at CONTROL_RATE a build resolves twice as much
TOLERANCE = 0.3  # of the masses; a URDF states none


def model_file(
    path: Path,
    name: str,
    fixed: Collection[str] = (),
    planar: Collection[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> str:
    """The text of a model file for the robot that a URDF describes. `warn` is told what to look at.

    fixed: joints that are held at zero, or patterns of names as in a shell. planar: floating joints, or the root link,
    that move in the x-z plane of their frame. Raises ModelError for a file that cannot be read, and for a robot that a
    model file cannot state.
    """
    identifier(name, "robot", None)
    described, found = _parsed(path, warn)
    place = Place(str(path), 1)
    root, joints = tree(described, fixed, planar, place, found.lines, found.faults)
    unmoved = motionless(described, joints)
    names = _names([joint.name for joint in joints if joint.type != "fixed"], [link.name for link in described.links])
    bodies = {link.name: link for link in described.links}
    written = Written()
    if root != GROUND:
        _add_link(written, names["link", root], None, None, None, names)
    still = {root}
    for joint in joints:
        if joint.type == "fixed" and joint.parent in still:
            still.add(joint.child)
        if joint.type in PLANAR:
            _add_planar(written, joint, names["joint", joint.name])
        elif joint.type != "fixed":
            _add_coordinate(written, joint, names["joint", joint.name], carried_inertia(described, joints, joint))
            _add_losses(written, joint, names["joint", joint.name], carried_inertia(described, joints, joint, True))
            if joint.mimic is not None:
                leader = names["joint", joint.mimic.joint]
                _add_coupling(written, names["joint", joint.name], leader, *coupling(described, joints, joint))
        carrier = None if joint.parent == GROUND else names["link", joint.parent]
        body = None if joint.child in still else bodies[joint.child]
        _add_link(written, names["link", joint.child], body, joint, carrier, names, joint.child in unmoved)
    for words in _guesses(written):
        warn(f"{path}: {words}")
    if any(bodies[link].inertial is not None for link in still):
        warn(
            f"{path}: `{root}` is fixed to the ground. If it should move (legs, wheels, wings), import with "
            f"--planar {root}: it then floats in a vertical plane."
        )
        written.remarks.append(f"{', '.join(sorted(still))}: on the ground, so that its own mass has no effect.")
    return model_file_text(path.name, name, written)


def _guesses(written: Written) -> Iterator[str]:
    """What a person should look at in the file."""
    if written.guessed:
        yield (
            f"no velocity limit, or one of {PLACEHOLDER:g} and more, for {', '.join(written.guessed)}; the rate_limit "
            "in the file is a guess. Mend it."
        )
    if written.endless:
        yield (
            f"the limits of {', '.join(written.endless)} are too large to be one: revolute joints turn without end in "
            f"the file, and others have a limit of {GUESS:g} m, a guess. Mend it."
        )
    if written.ranges:
        yield (
            f"limits are symmetric in the file, and the task rests at zero; the URDF has {', '.join(written.ranges)}. "
            "State the real range by robot.end_stops(coordinate, (lower, upper), stiffness, width=...), and a target "
            "and a start within it."
        )
    if written.strong:
        yield (
            f"the effort of {', '.join(written.strong)} moves what they carry to {TOO_STRONG:g} times the rate limit "
            f"and more within 1/{CONTROL_RATE} s, too fast to be simulated. Mend the effort, or add the motor's "
            "inertia: robot.rotor(coordinate, inertia, gear=...)."
        )
    if written.smoothed:
        yield (
            f"the dry friction of {', '.join(written.smoothed)} is strong for their links, and fades over a "
            "wide range of rates, so that it can be simulated. Mend the friction or its smoothing, or add the motor's "
            "inertia."
        )
    if written.coupled:
        yield (
            f"{', '.join(written.coupled)} follow other joints (<mimic>); the stiffness and damping that couple them "
            "are guesses. Mend them, or hold the joints with --fix mimic."
        )


def _parsed(path: Path, warn: Callable[[str], None]) -> tuple[Any, Mechanics]:
    """The robot as the parser has it, and what it was given."""
    try:
        reader = import_module("yourdfpy").URDF
    except ImportError as error:
        raise ModelError(
            "reading a URDF needs yourdfpy, which is not installed. Install it with: pip install yourdfpy"
        ) from error
    if not path.is_file():
        raise ModelError(f"there is no file {path}.")
    found = mechanics(path, warn)
    try:
        robot = reader.load(io.BytesIO(found.content), build_scene_graph=False, load_meshes=False).robot
    except Exception as error:  # the parser raises whatever its XML library does
        words = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"this is no URDF that can be read: {words}.", Place(str(path), 1)) from error
    return robot, found


def _names(joints: Iterable[str], links: Iterable[str]) -> Names:
    """Identifiers by ("joint" or "link", name). No two are equal, not even with one of `ADDED` behind them."""
    result: Names = {}
    used: set[str] = set(TAKEN)
    for kind, name in [*(("joint", each) for each in joints), *(("link", each) for each in links)]:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "part"
        plain = plain if plain[0].isalpha() else f"part_{plain}"
        while iskeyword(plain) or used & set(made := [plain, *(f"{plain}_{word}" for word in ADDED)]):
            plain += f"_{kind}"
        used.update(made)
        result[kind, name] = plain
    return result


def _add_planar(written: Written, joint: Any, name: str) -> None:
    """Write two displacements and an angle. A URDF seldom limits them."""
    limit = joint.limit
    first, second, turn = (f"{name}_{word}" for word in PLANAR[joint.type])
    reach = max((abs(each) for each in (limit.lower, limit.upper) if each) if limit else (), default=0.0)
    rate = limit.velocity if limit and limit.velocity else 0.0
    if not reach or not rate:
        written.remarks.append(f"The limits of {first}, {second}, {turn} and their rates are guesses; mend them.")
    losses = joint.dynamics
    if (limit and limit.effort) or (losses is not None and (float(losses.damping or 0) or float(losses.friction or 0))):
        written.remarks.append(f"The effort, damping and friction of {name} are left out; write them with robot.apply.")
    for each in (first, second):
        limits = f"limit={number(reach or 2)}, rate_limit={number(rate or 5)}"
        written.coordinates.append(f'{each} = robot.prismatic("{each}", {limits})')
        written.costs += [f"{each}**2", f"0.1 * {each}.rate**2"]
    turns = f"continuous=True, rate_limit={number(rate or 15)}"
    written.coordinates.append(f'{turn} = robot.revolute("{turn}", {turns})')
    written.costs += [f"(pi * sin({turn} / 2)) ** 2", f"0.1 * {turn}.rate**2"]


def _add_coordinate(written: Written, joint: Any, name: str, inertia: float) -> None:
    """Write a coordinate with its input. inertia: of what it carries, kg m^2 or kg."""
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
        stated = (limit.velocity if limit is not None else None) or 0.0
        line += f"  # a guess: the URDF states {f'{stated:g}' if stated > 0 else 'no velocity'}"
    written.coordinates.append(line)
    if joint.mimic is None and limit is not None and limit.effort and limit.effort > 0:
        written.inputs.append(f'{name}_effort = robot.input("{name}_effort", {number(limit.effort)}, "{force}")')
        written.forces.append(f"robot.apply({name}, {name}_effort)")
        if limit.effort > TOO_STRONG * rate_limit * inertia * CONTROL_RATE:
            written.strong.append(name)
    elif joint.mimic is None:
        written.remarks.append(f"{name} has no effort, so it has no input.")


def _add_losses(written: Written, joint: Any, name: str, inertia: float) -> None:
    """Write damping and dry friction, which fades at higher rates where its link has little inertia (kg m^2 or kg)."""
    losses, (force, damping) = joint.dynamics, UNITS[joint.type]
    if losses is not None and float(losses.damping or 0):
        written.parameters.append(_fixed(f"{name}_damping", float(losses.damping), damping))
        written.forces.append(f"robot.damp({name}, {name}_damping)")
    friction = float(losses.friction or 0) if losses is not None else 0.0
    if not friction:
        return
    smoothing, note = SMOOTHING, ""
    if inertia and friction > STIFFEST * SMOOTHING * inertia:
        smoothing, note = friction / (STIFFEST * inertia), "  # a guess: wide, for its link is light"
        written.smoothed.append(name)
    written.parameters.append(_fixed(f"{name}_friction", friction, force))
    written.forces.append(f"robot.dry_friction({name}, {name}_friction, smoothing={smoothing:.3g}){note}")


def _rate_limit(joint: Any) -> tuple[float, bool]:
    """The rate limit of a joint in rad/s or m/s, and whether the URDF states it."""
    stated = (joint.limit.velocity if joint.limit is not None else None) or 0.0
    known = 0 < stated < PLACEHOLDER
    return (stated, True) if known else (RATES[joint.type], False)


def _add_coupling(written: Written, name: str, leader: str, ratio: float, stiffness: float, damping: float) -> None:
    """Write a spring and damper that pull a coordinate to `ratio` times another; it has no input of its own."""
    written.coupled.append(name)
    how = f"ratio={number(ratio)}, stiffness={stiffness:.3g}, damping={damping:.3g}"
    written.forces.append(f"robot.coupling({name}, {leader}, {how})  # a guess: the URDF couples them without give")


def _fixed(name: str, value: float, unit: str) -> str:
    return f'{name} = robot.parameter("{name}", {number(value)}, "{unit}", fixed=True)'


def _add_link(
    written: Written,
    name: str,
    body: Any,
    joint: Any,
    on: str | None,
    names: Names,
    unmoved: bool = False,
) -> None:
    """Write a link with its values that are not zero.

    body: None for a link whose mass has no effect. on: the link that carries it, None for the ground. unmoved: its
    centre of mass stays in place, so that its mass is written as a fixed parameter.
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
    if joint is not None and joint.type not in ("fixed", IN_PLANE):
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
        entries = [tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        entries = entries if np.abs(entries[3:]).max() > EPSILON * np.abs(entries).max() else entries[:3]
        arguments.append(f"inertia=({', '.join(f'{entry:.12g}' for entry in entries)})")
    text = f"{name} = robot.link({', '.join(arguments)})"
    if len(text) > 110:
        text = "\n".join([f"{name} = robot.link(", *(f"    {argument}," for argument in arguments), ")"])
    written.links.append(text)
