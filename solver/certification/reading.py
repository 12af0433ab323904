"""Read the tables of a specification; every error names the file and the key."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from modelgen.errors import suggestion
from solver.errors import SolverError

LARGEST = 1e30  # of a number, so that float32 holds it


@dataclass(frozen=True)
class Table:
    """One table of a TOML file."""

    file: str
    prefix: str  # of its keys in messages: `parameters.` in the table [parameters]
    content: Mapping[str, Any]

    def mistake(self, key: str, reason: str) -> SolverError:
        """The error for a key."""
        return SolverError(f"{self.file}: {self.prefix}{key} {reason}")

    def require_keys(self, known: Collection[str]) -> None:
        """SolverError for a key that is not known."""
        for key in self.content:
            if key not in known:
                raise self.mistake(key, f"is no key here.{suggestion(key, known)} Keys: {', '.join(known)}")

    def inner(self, key: str) -> Table:
        """The table under a key."""
        found = self.content[key]
        if not isinstance(found, Mapping):
            raise self.mistake(key, f"is {found!r}, and must be a table")
        return Table(self.file, f"{self.prefix}{key}.", found)

    def number(
        self,
        key: str,
        usual: float,
        least: float = -LARGEST,
        most: float = LARGEST,
        above: float = -math.inf,
        below: float = math.inf,
    ) -> float:
        """A number with least <= number <= most and above < number < below."""
        found = self.content.get(key, usual)
        if type(found) not in (int, float):
            raise self.mistake(key, f"is {found!r}, and must be a number")
        if not (least <= found <= most and above < found < below):
            low = f"above {above:g}" if above > -math.inf else f"at least {least:g}"
            high = f"below {below:g}" if below < math.inf else f"at most {most:g}"
            raise self.mistake(key, f"is {found:g}, and must be {low} and {high}")
        return float(found)

    def whole(self, key: str, usual: int, most: int) -> int:
        """A whole number from 0 to most."""
        found = self.content.get(key, usual)
        if type(found) is not int or not 0 <= found <= most:
            raise self.mistake(key, f"is {found!r}, and must be a whole number from 0 to {most}")
        return found

    def flag(self, key: str) -> bool:
        """true or false, false by default."""
        found = self.content.get(key, False)
        if type(found) is not bool:
            raise self.mistake(key, f"is {found!r}, and must be true or false")
        return found

    def words(self, key: str) -> list[str]:
        """A list of words, empty by default."""
        found = self.content.get(key, [])
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise self.mistake(key, f"is {found!r}, and must be a list of words in quotes")
        return found

    def choice(self, key: str, known: Collection[str], usual: str) -> str:
        """One of some words."""
        found = self.content.get(key, usual)
        if not isinstance(found, str) or found not in known:
            raise self.mistake(key, f"is {found!r}.{suggestion(str(found), known)} Choose from: {', '.join(known)}")
        return found

    def interval(self, key: str) -> tuple[float, float]:
        """Two numbers, the first not above the second."""
        found = self.content[key]
        if not isinstance(found, list) or len(found) != 2 or any(type(each) not in (int, float) for each in found):
            raise self.mistake(key, f"is {found!r}, and must be two numbers, [lowest, highest]")
        low, high = map(float, found)
        if not (abs(low) <= LARGEST and abs(high) <= LARGEST):
            raise self.mistake(key, f"is {found!r}; both bounds must be finite and at most {LARGEST:g}")
        if low > high:
            raise self.mistake(key, f"is {found!r}, and its lowest value is above its highest; exchange them")
        return low, high
