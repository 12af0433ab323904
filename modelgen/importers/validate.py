"""Validate a URDF before it is parsed. The parser repairs and guesses where the robot would be misread."""

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

from modelgen.errors import ModelError, Place, joined

#: Attributes that are numbers, by element: how many, and whether they must be there.
NUMBERS: dict[str, dict[str, tuple[int, bool]]] = {
    "origin": {"xyz": (3, False), "rpy": (3, False)},
    "axis": {"xyz": (3, True)},
    "mass": {"value": (1, True)},
    "inertia": {each: (1, each[1] == each[2]) for each in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")},
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
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
LARGEST = 1e100
EPSILON = 1e-12  # m^2, times the mass: a moment below it is a rounding error of the program that wrote the file
ROUNDED = 0.01  # of the largest principal moment; published thin bodies have moments that are as far below zero
#: Drawings and other elements besides links and joints. They are removed unread.
LEFT_OUT = ("visual", "collision", "material", "transmission", "gazebo", "calibration", "safety_controller")
DECLARATION = re.compile(rb"<\?xml\b.*?\?>", re.DOTALL)
ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")
UNPRINTABLE = re.compile(r"[\x00-\x1f\"'\\]")


Part = tuple[str, str]  # "link" or "joint", and its name
#: What stands for an invalid part, so that the others can be read and looked at.
SOUND = {
    "link": ('<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>',),
    "joint": ('<axis xyz="1 0 0"/>', '<limit lower="-1" upper="1" velocity="1" effort="1"/>'),
}


@dataclass(frozen=True)
class Mechanics:
    """The text of a URDF without its drawings, the line of each part, and what is invalid of some."""

    content: bytes
    lines: dict[Part, int]
    faults: dict[Part, list[ModelError]]


def mechanics(path: Path, warn: Callable[[str], None]) -> Mechanics:
    """A URDF, validated, without the elements in `LEFT_OUT`. `warn` is told of what is overlooked.

    Invalid numbers and elements of a link or joint are among the result, with sound ones in their place in the text.
    Raises ModelError, with the line, for a file that is not XML or no robot; and one for all invalid names and joints
    without a type, parent or child, with what else is invalid.
    """
    etree = import_module("lxml.etree")
    root = _root(etree, path, warn)
    if root.tag != "robot":
        raise ModelError(
            f"this is no URDF: its first element is <{root.tag}>, where <robot> should be.", _place(path, root)
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
        seen: set[str] = set()
        for element in root.findall(kind):
            name = element.get("name") or ""
            unreadable += _faulty_structure(element, seen, path)
            seen.add(name)
            _keep_one(etree, element, name, path, warn)
            found = list(_faulty_parts(element, name, path))
            if found:
                faults[kind, name] = [*faults.get((kind, name), []), *found]
                _make_sound(etree, element)
            elif kind == "link":
                _check_moments(element, name, path, warn)
    if unreadable:
        raise joined([*unreadable, *(each for found in faults.values() for each in found)])
    if not root.findall("link"):
        raise ModelError("the robot has no <link>.", Place(str(path), 1))
    etree.strip_elements(root, *LEFT_OUT, with_tail=False)
    root.set("name", root.get("name") or path.stem)
    lines = {
        (kind, each.get("name")): each.sourceline or 1 for kind in ("link", "joint") for each in root.findall(kind)
    }
    return Mechanics(etree.tostring(root), lines, faults)


def _root(etree: Any, path: Path, warn: Callable[[str], None]) -> Any:
    """The first element, as readers of the field find it: any XML declaration, and prefixes that nothing declares."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {' '.join(str(error).split())}.") from error
    declared = DECLARATION.search(text)
    encoding = None
    if declared:
        if text[: declared.start()].strip() or not re.search(rb"""version\s*=\s*["']1\.[01]["']""", declared.group()):
            words = declared.group().decode("ascii", "replace")
            warn(f"{path}: the XML declaration {words} is not valid where it stands; it is overlooked.")
        encoding = (ENCODING.search(declared.group()) or [b"", b"utf-8"])[1].decode()
        rest = b"\n" * declared.group().count(b"\n") + text[declared.end() :]
        text = text[: declared.start()] + rest  # lines keep their numbers
    parser = None
    try:
        parser = etree.XMLParser(recover=True, encoding=encoding)
        root = etree.fromstring(text.lstrip(b"\xef\xbb\xbf"), parser)
        errors = list(parser.error_log)
    except LookupError as error:
        raise ModelError(f"this is no URDF that can be read: the encoding {encoding} is not known.") from error
    except etree.XMLSyntaxError as error:
        root, errors = None, [error]
    undeclared = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
    for each in errors:
        if root is None or each.type != undeclared:
            words = " ".join(str(getattr(each, "message", None) or each.msg).split())
            line = getattr(each, "line", None) or getattr(each, "lineno", None) or 1
            raise ModelError(f"this is no URDF that can be read: {words}.", Place(str(path), line))
    if root is None:
        raise ModelError("this is no URDF that can be read: it is empty.", Place(str(path), 1))
    if errors:
        warn(f"{path}:{errors[0].line}: {errors[0].message}; {len(errors)} such parts are overlooked.")
        _without_prefixes(root)
    return root


def _without_prefixes(root: Any) -> None:
    """Remove elements and attributes whose prefix nothing declares."""
    for element in list(root.iter("*")):
        if ":" in re.sub(r"\{.*\}", "", element.tag) and element.getparent() is not None:
            element.getparent().remove(element)
        for name in [each for each in element.attrib if ":" in re.sub(r"\{.*\}", "", each)]:
            del element.attrib[name]


def _make_sound(etree: Any, element: Any) -> None:
    """Put what is stated in SOUND in the place of all that is stated of a link or joint but what it joins."""
    for part in element.findall("*"):
        if part.tag not in ENDS:
            element.remove(part)
    element.extend(etree.fromstring(text) for text in SOUND[element.tag])


def _keep_one(etree: Any, element: Any, name: str, path: Path, warn: Callable[[str], None]) -> None:
    """Remove what a link or joint states twice in the same words."""
    text = partial(etree.tostring, method="c14n", with_tail=False)
    for holder in (element, *element.findall("inertial")[:1]):
        for part in PARTS[holder.tag]:
            first, *others = holder.findall(part) or [None]
            for each in others:
                if text(each) == text(first):
                    warn(f"{_place(path, each)}: a second <{part}> of `{name}`, equal to the first, is overlooked.")
                    holder.remove(each)


def _faulty_structure(element: Any, seen: set[str], path: Path) -> Iterator[ModelError]:
    """A link or joint without a name or with one that is in `seen`; a joint without a type, a parent or a child."""
    name = element.get("name")
    if not name:
        yield ModelError(f"<{element.tag}> has no name.", _place(path, element))
    elif UNPRINTABLE.search(name):
        yield ModelError(f"the name {name!r} has a quote or another character no name has.", _place(path, element))
    elif name in seen:
        yield ModelError(f"there are two {element.tag}s named `{name}`.", _place(path, element))
    if element.tag != "joint":
        return
    if not element.get("type"):
        yield ModelError(f"<joint> has no type: `{name}`.", _place(path, element))
    for end in ENDS:
        if element.find(end) is None or not element.find(end).get("link"):
            yield ModelError(f'the joint `{name}` has no <{end} link="..."/>.', _place(path, element))


def _faulty_parts(element: Any, name: str, path: Path) -> Iterator[ModelError]:
    """Elements of a link or joint that stand there twice, are missing, or have invalid numbers."""
    for part in PARTS[element.tag]:
        found = element.findall(part)
        if len(found) > 1:
            yield ModelError(f"<{element.tag}> of `{name}` has two elements <{part}>.", _place(path, found[1]))
        for each in found:
            yield from _faulty_numbers(each, name, path)
            if part in PARTS:
                yield from _faulty_parts(each, name, path)
            if part == "mimic" and not each.get("joint"):
                yield ModelError(f"<mimic> of `{name}` names no joint to follow.", _place(path, each))
    if element.tag == "inertial" and element.find("mass") is None:
        yield ModelError(f"the <inertial> of `{name}` has no <mass>.", _place(path, element))


def _faulty_numbers(element: Any, name: str, path: Path) -> Iterator[ModelError]:
    """Attributes that are no numbers, or too few, too many or too large ones; else numbers that make no sense."""
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
    why = _senseless(element, values, name) if sound else ""
    if why:
        yield ModelError(why, _place(path, element))


def _senseless(element: Any, values: dict[str, list[float]], name: str) -> str:
    """Why no robot has these numbers; nothing where one may have them."""
    held = element.tag == "axis" and element.getparent().get("type") == "fixed"
    if element.tag == "axis" and not held and not math.hypot(*values["xyz"]) > 0:
        return f"the axis of `{name}` is zero; write a direction such as 0 0 1."
    if element.tag == "mass" and values["value"][0] < 0:
        return f"the mass of `{name}` is negative."
    if element.tag == "inertia":
        moments = _principal_moments({key: value[0] for key, value in values.items()})
        weight = element.getparent().find("mass")
        stated = weight.get("value", "") if weight is not None else ""
        rounding = EPSILON * float(stated) if NUMBER.fullmatch(stated.strip()) else 0.0
        if moments[0] < -max(ROUNDED * abs(moments).max(), rounding):
            return (
                f"the <inertia> of `{name}` has a negative principal moment, {moments[0]:.3g} kg m^2, as no body has. "
                "Check the signs and sizes of ixx, iyy, izz and of the products."
            )
    if element.tag == "limit" and values.get("lower", [0.0]) > values.get("upper", values.get("lower", [0.0])):
        return f"the lower limit of `{name}` is above the upper one."
    return ""


def _principal_moments(inertia: dict[str, float]) -> NDArray[np.float64]:
    """(3,), the smallest first, of the attributes of an <inertia>."""
    xx, yy, zz, xy, xz, yz = (inertia.get(each, 0.0) for each in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    return np.asarray(np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.float64)


def _check_moments(link: Any, name: str, path: Path, warn: Callable[[str], None]) -> None:
    """Warn of moments that no distribution of mass has: one of them is above the sum of the two others."""
    for element in link.iterfind("inertial/inertia"):
        known = NUMBERS["inertia"].keys() & set(element.keys())
        small, middle, large = _principal_moments({key: float(element.get(key)) for key in known})
        if large * (1.0 - ROUNDED) > small + middle:
            warn(
                f"{_place(path, element)}: no body has the <inertia> of `{name}`: its largest principal moment, "
                f"{large:.3g} kg m^2, is above the sum of the two others, {small + middle:.3g}. The equations take "
                "the numbers as they are; MuJoCo refuses them."
            )


def _place(path: Path, element: Any) -> Place:
    return Place(str(path), element.sourceline or 1)
