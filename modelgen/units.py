"""Units as a model file writes them, such as "kg m^2" or "N m/A", and the dimensions they stand for.

A dimension holds the exponents of kg, m, s, A and K. All values are in SI units, so that a unit has no factor; other
units are refused and not converted. An angle has no dimension.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

from modelgen.errors import mistake, suggestion

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
#: Units that people write by mistake: the SI unit, and how to convert the value where it changes.
INSTEAD = {
    "deg": ("rad", "pi / 180"),
    "degree": ("rad", "pi / 180"),
    "degrees": ("rad", "pi / 180"),
    "°": ("rad", "pi / 180"),
    "rpm": ("rad/s", "2 * pi / 60"),
    "g": ("kg", "0.001"),
    "mm": ("m", "0.001"),
    "cm": ("m", "0.01"),
    "km": ("m", "1000"),
    "ms": ("s", "0.001"),
    "min": ("s", "60"),
    "mA": ("A", "0.001"),
    "mV": ("V", "0.001"),
    "kN": ("N", "1000"),
    "mN": ("N", "0.001"),
    "%": ("1", "0.01"),
    "Nm": ("N m", ""),
    "mNm": ("N m", "0.001"),
    "Nms": ("N m s", ""),
    "Ns": ("N s", ""),
    "ohm": ("Ohm", ""),
    "Ω": ("Ohm", ""),
}
FACTOR = re.compile(r"([^\W\d_]+|[°%]|1)(?:\^\(?(-?\d+)\)?)?")
SUPERSCRIPTS = re.compile("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
#: Names of dimensions in messages; the first that fits is used.
NAMES = ("N", "J, N m", "W", "V", "Ohm", "N/m", "N s/m", "N m s", "N m/A", "Pa")


def parse(unit: str, what: str) -> Dimension | None:
    """The dimension of a unit: factors with whole exponents, and one `/` before one factor or a group in brackets.

    An empty unit gives None: the dimension is not known. Raises ModelError for anything else; `what` names the
    quantity in the message.
    """
    if not unit:
        return None
    above, *below = plain(unit).split("/")
    if len(below) > 1:
        raise mistake(f'the {what} is "{unit}", with two strokes; write one, as in "kg/(m s^2)".')
    if any(match and match[1] in INSTEAD for match in map(FACTOR.fullmatch, _factors(above) + _factors(*below))):
        raise mistake(f'the {what} is "{unit}"; {_advice(above, *below)} Values are in SI units.')
    result = _product(above, unit, what)
    if below:
        group = below[0].strip()
        inside = _without_brackets(group)
        if inside == group and len(group.split()) > 1:
            first, *rest = group.split()
            raise mistake(
                f'the {what} is "{unit}", which can be read in two ways; write "{above.strip()}/({group})" or '
                f'"{above.strip()} {" ".join(rest)}/{first}".'
            )
        result = divided(result, _product(inside, unit, what))
    return result


def plain(unit: str) -> str:
    """A unit with `^` for `**` and for exponents that are written as superscripts."""
    digits = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
    raised = SUPERSCRIPTS.sub(lambda match: "^" + match[0].translate(digits).removeprefix("+"), unit)
    return raised.replace("**", "^")


def _without_brackets(group: str) -> str:
    return group[1:-1] if group.startswith("(") and group.endswith(")") else group


def _factors(product: str = "1") -> list[str]:
    return re.split(r"[\s*·⋅]+", _without_brackets(product.strip()).strip())


def _advice(above: str, below: str = "") -> str:
    """What to write for a unit with a factor of INSTEAD: the whole unit, and the factors of the value."""
    numerator: list[str] = []
    denominator: list[str] = []
    values = []
    for factors, own, other in (
        (_factors(above), numerator, denominator),
        (_factors(below or "1"), denominator, numerator),
    ):
        for factor in factors:
            match = FACTOR.fullmatch(factor)
            name, power = (match[1], match[2]) if match else (factor, None)
            units, conversion = INSTEAD.get(name, (name, ""))
            up, _, down = units.partition("/")
            parts = up.split()
            if power and conversion:  # "rpm^2" raises all of it, "Nm^2" only the metre
                parts = [f"{part}^{power}" for part in parts]
            elif power:
                parts[-1] += f"^{power}"
            own += parts
            other += [f"{part}^{power}" if power else part for part in down.split()]
            if conversion:
                size = conversion if power is None else f"({conversion})^{power}"
                values.append(f"times {size}" if own is numerator else f"divided by ({size})")
    upper, lower = ([part for part in parts if part != "1"] for parts in (numerator, denominator))
    whole = " ".join(upper) or "1"
    if lower:
        whole += f"/{lower[0]}" if len(lower) == 1 else f"/({' '.join(lower)})"
    return f'write the value in {whole}, {", ".join(values)}, and "{whole}".' if values else f'write "{whole}".'


def _product(text: str, unit: str, what: str) -> Dimension:
    """The dimension of the factors in `text`, a part of `unit`. Raises ModelError for a factor that is not known."""
    result = dimension("1")
    for factor in _factors(text):
        match = FACTOR.fullmatch(factor)
        if match and match[1] in (*BASE, *DERIVED):
            result = multiplied(result, raised(dimension(match[1]), Fraction(match[2] or 1)))
            continue
        wrong = match[1] if match else factor
        known = [*BASE, *(name for name in DERIVED if name != "1")]
        raise mistake(
            f'the {what} is "{unit}", and `{wrong}` is no unit known here.{suggestion(wrong, known)} Write SI units '
            f'such as "kg m^2", "N s/m" or "1", made of {", ".join(known)}.'
        )
    return result


@cache
def dimension(unit: str) -> Dimension:
    """The dimension of a unit that is known to be valid."""
    if unit in BASE:
        return tuple(Fraction(unit == base) for base in BASE)
    if unit not in DERIVED:
        found = parse(unit, "unit")
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
        return "no unit (rad)"
    short = next((f" ({name})" for name in NAMES if dimension(name.partition(",")[0]) == each), "")
    powers = list(zip(BASE, each, strict=True))
    above = " ".join(_power(name, power) for name, power in powers if power > 0) or "1"
    below = " ".join(_power(name, -power) for name, power in powers if power < 0)
    if not below:
        return above + short
    return f"{above}/({below}){short}" if " " in below else f"{above}/{below}{short}"


def _power(name: str, power: Fraction) -> str:
    return name if power == 1 else f"{name}^{power}"
