"""What a robot consists of, as declared: joints, constants, drives and loads, each with its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sympy import Expr, Symbol

from modelgen.errors import Place
from modelgen.metadata import RATE, Task


class Coordinate(Symbol):  # type: ignore[misc]
    """A generalized coordinate: a SymPy symbol that knows the symbol of its velocity."""

    @property
    def rate(self) -> Symbol:
        """The symbol of the coordinate's velocity, named NAME_rate."""
        return Symbol(f"{self.name}{RATE}", real=True)


@dataclass(frozen=True)
class Joint:
    """A declared coordinate."""

    symbol: Coordinate
    kind: Literal["revolute", "prismatic"]
    limit: float
    rate_limit: float | None  # None: its rate is no entry of the state
    continuous: bool
    meaning: str
    place: Place


@dataclass(frozen=True)
class Speed:
    """An entry of v: the rate of a coordinate, or a speed declared for a system of SymPy's."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place


@dataclass(frozen=True)
class Constant:
    """A declared parameter; a fixed one is folded into the equations and is no part of theta."""

    symbol: Symbol
    value: float
    unit: str
    bounds: tuple[float, float]
    fixed: bool
    meaning: str
    place: Place


@dataclass(frozen=True)
class Drive:
    """A declared input."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place


@dataclass(frozen=True)
class Load:
    """A generalized force: it does the work `force * d(displacement)`."""

    displacement: Expr
    force: Expr
    place: Place


@dataclass(frozen=True)
class Energy:
    """A term of the kinetic or potential energy."""

    value: Expr
    place: Place


@dataclass(frozen=True)
class StatedTask:
    """The default task: the symbolic state cost and the numbers."""

    state_cost: Expr
    numbers: Task
    place: Place
