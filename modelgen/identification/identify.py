"""From recordings to parameters with a confidence set, and what the parameters leave unexplained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.confidence import (
    LEVEL,
    Directions,
    Ellipsoid,
    blocks,
    correlation_seconds,
    covariance,
    directions,
    ellipsoid,
    folds,
    inflation,
    moved,
    quantile,
    scores,
)
from modelgen.identification.fit import Fit, Progress, fit, fit_windows, loss, settle, weights
from modelgen.identification.forecast import Bands, bands, forecasts
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording
from modelgen.identification.windows import Windows

SURE = 3.0  # standard deviations of its estimate by which a residual must exceed the sensor's noise
ROUNDING = 1e-12  # of a projection onto what the inputs do not reach: as good as nothing
NAMED = 0.3  # of the variance of a missing force that one cause must explain to be named
REST = 1e-3  # of a velocity's limit: slower than this is at rest


@dataclass(frozen=True)
class Misfit:
    """How much larger residuals are than the noise of the sensors, which is independent from sample to sample."""

    ratio: Array  # (n,) size of the residuals in sizes of the noise; NaN where not measured
    noise: Array  # (n,) standard deviation of the noise, in the states' units; NaN where not measured
    excess: float  # loss of the residuals that the noise does not explain; zero where it explains all


def misfit(parts: Sequence[tuple[Windows, Array]], deviations: Array) -> Misfit:
    """Compare residuals (K, N, n), in units of `deviations` (n,), with their changes from measurement to measurement.

    The noise is independent, so that half of a change's mean square is its variance; the error of a model is smooth and
    cancels. Counts of an encoder are not independent: the noise is at least that of rounding to the smallest change
    that the sensor shows.
    """
    n = len(deviations)
    count, total, change, pairs, least = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for windows, residuals in parts:
        known, changes = ~np.isnan(windows.measured), windows.changes
        both, jumps = ~np.isnan(changes), windows.differences(residuals)
        count += known.sum(axis=(0, 1))
        total += loss(residuals).sum(axis=(0, 1), where=known)
        pairs += both.sum(axis=(0, 1))
        change += loss(jumps / np.sqrt(2)).sum(axis=(0, 1), where=both)
        steps = np.abs(changes) / deviations
        least = np.minimum(least, np.min(steps, axis=(0, 1), where=both & (steps > 1e-6), initial=np.inf))
    rounding = np.where(np.isfinite(least), least, 0.0) ** 2 / 12
    noise = np.maximum(change / np.maximum(pairs, 1), np.minimum(rounding, 1.0))
    excess = total - count * noise
    measured = (count > 0) & (noise > 0)
    ratio = np.sqrt(np.divide(total, count * noise, out=np.full(n, np.nan), where=measured))
    sure = excess > SURE * np.sqrt(count)
    return Misfit(ratio, np.where(measured, np.sqrt(noise) * deviations, np.nan), float(excess[sure].sum()))


@dataclass(frozen=True)
class Radii:
    """Sizes that 95 % of the windows, or samples, stay below."""

    state: Array  # (n,) of what is added to xdot; zero for coordinates, whose rates are exact
    action: Array  # (m,) of what is added to u
    observation: Array  # (n,) of a sensor's repeatability; NaN where the state was not measured
    causes: tuple[str, ...] = ()  # what the missing forces go with, in words


def radii(model: Model, windows: Windows, fit: Fit) -> Radii:
    """Estimate one constant disturbance of the velocities' rates for each window, and split it by the range of B."""
    robot = model.robot
    metadata, v = robot.metadata, robot.metadata.velocities
    rates = slice(metadata.pose, metadata.pose + metadata.nv)  # of the nt numbers
    pushes = np.eye(len(robot.state_names))[:, v]
    settled = settle(model, windows, fit.settled.starts, fit.theta, fit.deviations, robust=True, pushes=pushes)
    J, weight = settled.pushed, weights(settled.residuals, robust=True)
    inverse = np.linalg.pinv(np.einsum("kwia,kwi,kwib->wab", J, weight, J, optimize=True), hermitian=True)
    score = np.einsum("kwia,kwi,kwi->wa", J, weight, settled.residuals, optimize=True)
    push = np.einsum("wab,wb->wa", inverse, score)  # what has to be taken off to make the residual zero
    B = np.asarray(robot.affine_dynamics(settled.starts, fit.theta[: len(robot.parameter_names)])[1])[:, v]
    to_action = np.linalg.pinv(B)
    rest = np.eye(len(B[0])) - B @ to_action
    rest[np.abs(rest) < ROUNDING] = 0.0  # where the inputs reach all that moves, nothing is left for the state
    state = _typical(np.einsum("wab,wb->wa", rest, push), rest @ inverse @ rest.transpose(0, 2, 1))
    action = _typical(np.einsum("wab,wb->wa", to_action, push), to_action @ inverse @ to_action.transpose(0, 2, 1))
    motion = model.simulate(windows, settled.starts, fit.theta).x[..., rates]
    causes = _causes(model, windows, motion, push, np.einsum("wab,wb->wa", to_action, push))
    whole = np.zeros(model.tangent.size)
    whole[rates] = state
    return Radii(whole, action, _repeatability(windows, fit), causes)


def _causes(model: Model, windows: Windows, velocities: Array, push: Array, force: Array) -> tuple[str, ...]:
    """The causes that go with the missing forces, in words.

    velocities: (K, N, q); push: (N, q) of their rates, and force: (N, m) of the inputs, to be taken off. A joint that
    an input drives is judged by the force, any other by the rate.
    """
    robot = model.robot
    lasting = np.concatenate([windows.steps > 0, np.zeros((1, windows.steps.shape[1]), bool)])[..., None]
    samples = np.maximum(lasting.sum(axis=0), 1)

    def mean(values: Array) -> Array:
        return np.asarray((values * lasting[: len(values)]).sum(axis=0) / samples)

    v = robot.metadata.velocities
    names, limits = robot.state_names[v], np.asarray(robot.state_limits)[v]
    rates, signs = mean(velocities), mean(np.tanh(velocities / (REST * limits)))
    driven = {
        robot.metadata.rate(entry.coordinate): index
        for index, entry in enumerate(robot.metadata.inputs)
        if entry.coordinate
    }
    words = []
    for index, name in enumerate(names):
        own = driven.get(v.start + index)
        missing = -(push[:, index] if own is None else force[:, own])
        what = f"the rate of `{name}`" if own is None else f"`{robot.input_names[own]}`"
        causes = {
            f"the sign of `{name}`: state dry friction there, robot.dry_friction": signs[:, index],
            f"`{name}`: state damping there, robot.damp": rates[:, index],
        }
        if own is not None:
            causes["the input itself: its size is another, --estimate gain"] = mean(windows.inputs[..., [own]])[:, 0]
        causes["nothing that changes: a constant force or an offset, --estimate offset"] = np.ones(len(missing))
        shares = {cause: _share(missing, shape) for cause, shape in causes.items()}
        cause = max(shares, key=lambda one: shares[one])
        if shares[cause] > NAMED:
            words.append(f"{100 * shares[cause]:.0f} % of what {what} lacks goes with {cause}")
    return tuple(words)


def _share(missing: Array, cause: Array) -> float:
    """The share of a force's mean square that a cause explains, both (N,)."""
    power = float(missing @ missing) * float(cause @ cause)
    return float(missing @ cause) ** 2 / power if power > 0 else 0.0


def _typical(values: Array, covariance: Array) -> Array:
    """The size that 95 % of the values (N, d) stay below, without the share that is noise of the estimate, (d,)."""
    noise, power = np.einsum("waa->a", covariance) / len(values), (values**2).mean(axis=0)
    share = np.maximum(0.0, 1.0 - noise / np.where(power > 0, power, 1.0)) * (power > 0)
    return np.asarray(np.quantile(np.abs(values), LEVEL, axis=0) * np.sqrt(share))


def _repeatability(windows: Windows, fit: Fit) -> Array:
    """From the differences of neighbouring residuals, in which the model's slow errors cancel, (n,)."""
    both, jumps = ~np.isnan(windows.changes), windows.differences(fit.settled.residuals)
    sizes = [
        np.quantile(np.abs(jumps[..., i][both[..., i]]), LEVEL) / np.sqrt(2) if both[..., i].any() else np.nan
        for i in range(both.shape[2])
    ]
    return np.array(sizes) * fit.deviations


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
    squared = by_noise + unexplained.excess * np.linalg.pinv(scored.curvature.sum(axis=0), hermitian=True)
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
