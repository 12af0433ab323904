"""Where compiled code is kept between processes: the first folder of a short list that can be written."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from modelgen.errors import ModelError
from modelgen.files import replacing

#: Names a folder for compiled code that is used before all others.
CACHE = "MODELGEN_CACHE"


def folders(beside: Path) -> Iterator[Path]:
    """Where compiled code may be kept, best first; `beside` is a folder beside the artifact's files."""
    if os.environ.get(CACHE):
        yield Path(os.environ[CACHE])
    yield beside
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelgen"


def keep(path: Path, content: bytes) -> Path | None:
    """Write a file into the first folder that can be written, and return where it is.

    Returns None, with a warning, where no folder can be written.
    """
    for folder in folders(path.parent):
        with contextlib.suppress(ModelError), replacing(folder / path.name) as unfinished:
            unfinished.write_bytes(content)
            return folder / path.name
    warnings.warn(
        f"No folder can be written to keep the compiled code {path.name}: it is compiled again in every process. "
        f"Set {CACHE} to a folder that can be written.",
        stacklevel=2,
    )
    return None
