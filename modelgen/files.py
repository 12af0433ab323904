"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelgen.errors import ModelError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, with its suffix; it becomes `path` at the end, and goes where that fails.

    Makes the folder. Raises ModelError when the file cannot be written.
    """
    if path.is_dir() or not path.name:
        raise ModelError(f"cannot write {path}: it is a folder. Name a file in it.")
    beside = path.with_name(f".{os.getpid()}-{threading.get_ident()}{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror or error}. Choose another place.") from error
