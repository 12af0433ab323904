"""Checks of the values in a model file: numbers, names, texts, expressions. Every message says what to write."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from keyword import iskeyword

from sympy import Abs, Basic, Expr, Heaviside, I, Max, Min, Pow, Symbol, nan, oo, preorder_traversal, sign, sympify, zoo
from sympy.core.function import AppliedUndef
from sympy.core.sympify import SympifyError

from modelgen.errors import ModelError, mistake, suggestion

ALIKE = ("sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "log1p", "sign", "atan2")
#: Functions of SymPy, by class name -> operation of the program's graph.
CALLS = {name: name for name in ALIKE} | {"Abs": "abs", "Min": "minimum", "Max": "maximum"}
#: Functions that a model file may use, by SymPy's class names. tan becomes sin / cos.
FUNCTIONS = frozenset({*CALLS, "tan"})
KINKS = (Abs, sign, Max, Min, Heaviside)
#: Names of symbols by which a model file means time.
TIME = frozenset({"t", "time"})
POWER = 100
SMALLEST = 1e-15  # limit of a state
LARGEST = 10**300
LONGEST_NAME = 100


def shown(value: object) -> str:
    """A value as text for a message, shortened where it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Python itself refuses to print the longest integers
        return f"a {type(value).__name__} that is too long to print"
    return text if len(text) <= 200 else f"{text[:200]}..."


def number(value: object, what: str) -> float:
    """A finite real number. SymPy constants such as pi/2 are accepted."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        result = float(value)  # type: ignore[arg-type]
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):
        raise mistake(f"{what} is {shown(value)}; {_instead(value)}.") from None
    if not math.isfinite(result):
        raise mistake(f"{what} is {shown(value)}; write a finite number.")
    return result


def _instead(value: object) -> str:
    """What to write where a number is needed."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"write one number and not {len(value)}"
    moves = callable(value) or (isinstance(value, Basic) and {str(each) for each in value.free_symbols} & TIME)
    return "write a number; a model has no time, and nothing in it is a function of time" if moves else "write a number"


def positive(value: object, what: str) -> float:
    """A finite number greater than zero."""
    result = number(value, what)
    if result <= 0:
        raise mistake(f"{what} is {result:g}; write a number greater than zero.")
    return result


def limit_of(value: object, what: str, largest: float) -> float:
    """A limit of the state domain. Raises ModelError if it is above `largest`."""
    if isinstance(value, tuple | list):
        raise mistake(
            f"the {what} is {shown(value)}; write one number: the domain is from -limit to limit. Measure a coordinate "
            "from the middle of its range."
        )
    limit = positive(value, what)
    if limit < SMALLEST:
        raise mistake(f"the {what} is {limit:g}; write {SMALLEST:g} at least: kernels divide by its square.")
    if limit > largest:
        raise mistake(
            f"the {what} is {limit:g}; write {largest:g} at most, in SI units (180 degrees are pi). The solver learns "
            "on the whole domain, so the limit should be what the robot can reach."
        )
    return limit


def three(value: object, what: str, largest: float) -> tuple[float, ...]:
    """Three limits of at most `largest`, from one number or three."""
    given = value if isinstance(value, tuple | list) else (value,) * 3
    if len(given) != 3:
        raise mistake(f"the {what} has {len(given)} entries; write one number, or three (x, y, z).")
    return tuple(limit_of(entry, what, largest) for entry in given)


def middle_and_half(limit: object, name: str) -> tuple[float, float]:
    """The middle and half of the range of an input. Raises ModelError for limits that are not a range."""
    if not isinstance(limit, tuple | list):
        return 0.0, positive(limit, f"limit of `{name}`")
    if len(limit) != 2:
        raise mistake(f"the limits of `{name}` are {limit!r}; write (lower, upper), or one number.")
    lower, upper = (number(value, f"limit of `{name}`") for value in limit)
    if lower >= upper:
        raise mistake(f"the limits of `{name}` are {lower:g} and {upper:g}; write the lower one first.")
    return (lower + upper) / 2, (upper - lower) / 2


def text(value: object, what: str) -> str:
    """A string that can be written to a file in UTF-8."""
    if not isinstance(value, str):
        raise mistake(f"the {what} is {shown(value)}; write a string in quotes.")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise mistake(f"the {what} is {value!r}, which contains half of a character; write it again.")
    return value


def flag(value: object, what: str) -> None:
    """Raise ModelError for a value that is neither True nor False."""
    if not isinstance(value, bool):
        raise mistake(f"{what} is {shown(value)}; write True or False.")


SINGLE, LEAST = 3.4e38, 1.2e-38  # largest and smallest size of numbers in single precision


def parameter_range(name: str, nominal: float, bounds: object, tolerance: object, fixed: bool) -> tuple[float, float]:
    """The lower and upper bound of a parameter. A fixed parameter needs no bounds.

    Raises ModelError for a tolerance of 1 or more, which would let the parameter change its sign.
    """
    if bounds is not None and tolerance is not None:
        raise mistake(f"`{name}` has both bounds and a tolerance; write one of them.")
    if tolerance is not None and fixed:
        raise mistake(f"`{name}` is fixed and has a tolerance; write one of them.")
    if bounds is not None:
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise mistake(f"bounds of `{name}` are {bounds!r}; write bounds=(lower, upper).")
        lower, upper = (number(bound, f"bound of `{name}`") for bound in bounds)
    elif tolerance is not None:
        share = positive(tolerance, f"tolerance of `{name}`")
        if share >= 1:
            raise mistake(
                f"tolerance of `{name}` is {share:g}; write a number below 1: the bounds are value * (1 - tolerance) "
                "and value * (1 + tolerance). Where the value may change its sign, write bounds=(lower, upper)."
            )
        spread = abs(nominal) * share
        lower, upper = nominal - spread, nominal + spread
    elif fixed:
        lower = upper = nominal
    else:
        raise mistake(
            f"the parameter `{name}` has no bounds. Write bounds=(lower, upper), the range of its true value, or "
            "tolerance=0.5 for half to one and a half times the value, or fixed=True to keep it constant."
        )
    if lower > upper:
        raise mistake(
            f"bounds of `{name}` are ({lower:g}, {upper:g}), the larger first; write bounds=({upper:g}, {lower:g})."
        )
    if not lower <= nominal <= upper:
        raise mistake(
            f"the parameter `{name}` is {nominal:g}, outside its bounds ({lower:g}, {upper:g}). Change the "
            "value or the bounds."
        )
    if lower == upper and not fixed:
        raise mistake(
            f"the bounds of `{name}` are equal: both are {lower:g}. Write bounds=(lower, upper) or fixed=True."
        )
    if (largest := max(abs(lower), abs(upper))) > SINGLE:
        raise mistake(
            f"the parameter `{name}` may be {largest:g}, and single precision, in which policies are trained, holds "
            f"numbers up to {SINGLE:g}. Declare another quantity, such as a product of two."
        )
    if smallest := next((value for value in (nominal, lower, upper) if 0 < abs(value) < LEAST), 0.0):
        raise mistake(
            f"the parameter `{name}` may be {smallest:g}, which is zero in single precision, in which policies are "
            f"trained: the smallest size is {LEAST:g}. Declare another quantity, such as a product of two."
        )
    return lower, upper


def identifier(name: object, what: str) -> str:
    """A name that is valid in emitted code and in file names."""
    fault = fault_of_name(name, what)
    if fault:
        raise mistake(fault)
    return str(name)


def fault_of_name(name: object, what: str) -> str:
    """What is wrong with a name, and what to write instead; empty for a valid one."""
    if not isinstance(name, str):
        return f'the name of the {what} is {shown(name)}; write a string such as "mass".'
    if not (name.isascii() and name.isidentifier()) or name.startswith("_"):
        return (
            f"`{name[:200]}` cannot name the {what}: a name has letters, digits and underscores and starts with a "
            f"letter. Write `{repaired(name)}`, for example."
        )
    if len(name) > LONGEST_NAME:
        return f"`{name[:20]}...` names the {what} with {len(name)} characters; write at most {LONGEST_NAME}."
    if iskeyword(name):
        return f"`{name}` cannot name the {what}: it is a Python keyword. Write `{name}_value` or another word."
    return ""


def robot_name(name: str) -> str:
    """A name of a robot that a command takes. Raises ModelError for one that no model file can have."""
    fault = fault_of_name(name, "robot")
    if fault:
        raise ModelError(fault)
    return name


def repaired(name: str) -> str:
    """The valid name nearest to a wrong one. Drops the suffix `.py` and the accents of letters."""
    letters = unicodedata.normalize("NFKD", name.removesuffix(".py"))
    name = "".join(letter for letter in letters if not unicodedata.combining(letter))
    letters = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).strip("_")
    return letters if letters[:1].isalpha() else f"value_{letters}".rstrip("_")


def expression(value: object, what: str) -> Expr:
    """A finite real scalar SymPy expression."""
    try:
        result = sympify(value, strict=True)
    except SympifyError:
        result = None
    if not isinstance(result, Expr) or isinstance(value, bool):
        raise mistake(f"the {what} is {shown(value)}, a {type(value).__name__}; write a SymPy expression or a number.")
    unknown = sorted(str(function) for function in result.atoms(AppliedUndef))
    if unknown:
        raise mistake(
            f"the {what} contains the function {unknown[0]}. Coordinates are plain symbols here: write the return "
            "value of robot.revolute(...) or robot.prismatic(...), and its `.rate` for the velocity."
        )
    check_finite(result, what)
    if any(map(_is_whole, result.atoms(Pow))):
        result = result.replace(_is_whole, lambda power: power.base ** int(power.exp))
    extreme = next((node for node in preorder_traversal(result) if _is_extreme(node)), None)
    if extreme is not None:
        raise mistake(
            f"the {what} contains {shown(extreme)}: kernels cannot compute with numbers of more than 300 digits or "
            f"powers above {POWER}."
        )
    strange = next((node for node in preorder_traversal(result) if not _can_be_evaluated(node)), None)
    if strange is not None:
        raise mistake(
            f"the {what} contains {type(strange).__name__} in {strange}, which kernels cannot evaluate. Use only "
            f"+ - * / ** and {', '.join(sorted({*FUNCTIONS, 'sqrt'}))}; replace a Piecewise by a smooth function, "
            "and a contact by Max(0, depth)**p."
        )
    return result


def check_finite(term: Expr, what: str) -> None:
    """Raise ModelError for an expression that SymPy knows to be infinite or complex."""
    if term.has(nan, zoo, oo, -oo):
        raise mistake(f"the {what} is {term}, which is not finite. Look for a division by zero.")
    if term.has(I):
        raise mistake(f"the {what} is {term}, which is complex. Write a real expression.")


def check_smooth(term: Expr, what: str) -> None:
    """Raise ModelError for an expression with a kink: forces are its derivatives, and would jump there."""
    kink = next((node for node in preorder_traversal(term) if isinstance(node, KINKS)), None)
    if kink is not None:
        raise mistake(
            f"the {what} contains {kink}, which has a kink; forces are its derivatives and would jump there. Write a "
            "smooth form: sqrt(y**2 + 1e-6) for Abs(y), tanh(y / 0.01) for sign(y), (y + sqrt(y**2 + 1e-6)) / 2 for "
            "Max(0, y). Or write the force itself with robot.apply(coordinate, force)."
        )


def _is_whole(node: Basic) -> bool:
    """Whether it is a power whose exponent is a whole number with a decimal point, as x**2.0: it is no root."""
    return isinstance(node, Pow) and node.exp.is_Float and float(node.exp).is_integer() and abs(node.exp) <= POWER


def _is_extreme(node: Basic) -> bool:
    if node.is_Pow and node.args[1].is_Number and abs(node.args[1]) > POWER:
        return True
    return bool(node.is_Number and abs(node) > LARGEST)


def _can_be_evaluated(node: Basic) -> bool:
    plain = node.is_Symbol or node.is_Number or node.is_NumberSymbol or node.is_Add or node.is_Mul or node.is_Pow
    return bool(plain) or type(node).__name__ in FUNCTIONS


def check_symbols(
    term: Basic,
    what: str,
    allowed: Collection[Symbol],
    declared: Mapping[str, Symbol],
    reason: str,
) -> None:
    """Raise ModelError for a symbol that the robot does not declare or that is not `allowed`.

    reason: the end of the message for a declared symbol that is not allowed.
    """
    for symbol in sorted(term.free_symbols, key=str):
        if symbol in allowed:
            continue
        name = str(symbol)
        if declared.get(name) == symbol:
            raise mistake(f"the {what} contains `{name}`; {reason}")
        if name in declared:
            raise mistake(
                f"the {what} contains a symbol `{name}` that only has the same name as the one that this robot "
                f'declares. Use the return value of robot.parameter("{name}", ...), robot.input or the coordinate; '
                "do not make a Symbol."
            )
        if name in TIME:
            raise mistake(
                f"the {what} contains the symbol `{name}`. A model has no time: its equations, its cost and its limits "
                "are the same at all times. Write them in states, inputs and parameters."
            )
        raise mistake(
            f"the {what} contains the symbol `{name}`, which this robot does not declare."
            f"{suggestion(name, declared)} Declare it first, for example "
            f'{name} = robot.parameter("{name}", value, "unit", bounds=(lower, upper)).'
        )
