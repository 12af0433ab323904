"""The files of a run folder: description, checkpoint, metrics, and the rules for replacing a run.

Every file is written beside its place and moved there when it is complete, so that a crash leaves the old file whole.
"""

from __future__ import annotations

import codecs
import dataclasses
import fcntl
import io
import json
import math
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import torch

from modelgen.artifact.manifest import typed
from modelgen.errors import warn
from modelgen.files import replacing
from solver.errors import SolverError

CHECKPOINT, METRICS, FIGURES, LOCK = "checkpoint.pt", "metrics.jsonl", "figures", ".lock"
RUN = "run"  # entry of a checkpoint: what its results depend on, as the description beside it has it
COUNTS = ("iteration", "steps")  # entries of a checkpoint that are whole numbers
#: Settings of earlier runs: the values that this version has without and with the setting `authors`.
RETIRED: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "final_learning_rate": ((1e-5,), (1e-5,)),
    "optimiser": (("soap",), ("amsgrad",)),
    "loss_scale": ((0.2,), (0.0,)),
    "integrator": (("rk4",), ("euler",)),
    "polish": ((0, 6), (0,)),
}
#: Settings that earlier runs lack, and the values by which these were trained.
ADDED: dict[str, Any] = {"drift": False}
Described = TypeVar("Described")


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8. Raises SolverError when it cannot be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file. Raises SolverError when it cannot be written."""
    with replacing(path, SolverError) as unfinished:
        unfinished.write_bytes(content)


def save_description(path: Path, description: Any) -> None:
    """Write the description of a run, a dataclass, as JSON."""
    write_text(path, json.dumps(dataclasses.asdict(description), indent=2) + "\n")


def load_description(path: Path, kind: type[Described]) -> Described:
    """Description of a run from JSON, every entry checked by its type. Raises SolverError if the file does not fit."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "settings" in content:  # another version may have other defaults
            known = {entry.name for entry in dataclasses.fields(get_type_hints(kind)["settings"])}
            content["settings"] = _renewed(content["settings"], known)
            if missing := known - content["settings"].keys():
                raise KeyError(f"it has no setting {', '.join(sorted(missing))}")
        return cast(Described, typed(kind, content, path.name))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, SolverError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}). Train again into a new folder."
        ) from error


def _renewed(settings: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Settings of an earlier run under the names `known` of today.

    Raises ValueError for values that no setting of this version gives.
    """
    settings = {name: value for name, value in ADDED.items() if name in known} | settings
    earlier = {name: settings[name] for name in RETIRED if name in settings and name not in known}
    kept = {name: value for name, value in settings.items() if name not in earlier}
    if not earlier or "authors" in kept:
        return settings
    for authors in (False, True):
        if all(value in RETIRED[name][authors] for name, value in earlier.items()):
            return {**kept, "authors": authors}
    raise ValueError(f"this version has no run with {', '.join(f'{k} = {v}' for k, v in earlier.items())}")


def save_checkpoint(folder: Path, checkpoint: dict[str, Any]) -> None:
    """Replace the checkpoint. Raises SolverError when it cannot be written.

    `torch.save` into a file hides a full disk behind an error of its own, so that it writes to memory.
    """
    content = io.BytesIO()
    torch.save(checkpoint, content)
    write_bytes(folder / CHECKPOINT, content.getvalue())


def load_checkpoint(
    folder: Path,
    keys: Collection[str],
    device: str = "cpu",
    check: Callable[[dict[str, Any]], None] = lambda _: None,
    results: Callable[[], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Read the checkpoint; only tensors and plain data are unpickled.

    check: raises ValueError for other content than a run of this kind writes. results: gives everything that results
    depend on, by the description beside it, as JSON has it; the checkpoint holds the same under RUN. Raises SolverError
    when there is no checkpoint, when it is damaged, when it lacks one of the keys, or when it is of another run.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise SolverError(f"{folder} holds no {CHECKPOINT}: training has not finished its first iteration.")
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load does not compare the checksums
            edited = archive.testzip()
        if edited is not None:
            raise ValueError(f"the checksum of its part {edited} is wrong")
        content = torch.load(path, map_location=device, weights_only=True)
        missing = set(keys) - set(content)
        _check_numbers(dict(content))
        check(dict(content))
    except Exception as error:  # zip, zlib, pickle and Torch each have their own for bytes they cannot read
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SolverError(
            f"{path} is damaged ({reason}). It was edited or copied in part; copy it again or train again."
        ) from error
    if missing:
        raise SolverError(f"{path} lacks {', '.join(sorted(missing))}; it belongs to another kind of run.")
    if results is not None:
        _require_own(content, results(), folder)
    return dict(content)


def _require_own(checkpoint: Mapping[str, Any], description: Mapping[str, Any], folder: Path) -> None:
    """Raises SolverError for the first entry of a checkpoint that differs from the description beside it."""
    try:
        trained = dict(json.loads(json.dumps(checkpoint[RUN])))
        if isinstance(trained.get("settings"), dict):
            trained["settings"] = _renewed(trained["settings"], description.get("settings", {}))
    except (TypeError, ValueError, RecursionError):
        raise SolverError(f"the checkpoint in {folder} is damaged: it does not say which run it is of") from None
    for name, stated in _flat(description).items():
        wrote = _flat(trained).get(name)
        if wrote != stated:
            raise SolverError(
                f"{name} is {stated} in the description of {folder} and {wrote} in its "
                "checkpoint: one of the two was edited or copied from elsewhere. Restore the file, or train again."
            )


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a description, those of `settings` under their own names."""
    settings = content.get("settings", {})
    return {**content, **(settings if isinstance(settings, dict) else {}), "settings": None}


def _check_numbers(content: dict[str, Any]) -> None:
    """Raise ValueError for damage that nothing later would notice: counts of another type, NaN among the weights."""
    for name in COUNTS:
        if name in content and (type(content[name]) is not int or content[name] < 0):
            raise ValueError(f"its {name} is {content[name]!r}, not a count")
    if not all(bool(torch.isfinite(each).all()) for each in _tensors(content)):
        raise ValueError("some of its numbers are not finite")


def _tensors(content: object) -> Iterator[torch.Tensor]:
    """All tensors in nested mappings and lists. A part that stands in several places is visited once."""
    waiting, visited = [content], set()
    while waiting:
        part = waiting.pop()
        if id(part) in visited:
            continue
        visited.add(id(part))
        if isinstance(part, torch.Tensor):
            yield part
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Keep other processes from training in a folder. Raises SolverError if one does."""
    lock = folder / LOCK
    try:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise SolverError(
                    f"another process trains in {folder}. Wait for it, or name another folder with --out."
                ) from None
            if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
                break  # and not a file that its owner has removed meanwhile
            os.close(descriptor)
    except OSError as error:
        raise SolverError(f"cannot write to {folder}: {error.strerror or error}. Name another folder.") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)
        with suppress(OSError):
            folder.rmdir()  # where nothing was written


def require_free(folder: Path, command: str, overwrite: bool) -> None:
    """Raise SolverError when the folder holds a run, of whatever kind, that must not be replaced."""
    if (folder / CHECKPOINT).exists() and not overwrite:
        raise SolverError(
            f"{folder} already holds a run. Continue it with `solver {command} --resume {folder}`, replace it with "
            "--overwrite, or name another folder with --out."
        )


def remove_run(folder: Path, files: Collection[str]) -> None:
    """Delete the run in a folder: checkpoint, metrics, figures and `files`. Other files stay."""
    if not (folder / CHECKPOINT).exists():
        return
    try:
        written = [folder / name for name in (CHECKPOINT, METRICS, *files)]
        for path in [*written, *folder.glob("events.out.tfevents.*")]:
            path.unlink(missing_ok=True)
        if (folder / FIGURES).exists():
            shutil.rmtree(folder / FIGURES)
    except OSError as error:
        raise SolverError(f"cannot remove the run in {folder}: {error}. Name another folder with --out.") from error


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
            f"with `solver {command} --resume {folder}`."
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
