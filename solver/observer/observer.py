"""The observer: an extended Kalman filter on the generated dynamics, and a prediction over the delay.

Every control period it predicts what the last input that acted has done, corrects the prediction by the measured
positions, and predicts on to the time when the next input acts. Nothing is tuned: the variances of the measurement are
those of the sensors, and those of the prediction follow from the bounds of the model file:

- every parameter is uniform between its bounds, and every input is wrong by up to DRIVE of its limit, both drawn anew
  in every control period;
- a velocity changes by PUSH of its limit in a second, as a random walk, by what the model does not have;
- at the start a velocity is uniform within its limit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.observer.sensing import Sensing
from solver.observer.transition import transition
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

DRIVE = 0.1  # of the input limit: the largest error of a drive
PUSH = 0.01  # of a velocity's limit: standard deviation of its change in one second by what the model does not have


class Observer:
    """The states of N robots from their positions and inputs, N rows at a time.

    Call `reset`, then in every control period `estimate` and `sent`. The covariance is in double precision.
    """

    at_start: bool  # no second positions yet
    covariance: Tensor  # (N, n, n) of the error of `x`
    normalised_innovation: Tensor  # (N,) squared, e^T S^-1 e of the last positions; q on average where the model holds

    def __init__(self, problem: Problem, sensing: Sensing) -> None:
        self.problem, self.delay = problem, sensing.delay
        self.measured = sensing.deviation.double() ** 2  # (q,)
        bounds, velocities = problem.theta_bounds, problem.state_limits[len(self.measured) :].double()
        self.errors = torch.cat(
            [DRIVE / math.sqrt(3.0) * problem.input_limits, (bounds[:, 1] - bounds[:, 0]) / 12**0.5]
        )
        still = torch.zeros_like(self.measured)
        self.pushed = torch.cat([still, PUSH**2 * problem.control_step * velocities**2]).diag()  # (n, n)
        self.unknown = torch.cat([self.measured, velocities**2 / 3.0]).diag()  # (n, n)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next positions are the first, and the velocities behind them are unknown."""
        self.x: Tensor | None = None  # (N, n) at the time of the last positions
        self.waiting: list[Tensor] = []  # inputs (N, m) that do not act yet, the oldest first

    def estimate(self, positions: Tensor) -> Tensor:
        """The states (N, n) at the time when the input acts that is computed now, from the positions (N, q) measured
        now."""
        if self.x is None:
            self._begin(positions)
        else:
            x, u = self.x, self.waiting.pop(0)
            about = self._second_look(x, u, positions) if self.at_start else x
            self._advance(x, about, u, positions)
            self.at_start = False
        assert self.x is not None
        x = self.x
        for u in self.waiting:
            x = integrate_period(self.problem, x, u).x
        return x

    def sent(self, u: Tensor) -> None:
        """The input (N, m) that was computed from the last estimate and is on its way to the drive."""
        self.waiting.append(u)

    def _begin(self, positions: Tensor) -> None:
        """At the first positions (N, q), at rest, with unknown velocities and no inputs on their way."""
        size, rest = len(positions), len(self.unknown) - positions.shape[1]
        self.x = self.problem.confine(torch.cat([positions, positions.new_zeros(size, rest)], 1))
        self.at_start, self.covariance = True, self.unknown.repeat(size, 1, 1)
        self.normalised_innovation = positions.new_zeros(size)
        self.waiting = [positions.new_zeros(size, len(self.problem.input_limits))] * self.delay

    def _second_look(self, x: Tensor, u: Tensor, positions: Tensor) -> Tensor:
        """The first states (N, n) with the velocities that the second positions (N, q) tell, to linearise about.

        A linearisation about rest is wrong by the square of the velocities.
        """
        covariance, count = self.covariance, positions.shape[1]
        later = self._advance(x, x, u, positions)
        self.covariance = covariance
        return torch.cat([x[:, :count], later[:, count:]], 1)

    def _advance(self, x: Tensor, about: Tensor, u: Tensor, positions: Tensor) -> Tensor:
        """One control period from x (N, n) under the input u (N, m), linearised about states of the same positions, and
        corrected by the positions (N, q) at its end."""
        found = transition(self.problem, about, u)
        slopes = found.by_state.double()
        wrong = (torch.cat([found.by_input, found.by_parameter], 2) * self.errors).double()
        self.covariance = slopes @ self.covariance @ slopes.mT + wrong @ wrong.mT + self.pushed
        predicted = found.x + torch.einsum("bij,bj->bi", found.by_state, x - about)
        self.x = self.problem.confine(predicted + self._correction(predicted, positions).to(x.dtype))
        return self.x

    def _correction(self, x: Tensor, positions: Tensor) -> Tensor:
        """Of the prediction x (N, n) by the positions, one after the other, since their errors are independent."""
        innovation = self._turned(positions - x[:, : positions.shape[1]]).double()
        correction, total = torch.zeros_like(self.covariance[:, 0]), torch.zeros_like(innovation[:, 0])
        for i, variance in enumerate(self.measured):
            column = self.covariance[:, i]
            spread = column[:, i] + variance
            left = innovation[:, i] - correction[:, i]
            gain = column / spread[:, None]
            correction = correction + gain * left[:, None]
            total = total + left**2 / spread
            self.covariance = self.covariance - gain[:, :, None] * column[:, None, :]
        # What rounding leaves between P and P^T grows as an unstable robot does, until P has negative variances.
        self.covariance = 0.5 * (self.covariance + self.covariance.mT)
        self.normalised_innovation = total
        return correction

    def _turned(self, difference: Tensor) -> Tensor:
        """Differences of positions (N, q), those of continuous angles in [-pi, pi)."""
        for i in self.problem.continuous:
            difference[:, i] = torch.remainder(difference[:, i] + math.pi, 2.0 * math.pi) - math.pi
        return difference
