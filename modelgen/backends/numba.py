"""Numba: the emitted module of plain Python compiled by `numba.njit`, and loops over batches by `prange`.

For a user's own jitted loops, `numba_function` gives the functions of one sample. For batches the backend `llvm` is
faster in most cases, for it computes a vector of samples at once, and it compiles much faster.

Numba keeps its machine code in files. The module that it compiles is written beside them under a name that holds the
hash of its content, so that machine code of another content is never loaded.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest, Signature
from modelgen.backends.cache import folders, keep
from modelgen.backends.host import Array, HostKernels
from modelgen.backends.modules import emitted_module
from modelgen.backends.python import emit
from modelgen.errors import ModelError, suggestion

__all__ = ["emit", "load"]

#: Numba takes some milliseconds an operation to compile: beyond so many operations it is not asked to.
MOST_OPERATIONS = 5_000
#: Division by zero gives infinity, as in every backend; the same freedom of rounding as in `llvm`.
_OPTIONS = 'error_model="numpy", fastmath={"contract", "nsz"}, nogil=True'

_process = os.getpid()  # threads do not survive a fork, so a child that is forked from here runs its loops serially
_launch = threading.Lock()  # not every threading layer of Numba's takes loops from two threads at once


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> NumbaKernels:
    """The jitted functions. Numba compiles each at its first call, or reads its machine code from the cache."""
    path, content = source(folder, manifest, "numba")
    module = _imported(path.stem, _jitted(content.decode(), manifest.functions, dtype))
    return NumbaKernels(module, manifest, dtype, parallel)


class NumbaKernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, module: ModuleType, manifest: Manifest, dtype: str, parallel: bool) -> None:
        super().__init__(manifest, dtype)
        self._module = module
        self._parallel = parallel
        self._robot = manifest.metadata.name
        self._operations = manifest.operations

    def numba_function(self, name: str) -> Any:
        """The jitted function of one sample: `f(x, u, theta, xdot)` fills xdot, as the emitted module states it.

        Raises ModelError for an unknown name and for a function of more than MOST_OPERATIONS operations.
        """
        if name not in self._signatures:
            known = ", ".join(self._signatures)
            raise ModelError(f"There is no function {name!r}.{suggestion(name, self._signatures)} Known: {known}.")
        if self._operations[name] > MOST_OPERATIONS:
            raise ModelError(
                f"`{name}` of {self._robot} has {self._operations[name]} operations, and Numba would compile it for "
                f"minutes; the limit is {MOST_OPERATIONS}. Load the robot with backend='llvm', which compiles "
                "functions of this size over batches in seconds."
            )
        return getattr(self._module, name)

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        self.numba_function(function)
        signature = self._signatures[function]
        rows = [arrays[name].reshape(-1, self._sizes[name]) for name in signature.arguments]
        rows += [
            result.reshape(samples, math.prod(shape))
            for result, (_, shape) in zip(results, signature.outputs, strict=True)
        ]
        own_theta = "theta" in arrays and arrays["theta"].ndim == 2
        if self._parallel and os.getpid() == _process:
            with _launch:
                getattr(self._module, f"{function}_parallel")(samples, int(own_theta), *rows)
        else:
            getattr(self._module, f"{function}_serial")(samples, int(own_theta), *rows)


def _imported(stem: str, text: str) -> ModuleType:
    """The module of that text, from a folder where Numba can keep machine code beside it, if there is one."""
    content = text.encode()
    name = f"{stem}.numba_{hashlib.sha256(content).hexdigest()}.py"
    for folder in folders():
        with contextlib.suppress(OSError):
            if (folder / name).read_bytes() == content and os.access(folder, os.W_OK):
                return emitted_module(folder / name, content)
    kept = keep(name, content)
    if kept is not None:
        return emitted_module(kept, content)
    return emitted_module(Path(name), content.replace(b"cache=True", b"cache=False"))


def _jitted(text: str, functions: dict[str, Signature], dtype: str) -> str:
    """The emitted module with every function jitted, and two loops over samples for each function of the robot."""
    tree = ast.parse(text)
    head = ["import numba"]
    if dtype == "float32":
        literals = _Float32()
        tree = ast.fix_missing_locations(literals.visit(tree))
        head += ["import numpy", *(f"{name} = numpy.float32({value!r})" for value, name in literals.names.items())]
    parts = ["import math", *head]
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            parts.append(f"@numba.njit({_OPTIONS}, cache=True)\n{ast.unparse(each)}")
    for name, signature in functions.items():
        parts += [_loop(name, signature, way) for way in ("serial", "parallel")]
    return "\n\n".join(parts) + "\n"


def _loop(function: str, signature: Signature, way: str) -> str:
    """`own_theta` is 1 where every sample has its own row of theta, and 0 where one row holds for all.

    An output may have its function's name, which the loop calls; so the arrays have names that no function has.
    """
    names = [f"{name}_rows" for name in (*signature.arguments, *(name for name, _ in signature.outputs))]
    rows = ", ".join("theta_rows[i * own_theta]" if name == "theta_rows" else f"{name}[i]" for name in names)
    return (
        f"@numba.njit({_OPTIONS}, cache=True, parallel={way == 'parallel'})\n"
        f"def {function}_{way}(samples, own_theta, {', '.join(names)}):\n"
        f"    for i in numba.prange(samples):\n"
        f"        {function}({rows})"
    )


class _Float32(ast.NodeTransformer):
    """Numbers as names of float32 constants: a literal is a float64 for Numba, and would promote what it meets."""

    def __init__(self) -> None:
        self.names: dict[float, str] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Indices stay as they are."""
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A number becomes a name; a doc string stays."""
        if not isinstance(node.value, int | float):
            return node
        return ast.Name(self.names.setdefault(float(node.value), f"_number{len(self.names)}"), ast.Load())
