"""Sensing of a robot: errors of the measured positions and rates, and the delay of the inputs.

It is all that the observer knows about the sensors and drives of a plant or of a real robot.

Observer: an extended Kalman filter on the compiled dynamics, and a prediction over the delay of the inputs.

In every control period it predicts the state under the last input, corrects the prediction by the measurement
(positions, and rates if they are measured), and predicts the state at the time when the next input acts. The filter has
two kinds of slow states too: a disturbance of every input, such as friction that the model lacks or a wrong load, and
the parameters that are to be estimated. Neither is forgotten, so that a constant load leaves no error at rest
(offset-free control: Pannocchia and Rawlings, 2003, doi 10.1002/aic.690490213). Nothing is tuned. The variances of the
measurement come from the sensors, and the variances of the prediction from the bounds of the model file:

- a slow state makes a random walk between its bounds: it crosses them in FOUND or PARAMETERS_CHANGE seconds, and its
  variance never exceeds that of a uniform distribution between them;
- the bounds of a parameter are those of the model file, and the bounds of a disturbance are `largest_disturbance`;
- every other parameter is uniform between its bounds, and drawn again in every control period;
- an unmodelled random walk changes a velocity or a state of first order by PUSH of its limit in one second;
- at the start, one of these that is not measured is uniform within its limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from solver.observer.rest import largest_disturbance, lean, leaning, shift
from solver.problem import Problem
from solver.problem.integrator import integrate_period, steps_estimating

COUNTS_PER_TURN = 2048  # of a usual encoder of an angle: 512 lines in quadrature
LENGTH_COUNT = 2.5e-5  # m, resolution of a usual encoder of a length


@dataclass(frozen=True)
class Sensing:
    """Standard deviations of the measurements' errors in units of the states, and the delay of the inputs.

    A measured rotation has three errors, of small turns.
    """

    deviation: Tensor  # (pose,) of the errors of positions, or (nt,) of all states if rates are measured
    entries: int  # first states that are measured: nq, or n
    delay: int = 0  # control periods between a measurement and the effect of the input computed from it


def usual_counts(problem: Problem, level: float = 1.0) -> Tensor:
    """Resolution (pose,) of usual encoders of the positions, times `level`. A turn has an integer number of counts.

    A rotation has that of three angles.
    """
    turn = 2.0 * math.pi / max(1, round(COUNTS_PER_TURN / level))
    entries = problem.tangent.entries[: problem.robot.metadata.pose]
    return problem.target.new_tensor([turn if unit == "rad" else LENGTH_COUNT * level for _, unit, _ in entries])


def make_sensing(
    problem: Problem,
    counts: Tensor | None = None,
    noise: Tensor | None = None,
    delay: int = 0,
    rates: Tensor | None = None,
) -> Sensing:
    """Sensing from the resolution of encoders and the standard deviations of white noise.

    counts: (pose,) resolution of the encoders. noise: (pose,) deviation of the positions. rates: (nt - pose,)
    deviation of the rates, if they are measured. delay: in control periods.

    The error of an encoder is uniform, with the variance counts^2/12. A measurement without error has the rounding
    error of float32.
    """
    metadata = problem.robot.metadata
    limits, entries = problem.tangent_limits[: metadata.pose], metadata.nq
    variance = torch.zeros_like(limits)
    if counts is not None:
        variance = variance + counts**2 / 12.0
    if noise is not None:
        variance = variance + noise**2
    if rates is not None:
        variance, limits, entries = torch.cat([variance, rates**2]), problem.tangent_limits, len(problem.target)
    return Sensing(variance.sqrt().clamp_min(torch.finfo(limits.dtype).eps * limits), entries, delay)


FOUND = 0.5  # s, in which a disturbance crosses its bounds: as short as friction changes its sign
PARAMETERS_CHANGE = 10.0  # s, in which an estimated parameter crosses its bounds
PUSH = 0.01  # of a velocity's limit: standard deviation of its unmodelled change in one second


class Observer:
    """Estimates of the states, disturbances and parameters of N robots from their measurements and inputs.

    A measurement y (N, k) has the first k states, one for each entry of `sensing.deviation`: the q positions, or all n
    states. Call `reset`, and then in every control period `estimate`, `compensate` and `sent`.

    The covariance is in double precision. The C source of `solver export --observer` has its factors in single
    precision.
    """

    at_start: bool  # velocities are unknown: they are not measured, and there is only one measurement
    disturbance: Tensor  # (N, m) in units of the inputs, added to the input
    parameters: Tensor | None  # (N, p), of which the estimated ones change; None for the nominal ones
    leaning: list[int]  # the estimated parameters that no input holds at the target, see `lean`
    _lean: Tensor | None  # (N, nt) of the last `upright`
    covariance: Tensor  # (N, nt + m + e, nt + m + e) of the errors of `x`, `disturbance`, estimated parameters
    normalised_innovation: Tensor  # (N,) e^T S^-1 e of the last innovation e; its mean is k if the model is right
    surprise: Tensor  # (N,) e^T S^-1 e + log det S: -2 log likelihood of the last y, up to a constant

    def __init__(self, problem: Problem, sensing: Sensing, estimated: Sequence[int] = ()) -> None:
        """estimated: indices of the e parameters that are estimated."""
        self.problem, self.delay, self.estimated = copy(problem), sensing.delay, list(estimated)
        self.problem.substeps = steps_estimating(problem, estimated)
        self.positions, self.entries = problem.robot.metadata.pose, sensing.entries
        self.internal = slice(problem.robot.metadata.velocities.stop, None)  # entries of x that hold z
        self.measured = sensing.deviation.double() ** 2  # (k,)
        bounds, velocities = problem.theta_bounds, problem.tangent_limits[self.positions :].double()
        self.errors = ((bounds[:, 1] - bounds[:, 0]) / math.sqrt(12.0)).double()  # (p,)
        slow = self.errors[self.estimated] ** 2
        self.errors[self.estimated] = 0.0
        self.largest = largest_disturbance(problem, self.estimated)  # (m,)
        self.leaning = leaning(problem, self.estimated)
        drive = self.largest.double() ** 2 / 3.0
        pushes = PUSH**2 * problem.control_step * velocities**2
        #: Variances (nt + m + e,) that a control period adds, and variances at the start.
        walk, drift = (1.0 - math.exp(-2.0 * problem.control_step / time) for time in (FOUND, PARAMETERS_CHANGE))
        self.added = torch.cat([pushes.new_zeros(self.positions), pushes, drive * walk, slow * drift])
        self.unknown = torch.cat([pushes.new_zeros(self.positions), velocities**2 / 3.0, drive, slow])
        self.unknown[: len(self.measured)] = self.measured
        self.known: Tensor | None = None  # (p,) or (N, p) parameters at the start; None for the nominal ones
        self.reset()

    def reset(self) -> None:
        """Start again: the next measurement is the first, and velocities that are not measured are unknown."""
        self.x: Tensor | None = None  # (N, n) at the time of the last measurement
        self.waiting: list[Tensor] = []  # delayed inputs (N, m), the oldest first
        self.parameters = self._lean = None

    def know(self, theta: Tensor) -> None:
        """Take theta (p,) or (N, p) for the nominal parameters at the next start. The estimated ones change then."""
        self.known = theta

    def tell(self, columns: Sequence[int], values: Tensor) -> None:
        """Replace some parameters, set-points that jumped, by values (N, k)."""
        if self.parameters is not None:
            self.parameters[:, columns] = values

    def estimate(self, y: Tensor) -> Tensor:
        """States (N, n) at the time when the next input acts, from the measurement y (N, k)."""
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
            x = integrate_period(self.problem, x, u + self.disturbance, self.parameters).x
        return x

    def upright(self, x: Tensor) -> Tensor:
        """States (N, n) for the policy: x (N, n) less the `lean` that the estimated parameters need at rest."""
        if not self.leaning or self.parameters is None:
            return x
        self._lean = lean(self.problem, self.parameters, self._lean)  # the estimates change little in a period
        return self.problem.confine(self.problem.geometry.moved(x, -self._lean))

    def compensate(self, u: Tensor) -> Tensor:
        """Input (N, m) to send so that the policy's input u (N, m) acts: u minus the disturbance, within the limits.

        u is also shifted by what the parameters change at the target, as far as the policy is not told them.
        """
        u = u - self.disturbance
        if self.parameters is not None:
            u = u - shift(self.problem, self.parameters, self._lean)
        return torch.clamp(u, self.problem.lower_input, self.problem.upper_input)

    def sent(self, u: Tensor) -> None:
        """Record the input u (N, m) that was sent after the last estimate."""
        self.waiting.append(u)

    def _begin(self, y: Tensor) -> None:
        """Start at the first measurement y (N, k): the trim before, and what is not measured at rest."""
        size, rest = len(y), len(self.problem.target) - y.shape[1]
        still = self.problem.target.new_zeros(len(self.problem.target))
        still[self.internal] = self.problem.target[self.internal]
        self.x = self.problem.confine(torch.cat([y, still[y.shape[1] :].expand(size, rest)], 1))
        self.at_start, self.covariance = rest > 0, self.unknown.diag().repeat(size, 1, 1)
        self.normalised_innovation = self.surprise = y.new_zeros(size)
        self.disturbance = y.new_zeros(size, len(self.problem.input_limits))
        if self.estimated or self.known is not None:
            self.parameters = (self.problem.theta if self.known is None else self.known).expand(size, -1).clone()
        self.waiting = [self.disturbance + self.problem.trim] * self.delay

    def _between(self, x: Tensor, positions: Tensor) -> Tensor:
        """States (N, n) about which the first period is linearised: x with mean velocities until `positions` (N, q).

        A linearisation about rest would have an error of the square of the velocities. Speeds that are not the rates of
        positions stay as in x.
        """
        if self.problem.robot.metadata.rolls:
            return x
        velocities = self.problem.difference(positions, x) / self.problem.control_step
        others = x[:, self.entries + velocities.shape[1] :]
        return self.problem.confine(torch.cat([x[:, : self.entries], velocities, others], 1))

    def _advance(self, x: Tensor, about: Tensor, u: Tensor, y: Tensor) -> Tensor:
        """States (N, n) one control period after x (N, n) with the input u (N, m), corrected by y (N, k) at its end.

        about: (N, n), states about which the period is linearised.
        """
        period = transition(self.problem, about, u + self.disturbance, self.parameters)
        n, count = self.problem.geometry.size, len(self.largest)
        covariance = self.predicted(self.covariance, period)
        geometry = self.problem.geometry
        apart = x - about if not geometry.rotations else geometry.error(x, about)
        predicted = geometry.moved(period.x, torch.einsum("bij,bj->bi", period.by_state, apart))
        correction, self.covariance = self.correction(covariance, predicted, y)
        self.x = self.problem.confine(geometry.moved(predicted, correction[:, :n].to(x.dtype)))
        found = self.disturbance + correction[:, n : n + count].to(x.dtype)
        self.disturbance = torch.clamp(found, -self.largest, self.largest)
        if self.parameters is not None:
            self.parameters[:, self.estimated] += correction[:, n + count :].to(x.dtype)
            self.parameters = torch.clamp(self.parameters, *self.problem.theta_bounds.T)
        return self.x

    def predicted(self, covariance: Tensor, period: Transition) -> Tensor:
        """Covariance of the errors a control period later, before the measurement at its end."""
        n, size = period.by_state.shape[1], len(period.x)
        slopes = torch.eye(len(self.added), dtype=torch.float64, device=period.x.device).repeat(size, 1, 1)
        slopes[:, :n] = torch.cat([period.by_state, period.by_input, period.by_parameter[:, :, self.estimated]], 2)
        by_errors, added = period.by_parameter * self.errors, self.added.repeat(size, 1)
        # A walk between reflecting bounds: at the variance of a uniform distribution, it adds nothing.
        share = covariance.diagonal(dim1=1, dim2=2)[:, n:] / self.unknown[n:]
        added[:, n:] *= (1.0 - share).clamp_min(0.0)
        covariance = slopes @ covariance @ slopes.mT + added.diag_embed()
        covariance[:, :n, :n] += by_errors @ by_errors.mT
        return covariance

    def correction(self, covariance: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Correction (N, nt + m + e) of the prediction x (N, n) and of the slow states by y (N, k), and the covariance.

        The entries of y are used one after the other, because their errors are independent. NaN is not measured.
        """
        innovation = self.problem.difference(y, x).double()
        seen = ~torch.isnan(innovation)
        innovation = torch.where(seen, innovation, 0.0)
        correction, total = torch.zeros_like(covariance[:, 0]), torch.zeros_like(innovation[:, 0])
        log_spread = torch.zeros_like(total)
        for i, variance in enumerate(self.measured):
            column = covariance[:, i]
            spread = column[:, i] + variance
            left = innovation[:, i] - correction[:, i]
            gain = torch.where(seen[:, i, None], column / spread[:, None], 0.0)
            correction = correction + gain * left[:, None]
            total = total + torch.where(seen[:, i], left**2 / spread, 0.0)
            log_spread = log_spread + torch.where(seen[:, i], spread.log(), 0.0)
            covariance = covariance - gain[:, :, None] * column[:, None, :]
        self.normalised_innovation, self.surprise = total, total + log_spread
        # For an unstable robot, a rounding difference between P and P^T would grow until P has negative variances.
        return correction, 0.5 * (covariance + covariance.mT)


class Transition(NamedTuple):
    """States at the end of a control period, and their derivatives."""

    x: Tensor  # (N, n)
    by_state: Tensor  # (N, nt, nt) of the error at the end by that at the start
    by_input: Tensor  # (N, nt, m)
    by_parameter: Tensor  # (N, nt, p)


def transition(problem: Problem, x: Tensor, u: Tensor, theta: Tensor | None = None) -> Transition:
    """One control period from x (N, n) with the input u (N, m) held.

    theta: parameters (N, p), nominal by default.

    The derivatives follow the stages of the Runge-Kutta step, so that they belong to the numerical solution. They
    ignore that states are confined to the domain.
    """
    geometry, size, m = problem.geometry, len(x), u.shape[1]
    n = geometry.size
    seconds = problem.control_step / problem.substeps
    # D = d(x)/d(x_0, u, theta) satisfies dD/dt = (da_dx + dB_dx u) D + (0, B, da_dtheta + dB_dtheta u).
    derivatives = x.new_zeros(size, x.shape[1], n + m + len(problem.theta))
    derivatives[:, :, :n] = geometry.basis(x)

    def rates(x: Tensor, derivatives: Tensor) -> tuple[Tensor, Tensor]:
        a, control_matrix, *slopes = problem.robot.jacobians(x, theta)
        a_by_x, B_by_x, a_by_theta, B_by_theta = slopes
        rate = (a_by_x + torch.einsum("bnmk,bm->bnk", B_by_x, u)) @ derivatives
        rate[:, :, n : n + m] += control_matrix
        rate[:, :, n + m :] += a_by_theta + torch.einsum("bnmp,bm->bnp", B_by_theta, u)
        return a + torch.einsum("bnm,bm->bn", control_matrix, u), rate

    for _ in range(problem.substeps):
        stages = [rates(x, derivatives)]
        for share in (0.5, 0.5, 1.0):
            slope, slopes = stages[-1]
            stages.append(rates(x + share * seconds * slope, derivatives + share * seconds * slopes))
        x, derivatives = (
            start + seconds / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
            for start, (first, second, third, fourth) in zip((x, derivatives), zip(*stages, strict=True), strict=True)
        )
        problem.confine_in_place(x)
    if geometry.rotations:
        derivatives = geometry.projection(x) @ derivatives
    return Transition(x, *torch.split(derivatives, [n, m, len(problem.theta)], 2))
