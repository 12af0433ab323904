"""Numba: plain Python functions of one sample, which `numba.njit` compiles as they are.

For batches the same text becomes vector code (`vectors`), compiled by LLVM through Numba's llvmlite alone (`native`).
Kernels are serial and release the GIL; with `parallel` the samples are cut into one chunk a thread.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import hashlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from modelgen.artifact.manifest import Manifest
from modelgen.backends.host import Array, HostKernels
from modelgen.backends.listing import Dialect, listing
from modelgen.backends.llvm import elementary, native, vectors
from modelgen.backends.llvm import translate as translation
from modelgen.backends.llvm import transpose as transposition
from modelgen.backends.llvm.threads import run_chunks
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program
from modelgen.program.graph import Graph, Node

#: Functions that are not in `math`: built in, or written into the module when they are used.
_HELPERS = {each.__name__: each for each in (elementary.sign, elementary.minimum, elementary.maximum)}
_REALS = {"float64": "double", "float32": "float"}
_NAME = re.compile(r"\bt\d+[sc]?\b")
_buffer: Callable[[Any], object] = (ctypes.c_char * 0).from_buffer


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """One module that needs nothing but Python."""
    kernels = [_kernel(program, function) for function in program.functions]
    helpers = [
        inspect.getsource(each) for name, each in _HELPERS.items() if any(f"{name}(" in text for text in kernels)
    ]
    head = (
        f'"""{robot.name}: functions of one sample, made by modelgen; not to be edited.\n\n'
        "x (n,), u (m,), costate (n,), theta (p,) are read; the other arguments are filled, row by row.\n"
        'numba.njit compiles them as they are; modelgen.load makes kernels for batches of them.\n"""\n\nimport math\n'
    )
    return {"numba.py": "\n\n".join([head, *helpers, *kernels]).encode()}


def _kernel(program: Program, function: Function) -> str:
    """Every result stands as soon as it can be stored, so that nothing waits for it in a register."""
    graph = program.graph
    lines = listing(graph, function, Dialect(repr, _call, sincos=lambda a: f"math.sin({a}), math.cos({a})"))
    unused = _unused(graph, function)
    used = {*graph.reachable(function.roots), *unused.values()}
    body = [
        f"{graph.operations[node].name} = {argument.name}[{j}]"
        for argument in function.arguments
        for j, node in enumerate(argument.entries)
        if node in used
    ]
    made = {name: k for k, (names, _) in enumerate(lines.assignments) for name in names.split(", ")}
    ready: list[list[str]] = [[] for _ in range(len(lines.assignments) + 1)]
    for output in function.outputs:
        for j, node in enumerate(output.entries):
            value = lines.roots[node]
            if (output.name, j) in unused:
                name = graph.operations[unused[output.name, j]].name
                value = f"{name} - {name}"
            last = max((made[name] + 1 for name in _NAME.findall(value)), default=0)
            ready[last].append(f"{output.name}[{j}] = {value}")
    body += ready[0]
    for (names, text), results in zip(lines.assignments, ready[1:], strict=True):
        body += [f"{names} = {text}", *results]
    names = ", ".join([*(each.name for each in function.arguments), *(each.name for each in function.outputs)])
    return "\n".join([f"def {function.name}({names}):", *(f"    {line}" for line in body)]) + "\n"


def _call(name: str, arguments: list[str]) -> str:
    return f"{name if name == 'abs' or name in _HELPERS else f'math.{name}'}({', '.join(arguments)})"


def _unused(graph: Graph, function: Function) -> dict[tuple[str, int], Node]:
    """Zero entries of a gradient by x, with the entry of x that nothing else uses: they are written x_j - x_j.

    So NaN gives NaN there too.
    """
    used = set(graph.reachable(function.roots))
    x = next(argument for argument in function.arguments if argument.name == "x")
    return {
        (output.name, j): node
        for output in function.outputs
        if output.name in ("dH_dx", "dq_dx")
        for j, (node, entry) in enumerate(zip(x.entries, output.entries, strict=True))
        if entry == graph.zero and node not in used
    }


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> NumbaKernels:
    """The compiled functions; machine code is made, or read from the cache, at a function's first call."""
    (name,) = manifest.files["numba"]
    return NumbaKernels(folder / name, (folder / name).read_text(encoding="utf-8"), manifest, dtype, parallel)


class NumbaKernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, module: Path, text: str, manifest: Manifest, dtype: str, parallel: bool) -> None:
        super().__init__(manifest, dtype)
        self._module, self._text = module, text  # a rebuild may remove the file
        self._real = _REALS[dtype]
        self._parallel = parallel
        self._operations = manifest.operations
        self._compiled: dict[tuple[str, bool], Callable[..., None]] = {}

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        signature = self._signatures[function]
        inputs = [arrays[name] for name in signature.arguments]
        shared = arrays["theta"].ndim == 1
        kernel = self._compiled.get((function, shared)) or self._kernel(function, shared)
        addresses = [_address(array) for array in (*inputs, *results)]
        if samples and self._parallel:
            run_chunks(lambda first, last: kernel(first, last, *addresses), samples, self._operations[function])
        elif samples:
            kernel(0, samples, *addresses)

    def llvm_code(self, function: str, shared: bool) -> str:
        """What is compiled for a function; `shared` for one theta for all samples."""
        return translation.llvm_code(_statements(self._text)[function], self._widths(function), self._real, shared)

    def _widths(self, function: str) -> dict[str, int]:
        signature = self._signatures[function]
        widths = {name: self._sizes[name] for name in signature.arguments}
        return widths | {name: math.prod(shape) for name, shape in signature.outputs}

    def _kernel(self, function: str, shared: bool) -> Callable[..., None]:
        variant = f"{self._module.stem}.{function}-{self._real}{'-shared' if shared else ''}"
        kernel = self._compiled[function, shared] = native.function(
            function,
            len(self._widths(function)),
            self._module.parent / "__pycache__" / variant,
            f"{_translator()} {variant}",  # the module's name holds its content's hash
            lambda: self.llvm_code(function, shared),
        )
        return kernel


def _address(array: Array) -> object:
    """Of an array's memory, for C; `array.ctypes` says the same, but takes ten times as long."""
    return _buffer(array) if array.flags.writeable else array.ctypes.data


@functools.lru_cache(maxsize=2)
def _statements(text: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(text)
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@functools.cache
def _translator() -> str:
    """Which LLVM code is made of an emitted module, as a hash."""
    files = [Path(str(module.__file__)) for module in (translation, vectors, transposition, elementary)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
