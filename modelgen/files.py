"""Atomic writing of files, and what is kept between processes.

A file is written to a temporary file in the same folder, flushed to disk, then moved into place. What is kept, such as
machine code, is never looked for beside an artifact: it runs unseen, and an artifact may come from anybody.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import metadata
from pathlib import Path
from types import ModuleType

from modelgen.errors import ModelError

PACKAGE = "robust-value-iteration"
#: Prefix of the name of an unfinished file. A killed process leaves such a file behind.
UNFINISHED = ".new-"
#: Names a folder for what is kept that is used before all others.
CACHE = "MODELGEN_CACHE"


@contextmanager
def replacing(path: Path, error: type[Exception] = ModelError) -> Iterator[Path]:
    """A temporary path in the folder of `path`, with the same suffix, for a file that replaces `path` after the block.

    Creates the folder. If the block raises, `path` is unchanged and the temporary file is removed. A link stays, its
    target is replaced. A pipe or a device such as /dev/null stays, and the bytes are written into it. Raises `error` if
    the file cannot be written, and KeyboardInterrupt after Ctrl-C during the writing: `torch.save` hides both in a
    RuntimeError.
    """
    with _explained(path, error):
        _require_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary([path]) as (unfinished,):
            yield unfinished


def require_writable(
    written: Mapping[str, Path | None], read: Sequence[Path] = (), error: type[Exception] = ModelError
) -> None:
    """Raise `error`, before any work, if a file cannot be written, is also read, or is written by another option.

    written: option -> path, or None if the option is not given. Nothing stays in the folders.
    """
    taken = {path.resolve(): "a file that is read" for path in read}
    for option, path in written.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise error(f"{option} {path} would replace {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = f"the file of {option}"
        with _explained(path, error):
            _require_file(path)
            if not _is_stream(path):
                folder = next(folder for folder in path.resolve().parents if os.path.lexists(folder))
                tempfile.TemporaryFile(dir=folder).close()


def _require_file(path: Path) -> None:
    if path.is_dir() or not path.name:
        raise NotReplaceableError("it is a folder, not a file")


@contextmanager
def _explained(path: Path, error: type[Exception]) -> Iterator[None]:
    """Raise `error`, which says what to do, in place of an error of the file system."""
    try:
        yield
    except (OSError, RuntimeError) as problem:
        causes = list(_causes(problem))
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            raise KeyboardInterrupt from None
        reason = next((cause for cause in causes if isinstance(cause, OSError)), None)
        if reason is None:
            raise
        if isinstance(reason, NotReplaceableError):
            raise error(f"cannot write {path}: {reason}. Name another file.") from problem
        if isinstance(reason, FileExistsError | NotADirectoryError):
            raise error(f"cannot write {path}: a part of its path is a file. Name another folder.") from problem
        raise error(
            f"cannot write {path}: {reason.strerror or reason}. The previous file, if there was one, is unchanged. "
            "Free some space or choose another folder."
        ) from problem


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files. Move them into place in the given order, after all of them are on the disk.

    Raises OSError if one cannot be written; the previous files are then unchanged.
    """
    with _temporary(list(contents)) as unfinished:
        for path, content in zip(unfinished, contents.values(), strict=True):
            path.write_bytes(content)


@contextmanager
def _temporary(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths of temporary files. At the end they are flushed to disk and moved to `paths`, or removed.

    Raises NotReplaceableError, before anything is written, for a path that can be neither replaced nor written into.
    """
    writer = f"{UNFINISHED}{os.getpid()}-{threading.get_ident()}"
    with ExitStack() as scratch:
        streams = [_is_stream(path) for path in paths]
        places = [path if stream else path.resolve() for path, stream in zip(paths, streams, strict=True)]
        folders = [
            Path(scratch.enter_context(tempfile.TemporaryDirectory())) if stream else place.parent
            for place, stream in zip(places, streams, strict=True)
        ]
        unfinished = [folder / f"{writer}-{path.name}" for folder, path in zip(folders, places, strict=True)]
        try:
            yield unfinished
            for path in unfinished:
                with path.open("r+b") as file:
                    os.fsync(file.fileno())
            for new, place, stream in zip(unfinished, places, streams, strict=True):
                if stream:
                    _write_into(place, new.read_bytes())
                else:
                    os.replace(new, place)
        finally:
            for path in unfinished:
                path.unlink(missing_ok=True)


class NotReplaceableError(OSError):
    """The destination of a file is neither a regular file nor a stream that takes bytes."""


def _is_stream(path: Path) -> bool:
    """Check whether a path leads to a pipe, a terminal or another device that takes bytes.

    Raises NotReplaceableError for a socket, a disk, a folder, and the file that standard output or error go to.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return True
    if not stat.S_ISREG(found.st_mode):
        raise NotReplaceableError("it is not a regular file")
    if any(os.path.samestat(found, os.fstat(descriptor)) for descriptor in _printed()):
        raise NotReplaceableError("what this program prints goes into it")
    return False


def _printed() -> Iterator[int]:
    """Descriptors of standard output and error, as far as they are open."""
    for descriptor in (1, 2):
        with suppress(OSError):
            os.fstat(descriptor)
            yield descriptor


def _write_into(path: Path, content: bytes) -> None:
    """Write bytes into a pipe or device. Raises NotReplaceableError for a pipe without a reader, which would block."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise NotReplaceableError("nobody reads this pipe") from error
        raise
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as stream:
        stream.write(content)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, its cause, the cause of the cause, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def file_hash(content: bytes) -> str:
    """SHA-256 of the text of a model file, the same for every kind of line ends."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def shipped(name: str) -> Path:
    """The folder of the shipped models or artifacts: inside the package in a wheel, next to it in a checkout."""
    inside = Path(__file__).resolve().parent / name
    return inside if inside.is_dir() else inside.parents[1] / name


def page(path: str) -> str:
    """Where a page of the documentation is, for a message. path: in docs, such as how-to/train.md."""
    urls = metadata(PACKAGE).get_all("Project-URL") or []
    site = next((url.partition(", ")[2] for url in urls if url.startswith("Documentation, ")), None)
    if site is not None:
        return f"{site.rstrip('/')}/docs/{path.removesuffix('.md')}.html"
    return str(shipped("docs") / path)


def require_file(path: Path) -> None:
    """Raise ModelError unless there is a file."""
    if not path.is_file():
        raise ModelError(f"{path} is a folder; name the file in it." if path.is_dir() else f"there is no file {path}.")


def kept(name: str, suffix: str, made_from: str, make: Callable[[], bytes]) -> bytes:
    """Bytes that `make` returns, or the same bytes from an earlier process.

    name: the beginning of the name of their file. made_from: text that identifies the bytes, such as the digest of the
    program, the hash of the source files that make them, and the versions of the libraries.
    """
    file = f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()}{suffix}"
    content = next((found for folder in folders() if (found := _read(folder / file)) is not None), None)
    if content is None:
        content = make()
        keep(file, hashlib.sha256(content).digest() + content)
    return content


def _read(path: Path) -> bytes | None:
    """Bytes of a file behind their hash; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None


@functools.cache
def sources(*modules: ModuleType) -> str:
    """Hash of the source files of modules."""
    return hashlib.sha256(b"".join(Path(str(module.__file__)).read_bytes() for module in modules)).hexdigest()


def folders() -> Iterator[Path]:
    """Folders for what is kept, best first."""
    if os.environ.get(CACHE):
        yield Path(os.environ[CACHE])
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelgen"


def keep(name: str, content: bytes) -> Path | None:
    """Write a file into the first folder that can be written, and return its path.

    Returns None, with a warning, where no folder can be written.
    """
    for folder in folders():
        with suppress(ModelError), replacing(folder / name) as unfinished:
            unfinished.write_bytes(content)
            return folder / name
    warnings.warn(
        f"No folder can be written to keep the compiled code {name}: it is compiled again in every process. "
        f"Set {CACHE} to a folder that can be written.",
        stacklevel=2,
    )
    return None
