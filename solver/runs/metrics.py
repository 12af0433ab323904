"""The metrics of a training: their log, a row an iteration or a segment, and what is read from it."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from modelgen.errors import in_shell, warn
from solver.errors import SolverError
from solver.runs.folder import METRICS, write_text

LARGEST = 1e300
SHARE = 0.99  # of the final return, in the pace of a training
SECONDS = ("seconds", "seconds_targets", "seconds_fit", "seconds_evaluation")  # keys of rows, disjoint times
#: Seconds between TensorBoard's writes. After Ctrl-C in a write, `close` waits this long for its thread.
FLUSH = 1

#: Callback after every iteration or segment, with its metrics.
Report = Callable[[dict[str, float]], None]


@contextmanager
def metrics_log(folder: Path, first: int, keys: Sequence[str], command: str) -> Iterator[MetricsLog]:
    """Open log of a training of `solver COMMAND`. Raises SolverError where it cannot be written.

    keys: of every row; the first is the counter of iterations or actions. A resumed run drops the rows after its
    checkpoint: all rows with a counter of `first` or more.
    """
    try:
        with closing(MetricsLog(folder, first, keys)) as log:
            yield log
    except OSError as error:
        raise SolverError(
            f"cannot write metrics to {folder}: {error}. The last checkpoint is whole: free some space and continue "
            f"with `solver {command} --resume {in_shell(folder)}`."
        ) from error


class MetricsLog:
    """The files of an open log, see `metrics_log`."""

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
    """Rows of metrics.jsonl that have numbers under all `keys`.

    Skips entries that are not finite numbers, and the last line if a crash cut it. Other damaged lines give a
    ReliabilityWarning.
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
        warn(text)
    return rows


def _text(path: Path) -> str:
    """Text of a file in UTF-8, or in UTF-16 with the mark with which some editors save."""
    content = path.read_bytes()
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def training_seconds(folder: Path) -> float:
    """Seconds of all iterations or segments of a run, without evaluations."""
    return sum(row.get(name, 0.0) for row in read_metrics(folder) for name in SECONDS if name != "seconds_evaluation")


@dataclass(frozen=True)
class Pace:
    """Seconds of a training, and those after which its policy had SHARE of its final return for the first time."""

    total: float
    reached: float
    rows: int  # all iterations or segments
    row: int  # the one at whose end the return was reached

    def __str__(self) -> str:
        share = f"{100 * SHARE:.0f} % of the final return after {self.reached:.0f} s of {self.total:.0f} s"
        return f"{share}, iteration {self.row} of {self.rows}"


def of_kept_policy(evaluated: Sequence[dict[str, float]]) -> dict[str, float]:
    """Row in which the kept policy of a run was evaluated, among its rows with an evaluation: the first with its
    number, or the last row where none has one."""
    last = evaluated[-1]
    return next((row for row in evaluated if row.get("kept", math.nan) == last.get("kept")), last)


def pace(rows: Sequence[dict[str, float]]) -> Pace | None:
    """Pace of a training by its rows of metrics. None without an evaluation.

    The final return is that of the kept policy. An earlier policy reaches it with as many successes as that policy, and
    a return that is lower by at most 1 - SHARE of its size.
    """
    evaluated = [row for row in rows if row.keys() >= {"return_mean", "success_rate", "kept"}]
    if not evaluated:
        return None
    final = of_kept_policy(evaluated)
    least = final["return_mean"] - (1.0 - SHARE) * abs(final["return_mean"])
    elapsed = list(accumulate(sum(row.get(name, 0.0) for name in SECONDS) for row in rows))
    enough = (row["success_rate"] >= final["success_rate"] and row["return_mean"] >= least for row in evaluated)
    first = next(row for row, reached in zip(evaluated, enough, strict=True) if reached)
    number = next(number for number, row in enumerate(rows) if row is first)
    return Pace(elapsed[-1], elapsed[number], len(rows), number + 1)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST  # type: ignore[arg-type]
