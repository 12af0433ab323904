"""The option `--set`: changed parameters in words such as `mass=1.3x`."""

from __future__ import annotations

from collections.abc import Sequence

from modelgen.commandline import decimal
from solver.errors import SolverError
from solver.evaluation.statistics import ParameterRange
from solver.problem.parameters import TOLD, Change, Relative


def read_changes(words: Sequence[str]) -> dict[str, Change]:
    """Parameter -> change of `mass=1.3x` (times nominal), `mass=+0.05` (added to it) or `mass=1.1` (replaces it).

    A minus alone is the sign of a value, because a parameter may be negative: `mass=+-0.05` subtracts.

    Raises SolverError for other words, and for a parameter that is changed twice.
    """
    changes: dict[str, Change] = {}
    for word in words:
        name, _, text = (part.strip() for part in word.partition("="))
        if name in changes:
            raise SolverError(f"{name} is changed twice in {' '.join(words)}; write its last value only")
        try:
            changes[name] = read_change(text)
        except ValueError as error:
            raise SolverError(f"cannot read '{word}'; write {name}=1.3x, {name}=+0.05 or {name}=1.1") from error
    return changes


def read_change(text: str) -> Change:
    """The change in `1.3x`, `+0.05` or `1.1`. Raises ValueError for other text."""
    if text.endswith("x"):
        return Relative(factor=decimal(text[:-1]))
    return Relative(added=decimal(text[1:])) if text.startswith("+") else decimal(text)


def read_given(words: Sequence[str]) -> dict[str, tuple[Change, Change] | None]:
    """Parameter -> range of `mass`, `mass=0.8:1.2` or `mass=0.5x:1.5x`; None for the bounds of the model file.

    Raises SolverError for other words, and for a parameter that is named twice.
    """
    ranges: dict[str, tuple[Change, Change] | None] = {}
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        if name in ranges:
            raise SolverError(f"--given names {name} twice; write it once")
        try:
            lower, upper = (read_change(end.strip()) for end in text.split(":")) if equals else (None, None)
        except ValueError as error:
            raise SolverError(
                f"cannot read --given {word}; write {name}, {name}=0.8:1.2 or {name}=0.5x:1.5x"
            ) from error
        ranges[name] = None if lower is None or upper is None else (lower, upper)
    return ranges


def read_estimate(names: Sequence[str] | None) -> tuple[str, ...]:
    """Names of `--estimate`: none without it, and the parameters that the policy is told if it has no names."""
    return () if names is None else tuple(names) or (TOLD,)


def read_range(name: str, start: str, end: str, points: int) -> ParameterRange:
    """The range of a parameter from 0.5x to 1.5x, or from -0.1 to +0.1. Raises SolverError for other text."""
    try:
        low, high = (decimal(text.removesuffix("x")) for text in (start, end))
    except ValueError as error:
        raise SolverError(f"cannot read the range of {name} from {start} to {end}: {error}") from error
    factors = start.endswith("x")
    if factors != end.endswith("x") or not (factors or {start[0], end[0]} <= {"+", "-"}):
        raise SolverError(
            f"--from {start} --to {end} is not a range of {name}; write 0.5x and 1.5x to multiply the nominal value, "
            "or -0.1 and +0.1 to add to it"
        )
    return ParameterRange(name, low, high, points, added=not factors)
