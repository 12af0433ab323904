"""Simulation of the harsh plant, its effects, and the text by which a user selects them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import torch
from torch import Tensor

from modelgen.commandline import decimal
from modelgen.errors import suggestion
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.observer.observer import Sensing
from solver.plants.harsh.sensors import CROSSING, NOISE, Backlash, Sensors, dry_friction, sensing_of
from solver.plants.plant import Seeds, Simulation
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

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
        self.steps = max(problem.substeps, task.simulation_rate // task.control_rate)
        across = [
            f"{entry.name} of {problem.robot.name} does not drive exactly one coordinate"
            for entry in metadata.inputs
            if entry.coordinate is None
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
        other = self.problem.robot.metadata.quasi_velocity
        for effect in ("encoder", "stiction"):
            if other is not None and getattr(self.harshness, effect):
                raise SolverError(
                    f"{other} of {self.problem.robot.name} is not the rate of a coordinate, so {effect} cannot be "
                    "computed; name the other effects, for example --harsh delay saturation backlash noise"
                )
        metadata = self.problem.robot.metadata
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
        drive = self._drive_input(u)
        if self.backlash is None and not self.level.stiction:
            self.x, cost = integrate_period(self.problem, self.x, drive, self.plant.theta)
        else:
            self.x, cost = integrate_period(
                self.problem, self.x, partial(self._acting, drive), self.plant.theta, steps=self.plant.steps
            )
        self.measured = self.x if self.sensors is None else self.sensors.read(self.x)
        return cost

    def _acting(self, drive: Tensor, x: Tensor) -> Tensor:
        """Input (N, m) that acts on the robot at x (N, n) in one integration step, from the drive's input (N, m)."""
        acting = drive
        if self.backlash is not None:
            acting = self.backlash.transmitted(drive, self.problem.control_step / self.plant.steps)
        if self.level.stiction:
            level, rates = self.level.stiction, self.plant.rates
            acting = acting + dry_friction(
                self.problem, rates, level, x, acting, self.plant.theta, self.problem.control_step / self.plant.steps
            )
        return acting

    def _drive_input(self, u: Tensor) -> Tensor:
        """Input of the drive (N, m): the policy's input, delayed and saturated."""
        self.waiting.append(u)
        u = self.waiting.pop(0)
        if self.level.saturation:
            left, lower, upper = (
                1.0 - SATURATION * self.level.saturation,
                self.problem.lower_input,
                self.problem.upper_input,
            )
            u = torch.clamp(u, torch.maximum(lower, left * lower), torch.minimum(upper, left * upper))
        return u
