"""Units as a model file writes them, such as "kg m^2" or "N m/A", and the dimensions they stand for.

A dimension holds the exponents of kg, m, s, A and K. All values are in SI units, so that a unit has no factor; other
units are refused and not converted. An angle has no dimension.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

from modelgen.errors import ModelError, Place, suggestion

Dimension = tuple[Fraction, ...]

BASE = ("kg", "m", "s", "A", "K")
DERIVED = {
    "1": "",
    "rad": "",
    "Hz": "s^-1",
    "N": "kg m s^-2",
    "Pa": "kg m^-1 s^-2",
    "J": "kg m^2 s^-2",
    "W": "kg m^2 s^-3",
    "C": "A s",
    "V": "kg m^2 s^-3 A^-1",
    "Ohm": "kg m^2 s^-3 A^-2",
    "F": "kg^-1 m^-2 s^4 A^2",
    "H": "kg m^2 s^-2 A^-2",
    "Wb": "kg m^2 s^-2 A^-1",
    "T": "kg s^-2 A^-1",
}
#: Wrong units that people write, and what to write instead.
INSTEAD = {
    "deg": 'the value in rad, times pi / 180, and "rad"',
    "degree": 'the value in rad, times pi / 180, and "rad"',
    "degrees": 'the value in rad, times pi / 180, and "rad"',
    "rpm": 'the value in rad/s, times 2 * pi / 60, and "rad/s"',
    "g": 'the value in kg and "kg"',
    "mm": 'the value in m and "m"',
    "cm": 'the value in m and "m"',
    "km": 'the value in m and "m"',
    "ms": 'the value in s and "s"',
    "min": 'the value in s and "s"',
    "mA": 'the value in A and "A"',
    "mV": 'the value in V and "V"',
    "kN": 'the value in N and "N"',
    "mN": 'the value in N and "N"',
    "Nm": '"N m"',
    "Nms": '"N m s"',
    "Ns": '"N s"',
    "ohm": '"Ohm"',
    "Ω": '"Ohm"',
}
#: Names of dimensions in messages; the first that fits is used.
NAMES = ("N", "J, N m", "W", "V", "Ohm", "N/m", "N s/m", "N m s", "N m/A", "Pa")


def parse(unit: str, what: str, place: Place | None) -> Dimension | None:
    """The dimension of a unit: factors with whole exponents, and one `/` before one factor or a group in brackets.

    An empty unit gives None: the dimension is not known. Raises ModelError for anything else; `what` names the
    quantity in the message.
    """
    if not unit:
        return None
    above, *below = unit.split("/")
    if len(below) > 1:
        raise ModelError(f'the {what} is "{unit}", with two strokes; write one, as in "kg/(m s^2)".', place)
    result = _product(above, unit, what, place)
    if below:
        group = below[0].strip()
        inside = group[1:-1] if group.startswith("(") and group.endswith(")") else group
        if inside == group and len(group.split()) > 1:
            first, *rest = group.split()
            raise ModelError(
                f'the {what} is "{unit}", which can be read in two ways; write "{above.strip()}/({group})" or '
                f'"{above.strip()} {" ".join(rest)}/{first}".',
                place,
            )
        result = divided(result, _product(inside, unit, what, place))
    return result


def _product(text: str, unit: str, what: str, place: Place | None) -> Dimension:
    result = dimension("1")
    for factor in re.split(r"[\s*·]+", text.replace("**", "^").strip()):
        match = re.fullmatch(r"([^\W\d_]+|1)(?:\^\(?(-?\d+)\)?)?", factor)
        if match and match[1] in (*BASE, *DERIVED):
            result = multiplied(result, raised(dimension(match[1]), Fraction(match[2] or 1)))
            continue
        wrong = match[1] if match else factor
        if wrong in INSTEAD:
            raise ModelError(f'the {what} is "{unit}"; write {INSTEAD[wrong]}. Values are in SI units.', place)
        known = [*BASE, *(name for name in DERIVED if name != "1")]
        raise ModelError(
            f'the {what} is "{unit}", and `{wrong}` is no unit known here.{suggestion(wrong, known)} Write SI units '
            f'such as "kg m^2", "N s/m" or "1", made of {", ".join(known)}.',
            place,
        )
    return result


@cache
def dimension(unit: str) -> Dimension:
    """The dimension of a unit that is known to be valid."""
    if unit in BASE:
        return tuple(Fraction(unit == base) for base in BASE)
    if unit not in DERIVED:
        found = parse(unit, "unit", None)
        assert found
        return found
    result = (Fraction(0),) * len(BASE)
    for factor in DERIVED[unit].split():
        name, _, power = factor.partition("^")
        result = multiplied(result, raised(dimension(name), Fraction(power or 1)))
    return result


def multiplied(*dimensions: Dimension) -> Dimension:
    """The dimension of a product."""
    return tuple(sum(exponents, Fraction(0)) for exponents in zip(*dimensions, strict=True))


def raised(each: Dimension, power: Fraction) -> Dimension:
    """The dimension of a power."""
    return tuple(exponent * power for exponent in each)


def divided(above: Dimension, *below: Dimension) -> Dimension:
    """The dimension of a quotient."""
    return multiplied(above, *(raised(each, Fraction(-1)) for each in below))


def named(each: Dimension) -> str:
    """A dimension in base units, with its name where it has one: `kg m/s^2 (N)`."""
    if each == dimension("1"):
        return "no unit"
    short = next((f" ({name})" for name in NAMES if dimension(name.partition(",")[0]) == each), "")
    powers = list(zip(BASE, each, strict=True))
    above = " ".join(_power(name, power) for name, power in powers if power > 0) or "1"
    below = " ".join(_power(name, -power) for name, power in powers if power < 0)
    if not below:
        return above + short
    return f"{above}/({below}){short}" if " " in below else f"{above}/{below}{short}"


def _power(name: str, power: Fraction) -> str:
    return name if power == 1 else f"{name}^{power}"
