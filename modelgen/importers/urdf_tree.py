"""The tree of links and joints of a URDF, checked for everything that a model file cannot hold.

A joint that follows another (<mimic>) becomes a spring and damper between the two, written in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

from modelgen.errors import ModelError, Place, joined, suggestion
from modelgen.importers.mechanism import FLOATING, GROUND, IN_PLANE, MOVING, PLANAR
from modelgen.importers.urdf_xml import Part, ValidatedUrdf
from modelgen.statement.declarations import STRONGEST, WEAKEST

MIMIC = "mimic"  # value of --fix for all joints that follow another


def tree(
    described: Any,
    fixed: Collection[str],
    planar: Collection[str],
    passive: Collection[str],
    efforts: Mapping[str, float],
    place: Place,
    validated: ValidatedUrdf,
) -> tuple[list[Any], list[str]]:
    """The joints, each after the joint that carries it, and the names of the joints with a motor.

    fixed: patterns of joints that become fixed. planar: joints, or the root link, that float in a plane. passive:
    patterns of joints without a motor. efforts: largest forces of motors that the file lacks, by pattern. Raises one
    ModelError with the errors of the validated file and those of all joints and links that a model file cannot hold.
    """
    invalid = validated.faults
    known = [error for errors in invalid.values() for error in errors]

    def at(part: Part) -> Place:
        return Place(place.file, validated.lines.get(part, place.line))

    unjoined = [ModelError(words, at(part)) for part, words in _faulty_ends(described)]
    if unjoined:
        raise joined([*known, *unjoined])
    joints = _in_order(described, place)
    unknown = [ModelError(words, place) for words in _choose(described, joints, fixed, planar)]
    unknown += [ModelError(words, place) for words in _unmatched(joints, passive)]
    added, words_of_efforts = _add_efforts(joints, efforts)
    both = sorted(name for name in added if any(fnmatchcase(name, pattern) for pattern in passive))
    if both:
        words_of_efforts.append(f"`{both[0]}` is in --effort and in --passive; leave it out of one of them.")
    unknown += [ModelError(words, place) for words in words_of_efforts]
    motors = _motors(joints, passive, None if validated.driven is None else validated.driven | added)
    messages = [(("joint", joint.name), words) for joint in joints for words in _faults(joint, joints)]
    messages += _faulty_inertias(described, joints)
    faults = [ModelError(words, at(part)) for part, words in messages if part not in invalid]
    faults += [ModelError(words, at(part)) for part, words in _undriven(joints, motors)]
    if faults or known or unknown:
        raise joined([*unknown, *known, *faults], _remedy(joints))
    return joints, motors


def _faulty_ends(described: Any) -> Iterator[tuple[Part, str]]:
    """Messages for joints whose link does not exist, or whose child hangs from another joint already."""
    links = [link.name for link in described.links]
    carried: dict[str, str] = {}
    for joint in described.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                near = suggestion(end, links)
                words = f"the joint `{joint.name}` names a link `{end}`, which does not exist.{near}"
                yield ("joint", joint.name), words
        if joint.child in carried:
            yield (
                ("joint", joint.name),
                f"the link `{joint.child}` hangs from two joints, `{carried[joint.child]}` and `{joint.name}`: a "
                "closed loop. A model file holds a tree: cut the loop, and add a stiff spring there if necessary.",
            )
        carried.setdefault(joint.child, joint.name)


def _in_order(described: Any, place: Place) -> list[Any]:
    """The joints, each after the one that carries it. Raises ModelError for a cycle and for links without a joint."""
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
    for link in unreached:
        cycle = _cycle(link, parents)
        if cycle:
            raise ModelError(
                f"the links form a cycle, {' -> '.join(f'`{name}`' for name in cycle)}, and do not stand on the "
                "ground. Remove the joint that closes it.",
                place,
            )
    if unreached:
        loose = ", ".join(f"`{name}`" for name in roots[1:])
        raise ModelError(f"the links are not a single tree: no joint carries {loose} besides `{roots[0]}`.", place)
    return ordered


def _cycle(start: str, parents: Mapping[str, str]) -> list[str]:
    """The cycle that carries a link, from carrier to carried and back to the first; empty if there is none."""
    above = [start]
    while (parent := parents.get(above[-1])) is not None:
        if parent in above:
            return [*above[above.index(parent) :], parent][::-1]
        above.append(parent)
    return []


def _choose(described: Any, joints: list[Any], fixed: Collection[str], planar: Collection[str]) -> Iterator[str]:
    """Make the joints in `fixed` and `planar` fixed and planar. Yields messages for wrong names."""
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
            yield f"the joint `{pattern}` of --fix does not exist.{suggestion(pattern, known)}"
        for joint in matching:
            joint.type = "fixed"
    for name in planar:
        if name not in known:
            yield f"the joint `{name}` of --planar does not exist.{suggestion(name, known)}"
        elif known[name].type != "floating":
            yield (
                f"the joint `{name}` of --planar is {known[name].type}; only floating joints and the root link can "
                "float in a plane."
            )
        else:
            known[name].type = IN_PLANE


def _unmatched(joints: Sequence[Any], passive: Collection[str]) -> Iterator[str]:
    """Messages for the patterns of --passive that no moving joint matches."""
    moving = [joint.name for joint in joints if joint.type != "fixed"]
    for pattern in passive:
        if not any(fnmatchcase(name, pattern) for name in moving):
            yield f"`{pattern}` of --passive matches no joint that moves.{suggestion(pattern, moving)}"


def _add_efforts(joints: Sequence[Any], efforts: Mapping[str, float]) -> tuple[set[str], list[str]]:
    """Give efforts (N m or N) to the joints that match their patterns. Returns the names of these joints, and messages
    for patterns that match no joint that can have a motor and for impossible efforts."""
    added: set[str] = set()
    messages: list[str] = []
    leading = {joint.name: joint for joint in joints if joint.type in MOVING and joint.mimic is None}
    for pattern, effort in efforts.items():
        names = [name for name in leading if fnmatchcase(name, pattern)]
        if not names:
            messages.append(
                f"`{pattern}` of --effort matches no joint that can have a motor.{suggestion(pattern, leading)}"
            )
        if not WEAKEST <= effort <= STRONGEST:
            messages.append(f"--effort {pattern}={effort:g}: write {WEAKEST:g} to {STRONGEST:g} (N m or N).")
        for name in names:
            limit = leading[name].limit or SimpleNamespace(lower=None, upper=None, velocity=None)
            limit.effort, leading[name].limit = effort, limit
        added.update(names)
    return added, messages


def _motors(joints: Sequence[Any], passive: Collection[str], driven: Collection[str] | None) -> list[str]:
    """The names of the joints that get an input: with an effort, driven by the file, and not passive.

    driven: the joints that the file drives; None if it does not say, so that all joints with an effort are driven.
    """
    return [
        joint.name
        for joint in joints
        if has_effort(joint)
        and (driven is None or joint.name in driven)
        and not any(fnmatchcase(joint.name, pattern) for pattern in passive)
    ]


def has_effort(joint: Any) -> bool:
    """Whether a joint can be driven: it moves along one coordinate, follows no other, and has an effort above zero."""
    leads = joint.type in MOVING and joint.mimic is None
    return leads and joint.limit is not None and (joint.limit.effort or 0) > 0


def _faults(joint: Any, joints: Sequence[Any]) -> Iterator[str]:
    """Messages for the properties of a joint that a model file cannot hold."""
    if joint.mimic is not None and joint.type != "fixed" and (reason := uncoupled(joint, joints)):
        yield (
            f"the joint `{joint.name}` follows `{joint.mimic.joint}` (<mimic>), {reason}. "
            f"Hold it with --fix {joint.name}."
        )
    if joint.type in PLANAR:
        return
    if joint.type not in (*MOVING, FLOATING, "fixed"):
        yield (
            f"the joint `{joint.name}` is {joint.type}, which cannot be imported: hold it with --fix {joint.name}, "
            f"or import the rest and write it in the file. Only {', '.join(MOVING)}, planar, floating and fixed joints "
            "can be imported."
        )
    elif joint.type in ("revolute", "prismatic"):
        limit = joint.limit
        write = 'write <limit lower="..." upper="..." velocity="..." effort="..."/>'
        if limit is None or limit.lower is None or limit.upper is None:
            yield f"the {joint.type} joint `{joint.name}` has no limits; {write}."
        elif not limit.lower < limit.upper:
            turns = ', or type="continuous" if it turns without end' if joint.type == "revolute" else ""
            yield (
                f"the limits of the joint `{joint.name}` are both {limit.lower:g}. Give limits: {write}{turns}; or "
                f"hold it at zero with --fix {joint.name}."
            )


def _undriven(joints: Sequence[Any], motors: Sequence[str]) -> Iterator[tuple[Part, str]]:
    """The joint, or the robot, and a message, if the robot would have no input."""
    moving = [joint for joint in joints if joint.type != "fixed"]
    drivable = [joint for joint in moving if joint.type in MOVING and joint.mimic is None]
    start, robot = "no joint can be driven: ", ("robot", "")
    if not moving:
        yield robot, f"{start}none moves. This is an object, not a robot."
    elif all(joint.mimic is not None for joint in moving):
        yield robot, f"{start}each of them follows another (<mimic>). Let one lead: remove its <mimic>."
    elif not drivable:
        names = ", ".join(f"`{joint.name}` ({joint.type})" for joint in moving)
        yield (
            robot,
            f"{start}a URDF has no motors for {names}. Import an MJCF with <actuator>, or write a model file with "
            "robot.push(link, force).",
        )
    elif strong := [f"`{joint.name}`" for joint in drivable if has_effort(joint)]:
        if not motors:
            yield (
                robot,
                f"{start}{', '.join(strong)} have an effort and are passive. Name one in a <transmission> or with a "
                "<command_interface> in <ros2_control>, and not with --passive.",
            )
    else:
        names, first = ", ".join(f"`{joint.name}`" for joint in drivable), drivable[0].name
        yield (
            ("joint", first),
            f"{start}{names} have no effort above zero in their <limit>. Give the largest torque (N m) or force (N) of "
            f"each motor: --effort {first}=5, with your number. A pattern such as '*' means several joints.",
        )


def _remedy(joints: Sequence[Any]) -> str:
    """The advice for several joints that follow others."""
    following = sum(joint.mimic is not None and joint.type != "fixed" for joint in joints)
    return f"--fix {MIMIC} holds all {following} joints that follow another." if following > 1 else ""


def _faulty_inertias(described: Any, joints: Sequence[Any]) -> Iterator[tuple[Part, str]]:
    """Messages for links that move without a mass (own or of a link fixed to them), and masses without inertia."""
    masses = {link.name: link.inertial.mass if link.inertial else None for link in described.links}
    heavy = {name for name, mass in masses.items() if mass}
    for joint in reversed(joints):
        if joint.type == "fixed" and joint.child in heavy:
            heavy.add(joint.parent)
    for joint in joints:
        if joint.type != "fixed" and joint.child not in heavy:
            words = (
                f"the link `{joint.child}` moves and has no mass, and no link with a mass is fixed to it. Give it an "
                f"<inertial> with a mass and an inertia, or hold its joint with --fix {joint.name}."
            )
            yield ("link", joint.child), words
    for link in described.links:
        if masses[link.name] and link.inertial.inertia is None:
            yield ("link", link.name), f"the link `{link.name}` has a mass and no <inertia>."


def uncoupled(joint: Any, joints: Sequence[Any]) -> str | None:
    """The reason why a joint cannot be coupled to the joint that it follows; None if it can."""
    leader = _named(joints, joint.mimic.joint)
    if leader is None:
        return "which does not exist"
    if leader is joint or leader.type not in MOVING or joint.type not in MOVING:
        return f"and a spring can only couple two different joints of these types: {', '.join(MOVING)}"
    ahead = [joint]
    while leader is not None and leader.mimic is not None and leader not in ahead:
        ahead.append(leader)
        leader = _named(joints, leader.mimic.joint)
    if leader is joint:
        return "which follows it in turn, so that neither leads"
    return None


def _named(joints: Sequence[Any], name: str) -> Any:
    return next((joint for joint in joints if joint.name == name), None)
