"""A recording of a robot's motion, read from a CSV file. Every mistake in the file is told in one paragraph."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modelgen.commandline.numbers import number
from modelgen.errors import ModelError, Place, suggestion
from modelgen.metadata import TIME, Metadata

Array = NDArray[np.float64]

ROWS = 10  # fewest rows of a recording
BEYOND = 10.0  # a value this many times its limit is in another unit
ALIKE, FACTOR = 0.8, 2.0  # correlation of a velocity with its position's slope above which their ratio must be below
SPAN = 0.1  # s over which a coordinate's mean rate is taken, so that the sensor's noise does not count


@dataclass(frozen=True)
class Column:
    """Where a quantity stands in a file: the header of its column; value * factor + offset is in SI units."""

    header: str
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Recording:
    """One file. The input of a row is held until the next row."""

    path: Path
    sha256: str  # of the file
    time: Array  # (K,) s, increasing
    states: Array  # (K, n), NaN where not measured; angles that wrap are unwrapped
    inputs: Array  # (K, m)


def columns(pairs: Sequence[str], robot: Metadata) -> dict[str, Column]:
    """The column of `time`, every state and every input, by default of the same name; pairs:
    NAME=COLUMN[*FACTOR][+OFFSET].

    Raises ModelError for a name that the robot does not have and for a factor that is not a number.
    """
    names = [TIME, *(state.name for state in robot.states), *(entry.name for entry in robot.inputs)]
    found = {name: Column(name) for name in names}
    given: dict[str, str] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in names or not text:
            raise ModelError(
                f"--columns {pair} names no quantity of `{robot.name}` and its column.{suggestion(name, names)} Write "
                f"--columns {names[1]}=COLUMN, {names[1]}=COLUMN*0.001 to convert a unit, or {names[1]}=COLUMN+pi to "
                f"move its zero; there are {', '.join(names)}."
            )
        if name in given:
            raise ModelError(f"--columns names `{name}` twice: {given[name]} and {pair}. Name it once.")
        given[name] = pair
        text, offset = _offset(name, text)
        header, star, factor = text.rpartition("*")
        try:
            scale = number("--columns", name, factor) if star else 1.0
        except ModelError:
            scale = 0.0
        if scale == 0.0:
            raise ModelError(
                f"--columns {pair} has {factor or 'nothing'} behind its star. Write the factor that makes SI units of "
                f"the column, such as {name}={header}*0.001 or *pi/180."
            )
        found[name] = Column(header if star else text, scale, offset)
    readers: dict[str, str] = {}
    for name, column in found.items():
        first = readers.setdefault(column.header, name)
        if first != name:
            raise ModelError(
                f"the column `{column.header}` is read as `{first}` and as `{name}`. Give --columns {name}=COLUMN or "
                f"{first}=COLUMN with the other column."
            )
    return found


def _offset(name: str, text: str) -> tuple[str, float]:
    """Split COLUMN+OFFSET; a plus before what is no number belongs to the column's name."""
    before, plus, after = text.rpartition("+")
    if not (plus and before) or re.fullmatch(r".*\*[-.\d]+[eE]", before):  # a factor such as 1e+3
        return text, 0.0
    try:
        return before, number("--columns", name, after)
    except ModelError:
        return text, 0.0


def read_all(paths: Sequence[Path], pairs: Sequence[str], robot: Metadata) -> list[Recording]:
    """Read files with the columns of `columns`. Raises ModelError as `columns` and `read`, and for one that is named
    twice."""
    where = columns(pairs, robot)
    found = [read(path, robot, where) for path in paths]
    hashes = [each.sha256 for each in found]
    for index, each in enumerate(found):
        if each.sha256 in hashes[:index]:
            same = found[hashes.index(each.sha256)].path
            raise ModelError(f"{each.path} has the same content as {same}. Name it once.")
    return found


def read(path: Path, robot: Metadata, where: Mapping[str, Column]) -> Recording:
    """Read a file. The columns of velocities may be absent, and cells of states empty.

    Raises ModelError for a file that cannot be read, a missing column, a cell without a number, a time that does not
    increase, too few rows, and values that must be in another unit.
    """
    try:
        content = path.read_bytes()
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except OSError as problem:
        raise ModelError(f"cannot read {path}: {problem.strerror}. Name a CSV file.") from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(
            f"{path} is not a text of comma-separated values: {problem}. Export the recording as CSV in UTF-8."
        ) from problem
    header = [cell.strip() for cell in rows[0]] if rows else []
    if len(header) == 1 and (mark := re.search("[;\t]", header[0])):
        raise ModelError(
            f"the columns of {path} are separated by {'semicolons' if mark[0] == ';' else 'tabs'}. Export it with "
            f"commas between columns and points in numbers, as 0.01,3.14."
        )
    places = _places(path, header, robot, where)
    lines = [(line, row) for line, row in enumerate(rows[1:], 2) if any(cell.strip() for cell in row)]
    if len(lines) < ROWS:
        raise ModelError(f"{path} has {len(lines)} rows below its header; a recording needs at least {ROWS}.")
    values = {name: _values(path, lines, place, where[name], name) for name, place in places.items()}
    _check_whole(path, lines, values, robot)
    states = np.stack([values.get(each.name, np.full(len(lines), np.nan)) for each in robot.states], axis=1)
    inputs = (
        np.stack([values[each.name] for each in robot.inputs], axis=1) if robot.inputs else np.zeros((len(lines), 0))
    )
    recording = Recording(path, hashlib.sha256(content).hexdigest(), values[TIME], states, inputs)
    _check_units(recording, robot, where)  # before degrees are unwrapped as if they were radians
    for index, state in enumerate(robot.states):
        if state.continuous:
            states[:, index] = _unwrapped(states[:, index])
    _check_rates(recording, robot, where)
    return recording


def _places(path: Path, header: Sequence[str], robot: Metadata, where: Mapping[str, Column]) -> dict[str, int]:
    """Name -> index of its column. Velocities that the file does not have, and that no option names, are left out."""
    optional = {state.name for state in robot.states if state.kind == "velocity"}
    found = {}
    for name, column in where.items():
        count = header.count(column.header)
        if count == 1:
            found[name] = header.index(column.header)
        elif count > 1:
            raise ModelError(f"{path} has {count} columns `{column.header}`. Give every column a name of its own.")
        elif name not in optional or column.header != name:
            raise ModelError(
                f"{path} has no column `{column.header}` for `{name}`.{suggestion(column.header, header)} Its first "
                f"line must name its columns; it names {', '.join(header) or 'none'}. Write --columns {name}=COLUMN "
                f"where the column has another name."
            )
    return found


def _values(path: Path, lines: Sequence[tuple[int, Sequence[str]]], place: int, column: Column, name: str) -> Array:
    """A column in SI units, (K,); NaN where the cell is empty."""
    result = np.empty(len(lines))
    for index, (line, row) in enumerate(lines):
        cell = row[place].strip() if place < len(row) else ""
        try:
            value = float(cell) if cell and cell.lower() != "nan" else math.nan
        except ValueError:
            value = math.inf
        if math.isinf(value):
            raise ModelError(
                f"the column `{column.header}`, read as `{name}`, has `{cell}` where a number should be. Leave the "
                f"cell of a state empty where it was not measured.",
                Place(str(path), line),
            )
        result[index] = value * column.factor + column.offset
    return result


def _check_whole(
    path: Path, lines: Sequence[tuple[int, Sequence[str]]], values: Mapping[str, Array], robot: Metadata
) -> None:
    """Raise ModelError for an empty cell of the time or of an input, and for a time that does not increase."""
    for name in (TIME, *(entry.name for entry in robot.inputs)):
        empty = np.flatnonzero(np.isnan(values[name]))
        if len(empty):
            raise ModelError(
                f"`{name}` is empty. Time and inputs must be known in every row; delete the row if they are not.",
                Place(str(path), lines[empty[0]][0]),
            )
    back = np.flatnonzero(np.diff(values[TIME]) <= 0)
    if len(back):
        before, after = values[TIME][back[0] : back[0] + 2]
        raise ModelError(
            f"the time does not increase: {after:.9g} s follows {before:.9g} s. Sort the rows by time, or split the "
            f"file where the clock was set back.",
            Place(str(path), lines[back[0] + 1][0]),
        )


def _unwrapped(angle: Array) -> Array:
    """An angle without jumps of a turn; NaN stays where it was not measured."""
    result, known = angle.copy(), ~np.isnan(angle)
    result[known] = np.unwrap(angle[known])
    return result


def _check_units(recording: Recording, robot: Metadata, where: Mapping[str, Column]) -> None:
    """Raise ModelError for values far beyond the model's limits, the usual sign of another unit."""
    largest = {state.name: _largest(recording.states[:, i]) for i, state in enumerate(robot.states)}
    largest |= {entry.name: _largest(recording.inputs[:, i]) for i, entry in enumerate(robot.inputs)}
    limits = [(each.name, each.limit, each.unit) for each in robot.states if not each.continuous]
    limits += [(each.name, max(abs(each.lower), abs(each.upper)), each.unit) for each in robot.inputs]
    for name, limit, unit in limits:
        if largest[name] > BEYOND * limit:
            raise _other_unit(recording, where[name], name, largest[name], limit, unit)
    count = len(robot.coordinates)
    if robot.quasi_velocity:
        return
    for index, (position, rate) in enumerate(zip(robot.states[:count], robot.states[count:], strict=True)):
        speed = _largest(_mean_rates(recording.time, recording.states[:, index]))
        if speed > BEYOND * rate.limit:
            raise _other_unit(recording, where[position.name], f"{position.name}'s rate", speed, rate.limit, rate.unit)


def _check_rates(recording: Recording, robot: Metadata, where: Mapping[str, Column]) -> None:
    """Raise ModelError for a column of a velocity that follows the slope of its position by another factor than 1."""
    count = len(robot.coordinates)
    if robot.quasi_velocity:
        return
    for index, rate in enumerate(robot.states[count:]):
        slope = _mean_rates(recording.time, recording.states[:, index])
        mean = _means(recording.time, recording.states[:, count + index])
        known = np.isfinite(slope) & np.isfinite(mean)
        if known.sum() < ROWS or not slope[known].std() > 0.0 < mean[known].std():
            continue
        alike = float(np.corrcoef(slope[known], mean[known])[0, 1])
        factor = alike * float(mean[known].std() / slope[known].std())
        if abs(alike) > ALIKE and not 1 / FACTOR < factor < FACTOR:
            position, column = robot.states[index].name, where[rate.name]
            raise ModelError(
                f"{recording.path}: `{rate.name}`, the column `{column.header}`, is {factor:.3g} times the slope of "
                f"`{position}`. Convert it, for example --columns {rate.name}={column.header}*-1 where its sign is "
                f"another, or {rate.name}={column.header}*0.01745 for degrees; or correct `{position}`."
            )


def _largest(values: Array) -> float:
    """The size that one value in twenty exceeds, zero where there are no values: an outlier is no other unit."""
    known = np.abs(values[~np.isnan(values)])
    return float(np.quantile(known, 0.95)) if len(known) else 0.0


def _mean_rates(time: Array, values: Array) -> Array:
    """Mean rates over SPAN, (<= K,)."""
    later = np.searchsorted(time, time + SPAN)
    first = np.flatnonzero(later < len(time))
    return np.asarray((values[later[first]] - values[first]) / (time[later[first]] - time[first]))


def _means(time: Array, values: Array) -> Array:
    """Means over SPAN, of the same rows as `_mean_rates`, by the trapezoidal rule."""
    pieces = np.diff(time) * (values[1:] + values[:-1]) / 2
    missing = np.concatenate([[0], np.cumsum(np.isnan(pieces))])
    areas = np.concatenate([[0.0], np.cumsum(np.nan_to_num(pieces))])
    later = np.searchsorted(time, time + SPAN)
    first = np.flatnonzero(later < len(time))
    last = later[first]
    means = (areas[last] - areas[first]) / (time[last] - time[first])
    return np.asarray(np.where(missing[last] > missing[first], np.nan, means))


def _other_unit(recording: Recording, column: Column, name: str, value: float, limit: float, unit: str) -> ModelError:
    return ModelError(
        f"{recording.path}: {name} reaches {value:.4g} {unit}, more than {BEYOND:g} times its limit of {limit:.4g} in "
        f"the model file. The column `{column.header}` seems to be in another unit. Convert it, for example "
        f"--columns NAME={column.header}*{'pi/180 for degrees' if 'rad' in unit else '0.001 for thousandths'}."
    )
