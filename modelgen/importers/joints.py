"""The joints of a URDF as a tree that a model file can state. Errors say what a model file cannot state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from modelgen.errors import ModelError, Place, joined, suggestion
from modelgen.importers.mimic import uncoupled
from modelgen.importers.validate import Part

Array = NDArray[np.float64]

MOVING = ("revolute", "continuous", "prismatic")
IN_PLANE = "floating in a plane"
PLANAR = {"planar": ("x", "y", "turn"), IN_PLANE: ("x", "height", "pitch")}  # coordinates, by the joint's type
MIMIC = "mimic"  # of --fix: all joints that follow another
GROUND = "the ground"  # the name of the link that a base floats over


def tree(
    described: Any,
    fixed: Collection[str],
    planar: Collection[str],
    place: Place,
    lines: Mapping[Part, int],
    invalid: Mapping[Part, Sequence[ModelError]],
) -> tuple[str, list[Any]]:
    """The root link, and the joints, each after the one that carries it.

    The joints that match a pattern in `fixed` become fixed; those in `planar`, or the root link of that name, float in
    a plane. lines: of each part. invalid: what is known of some. Raises one ModelError for these and all joints and
    links that a model file cannot state.
    """
    known = [each for found in invalid.values() for each in found]

    def at(part: Part) -> Place:
        return Place(place.file, lines.get(part, place.line))

    unjoined = [ModelError(words, at(part)) for part, words in _faulty_ends(described)]
    if unjoined:
        raise joined([*known, *unjoined])
    joints = _in_order(described, place)
    unknown = [ModelError(words, place) for words in _choose(described, joints, fixed, planar)]
    found = [(("joint", joint.name), words) for joint in joints for words in _faults(joint, joints)]
    found += _faulty_inertias(described, joints)
    faults = [ModelError(words, at(part)) for part, words in found if part not in invalid]
    faults += [ModelError(words, place) for words in _undriven(joints)]
    if faults or known or unknown:
        raise joined([*unknown, *known, *faults], _remedy(joints))
    carried = {joint.child for joint in joints}
    return next(link.name for link in described.links if link.name not in carried), joints


def motionless(described: Any, joints: Sequence[Any]) -> set[str]:
    """The links whose centre of mass no joint moves, so that their mass has no effect."""
    centres = {
        link.name: np.eye(4) if link.inertial is None or link.inertial.origin is None else link.inertial.origin
        for link in described.links
    }
    random = np.random.default_rng(0)
    places: dict[str, list[Array]] = {name: [] for name in centres}
    for _ in range(3):
        frames: dict[str, Array] = {}
        for joint in joints:
            origin = np.eye(4) if joint.origin is None else np.asarray(joint.origin, np.float64)
            frames[joint.child] = frames.get(joint.parent, np.eye(4)) @ origin @ _moved(joint, random)
        for name, frame in frames.items():
            places[name].append((frame @ centres[name])[:3, 3])
    return {name for name, found in places.items() if not found or np.ptp(found, axis=0).max() < 1e-9}


def _moved(joint: Any, random: np.random.Generator) -> Array:
    """The displacement (4, 4) of a joint at random coordinates; of one that floats in a plane, any translation."""
    result = np.eye(4)
    axis = np.asarray([1.0, 0, 0] if joint.axis is None else joint.axis, np.float64)
    axis = axis / (np.linalg.norm(axis) or 1.0)
    if joint.type in ("revolute", "continuous"):
        result[:3, :3] = Rotation.from_rotvec(axis * random.uniform(0.5, 2)).as_matrix()
    elif joint.type == "prismatic":
        result[:3, 3] = axis * random.uniform(0.5, 2)
    elif joint.type != "fixed":
        result[:3, 3] = random.uniform(0.5, 2, 3)
    return result


def _faulty_ends(described: Any) -> Iterator[tuple[Part, str]]:
    """Joints that name a link that is not there, or one that hangs from another joint already."""
    links = [link.name for link in described.links]
    carried: dict[str, str] = {}
    for joint in described.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                near = suggestion(end, links)
                yield ("joint", joint.name), f"the joint `{joint.name}` names a link `{end}`, which is not there.{near}"
        if joint.child in carried:
            yield (
                ("joint", joint.name),
                f"the link `{joint.child}` hangs from two joints, `{carried[joint.child]}` and `{joint.name}`: that is "
                "a closed loop. Model files state trees; cut it at one joint, and add a stiff spring there if need be.",
            )
        carried.setdefault(joint.child, joint.name)


def _in_order(described: Any, place: Place) -> list[Any]:
    """The joints, each after the one that carries it. Raises ModelError for a cycle, and for links without a joint."""
    links = [link.name for link in described.links]
    carried = {joint.child for joint in described.joints}
    roots = [link for link in links if link not in carried]
    ordered: list[Any] = []
    reached = roots[:1]
    for link in reached:
        below = [joint for joint in described.joints if joint.parent == link]
        ordered += below
        reached += [joint.child for joint in below]
    unreached = [link for link in links if link not in reached]
    parents = {joint.child: joint.parent for joint in described.joints}
    for at in unreached:
        round_ = _round(at, parents)
        if round_:
            raise ModelError(
                f"the links form a cycle, {' -> '.join(f'`{each}`' for each in round_)}, so that none stands on the "
                "ground. Remove the joint that closes it.",
                place,
            )
    if unreached:
        loose = ", ".join(f"`{each}`" for each in roots[1:])
        raise ModelError(f"the links are no single tree: no joint carries {loose}, beside `{roots[0]}`.", place)
    return ordered


def _round(start: str, parents: Mapping[str, str]) -> list[str]:
    """The cycle that carries a link, from carrier to carried and back to the first; empty where none does."""
    above = [start]
    while (parent := parents.get(above[-1])) is not None:
        if parent in above:
            return [*above[above.index(parent) :], parent][::-1]
        above.append(parent)
    return []


def _choose(described: Any, joints: list[Any], fixed: Collection[str], planar: Collection[str]) -> Iterator[str]:
    """Change the joints that are named in `fixed` and `planar` to fixed and planar ones; yield names that are wrong."""
    base = joints[0].parent if joints else described.links[0].name
    known = {joint.name: joint for joint in joints}
    if base in planar:
        described.links.append(SimpleNamespace(name=GROUND, inertial=None))
        nothing = dict.fromkeys(("origin", "axis", "limit", "dynamics", "mimic"))
        name = f"{base}_in_plane" if base in known else base
        known[base] = SimpleNamespace(name=name, type="floating", parent=GROUND, child=base, **nothing)
        joints.insert(0, known[base])
    for pattern in fixed:
        matching = [joint for name, joint in known.items() if fnmatchcase(name, pattern)]
        if pattern == MIMIC and not matching:
            matching = [joint for joint in joints if joint.mimic is not None]
        if not matching:
            yield f"the joint `{pattern}` of --fix is not there.{suggestion(pattern, known)}"
        for joint in matching:
            joint.type = "fixed"
    for name in planar:
        if name not in known:
            yield f"the joint `{name}` of --planar is not there.{suggestion(name, known)}"
        elif known[name].type != "floating":
            yield (
                f"the joint `{name}` of --planar is {known[name].type}; it is for floating joints, and for the link "
                "that nothing carries."
            )
        else:
            known[name].type = IN_PLANE


def _faults(joint: Any, joints: Sequence[Any]) -> Iterator[str]:
    """What a model file cannot state of a joint."""
    if joint.mimic is not None and joint.type != "fixed" and (why := uncoupled(joint, joints)):
        yield (
            f"the joint `{joint.name}` follows `{joint.mimic.joint}` (<mimic>), {why}. Hold it with --fix {joint.name}."
        )
    if joint.type in PLANAR:
        return
    if joint.type not in (*MOVING, "fixed"):
        floats = f"let it move in its x-z plane with --planar {joint.name}, " if joint.type == "floating" else ""
        yield (
            f"the joint `{joint.name}` is {joint.type}, which is not imported: hold it with --fix {joint.name}, "
            f"{floats}or import the rest and write it in the file. Imported are {', '.join(MOVING)}, planar and fixed "
            "joints."
        )
    elif joint.type in ("revolute", "prismatic"):
        limit = joint.limit
        write = 'write <limit lower="..." upper="..." velocity="..." effort="..."/>'
        if limit is None or limit.lower is None or limit.upper is None:
            yield f"the {joint.type} joint `{joint.name}` has no limits; {write}."
        elif not max(abs(limit.lower), abs(limit.upper)) > 0:
            turns = ', or type="continuous" if it turns without end' if joint.type == "revolute" else ""
            yield (
                f"the limits of the joint `{joint.name}` are both 0. Give limits: {write}{turns}; or hold it with "
                f"--fix {joint.name}."
            )


def _undriven(joints: Sequence[Any]) -> Iterator[str]:
    """Why a robot would have no input."""
    moving = [joint for joint in joints if joint.type != "fixed"]
    drivable = [joint for joint in moving if joint.type in MOVING and joint.mimic is None]
    if not moving:
        yield "no joint can be driven: none moves. This is an object, and no robot."
    elif all(joint.mimic is not None for joint in moving):
        yield "no joint can be driven: each of them follows another (<mimic>). Let one lead: remove its <mimic>."
    elif not any(joint.limit is not None and (joint.limit.effort or 0) > 0 for joint in drivable):
        names = ", ".join(f"`{joint.name}`" for joint in drivable or moving)
        yield (
            f'no joint can be driven: {names} have no effort above zero in their <limit>. Write effort="..." there '
            "(N m or N)."
        )


def _remedy(joints: Sequence[Any]) -> str:
    """The option that holds all joints that follow another, where there are several."""
    following = sum(joint.mimic is not None and joint.type != "fixed" for joint in joints)
    return f"--fix {MIMIC} holds all {following} joints that follow another." if following > 1 else ""


def _faulty_inertias(described: Any, joints: Sequence[Any]) -> Iterator[tuple[Part, str]]:
    """The links that move without a mass, their own or that of a link fixed to them, and masses without inertia."""
    masses = {link.name: link.inertial.mass if link.inertial else None for link in described.links}
    heavy = {name for name, mass in masses.items() if mass}
    for joint in reversed(joints):
        if joint.type == "fixed" and joint.child in heavy:
            heavy.add(joint.parent)
    for joint in joints:
        if joint.type != "fixed" and joint.child not in heavy:
            words = (
                f"the link `{joint.child}` moves and has no mass, nor has a link that is fixed to it. Give it an "
                f"<inertial> with a mass and an inertia, or hold its joint with --fix {joint.name}."
            )
            yield ("link", joint.child), words
    for link in described.links:
        if masses[link.name] and link.inertial.inertia is None:
            yield ("link", link.name), f"the link `{link.name}` has a mass and no <inertia>."
