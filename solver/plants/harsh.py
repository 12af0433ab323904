"""The harsh plant: the model's robot behind a drive and sensors as small laboratory robots have them.

From the policy to the robot: delay, saturation, backlash, stiction. From the robot to the policy: noise, encoders.
Magnitudes are typical of small laboratory robots, and one number scales each: docs/reference/plants.md.

Stiction and backlash switch at thresholds, so they amplify rounding: the same rollout on another processor, or in a
batch of another size, may part from itself after some tenths of a second. Averages over many rollouts stay
(docs/concepts/portability.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.plants.plant import Motion
from solver.problem.integrator import integrate_period, integrate_step
from solver.problem.problem import Problem

SATURATION = 0.1  # of the input limit that the drive cannot give: a warm motor, a low supply
BREAKAWAY = 0.05  # of the input limit that a joint at rest withstands
COULOMB = 0.7  # of the breakaway input that rubs against a joint in motion
CROSSING = 4e-3  # s that the unloaded drive takes through its play at full input: 0.5 degrees at 1100 rad/s^2
COUNTS_PER_TURN = 2048  # of the encoder of an angle: 512 lines in quadrature
LENGTH_COUNT = 2.5e-5  # m, of the encoder of a length
CUTOFF = 20.0  # Hz, of the filter behind the difference of two counts
NOISE = {"rad": 1e-3, "m": 1e-4, "rad/s": 0.05, "m/s": 0.01}  # standard deviations, white at the control rate
RESTING = 1e-4  # of a rate's limit, below which a joint counts as at rest: float32 does not stop it to zero
LEVELS = 1e-3, 1e3  # multiples of a magnitude
SWEEPS = 10  # of Gauss-Seidel, where several drives stick at once


@dataclass(frozen=True)
class Harshness:
    """How much of every effect, as a multiple of its usual magnitude; 0 is none. Delay in whole control periods."""

    delay: float = 0.0
    saturation: float = 0.0
    backlash: float = 0.0
    stiction: float = 0.0
    encoder: float = 0.0
    noise: float = 0.0


EFFECTS = tuple(field.name for field in fields(Harshness))


def harshness(words: Sequence[str]) -> Harshness:
    """From words such as `delay` or `noise=2x`; every effect once when there are none. SolverError for others."""
    result, named = Harshness(), set[str]()
    stated = [part for each in words for part in each.split(",") if part.strip()]
    if words and not stated:
        raise SolverError(f"'{' '.join(words)}' names no effect; effects are {', '.join(EFFECTS)}")
    for word in stated or EFFECTS:
        name, separator, text = (part.strip() for part in word.partition("="))
        if name in named:
            raise SolverError(f"{name} is named twice in {' '.join(words)}; write it once")
        named.add(name)
        if name not in EFFECTS:
            raise SolverError(f"unknown effect '{name}'.{suggestion(name, EFFECTS)} Effects: {', '.join(EFFECTS)}")
        try:
            level = float(text.removesuffix("x")) if separator else 1.0
        except ValueError:
            level = math.nan
        if level != 0.0 and not LEVELS[0] <= level <= LEVELS[1]:
            raise SolverError(
                f"cannot read '{word}'; write {name}, or {name}=2x for twice its usual magnitude, from "
                f"{LEVELS[0]:g}x to {LEVELS[1]:g}x"
            )
        result = replace(result, **{name: level})
    if result.delay != round(result.delay):
        raise SolverError(f"delay={result.delay:g}x is no whole number of control periods; write delay=2x")
    if result.saturation * SATURATION >= 1.0:
        raise SolverError(
            f"saturation={result.saturation:g}x leaves the drive nothing: it takes {SATURATION:g} of the input "
            f"limit at 1x; write less than {1.0 / SATURATION:g}x"
        )
    return result


class Harsh:
    """The robot at theta (p,) or (N, p) with some effects; without any it is the nominal plant, bit for bit."""

    def __init__(self, problem: Problem, harshness: Harshness, theta: Tensor | None = None, seed: int = 0) -> None:
        self.problem, self.harshness, self.theta, self.seed = problem, harshness, theta, seed
        metadata = problem.robot.metadata
        positions = metadata.coordinates
        self.coordinates = len(positions)
        across = [entry.name for entry in metadata.inputs if entry.coordinate is None]
        if harshness.stiction and across:
            others = " ".join(name for name in EFFECTS if name != "stiction")
            raise SolverError(
                f"input {across[0]} of {problem.robot.name} acts on several coordinates or none, so there is no joint "
                f"for stiction to hold; leave it out, for example --harsh {others}"
            )
        self._require_rates()
        self.driven = [positions.index(entry.coordinate) for entry in metadata.inputs if entry.coordinate is not None]

    def _require_rates(self) -> None:
        """SolverError where an encoder's counts or a joint's friction need a rate that is no entry of the state."""
        states, other = self.problem.robot.metadata.states, self.problem.robot.metadata.quasi_velocity
        for effect in ("encoder", "stiction"):
            if other is not None and getattr(self.harshness, effect):
                raise SolverError(
                    f"{other} of {self.problem.robot.name} is no coordinate's rate, so {effect} cannot be computed; "
                    "name the other effects, for example --harsh delay saturation backlash noise"
                )
        unit = next((state.unit for state in states if state.unit not in NOISE), None)
        if unit is not None and self.harshness.noise:
            raise SolverError(
                f"nothing says how noisy a sensor in {unit} is; name the other effects, for example --harsh delay "
                f"saturation. Noise is known for {', '.join(NOISE)}."
            )

    def begin(self, x: Tensor) -> Motion:
        """Rollouts from x (N, n), with the same noise every time."""
        return _HarshMotion(self, x)


class _HarshMotion:
    def __init__(self, plant: Harsh, x: Tensor) -> None:
        problem = plant.problem
        self.plant, self.problem, self.level, self.x = plant, problem, plant.harshness, x
        self.h = problem.integration_step
        idle = x.new_zeros(len(x), len(problem.input_limits))
        self.waiting = [idle] * round(self.level.delay)  # inputs on their way to the drive, the oldest first
        self.gap = Gap(problem.input_limits, CROSSING * self.level.backlash, idle) if self.level.backlash else None
        self.sensors = Sensors(plant, x) if self.level.encoder or self.level.noise else None
        self.seen = x if self.sensors is None else self.sensors.seen

    def step(self, u: Tensor) -> None:
        """One control period under the policy's input u (N, m)."""
        u = self._reached(u)
        if self.gap is None and not self.level.stiction:
            self.x = integrate_period(self.problem, self.x, u, self.plant.theta)
        else:
            for _ in range(self.problem.substeps):
                pushed = u if self.gap is None else self.gap.passed(u, self.h)
                if self.level.stiction:
                    pushed = pushed + self._friction(pushed)
                self.x = integrate_step(self.problem, self.x, pushed, self.plant.theta)
        self.seen = self.x if self.sensors is None else self.sensors.read(self.x)

    def _reached(self, u: Tensor) -> Tensor:
        """What the drive does of the policy's inputs: late, and not all of it."""
        self.waiting.append(u)
        u = self.waiting.pop(0)
        if self.level.saturation:
            most = self.problem.input_limits * (1.0 - SATURATION * self.level.saturation)
            u = torch.clamp(u, -most, most)
        return u

    def _friction(self, u: Tensor) -> Tensor:
        """Dry friction of the driven joints, in units of the input (N, m), under the pushes u (N, m).

        It is what would bring each joint to rest within the substep, or as much of that as the joint can: the
        breakaway input at rest, the Coulomb input in motion or once it has broken away. Joints that rub on one another
        are solved for by Gauss-Seidel.
        """
        rows = [self.plant.coordinates + i for i in self.plant.driven]
        a, control_matrix = self.problem.robot.affine_dynamics(self.x, self.plant.theta)
        rate, gain = self.x[:, rows], control_matrix[:, rows]  # (N, m), (N, m, m)
        wanted = rate / self.h + a[:, rows] + torch.einsum("nij,nj->ni", gain, u)
        breakaway = self.problem.input_limits * BREAKAWAY * self.level.stiction
        resting = rate.abs() < RESTING * self.problem.state_limits[rows]
        friction = torch.zeros_like(u)
        for _ in range(SWEEPS if len(rows) > 1 else 1):
            for k in range(len(rows)):
                own = gain[:, k, k]
                rest = wanted[:, k] + (gain[:, k] * friction).sum(1) - own * friction[:, k]
                needed = torch.where(own == 0.0, 0.0, -rest / own)
                holds = resting[:, k] & (needed.abs() <= breakaway[k])
                friction[:, k] = torch.where(
                    holds, needed, needed.clamp(-COULOMB * breakaway[k], COULOMB * breakaway[k])
                )
        return friction


class Gap:
    """The play between each drive and its joint, across which nothing pushes.

    In the play the drive has only its own inertia and is accelerated by the input: it crosses from one side to the
    other in `crossing` seconds at full input. It meets either side without bouncing. Starts in the middle.
    """

    def __init__(self, limits: Tensor, crossing: float, idle: Tensor) -> None:
        self.acceleration = 2.0 / (crossing**2 * limits)  # widths of the gap per s^2 and unit of the input
        self.place = idle + 0.5  # (N, m) 0 at the negative side, 1 at the positive
        self.speed = idle  # widths per s

    def passed(self, u: Tensor, h: float) -> Tensor:
        """What reaches the joints (N, m) of the input u (N, m), held for h seconds, on average over them."""
        side = torch.where(u < 0.0, -1.0, 1.0)
        a = (self.acceleration * u).abs()
        left = torch.where(u < 0.0, self.place, 1.0 - self.place)  # to the side that the input pushes to
        speed = side * self.speed
        root = torch.sqrt(speed**2 + 2.0 * a * left)
        arrival = torch.where(speed < 0.0, (root - speed) / a, 2.0 * left / (root + speed))  # left = speed t + a t^2/2
        arrival = torch.where(left == 0.0, torch.where(speed < 0.0, arrival, 0.0), arrival)
        arrives = arrival < h  # not where both are zero: nothing moves, nothing pushes
        left = torch.where(arrives, 0.0, left - (speed + 0.5 * a * h) * h)
        speed = torch.where(arrives | (left >= 1.0) | (left <= 0.0), 0.0, speed + a * h)
        left = left.clamp(0.0, 1.0)
        self.place = torch.where(u < 0.0, left, 1.0 - left)
        self.speed = side * speed
        return torch.where(arrives, u * (1.0 - arrival / h), 0.0)


class Sensors:
    """Noise and encoders. With encoders the rates are filtered differences of the counts, else they are measured.

    The filter begins settled, at the true rates.
    """

    def __init__(self, plant: Harsh, x: Tensor) -> None:
        states = plant.problem.robot.metadata.states
        self.plant, self.period = plant, plant.problem.control_step
        self.coordinates, self.continuous = plant.coordinates, plant.problem.continuous
        self.generator = torch.Generator(device=x.device).manual_seed(plant.seed)
        self.deviation = x.new_tensor([NOISE.get(state.unit, 0.0) for state in states]) * plant.harshness.noise
        self.count: Tensor | None = None
        if level := plant.harshness.encoder:
            turn = 2.0 * math.pi / max(1, round(COUNTS_PER_TURN / level))  # so that the counts close a turn
            units = [state.unit for state in states[: self.coordinates]]
            self.count = x.new_tensor([turn if unit == "rad" else LENGTH_COUNT * level for unit in units])
        self.kept = math.exp(-2.0 * math.pi * CUTOFF * self.period)
        self.places, self.rates = self._measure(x)
        if self.count is not None:
            self.rates = x[:, self.coordinates :]

    def read(self, x: Tensor) -> Tensor:
        """What the policy is shown of the true states x (N, n), one control period after the last reading."""
        places, rates = self._measure(x)
        if self.count is not None:
            moved = self._wrapped(places - self.places) / self.period
            rates = self.kept * self.rates + (1.0 - self.kept) * moved
        self.places, self.rates = places, rates
        return self.seen

    @property
    def seen(self) -> Tensor:
        """The last reading (N, n)."""
        return torch.cat([self.places, self.rates], 1)

    def _measure(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Positions and rates (N, n/2) with noise, the positions in whole counts."""
        if self.plant.harshness.noise:
            x = x + self.deviation * torch.randn(x.shape, generator=self.generator, device=x.device)
        places, rates = x[:, : self.coordinates], x[:, self.coordinates :]
        if self.count is not None:
            places = torch.round(places / self.count) * self.count
        return self._wrapped(places), rates

    def _wrapped(self, places: Tensor) -> Tensor:
        """A copy of the positions with continuous angles in [-pi, pi)."""
        places = places.clone()
        for i in self.continuous:
            places[:, i] = torch.remainder(places[:, i] + math.pi, 2.0 * math.pi) - math.pi
        return places
