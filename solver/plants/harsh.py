"""Harsh plant: the robot of the model with the drives and sensors of a small laboratory robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import torch
from torch import Tensor

from modelgen.commandline import decimal
from modelgen.errors import suggestion
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.observer import Sensing, make_sensing, usual_counts
from solver.plants.plant import Seeds, Simulation
from solver.problem import Problem
from solver.problem.integrator import integrate_period, steps_for

CROSSING = 4e-3  # s, time of the unloaded drive across its gap at full input: 0.5 degrees at 1100 rad/s^2
BREAKAWAY = 0.05  # of the input limit: input below which a joint stays at rest
COULOMB = 0.7  # of the breakaway input: friction of a joint in motion
RESTING = 1e-4  # of a rate's limit: a joint below it counts as at rest, because float32 does not reach zero
SWEEPS = 10  # of Gauss-Seidel if there are several drives


class Backlash:
    """Gap between each drive and its joint. Inside the gap the drive exerts no force on the joint.

    There the input accelerates only the drive's own inertia. At full input the drive crosses the gap in `crossing`
    seconds. It does not bounce. It starts in the middle.

    limits: (m,) of the inputs. idle: zeros (N, m).
    """

    def __init__(self, limits: Tensor, crossing: float, idle: Tensor) -> None:
        self.acceleration = 2.0 / (crossing**2 * limits)  # widths of the gap per s^2 and unit of the input
        self.place = idle + 0.5  # (N, m) position in the gap: 0 at the negative side, 1 at the positive
        self.speed = idle  # widths per s

    def transmitted(self, u: Tensor, h: float) -> Tensor:
        """Input (N, m) that reaches the joints, averaged over h seconds in which the drive's input u (N, m) is held."""
        side = torch.where(u < 0.0, -1.0, 1.0)
        a = (self.acceleration * u).abs()
        left = torch.where(u < 0.0, self.place, 1.0 - self.place)  # distance to the side to which the input pushes
        speed = side * self.speed
        root = torch.sqrt(speed**2 + 2.0 * a * left)
        arrival = torch.where(speed < 0.0, (root - speed) / a, 2.0 * left / (root + speed))  # left = speed t + a t^2/2
        arrival = torch.where(left == 0.0, torch.where(speed < 0.0, arrival, 0.0), arrival)
        arrives = arrival < h  # False if speed and input are zero within the gap
        left = torch.where(arrives, 0.0, left - (speed + 0.5 * a * h) * h)
        speed = torch.where(arrives | (left >= 1.0) | (left <= 0.0), 0.0, speed + a * h)
        left = left.clamp(0.0, 1.0)
        self.place = torch.where(u < 0.0, left, 1.0 - left)
        self.speed = side * speed
        return torch.where(arrives, u * (1.0 - arrival / h), 0.0)


def dry_friction(
    problem: Problem, rows: list[int], level: float, x: Tensor, u: Tensor, theta: Tensor | None, seconds: float
) -> Tensor:
    """Friction (N, m), in units of the input, at the states x (N, n) and the inputs u (N, m).

    rows: index of the rate of each driven joint in the state. level: factor of the usual magnitude.
    theta: parameters (p,) or (N, p). seconds: length of the integration step.

    The friction brings each joint to rest within the integration step. It is limited to the breakaway input for a joint
    at rest, and to the Coulomb input for a joint in motion. Gauss-Seidel iterations solve for coupled joints.
    """
    a, control_matrix = problem.robot.affine_dynamics(x, theta)
    rate, gain = x[:, rows], control_matrix[:, rows]  # (N, m), (N, m, m)
    unbraked = rate / seconds + a[:, rows] + torch.einsum("nij,nj->ni", gain, u)
    breakaway = problem.input_limits * BREAKAWAY * level
    resting = rate.abs() < RESTING * problem.state_limits[rows]
    friction = torch.zeros_like(u)
    for _ in range(SWEEPS if len(rows) > 1 else 1):
        for k in range(len(rows)):
            own = gain[:, k, k]
            rest = unbraked[:, k] + (gain[:, k] * friction).sum(1) - own * friction[:, k]
            needed = torch.where(own == 0.0, 0.0, -rest / own)
            sticks = resting[:, k] & (needed.abs() <= breakaway[k])
            friction[:, k] = torch.where(sticks, needed, needed.clamp(-COULOMB * breakaway[k], COULOMB * breakaway[k]))
    return friction


CUTOFF = 20.0  # Hz, of the low-pass filter of the difference of two counts
NOISE = {"rad": 1e-3, "m": 1e-4, "rad/s": 0.05, "m/s": 0.01}  # standard deviations of white noise at the control rate


def sensing_of(problem: Problem, encoder: float, noise: float, delay: int) -> Sensing:
    """Sensing for an observer. encoder, noise: factors of the usual magnitudes. delay: in control periods.

    Rates are measured only if there is noise and no encoder. Exact rates are left out, because they follow from exact
    positions.
    """
    counts = usual_counts(problem, encoder) if encoder else None
    deviation, count = noise_of(problem, noise), problem.robot.metadata.pose
    rates = deviation[count:] if noise and not encoder else None
    return make_sensing(problem, counts, deviation[:count], delay, rates)


def noise_of(problem: Problem, level: float) -> Tensor:
    """Standard deviations (nt,) of the noise of the states, zero for states of first order. level: factor of NOISE."""
    moving = problem.robot.metadata.pose + problem.robot.metadata.nv
    units = [unit if place < moving else "" for place, (_, unit, _) in enumerate(problem.tangent.entries)]
    return level * problem.target.new_tensor([NOISE.get(unit, 0.0) for unit in units])


class Sensors:
    """Sensors of N rollouts. With encoders, rates are filtered differences of the counts; otherwise they are measured.
    States of first order, such as a current, are measured without error, and rates of ignored coordinates with noise.

    encoder, noise: factors of the usual magnitudes. seed: one, or one for each of the N rollouts.
    x: (N, n) true states at the start. The filter starts at the true rates.
    """

    def __init__(self, problem: Problem, encoder: float, noise: float, seed: Seeds, x: Tensor) -> None:
        self.noise, self.period, self.problem, self.geometry = noise, problem.control_step, problem, problem.geometry
        self.coordinates, self.continuous = problem.robot.metadata.nq, problem.continuous
        seeds = [seed] if isinstance(seed, int) else seed
        self.generators = [torch.Generator(device=x.device).manual_seed(number) for number in seeds]
        self.deviation = noise_of(problem, noise)
        self.count = usual_counts(problem, encoder) if encoder else None
        self.kept = math.exp(-2.0 * math.pi * CUTOFF * self.period)
        self.positions, self.rates = self._measure(x)
        if self.count is not None:
            self.rates = x[:, self.coordinates :]

    def read(self, x: Tensor) -> Tensor:
        """Measured states (N, n) at the true states x (N, n), one control period after the last reading."""
        positions, rates = self._measure(x)
        if self.count is not None and not self.problem.robot.metadata.kinematic:
            moved = self.problem.difference(positions, self.measured) / self.period
            size = moved.shape[1]
            filtered = self.kept * self.rates[:, :size] + (1.0 - self.kept) * moved
            rates = torch.cat([filtered, rates[:, size:]], 1)
        self.positions, self.rates = positions, rates
        return self.measured

    @property
    def measured(self) -> Tensor:
        """Last reading (N, n)."""
        return torch.cat([self.positions, self.rates], 1)

    def _measure(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Positions (N, q) and rates (N, n - q) with noise. Positions are rounded to whole counts.

        Of a rotation, the three entries of its rotation vector are rounded.
        """
        if self.noise:
            shape = len(x) // len(self.generators), self.geometry.size
            white = [torch.randn(shape, generator=generator, device=x.device) for generator in self.generators]
            x = self.geometry.spread(x, self.deviation * torch.cat(white))
        positions, rates = x[:, : self.coordinates], x[:, self.coordinates :]
        if self.count is not None:
            positions = self.geometry.rounded(x, self.count)[:, : self.coordinates]
        return self._wrapped(positions), rates

    def _wrapped(self, positions: Tensor) -> Tensor:
        """Copy of the positions with continuous angles in [-pi, pi)."""
        positions = positions.clone()
        for i in self.continuous:
            positions[:, i] = torch.remainder(positions[:, i] + math.pi, 2.0 * math.pi) - math.pi
        return positions


SATURATION = 0.1  # of the input limit: reduction of the drive's input by a warm motor or a low supply
LEVELS = 1e-3, 1e3  # range of the factors of a magnitude


@dataclass(frozen=True)
class Harshness:
    """Factor of the usual magnitude of every effect; 0 switches it off. The usual delay is one control period."""

    delay: float = 0.0
    saturation: float = 0.0
    backlash: float = 0.0
    stiction: float = 0.0
    encoder: float = 0.0
    noise: float = 0.0


EFFECTS = tuple(field.name for field in fields(Harshness))


def harshness(words: Sequence[str]) -> Harshness:
    """Effects from words such as `delay` or `noise=2x`. Without words, every effect has its usual magnitude.

    Raises SolverError for an unknown effect and for a factor out of range.
    """
    chosen = [part for word in words for part in word.split(",") if part.strip()]
    if words and not chosen:
        raise SolverError(f"'{' '.join(words)}' names no effect; effects are {', '.join(EFFECTS)}")
    result, named = Harshness(), set[str]()
    for word in chosen or EFFECTS:
        name, level = _effect(word)
        if name in named:
            raise SolverError(f"{name} is named twice in {' '.join(words)}; write it once")
        named.add(name)
        result = replace(result, **{name: level})
    if result.delay != round(result.delay):
        raise SolverError(f"delay={result.delay:g}x is not an integer number of control periods; write delay=2x")
    if result.saturation * SATURATION >= 1.0:
        raise SolverError(
            f"saturation={result.saturation:g}x leaves no input, because 1x reduces the input limit by "
            f"{SATURATION:.0%}; write less than {1.0 / SATURATION:g}x"
        )
    return result


def _effect(word: str) -> tuple[str, float]:
    """Name and factor in a word such as `noise=2x`."""
    name, separator, text = (part.strip() for part in word.partition("="))
    if name not in EFFECTS:
        raise SolverError(f"unknown effect '{name}'.{suggestion(name, EFFECTS)} Effects: {', '.join(EFFECTS)}")
    try:
        level = decimal(text.removesuffix("x").strip()) if separator else 1.0
    except ValueError:
        level = math.nan
    if level != 0.0 and not LEVELS[0] <= level <= LEVELS[1]:
        raise SolverError(
            f"cannot read '{word}'; write {name}, or {name}=2x for twice its usual magnitude, from "
            f"{LEVELS[0]:g}x to {LEVELS[1]:g}x"
        )
    return name, level


__all__ = ["EFFECTS", "Harsh", "make"]


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Harsh:
    """Plant with effects in the form that `harshness` reads. seed: of the noise."""
    return Harsh(problem, harshness(effects), theta, seed)


class Harsh:
    """Robot with parameters theta (p,) or (N, p) and effects. Without effects it is the nominal plant, bit for bit.

    Raises SolverError for an effect that cannot be computed for this robot.
    """

    def __init__(self, problem: Problem, harshness: Harshness, theta: Tensor | None = None, seed: Seeds = 0) -> None:
        self.problem, self.harshness, self.theta, self.seed = problem, harshness, theta, seed
        metadata = problem.robot.metadata
        task = metadata.task
        #: Integration steps in a control period with friction or backlash: at least those of the simulation rate.
        self.smooth_steps = steps_for(problem, theta)  # without them
        self.steps = max(self.smooth_steps, task.simulation_rate // task.control_rate)
        wrong = "commands a velocity" if metadata.kinematic else "does not drive exactly one coordinate"
        across = [
            f"{entry.name} of {problem.robot.name} {wrong}" for entry in metadata.inputs if entry.coordinate is None
        ]
        if metadata.internal:
            control_matrix = problem.robot.affine_dynamics(problem.target[None])[1][0]
            across += [
                f"{entry.name} of {problem.robot.name} acts through a state of first order"
                for entry, through in zip(metadata.inputs, control_matrix[metadata.velocities.stop :].T, strict=True)
                if through.any()
            ]
        if harshness.stiction and across:
            others = " ".join(name for name in EFFECTS if name != "stiction")
            raise SolverError(
                f"input {across[0]}, so stiction cannot be computed; leave it out, for example --harsh {others}"
            )
        self._require_rates()
        rates = [metadata.rate(entry.coordinate) for entry in metadata.inputs if entry.coordinate is not None]
        self.rates = [rate for rate in rates if rate is not None]  # indices of the driven joints' rates in the state

    def _require_rates(self) -> None:
        """Raises SolverError if an effect needs a rate that is not a state, or a noise of unknown size."""
        metadata = self.problem.robot.metadata
        driven = (entry.coordinate for entry in metadata.inputs)
        unrated = next((name for name in driven if name is not None and metadata.rate(name) is None), None)
        unfiltered = None if metadata.kinematic else metadata.unrated
        for effect, other in (("encoder", unfiltered), ("stiction", unrated)):
            if other is not None and getattr(self.harshness, effect):
                raise SolverError(
                    f"the rate of {other} is not an entry of the state of {self.problem.robot.name}, so {effect} "
                    "cannot be computed; name the other effects, for example --harsh delay saturation backlash noise"
                )
        moving = Tangent(metadata).entries[: metadata.pose + metadata.nv]  # without states of first order
        unit = next((unit for _, unit, _ in moving if unit not in NOISE), None)
        if unit is not None and self.harshness.noise:
            raise SolverError(
                f"noise has no typical magnitude in {unit}; name the other effects, for example --harsh delay "
                f"saturation. Noise is known for {', '.join(NOISE)}."
            )

    @property
    def sensing(self) -> Sensing:
        """Sensors with the encoders, the noise and the delay of the effects."""
        level = self.harshness
        return sensing_of(self.problem, level.encoder, level.noise, round(level.delay))

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from x (N, n). The noise is the same in every call."""
        return _HarshSimulation(self, x)


def possible_effects(problem: Problem) -> tuple[str, ...]:
    """Effects that can be computed for a robot: without stiction where an input drives several coordinates."""

    def possible(effect: str) -> bool:
        try:
            Harsh(problem, harshness([effect]))
        except SolverError:
            return False
        return True

    return tuple(filter(possible, EFFECTS))


class _HarshSimulation:
    def __init__(self, plant: Harsh, x: Tensor) -> None:
        problem = plant.problem
        self.plant, self.problem, self.level, self.x = plant, problem, plant.harshness, x
        idle = x.new_zeros(len(x), len(problem.input_limits))
        self.waiting = [idle + problem.trim] * round(self.level.delay)  # delayed inputs, the oldest first
        crossing = CROSSING * self.level.backlash
        self.backlash = Backlash(problem.input_limits, crossing, idle) if self.level.backlash else None
        inexact = self.level.encoder or self.level.noise
        self.sensors = Sensors(problem, self.level.encoder, self.level.noise, plant.seed, x) if inexact else None
        self.measured = x if self.sensors is None else self.sensors.measured

    def step(self, u: Tensor) -> Tensor:
        """Integral (N,) of the state cost over one control period, simulated with the policy's input u (N, m)."""
        plant, drive, steps = self.plant, self._drive_input(u), self.plant.smooth_steps
        acting: Tensor | Callable[[Tensor], Tensor] = drive
        if self.backlash is not None or self.level.stiction:
            acting, steps = partial(self._acting, drive), plant.steps
        self.x, cost = integrate_period(self.problem, self.x, acting, plant.theta, steps=steps)
        self.measured = self.x if self.sensors is None else self.sensors.read(self.x)
        return cost

    def _acting(self, drive: Tensor, x: Tensor) -> Tensor:
        """Input (N, m) that acts on the robot at x (N, n) in one integration step, from the drive's input (N, m)."""
        seconds, acting = self.problem.control_step / self.plant.steps, drive
        if self.backlash is not None:
            acting = self.backlash.transmitted(drive, seconds)
        if level := self.level.stiction:
            plant = self.plant
            acting = acting + dry_friction(self.problem, plant.rates, level, x, acting, plant.theta, seconds)
        return acting

    def _drive_input(self, u: Tensor) -> Tensor:
        """Input of the drive (N, m): the policy's input, delayed and saturated."""
        problem = self.problem
        self.waiting.append(u)
        u = self.waiting.pop(0)
        if self.level.saturation:
            left, lower, upper = 1.0 - SATURATION * self.level.saturation, problem.lower_input, problem.upper_input
            u = torch.clamp(u, torch.maximum(lower, left * lower), torch.minimum(upper, left * upper))
        return u
