"""Figures of an identification, and its result as one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import welch

from modelgen import style
from modelgen.arrays import Array
from modelgen.identification.confidence import Ellipsoid, in_words
from modelgen.identification.forecast import PAST, Bands
from modelgen.identification.identified_file import IdentifiedFile
from modelgen.identification.identify import HeldOut, Identified
from modelgen.identification.prediction import PredictedState
from modelgen.identification.recordings import Recording
from modelgen.identification.result import contradictions, misfits, parameter_rows, sentences
from modelgen.loader import CompiledRobot
from modelgen.style import POLICIES, colour
from modelgen.tangent import Tangent

SHOWN = 6.0  # s of a held-out recording
DRAWN = 4  # most parameters in the picture of the set: six pairs
MEASURED, PREDICTED = colour("soft"), POLICIES[0]


def prediction(robot: CompiledRobot, held: HeldOut) -> Figure:
    """Measured and predicted states of the recording in `held` that was predicted worst, and their difference."""
    windows = held.windows
    tangent = Tangent(robot.metadata)
    power = (held.residuals / tangent.limits) ** 2
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
        name, unit, _ = tangent.entries[index]
        above.set(ylabel=f"{name} [{unit}]")
        below.set(ylabel=f"predicted - measured [{unit}]")
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
        errors, (name, unit, _) = bands.largest[..., index], Tangent(robot.metadata).entries[index]
        axes.plot(np.repeat(bands.seconds, errors.shape[1]), errors.ravel(), ".", markersize=3, color=MEASURED)
        axes.plot(bands.seconds, bands.half_width[:, index], color=PREDICTED, label="half width of the band")
        axes.set(ylabel=f"error of {name} [{unit}]", ylim=(0.0, None))
        axes.legend(loc="upper left")
    figure.axes[-1].set(xlabel="time ahead [s]")
    return figure


def worst(robot: CompiledRobot, recordings: Sequence[Recording], outcomes: Sequence[PredictedState]) -> Figure:
    """The worst prediction of every state: what was measured, what was predicted, and the band."""
    tangent = Tangent(robot.metadata)
    turned = {i for _, places in tangent.rotations for i in range(places.start, places.stop)}
    figure = Figure(figsize=(8.0, 2.6 * len(outcomes)), layout="constrained")
    for each, axes in zip(outcomes, figure.subplots(len(outcomes), 1, squeeze=False).ravel(), strict=True):
        found, (name, unit, _) = each.worst, tangent.entries[each.state]
        recording, time = recordings[found.recording], found.begin + found.lead
        shown = (recording.time >= found.begin - PAST) & (recording.time <= time[-1] + 1e-9)
        measured = recording.states[shown, tangent.states[each.state]]
        if each.state in turned:  # the turn from what was measured
            measured = np.where(np.isnan(measured), np.nan, 0.0)
        predicted = np.interp(time, recording.time[shown], measured) + found.error
        axes.plot(recording.time[shown], measured, ".", markersize=3, color=MEASURED, label="measured")
        axes.plot(time, predicted, color=PREDICTED, label="predicted")
        band = predicted - found.half_width, predicted + found.half_width
        axes.fill_between(time, *band, color=PREDICTED, alpha=0.2, linewidth=0.0, label="band")
        axes.set(ylabel=f"{name} [{unit}]", xlabel=f"time in {recording.path.name} [s]")
        axes.legend(loc="best")
    return figure


def spectra(robot: CompiledRobot, found: Identified) -> Figure:
    """Power of the residual over frequency by Welch's method, and of white noise of the same size."""
    windows, figure = found.windows, Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for index, (name, unit, _) in enumerate(Tangent(robot.metadata).entries):
        known = ~np.isnan(windows.measured[..., index])
        if not known.any():
            continue
        frequency, power = welched(found.residuals[..., index].T[known.T], windows.period)
        shade = POLICIES[index % len(POLICIES)]
        axes.loglog(frequency[1:], power[1:], color=shade, label=f"{name} [{unit}²/Hz]")
        axes.axhline(2 * windows.period * float(found.residual[index] ** 2), color=shade, linestyle=":")
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


NAMED = 3  # directions of the set that are listed


def html(robot: CompiledRobot, content: IdentifiedFile, identified: Identified, file: str) -> str:
    """The page; content: that of `file`."""
    held = max(identified.held_out, key=lambda each: float(np.nanmax(each.error / Tangent(robot.metadata).limits)))
    listed = "".join(f"<li>{escape(line)}</li>" for line in least_known(robot, identified.ellipsoid))
    rows = [
        [f"{escape(name)} ({style.unit(unit)})", value, lower, upper, *([escape(remark)] if remark else [])]
        for name, value, lower, upper, unit, remark in parameter_rows(robot, content, 5)
    ]
    files = "\n".join(f"{log.path}  {log.seconds:.3g} s  {log.sha256}" for log in content.recordings)
    body = [
        *(f"<p>{escape(line)}</p>" for line in [*contradictions(robot, content), *misfits(robot, content)]),
        style.table(rows, ["parameter", "value", "lower", "upper"]),
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in sentences(robot, content))}</ul>",
        "<h2>Held-out motion</h2>\n<p>The part with the worst prediction. Every "
        f"window of {identified.windows.seconds:g} s begins at the state that fits it best; the parameters are of the "
        "other parts.</p>",
        style.figure(prediction(robot, held), "predicted and measured states, and their difference, over time"),
        _ahead(robot, content, identified),
        "<h2>What the model leaves unexplained</h2>\n<p>Noise of a sensor has the same power at all frequencies: the "
        "dotted line. A hill is motion that the model lacks. The windows' own starts take away what is slower than "
        "one window.</p>",
        style.figure(spectra(robot, identified), "power of the residual over frequency"),
        f"<h2>The {content.confidence:.0%} set</h2>\n<p>Blue: the set, and + its centre. Grey: x the model file's "
        "values, dotted its bounds. The least known parameters are drawn.</p>",
        style.figure(projections(robot, identified), "projections of the confidence set on pairs of parameters"),
        f"<h2>What to measure next</h2>\n<p>The least known combinations, the widest first:</p>\n<ul>{listed}</ul>\n"
        f"<p><code>modelgen excite {escape(robot.name)} --identified {escape(file)}</code> writes an input that shows "
        "them.</p>",
        f"<h2>Recordings</h2>\n<pre class='words'>{escape(files)}</pre>",
    ]
    return style.document(f"Parameters of {robot.name} from recordings", body)


def _ahead(robot: CompiledRobot, content: IdentifiedFile, identified: Identified) -> str:
    """What was predicted of the motion ahead, where a recording was long enough."""
    ahead = content.prediction
    if identified.bands is None or ahead is None:
        return ""
    picture = style.figure(
        forecast(robot, identified.bands), "errors of predictions and the bands about them, over the time ahead"
    )
    return (
        "<h2>The motion ahead</h2>\n<p>Every prediction begins at the state that fits the measurements just before "
        "it best, by parameters from the other parts. The band grows with what the confidence set leaves open in a "
        "prediction, and is drawn as in a usual one. Grey: the largest error in every twentieth of a second, and "
        f"that band. It holds {ahead.content:.0%} of the samples with confidence {ahead.confidence:.0%}.</p>\n"
        f"{picture}"
    )


def least_known(robot: CompiledRobot, region: Ellipsoid) -> list[str]:
    """The set's longest semi-axes, in units of half of each parameter's range, in words."""
    half = np.ptp(np.asarray(robot.parameter_bounds), axis=1) / 2
    sizes, vectors = np.linalg.eigh(region.shape / np.outer(half, half))
    return [
        f"{in_words(robot.parameter_names, half * vectors[:, index], region.centre)}: known to "
        f"{100 * np.sqrt(max(sizes[index], 0.0)):.3g} % of the declared ranges"
        for index in np.argsort(-sizes)[:NAMED]
    ]
