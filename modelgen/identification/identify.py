"""From recordings to parameters with a confidence set: fit, visible directions, refits without each fold, ellipsoid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.confidence import (
    Scores,
    blocks,
    correlation_seconds,
    covariance,
    folds,
    inflation,
    moved,
    quantile,
    scores,
)
from modelgen.identification.fit import Fit, Progress, fit, fit_windows
from modelgen.identification.forecast import Bands, bands, forecasts
from modelgen.identification.identifiability import Directions, Ellipsoid, directions, ellipsoid
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording
from modelgen.identification.starts import settle
from modelgen.identification.unexplained import Misfit, Radii, misfit, radii
from modelgen.identification.windows import Windows

ARRIVED = 0.1  # of the set's half width: a longer Newton step is left only where the search ended before the minimum


@dataclass(frozen=True)
class HeldOut:
    """One fold: recordings that a fit has not used, and the root mean square of its residuals there."""

    recordings: tuple[int, ...]
    error: Array  # (n,), NaN where not measured
    error_of_all: Array  # (n,) of the fit to all recordings, in the same windows
    windows: Windows
    residuals: Array  # (K, N, n) of the fit without these recordings, in the states' units, zero where not measured
    theta: Array  # (p,) of that fit


@dataclass(frozen=True)
class Identified:
    """The result of an identification."""

    model: Model
    whole: Ellipsoid  # of the robot's parameters and the effects
    radii: Radii
    misfit: Misfit  # of the held-out recordings
    widened: float  # how many times the misfit makes the set wider, in the direction where it does most
    condition: float
    residual: Array  # (n,) root mean square, NaN where not measured
    correlation: float  # s
    blocks: int
    inflation: float
    held_out: tuple[HeldOut, ...]
    windows: Windows
    residuals: Array  # (K, N, n) of the fit to all, in the states' units, zero where not measured
    theta: Array  # (p,) the robot's parameters and the effects
    deviations: Array  # (n,) of the residuals; 1 where a state is not measured
    bands: Bands | None  # about the motion predicted; None where no recording is long enough

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The set of the robot's parameters alone, whatever the effects are."""
        return self.whole.projected(len(self.model.robot.parameter_names))


def identify(model: Model, recordings: Sequence[Recording], seconds: float, progress: Progress) -> Identified:
    """Fit windows of `seconds`, and find the set of parameters that the recordings allow. progress: takes a line.

    Raises ModelError for a robot without parameters, for recordings that are too short or depend on no parameter, and
    for a search that has not reached the minimum.
    """
    if len(model.references) == len(model.robot.parameter_names):
        raise ModelError(
            f"`{model.robot.name}` has no parameters to identify: all of them are fixed in its model file."
        )
    bounds, own = model.bounds, len(model.robot.parameter_names)
    half = (bounds[:, 1] - bounds[:, 0]) / 2
    windows, fitted = fit(model, recordings, seconds, progress)
    visible = directions(fitted.settled.sensitivity * half, model.references)
    if not visible.seen.shape[1]:
        raise ModelError("the recorded motion depends on no parameter. Record a motion in which the robot moves.")
    scored = scores(fitted.settled, half[:, None] * visible.seen)
    correlation = correlation_seconds(windows, fitted.settled.residuals)
    block, fold = blocks(windows, correlation), folds(windows)
    C = covariance(scored, block)
    held, changes = _refits(model, windows, fitted, fold, progress)
    factor, count = inflation(scored, block, fold, changes), int(block.max()) + 1
    by_noise = C * factor * quantile(len(C), count)
    unexplained = misfit([(part.windows, part.residuals / fitted.deviations) for part in held], fitted.deviations)
    squared = by_noise + unexplained.excess * np.linalg.pinv(_curvature(scored), hermitian=True)
    _require_arrival(model, fitted, visible, squared, half)
    whole = ellipsoid(fitted.theta, bounds, visible, squared)
    progress("predictions of held-out motion")
    shape = whole.shape[:own, :own]
    ahead = [forecasts(model, recordings, part.theta, fitted.deviations, shape, part.windows) for part in held]
    return Identified(
        model,
        whole,
        radii(model, windows, fitted),
        unexplained,
        float(np.sqrt(np.linalg.eigvals(np.linalg.solve(by_noise, squared)).real.max())),
        visible.condition,
        _error(windows, fitted.settled.residuals * fitted.deviations),
        correlation,
        count,
        factor,
        held,
        windows,
        fitted.settled.residuals * fitted.deviations,
        fitted.theta,
        fitted.deviations,
        bands(ahead),
    )


def _curvature(scored: Scores) -> Array:
    """The curvature of the loss of all windows, (r, r)."""
    return np.asarray(scored.curvature.sum(axis=0))


def _require_arrival(model: Model, fitted: Fit, visible: Directions, squared: Array, half: Array) -> None:
    """Raise ModelError where the search ended before the minimum, in half widths of the set of shape `squared`."""
    step = visible.seen.T @ (fitted.remaining / half)
    left = float(np.sqrt(step @ np.linalg.pinv(squared, hermitian=True) @ step))
    if not left <= ARRIVED:
        index = int(np.argmax(np.abs(fitted.remaining) / half))
        raise ModelError(
            f"the fit has not reached its minimum: its next step is {left:.2g} half widths of the set, and would move "
            f"{model.names[index]} from {fitted.theta[index]:.6g} by {fitted.remaining[index]:.2g}. No set is written. "
            "Write a shorter --window, or narrower bounds in the model file."
        )


def _refits(
    model: Model, windows: Windows, whole: Fit, fold: NDArray[np.intp], progress: Progress
) -> tuple[tuple[HeldOut, ...], list[float]]:
    """For each fold: the fit without it, and how far the predictions of the fold have moved."""
    count, began = int(fold.max()) + 1, time.monotonic()
    held, changes = [], []
    for index in range(count):
        left = (time.monotonic() - began) / index * (count - index) if index else 0.0
        about = f", about {left:.0f} s left" if left >= 1.0 else ""
        progress(f"refit {index + 1} of {count}, without what it is tested on{about}")
        part, change = _held_out(model, windows, whole, fold == index)
        held.append(part)
        changes.append(change)
    return tuple(held), changes


def _held_out(model: Model, windows: Windows, whole: Fit, out: NDArray[np.bool_]) -> tuple[HeldOut, float]:
    """The fit without some windows, its residuals there, and how far the predictions have moved."""
    refit = fit_windows(
        model, windows.chosen(~out), whole.theta, whole.settled.starts[~out], whole.deviations, robust=True
    )
    hidden = windows.chosen(out)
    predicted = settle(model, hidden, whole.settled.starts[out], refit.theta, whole.deviations, robust=True)
    residuals = predicted.residuals * whole.deviations
    change = moved(whole.settled.residuals[:, out], predicted.residuals)
    error_of_all = _error(hidden, whole.settled.residuals[:, out] * whole.deviations)
    owners = tuple(int(owner) for owner in np.unique(hidden.recording))
    return HeldOut(owners, _error(hidden, residuals), error_of_all, hidden, residuals, refit.theta), change


def _error(windows: Windows, residuals: Array) -> Array:
    """Root mean square of residuals (K, N, n) in the states' units, (n,); NaN where nothing was measured."""
    count = (~np.isnan(windows.measured)).sum(axis=(0, 1))
    return np.where(count > 0, np.sqrt((residuals**2).sum(axis=(0, 1)) / np.maximum(count, 1)), np.nan)
