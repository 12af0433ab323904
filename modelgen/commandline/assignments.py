"""`name=value` as given on a command line; a value is a number, or one with pi such as -pi/2."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from modelgen.errors import ModelError, suggestion


def assigned(
    option: str, pairs: Sequence[str], names: Sequence[str], what: str, hint: Callable[[str], str] = lambda _: ""
) -> dict[str, str]:
    """Name -> text behind `=`. Raises ModelError for a name that is none of `names`; `what` says of which kind."""
    result = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in names:
            raise ModelError(
                f"{option} {pair} names no {what}.{hint(name)}{suggestion(name, names)} Write {option} "
                f"{names[0]}=0.5; there are {', '.join(names)}."
            )
        result[name] = value
    return result


def number(option: str, name: str, text: str) -> float:
    """The value of `name=text`. Raises ModelError unless it is a finite number."""
    turns = re.fullmatch(r"([+-]?)(\d*\.?\d*)\*?pi(?:/(\d+\.?\d*))?", text)
    try:
        if turns:
            sign, factor, divisor = turns.groups()
            result = float(f"{sign}{factor or 1}") * math.pi / float(divisor or 1)
        else:
            result = float(text)
    except (ValueError, ZeroDivisionError):
        result = math.nan
    if not math.isfinite(result):
        raise ModelError(f"{option} {name}={text} has no number behind `=`. Write {option} {name}=0.5 or =pi/2.")
    return result
