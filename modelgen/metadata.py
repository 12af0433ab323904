"""The description of a robot in an artifact: names, units, limits, parameters and the default task.

Frozen dataclasses of built-in types, written to `manifest.json` and read from it. Needs neither SymPy nor Torch.

The tangent space of a robot's states: small errors, with three numbers for every rotation.

A quaternion q near q* has the error e = 2 sign(w) (x, y, z) of conj(q*) q = (w, x, y, z), which has the length
2 sin(angle / 2) and is the rotation vector for small angles. Its rate is the angular velocity at q*. Other states have
the error x - x*. Without rotations, the tangent space is the space of the states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from modelgen.arrays import MOST_STEPS, SHARES, Array, on_sphere, sufficient_steps

RATE = "_rate"  # ending of the name of a coordinate's rate; no other speed may end so
SAMPLES, CORNERS = 512, 2048  # states at which integration steps are compared, for one robot and for several
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
    def rolls(self) -> bool:
        """Whether there are fewer speeds than ways in which the pose differs, because wheels roll without slip."""
        return self.nv - len(self.ignored) < self.pose

    @property
    def uneven(self) -> bool:
        """Whether it rolls or ignores coordinates: its speeds are not one for each way in which the pose differs."""
        return self.rolls or bool(self.ignored)

    @property
    def held(self) -> list[int]:
        """The entries of x whose rates a trim makes zero at the target: speeds that the task does not declare free."""
        first = len(self.coordinates)
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
        """The index in x of the rate of the coordinate with this index, or of the first velocity if it has none."""
        rate = self.rate(self.states[coordinate].name)
        return self.nq if rate is None else rate

    @property
    def turning(self) -> frozenset[int]:
        """Indices in x of the entries of quaternions: they have no limit, and no error of their own."""
        return frozenset(i for rotation in self.rotations for i in range(rotation.coordinate, rotation.coordinate + 4))

    def resolving_steps(
        self, dynamics: Callable[[Array, Array], Array], share: float = 1.0, samples: int = SAMPLES
    ) -> tuple[int, int, Callable[[Array], Array], Array]:
        """`sufficient_steps` of a control period at random states of the whole domain with every input at a limit.

        dynamics: from x (N, n) and u (N, m) to xdot (N, n). share: of the way from the trim to the limits that inputs
        go. Also returns the rates at these inputs as a function, and the states (N, n).
        """
        random, limits = np.random.default_rng(0), np.array([state.limit for state in self.states])
        x = random.uniform(-1.0, 1.0, (samples, len(limits))) * limits
        on_sphere(x, [rotation.quaternion for rotation in self.rotations])
        inputs = [[entry.middle, entry.limit, entry.trim] for entry in self.inputs]
        middle, reach, trim = np.array(inputs).reshape(-1, 3).T
        u = middle + random.choice([-1.0, 1.0], (samples, len(reach))) * reach
        u = trim + share * (u - trim)

        def rates(at: Array) -> Array:
            return dynamics(at, u)

        return *sufficient_steps(rates, x, 1.0 / self.task.control_rate, limits), rates, x

    def least_steps(self, dynamics: Callable[[Array, Array], Array], samples: int = SAMPLES) -> tuple[int, int]:
        """The number of `resolving_steps` with the largest of SHARES of the inputs for which MOST_STEPS are enough,
        or 0 if there is none; and the index of the worst state."""
        steps, worst = 0, 0
        for share in SHARES:
            steps, worst, *_ = self.resolving_steps(dynamics, share, samples)
            if steps:
                break
        return steps, worst

    def robust_steps(self, dynamics: Callable[[Array, Array, Array], Array]) -> int:
        """Integration steps in a control period that suffice at CORNERS random corners of the parameters' bounds.

        MOST_STEPS where no number does; a motion that then diverges is reported by whoever integrates it.
        dynamics: from x (N, n), u (N, m) and theta (N, p) to xdot (N, n).
        """
        sides = np.random.default_rng(0).choice([0, 1], (CORNERS, len(self.parameters)))
        lower, upper = np.array([[entry.lower, entry.upper] for entry in self.parameters]).reshape(-1, 2).T
        theta = np.where(sides, upper, lower)
        steps, _ = self.least_steps(lambda x, u: dynamics(x, u, theta), CORNERS)
        return max(steps or MOST_STEPS, self.task.integration_steps)

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


AXES = "xyz"


@dataclass(frozen=True)
class Tangent:
    """Errors e (nt,) of the states x (n,) of one robot, in the order of the states."""

    metadata: Metadata

    @cached_property
    def plain(self) -> tuple[list[int], list[int]]:
        """Indices in x, and in e, of the states that are no entry of a quaternion."""
        inside = self.metadata.turning
        states = [i for i in range(len(self.metadata.states)) if i not in inside]
        return states, [i - sum(rotation.coordinate < i for rotation in self.metadata.rotations) for i in states]

    @cached_property
    def rotations(self) -> list[tuple[Rotation, slice]]:
        """Every rotation with its three entries of e."""
        pairs = enumerate(self.metadata.rotations)
        return [(rotation, slice(rotation.coordinate - k, rotation.coordinate - k + 3)) for k, rotation in pairs]

    @property
    def size(self) -> int:
        """The number nt."""
        return len(self.metadata.states) - len(self.metadata.rotations)

    @cached_property
    def entries(self) -> list[tuple[str, str, float]]:
        """Name, unit and limit of every entry of e."""
        states = self.metadata.states
        result = [(states[i].name, states[i].unit, states[i].limit) for i in self.states]
        for rotation, places in self.rotations:
            reach = 2.0 * math.sin(rotation.limit / 2.0)
            result[places] = [(f"{rotation.name}_turn_{axis}", "rad", reach) for axis in AXES]
        return result

    @property
    def names(self) -> list[str]:
        """Names (nt,)."""
        return [name for name, _, _ in self.entries]

    @property
    def free(self) -> set[str]:
        """Names of the entries that the task leaves free."""
        task, states = self.metadata.task, self.metadata.states
        return {name for name, i in zip(self.names, self.states, strict=True) if states[i].name in task.free}

    @cached_property
    def states(self) -> list[int]:
        """Index in x of the state of every entry of e; of a quaternion's w for its turns."""
        result = [0] * self.size
        for state, place in zip(*self.plain, strict=True):
            result[place] = state
        for rotation, places in self.rotations:
            result[places] = [rotation.coordinate] * 3
        return result

    @property
    def limits(self) -> Array:
        """Limits (nt,): those of the states, and 2 sin(limit / 2) of a rotation."""
        return np.array([limit for _, _, limit in self.entries])

    def basis(self, x: Array) -> Array:
        """dx/de (..., n, nt) at x (..., n)."""
        result = np.zeros((*x.shape, self.size))
        states, errors = self.plain
        result[..., states, errors] = 1.0
        for rotation, places in self.rotations:
            result[..., rotation.quaternion, places] = kinematics(x[..., rotation.quaternion]) / 2.0
        return result

    def projection(self, x: Array) -> Array:
        """de/dx (..., nt, n) at x (..., n), the left inverse of `basis`."""
        result = self.basis(x).swapaxes(-1, -2)
        for rotation, places in self.rotations:
            result[..., places, rotation.quaternion] *= 4.0
        return result

    def moved(self, x: Array, e: Array) -> Array:
        """States (..., n) at the errors e (..., nt) from x (..., n). A rotation is moved by half a turn at most."""
        states, places = self.plain
        result = x.copy()
        result[..., states] += e[..., places]
        for rotation, turn in self.rotations:
            half = e[..., turn] / 2.0
            half = half / np.maximum(1.0, np.linalg.norm(half, axis=-1, keepdims=True))
            w = np.sqrt(np.maximum(0.0, 1.0 - (half**2).sum(axis=-1, keepdims=True)))
            q = x[..., rotation.quaternion]
            result[..., rotation.quaternion] = w * q + (kinematics(q) @ half[..., None])[..., 0]
        return result


def kinematics(q: Array) -> Array:
    """K (..., 4, 3) of quaternions (..., 4): K h is the product of q with the pure quaternion of h."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def turn_between(p: Array, q: Array) -> tuple[Array, Array]:
    """Errors e = 2 sign(w) v (..., 3) of rotations q (..., 4) from p (..., 4), where (w, v) is conj(p) q; and de by a
    small turn of q (..., 3, 3)."""
    w, v = (p * q).sum(axis=-1), (kinematics(p).swapaxes(-1, -2) @ q[..., None])[..., 0]
    sign = np.where(w < 0.0, -1.0, 1.0)[..., None]
    x, y, z = np.moveaxis(v, -1, 0)
    rows = ((w, -z, y), (z, w, -x), (-y, x, w))
    slopes = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return 2.0 * sign * v, sign[..., None] * slopes
