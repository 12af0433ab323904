"""The observer: an extended Kalman filter on the generated dynamics, and a prediction over the delay.

Every control period it predicts what the last input that acted has done, corrects the prediction by the measurement
(the positions, and the rates where they are measured too), and predicts on to the time when the next input acts. It
estimates a disturbance of every input with the state, such as friction that the model does not have, and takes it off
what is sent: a disturbance observer (Chen et al., 2016, doi 10.1109/TIE.2015.2478397). Nothing is tuned: the variances
of the measurement are those of the sensors, and those of the prediction follow from the bounds of the model file:

- every parameter is uniform between its bounds, drawn anew in every control period;
- the disturbance of an input is a Gauss-Markov process that stays within DRIVE of the input limit, with a correlation
  time of LASTS;
- a velocity changes by PUSH of its limit in a second, as a random walk, by what the model does not have;
- at the start a velocity that is not measured is uniform within its limit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.observer.sensing import Sensing
from solver.observer.transition import transition
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

DRIVE = 0.1  # of the input limit: the largest disturbance of a drive
LASTS = 1.0  # s, after which exp(-1) of a disturbance is left: longer than friction holds a joint
PUSH = 0.01  # of a velocity's limit: standard deviation of its change in one second by what the model does not have


class Observer:
    """The states of N robots from what is measured of them and their inputs, N rows at a time.

    A measurement y is of the first k states, as many as the sensing has deviations: q positions, or all n states.

    Call `reset`, then in every control period `estimate`, `compensate` and `sent`. The covariance is in double
    precision; the C source of `solver export --observer` keeps its factors in single precision.
    """

    at_start: bool  # the velocities are not known yet: not measured, and no second positions
    disturbance: Tensor  # (N, m) in units of the inputs: what acts is the input and this
    covariance: Tensor  # (N, n + m, n + m) of the error of `x` and `disturbance`
    normalised_innovation: Tensor  # (N,) squared, e^T S^-1 e of the last y; k on average where the model holds
    surprise: Tensor  # (N,) e^T S^-1 e + log det S: minus twice the logarithm of their likelihood, less a constant

    def __init__(self, problem: Problem, sensing: Sensing) -> None:
        self.problem, self.delay = problem, sensing.delay
        self.positions = len(problem.robot.metadata.coordinates)
        self.measured = sensing.deviation.double() ** 2  # (k,)
        bounds, velocities = problem.theta_bounds, problem.state_limits[self.positions :].double()
        self.errors = ((bounds[:, 1] - bounds[:, 0]) / math.sqrt(12.0)).double()  # (p,)
        drive = DRIVE**2 / 3.0 * problem.input_limits.double() ** 2
        self.left = math.exp(-problem.control_step / LASTS)  # of a disturbance after a control period
        pushes = PUSH**2 * problem.control_step * velocities**2
        #: Variances (n + m,) of what is added in a control period, and at the start.
        self.added = torch.cat([pushes.new_zeros(self.positions), pushes, drive * (1.0 - self.left**2)])
        self.unknown = torch.cat([pushes.new_zeros(self.positions), velocities**2 / 3.0, drive])
        self.unknown[: len(self.measured)] = self.measured
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next measurement is the first, and velocities that it lacks are unknown."""
        self.x: Tensor | None = None  # (N, n) at the time of the last measurement
        self.waiting: list[Tensor] = []  # inputs (N, m) that do not act yet, the oldest first

    def estimate(self, y: Tensor) -> Tensor:
        """The states (N, n) at the time when the input acts that is computed now, from y (N, k) measured now."""
        if self.x is None:
            self._begin(y)
        else:
            x, u = self.x, self.waiting.pop(0)
            about = self._between(x, y) if self.at_start else x
            self._advance(x, about, u, y)
            self.at_start = False
        assert self.x is not None
        x = self.x
        for u in self.waiting:
            x = integrate_period(self.problem, x, u + self.disturbance).x
        return x

    def compensate(self, u: Tensor) -> Tensor:
        """What to send so that the policy's input u (N, m) acts: the disturbance taken off, within the limits."""
        limits = self.problem.input_limits
        return torch.clamp(u - self.disturbance, -limits, limits)

    def sent(self, u: Tensor) -> None:
        """The input (N, m) that is on its way to the drive since the last estimate."""
        self.waiting.append(u)

    def _begin(self, y: Tensor) -> None:
        """At the first y (N, k), with no inputs on their way, and at rest as far as no velocities are measured."""
        size, rest = len(y), len(self.problem.target) - y.shape[1]
        self.x = self.problem.confine(torch.cat([y, y.new_zeros(size, rest)], 1))
        self.at_start, self.covariance = rest > 0, self.unknown.diag().repeat(size, 1, 1)
        self.normalised_innovation = self.surprise = y.new_zeros(size)
        self.disturbance = y.new_zeros(size, len(self.problem.input_limits))
        self.waiting = [self.disturbance] * self.delay

    def _between(self, x: Tensor, positions: Tensor) -> Tensor:
        """The first states (N, n) with the mean velocities between their positions and the second ones (N, q), to
        linearise about.

        A linearisation about rest is wrong by the square of the velocities.
        """
        count = self.positions
        velocities = self._turned(positions - x[:, :count]) / self.problem.control_step
        return self.problem.confine(torch.cat([x[:, :count], velocities], 1))

    def _advance(self, x: Tensor, about: Tensor, u: Tensor, y: Tensor) -> Tensor:
        """One control period from x (N, n) under the input u (N, m), linearised about states of the same positions, and
        corrected by y (N, k) at its end."""
        found, n = transition(self.problem, about, u + self.disturbance), x.shape[1]
        slopes = self.left * torch.eye(len(self.added), dtype=torch.float64, device=x.device).repeat(len(x), 1, 1)
        slopes[:, :n] = torch.cat([found.by_state, found.by_input], 2)
        wrong = found.by_parameter * self.errors
        covariance = slopes @ self.covariance @ slopes.mT + self.added.diag()
        covariance[:, :n, :n] += wrong @ wrong.mT
        predicted = found.x + torch.einsum("bij,bj->bi", found.by_state, x - about)
        correction, self.covariance = self._correction(covariance, predicted, y)
        self.x = self.problem.confine(predicted + correction[:, :n].to(x.dtype))
        self.disturbance = self.left * self.disturbance + correction[:, n:].to(x.dtype)
        return self.x

    def _correction(self, covariance: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Of the predicted x (N, n) and disturbance by the entries of y, one after the other, since their errors are
        independent: (N, n + m), and the covariance after it."""
        innovation = self._turned(y - x[:, : y.shape[1]]).double()
        correction, total = torch.zeros_like(covariance[:, 0]), torch.zeros_like(innovation[:, 0])
        log_spread = torch.zeros_like(total)
        for i, variance in enumerate(self.measured):
            column = covariance[:, i]
            spread = column[:, i] + variance
            left = innovation[:, i] - correction[:, i]
            gain = column / spread[:, None]
            correction = correction + gain * left[:, None]
            total = total + left**2 / spread
            log_spread = log_spread + spread.log()
            covariance = covariance - gain[:, :, None] * column[:, None, :]
        self.normalised_innovation, self.surprise = total, total + log_spread
        # What rounding leaves between P and P^T grows as an unstable robot does, until P has negative variances.
        return correction, 0.5 * (covariance + covariance.mT)

    def _turned(self, difference: Tensor) -> Tensor:
        """Differences of the first states, those of continuous angles in [-pi, pi)."""
        for i in self.problem.continuous:
            difference[:, i] = torch.remainder(difference[:, i] + math.pi, 2.0 * math.pi) - math.pi
        return difference
