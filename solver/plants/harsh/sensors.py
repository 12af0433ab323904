"""Sensors of the harsh plant: encoders and noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.observer.sensing import Sensing, make_sensing, usual_counts
from solver.plants.plant import Seeds
from solver.problem.problem import Problem

CUTOFF = 20.0  # Hz, of the low-pass filter of the difference of two counts
NOISE = {"rad": 1e-3, "m": 1e-4, "rad/s": 0.05, "m/s": 0.01}  # standard deviations of white noise at the control rate


def sensing_of(problem: Problem, encoder: float, noise: float, delay: int) -> Sensing:
    """Sensing for an observer. encoder, noise: factors of the usual magnitudes. delay: in control periods.

    Rates are measured only if there is noise and no encoder. Exact rates are left out, because they follow from exact
    positions.
    """
    counts = usual_counts(problem, encoder) if encoder else None
    deviation, count = _noise(problem, noise), problem.robot.metadata.nv
    rates = deviation[count:] if noise and not encoder else None
    return make_sensing(problem, counts, deviation[:count], delay, rates)


def _noise(problem: Problem, level: float) -> Tensor:
    """Standard deviations (nt,) of the noise of the states, zero for states of first order. level: factor of NOISE."""
    moving = 2 * problem.robot.metadata.nv
    units = [unit if place < moving else "" for place, (_, unit, _) in enumerate(problem.tangent.entries)]
    return level * problem.target.new_tensor([NOISE.get(unit, 0.0) for unit in units])


class Sensors:
    """Sensors of N rollouts. With encoders, rates are filtered differences of the counts; otherwise they are measured.
    States of first order, such as a current, are measured without error.

    encoder, noise: factors of the usual magnitudes. seed: one, or one for each of the N rollouts.
    x: (N, n) true states at the start. The filter starts at the true rates.
    """

    def __init__(self, problem: Problem, encoder: float, noise: float, seed: Seeds, x: Tensor) -> None:
        self.noise, self.period, self.geometry = noise, problem.control_step, problem.geometry
        self.coordinates, self.continuous = problem.robot.metadata.nq, problem.continuous
        seeds = [seed] if isinstance(seed, int) else seed
        self.generators = [torch.Generator(device=x.device).manual_seed(number) for number in seeds]
        self.deviation = _noise(problem, noise)
        self.count = usual_counts(problem, encoder) if encoder else None
        self.kept = math.exp(-2.0 * math.pi * CUTOFF * self.period)
        self.positions, self.rates = self._measure(x)
        if self.count is not None:
            self.rates = x[:, self.coordinates :]

    def read(self, x: Tensor) -> Tensor:
        """Measured states (N, n) at the true states x (N, n), one control period after the last reading."""
        positions, rates = self._measure(x)
        if self.count is not None:
            moved = self._wrapped(positions - self.positions) / self.period
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
        """Positions (N, q) and rates (N, n - q) with noise. Positions are rounded to whole counts."""
        if self.noise:
            shape = len(x) // len(self.generators), self.geometry.size
            white = [torch.randn(shape, generator=generator, device=x.device) for generator in self.generators]
            x = self.geometry.spread(x, self.deviation * torch.cat(white))
        positions, rates = x[:, : self.coordinates], x[:, self.coordinates :]
        if self.count is not None:
            positions = torch.round(positions / self.count) * self.count
        return self._wrapped(positions), rates

    def _wrapped(self, positions: Tensor) -> Tensor:
        """Copy of the positions with continuous angles in [-pi, pi)."""
        positions = positions.clone()
        for i in self.continuous:
            positions[:, i] = torch.remainder(positions[:, i] + math.pi, 2.0 * math.pi) - math.pi
        return positions
