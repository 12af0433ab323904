"""Backends by name: a backend is one module with the function of `Backend`. README.md says how to add one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Protocol, cast

from modelgen.metadata import Metadata
from modelgen.program.functions import Program

#: The one place where a backend is listed; modules are imported when they are used.
MODULES = {
    "llvm": "modelgen.backends.llvm",
    "numba": "modelgen.backends.numba",
    "casadi": "modelgen.backends.casadi",
    "torch": "modelgen.backends.torch",
    "jax": "modelgen.backends.jax",
    "js": "modelgen.backends.js",
}
#: What stands beside the program in an artifact, for those who read it or use it without modelgen.
BESIDE = {"numba": "modelgen.backends.numba", "casadi": "modelgen.backends.casadi"}
#: What `modelgen export` writes on demand.
EXPORTS = {
    "c": "modelgen.backends.c",
    "casadi": "modelgen.backends.casadi",
    "js": "modelgen.backends.js",
    "fmu": "modelgen.backends.fmu",
    "fmu2": "modelgen.backends.fmu:Fmi2",
}
#: By backend, the operations of a function beyond which `verify` leaves it out, and Numba refuses it: they compile an
#: operation in milliseconds.
MOST_OPERATIONS = {"numba": 5_000, "jax": 5_000}


class Kernels(Protocol):
    """The functions of one artifact, compiled for one backend and one number format."""

    def constant(self, values: Sequence[Any]) -> Any:
        """The values as an array of this backend's kind and dtype."""

    def with_nominal(self, values: Sequence[float]) -> Kernels:
        """The same functions with other values (p,) where `theta` is not given."""

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """The outputs of a function; arrays are checked, `theta` is (p,) or (N, p)."""


class Backend(Protocol):
    """What a backend's module offers."""

    def load(self, program: Program, robot: Metadata, dtype: str, parallel: bool) -> Kernels:
        """The kernels of a program."""


class Emitter(Protocol):
    """What the module of an export offers."""

    def emit(self, program: Program, robot: Metadata) -> dict[str, bytes]:
        """File name -> content, the same bytes for the same program on every machine; an FMU has machine code too."""


def backend(name: str) -> Backend:
    return cast(Backend, import_module(MODULES[name]))


def emitter(name: str) -> Emitter:
    return cast(Emitter, resolve_name((BESIDE | EXPORTS)[name]))


def exported(program: Program, robot: Metadata, target: str) -> dict[str, bytes]:
    """Files of one of `EXPORTS` by their names, which begin with the robot's."""
    files = emitter(target).emit(program, robot)
    return {f"{robot.name}_{name}": text for name, text in files.items()} if target in BESIDE else files
