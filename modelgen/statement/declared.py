"""What a model file declares: states, parameters, inputs, loads, energies and the task, each with its line."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Symbol

from modelgen.errors import Place, calling_place
from modelgen.metadata import Task
from modelgen.statement.action_costs import InputCost
from modelgen.statement.joints import Coordinate


@dataclass(frozen=True)
class Declared:
    """A declaration."""

    place: Place = field(default_factory=calling_place, kw_only=True)  # the line of the model file


@dataclass(frozen=True)
class Internal(Declared):
    """An entry of z: a state of first order, such as a current, whose rate of change is its flow."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str


@dataclass(frozen=True)
class Flow(Declared):
    """The rate of change of a state of first order or of a coordinate, affine in the inputs."""

    state: Symbol
    rate: Expr


@dataclass(frozen=True)
class Commanded(Declared):
    """A coordinate whose acceleration is commanded, affine in the inputs."""

    coordinate: Coordinate
    acceleration: Expr


@dataclass(frozen=True)
class Rolling(Declared):
    """The rate of a coordinate of a robot that rolls without slip: linear in the speeds of the state."""

    rate: Expr


@dataclass(frozen=True)
class DeclaredParameter(Declared):
    """A declared parameter. A fixed one becomes a number in the equations and is not an entry of theta."""

    symbol: Symbol
    value: float
    unit: str
    bounds: tuple[float, float]
    fixed: bool
    meaning: str
    reference: bool = False  # a set-point: it moves the target, and no force may contain it


@dataclass(frozen=True)
class DeclaredInput(Declared):
    """A declared input, an entry of u."""

    symbol: Symbol
    unit: str
    limit: float  # half of the range
    meaning: str
    middle: float = 0.0  # of the range

    @property
    def range(self) -> tuple[float, float]:
        """Lower and upper limit."""
        return self.middle - self.limit, self.middle + self.limit


@dataclass(frozen=True)
class Load(Declared):
    """A generalized force, which does the work `force * d(displacement)`."""

    displacement: Expr
    force: Expr


@dataclass(frozen=True)
class Energy(Declared):
    """A term of the kinetic or potential energy (J)."""

    value: Expr
    elastic: bool = False  # the energy of a spring; False: an inertia or a weight


@dataclass(frozen=True)
class DeclaredTask(Declared):
    """The default task: the symbolic state cost and action cost, and the numbers."""

    state_cost: Expr
    input_costs: tuple[InputCost, ...]  # the action cost, per input
    numbers: Task
    unstated: frozenset[str] = frozenset()  # internal states without an entry in target; they rest where the trim holds
    unstarted: frozenset[str] = frozenset()  # internal states without an entry in start; they start at their target
