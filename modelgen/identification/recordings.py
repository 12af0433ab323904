"""A recording of a robot's motion, and its comparison with the model: another unit, sign, zero or frame is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.columns import columns
from modelgen.identification.tables import ROWS, Table, quantities, read_table
from modelgen.metadata import RATE, TIME, Metadata, Rotation, State
from modelgen.tangent import Tangent, turn_between

BEYOND = 10.0  # a value this many times its limit is in another unit
ALIKE, FACTOR = 0.8, 2.0  # correlation of a velocity with its position's slope above which their ratio must be below
SPAN = 0.1  # s over which a coordinate's mean rate is taken, so that the sensor's noise does not count
INVERSE = np.array([1.0, -1.0, -1.0, -1.0])  # of a rotation: these times its quaternion
OFF_SPHERE = 0.02  # a quaternion whose length differs from one by more is no rotation
#: Usual other units of a quantity by its unit in the model file: what to append, its factor, its name.
OTHERS = {
    "rad": (("*pi/180", math.pi / 180, "degrees"), ("*2*pi/4096", math.pi / 2048, "counts of 4096 a turn")),
    "rad/s": (("*pi/180", math.pi / 180, "degrees"), ("*2*pi/60", math.pi / 30, "turns a minute")),
    "1": (("/100", 0.01, "per cent"),),
    "m": (("*0.01", 0.01, "centimetres"), ("*0.001", 0.001, "millimetres")),
    "": (("*0.01", 0.01, "hundredths"), ("*0.001", 0.001, "thousandths")),
}


@dataclass(frozen=True)
class Recording:
    """One file. The input of a row is held until the next row."""

    path: Path
    sha256: str  # of the file
    time: Array  # (K,) s, increasing
    states: Array  # (K, n), NaN where not measured; angles that wrap are unwrapped, quaternions have length one
    inputs: Array  # (K, m)


def read_all(paths: Sequence[Path], pairs: Sequence[str], robot: Metadata) -> list[Recording]:
    """The recordings in several files. pairs: as in `columns`.

    Raises ModelError as `columns` and `read` do, for no file, and for two files with the same content.
    """
    if not paths:
        raise ModelError(
            f"no recording is named: the command needs LOG.csv after the robot, as in `{robot.name} a.csv b.csv`."
        )
    where = columns(pairs, robot)
    recordings = [read(path, robot, where) for path in paths]
    hashes = [recording.sha256 for recording in recordings]
    for index, recording in enumerate(recordings):
        if recording.sha256 in hashes[:index]:
            same = recordings[hashes.index(recording.sha256)].path
            raise ModelError(f"{recording.path} has the same content as {same}. Name it once.")
    return recordings


def read(path: Path, robot: Metadata, where: Mapping[str, str]) -> Recording:
    """The recording in a file. where: expressions by quantity, as `columns` gives them.

    The columns of velocities and states of first order may be absent, and the cells of states empty. Raises ModelError
    for a file that cannot be read, a missing column, a row with more cells than the header, a cell without a number, a
    time that does not increase, too few rows, values that must be in another unit, and an angle with limits that wraps.
    """
    table = read_table(path)
    values = quantities(table, robot, where)
    missing = np.full(len(table.rows), np.nan)
    states = np.stack([values.get(state.name, missing) for state in robot.states], axis=1)
    inputs = np.array([values[entry.name] for entry in robot.inputs]).reshape(-1, len(table.rows)).T
    recording = Recording(path, table.sha256, values[TIME], states, inputs)
    for rotation in robot.rotations:
        _normalise(table, states[:, rotation.quaternion], rotation.name)
    _check_turns(table, recording, robot)
    _check_units(recording, robot, where)  # before degrees are unwrapped as if they were radians
    for index, state in enumerate(robot.states):
        if state.continuous:
            states[:, index] = _unwrapped(states[:, index])
    for rotation in robot.rotations:
        _check_frame(recording, rotation)
    _check_rates(recording, robot, where)
    return recording


def _normalise(table: Table, quaternions: Array, name: str) -> None:
    """Scale quaternions (K, 4) to length one, in place; NaN where one entry was not measured.

    Raises ModelError for one that is no rotation.
    """
    length = np.linalg.norm(quaternions, axis=1)
    bad = np.flatnonzero(np.abs(length - 1.0) > OFF_SPHERE)
    if len(bad):
        raise ModelError(
            f"the quaternion of `{name}` has the length {length[bad[0]]:.4g}, and that of a rotation is 1. Give "
            f"{name}_qw, {name}_qx, {name}_qy and {name}_qz the columns of w, x, y and z by --columns.",
            table.place(int(bad[0])),
        )
    quaternions /= length[:, None]


def _check_turns(table: Table, recording: Recording, robot: Metadata) -> None:
    """Raise ModelError for an angle with limits whose sensor wraps: it jumps by a turn, and the joint cannot have moved
    by half of one since the row before."""
    for index, state in enumerate(robot.states):
        rate = robot.rate(state.name)
        if rate is None or state.continuous or state.unit != "rad":
            continue
        known = np.flatnonzero(~np.isnan(recording.states[:, index]))
        moved = robot.states[rate].limit * np.diff(recording.time[known])
        apart = np.abs(np.abs(np.diff(recording.states[known, index])) - 2 * np.pi)
        wrapped = np.flatnonzero((apart <= moved) & (moved < np.pi))
        if len(wrapped):
            raise ModelError(
                f"`{state.name}` jumps by a turn: its sensor wraps. An angle with limits is counted from one zero on. "
                "Unwrap the column before, by numpy.unwrap, or write continuous=True in the model file if the joint "
                "turns without end.",
                table.place(int(known[wrapped[0] + 1])),
            )


def _unwrapped(angle: Array) -> Array:
    """An angle without jumps of a turn; NaN stays where it was not measured."""
    result, known = angle.copy(), ~np.isnan(angle)
    result[known] = np.unwrap(angle[known])
    return result


def _check_units(recording: Recording, robot: Metadata, where: Mapping[str, str]) -> None:
    """Raise ModelError for values far beyond the model's limits, the usual sign of another unit."""
    largest = {state.name: _largest(recording.states[:, i]) for i, state in enumerate(robot.states)}
    largest |= {entry.name: _largest(recording.inputs[:, i]) for i, entry in enumerate(robot.inputs)}
    bounded = [each for i, each in enumerate(robot.states) if not each.continuous and i not in robot.turning]
    limits = [(each.name, each.limit, each.unit) for each in bounded]
    limits += [(each.name, max(abs(each.lower), abs(each.upper)), each.unit) for each in robot.inputs]
    for name, limit, unit in limits:
        if largest[name] > BEYOND * limit:
            raise _other_unit(recording, where[name], name, name, largest[name], limit, unit)
    for position, rate, slope in _slopes(recording, robot):
        speed, text = _largest(slope), where.get(position, position)
        if speed > BEYOND * rate.limit and position in where:
            raise _other_unit(recording, text, position, f"{position}'s rate", speed, rate.limit, rate.unit)


def _check_rates(recording: Recording, robot: Metadata, where: Mapping[str, str]) -> None:
    """Raise ModelError for a column of a velocity that follows the slope of its position by another factor than 1."""
    names = [state.name for state in robot.states]
    for position, rate, slope in _slopes(recording, robot):
        mean = _means(recording.time, recording.states[:, names.index(rate.name)])
        known = np.isfinite(slope) & np.isfinite(mean)
        if known.sum() < ROWS or not slope[known].std() > 0.0 < mean[known].std():
            continue
        alike = float(np.corrcoef(slope[known], mean[known])[0, 1])
        factor = alike * float(mean[known].std() / slope[known].std())
        if abs(alike) > ALIKE and not 1 / FACTOR < factor < FACTOR:
            text = _bracketed(where[rate.name])
            raise ModelError(
                f"{recording.path}: `{rate.name}`, read from `{where[rate.name]}`, is {factor:.3g} times the slope of "
                f"`{position}`. Convert it, for example --columns {rate.name}={text}*-1 for the other sign, or "
                f"{rate.name}={text}*pi/180 for degrees; or correct `{position}`."
            )


def _check_frame(recording: Recording, rotation: Rotation) -> None:
    """Raise ModelError for a rotation whose measured rates are those of its inverse, or in the frame before it."""
    time, q = recording.time, recording.states[:, rotation.quaternion]
    first, last = _spans(time)
    rates = np.stack([_means(time, each) for each in recording.states[:, rotation.speeds].T], axis=1)
    away = turn_between(q[first] * INVERSE, q[last] * INVERSE)[0] / (time[last] - time[first])[:, None]
    known = np.isfinite(rates).all(axis=1) & np.isfinite(away).all(axis=1)
    if known.sum() < ROWS:
        return
    own = turn_between(q[first], q[last])[0] / (time[last] - time[first])[:, None]
    size = float(np.square(rates[known]).sum())
    off = [float(np.square((rates - slope)[known]).sum()) for slope in (own, away, -away)]
    if size == 0.0 or min(off[1:]) > (1.0 - ALIKE) * size or off[0] < 0.5 * size:
        return
    columns = " ".join(f"{rotation.name}_q{axis}=COLUMN*-1" for axis in "xyz")
    found = f"is the inverse of what it should be. Write --columns {columns}"
    if off[2] < off[1]:
        found = "is right, and its rates are about the axes of the frame before it. Turn them into the moved frame"
    raise ModelError(
        f"{recording.path}: the quaternion of `{rotation.name}` {found}. It maps the moved frame to the frame before "
        "it, and the rates are about the axes of the moved frame."
    )


def _slopes(recording: Recording, robot: Metadata) -> list[tuple[str, State, Array]]:
    """Name, state of the rate, and mean rates over SPAN of every coordinate whose rate is an entry of the state, and of
    every turn of a rotation."""
    tangent, (first, last) = Tangent(robot), _spans(recording.time)
    states, places = tangent.plain
    changes = np.empty((len(first), tangent.size))
    changes[:, places] = recording.states[last][:, states] - recording.states[first][:, states]
    for rotation, turned in tangent.rotations:
        q = recording.states[:, rotation.quaternion]
        changes[:, turned] = turn_between(q[first], q[last])[0]
    slopes = changes / (recording.time[last] - recording.time[first])[:, None]
    rates = {state.name: state for state in robot.states[robot.velocities]}
    moving = zip(tangent.names[: robot.pose], slopes.T, strict=False)
    return [(name, rates[f"{name}{RATE}"], slope) for name, slope in moving if f"{name}{RATE}" in rates]


def _largest(values: Array) -> float:
    """The size that one value in twenty exceeds, zero where there are no values: an outlier is no other unit."""
    known = np.abs(values[~np.isnan(values)])
    return float(np.quantile(known, 0.95)) if len(known) else 0.0


def _spans(time: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows at which a span of SPAN begins and ends."""
    later = np.searchsorted(time, time + SPAN)
    first = np.flatnonzero(later < len(time))
    return first, later[first]


def _means(time: Array, values: Array) -> Array:
    """Means over SPAN, of the same rows as `_slopes`, by the trapezoidal rule."""
    pieces = np.diff(time) * (values[1:] + values[:-1]) / 2
    missing = np.concatenate([[0], np.cumsum(np.isnan(pieces))])
    areas = np.concatenate([[0.0], np.cumsum(np.nan_to_num(pieces))])
    first, last = _spans(time)
    means = (areas[last] - areas[first]) / (time[last] - time[first])
    return np.asarray(np.where(missing[last] > missing[first], np.nan, means))


def _bracketed(text: str) -> str:
    """An expression to which a factor may be appended."""
    return f"({text})" if re.search(r"[-+]", text) else text


def _other_unit(
    recording: Recording, text: str, name: str, what: str, value: float, limit: float, unit: str
) -> ModelError:
    """The mistake of `text`, the expression of the quantity `name`: `what` reaches a value far beyond its limit."""
    usual = OTHERS.get(unit.removesuffix("/s") if what != name else unit, OTHERS[""])
    fitting = [each for each in usual if value * each[1] <= limit] or usual
    ways = " or ".join(f"--columns {name}={_bracketed(text)}{append} for {words}" for append, _, words in fitting)
    return ModelError(
        f"{recording.path}: {what} reaches {value:.4g}{f' {unit}' if unit != '1' else ''}, more than {BEYOND:g} times "
        f"its limit of {limit:.4g} in the model file. `{text}` seems to be in another unit. Convert it: {ways}."
    )
