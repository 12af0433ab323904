"""Drives and sensors of the harsh plant: backlash, dry friction of the driven joints, encoders and noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.observer.observer import Sensing, make_sensing, usual_counts
from solver.plants.plant import Seeds
from solver.problem.problem import Problem

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
    deviation, count = _noise(problem, noise), problem.robot.metadata.pose
    rates = deviation[count:] if noise and not encoder else None
    return make_sensing(problem, counts, deviation[:count], delay, rates)


def _noise(problem: Problem, level: float) -> Tensor:
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
