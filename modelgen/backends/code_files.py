"""Code made while loading: Python text as a module."""

from __future__ import annotations

import hashlib
import marshal
import sys
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType

from modelgen.errors import ModelError
from modelgen.files import kept


def module(path: Path, content: bytes) -> ModuleType:
    """The module of that text, run once a process; `path` is where tracebacks and Numba say that it stands."""
    return _run_once(path, hashlib.sha256(content).hexdigest(), lambda: compile(content, path, "exec"))


def kept_module(path: Path, made_from: str, make: Callable[[], str]) -> ModuleType:
    """The module of a text, whose compiled code is kept; `make` returns the text and is called where there is none.

    made_from: text that identifies the module's, as in `kept`. Numba's jitted functions cannot be kept in this way.
    """
    key = f"{MAGIC_NUMBER.hex()} {made_from}"

    def made() -> bytes:
        return marshal.dumps(compile(make(), path, "exec"))

    return _run_once(
        path, hashlib.sha256(key.encode()).hexdigest(), lambda: marshal.loads(kept(path.stem, ".code", key, made))
    )


def _run_once(path: Path, key: str, code: Callable[[], CodeType]) -> ModuleType:
    name = f"modelgen_made_{key}"
    if name in sys.modules:
        return sys.modules[name]
    made = ModuleType(name)
    made.__file__ = str(path)
    sys.modules[name] = made
    try:
        exec(code(), made.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise ModelError(f"this backend needs a package that is not installed: {error}.") from error
        raise
    return made
