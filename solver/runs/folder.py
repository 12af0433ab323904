"""The files of a run folder: description, checkpoint, and the rules for replacing a run.

Every file is written beside its place and moved there when it is complete, so that a crash leaves the old file whole.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from modelgen.files import replacing
from solver.errors import SolverError

CHECKPOINT, METRICS, FIGURES = "checkpoint.pt", "metrics.jsonl", "figures"
COUNTS = ("iteration", "steps")  # entries of a checkpoint that are whole numbers
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


def load_description(path: Path, build: Callable[[dict[str, Any]], Described]) -> Described:
    """Read the description of a run and `build` it. Raises SolverError for a file that does not fit."""
    try:
        return build(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}). Train again into a new folder."
        ) from error


def save_checkpoint(folder: Path, checkpoint: dict[str, Any]) -> None:
    """Replace the checkpoint. Raises SolverError when it cannot be written."""
    with replacing(folder / CHECKPOINT, SolverError) as unfinished:
        torch.save(checkpoint, unfinished)


def load_checkpoint(
    folder: Path,
    keys: Collection[str],
    device: str = "cpu",
    check: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Read the checkpoint; only tensors and plain data are unpickled.

    check: raises ValueError for other content than a run of this kind writes. Raises SolverError when there is no
    checkpoint, when it is damaged, or when it lacks one of the keys.
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
    return dict(content)


def require_own_checkpoint(checkpoint: dict[str, Any], artifact_hash: str, folder: Path) -> None:
    """SolverError unless a run's checkpoint was made with the artifact that its description names by its hash."""
    if checkpoint["artifact_hash"] != artifact_hash:
        raise SolverError(
            f"the checkpoint in {folder} is of another artifact than the description beside it: one of them was copied "
            "from elsewhere. Copy the whole folder again, or train again."
        )


def _check_numbers(content: dict[str, Any]) -> None:
    """Raise ValueError for damage that nothing later would notice: counts of another type, NaN among the weights."""
    for name in COUNTS:
        if name in content and (type(content[name]) is not int or content[name] < 0):
            raise ValueError(f"its {name} is {content[name]!r}, not a count")
    if not all(bool(torch.isfinite(each).all()) for each in _tensors(content)):
        raise ValueError("some of its numbers are not finite")


def _tensors(content: object) -> Iterator[torch.Tensor]:
    """Yield all tensors in nested mappings and lists."""
    if isinstance(content, torch.Tensor):
        yield content
    elif isinstance(content, dict | list | tuple):
        for each in content.values() if isinstance(content, dict) else content:
            yield from _tensors(each)


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
