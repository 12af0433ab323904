"""MJCF import: MuJoCo compiles the file; its bodies, joints and forces become a `Mechanism`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.errors import ModelError, Place
from modelgen.importers.mechanism import Mechanism
from modelgen.importers.mjcf_forces import MjcfCommand, MjcfForces
from modelgen.importers.mjcf_loops import LoopReader
from modelgen.importers.mjcf_tree import Compiled, MjcfTree, compile_file
from modelgen.importers.writer import Writer
from modelgen.statement.checker import robot_name

LISTED = 5  # lines of a kind of element that are named


@dataclass
class MjcfRobot:
    """A file as it is imported: the mechanism, MuJoCo's model, how each input commands an actuator, and the loops."""

    compiled: Compiled
    mechanism: Mechanism
    commands: list[MjcfCommand]
    loops: LoopReader


def is_mjcf(path: Path) -> bool:
    """Whether a file is MJCF and not URDF: by its first element, otherwise by its name."""
    try:
        found = re.search(rb"<(mujoco|robot)\b", path.read_bytes())
    except OSError:
        found = None
    return found[1] == b"mujoco" if found else path.suffix.lower() in (".xml", ".mjcf")


def model_file(
    path: Path,
    name: str,
    fixed: Collection[str] = (),
    planar: Collection[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    passive: Collection[str] = (),
    command: Collection[str] = (),
) -> str:
    """The text of a model file for the robot of an MJCF file. `warn` gets a message for each guess and omission.

    fixed: names or shell patterns of joints that are held in their reference position. planar: free joints, or their
    bodies, that move in the vertical x-z plane. passive: patterns of joints or actuators that get no input. command:
    patterns of servos whose input stays their command, although a limit of their force may bind. Raises ModelError for
    a file that MuJoCo cannot read, and for a robot that a model file cannot hold.
    """
    robot_name(name)
    messages: list[str] = []
    robot = read(path, fixed, planar, passive, command, messages.append)
    text = Writer(robot.mechanism, "MJCF").text(path.name, name, messages.append)
    for message in messages:
        warn(f"{path}: {message}")
    return text


def read(
    path: Path,
    fixed: Collection[str] = (),
    planar: Collection[str] = (),
    passive: Collection[str] = (),
    command: Collection[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> MjcfRobot:
    """A file as it is imported; the arguments are those of `model_file`."""
    compiled = compile_file(path)
    tree = MjcfTree(compiled, fixed, planar)
    forces = MjcfForces(compiled, tree.moving, passive, command, warn)
    pushes = [tree.push(name, actuator) for name, actuator in forces.at_sites.items()]
    mechanism = Mechanism(
        tree.links,
        tree.joints,
        forces.actuators,
        forces.passive,
        forces.couplings,
        pushes,
        gravity=tree.gravity,
        fastest=forces.fastest,
    )
    loops = LoopReader(compiled, tree, mechanism)
    mechanism.closures = loops.closures()
    mechanism.measure_from_the_middle()
    if not any(joint.type != "fixed" for joint in mechanism.joints):
        raise ModelError("no joint moves. This is an object, not a robot.", Place(str(path), 1))
    _check_driven(compiled, forces)
    for message in tree.messages:
        warn(message)
    _list_unused(compiled)
    for what, lines in compiled.left_out.items():
        known = list(dict.fromkeys(filter(None, lines)))
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        where = f" (line{'s' * (len(known) > 1)} {', '.join(known[:LISTED])}{more})" if known else ""
        warn(f"not carried over: {what}{where}.")
    return MjcfRobot(compiled, mechanism, forces.commands, loops)


def _check_driven(compiled: Compiled, forces: MjcfForces) -> None:
    """Raise ModelError for a robot without an input."""
    if forces.actuators:
        return
    lost = "; ".join(what for what in compiled.left_out if "actuator" in what)
    reason = f" ({lost})" if lost else ""
    raise ModelError(
        f"no actuator drives a joint that moves{reason}. Add one to <actuator>, such as "
        '<motor joint="..." ctrlrange="-1 1"/>.',
        Place(str(compiled.path), 1),
    )


def _list_unused(compiled: Compiled) -> None:
    """Note the contacts, fluids, limits and other effects that a model file does not hold."""
    model, spec = compiled.model, compiled.spec
    touching = [
        geom for geom in spec.geoms if geom.id >= 0 and model.geom_contype[geom.id] | model.geom_conaffinity[geom.id]
    ]
    touching += list(spec.pairs)
    off = int(model.opt.disableflags) & int(compiled.mujoco.mjtDisableBit.mjDSBL_CONTACT)
    if touching and not off:
        compiled.leave_out(f"contacts ({len(touching)} geoms and pairs)", *touching)
    for what, elements in _other_effects(compiled):
        if elements is None or elements:
            compiled.leave_out(what, *(elements or []))


def _other_effects(compiled: Compiled) -> Iterator[tuple[str, list[Any] | None]]:
    """Effects that are left out, and their elements; None for an effect of the whole file."""
    model, spec = compiled.model, compiled.spec
    if model.opt.density or model.opt.viscosity:
        yield "fluid forces (density and viscosity)", None
    if model.nflex:
        yield "flexible bodies", list(spec.flexes)
    if model.nplugin:
        yield "plugins", list(spec.plugins)
    joints = {joint.id: joint for joint in spec.joints}
    curved = np.abs(model.jnt_stiffnesspoly).max(axis=1, initial=0) > 0
    dofs = np.abs(model.dof_dampingpoly).max(axis=1, initial=0) > 0
    curved[model.dof_jntid[dofs]] = True
    yield "springs and dampers of joints that are not linear", [joints[int(index)] for index in np.flatnonzero(curved)]
    yielding = np.flatnonzero(model.jnt_springyield)
    yield "springs of joints that yield", [joints[int(index)] for index in yielding]
