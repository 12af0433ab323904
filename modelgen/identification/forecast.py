"""Bands about a forecast of the motion, from the errors of forecasts of held-out recordings.

A forecast begins where the past ends: its start is fitted to the measurements before it, its parameters to the other
recordings, and its inputs are those that were recorded. The half width of a band is an order statistic of the largest
errors in blocks of forecasts, so that it assumes no distribution (S. S. Wilks, "Determination of sample sizes for
setting tolerance limits", Ann. Math. Stat. 12, 1941). Friction, backlash and delays that the model lacks are in it.
Forecasts begin more often than blocks do: their errors are alike within a block, and not between blocks.

A fast motion shows the parameters more than a slow one, and has larger errors. So errors are divided by a scale before
they are compared, and every band is its scale times as wide (V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning
in a Random World, 2005: normalised nonconformity measures). The variance of the scale has two parts: what the model
lacks, and what the confidence set leaves open in this very forecast. In a usual forecast both are as large.

Blocks of one recording may be more alike than others, as one motion is faster than another. Then they say less than so
many independent ones (L. Kish, Survey Sampling, 1965: the design effect), and the bands are wider for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.confidence import LEVEL
from modelgen.identification.fit import Settled, settle
from modelgen.identification.model import Model, Motion
from modelgen.identification.recordings import Recording
from modelgen.identification.windows import SAMPLES, Windows

AHEAD = 0.5  # s of a forecast
PAST, ROWS = 0.15, 10  # s, and samples at least, before a forecast, to which its start is fitted
OFTEN = 0.1  # s between the beginnings of forecasts; a block is AHEAD long
LEADS = 10  # parts of a forecast, each with a half width of its own
ASSURED = 0.9  # probability that the bands of all sensors hold LEVEL of the samples


@dataclass(frozen=True)
class Forecasts:
    """N forecasts of up to AHEAD s: predicted minus measured, NaN where nothing was measured or predicted."""

    lead: Array  # (K, N) s since the forecast's beginning; not above zero in its past
    errors: Array  # (K, N, n)
    spread: Array  # (K, N, n) the most that a prediction moves while the parameters stay in their set, to first order
    recording: NDArray[np.intp]  # (N,)
    begin: Array  # (N,) s in the recording, where the past ends

    @property
    def part(self) -> NDArray[np.intp]:
        """Which of the LEADS parts of its forecast a sample is in, (K, N); less than zero before the first."""
        return np.ceil(self.lead / AHEAD * LEADS - 1e-6).astype(int) - 1

    def largest(self) -> Array:
        """The largest error of every part of a forecast, (LEADS, N, n); NaN where nothing was measured."""
        parts = (np.where((self.part == each)[..., None], np.abs(self.errors), np.nan) for each in range(LEADS))
        return np.stack([np.fmax.reduce(each, axis=0, initial=np.nan) for each in parts])  # of numbers alone

    def scale(self, usual: Array) -> Array:
        """How many times wider than usual a band is, (K, N, n), by the usual spread (LEADS, n) of every part."""
        here = usual[np.clip(self.part, 0, LEADS - 1)]
        share = np.divide(self.spread, here, out=np.ones_like(self.spread), where=here > 0.0)
        return np.sqrt((1.0 + share**2) / 2.0)


@dataclass(frozen=True)
class Bands:
    """Half widths about a forecast."""

    seconds: Array  # (LEADS,) the end of every part of the forecast
    half_width: Array  # (LEADS, n) of one with the usual spread; NaN for a state that is not measured
    spread: Array  # (LEADS, n) the usual one: the median
    blocks: int  # the fewest of all sensors
    confidence: float  # with which all bands hold LEVEL of the blocks, were these independent
    largest: Array  # (LEADS, blocks, n) the errors they are made of, each divided by its scale

    def about(self, found: Forecasts) -> Array:
        """The half width at every sample of forecasts, (K, N, n)."""
        part = np.clip(found.part, 0, LEADS - 1)
        return np.asarray(self.half_width[part] * found.scale(self.spread))


def forecasts(
    model: Model,
    recordings: Sequence[Recording],
    theta: Array,
    deviations: Array,
    shape: Array,
    within: Windows | None = None,
) -> Forecasts:
    """Forecasts at theta (p,), one every OFTEN s. deviations: (n,) of the sensors. shape: that of the ellipsoid of the
    robot's own parameters. within: only in the stretches of these windows. A recording without a stretch that is long
    enough has none."""
    none = np.zeros((0, 0, model.tangent.size))
    nothing = Forecasts(none[..., 0], none, none, np.zeros(0, np.intp), np.zeros(0))
    seconds = needed(model, recordings)
    past = seconds - AHEAD
    usable = [index for index, each in enumerate(recordings) if _is_long(model, each, seconds)]
    if not usable:
        return nothing
    windows = model.cut([recordings[index] for index in usable], seconds, OFTEN)
    windows = replace(windows, recording=np.array(usable)[windows.recording])
    lead = windows.time - windows.begin - past
    lead[1:][windows.steps <= 0] = -past  # a window that is over
    chosen = lead.max(axis=0) > AHEAD * (1 - 1 / LEADS)
    if within is not None:
        chosen &= _inside(windows, within)
    chosen &= _measured_before(windows, lead > 1e-9, model.robot.metadata.pose)
    windows, lead = windows.chosen(chosen), lead[:, chosen]
    if not chosen.any():
        return nothing
    ahead = lead > 1e-9
    rows = int(ahead.argmax(axis=0).max())
    measured = np.where(ahead[..., None], np.nan, windows.measured)
    before = replace(
        windows,
        steps=windows.steps[: rows - 1],
        inputs=windows.inputs[: rows - 1],
        measured=measured[:rows],
        attitudes=tuple((places, q[:rows]) for places, q in windows.attitudes),
    )
    begun = settle(model, before, before.starts, theta, deviations, robust=True)
    motion = model.simulate(windows, begun.starts, theta)
    errors = np.where(ahead[..., None], motion.x - windows.measured, np.nan)
    return Forecasts(lead, errors, _spread(motion, begun, shape), windows.recording, windows.begin + past)


def needed(model: Model, recordings: Sequence[Recording]) -> float:
    """Seconds of a recording that a forecast needs, with the past that it begins from."""
    period = float(np.median(np.concatenate([np.diff(each.time) for each in recordings])))
    return max(PAST, ROWS * period) + model.blind + AHEAD


def _is_long(model: Model, recording: Recording, seconds: float) -> bool:
    """Whether a recording holds a window of so many seconds."""
    try:
        model.cut([recording], seconds, every=np.inf)
    except ModelError:
        return False
    return True


def _spread(motion: Motion, begun: Settled, shape: Array) -> Array:
    """(K, N, n): the start follows the parameters, as it was fitted to the past."""
    own = len(shape)
    by_start = np.einsum("kwij,wja->kwia", motion.dx_dstart, begun.starts_by_theta[..., :own])
    moved = motion.dx_dtheta[..., :own] + by_start
    return np.asarray(np.sqrt(np.maximum(np.einsum("kwia,ab,kwib->kwi", moved, shape, moved, optimize=True), 0.0)))


def _measured_before(windows: Windows, ahead: NDArray[np.bool_], positions: int) -> NDArray[np.bool_]:
    """Whether at least half of the rows before a forecast have every position, and as many as a window needs, (N,)."""
    known = ~np.isnan(windows.measured[..., :positions]) & ~ahead[..., None]
    rows = (~ahead).sum(axis=0) - (windows.steps <= 0).sum(axis=0)  # less those of a window that is over
    return np.asarray((known.sum(axis=0) >= np.maximum(SAMPLES, rows[:, None] / 2)).all(axis=1))


def _inside(windows: Windows, within: Windows) -> NDArray[np.bool_]:
    """Whether a window lies in the stretch from the first to the last window of `within` in the same recording."""
    inside = np.zeros(len(windows.begin), bool)
    for recording in np.unique(within.recording):
        own = within.begin[within.recording == recording]
        begins = windows.begin >= own.min() - 1e-9
        ends = windows.time[-1] <= own.max() + within.seconds + within.period
        inside |= (windows.recording == recording) & begins & ends
    return inside


def bands(parts: Sequence[Forecasts]) -> Bands | None:
    """Bands from the forecasts of every fold; None where there is no forecast."""
    spread = _usual(parts)
    blocks = [_by_block(replace(each, errors=each.errors / each.scale(spread))) for each in parts]
    largest = np.concatenate([each for each, _ in blocks], axis=1)
    recording = np.concatenate([each for _, each in blocks])
    counts = (~np.isnan(largest)).sum(axis=1)
    sensors = counts.max(axis=0) > 0
    if not sensors.any() or not counts[:, sensors].min():
        return None
    share = (1 - ASSURED) / int(sensors.sum())  # of the risk, for each sensor
    half_width = np.full((LEADS, largest.shape[2]), np.nan)
    for part in range(LEADS):
        for state in np.flatnonzero(sensors):
            each = largest[part, :, state]
            sizes = np.sort(each[~np.isnan(each)])
            half_width[part, state] = sizes[rank(len(sizes), share) - 1] * widening(each, recording, share)
    least = int(counts[:, sensors].min())
    risk = float(scipy.stats.binom.sf(rank(least, share) - 1, least, LEVEL)) * int(sensors.sum())
    seconds = AHEAD * np.arange(1, LEADS + 1) / LEADS
    return Bands(seconds, half_width, spread, least, max(0.0, 1 - risk), largest)


def _usual(parts: Sequence[Forecasts]) -> Array:
    """The median spread of every part of a forecast, (LEADS, n); zero for a part without samples."""
    states = parts[0].spread.shape[2]
    usual = np.zeros((LEADS, states))
    for part in range(LEADS):
        rows = np.concatenate([each.spread[each.part == part] for each in parts])
        usual[part] = np.median(rows, axis=0) if len(rows) else 0.0
    return usual


def _by_block(found: Forecasts) -> tuple[Array, NDArray[np.intp]]:
    """The largest errors of the forecasts that begin in the same AHEAD s of a recording, (LEADS, blocks, n), and the
    recordings (blocks,)."""
    sizes = found.largest()
    places = np.stack([found.recording, np.floor(found.begin / AHEAD + 1e-6)], axis=1)
    kinds, owner = np.unique(places, axis=0, return_inverse=True)
    blocks = [np.fmax.reduce(sizes[:, owner.ravel() == each], axis=1) for each in range(len(kinds))]
    return np.stack(blocks, axis=1) if blocks else sizes, kinds[:, 0].astype(np.intp)


def rank(count: int, risk: float) -> int:
    """The least k for which the k-th smallest of `count` errors is below the quantile LEVEL of errors with at most
    this probability; the largest of all where they are too few for that."""
    return min(count, int(scipy.stats.binom.ppf(1 - risk, count, LEVEL)) + 1)


def widening(sizes: Array, recording: NDArray[np.intp], risk: float) -> float:
    """How many times wider a band is for errors (blocks,) that are alike within a recording (blocks,); at least 1.

    One-way random effects in the logarithm of the errors: of blocks that share their recording's effect, so many count
    as independent as the design effect says, and at least as many as there are recordings. The factor is that between
    the tolerance limits of a normal distribution from these and from all blocks. 1 for a single recording, which says
    nothing of others.
    """
    known = sizes > 0.0  # and not NaN
    logs, owner = np.log(sizes[known]), np.unique(recording[known], return_inverse=True)[1]
    count, members = len(logs), np.bincount(owner)
    if len(members) < 2 or count <= len(members):
        return 1.0
    means = np.bincount(owner, logs) / members
    within = float(((logs - means[owner]) ** 2).sum()) / (count - len(members))
    between = float((members * (means - logs.mean()) ** 2).sum()) / (len(members) - 1)
    usual = (count - float((members**2).sum()) / count) / (len(members) - 1)  # members of a recording
    shared = max(0.0, (between - within) / usual)
    variance = shared + within
    if variance == 0.0:
        return 1.0
    effective = count / (1.0 + (usual - 1.0) * shared / variance)
    return float(np.exp((tolerance(effective, risk) - tolerance(count, risk)) * np.sqrt(variance)))


def tolerance(count: float, risk: float) -> float:
    """The k for which the mean of `count` samples of a normal distribution and k of their standard deviations are above
    the distribution's quantile LEVEL with all but this probability.

    By the variance of that sum for many samples. The exact factor, of the noncentral t distribution, has a standard
    deviation from `count` samples alone: for two recordings that would be a band of millions of times the errors.
    """
    z = ndtri(LEVEL)
    return float(z + ndtri(1 - risk) * np.sqrt((1.0 + z**2 / 2.0) / count))
