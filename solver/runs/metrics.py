"""The metrics of a run, one row an iteration or a segment: metrics.jsonl, and the same numbers for TensorBoard."""

from __future__ import annotations

import codecs
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from modelgen.errors import ReliabilityWarning
from solver.runs.folder import METRICS, write_text

LARGEST = 1e300
#: Seconds between TensorBoard's writes. `close` waits so long where Ctrl-C came while its thread was told of a row.
FLUSH = 1

#: Called after every iteration or segment with its metrics.
Report = Callable[[dict[str, float]], None]


class MetricsLog:
    """The open log of one training.

    keys: what every row must hold; the first counts the iterations or actions. A resumed run drops what was logged
    after its checkpoint: all rows that count to `first` or more.
    """

    def __init__(self, folder: Path, first: int, keys: Sequence[str]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._counter = keys[0]
        kept = [row for row in read_metrics(folder, keys) if row[self._counter] < first]
        write_text(folder / METRICS, "".join(json.dumps(row) + "\n" for row in kept))
        self._file = (folder / METRICS).open("a")
        self._board = SummaryWriter(str(folder), purge_step=first, flush_secs=FLUSH)

    def write(self, row: dict[str, float]) -> None:
        """Append one row."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, number in row.items():
            if name != self._counter:
                self._board.add_scalar(name, number, int(row[self._counter]))

    def close(self) -> None:
        """Flush and close both files."""
        self._file.close()
        self._board.close()


def read_metrics(folder: Path, keys: Sequence[str] = ()) -> list[dict[str, float]]:
    """Read all rows of metrics.jsonl that hold numbers under `keys`.

    A last line that a crash cut short is left out, and so is of every row what is no finite number. Other lines that
    cannot be read are left out with a warning.
    """
    path = folder / METRICS
    lines = _text(path).splitlines() if path.is_file() else []
    rows, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            damaged += [number] * bool(line.strip())
            continue
        numbers = {name: value for name, value in row.items() if _is_number(value)} if isinstance(row, dict) else {}
        if numbers and set(keys) <= numbers.keys():
            rows.append(numbers)
    if damaged and damaged != [len(lines)]:
        text = f"{path} is damaged: {len(damaged)} of {len(lines)} lines cannot be read, the first is line {damaged[0]}"
        warnings.warn(text, ReliabilityWarning, stacklevel=2)
    return rows


def _text(path: Path) -> str:
    """Text of a file in UTF-8, or in UTF-16 with the mark with which some editors save."""
    content = path.read_bytes()
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def training_seconds(folder: Path) -> float:
    """Sum of what the iterations or segments of a run took, without evaluations."""
    names = ("seconds", "seconds_targets", "seconds_fit")
    return sum(row.get(name, 0.0) for row in read_metrics(folder) for name in names)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST  # type: ignore[arg-type]
