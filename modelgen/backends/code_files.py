"""Code made while loading: Python text as a module, and the folder that keeps compiled code between processes.

Compiled code is never looked for beside an artifact: machine code runs unseen, and an artifact may come from anybody.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from modelgen.errors import ModelError
from modelgen.files import replacing

#: Names a folder for compiled code that is used before all others.
CACHE = "MODELGEN_CACHE"


def module(path: Path, content: bytes) -> ModuleType:
    """The module of that text, run once a process; `path` is where tracebacks and Numba say that it stands."""
    name = f"modelgen_made_{hashlib.sha256(content).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    made = ModuleType(name)
    made.__file__ = str(path)
    sys.modules[name] = made
    try:
        exec(compile(content, path, "exec"), made.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise ModelError(f"this backend needs a package that is not installed: {error}.") from error
        raise
    return made


def folders() -> Iterator[Path]:
    """Folders for compiled code, best first."""
    if os.environ.get(CACHE):
        yield Path(os.environ[CACHE])
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelgen"


def keep(name: str, content: bytes) -> Path | None:
    """Write a file into the first folder that can be written, and return its path.

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
