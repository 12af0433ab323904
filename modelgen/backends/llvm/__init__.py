"""LLVM: the functions of a program as vector code for batches, compiled by llvmlite and kept for the next process.

The environment variable MODELGEN_CPU names it: `native` (the default), `x86-64`, `x86-64-v2`, `x86-64-v3` (AVX2 and
fused multiply-add, since 2013) or `x86-64-v4` (AVX-512). Machine code of a level runs on every processor of that level,
so that it can be shipped with an artifact.

What is equal bit for bit: a result depends neither on the sample's place in the batch, nor on the batch's size, nor on
the number of threads. `x86-64` and `x86-64-v2` have no fused multiply-add: every operation is rounded by itself, as in
plain Python. From `x86-64-v3` on, and with `native` where the processor has it, LLVM fuses products into sums, and
results differ from those of the lower levels by rounding. One level, one version of llvmlite: the same machine code,
hence the same bits on every machine, but for functions of the C library (exp, log, tanh, pow and their kind; not atan,
sine and cosine), which choose their code by the processor at run time. `native` promises nothing between machines.

The functions of one sample are translated (`translate`, `vectors`, `elementary`) and compiled here. A kernel is
serial and releases the GIL. With `parallel` the samples are cut into one chunk per thread.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from modelgen.backends import statements
from modelgen.backends.arrays import Array, HostKernels, run_chunks
from modelgen.backends.llvm import elementary, translate, vectors
from modelgen.errors import ModelError, suggestion
from modelgen.files import kept, sources
from modelgen.metadata import Metadata
from modelgen.program.functions import Program

#: Names the processor to make machine code for.
CPU = "MODELGEN_CPU"
#: Levels of x86-64 with some of the features, by LLVM's names, that each adds to the one before.
LEVELS = {
    "x86-64": (),
    "x86-64-v2": ("ssse3", "sse4.1", "sse4.2", "popcnt"),
    "x86-64-v3": ("avx2", "bmi2", "f16c", "fma", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}


class Target(NamedTuple):
    """A processor, in LLVM's words."""

    triple: str
    processor: str
    features: str


def target() -> Target:
    """The processor that MODELGEN_CPU names.

    Raises ModelError for an unknown name, and for a level that this machine cannot run.
    """
    name = os.environ.get(CPU) or "native"
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
    if name == "native":
        return Target(triple, llvm.get_host_cpu_name(), features.flatten())
    if name not in LEVELS:
        known = ("native", *LEVELS)
        raise ModelError(f"{CPU} is {name!r}.{suggestion(name, known)} Write one of: {', '.join(known)}.")
    levels = list(LEVELS)
    needed = [feature for level in levels[: levels.index(name) + 1] for feature in LEVELS[level]]
    missing = [feature for feature in needed if not features.get(feature)]
    if not triple.startswith("x86_64") or missing:
        lacks = f"lacks {', '.join(missing)}" if triple.startswith("x86_64") else f"is {triple.partition('-')[0]}"
        raise ModelError(f"{CPU} is {name}, which this processor cannot run: it {lacks}. Leave {CPU} out.")
    return Target(triple, name, "")


def vector_bytes() -> int:
    """Bytes of a vector register of the processor that MODELGEN_CPU names, of those of x86-64."""
    made_for, levels = target(), list(LEVELS)
    has = {feature[1:] for feature in made_for.features.split(",") if feature.startswith("+")}
    if made_for.processor in LEVELS:
        has.update(*(LEVELS[level] for level in levels[: levels.index(made_for.processor) + 1]))
    return 64 if "avx512f" in has else 32 if "avx2" in has else 16


_lock = threading.RLock()
_engines: list[Any] = []  # machine code lives as long as its engine


def machine_code(name: str, arrays: int, kept_as: str, made_from: str, make: Callable[[], str]) -> Callable[..., None]:
    """The kernel `name(first, last, addresses...)`, which releases the GIL.

    arrays: the number of addresses. kept_as: the beginning of the name of the file of its machine code. made_from: text
    that identifies the LLVM code; with the processor and the version of llvmlite it is the key of the kept code.
    make: returns the LLVM code; called where no machine code is kept.
    """
    with _lock:
        made_for = target()
        identity = "\n".join([made_from, llvmlite.__version__, *made_for])
        code = kept(kept_as, ".o", identity, lambda: _compiled(make(), made_for))
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine(made_for))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        types = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * arrays
        return ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(name))


def _compiled(text: str, made_for: Target) -> bytes:
    """LLVM's optimiser is not run: the code has no variable, no branch and no equal subexpressions."""
    module = llvm.parse_assembly(text)
    module.verify()
    code: bytes = machine(made_for).emit_object(module)
    return code


@functools.cache
def machine(made_for: Target) -> Any:
    """LLVM's code generator for a processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(made_for.triple).create_target_machine(
        cpu=made_for.processor, features=made_for.features, opt=3, jit=True, codemodel="jitdefault"
    )


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
        self._compiled: dict[tuple[str, bool], Callable[..., None]] = {}  # by name, and whether theta is shared
        stack = MOST_ON_STACK // (self._lanes * self._dtype.itemsize)
        #: Functions whose kernels would copy too much to the stack where there are fewer samples than lanes.
        self._large = {function.name for function in program.functions if len(function.roots) > stack}

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        inputs = [arrays[argument.name] for argument in self._functions[function].arguments]
        shared = "theta" in arrays and arrays["theta"].ndim == 1
        kernel = self._compiled.get((function, shared)) or self._kernel(function, shared)
        if 0 < samples < self._lanes and function in self._large:
            inputs = [array if array.ndim == 1 else _padded(array, self._lanes) for array in inputs]
            padded = [_padded(array, self._lanes) for array in results]
            kernel(0, self._lanes, *map(_address, (*inputs, *padded)))
            for result, array in zip(results, padded, strict=True):
                result[:] = array[:samples]
            return
        addresses = [*map(_address, inputs), *map(_address, results)]
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
        kernel = self._compiled[function, shared] = machine_code(
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
