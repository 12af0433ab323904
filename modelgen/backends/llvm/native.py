"""LLVM code -> functions at addresses of this process. Machine code is kept for the next process.

The environment variable MODELGEN_CPU names it: `native` (the default), `x86-64`, `x86-64-v2`, `x86-64-v3` (AVX2 and
fused multiply-add, since 2013) or `x86-64-v4` (AVX-512). Machine code of a level runs on every processor of that level,
so that it can be shipped with an artifact.

What is equal bit for bit: a result depends neither on the sample's place in the batch, nor on the batch's size, nor on
the number of threads. `x86-64` and `x86-64-v2` have no fused multiply-add: every operation is rounded by itself, as in
plain Python. From `x86-64-v3` on, and with `native` where the processor has it, LLVM fuses products into sums, and
results differ from those of the lower levels by rounding. One level, one version of llvmlite: the same machine code,
hence the same bits on every machine, but for functions of the C library (exp, log, tanh, atan, pow and their kind; not
sine and cosine), which choose their code by the processor at run time. `native` promises nothing between machines.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from modelgen.errors import ModelError, suggestion
from modelgen.files import kept

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


_lock = threading.RLock()
_engines: list[Any] = []  # machine code lives as long as its engine


def function(name: str, arrays: int, kept_as: str, made_from: str, make: Callable[[], str]) -> Callable[..., None]:
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
