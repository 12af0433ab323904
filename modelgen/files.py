"""Atomic writing of files: to a temporary file in the same folder, flushed to disk, then moved into place."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from modelgen.errors import ModelError

#: Prefix of the name of an unfinished file. A killed process leaves such a file behind.
UNFINISHED = ".new-"


@contextmanager
def replacing(path: Path, error: type[Exception] = ModelError) -> Iterator[Path]:
    """A temporary path in the folder of `path`, with the same suffix, for a file that replaces `path` after the block.

    Creates the folder. If the block raises, `path` is unchanged and the temporary file is removed. Raises `error` if
    the file cannot be written, and KeyboardInterrupt after Ctrl-C during the writing: `torch.save` hides both in a
    RuntimeError.
    """
    if path.is_dir() or not path.name:
        raise error(f"cannot write {path}: it is a folder. Write the name of a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary([path]) as (unfinished,):
            yield unfinished
    except (OSError, RuntimeError) as problem:
        causes = list(_causes(problem))
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            raise KeyboardInterrupt from None
        reason = next((cause for cause in causes if isinstance(cause, OSError)), None)
        if reason is None:
            raise
        if isinstance(reason, FileExistsError | NotADirectoryError):
            raise error(f"cannot write {path}: a part of its path is a file. Name another folder.") from problem
        raise error(
            f"cannot write {path}: {reason.strerror or reason}. The previous file, if there was one, is unchanged. "
            "Free some space or choose another folder."
        ) from problem


def require_apart(
    written: Mapping[str, Path | None], read: Sequence[Path] = (), error: type[Exception] = ModelError
) -> None:
    """Raise `error` if a file to be written is also read, or is written by another option.

    written: option -> path, or None if the option is not given.
    """
    taken = {path.resolve(): "a file that is read" for path in read}
    for option, path in written.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise error(f"{option} {path} would replace {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = f"the file of {option}"


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files. Move them into place in the given order, after all of them are on the disk.

    Raises OSError if one cannot be written; the previous files are then unchanged.
    """
    with _temporary(list(contents)) as unfinished:
        for path, content in zip(unfinished, contents.values(), strict=True):
            path.write_bytes(content)


@contextmanager
def _temporary(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths of temporary files. At the end they are flushed to disk and moved to `paths`, or removed."""
    writer = f"{UNFINISHED}{os.getpid()}-{threading.get_ident()}"
    unfinished = [path.with_name(f"{writer}-{path.name}") for path in paths]
    try:
        yield unfinished
        for path in unfinished:
            with path.open("r+b") as stream:
                os.fsync(stream.fileno())
        for new, path in zip(unfinished, paths, strict=True):
            os.replace(new, path)
    finally:
        for path in unfinished:
            path.unlink(missing_ok=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, its cause, the cause of the cause, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def shipped(name: str) -> Path:
    """The folder of the shipped models or artifacts: inside the package in a wheel, next to it in a checkout."""
    inside = Path(__file__).resolve().parent / name
    return inside if inside.is_dir() else inside.parents[1] / name
