"""Write files whole or not at all: beside their places first, then flushed to disk, then moved into place."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from modelgen.errors import ModelError

#: Begins the name of a file that is not finished. One that is left over belongs to a process that was killed.
UNFINISHED = ".new-"


@contextmanager
def replacing(path: Path, error: type[Exception] = ModelError) -> Iterator[Path]:
    """Give a path beside `path` to write a file to, with the same suffix; when the block ends, move it to `path`.

    Makes the folder. When the block raises, `path` is left as it was and the unfinished file is removed. Raises
    `error` when the file cannot be written, and KeyboardInterrupt when Ctrl-C came while writing: `torch.save` hides
    both behind a RuntimeError of its own.
    """
    if path.is_dir() or not path.name:
        raise error(f"cannot write {path}: it is a folder. Name a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside([path]) as (unfinished,):
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
    """Raise `error` where a file that is to be written is one that is read, or that another option writes.

    written: by the option that names it; None where it is not given.
    """
    taken = {path.resolve(): "a file that is read" for path in read}
    for option, path in written.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise error(f"{option} {path} would replace {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = f"what {option} writes"


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files; none is moved into place before all are on the disk, and then in the given order.

    Raises OSError when one cannot be written; the files that were there before are then left as they were.
    """
    with _beside(list(contents)) as unfinished:
        for path, content in zip(unfinished, contents.values(), strict=True):
            path.write_bytes(content)


@contextmanager
def _beside(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths of unfinished files; at the end they are flushed to disk and moved to `paths`, or removed."""
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
    """The error, and those that it was raised while handling."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def shipped(name: str) -> Path:
    """Folder of the models or artifacts that ship with the package: in it in a wheel, beside it in a checkout."""
    inside = Path(__file__).resolve().parent / name
    return inside if inside.is_dir() else inside.parents[1] / name
