"""Import an emitted Python module of an artifact."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from modelgen.errors import ArtifactError


def emitted_module(path: Path) -> ModuleType:
    """The module at `path`, imported once a process and content, for its name holds its content's hash."""
    name = f"modelgen_artifact_{path.stem.replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArtifactError(f"{path} cannot be imported: it is not a Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise ArtifactError(f"{path} needs a package that is not installed: {error}.") from error
        raise
    return module
