"""LLVM code -> functions at addresses of this process. Machine code is kept for the next process."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from modelgen.backends.llvm.target import Target, target
from modelgen.files import kept

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
