"""Recordings cut into short windows, each simulated from a start of its own: no window runs over a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.recordings import Recording
from modelgen.loader import CompiledRobot

GAP = 5.0  # a pause this many times the median one is a gap, over which the input is not known
SAMPLES = 8  # fewest rows of a window
SMOOTH = 0.05  # s of measurements behind a first guess of a velocity


@dataclass(frozen=True)
class Windows:
    """N windows of at most K samples; the time comes first. A window that is over has steps of zero and no samples."""

    steps: Array  # (K - 1, N) s
    inputs: Array  # (K - 1, N, m), held over a step
    measured: Array  # (K, N, n), NaN where not measured
    starts: Array  # (N, n), a first guess of the state at the first sample
    recording: NDArray[np.intp]  # (N,)
    begin: Array  # (N,) s, the time of the first sample in its recording
    seconds: float  # the longest window
    period: float  # s between samples, the median
    longest: float = 0.0  # s, of a Runge-Kutta step; 0: that of a training, halved

    @property
    def time(self) -> Array:
        """The time of every sample in its recording, (K, N)."""
        return np.concatenate([self.begin[None], self.begin + np.cumsum(self.steps, axis=0)])

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Windows:
        """The windows with these indices."""
        return Windows(
            self.steps[:, which],
            self.inputs[:, which],
            self.measured[:, which],
            self.starts[which],
            self.recording[which],
            self.begin[which],
            self.seconds,
            self.period,
            self.longest,
        )


def cut(robot: CompiledRobot, recordings: Sequence[Recording], seconds: float, every: float | None = None) -> Windows:
    """Windows of `seconds`, in the order of the recordings and of time. every: s between beginnings, by default such
    that no two windows share a sample. Raises ModelError for a recording without a window."""
    count = robot.metadata.nq
    parts, owners = [], []
    for index, recording in enumerate(recordings):
        chosen = [part for part in _parts(recording, seconds, every) if _enough(recording.states[part, :count])]
        if not chosen:
            raise ModelError(
                f"{recording.path} has no stretch of {seconds:g} s without a gap and with at least {SAMPLES} rows in "
                f"which all positions are measured. Its median period is {np.median(np.diff(recording.time)):.3g} s. "
                f"Record faster or longer, or change --window."
            )
        parts += [(recording, part) for part in chosen]
        owners += [index] * len(chosen)
    length = max(part.stop - part.start for _, part in parts)
    steps = np.zeros((length - 1, len(parts)))
    inputs = np.zeros((length - 1, len(parts), len(robot.input_names)))
    measured = np.full((length, len(parts), len(robot.state_names)), np.nan)
    for place, (recording, part) in enumerate(parts):
        size = part.stop - part.start
        steps[: size - 1, place] = np.diff(recording.time[part])
        inputs[: size - 1, place] = recording.inputs[part][:-1]
        measured[:size, place] = recording.states[part]
    starts = _starts(robot, steps, measured)
    period = float(np.median(np.concatenate([np.diff(each.time) for each in recordings])))
    begin = np.array([recording.time[part.start] for recording, part in parts])
    return Windows(steps, inputs, measured, starts, np.array(owners), begin, seconds, period)


def _parts(recording: Recording, seconds: float, every: float | None) -> Iterator[slice]:
    """Rows of every window; a rest of less than half a window is left out."""
    time = recording.time
    pauses = np.diff(time)
    borders = [0, *(np.flatnonzero(pauses > GAP * np.median(pauses)) + 1), len(time)]
    for begin, end in pairwise(borders):
        first = begin
        while first < end:
            last = int(np.searchsorted(time[:end], time[first] + seconds * (1 + 1e-9), side="right"))
            if last - first >= SAMPLES and time[last - 1] - time[first] >= seconds / 2:
                yield slice(first, last)
            next_begin = time[first] + (every or seconds) * (1 - 1e-9)
            first = last if every is None else max(first + 1, int(np.searchsorted(time[:end], next_begin)))


def _enough(positions: Array) -> bool:
    """Whether every position (K, q) is measured in enough rows."""
    return bool(((~np.isnan(positions)).sum(axis=0) >= SAMPLES).all())


def _starts(robot: CompiledRobot, steps: Array, measured: Array) -> Array:
    """Positions and their rates by a parabola through the first samples of each window; velocities from them.

    States of first order that are not measured start as at the target.
    """
    count, v, window_count = robot.metadata.nq, robot.metadata.velocities, measured.shape[1]
    time = np.concatenate([np.zeros((1, window_count)), np.cumsum(steps, axis=0)])
    states, rates = np.zeros((window_count, measured.shape[2])), np.zeros((window_count, count))
    states[:, v.stop :] = robot.metadata.task.target[v.stop :]
    for window in range(window_count):
        for index in range(count):
            known = np.flatnonzero(~np.isnan(measured[:, window, index]))
            near = known[: max(5, int((time[known, window] <= time[known[0], window] + SMOOTH).sum()))]
            curve = np.polyfit(time[near, window], measured[near, window, index], 2)
            states[window, index], rates[window, index] = curve[2], curve[1]
    # qdot = T(q) v, so T is the derivative of qdot by v; the identity where every velocity is a coordinate's rate.
    transform = np.asarray(robot.jacobians(states)[2])[:, :count, v]
    states[:, v] = np.linalg.solve(transform, rates[..., None])[..., 0]
    first = measured[0, :, count:]
    states[:, count:] = np.where(np.isnan(first), states[:, count:], first)
    return states
