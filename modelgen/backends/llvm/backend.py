"""LLVM: the functions of a program as vector code for batches, compiled by llvmlite.

The functions of one sample are translated (`translate`, `vectors`, `transpose`, `elementary`) and compiled (`native`).
A kernel is serial and releases the GIL. With `parallel` the samples are cut into one chunk per thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from modelgen.backends import statements
from modelgen.backends.arrays import Array, HostKernels
from modelgen.backends.llvm import elementary, native, translate, vectors
from modelgen.backends.threads import run_chunks
from modelgen.files import sources
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

_REALS = {"float64": "double", "float32": "float"}
_TRANSLATORS = translate, vectors, elementary, statements  # which make LLVM code of a program
MOST_ON_STACK = 1_000_000  # bytes of results of one vector of samples: a thread's stack may have 8 MB, or 1
_buffer: Callable[[Any], object] = (ctypes.c_char * 0).from_buffer


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> LlvmKernels:
    """The compiled functions; machine code is made, or read from the cache, at a function's first call."""
    return LlvmKernels(program, robot, dtype, parallel)


class LlvmKernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, program: Program, robot: Metadata, dtype: str, parallel: bool) -> None:
        super().__init__(program, robot, dtype)
        self._program = program
        self._robot = robot.name
        self._real = _REALS[dtype]
        self._lanes = vectors.LANES[self._real]
        self._parallel = parallel
        self._operations = program.operations
        self._compiled: dict[tuple[str, bool], Callable[..., None]] = {}

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        inputs = [arrays[argument.name] for argument in self._functions[function].arguments]
        shared = "theta" in arrays and arrays["theta"].ndim == 1
        kernel = self._compiled.get((function, shared)) or self._kernel(function, shared)
        if (
            0 < samples < self._lanes
            and self._lanes * sum(result.nbytes for result in results) > samples * MOST_ON_STACK
        ):
            inputs = [array if array.ndim == 1 else _padded(array, self._lanes) for array in inputs]
            padded = [_padded(array, self._lanes) for array in results]
            kernel(0, self._lanes, *(_address(array) for array in (*inputs, *padded)))
            for result, array in zip(results, padded, strict=True):
                result[:] = array[:samples]
            return
        addresses = [_address(array) for array in (*inputs, *results)]
        if samples and self._parallel:

            def chunk(first: int, last: int, _: object = (inputs, results)) -> None:
                # Threads may outlive this call when Ctrl-C ends it; the arrays whose addresses they have must, too.
                kernel(first, last, *addresses)

            run_chunks(chunk, samples, self._operations[function])
        elif samples:
            kernel(0, samples, *addresses)

    def llvm_code(self, function: str, shared: bool) -> str:
        """LLVM code of a function; `shared` for one theta for all samples."""
        return translate.llvm_code(self._program.graph, self._functions[function], self._real, shared)

    def _kernel(self, function: str, shared: bool) -> Callable[..., None]:
        described = self._functions[function]
        variant = f"{function}-{self._real}{'-shared' if shared else ''}"
        kernel = self._compiled[function, shared] = native.function(
            function,
            len(described.arguments) + len(described.outputs),
            f"{self._robot}_{self._program.digest[:12]}.{variant}",
            f"{sources(*_TRANSLATORS)} {variant} {self._program.digest}",
            lambda: self.llvm_code(function, shared),
        )
        return kernel


def _padded(array: Array, rows: int) -> Array:
    """Copy of the array with rows of zeros at the end."""
    padded = np.zeros((rows, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded


def _address(array: Array) -> object:
    """Address of an array's memory, for C; `array.ctypes` gives the same, but takes ten times as long."""
    return _buffer(array) if array.flags.writeable else array.ctypes.data
