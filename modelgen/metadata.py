"""The description of a robot in an artifact: names, units, limits, parameters and the default task.

Frozen dataclasses of built-in types, written to `manifest.json` and read from it; neither SymPy nor Torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RATE = "_rate"  # ends the name of a coordinate's rate, and of no other speed
TIME = "time"  # the first column of a recording, and the name of nothing else


@dataclass(frozen=True)
class State:
    """One entry of the state x = (q, v)."""

    name: str
    kind: Literal["position", "velocity"]
    unit: str
    limit: float  # |x_i| <= limit bounds the compact state domain
    continuous: bool  # an angle that wraps; its limit is pi
    meaning: str


@dataclass(frozen=True)
class Input:
    """One entry of the input u; the policy keeps |u_i| <= limit."""

    name: str
    unit: str
    limit: float
    meaning: str
    coordinate: str | None  # the one along which it acts, as a motor in a joint does; None: it acts along several


@dataclass(frozen=True)
class Parameter:
    """One entry of theta, a physical parameter the model adversary may change within its bounds."""

    name: str
    value: float
    unit: str
    lower: float
    upper: float
    meaning: str


@dataclass(frozen=True)
class ActionCost:
    """The action cost g(u) by name, with one weight per input; what it computes is a kernel of the artifact."""

    name: str
    weights: tuple[float, ...]  # (m,)


@dataclass(frozen=True)
class Task:
    """The default task; the state cost itself is a kernel of the artifact."""

    target: tuple[float, ...]  # (n,) the state at which the state cost is zero
    start_mean: tuple[float, ...]  # (n,)
    start_deviation: tuple[float, ...]  # (n,) standard deviations of the Gaussian start distribution
    action_cost: ActionCost
    horizon: float  # s
    weight_at_horizon: float  # the discount factor left at the horizon; rho = -ln(weight)/horizon
    control_rate: int  # Hz, how often the policy is evaluated; the input is held in between
    simulation_rate: int  # Hz, of the explicit Euler steps of the plant `euler`; a multiple of control_rate
    integration_steps: int = 1  # Runge-Kutta steps in a control period, chosen when the artifact is built
    free: tuple[str, ...] = ()  # states whose final value does not matter


@dataclass(frozen=True)
class Metadata:
    """All that a solver needs to know of a robot besides its kernels."""

    name: str
    description: str
    states: tuple[State, ...]
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    task: Task

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of q, the first entries of the state; as many velocities follow."""
        return tuple(state.name for state in self.states if state.kind == "position")

    @property
    def quasi_velocity(self) -> str | None:
        """The name of the first velocity that is not the rate of a coordinate; None where v = dq/dt."""
        count = len(self.coordinates)
        pairs = zip(self.coordinates, self.states[count:], strict=True)
        return next((speed.name for name, speed in pairs if speed.name != f"{name}{RATE}"), None)
