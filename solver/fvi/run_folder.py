"""The run folder: settings, metrics and the checkpoint, each written so that a crash leaves the old one whole."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.fvi.renamed import renamed_settings
from solver.fvi.settings import Settings

CHECKPOINT, RUN, METRICS, FIGURES = "checkpoint.pt", "run.json", "metrics.jsonl", "figures"
BASELINE, MODEL = "baseline.json", "model.zip"  # instead of run.json where another algorithm was trained
PARTS = ("iteration", "ensemble", "optimisers", "artifact_hash", "settings")  # of a checkpoint
KEYS = ("iteration", "value_error")  # what every row of metrics.jsonl holds; the first counts


@dataclass(frozen=True)
class Run:
    """What a run folder says of itself."""

    robot: str
    artifact_hash: str  # of the artifact the run was trained on
    generated: str | None  # the folder that held it, when one was named
    preset: str
    settings: Settings

    def __post_init__(self) -> None:
        """TypeError where a name is none."""
        check_words(robot=self.robot, artifact_hash=self.artifact_hash, preset=self.preset)
        check_words(generated="" if self.generated is None else self.generated)


def check_words(**named: object) -> None:
    """TypeError for what was read where a string should be."""
    for name, value in named.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, which is no string")


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside `path`, flush it to disk, then move it into place.

    SolverError when that cannot be; KeyboardInterrupt when Ctrl-C came while writing, which torch.save hides behind a
    RuntimeError about its unfinished archive.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with name.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, path)
        except BaseException:
            name.unlink(missing_ok=True)
            raise
    except (OSError, RuntimeError) as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise SolverError(
            f"cannot write {path}: {error}. The previous file, if there was one, is untouched. "
            "Free some space or choose a folder that can be written."
        ) from error


def save_run(folder: Path, run: Run) -> None:
    """Write run.json."""
    text = json.dumps(dataclasses.asdict(run), indent=2) + "\n"
    write_atomically(folder / RUN, lambda stream: stream.write(text.encode()))


def load_run(folder: Path) -> Run:
    """Read run.json; SolverError when the folder holds no readable run."""
    path = folder / RUN
    if (folder / BASELINE).is_file():
        raise SolverError(
            f"{folder} holds a baseline, which has no value function. `solver evaluate {folder}` tests its policy, "
            f"and `solver baseline --resume {folder}` goes on with it."
        )
    if not path.is_file():
        runs = [str(entry.parent) for entry in folder.parent.glob(f"*/{RUN}")]
        raise SolverError(
            f"{folder} is not a run folder: it has no {RUN}.{suggestion(str(folder), runs)} Give the folder that "
            "`solver train` wrote."
        )
    try:
        content = json.loads(path.read_text())
        settings = renamed_settings(content.pop("settings"))
        settings = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
        return Run(settings=Settings(**settings), **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}). Train again into a new folder."
        ) from error


def save_checkpoint(folder: Path, checkpoint: dict[str, Any]) -> None:
    """Replace the checkpoint atomically."""
    write_atomically(folder / CHECKPOINT, lambda stream: torch.save(checkpoint, stream))


def load_checkpoint(folder: Path, device: str = "cpu", keys: Collection[str] = PARTS) -> dict[str, Any]:
    """Read the checkpoint, weights only; SolverError when there is none, it is damaged or lacks one of the keys."""
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
        _check_content(dict(content))
    except Exception as error:  # zip, zlib, pickle and Torch each have their own for bytes they cannot read
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SolverError(
            f"{path} is damaged ({reason}). It was edited or copied in part; copy it again or train again."
        ) from error
    if missing:
        raise SolverError(f"{path} lacks {', '.join(sorted(missing))}; it belongs to another kind of run.")
    return dict(content)


def _check_content(content: dict[str, Any]) -> None:
    """ValueError for what no training writes and nothing later would notice: counts that are none, NaN as weights."""
    for name in ("iteration", "steps"):
        if name in content and (type(content[name]) is not int or content[name] < 0):
            raise ValueError(f"its {name} is {content[name]!r}")
    for state in content.get("optimisers", ()):
        if not isinstance(state, dict) or not isinstance(state.get("state"), dict):
            raise ValueError("its optimisers are none")
    if not isinstance(content.get("visited", torch.empty(0)), torch.Tensor):
        raise ValueError("its visited states are no array")
    if not all(bool(torch.isfinite(each).all()) for each in _tensors(content)):
        raise ValueError("some of its numbers are not finite")


def _tensors(content: object) -> Iterator[torch.Tensor]:
    """All tensors in nested mappings and lists."""
    if isinstance(content, torch.Tensor):
        yield content
    elif isinstance(content, dict | list | tuple):
        for each in content.values() if isinstance(content, dict) else content:
            yield from _tensors(each)


def require_free(folder: Path, command: str, overwrite: bool) -> None:
    """SolverError when the folder holds a run, of whatever kind, that may not be replaced."""
    if (folder / CHECKPOINT).exists() and not overwrite:
        raise SolverError(
            f"{folder} already holds a run. Go on with `solver {command} --resume {folder}`, replace it with "
            "--overwrite, or give another folder with --out."
        )


def remove_run(folder: Path) -> None:
    """Delete what a run, if there is one, wrote to its folder, and nothing else that may lie there."""
    if not (folder / CHECKPOINT).exists():
        return
    try:
        files = [folder / name for name in (CHECKPOINT, METRICS, RUN, BASELINE, MODEL)]
        for path in [*files, *folder.glob("events.out.tfevents.*")]:
            path.unlink(missing_ok=True)
        if (folder / FIGURES).exists():
            shutil.rmtree(folder / FIGURES)
    except OSError as error:
        raise SolverError(f"cannot remove the run in {folder}: {error}. Give another folder with --out.") from error


class MetricsLog:
    """metrics.jsonl, one line an iteration, and the same numbers for TensorBoard.

    A resumed run drops what was logged after its checkpoint: all rows that count to `first` or more.
    """

    def __init__(self, folder: Path, first: int, keys: Sequence[str] = KEYS) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._counter = keys[0]
        kept = [row for row in read_metrics(folder, keys) if row[self._counter] < first]
        text = "".join(json.dumps(row) + "\n" for row in kept)
        write_atomically(folder / METRICS, lambda stream: stream.write(text.encode()))
        self._file = (folder / METRICS).open("a")
        self._board = SummaryWriter(str(folder), purge_step=first)

    def write(self, row: dict[str, float]) -> None:
        """Append one iteration's metrics."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, number in row.items():
            if name != self._counter:
                self._board.add_scalar(name, number, int(row[self._counter]))

    def close(self) -> None:
        """Flush both."""
        self._file.close()
        self._board.close()


def read_metrics(folder: Path, keys: Sequence[str] = KEYS) -> list[dict[str, float]]:
    """All whole lines of metrics.jsonl; a line cut short by a crash is left out."""
    path = folder / METRICS
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and set(keys) <= row.keys() and all(type(row[key]) in (int, float) for key in keys):
            rows.append(row)
    return rows
