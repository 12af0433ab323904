"""Validation of a URDF before it is parsed: the parser silently repairs and guesses, and would misread the robot."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import ModelError, Place, joined, suggestion
from modelgen.statement.declarations import STRONGEST

#: Attributes that are numbers, by element: the count of numbers, and whether the attribute is required.
NUMBERS: dict[str, dict[str, tuple[int, bool]]] = {
    "origin": {"xyz": (3, False), "rpy": (3, False)},
    "axis": {"xyz": (3, True)},
    "mass": {"value": (1, True)},
    "inertia": {moment: (1, moment[1] == moment[2]) for moment in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")},
    "limit": dict.fromkeys(("lower", "upper", "effort", "velocity"), (1, False)),
    "dynamics": dict.fromkeys(("damping", "friction"), (1, False)),
    "mimic": dict.fromkeys(("multiplier", "offset"), (1, False)),
}
PARTS = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
ENDS = ("parent", "child")  # of a joint
#: Attributes that are read besides the numbers.
WORDS = {"link": {"name"}, "joint": {"name", "type"}, "parent": {"link"}, "child": {"link"}, "mimic": {"joint"}}
FORCES = ("springStiffness", "turnGravityOff", "dampingFactor")  # elements of <gazebo> that change a motion
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
LARGEST = 1e100
EPSILON = 1e-12  # m^2, times the mass: a smaller moment is a rounding error of the program that wrote the file
ROUNDED = 0.01  # share of the largest principal moment by which published thin bodies have negative moments
DRIVES = ("transmission", "ros2_control")  # elements that say which joints have a motor
COMMANDS = ("effort", "position", "velocity")  # command interfaces of <ros2_control> that move a joint
#: Drawings and other elements that are removed before the file is parsed; of these, only `DRIVES` are read.
LEFT_OUT = ("visual", "collision", "material", *DRIVES, "gazebo", "calibration", "safety_controller")
DECLARATION = re.compile(rb"<\?xml\b.*?\?>", re.DOTALL)
ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")
UNPRINTABLE = re.compile(r"[\x00-\x1f\"'\\]")


Part = tuple[str, str]  # "link" or "joint", and its name
#: Valid content that replaces an invalid part, so that the rest can be read and checked.
VALID = {
    "link": ('<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>',),
    "joint": ('<axis xyz="1 0 0"/>', '<limit lower="-1" upper="1" velocity="1" effort="1"/>'),
}


@dataclass(frozen=True)
class ValidatedUrdf:
    """The text of a URDF without its drawings, the line of each part, and the errors of the invalid parts.

    driven: the joints that a <transmission> or a command interface of <ros2_control> drives; None if neither names
    a joint that moves.
    """

    content: bytes
    lines: dict[Part, int]
    faults: dict[Part, list[ModelError]]
    driven: frozenset[str] | None


def validate(path: Path, warn: Callable[[str], None]) -> ValidatedUrdf:
    """A URDF without the elements in `LEFT_OUT`. `warn` gets a message for each ignored part.

    The errors of invalid numbers and elements are in the result; valid content replaces them in the text. Raises
    ModelError, with the line, for a file that is not XML or not a robot. Raises one ModelError for all invalid names
    and all joints without a type, parent or child, together with the other errors.
    """
    etree = import_module("lxml.etree")
    root = _root(etree, path, warn)
    if root.tag != "robot":
        raise ModelError(
            f"this is not a URDF: the first element is <{root.tag}>; it must be <robot>.", _place(path, root)
        )
    for element in root.iter("{*}*"):
        if "xacro" in (etree.QName(element).namespace or ""):
            raise ModelError(
                f"<xacro:{etree.QName(element).localname}> is not expanded. Expand the file with xacro first.",
                _place(path, element),
            )
    faults: dict[Part, list[ModelError]] = {}
    unreadable: list[ModelError] = []
    for kind in ("link", "joint"):
        names: set[str] = set()
        for element in root.findall(kind):
            name = element.get("name") or ""
            unreadable += _faulty_structure(element, names, path)
            names.add(name)
            _remove_repeated(etree, element, name, path, warn)
            errors = list(_faulty_parts(element, name, path))
            if errors:
                faults[kind, name] = [*faults.get((kind, name), []), *errors]
                _replace_by_valid(etree, element)
            elif kind == "link":
                _check_moments(element, name, path, warn)
    _warn_of_unread(root, path, warn)
    if unreadable:
        raise joined([*unreadable, *(error for errors in faults.values() for error in errors)])
    if not root.findall("link"):
        raise ModelError("the robot has no <link>.", Place(str(path), 1))
    driven = _driven(root, path, warn)
    etree.strip_elements(root, *LEFT_OUT, with_tail=False)
    root.set("name", root.get("name") or path.stem)
    lines = {
        (kind, element.get("name")): element.sourceline or 1
        for kind in ("link", "joint")
        for element in root.findall(kind)
    }
    return ValidatedUrdf(etree.tostring(root), lines, faults, driven)


def _driven(root: Any, path: Path, warn: Callable[[str], None]) -> frozenset[str] | None:
    """The joints that the file drives; None if it names none, or only joints that cannot move.

    `warn` hears of joints that do not exist or are fixed: the files of a family often share all transmissions.
    """
    types = {joint.get("name"): joint.get("type") for joint in root.findall("joint")}
    driven: set[str] = set()
    idle: dict[str, str] = {}  # name of a joint that cannot be driven -> where its motor is
    named = [joint for tag in DRIVES for holder in root.iter(tag) for joint in holder.findall("joint")]
    for joint in named:
        holder, name = joint.getparent(), joint.get("name") or ""
        commands = {interface.get("name") for interface in joint.findall("command_interface")}
        if holder.tag == "ros2_control" and not commands & set(COMMANDS):
            continue
        if types.get(name, "fixed") == "fixed":
            idle.setdefault(name, f"{_place(path, joint)}: <{holder.tag}> `{holder.get('name') or ''}`")
        else:
            driven.add(name)
    for name in (name for name in idle if name not in types):
        near = suggestion(name, types)
        warn(f"{idle[name]} drives a joint `{name}`, which does not exist; it is ignored.{near}")
    if fixed := [name for name in idle if name in types]:
        names = ", ".join(f"`{name}`" for name in fixed)
        warn(f"{idle[fixed[0]]} drives a joint that is fixed; it is ignored. All such joints: {names}.")
    return frozenset(driven) if driven or (named and not idle) else None


def _root(etree: Any, path: Path, warn: Callable[[str], None]) -> Any:
    """The root element. Like other readers, accepts any XML declaration and undeclared namespace prefixes."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {' '.join(str(error).split())}.") from error
    declared = DECLARATION.search(text)
    encoding = None
    if declared:
        if text[: declared.start()].strip() or not re.search(rb"""version\s*=\s*["']1\.[01]["']""", declared.group()):
            words = declared.group().decode("ascii", "replace")
            warn(f"{path}: the XML declaration {words} is not valid there; it is ignored.")
        encoding = (ENCODING.search(declared.group()) or [b"", b"utf-8"])[1].decode()
        rest = b"\n" * declared.group().count(b"\n") + text[declared.end() :]
        text = text[: declared.start()] + rest  # the newlines keep the line numbers
    parser = None
    try:
        parser = etree.XMLParser(recover=True, encoding=encoding)
        root = etree.fromstring(text.lstrip(b"\xef\xbb\xbf"), parser)
        errors = list(parser.error_log)
    except LookupError as error:
        raise ModelError(f"the URDF cannot be read: the encoding {encoding} is not known.") from error
    except etree.XMLSyntaxError as error:
        root, errors = None, [error]
    undeclared = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
    for entry in errors:
        if root is None or entry.type != undeclared:
            words = " ".join(str(getattr(entry, "message", None) or entry.msg).split())
            line = getattr(entry, "line", None) or getattr(entry, "lineno", None) or 1
            raise ModelError(f"the URDF cannot be read: {words}.", Place(str(path), line))
    if root is None:
        raise ModelError("the URDF cannot be read: it is empty.", Place(str(path), 1))
    if errors:
        warn(f"{path}:{errors[0].line}: {errors[0].message}; {len(errors)} such parts are ignored.")
        _without_prefixes(root)
    return root


def _without_prefixes(root: Any) -> None:
    """Remove elements and attributes with an undeclared namespace prefix."""
    for element in list(root.iter("*")):
        if ":" in re.sub(r"\{.*\}", "", element.tag) and element.getparent() is not None:
            element.getparent().remove(element)
        for name in [attribute for attribute in element.attrib if ":" in re.sub(r"\{.*\}", "", attribute)]:
            del element.attrib[name]


def _warn_of_unread(root: Any, path: Path, warn: Callable[[str], None]) -> None:
    """Warn of elements and attributes that may change a motion and are not read, each kind once."""
    unread: dict[str, list[Any]] = {}
    waiting = [*root.findall("link"), *root.findall("joint")]
    for element in waiting:
        for name in element.attrib:
            if name in NUMBERS.get(element.tag, ()) or name in WORDS.get(element.tag, ()):
                continue
            unread.setdefault(f'the attribute {name}="..." of <{element.tag}>', []).append(element)
        for part in element.iterchildren("*") if element.tag in PARTS else ():
            if part.tag in PARTS[element.tag]:
                waiting.append(part)
            elif part.tag in (*NUMBERS, "inertial"):
                unread.setdefault(f"<{part.tag}> in <{element.tag}>", []).append(part)
    for element in root.iter(*FORCES):
        if (element.text or "").strip() not in ("", "0", "0.0", "false"):
            unread.setdefault(f"<{element.tag}> of <gazebo>", []).append(element)
    for what, elements in unread.items():
        more = f", {len(elements)} times in all," if len(elements) > 1 else ""
        warn(f"{_place(path, elements[0])}: {what}{more} is not read. Write what it means in the model file.")


def _replace_by_valid(etree: Any, element: Any) -> None:
    """Replace the content of a link or joint by `VALID`, except the ends of a joint."""
    for part in element.findall("*"):
        if part.tag not in ENDS:
            element.remove(part)
    element.extend(etree.fromstring(text) for text in VALID[element.tag])


def _remove_repeated(etree: Any, element: Any, name: str, path: Path, warn: Callable[[str], None]) -> None:
    """Remove a part of a link or joint that is repeated with the same content."""
    text = partial(etree.tostring, method="c14n", with_tail=False)
    for holder in (element, *element.findall("inertial")[:1]):
        for part in PARTS[holder.tag]:
            first, *others = holder.findall(part) or [None]
            for other in others:
                if text(other) == text(first):
                    warn(f"{_place(path, other)}: a second <{part}> of `{name}`, equal to the first, is ignored.")
                    holder.remove(other)


def _faulty_structure(element: Any, names: set[str], path: Path) -> Iterator[ModelError]:
    """Errors of a link or joint without a name or with one in `names`, and of a joint without a type or an end."""
    name = element.get("name")
    if not name:
        yield ModelError(f"<{element.tag}> has no name.", _place(path, element))
    elif UNPRINTABLE.search(name):
        yield ModelError(f"the name {name!r} contains a quote or a control character.", _place(path, element))
    elif name in names:
        yield ModelError(f"there are two {element.tag}s named `{name}`.", _place(path, element))
    if element.tag != "joint":
        return
    if not element.get("type"):
        yield ModelError(f"<joint> has no type: `{name}`.", _place(path, element))
    for end in ENDS:
        if element.find(end) is None or not element.find(end).get("link"):
            yield ModelError(f'the joint `{name}` has no <{end} link="..."/>.', _place(path, element))


def _faulty_parts(element: Any, name: str, path: Path) -> Iterator[ModelError]:
    """Errors of elements of a link or joint that occur twice, are missing, or have invalid numbers."""
    for part in PARTS[element.tag]:
        elements = element.findall(part)
        if len(elements) > 1:
            yield ModelError(f"<{element.tag}> of `{name}` has two elements <{part}>.", _place(path, elements[1]))
        for child in elements:
            yield from _faulty_numbers(child, name, path)
            if part in PARTS:
                yield from _faulty_parts(child, name, path)
            if part == "mimic" and not child.get("joint"):
                yield ModelError(f"<mimic> of `{name}` names no joint to follow.", _place(path, child))
    if element.tag == "inertial" and element.find("mass") is None:
        yield ModelError(f"the <inertial> of `{name}` has no <mass>.", _place(path, element))


def _faulty_numbers(element: Any, name: str, path: Path) -> Iterator[ModelError]:
    """Errors of attributes that are not numbers, of a wrong count or too large; otherwise of impossible numbers."""
    values: dict[str, list[float]] = {}
    sound = True
    for attribute, (count, needed) in NUMBERS.get(element.tag, {}).items():
        text = element.get(attribute)
        if text is None and not needed:
            continue
        what = f'{attribute}="{" ".join((text or "").split())}" in <{element.tag}> of `{name}`'
        words = (text or "").split()
        values[attribute] = [float(word) for word in words if NUMBER.fullmatch(word)]
        if len(words) != count or len(values[attribute]) != count:
            hint = " Expand the file with xacro first." if "$" in (text or "") else ""
            wanted = "a number" if count == 1 else f"{count} numbers with spaces between"
            what = what if text is not None else f"{attribute} is missing in <{element.tag}> of `{name}`"
            yield ModelError(f"{what}; write {wanted}.{hint}", _place(path, element))
            sound = False
        elif not max(map(abs, values[attribute])) <= LARGEST:
            yield ModelError(f"{what} is too large for a robot.", _place(path, element))
            sound = False
    reason = _impossible(element, values, name) if sound else ""
    if reason:
        yield ModelError(reason, _place(path, element))


def _impossible(element: Any, values: dict[str, list[float]], name: str) -> str:
    """The reason why no robot can have these numbers; empty if one can."""
    held = element.tag == "axis" and element.getparent().get("type") == "fixed"
    if element.tag == "axis" and not held and not math.hypot(*values["xyz"]) > 0:
        return f"the axis of `{name}` is zero; write a direction such as 0 0 1."
    if element.tag == "mass" and values["value"][0] < 0:
        return f"the mass of `{name}` is negative."
    if element.tag == "inertia":
        moments = _principal_moments({key: value[0] for key, value in values.items()})
        weight = element.getparent().find("mass")
        mass = weight.get("value", "") if weight is not None else ""
        rounding = EPSILON * float(mass) if NUMBER.fullmatch(mass.strip()) else 0.0
        if moments[0] < -max(ROUNDED * abs(moments).max(), rounding):
            return (
                f"the <inertia> of `{name}` has a negative principal moment, {moments[0]:.3g} kg m^2, which is "
                "impossible. Check the signs and sizes of ixx, iyy, izz and of the products."
            )
    for size in ("effort", "velocity", "value"):
        if element.tag in ("limit", "mass") and 0 < values.get(size, [0.0])[0] <= EPSILON:
            return f"the {element.tag} of `{name}` is {values[size][0]:g}, which is too small for a robot."
    if element.tag == "limit" and not 0 <= values.get("effort", [0.0])[0] <= STRONGEST:
        return f"the effort of `{name}` is {values['effort'][0]:g}; write 0 to {STRONGEST:g}."
    for loss in ("damping", "friction"):
        if element.tag == "dynamics" and values.get(loss, [0.0])[0] < 0:
            return f"the {loss} of `{name}` is negative, so that it would drive the joint; write 0 or more."
    if element.tag == "limit" and values.get("lower", [0.0]) > values.get("upper", values.get("lower", [0.0])):
        return f"the lower limit of `{name}` is above the upper one."
    return ""


def _principal_moments(inertia: dict[str, float]) -> NDArray[np.float64]:
    """The principal moments (3,) of the attributes of an <inertia>, the smallest first."""
    xx, yy, zz, xy, xz, yz = (inertia.get(name, 0.0) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    return np.asarray(np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.float64)


def _check_moments(link: Any, name: str, path: Path, warn: Callable[[str], None]) -> None:
    """Warn of moments that no distribution of mass has: one of them exceeds the sum of the two others."""
    for element in link.iterfind("inertial/inertia"):
        known = NUMBERS["inertia"].keys() & set(element.keys())
        small, middle, large = _principal_moments({key: float(element.get(key)) for key in known})
        if large * (1.0 - ROUNDED) > small + middle:
            warn(
                f"{_place(path, element)}: the <inertia> of `{name}` is impossible: its largest principal moment, "
                f"{large:.3g} kg m^2, exceeds the sum of the two others, {small + middle:.3g}. The model file takes "
                "the numbers unchanged; MuJoCo refuses them."
            )


def _place(path: Path, element: Any) -> Place:
    return Place(str(path), element.sourceline or 1)
