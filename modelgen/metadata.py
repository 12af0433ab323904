"""The description of a robot in an artifact: names, units, limits, parameters and the default task.

Frozen dataclasses of built-in types, written to `manifest.json` and read from it. Needs neither SymPy nor Torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

RATE = "_rate"  # ending of the name of a coordinate's rate; no other speed may end so
TIME = "time"  # name of the first column of a recording; nothing else may be named so


@dataclass(frozen=True)
class State:
    """One entry of the state x = (q, v, z): nq coordinates, nv speeds, nz states of first order."""

    name: str
    kind: Literal["position", "velocity", "internal"]
    unit: str
    limit: float  # |x_i| <= limit bounds the compact state domain
    continuous: bool  # an angle that wraps around; its limit is pi
    meaning: str


@dataclass(frozen=True)
class Rotation:
    """A unit quaternion (w, x, y, z) among the coordinates, with its angular velocity in the frame of what it turns.

    It maps that frame to the frame before it. q and -q are the same rotation.
    """

    name: str
    coordinate: int  # index in x of w; x, y, z follow
    speed: int  # index in x of the first of the three components of the angular velocity (rad/s)
    limit: float  # rad, largest angle between a rotation of the domain and the target; pi: all rotations

    @property
    def quaternion(self) -> slice:
        """The four entries of x that hold the quaternion."""
        return slice(self.coordinate, self.coordinate + 4)

    @property
    def speeds(self) -> slice:
        """The three entries of x that hold the angular velocity."""
        return slice(self.speed, self.speed + 3)


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
class Reference:
    """An entry of theta by its name, with which target and starts move linearly: a set-point, or a parameter."""

    name: str
    target: tuple[float, ...]  # (n,) change of the target for each unit of the entry
    start: tuple[float, ...]  # (n,) change of the mean start likewise


@dataclass(frozen=True)
class NamedActionCost:
    """The name of the action cost g(u), and one weight per input. A kernel of the artifact computes the cost."""

    name: str
    weights: tuple[float, ...]  # (m,)


@dataclass(frozen=True)
class Task:
    """The default task. A kernel of the artifact computes the state cost."""

    target: tuple[float, ...]  # (n,) the state at which the state cost is zero, with nominal references
    start_mean: tuple[float, ...]  # (n,)
    start_deviation: tuple[float, ...]  # (n,) standard deviations of the Gaussian start distribution
    action_cost: NamedActionCost
    horizon: float  # s
    weight_at_horizon: float  # the discount factor left at the horizon; rho = -ln(weight)/horizon
    control_rate: int  # Hz, how often the policy is evaluated; the input is held in between
    simulation_rate: int  # Hz, of the explicit Euler steps of the plant `euler`; a multiple of control_rate
    integration_steps: int = 1  # Runge-Kutta steps in a control period, chosen when the artifact is built
    free: tuple[str, ...] = ()  # states whose final value does not matter
    references: tuple[Reference, ...] = ()  # set-points, in the order of theta
    #: Parameters with which states of first order that hold the target change linearly, such as a motor's current.
    followed: tuple[Reference, ...] = ()

    def moved(self, changes: Mapping[str, float]) -> Task:
        """The task in which references and followed parameters changed by these values. Others count for nothing."""
        target, start = list(self.target), list(self.start_mean)
        for reference in (*self.references, *self.followed):
            change = changes.get(reference.name, 0.0)
            for i, (along, begins) in enumerate(zip(reference.target, reference.start, strict=True)):
                target[i] += change * along
                start[i] += change * begins
        return replace(self, target=tuple(target), start_mean=tuple(start))


@dataclass(frozen=True)
class Metadata:
    """Everything that a solver needs to know about a robot besides its kernels."""

    name: str
    description: str
    states: tuple[State, ...]
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    task: Task
    rotations: tuple[Rotation, ...] = ()  # coordinates that are unit quaternions, in the order of x

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the parameters that are references: set-points, which change target and cost and no motion."""
        return tuple(reference.name for reference in self.task.references)

    def with_nominal(self, values: Sequence[float]) -> Metadata:
        """The same robot with other nominal parameters (p,). References among them move target and starts."""
        pairs = list(zip(self.parameters, map(float, values), strict=True))
        task = self.task.moved({entry.name: value - entry.value for entry, value in pairs})
        return replace(self, parameters=tuple(replace(entry, value=value) for entry, value in pairs), task=task)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of q, the first entries of the state."""
        return self._names("position")

    @property
    def speeds(self) -> tuple[str, ...]:
        """Names of v, which follow q. qdot = G(q) v, with one entry for each degree of freedom."""
        return self._names("velocity")

    @property
    def internal(self) -> tuple[str, ...]:
        """Names of z, the states of first order, which follow v."""
        return self._names("internal")

    def _names(self, kind: str) -> tuple[str, ...]:
        return tuple(state.name for state in self.states if state.kind == kind)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of speeds."""
        return len(self.speeds)

    @property
    def pose(self) -> int:
        """Number of independent errors of the coordinates: three for every rotation. More than nv where wheels roll."""
        return self.nq - len(self.rotations)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of the coordinates that the state leaves out. Their rates follow the rates of all others in v."""
        turning = {i for rotation in self.rotations for i in range(rotation.speeds.start, rotation.speeds.stop)}
        rates = [state.name for i, state in enumerate(self.states) if state.kind == "velocity" and i not in turning]
        return tuple(
            name
            for name in (rate.removesuffix(RATE) for rate in rates if rate.endswith(RATE))
            if name not in self.coordinates
        )

    @property
    def kinematic(self) -> bool:
        """Whether inputs command velocities: no speed is a state."""
        return not self.nv

    @property
    def rolls(self) -> bool:
        """Whether there are fewer speeds than ways in which the pose differs, because wheels roll without slip."""
        return self.nv - len(self.ignored) < self.pose

    @property
    def uneven(self) -> bool:
        """Whether it rolls or ignores coordinates: its speeds are not one for each way in which the pose differs."""
        return self.rolls or bool(self.ignored)

    @property
    def held(self) -> list[int]:
        """The entries of x whose rates a trim makes zero at the target, unless the task declares them free.

        Speeds and states of first order; the coordinates too, where there is no speed (`kinematic`).
        """
        first = 0 if self.kinematic else self.nq
        return [i for i, state in enumerate(self.states[first:], first) if state.name not in self.task.free]

    @property
    def velocities(self) -> slice:
        """The entries of x that hold v."""
        return slice(self.nq, self.nq + self.nv)

    @property
    def unrated(self) -> str | None:
        """The name of the first coordinate, but for rotations, whose rate is no entry of the state; None without."""
        plain = (name for i, name in enumerate(self.coordinates) if i not in self.turning)
        return next((name for name in plain if self.rate(name) is None), None)

    def rate(self, coordinate: str) -> int | None:
        """The index in x of the rate of a coordinate; None if it is not an entry of the state."""
        names = [state.name for state in self.states]
        name = f"{coordinate}{RATE}"
        return names.index(name) if name in self.speeds else None

    def partner(self, coordinate: int) -> int:
        """The index in x of the rate of the coordinate with this index, or of the first velocity if it has none.

        Of a kinematic robot, the index of the next state.
        """
        rate = self.rate(self.states[coordinate].name)
        other = (coordinate + 1) % len(self.states) if self.kinematic else self.nq
        return other if rate is None else rate

    @property
    def turning(self) -> frozenset[int]:
        """Indices in x of the entries of quaternions: they have no limit, and no error of their own."""
        return frozenset(i for rotation in self.rotations for i in range(rotation.coordinate, rotation.coordinate + 4))

    def content(self) -> dict[str, Any]:
        """The description as built-in types, the source of hashes and files.

        A middle or trim that is zero and empty lists of rotations and references are left out.
        """
        content = asdict(self)
        for entry in content["inputs"]:
            for name in ("middle", "trim"):
                if entry[name] == 0.0:
                    del entry[name]
        if not self.rotations:
            del content["rotations"]
        for name in ("references", "followed"):
            if not getattr(self.task, name):
                del content["task"][name]
        return content
