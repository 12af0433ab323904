"""Figures of an identification: held-out motion and its prediction, spectrum of the residual, confidence set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import welch

from modelgen.arrays import Array
from modelgen.identification.forecast import PAST, Bands
from modelgen.identification.identify import HeldOut, Identified
from modelgen.identification.prediction import Outcome
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot

SHOWN = 6.0  # s of a held-out recording
DRAWN = 4  # most parameters in the picture of the set: six pairs
MEASURED, PREDICTED = "0.55", "tab:blue"


def prediction(robot: CompiledRobot, held: HeldOut) -> Figure:
    """Measured and predicted states of the recording in `held` that was predicted worst, and their difference."""
    windows = held.windows
    power = (held.residuals / robot.state_limits) ** 2
    owners = np.unique(windows.recording)
    worst = owners[np.argmax([power[:, windows.recording == each].mean() for each in owners])]
    begin = windows.begin[windows.recording == worst].min()
    chosen = np.flatnonzero((windows.recording == worst) & (windows.begin < begin + SHOWN))
    time, measured = windows.time[:, chosen], windows.measured[:, chosen]
    states = np.flatnonzero(~np.isnan(measured).all(axis=(0, 1)))
    figure = Figure(figsize=(8.0, 2.6 * len(states)), layout="constrained")
    for index, (above, below) in zip(states, figure.subplots(len(states), 2, squeeze=False, sharex=True), strict=True):
        known = ~np.isnan(measured[..., index])
        difference = np.where(known, held.residuals[:, chosen, index], np.nan)
        above.plot(time[known], measured[..., index][known], ".", markersize=3, color=MEASURED, label="measured")
        for number in range(len(chosen)):
            rows = known[:, number]
            predicted = (measured[..., index] + difference)[rows, number]
            above.plot(time[rows, number], predicted, color=PREDICTED, label=None if number else "predicted")
            below.plot(time[rows, number], difference[rows, number], color=PREDICTED)
        state = robot.metadata.states[index]
        above.set(ylabel=f"{state.name} [{state.unit}]")
        below.set(ylabel=f"predicted - measured [{state.unit}]")
        below.axhline(0.0, color=MEASURED, linewidth=0.8)
        above.legend(loc="best")
    for axes in figure.axes[-2:]:
        axes.set(xlabel="time [s]")
    return figure


def forecast(robot: CompiledRobot, bands: Bands) -> Figure:
    """Half widths of the bands about a usual forecast over the time ahead, and the errors of every forecast of held-out
    motion, each divided by its scale."""
    states = np.flatnonzero(~np.isnan(bands.half_width).any(axis=0))
    figure = Figure(figsize=(8.0, 2.6 * len(states)), layout="constrained")
    for index, axes in zip(states, figure.subplots(len(states), 1, squeeze=False, sharex=True).ravel(), strict=True):
        errors, state = bands.largest[..., index], robot.metadata.states[index]
        axes.plot(np.repeat(bands.seconds, errors.shape[1]), errors.ravel(), ".", markersize=3, color=MEASURED)
        axes.plot(bands.seconds, bands.half_width[:, index], color=PREDICTED, label="half width of the band")
        axes.set(ylabel=f"error of {state.name} [{state.unit}]", ylim=(0.0, None))
        axes.legend(loc="upper left")
    figure.axes[-1].set(xlabel="time ahead [s]")
    return figure


def worst(robot: CompiledRobot, recordings: Sequence[Recording], outcomes: Sequence[Outcome]) -> Figure:
    """The worst prediction of every state: what was measured, what was predicted, and the band."""
    figure = Figure(figsize=(8.0, 2.6 * len(outcomes)), layout="constrained")
    for each, axes in zip(outcomes, figure.subplots(len(outcomes), 1, squeeze=False).ravel(), strict=True):
        found, state = each.worst, robot.metadata.states[each.state]
        recording, time = recordings[found.recording], found.begin + found.lead
        shown = (recording.time >= found.begin - PAST) & (recording.time <= time[-1] + 1e-9)
        measured = recording.states[shown, each.state]
        predicted = np.interp(time, recording.time[shown], measured) + found.error
        axes.plot(recording.time[shown], measured, ".", markersize=3, color=MEASURED, label="measured")
        axes.plot(time, predicted, color=PREDICTED, label="predicted")
        band = predicted - found.half_width, predicted + found.half_width
        axes.fill_between(time, *band, color=PREDICTED, alpha=0.2, linewidth=0.0, label="band")
        axes.set(ylabel=f"{state.name} [{state.unit}]", xlabel=f"time in {recording.path.name} [s]")
        axes.legend(loc="best")
    return figure


def spectra(robot: CompiledRobot, found: Identified) -> Figure:
    """Power of the residual over frequency by Welch's method, and of white noise of the same size."""
    windows, figure = found.windows, Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for index, state in enumerate(robot.metadata.states):
        known = ~np.isnan(windows.measured[..., index])
        if not known.any():
            continue
        frequency, power = welched(found.residuals[..., index].T[known.T], windows.period)
        (line,) = axes.loglog(frequency[1:], power[1:], label=f"{state.name} [{state.unit}²/Hz]")
        axes.axhline(2 * windows.period * float(found.residual[index] ** 2), color=line.get_color(), linestyle=":")
    axes.axvline(1 / windows.seconds, color=MEASURED, linestyle="--", label="one window")
    axes.set(xlabel="frequency [Hz]", ylabel="power of the residual")
    axes.legend(loc="best")
    return figure


def welched(series: Array, period: float) -> tuple[Array, Array]:
    """One-sided power density of a residual (K,) that is sampled every `period` s: frequencies, and its square / Hz.

    Its mean is kept: an offset is a part of the residual.
    """
    frequency, power = welch(series, 1 / period, nperseg=min(256, len(series)), detrend=False)
    return np.asarray(frequency), np.asarray(power)


def projections(robot: CompiledRobot, found: Identified) -> Figure:
    """Shadows of the ellipsoid on pairs of parameters, within the declared bounds; the least known parameters first."""
    region, bounds = found.ellipsoid, np.asarray(robot.parameter_bounds)
    parameters, size = robot.metadata.parameters, np.sqrt(np.diag(region.shape))
    widest = np.argsort(-size / np.ptp(bounds, axis=1), kind="stable")[:DRAWN]
    pairs = list(combinations(sorted(widest.tolist()), 2)) or [(0, 0)]
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(2.8 * columns, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, pair in zip(panels, pairs, strict=False):
        outline = shadow(region.centre, region.shape, pair)
        low, high = bounds[list(pair)].T
        axes.fill(*outline, alpha=0.3, color=PREDICTED)
        axes.plot(*region.centre[list(pair)], "+", color=PREDICTED)
        axes.plot(*np.asarray(robot.nominal_parameters)[list(pair)], "x", color=MEASURED)
        least, most = np.maximum(outline.min(axis=1), low), np.minimum(outline.max(axis=1), high)
        margin = 0.15 * np.maximum(most - least, 1e-12)
        axes.set(xlim=(least[0] - margin[0], most[0] + margin[0]), ylim=(least[1] - margin[1], most[1] + margin[1]))
        for edge in (low, high):
            axes.axvline(edge[0], color=MEASURED, linestyle=":")
            axes.axhline(edge[1], color=MEASURED, linestyle=":")
        labels = [f"{parameters[index].name} [{parameters[index].unit or '1'}]" for index in pair]
        axes.set(xlabel=labels[0], ylabel=labels[1])
        axes.locator_params(nbins=4)
    for axes in panels[len(pairs) :]:
        axes.set_axis_off()
    return figure


def shadow(centre: Array, shape: Array, pair: tuple[int, int]) -> Array:
    """The outline (2, 120) of the projection of an ellipsoid on two parameters: the ellipse of their part of shape."""
    index = list(pair)
    sizes, vectors = np.linalg.eigh(shape[np.ix_(index, index)])
    angle = np.linspace(0, 2 * np.pi, 120)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(centre[index][:, None] + vectors @ (np.sqrt(np.maximum(sizes, 0.0))[:, None] * circle))
