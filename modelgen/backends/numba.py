"""Numba: functions of one sample as a module of plain Python, which `numba.njit` compiles, and batches by `prange`.

The module stands beside every program as `kernels.py`: anyone can read, copy and run it, and it needs nothing but
Python. The backend makes its own text from the program and runs no file of an artifact.

For a user's own jitted loops, `numba_function` gives the functions of one sample. For batches the backend `llvm` is
faster in most cases, because it computes a vector of samples at once, and it compiles much faster.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from modelgen.backends import MOST_OPERATIONS
from modelgen.backends.arrays import Array, HostKernels
from modelgen.backends.statements import Assignment, Text, module, statements
from modelgen.errors import ModelError
from modelgen.files import folders, keep
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program

#: Division by zero gives infinity, as in every backend; the same freedom of rounding as in `llvm`.
_OPTIONS = 'error_model="numpy", fastmath={"contract", "nsz"}, nogil=True, cache=True'
_HEAD = '''"""{robot}: functions of one sample, made by modelgen; not to be edited.

x (n,), u (m,), costate (n,), theta (p,) are read; the other arguments are filled, row by row.
numba.njit compiles them as they are; modelgen.load makes kernels for batches of the same functions.
"""

import math
'''
#: Functions that Python's `math` lacks; they are written into the module that calls them.
_HELPERS = {
    "sign": '''def sign(x):
    """-1, 0 or 1; NaN for NaN."""
    return x if (x != x) | (x == 0) else abs(x) / x
''',
    "minimum": '''def minimum(a, b):
    """The smaller of two; NaN when one of them is NaN."""
    return a if (a < b) | (a != a) else b
''',
    "maximum": '''def maximum(a, b):
    """The larger of two; NaN when one of them is NaN."""
    return a if (a > b) | (a != a) else b
''',
}

_process = os.getpid()  # threads do not survive a fork, so a child that is forked from here runs its loops serially
_launch = threading.Lock()  # not every threading layer of Numba's takes loops from two threads at once


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """The module `kernels.py`: one function of the program after the other, and the helpers that they call."""
    return {"kernels.py": "\n\n".join([_HEAD.format(robot=robot.name), *_functions(program, repr)]).encode()}


def _functions(program: Program, literal: Callable[[float], str]) -> list[str]:
    """Texts of the helpers and of all functions."""
    called: set[str] = set()

    def call(name: str, arguments: list[str]) -> str:
        called.add(name)
        return f"{name if name == 'abs' or name in _HELPERS else f'math.{name}'}({', '.join(arguments)})"

    functions = [_function(program, function, literal, call) for function in program.functions]
    return [*(text for name, text in _HELPERS.items() if name in called), *functions]


def _function(
    program: Program, function: Function, literal: Callable[[float], str], call: Callable[[str, list[str]], str]
) -> str:
    code = statements(program.graph, function)
    text = Text(code, literal, call)
    body = [f"{code.names[entry.node]} = {entry.array}[{entry.index}]" for entry in code.entries]
    for line in code.body:
        if isinstance(line, Assignment):
            names, values = zip(*text.assigned(line), strict=True)
            body.append(f"{', '.join(names)} = {', '.join(values)}")
        else:
            body.append(f"{line.array}[{line.index}] = {text(line.node)}")
    return (
        "\n".join(
            [f"def {function.name}({', '.join(function.arrays)}):", *(f"    {line}" for line in body or ["pass"])]
        )
        + "\n"
    )


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> NumbaKernels:
    """The jitted functions. Numba compiles each at its first call, or reads its machine code from the cache."""
    text = _jitted(program, dtype).encode()
    return NumbaKernels(_imported(robot.name, text), program, robot, dtype, parallel)


class NumbaKernels(HostKernels):
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, module: ModuleType, program: Program, robot: Metadata, dtype: str, parallel: bool) -> None:
        super().__init__(program, robot, dtype)
        self._module = module
        self._parallel = parallel
        self._robot = robot.name
        self._operations = program.operations

    def numba_function(self, name: str) -> Any:
        """The jitted function of one sample: `f(x, u, theta, xdot)` fills xdot.

        Raises ModelError for an unknown name and for a function of more than 5 000 operations.
        """
        self.require(name)
        if self._operations[name] > MOST_OPERATIONS["numba"]:
            raise ModelError(
                f"`{name}` of {self._robot} has {self._operations[name]} operations, and Numba would compile it for "
                f"minutes; the limit is {MOST_OPERATIONS['numba']}. Load the robot with backend='llvm', which compiles "
                "functions of this size over batches in seconds."
            )
        return getattr(self._module, name)

    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        self.numba_function(function)
        rows = [np.atleast_2d(arrays[argument.name]) for argument in self._functions[function].arguments]
        rows += [result.reshape(samples, math.prod(result.shape[1:])) for result in results]
        own_theta = "theta" in arrays and arrays["theta"].ndim == 2
        if self._parallel and os.getpid() == _process:
            with _launch:
                getattr(self._module, f"{function}_parallel")(samples, int(own_theta), *rows)
        else:
            getattr(self._module, f"{function}_serial")(samples, int(own_theta), *rows)


def _imported(robot: str, text: bytes) -> ModuleType:
    """The module of that text, in a folder where Numba can keep machine code, if there is one.

    Numba trusts the machine code that stands beside a module's file, so the file's name holds the hash of its text.
    """
    name = f"{robot}.numba_{hashlib.sha256(text).hexdigest()}.py"
    for folder in folders():
        with contextlib.suppress(OSError):
            if (folder / name).read_bytes() == text and os.access(folder, os.W_OK):
                return module(folder / name, text)
    kept = keep(name, text)
    if kept is not None:
        return module(kept, text)
    return module(Path(name), text.replace(b"cache=True", b"cache=False"))


def _jitted(program: Program, dtype: str) -> str:
    """A module of all functions, jitted, and of two loops over samples for each function."""
    numbers: dict[float, str] = {}

    def single(value: float) -> str:
        """A name, because Numba would take a written number as a float64 and promote what it meets."""
        return numbers.setdefault(value, f"_number{len(numbers)}")

    functions = _functions(program, single if dtype == "float32" else repr)
    head = ["import math\n\nimport numba\nimport numpy", *(f"{n} = numpy.float32({v!r})" for v, n in numbers.items())]
    parts = [f"@numba.njit({_OPTIONS})\n{function}" for function in functions]
    parts += [_loop(function, way) for function in program.functions for way in ("serial", "parallel")]
    return "\n\n".join([*head, *parts]) + "\n"


def _loop(function: Function, way: str) -> str:
    """`own_theta` is 1 where every sample has its own row of theta, and 0 where one row holds for all.

    An output may have its function's name, which the loop calls; so the arrays have names that no function has.
    """
    names = [f"{name}_rows" for name in function.arrays]
    rows = ", ".join("theta_rows[i * own_theta]" if name == "theta_rows" else f"{name}[i]" for name in names)
    return (
        f"@numba.njit({_OPTIONS}, parallel={way == 'parallel'})\n"
        f"def {function.name}_{way}(samples, own_theta, {', '.join(names)}):\n"
        f"    for i in numba.prange(samples):\n"
        f"        {function.name}({rows})\n"
    )
