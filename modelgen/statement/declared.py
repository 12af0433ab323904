"""Records of a model file: joints, parameters, inputs, speeds, energies and loads, each with its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sympy import Expr, Symbol

from modelgen.errors import Place
from modelgen.metadata import RATE, Task
from modelgen.statement.action_costs import InputCost

Kind = Literal["revolute", "prismatic"]

UNITS = {"revolute": "rad", "prismatic": "m"}
#: Limits above these are refused: no robot moves that far, and the state domain is sampled as a whole.
LARGEST, LARGEST_RATE = {"revolute": 100.0, "prismatic": 1e6}, 1e6
RATE_UNITS = {"revolute": "rad/s", "prismatic": "m/s"}


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
    kind: Kind
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
class StatedParameter:
    """A declared parameter. A fixed one becomes a number in the equations and is not an entry of theta."""

    symbol: Symbol
    value: float
    unit: str
    bounds: tuple[float, float]
    fixed: bool
    meaning: str
    place: Place


@dataclass(frozen=True)
class StatedInput:
    """A declared input, an entry of u."""

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
    """A term of the kinetic or potential energy (J)."""

    value: Expr
    place: Place
    elastic: bool = False  # that of a spring, which is no weight


@dataclass(frozen=True)
class Contribution:
    """The energies and loads that one line of a model file adds to its robot."""

    kinetic: tuple[Energy, ...] = ()
    potential: tuple[Energy, ...] = ()
    loads: tuple[Load, ...] = ()


@dataclass(frozen=True)
class StatedTask:
    """The default task: the symbolic state cost and the numbers."""

    state_cost: Expr
    input_costs: tuple[InputCost, ...]  # the action cost, by input
    numbers: Task
    place: Place
