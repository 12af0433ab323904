"""What may stand between a model and its recordings: its kinds, and one number of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["delay", "offset", "gain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Effect:
    """One number beside the robot's parameters."""

    kind: Kind
    of: str  # the coordinate or the input; empty for the delay
    unit: str
    lower: float
    upper: float
    nominal: float

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"{self.kind} of {self.of}" if self.of else self.kind
