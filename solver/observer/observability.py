"""Choice of the parameters that an observer estimates, and the observer that estimates the delay of the inputs.

It is multiple-model estimation (Magill, 1965, doi 10.1109/TAC.1965.1098191). As soon as an input changes, a filter with
a wrong delay has a larger innovation than errors of parameters and sensors explain. The likelihoods use all
measurements since the start, so the delay must be constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.observer import Observer, Sensing, Transition, make_sensing, transition, usual_counts
from solver.problem import Problem
from solver.problem.integrator import integrate_period

ALL = "all"  # in place of names: every parameter that has bounds and is observable
SECONDS, ROLLOUTS, SEED = 2.0, 8, 0  # of the simulated motion in which an observable parameter shows itself
HELD = 10  # control periods for which an input of this motion is held
UNKNOWN = 0.9  # share of a parameter's standard deviation that is left after the motion if it is not observable


def estimated_parameters(problem: Problem, sensing: Sensing, names: Sequence[str]) -> list[int]:
    """Indices of the parameters to estimate, from their names or from `all`, in the order of theta.

    Raises SolverError for an unknown name, and for a parameter without bounds, without effect on the motion, or whose
    estimate stays as uncertain as its bounds in a motion with random inputs. One that the policy is told is taken even
    so: what the motion does not show of it stays nominal, and this is what the policy is to be told.
    """
    known = problem.robot.parameter_names
    for name in names:
        if name != ALL and name not in known:
            raise SolverError(
                f"--estimate {name}: robot {problem.robot.name} has no parameter '{name}'.{suggestion(name, known)} "
                f"Parameters: {', '.join(known) or '(none)'}"
            )
    bounded = (problem.theta_bounds[:, 0] < problem.theta_bounds[:, 1]).tolist()
    chosen = [i for i, name in enumerate(known) if name in names or (ALL in names and bounded[i])]
    if not chosen:
        if names:
            raise SolverError(f"--estimate {' '.join(names)}: no parameter of {problem.robot.name} has bounds")
        return []
    for i in chosen:
        if not bounded[i]:
            raise SolverError(
                f"--estimate {known[i]}: its bounds are {float(problem.theta[i]):g} to {float(problem.theta[i]):g}, so "
                "there is nothing to estimate. Write a tolerance or bounds in the model file, or leave it out"
            )
    idle = [i for i in chosen if float(_effects(problem)[i]) <= torch.finfo(torch.float32).eps]
    unknown = dict(zip(chosen, uncertainty(problem, sensing, chosen).tolist(), strict=True))
    told = () if problem.context is None else {*problem.context.names} - {*problem.robot.metadata.references}
    hidden = [i for i in chosen if (i in idle or unknown[i] > UNKNOWN) and known[i] not in told]
    for i in hidden:
        if known[i] not in names:
            continue
        if i in idle:
            raise SolverError(
                f"--estimate {known[i]}: it has no effect on the motion of {problem.robot.name}; leave it out"
            )
        raise SolverError(
            f"--estimate {known[i]}: it is not observable from the measurements. After {SECONDS:g} s with random "
            f"inputs its standard deviation is still {100 * unknown[i]:.0f} % of that of its bounds; leave it out"
        )
    return [i for i in chosen if i not in hidden]


def uncertainty(problem: Problem, sensing: Sensing, estimated: Sequence[int]) -> Tensor:
    """Standard deviations (e,) of the estimated parameters after a motion of SECONDS, as shares of those at the start.

    The result is the mean over the rollouts of `_after_motion`.
    """
    covariance, unknown = _after_motion(problem, sensing, estimated)
    return (covariance.diagonal(dim1=1, dim2=2) / unknown).sqrt().mean(0)


@lru_cache(maxsize=1)
def remaining_error(problem: Problem, estimated: tuple[int, ...]) -> Tensor:
    """Covariance (e, e) that the filter gives its estimates after a motion of SECONDS, in units of the parameters.

    The sensors are usual encoders. It is nearly constant by then, because the parameters that are not estimated and the
    disturbances keep it up. The result is the mean over the rollouts of `_after_motion`.
    """
    covariance, _ = _after_motion(problem, make_sensing(problem, usual_counts(problem)), estimated)
    return covariance.mean(0)


def _after_motion(problem: Problem, sensing: Sensing, estimated: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Covariances (ROLLOUTS, e, e) of the estimated parameters after a motion of SECONDS, and variances (e,) before.

    The motion starts at random states, and the inputs are random. The robot is the nominal one without delay. The
    covariances are those of the observer with the variances of `sensing`, linearised about the motion.
    """
    generator = torch.Generator(device=problem.device).manual_seed(SEED)
    x = 0.5 * problem.split(problem.sample_domain(ROLLOUTS, generator))[0]
    observer = Observer(problem, replace(sensing, delay=0), estimated)
    first, states, inputs = problem.geometry.size + len(problem.input_limits), [x], list[Tensor]()
    for k in range(max(2, round(SECONDS / problem.control_step)) - 1):
        if k % HELD == 0:
            share = torch.rand(ROLLOUTS, len(problem.input_limits), generator=generator, device=problem.device)
            u = problem.input_of(2.0 * share - 1.0)
        inputs.append(u)
        states.append(integrate_period(problem, states[-1], u).x)
    # The filter's own states would differ from these by its small errors; of these one call takes all periods.
    motion = transition(observer.problem, torch.cat(states[:-1]), torch.cat(inputs))
    covariance = observer.unknown.diag().repeat(ROLLOUTS, 1, 1)
    for x, *parts in zip(states[1:], *(torch.split(part, ROLLOUTS) for part in motion), strict=True):
        predicted = observer.predicted(covariance, Transition(*parts))
        covariance = observer.correction(predicted, x, x[:, : sensing.entries])[1]
    return covariance[:, first:, first:], observer.unknown[first:]


def _effects(problem: Problem) -> Tensor:
    """Largest changes (p,) of the state after a control period by the bounds of each parameter, at random states.

    Shares of the limits of the states' errors. Changes within the rounding of float32 count as zero.
    """
    generator = torch.Generator(device=problem.device).manual_seed(SEED)
    x, _ = problem.split(problem.sample_domain(64, generator))
    share = torch.rand(64, len(problem.input_limits), generator=generator, device=problem.device)
    by_parameter = transition(problem, x, problem.input_of(2.0 * share - 1.0)).by_parameter
    width = problem.theta_bounds[:, 1] - problem.theta_bounds[:, 0]
    return (by_parameter.abs().amax(0) / problem.tangent_limits[:, None]).amax(0) * width


LONGEST = 100  # control periods, largest delay that an observer may know or find


class UnknownDelay:
    """Observer with the methods of `Observer` for N robots with unknown, possibly different delays.

    `sensing.delay` is ignored. longest: largest possible delay in control periods. The work is longest + 1 times the
    work of an `Observer`.
    """

    unlikely: Tensor  # (longest + 1, N) 2 log (likelihood of the most likely delay / likelihood of this one)

    def __init__(self, problem: Problem, sensing: Sensing, longest: int, estimated: Sequence[int] = ()) -> None:
        self.observers = [Observer(problem, replace(sensing, delay=delay), estimated) for delay in range(longest + 1)]
        self.reset()

    def reset(self) -> None:
        """Start again, with an unknown delay."""
        for observer in self.observers:
            observer.reset()
        self.unlikely = torch.zeros(len(self.observers), 1, dtype=torch.float64)

    def know(self, theta: Tensor) -> None:
        """Take parameters theta (p,) or (N, p) for the nominal ones, as in `Observer`."""
        for observer in self.observers:
            observer.know(theta)

    def tell(self, columns: Sequence[int], values: Tensor) -> None:
        """Replace some parameters, as in `Observer`."""
        for observer in self.observers:
            observer.tell(columns, values)

    @property
    def delay(self) -> Tensor:
        """Most likely delay (N,) in control periods."""
        return self.unlikely.argmin(0)

    @property
    def normalised_innovation(self) -> Tensor:
        """Normalised innovation (N,) of the filters with the most likely delay."""
        return self._likeliest([observer.normalised_innovation for observer in self.observers])

    def estimate(self, y: Tensor) -> Tensor:
        """States (N, n) at the time when the next input acts, from the measurement y (N, k)."""
        estimates = [observer.estimate(y) for observer in self.observers]
        unlikely = self.unlikely + torch.stack([observer.surprise for observer in self.observers])
        unlikely = unlikely.nan_to_num(nan=torch.inf)
        self.unlikely = unlikely - unlikely.min(0).values
        return self._likeliest(estimates)

    @property
    def estimated(self) -> list[int]:
        """Indices of the estimated parameters."""
        return self.observers[0].estimated

    @property
    def parameters(self) -> Tensor | None:
        """Parameters (N, p) of the filters with the most likely delay; None for the nominal ones."""
        found = [observer.parameters for observer in self.observers if observer.parameters is not None]
        return self._likeliest(found) if found else None

    def upright(self, x: Tensor) -> Tensor:
        """States (N, n) for the policy, as in `Observer`."""
        return self._likeliest([observer.upright(x) for observer in self.observers])

    def compensate(self, u: Tensor) -> Tensor:
        """Input (N, m) to send so that the policy's input u (N, m) acts, as in `Observer`."""
        return self._likeliest([observer.compensate(u) for observer in self.observers])

    def sent(self, u: Tensor) -> None:
        """Record the input u (N, m) that was sent after the last estimate."""
        for observer in self.observers:
            observer.sent(u)

    def _likeliest(self, results: list[Tensor]) -> Tensor:
        """Rows (N, ...) of the filters' results (N, ...) that belong to the most likely delays."""
        delay = self.delay
        return torch.stack(results)[delay, torch.arange(len(delay))]


def make_observer(
    problem: Problem, sensing: Sensing, longest_delay: int | None = None, estimate: Sequence[str] = ()
) -> Observer | UnknownDelay:
    """Observer for a sensing. With `longest_delay`, in control periods, it estimates the delay up to this one.

    estimate: names of the parameters that it estimates too, or `all`.

    Raises SolverError if a delay exceeds LONGEST, and the errors of `estimated_parameters`.
    """
    if sensing.delay > LONGEST:
        raise SolverError(
            f"an observer predicts the state over the delay of the inputs, here {sensing.delay} control periods; give "
            f"at most {LONGEST}"
        )
    if longest_delay is not None and longest_delay > LONGEST:
        raise SolverError(
            f"a longest delay of {longest_delay} control periods needs as many observers; give at most {LONGEST}"
        )
    estimated = estimated_parameters(problem, sensing, estimate)
    if longest_delay is None:
        return Observer(problem, sensing, estimated)
    return UnknownDelay(problem, sensing, longest_delay, estimated)
