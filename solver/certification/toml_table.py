"""Typed reading of the tables of a TOML file. Every error names the file and the key."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import suggestion
from solver.errors import SolverError

HELD = 10**308  # largest integer that becomes a float
LARGEST = 1e30  # largest number, within the range of float32


def read_toml(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """The text and the content of a TOML file. what: its kind, in messages. Raises SolverError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise SolverError(f"cannot read the {what} {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SolverError(f"{path} is not a TOML file in UTF-8: {str(error).splitlines()[0]}") from error


@dataclass(frozen=True)
class TomlTable:
    """One table of a TOML file. Its methods raise SolverError for an entry of another type or out of range."""

    file: str  # its path in messages
    prefix: str  # of its keys in messages, such as `parameters.` in the table [parameters]
    content: Mapping[str, Any]

    def mistake(self, key: str, reason: str) -> SolverError:
        """Error for the entry of a key."""
        return SolverError(f"{self.file}: {self.prefix}{key} {reason}")

    def require_keys(self, known: Collection[str]) -> None:
        """Raises SolverError for a key that is not among `known`."""
        for key in self.content:
            if key not in known:
                raise self.mistake(key, f"is not a key of this table.{suggestion(key, known)} Keys: {', '.join(known)}")

    def inner(self, key: str) -> TomlTable:
        """Table of a key."""
        entry = self.content[key]
        if not isinstance(entry, Mapping):
            raise self.mistake(key, f"is {entry!r}, but must be a table")
        return TomlTable(self.file, f"{self.prefix}{key}.", entry)

    def number(
        self,
        key: str,
        usual: float,
        least: float = -LARGEST,
        most: float = LARGEST,
        above: float = -math.inf,
        below: float = math.inf,
    ) -> float:
        """Number with least <= number <= most and above < number < below. usual: its default."""
        entry = self.content.get(key, usual)
        if not _is_number(entry):
            raise self.mistake(key, f"is {entry!r}, but must be a number")
        if not (least <= entry <= most and above < entry < below):
            low = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
            high = f"below {below:g}" if below < math.inf else f"at most {most:g}"
            raise self.mistake(key, f"is {entry:g}, but must be {low} and {high}")
        return float(entry)

    def whole(self, key: str, usual: int, most: int) -> int:
        """Integer from 0 to `most`. usual: its default."""
        entry = self.content.get(key, usual)
        if type(entry) is not int or not 0 <= entry <= most:
            raise self.mistake(key, f"is {entry!r}, but must be an integer from 0 to {most}")
        return entry

    def flag(self, key: str) -> bool:
        """true or false, by default false."""
        entry = self.content.get(key, False)
        if type(entry) is not bool:
            raise self.mistake(key, f"is {entry!r}, but must be true or false")
        return entry

    def words(self, key: str) -> list[str]:
        """List of texts, by default empty."""
        entry = self.content.get(key, [])
        if not isinstance(entry, list) or not all(isinstance(word, str) for word in entry):
            raise self.mistake(key, f"is {entry!r}, but must be a list of words in quotes")
        return entry

    def choice(self, key: str, known: Collection[str], usual: str) -> str:
        """One of the texts in `known`. usual: its default."""
        entry = self.content.get(key, usual)
        if not isinstance(entry, str) or entry not in known:
            raise self.mistake(key, f"is {entry!r}.{suggestion(str(entry), known)} Choose from: {', '.join(known)}")
        return entry

    def interval(self, key: str) -> tuple[float, float]:
        """Two numbers, of which the first is not above the second."""
        entry = self.content[key]
        if not isinstance(entry, list) or len(entry) != 2 or not all(map(_is_number, entry)):
            raise self.mistake(key, f"is {entry!r}, but must be two numbers, [lowest, highest]")
        low, high = map(float, entry)
        if not (abs(low) <= LARGEST and abs(high) <= LARGEST):
            raise self.mistake(key, f"is {entry!r}; both bounds must be finite and at most {LARGEST:g}")
        if low > high:
            raise self.mistake(key, f"is {entry!r}, but the lowest value is above the highest; exchange them")
        return low, high

    def numbers(self, key: str, shape: tuple[int, ...]) -> Array:
        """Finite numbers in nested lists of the given shape."""
        entry = self.content.get(key)
        try:
            array = np.asarray(entry, float)
        except (ValueError, TypeError):
            array = np.array(np.nan)
        if array.shape != shape or not (np.abs(array) <= LARGEST).all():
            raise self.mistake(key, f"is {entry!r}, but must have {' x '.join(map(str, shape))} finite numbers")
        return array


def _is_number(entry: object) -> bool:
    """Check for a number that a float can hold: TOML has integers of any size."""
    return type(entry) is float or (type(entry) is int and abs(entry) <= HELD)
