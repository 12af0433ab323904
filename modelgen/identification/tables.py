"""A CSV file as quantities in SI units, by the expressions of its columns; a mistake is explained in one paragraph."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError, Place, suggestion
from modelgen.identification.columns import NUMBER, Expression, expression
from modelgen.metadata import TIME, Metadata

ROWS = 10  # fewest rows of a recording
COMMENT = "#"
EMPTY = ("", "nan", "na")


@dataclass(frozen=True)
class Table:
    """The cells of a file, as text."""

    path: Path
    sha256: str  # of the file
    header: tuple[str, ...]
    lines: tuple[int, ...]  # (K,) the line of every row
    rows: tuple[tuple[str, ...], ...]  # (K, columns)

    def place(self, row: int) -> Place:
        """The line of a row, for a message."""
        return Place(str(self.path), self.lines[row])


def read_table(path: Path) -> Table:
    """The cells of a CSV file. Raises ModelError for a file that cannot be read, and as `_table`."""
    try:
        content = path.read_bytes()
        return _table(path, content.decode("utf-8-sig"), hashlib.sha256(content).hexdigest())
    except OSError as problem:
        raise ModelError(f"cannot read {path}: {problem.strerror}. Name a CSV file.") from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(
            f"{path} is not a text of comma-separated values: {problem}. Export the recording as CSV in UTF-8."
        ) from problem


def quantities(table: Table, robot: Metadata, where: Mapping[str, str]) -> dict[str, Array]:
    """Time, states and inputs (K,) in SI units; NaN where a state was not measured. where: expressions by quantity.

    Raises ModelError for a missing column, too few rows, a cell without a number, and a time that does not increase.
    """
    expressions = _expressions(table, robot, where)
    if len(table.rows) < ROWS:
        raise ModelError(
            f"{table.path} has {len(table.rows)} rows below its header; a recording needs at least {ROWS}."
        )
    values = {name: _values(table, each, name) for name, each in expressions.items()}
    _check_whole(table, values, robot)
    return values


def _table(path: Path, text: str, sha256: str) -> Table:
    """Cells below the header. Lines that begin with # are comments; the last one may be the header.

    Raises ModelError for another separator, and for a row with more cells than the header names.
    """
    numbered = [(number, line) for number, line in enumerate(io.StringIO(text, newline=None), 1) if line.strip()]
    kept = [(number, line) for number, line in numbered if not line.lstrip().startswith(COMMENT)]
    reader = csv.reader(line for _, line in kept)
    rows = [(kept[reader.line_num - 1][0], tuple(cell.strip() for cell in row)) for row in reader]
    if rows and all(_is_number(cell) for cell in rows[0][1]):
        above = [line for number, line in numbered if number < rows[0][0]]
        names = tuple(cell.strip() for cell in above[-1].lstrip(f" {COMMENT}").split(",")) if above else ()
        if len(names) == len(rows[0][1]):
            rows.insert(0, (0, names))
    header = rows[0][1] if rows else ()
    if len(header) == 1 and (mark := re.search("[;\t]", header[0])):
        raise ModelError(
            f"the columns of {path} are separated by {'semicolons' if mark[0] == ';' else 'tabs'}. Export it with "
            f"commas between columns and points in numbers, as 0.01,3.14."
        )
    below = [(line, row) for line, row in rows[1:] if any(row)]
    for line, row in below:
        if any(row[len(header) :]):
            raise ModelError(
                f"the row has {len(row)} cells, and the header names {len(header)} columns. A comma within a number "
                "begins a new cell: write decimal points, as in 0.427.",
                Place(str(path), line),
            )
    return Table(path, sha256, header, tuple(line for line, _ in below), tuple(row for _, row in below))


def _is_number(cell: str) -> bool:
    return re.fullmatch(rf"[+-]?{NUMBER}", cell, re.ASCII) is not None


def _expressions(table: Table, robot: Metadata, where: Mapping[str, str]) -> dict[str, Expression]:
    """The expression of every quantity. Coordinates and inputs must be there; other states may be left out.

    Raises ModelError for a column that the file lacks or has twice, and for two quantities of the same columns.
    """
    optional = {*robot.speeds, *robot.internal}
    expressions: dict[str, Expression] = {}
    readers: dict[tuple[int, ...], str] = {}
    for name, text in where.items():
        if text == name and name in optional and name not in table.header:
            continue
        if text == name and name not in table.header:
            zero = any(name == entry.name for entry in robot.inputs)
            raise ModelError(
                f"{table.path} has no column `{name}`.{suggestion(name, table.header)} Its first line must name its "
                f"columns; it names {', '.join(table.header) or 'no column'}. Write --columns {name}=COLUMN where the "
                f"column has another name{f', or {name}=0 for an input that stays zero' if zero else ''}."
            )
        try:
            made = expression(text, table.header, name)
        except ModelError as error:
            raise ModelError(f"{table.path}: {error}") from error
        for place in made.columns:
            if (count := table.header.count(table.header[place])) > 1:
                raise ModelError(
                    f"{table.path} has {count} columns `{table.header[place]}`. Give every column a name of its own."
                )
        first = readers.setdefault(made.columns, name) if made.columns else name
        if first != name:
            raise ModelError(
                f"{table.path}: `{first}` and `{name}` are read from the same column, as {first}={where[first]} and "
                f"{name}={text}. Give --columns {name}=COLUMN or {first}=COLUMN with the other column."
            )
        expressions[name] = made
    return expressions


def _values(table: Table, made: Expression, name: str) -> Array:
    """A quantity in SI units, (K,); NaN where a cell is empty. Raises ModelError for a cell without a number."""
    cells = {place: _column(table, place, name) for place in made.columns}
    values = np.broadcast_to(made(cells), len(table.rows)).copy()
    bad = np.isinf(values) | (np.isnan(values) & ~np.isnan(sum(cells.values(), np.zeros(len(values)))))
    if bad.any():
        raise ModelError(
            f"`{name}={made.text}` has no finite value. Write an expression without a division by zero.",
            table.place(int(bad.argmax())),
        )
    return values


def _column(table: Table, place: int, name: str) -> Array:
    """The numbers of a column, (K,); NaN where a cell is empty, and hundredths where it ends with %."""
    numbers = np.full(len(table.rows), np.nan)
    for index, row in enumerate(table.rows):
        cell = row[place] if place < len(row) else ""
        if cell.lower() in EMPTY:
            continue
        digits = cell.removesuffix("%").rstrip()
        if not _is_number(digits) or math.isinf(float(digits)):
            raise ModelError(
                f"the column `{table.header[place]}`, read as `{name}`, has `{cell[:60]}` where a number should be. "
                f"Leave the cell of a state empty where it was not measured.",
                table.place(index),
            )
        numbers[index] = float(digits) / (100 if cell.endswith("%") else 1)
    return numbers


def _check_whole(table: Table, values: Mapping[str, Array], robot: Metadata) -> None:
    """Raise ModelError for an empty cell of the time or of an input, and for a time that does not increase."""
    for name in (TIME, *(entry.name for entry in robot.inputs)):
        empty = np.flatnonzero(np.isnan(values[name]))
        if len(empty):
            raise ModelError(
                f"`{name}` is empty. Time and inputs must be known in every row; delete the row if they are not.",
                table.place(int(empty[0])),
            )
    back = np.flatnonzero(np.diff(values[TIME]) <= 0)
    if not len(back):
        return
    row, (before, after) = int(back[0]), values[TIME][back[0] : back[0] + 2]
    if before == after:
        raise ModelError(
            f"the time {after:.9g} s stands in two rows, here and in line {table.lines[row]}. Delete one of the rows, "
            "or record the time with more digits.",
            table.place(row + 1),
        )
    raise ModelError(
        f"the time does not increase: {after:.9g} s follows {before:.9g} s. Sort the rows by time, or split the file "
        f"where the clock was set back.",
        table.place(row + 1),
    )
