"""Where compiled code is kept between processes: the first folder of a short list that can be written.

Never beside an artifact: machine code runs unseen, and an artifact may come from somebody else.
"""

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


def folders() -> Iterator[Path]:
    """Where compiled code may be kept, best first."""
    if os.environ.get(CACHE):
        yield Path(os.environ[CACHE])
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelgen"


def keep(name: str, content: bytes) -> Path | None:
    """Write a file into the first folder that can be written, and return where it is.

    Returns None, with a warning, where no folder can be written.
    """
    for folder in folders():
        with contextlib.suppress(ModelError), replacing(folder / name) as unfinished:
            unfinished.write_bytes(content)
            return folder / name
    warnings.warn(
        f"No folder can be written to keep the compiled code {name}: it is compiled again in every process. "
        f"Set {CACHE} to a folder that can be written.",
        stacklevel=2,
    )
    return None
