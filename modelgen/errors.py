"""The errors of modelgen. Their messages say what was wrong, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from sys import _getframe


@dataclass(frozen=True)
class Place:
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ModelError(ValueError):
    """A mistake in a model file, or in a call of a compiled robot."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place


def joined(errors: Sequence[ModelError], remedy: str = "") -> ModelError:
    """One error that says them all, a line each, in the order of the file, and then a remedy."""
    ordered = sorted(errors, key=lambda each: each.place.line if each.place else 0)
    return ModelError("\n".join([*map(str, ordered), *[remedy] * bool(remedy)]))


#: What is said of an expression that SymPy cannot walk through.
TOO_DEEP = (
    "an expression is nested too deep or has too many terms for SymPy, whose functions call themselves for each. State "
    "it with fewer functions within functions (a hundred is well) or fewer terms in a sum (a thousand is well), and a "
    "product or power as it stands instead of by expand()."
)


class ArtifactError(ModelError):
    """An artifact that is missing, damaged, edited, or made by another version or from another model."""


def calling_place() -> Place:
    """The nearest line outside this package on the call stack: the line that the user wrote."""
    frame = _getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "modelgen":
        frame = frame.f_back
    return Place(shortened(Path(frame.f_code.co_filename)), frame.f_lineno)


def shortened(path: Path) -> str:
    """The path relative to the working folder, where it lies in that folder; else as it is."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def abridged(text: str, most: int = 60) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 3 :]}"


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """The text " Did you mean `x`?" when a known name is close to the wrong one, else an empty text."""
    close = get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" Did you mean `{close[0]}`?" if close else ""
