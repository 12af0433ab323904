"""Import an emitted Python module of an artifact that is trusted."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType

from modelgen.errors import ArtifactError


def emitted_module(path: Path, content: bytes) -> ModuleType:
    """The module of that content, run once a process; `path` is where tracebacks and Numba say that it stands.

    Python's own import would take compiled code from a folder beside the file, whoever put it there.
    """
    name = f"modelgen_artifact_{hashlib.sha256(content).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise ArtifactError(f"{path} needs a package that is not installed: {error}.") from error
        raise
    return module
