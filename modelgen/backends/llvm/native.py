"""LLVM code -> functions at addresses of this process. Machine code is kept for the next process."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from modelgen.backends.code_files import folders, keep
from modelgen.backends.llvm.target import Target, target

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
        key = hashlib.sha256("\n".join([made_from, llvmlite.__version__, *made_for]).encode()).hexdigest()
        file = f"{kept_as}-{key}.o"
        code = next((kept for folder in folders() if (kept := _read(folder / file))), None)
        if code is None:
            code = _compiled(make(), made_for)
            keep(file, hashlib.sha256(code).digest() + code)
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


def _read(path: Path) -> bytes | None:
    """Machine code of a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None
