"""Fit the parameters to windows: bounded, robust least squares over theta, the starts of the windows following."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import chi

from modelgen.errors import ModelError
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording
from modelgen.identification.starts import ROBUST, Settled, cost, settle
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]
Progress = Callable[[str], None]

SHORT = 4  # the first fit's windows are this many times shorter: short motions are nearly linear in theta
TOLERANCE = 1e-8  # of the loss; of half of a parameter's range
EDGE = 1e-6  # of half of a range: the search begins at least this far within the bounds
PULL = 1.0  # standard deviations for half of a range: as much as the declared bounds say, once for all samples
FLOOR = 1e-9  # a sensor deviates by at least this share of the state's limit: noiseless data has no scale of its own
MOST = 0.8  # of the residuals: their size gives the deviation
REFITS = 3  # the deviations of the sensors are estimated from the residuals, and the residuals depend on them


@dataclass(frozen=True)
class Fit:
    """Parameters that fit the windows best."""

    theta: Array  # (p,)
    deviations: Array  # (n,) standard deviations of the residuals; 1 where a state is not measured
    settled: Settled


def fit(model: Model, recordings: Sequence[Recording], seconds: float, progress: Progress) -> tuple[Windows, Fit]:
    """Windows of `seconds`, and the fit to them: first to shorter windows and by squares, then with a robust loss.

    Raises ModelError where the recordings cannot be cut into windows or no motion of the model stays finite.
    """
    short = _shortest(model, recordings, seconds)
    progress(f"first fit, {short.steps.shape[1]} windows of {short.seconds:.3g} s")
    deviations = _first_deviations(model.robot, short)
    short = model.resolved(short, short.starts, model.nominal, deviations)
    found = fit_windows(model, short, model.nominal, short.starts, deviations, robust=False)
    windows = model.cut(recordings, seconds)
    theta, starts = found.theta, windows.starts
    deviations = _deviations(model.robot, windows, found.settled.residuals * deviations, short)
    for number in range(REFITS):
        progress(f"fit {number + 1} of {REFITS}, {windows.steps.shape[1]} windows of {seconds:g} s")
        windows = model.resolved(windows, starts, theta, deviations)
        found = fit_windows(model, windows, theta, starts, deviations, robust=True)
        theta, starts = found.theta, found.settled.starts
        residuals = found.settled.residuals * deviations
        last, deviations = deviations, _deviations(model.robot, windows, residuals, windows)
        if np.allclose(last, deviations, rtol=0.02):
            break
    return windows, found


def fit_windows(model: Model, windows: Windows, theta: Array, starts: Array, deviations: Array, robust: bool) -> Fit:
    """Fit from theta (p,) and starts (N, n), deviations (n,) given. Raises ModelError where a motion is not finite.

    Combinations that the motion hardly shows stay near the model file's values: a fit that leaves them to noise ends at
    some bound.
    """
    lower, upper = model.bounds.T
    half = (upper - lower) / 2
    first = np.clip(theta, lower + EDGE * half, upper - EDGE * half)
    best = settle(model, windows, starts, theta, deviations, robust)
    if not np.isfinite(best.sensitivity).all():
        raise ModelError(
            f"the motion of `{model.robot.name}` does not stay finite over windows of {windows.seconds:g} s from the "
            f"measured states. Compare units and signs of the columns with the model file, or write a smaller --window."
        )
    last, at, last_at = best, theta, theta

    def evaluated(z: Array) -> Settled:
        nonlocal best, at, last, last_at
        new = first + half * z
        if not np.array_equal(new, last_at):
            found = settle(model, windows, best.starts + best.starts_by_theta @ (new - at), new, deviations, robust)
            last, last_at = found, new
            # The starts of a step that was too long lead nowhere: what comes next starts from the best.
            better = cost(found.residuals, robust).sum() <= cost(best.residuals, robust).sum()
            if better and np.isfinite(found.sensitivity).all():
                best, at = found, new
        return last

    known = ~np.isnan(windows.measured)
    usual, pull = (model.nominal - first) / half, PULL * np.eye(len(theta))
    solution = least_squares(
        lambda z: np.concatenate([evaluated(z).residuals[known], PULL * (z - usual)]),
        np.zeros(len(theta)),
        jac=lambda z: np.concatenate([evaluated(z).sensitivity[known] * half, pull]),
        bounds=((lower - first) / half, (upper - first) / half),
        loss="soft_l1" if robust else "linear",
        f_scale=ROBUST if robust else 1.0,
        xtol=TOLERANCE,
        ftol=TOLERANCE,
        gtol=TOLERANCE,
        max_nfev=60,
    )
    return Fit(first + half * solution.x, deviations, evaluated(solution.x))


def _shortest(model: Model, recordings: Sequence[Recording], seconds: float) -> Windows:
    """Shorter windows for the first fit, where sampling and delays leave enough; else the windows themselves."""
    try:
        return model.cut(recordings, min(seconds, max(seconds / SHORT, model.least_seconds)))
    except ModelError:
        return model.cut(recordings, seconds)


def _first_deviations(robot: CompiledRobot, windows: Windows) -> Array:
    """Of the measurements from a straight line through their neighbours, (n,)."""
    bend = windows.measured[1:-1] - (windows.measured[:-2] + windows.measured[2:]) / 2
    return _floored(robot, windows, spread_of(bend, ~np.isnan(bend)))


def _deviations(robot: CompiledRobot, windows: Windows, residuals: Array, of: Windows) -> Array:
    """Of the residuals (K, N, n) of the windows `of`, (n,)."""
    return _floored(robot, windows, spread_of(residuals, ~np.isnan(of.measured)))


def spread_of(values: Array, known: NDArray[np.bool_]) -> Array:
    """The standard deviation of every state, (n,), by the size that most are below: outliers do not move it much, and
    nor does a joint that stands still for most of a recording, which the median follows."""
    sizes = [np.abs(values[..., i][known[..., i]]) for i in range(values.shape[2])]
    return np.array([np.quantile(size, MOST) / chi.ppf(MOST, 1) if len(size) else 0.0 for size in sizes])


def _floored(robot: CompiledRobot, windows: Windows, deviations: Array) -> Array:
    """At least a share of the limits; 1 where a state is not measured."""
    measured = ~np.isnan(windows.measured).all(axis=(0, 1))
    return np.where(measured, np.maximum(deviations, FLOOR * np.asarray(robot.state_limits)), 1.0)
