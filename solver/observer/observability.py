"""Choice of the parameters that an observer estimates, and whether the measurements show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.observer.observer import Observer, transition
from solver.observer.sensing import Sensing
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

ALL = "all"  # in place of names: every parameter that has bounds and is observable
SECONDS, ROLLOUTS, SEED = 2.0, 8, 0  # of the simulated motion in which an observable parameter shows itself
HELD = 10  # control periods for which an input of this motion is held
UNKNOWN = 0.9  # share of a parameter's standard deviation that is left after the motion if it is not observable


def estimated_parameters(problem: Problem, sensing: Sensing, names: Sequence[str]) -> list[int]:
    """Indices of the parameters to estimate, from their names or from `all`, in the order of theta.

    Raises SolverError for an unknown name, and for a parameter without bounds, without effect on the motion, or whose
    estimate stays as uncertain as its bounds in a motion with random inputs.
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
    hidden = [i for i in chosen if i in idle or unknown[i] > UNKNOWN]
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

    The motion starts at random states, and the inputs are random. The result is the mean over ROLLOUTS motions of the
    nominal robot without delay, whose observer has exact measurements and the variances of `sensing`.
    """
    generator = torch.Generator(device=problem.device).manual_seed(SEED)
    x = 0.5 * problem.split(problem.sample_domain(ROLLOUTS, generator))[0]
    observer = Observer(problem, replace(sensing, delay=0), estimated)
    first = problem.geometry.size + len(problem.input_limits)
    for k in range(max(2, round(SECONDS / problem.control_step))):
        if k % HELD == 0:
            share = torch.rand(ROLLOUTS, len(problem.input_limits), generator=generator, device=problem.device)
            u = problem.input_of(2.0 * share - 1.0)
        observer.estimate(x[:, : sensing.entries])
        observer.sent(u)
        x = integrate_period(problem, x, u).x
    left = observer.covariance.diagonal(dim1=1, dim2=2)[:, first:] / observer.unknown[first:]
    return left.sqrt().mean(0)


def _effects(problem: Problem) -> Tensor:
    """Largest changes (p,) of the state after a control period by the bounds of each parameter, at random states.

    Shares of the limits of the states' errors. A change within the rounding of float32 is none.
    """
    generator = torch.Generator(device=problem.device).manual_seed(SEED)
    x, _ = problem.split(problem.sample_domain(64, generator))
    share = torch.rand(64, len(problem.input_limits), generator=generator, device=problem.device)
    by_parameter = transition(problem, x, problem.input_of(2.0 * share - 1.0)).by_parameter
    width = problem.theta_bounds[:, 1] - problem.theta_bounds[:, 0]
    return (by_parameter.abs().amax(0) / problem.tangent_limits[:, None]).amax(0) * width
