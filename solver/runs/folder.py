"""The files of a run folder: description, checkpoint, and the rules for replacing a run. `metrics.py` has its log.

Every file is written beside its place and moved there when it is complete, so that a crash leaves the old file whole.
"""

from __future__ import annotations

import dataclasses
import fcntl
import io
import json
import os
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import torch

from modelgen.artifact.manifest import typed
from modelgen.errors import in_shell
from modelgen.files import replacing
from solver.errors import SolverError

CHECKPOINT, METRICS, FIGURES, LOCK = "checkpoint.pt", "metrics.jsonl", "figures", ".lock"
DRAWINGS = "value_and_policy", "rollouts", "learning_curve"  # in FIGURES, as PNG
ARTIFACT = "artifact"  # subfolder of a run folder; in it is a folder with the name of the robot
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
            f"{folder} already holds a run. Continue it with `solver {command} --resume {in_shell(folder)}`, replace "
            "it with --overwrite, or name another folder with --out."
        )


def require_own(folder: Path, names: Collection[str]) -> None:
    """Raise SolverError when a folder without a run holds something that a training would replace."""
    foreign = [name for name in (ARTIFACT, METRICS, *names) if (folder / name).exists()]
    if foreign:
        raise SolverError(
            f"{folder / foreign[0]} belongs to no run, and a training in {folder} would replace it. "
            "Name another folder with --out."
        )


def remove_run(folder: Path, files: Collection[str]) -> None:
    """Delete the run in a folder: checkpoint, metrics, figures and `files`. Other files stay."""
    if not (folder / CHECKPOINT).exists():
        return
    try:
        written = [folder / name for name in (CHECKPOINT, METRICS, *files)]
        written += [folder / FIGURES / f"{name}.png" for name in DRAWINGS]
        for path in [*written, *folder.glob("events.out.tfevents.*")]:
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            if not any((folder / FIGURES).iterdir()):
                (folder / FIGURES).rmdir()
    except OSError as error:
        raise SolverError(f"cannot remove the run in {folder}: {error}. Name another folder with --out.") from error
