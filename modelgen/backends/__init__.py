"""Backends by name: each is one module with the two functions of `Backend`. README.md says how to add one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from modelgen.artifact.manifest import Manifest
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

#: The one place where a backend of the artifacts is listed; modules are imported when they are used.
MODULES = {
    "llvm": "modelgen.backends.llvm.backend",
    "numba": "modelgen.backends.numba",
    "casadi": "modelgen.backends.casadi",
    "torch": "modelgen.backends.torch",
}
#: Loaded as they are, in an engine that may not be installed, and not built: their code is made of another one's files.
TRANSLATED = {"js": "modelgen.backends.v8"}
#: Those whose files are read as arithmetic and never run, so that an artifact of anybody can be opened.
HARMLESS = {"llvm", "js"}
#: What `modelgen export` writes on demand; a module of these needs no `load`.
EXPORTS = {
    "c": "modelgen.backends.c",
    "casadi": "modelgen.backends.casadi",
    "js": "modelgen.backends.js",
}


class Kernels(Protocol):
    """The functions of one artifact, compiled for one backend and one number format."""

    def constant(self, values: Sequence[Any]) -> Any:
        """The values as an array of this backend's kind and dtype."""

    def with_nominal(self, values: Sequence[float]) -> Kernels:
        """The same functions with other values (p,) where `theta` is not given."""

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """The outputs of a function; arrays are checked, `theta` is (p,) or (N, p)."""


class Emitter(Protocol):
    """What an export's module offers."""

    def emit(self, program: Program, robot: Metadata) -> dict[str, bytes]:
        """File name -> content, the same bytes for the same program on every machine."""


class Backend(Emitter, Protocol):
    """What a backend's module offers."""

    def load(self, folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> Kernels:
        """The kernels of an artifact; the files are those that `artifact.folder.contents` gives, which checks them."""


def backend(name: str) -> Backend:
    return cast(Backend, import_module((MODULES | TRANSLATED)[name]))


def emitter(name: str) -> Emitter:
    return cast(Emitter, import_module((MODULES | EXPORTS)[name]))
