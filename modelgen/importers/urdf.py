"""URDF import: the text of a model file, for a person to read and edit."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError, Place
from modelgen.files import require_file
from modelgen.importers.mechanism import MOVING, Actuator, Coupling, Inertial, Joint, Link, Mechanism
from modelgen.importers.urdf_tree import has_effort, tree
from modelgen.importers.urdf_xml import ValidatedUrdf, validate
from modelgen.importers.writer import UNITS, Writer
from modelgen.statement.checker import robot_name

MANY_TURNS = 25.0  # rad: no joint with stops turns further, but its angle in degrees may be larger


def model_file(
    path: Path,
    name: str,
    fixed: Collection[str] = (),
    planar: Collection[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    passive: Collection[str] = (),
    efforts: Mapping[str, float] = MappingProxyType({}),
) -> str:
    """The text of a model file for the robot of a URDF. `warn` gets a message for each guess and omission.

    fixed: joints that are held at zero, or shell patterns of names. planar: floating joints, or the root link, that
    move in the x-z plane of their frame. passive: shell patterns of joints that get no input. efforts: largest forces
    (N m or N) of motors by joint or shell pattern, in place of those of the file. Raises ModelError for a file that
    cannot be read, and for a robot that a model file cannot hold.
    """
    robot_name(name)
    described, validated = _parsed(path, warn)
    place = Place(str(path), 1)
    joints, motors = tree(described, fixed, planar, passive, efforts, place, validated)
    mechanism = _mechanism(described, joints, motors)
    writer = Writer(mechanism, "URDF")
    still = mechanism.still()
    root = mechanism.root
    fixed_masses = any(link.inertial is not None for link in mechanism.links if link.name in still)
    remarks = [f"{', '.join(sorted(still))}: on the ground, so that the mass has no effect."] if fixed_masses else []
    text = writer.text(path.name, name, lambda message: warn(f"{path}: {message}"), remarks)
    guessed = [name for name in motors if not any(fnmatchcase(name, pattern) for pattern in efforts)]
    for joint in mechanism.joints:
        if joint.type == "revolute" and MANY_TURNS < joint.reach < np.inf:
            warn(
                f"{path}: joint `{joint.name}` turns by up to {joint.reach:g} rad. A URDF has no degrees: if this is "
                "an angle in degrees, write it in rad."
            )
    if validated.driven is None and guessed:
        warn(
            f"{path}: the URDF does not say which joints have a motor (<transmission>, <ros2_control>): "
            f"an effort limit gave one to {', '.join(guessed)}. Name those without one with --passive."
        )
    if fixed_masses:
        warn(
            f"{path}: `{root}` is fixed to the ground. If it should move (legs, wheels, wings), import with "
            f"--planar {root}: it then floats in a vertical plane."
        )
    return text


def _mechanism(described: Any, joints: Sequence[Any], motors: Collection[str]) -> Mechanism:
    """The links, joints, motors and couplings of a URDF in plain numbers."""
    mechanism = Mechanism(
        links=[Link(link.name, _inertial(link.inertial)) for link in described.links],
        joints=[_joint(joint, joint.name in motors) for joint in joints],
        actuators=[
            Actuator(
                f"{joint.name}_effort",
                ((joint.name, 1.0),),
                1.0,
                (0.0, 0.0, 0.0),
                -joint.limit.effort,
                joint.limit.effort,
                UNITS[joint.type][0],
            )
            for joint in joints
            if joint.name in motors
        ],
        couplings=[
            Coupling(
                ((joint.name, 1.0),),
                ((joint.mimic.joint, 1.0),),
                (
                    float(joint.mimic.offset or 0),
                    1.0 if joint.mimic.multiplier is None else float(joint.mimic.multiplier),
                ),
            )
            for joint in joints
            if joint.mimic is not None and joint.type != "fixed"
        ],
    )
    mechanism.measure_from_the_middle()
    return mechanism


def _inertial(inertial: Any) -> Inertial | None:
    if inertial is None:
        return None
    inertia = None if inertial.inertia is None else np.asarray(inertial.inertia, np.float64)
    return Inertial(float(inertial.mass or 0.0), _frame(inertial.origin), inertia)


def _joint(joint: Any, motor: bool) -> Joint:
    """A joint in plain numbers."""
    limit, losses = joint.limit, joint.dynamics
    if motor or joint.type not in MOVING:
        remark = ""
    elif has_effort(joint):
        remark = "{} is passive: it has an effort and no motor, so it has no input."
    else:
        remark = "{} has no effort, so it has no input." if joint.mimic is None else ""
    return Joint(
        name=joint.name,
        type=joint.type,
        parent=joint.parent,
        child=joint.child,
        origin=_frame(joint.origin),
        axis=np.asarray([1.0, 0, 0] if joint.axis is None else joint.axis, np.float64),
        lower=limit.lower if limit is not None and joint.type != "continuous" else None,
        upper=limit.upper if limit is not None and joint.type != "continuous" else None,
        velocity=float((limit.velocity if limit is not None else None) or 0.0),
        effort=float((limit.effort if limit is not None else None) or 0.0),
        damping=float(losses.damping or 0) if losses is not None else 0.0,
        friction=float(losses.friction or 0) if losses is not None else 0.0,
        remark=remark,
    )


def _frame(origin: Any) -> Array:
    return np.eye(4) if origin is None else np.asarray(origin, np.float64)


def _parsed(path: Path, warn: Callable[[str], None]) -> tuple[Any, ValidatedUrdf]:
    """The robot as the parser returns it, and the validated file."""
    try:
        reader = import_module("yourdfpy").URDF
    except ImportError as error:
        raise ModelError(
            "reading a URDF needs yourdfpy, which is not installed. Install it with: pip install yourdfpy"
        ) from error
    require_file(path)
    validated = validate(path, warn)
    try:
        robot = reader.load(io.BytesIO(validated.content), build_scene_graph=False, load_meshes=False).robot
    except Exception as error:  # the XML library of the parser may raise any exception
        words = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"the URDF cannot be read: {words}.", Place(str(path), 1)) from error
    return robot, validated
