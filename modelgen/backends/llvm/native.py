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

from modelgen.backends.cache import folders, keep

_lock = threading.RLock()
_engines: list[Any] = []  # machine code lives as long as its engine


def function(name: str, arrays: int, kept_as: Path, made_from: str, make: Callable[[], str]) -> Callable[..., None]:
    """`name(first, last, addresses...)`, releasing the GIL; `make` gives its LLVM code when none is kept.

    kept_as is the file of its machine code beside the artifact, made_from the text that the LLVM code is a
    function of; this processor and this LLVM are added to it.
    """
    with _lock:
        key = hashlib.sha256("\n".join([made_from, llvmlite.__version__, *_host()]).encode()).hexdigest()
        kept_as = kept_as.with_name(f"{kept_as.name}-{key[:16]}.o")
        code = next((found for folder in folders(kept_as.parent) if (found := _read(folder / kept_as.name))), None)
        if code is None:
            code = _compiled(make())
            keep(kept_as, hashlib.sha256(code).digest() + code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        types = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * arrays
        return ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(name))


def _compiled(text: str) -> bytes:
    """LLVM's optimiser is not run: the code has no variable, no branch and no equal subexpressions."""
    module = llvm.parse_assembly(text)
    module.verify()
    code: bytes = _machine().emit_object(module)
    return code


def _host() -> tuple[str, str, str]:
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, processor, features = _host()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=processor, features=features, opt=3, jit=True, codemodel="jitdefault")


def _read(path: Path) -> bytes | None:
    """Machine code as it was written, or None: a damaged file counts as none."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None
