"""Recordings cut into short windows. Each is simulated from a start of its own, and none contains a gap."""

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
from modelgen.tangent import Tangent, turn_between

GAP = 5.0  # a pause this many times the median one is a gap, over which the input is not known
SAMPLES = 8  # fewest rows of a window
SMOOTH = 0.05  # s of measurements behind a first guess of a velocity


@dataclass(frozen=True)
class Windows:
    """N windows of at most K samples, time first. Shorter windows end with steps of 0 s and samples of NaN."""

    steps: Array  # (K - 1, N) s
    inputs: Array  # (K - 1, N, m), held over a step
    measured: Array  # (K, N, nt), NaN where not measured; zero for a measured rotation
    starts: Array  # (N, n), a first guess of the state at the first sample
    recording: NDArray[np.intp]  # (N,)
    begin: Array  # (N,) s, the time of the first sample in its recording
    seconds: float  # the longest window
    period: float  # s between samples, the median
    longest: float = 0.0  # s, of a Runge-Kutta step; 0: that of a training, halved
    attitudes: tuple[tuple[slice, Array], ...] = ()  # of each rotation: its place in nt, measured quaternions (K, N, 4)

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
            tuple((places, q[:, which]) for places, q in self.attitudes),
        )

    @property
    def order(self) -> NDArray[np.intp]:
        """Samples (K, N, nt) with a measurement, in the order of time, and then those without."""
        return np.argsort(np.isnan(self.measured), axis=0, kind="stable")

    def differences(self, values: Array) -> Array:
        """Differences (K - 1, N, nt) of values (K, N, nt) from measurement to measurement, without meaning after the
        last one."""
        result: Array = np.diff(np.take_along_axis(values, self.order, axis=0), axis=0)
        return result

    @property
    def changes(self) -> Array:
        """Changes from measurement to measurement, (K - 1, N, nt); NaN after the last one."""
        order, result = self.order, self.differences(self.measured)
        for places, q in self.attitudes:
            q = np.take_along_axis(q, order[..., [places.start]], axis=0)
            result[..., places] += turn_between(q[:-1], q[1:])[0]
        return result


def cut(robot: CompiledRobot, recordings: Sequence[Recording], seconds: float, every: float | None = None) -> Windows:
    """Windows of `seconds`, in the order of the recordings and of time. every: s between beginnings, by default such
    that no two windows share a sample. Raises ModelError for a recording without a window."""
    count = robot.metadata.nq
    parts, owners = [], []
    for index, recording in enumerate(recordings):
        known = ~np.isnan(recording.states[:, :count])
        chosen = [p for p in _parts(recording, seconds, every) if (known[p].sum(axis=0) >= SAMPLES).all()]
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
    recorded = np.full((length, len(parts), len(robot.state_names)), np.nan)
    for place, (recording, part) in enumerate(parts):
        size = part.stop - part.start
        steps[: size - 1, place] = np.diff(recording.time[part])
        inputs[: size - 1, place] = recording.inputs[part][:-1]
        recorded[:size, place] = recording.states[part]
    starts = _starts(robot, steps, recorded)
    period = float(np.median(np.concatenate([np.diff(each.time) for each in recordings])))
    begin = np.array([recording.time[part.start] for recording, part in parts])
    measured, attitudes = _compared(robot, recorded)
    return Windows(steps, inputs, measured, starts, np.array(owners), begin, seconds, period, attitudes=attitudes)


def _compared(robot: CompiledRobot, recorded: Array) -> tuple[Array, tuple[tuple[slice, Array], ...]]:
    """`measured` and `attitudes` of a `Windows` from recorded states (K, N, n)."""
    tangent, attitudes = Tangent(robot.metadata), []
    measured, (states, places) = np.zeros((*recorded.shape[:2], tangent.size)), tangent.plain
    measured[..., places] = recorded[..., states]
    for rotation, turned in tangent.rotations:
        q = recorded[..., rotation.quaternion]
        known = ~np.isnan(q).any(axis=-1, keepdims=True)
        attitudes.append((turned, np.where(known, q, [1.0, 0.0, 0.0, 0.0])))
        measured[..., turned] = np.where(known, 0.0, np.nan)
    return measured, tuple(attitudes)


def _parts(recording: Recording, seconds: float, every: float | None) -> Iterator[slice]:
    """Rows of every window. A remainder shorter than half a window is left out."""
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


def _starts(robot: CompiledRobot, steps: Array, recorded: Array) -> Array:
    """Positions and their rates by a parabola through the first samples of each window; velocities from them.

    Of a rotation, it goes through its turns from the first one. States of first order that are not measured start as at
    the target.
    """
    metadata, tangent, window_count = robot.metadata, Tangent(robot.metadata), recorded.shape[1]
    v, time = metadata.velocities, np.concatenate([np.zeros((1, window_count)), np.cumsum(steps, axis=0)])
    states, rates = np.zeros((window_count, recorded.shape[2])), np.zeros((window_count, metadata.pose))
    states[:, v.stop :] = metadata.task.target[v.stop :]
    for window in range(window_count):
        begins, errors = _errors(tangent, recorded[:, window])
        curves = np.array([_parabola(time[:, window], errors[:, index]) for index in range(metadata.pose)])
        moved = np.zeros(tangent.size)
        moved[: metadata.pose], rates[window] = curves.T
        states[window, : v.start] = tangent.moved(begins, moved)[: v.start]
    # The errors of qdot are T(q) v, so T is their derivative by v; the identity where every velocity is a rate. Wheels
    # that roll leave fewer velocities, ignored coordinates more.
    transform = tangent.projection(states)[:, : metadata.pose] @ np.asarray(robot.jacobians(states)[2])[:, :, v]
    states[:, v] = (np.linalg.pinv(transform) @ rates[..., None])[..., 0]
    first = recorded[0, :, v.start :]
    states[:, v.start :] = np.where(np.isnan(first), states[:, v.start :], first)
    return states


def _errors(tangent: Tangent, recorded: Array) -> tuple[Array, Array]:
    """A state (n,) with the first measured rotations and zeros, and the errors (K, nt) of recorded states from it."""
    begins, (states, places) = np.zeros(recorded.shape[1]), tangent.plain
    errors = np.zeros((len(recorded), tangent.size))
    errors[:, places] = recorded[:, states]
    for rotation, turned in tangent.rotations:
        q = recorded[:, rotation.quaternion]
        begins[rotation.quaternion] = q[np.flatnonzero(~np.isnan(q).any(axis=1))[0]]
        errors[:, turned] = turn_between(begins[rotation.quaternion], q)[0]
    return begins, errors


def _parabola(time: Array, values: Array) -> Array:
    """Value and slope (2,) at the window's beginning of a parabola through the first measured samples (K,)."""
    known = np.flatnonzero(~np.isnan(values))
    near = known[: max(5, int((time[known] <= time[known[0]] + SMOOTH).sum()))]
    return np.polyfit(time[near], values[near], 2)[:0:-1]
