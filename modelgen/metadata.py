"""The description of a robot in an artifact: names, units, limits, parameters and the default task.

Frozen dataclasses of built-in types, written to `manifest.json` and read from it. Needs neither SymPy nor Torch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

RATE = "_rate"  # ending of the name of a coordinate's rate; no other speed may end so
TIME = "time"  # name of the first column of a recording; nothing else may be named so


@dataclass(frozen=True)
class State:
    """One entry of the state x = (q, v)."""

    name: str
    kind: Literal["position", "velocity"]
    unit: str
    limit: float  # |x_i| <= limit bounds the compact state domain
    continuous: bool  # an angle that wraps around; its limit is pi
    meaning: str


@dataclass(frozen=True)
class Input:
    """One entry of the input u. The policy keeps |u_i - middle| <= limit."""

    name: str
    unit: str
    limit: float  # half of the range
    meaning: str
    coordinate: str | None  # the coordinate along which it acts, such as a motor's joint; None: several
    middle: float = 0.0  # of the range
    trim: float = 0.0  # u0, the input that holds the target at nominal parameters; its action cost is zero

    @property
    def lower(self) -> float:
        """The lower limit."""
        return self.middle - self.limit

    @property
    def upper(self) -> float:
        """The upper limit."""
        return self.middle + self.limit

    @property
    def range(self) -> str:
        """Both limits as text."""
        return f"{self.lower:g} to {self.upper:g}"


@dataclass(frozen=True)
class Parameter:
    """One entry of theta: a physical parameter that the model adversary may change within its bounds."""

    name: str
    value: float
    unit: str
    lower: float
    upper: float
    meaning: str


@dataclass(frozen=True)
class NamedActionCost:
    """The name of the action cost g(u), and one weight per input. A kernel of the artifact computes the cost."""

    name: str
    weights: tuple[float, ...]  # (m,)


@dataclass(frozen=True)
class Task:
    """The default task. A kernel of the artifact computes the state cost."""

    target: tuple[float, ...]  # (n,) the state at which the state cost is zero
    start_mean: tuple[float, ...]  # (n,)
    start_deviation: tuple[float, ...]  # (n,) standard deviations of the Gaussian start distribution
    action_cost: NamedActionCost
    horizon: float  # s
    weight_at_horizon: float  # the discount factor left at the horizon; rho = -ln(weight)/horizon
    control_rate: int  # Hz, how often the policy is evaluated; the input is held in between
    simulation_rate: int  # Hz, of the explicit Euler steps of the plant `euler`; a multiple of control_rate
    integration_steps: int = 1  # Runge-Kutta steps in a control period, chosen when the artifact is built
    free: tuple[str, ...] = ()  # states whose final value does not matter


@dataclass(frozen=True)
class Metadata:
    """Everything that a solver needs to know about a robot besides its kernels."""

    name: str
    description: str
    states: tuple[State, ...]
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    task: Task

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of q, the first entries of the state. The velocities follow, one per coordinate."""
        return tuple(state.name for state in self.states if state.kind == "position")

    @property
    def quasi_velocity(self) -> str | None:
        """The name of the first velocity that is not the rate of a coordinate; None if v = dq/dt."""
        count = len(self.coordinates)
        pairs = zip(self.coordinates, self.states[count:], strict=True)
        return next((speed.name for name, speed in pairs if speed.name != f"{name}{RATE}"), None)

    def content(self) -> dict[str, Any]:
        """The description as built-in types, without a middle or trim that is zero: the source of hashes and files."""
        content = asdict(self)
        for entry in content["inputs"]:
            for name in ("middle", "trim"):
                if entry[name] == 0.0:
                    del entry[name]
        return content
