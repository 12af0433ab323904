"""The command lines of both programs: options from dataclasses by tyro, exit codes, Ctrl-C, safe output.

A command is a module with a dataclass `Options` and a function `run(options)`, which returns an exit code, or None for
0. The doc string under a field is its help. Annotations of tyro (`Positional`, `arg`) and `Range` say how it is read.

A module may have more names. `defaults(given)` makes the `Options` to start from, where they depend on the given
ones; `undecided(given)` names those fields whose defaults need an option that is not given. `COMMON`
names the fields of a short `--help`; `--help-all` shows all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modelgen.errors import ModelError, suggestion

if TYPE_CHECKING:
    from modelgen.metadata import State  # which imports NumPy; help does not need it

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_TURNS = re.compile(r"([+-]?)(\d*\.?\d*)\*?pi(?:/(\d+\.?\d*))?", re.ASCII)


def decimal(text: str) -> float:
    """A finite number in ASCII digits, such as -1.5 or 2e-3. Raises ValueError for other text, also for 1_5 and nan."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number; write it like 2, -0.5 or 1e-3")
    return value


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`; whole numbers where both ends are of type int. An annotation of an option."""

    least: float
    most: float

    @property
    def whole(self) -> bool:
        """Whether the range has whole numbers only."""
        return isinstance(self.least, int) and isinstance(self.most, int)

    @property
    def shown(self) -> str:
        """The range in a help text, such as `INT 1..1000`."""
        return f"{'INT' if self.whole else 'FLOAT'} {self.least:.10g}..{self.most:.10g}"

    @property
    def words(self) -> str:
        """The range in a message, such as `a whole number from 1 to 1000`."""
        kind = "a whole number" if self.whole else "a number"
        if math.isinf(self.most):
            return f"{kind} of at least {self.least:.10g}"
        return f"{kind} from {self.least:.10g} to {self.most:.10g}"

    def holds(self, value: float) -> bool:
        """Whether the range contains a number."""
        return self.least <= value <= self.most

    def read(self, text: str) -> float:
        """The number that `text` writes. Raises ValueError for one outside of the range or of the other type."""
        if self.whole and not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            raise ValueError(f"{text!r} is not a whole number")
        value = int(text) if self.whole else decimal(text)
        if not self.holds(value):
            raise ValueError(f"{text} is out of range; write {self.words}")
        return value


def assigned(
    option: str, pairs: Sequence[str], names: Sequence[str], what: str, hint: Callable[[str], str] = lambda _: ""
) -> dict[str, str]:
    """The text behind `=` of each pair `name=text`, by name.

    Raises ModelError for a name outside of `names`, which are names of a `what`, and for one that stands twice.
    """
    texts: dict[str, str] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in names:
            raise ModelError(
                f"{option} {pair} names no {what}.{hint(name)}{suggestion(name, names)} Write {option} "
                f"{names[0]}=0.5; there are {', '.join(names)}."
            )
        if name in texts:
            raise ModelError(f"{option} gives {name} twice; write its last value only.")
        texts[name] = text
    return texts


def number(option: str, name: str, text: str) -> float:
    """The value of `name=text`: a number, or a multiple of pi such as -pi/2. Raises ModelError for other text."""
    turns = _TURNS.fullmatch(text)
    try:
        if turns is None:
            return decimal(text)
        sign, factor, divisor = turns.groups()
        return float(f"{sign}{factor or 1}") * math.pi / float(divisor or 1)
    except (ValueError, ZeroDivisionError) as error:
        raise ModelError(
            f"{option} {name}={text} has no number behind `=`. Write {option} {name}=0.5 or =pi/2."
        ) from error


def states_given(
    option: str, pairs: Sequence[str], states: Sequence[State], what: str, hint: Callable[[str], str] = lambda _: ""
) -> dict[str, float]:
    """Values of states from pairs `name=text`. Raises ModelError as `assigned` and `number` do, and beyond a limit."""
    known = {state.name: state for state in states}
    values = {name: number(option, name, text) for name, text in assigned(option, pairs, [*known], what, hint).items()}
    for name, value in values.items():
        state = known[name]
        if not state.continuous and abs(value) > state.limit:
            raise ModelError(
                f"{option} {name}={value:g} is beyond its limit of {state.limit:g} {state.unit}, up to which the model "
                f"is checked. Write a smaller value{' (180 degrees are pi)' * (state.unit == 'rad')}, or widen the "
                "limit in the model file."
            )
    return values
