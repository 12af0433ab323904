"""Errors of modelgen. A message says what is wrong, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from sys import _getframe

LONGEST = 4000  # characters of a message


@dataclass(frozen=True)
class Place:
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ModelError(ValueError):
    """A mistake in a model file or in a call of a compiled robot. `place`: the line of the user, if known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(abridged(f"{place}: {message}" if place else message, LONGEST))
        self.place = place


def joined(errors: Sequence[ModelError], remedy: str = "") -> ModelError:
    """One error with the messages of all, one per line, in the order of the file. The remedy follows."""
    ordered = sorted(errors, key=lambda error: error.place.line if error.place else 0)
    return ModelError("\n".join([*map(str, ordered), *[remedy] * bool(remedy)]))


#: The message for an expression that exceeds the recursion limit of SymPy.
TOO_DEEP = (
    "an expression is nested too deep or has too many terms for SymPy, whose functions are recursive. Write it with "
    "fewer nested functions (a hundred are fine) or fewer terms in a sum (a thousand are fine), and do not expand() "
    "products and powers."
)


class ArtifactError(ModelError):
    """An artifact that is missing, damaged, edited, of another version, or made from another model."""


class ReliabilityWarning(UserWarning):
    """Something of which a result depends, and that the user may not expect."""


class StaleArtifactWarning(ReliabilityWarning):
    """An artifact that was built from another content of the model file than ./models holds."""


def mistake(message: str) -> ModelError:
    """The error of the line of a model file that is being executed."""
    return ModelError(message, calling_place())


def calling_place() -> Place:
    """The line of the user: the innermost one of the call stack outside this package and SymPy, which it calls."""
    frame = _getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("modelgen", "sympy"):
        frame = frame.f_back
    return Place(shortened(Path(frame.f_code.co_filename)), frame.f_lineno)


def shortened(path: Path) -> str:
    """The path relative to the working folder if it lies in it, otherwise unchanged."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def abridged(text: str, most: int = 60) -> str:
    """The text, without its middle if it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 3 :]}"


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """The text " Did you mean `x`?" if a known name is close to the wrong one, otherwise an empty text."""
    close = get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" Did you mean `{close[0]}`?" if close else ""
