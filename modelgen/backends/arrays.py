"""Arrays of a call: shapes checked for every backend, NumPy arrays and CPU Torch tensors, and threads over chunks.

Torch is never imported here: a tensor can only be passed by a caller that has imported it.

One pool a process, made when first needed and again after a fork. Safe to call from several threads at once.
"""

from __future__ import annotations

import copy
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np

from modelgen.errors import ModelError, suggestion
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program

Array = np.ndarray[Any, Any]


def check_shape(name: str, shape: tuple[int, ...], columns: int) -> None:
    """Raise ModelError unless the shape is (N, columns), or (columns,) for one sample; for theta, for all samples."""
    if len(shape) not in (1, 2) or shape[-1] != columns:
        few = "all samples" if name == "theta" else "one sample"
        raise ModelError(
            f"`{name}` has shape {shape}; it must be (N, {columns}), one row a sample, or ({columns},) for {few}."
        )


def sample_count(arrays: Mapping[str, Any]) -> int | None:
    """N, the rows of the first argument; None for one sample without that axis, which no other argument then has.

    theta of shape (p,) holds for every sample. Raises ModelError when the arrays disagree.
    """
    first, *others = arrays
    shape = arrays[first].shape
    samples = shape[0] if len(shape) == 2 else None
    for name in others:
        shape = arrays[name].shape
        rows = shape[0] if len(shape) == 2 else None
        if rows == samples or (rows is None and name == "theta"):
            continue
        given = ", ".join(f"{other} {array.shape}" for other, array in arrays.items())
        has = "is one sample" if rows is None else f"has {rows} rows"
        wanted = "is one sample" if samples is None else f"has {samples}"
        raise ModelError(f"`{name}` {has}, but `{first}` {wanted}; shapes are {given}.")
    return samples


class ProgramKernels(ABC):
    """The functions of a program and the nominal parameters, which every backend has."""

    def __init__(self, program: Program, robot: Metadata) -> None:
        self._functions = {function.name: function for function in program.functions}
        self._sizes = program.sizes
        self._nominal = self.constant([parameter.value for parameter in robot.parameters])

    @abstractmethod
    def constant(self, values: Sequence[Any]) -> Any:
        """The values as an array of this backend's kind and dtype."""

    @abstractmethod
    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """The function's outputs; `theta` None means the nominal parameters.

        Without the sample axis in the arguments, the outputs have none either.
        """

    def with_nominal(self, values: Sequence[float]) -> Self:
        """The same functions with other nominal parameters (p,)."""
        kernels = copy.copy(self)
        kernels._nominal = self.constant(values)
        return kernels

    def require(self, name: str) -> None:
        """Raise ModelError for a name that is no function of the program."""
        if name not in self._functions:
            known = ", ".join(self._functions)
            raise ModelError(f"There is no function {name!r}.{suggestion(name, self._functions)} Known: {known}.")

    def _given(self, arguments: Mapping[str, Any], checked: Callable[[str, Any], Any]) -> dict[str, Any]:
        """The checked arguments by name, with the nominal parameters where `theta` is None."""
        return {
            name: self._nominal if name == "theta" and value is None else checked(name, value)
            for name, value in arguments.items()
        }


class HostKernels(ProgramKernels):
    """Checks and results; a backend adds `_run`, which fills the result arrays."""

    def __init__(self, program: Program, robot: Metadata, dtype: str) -> None:
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        super().__init__(program, robot)

    def constant(self, values: Sequence[Any]) -> Array:
        """The values as an array of the robot's dtype."""
        return np.array(values, dtype=self._dtype)

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """As `ProgramKernels.evaluate`, into `out` where it is given."""
        arrays = self._given(arguments, self._array)
        samples = sample_count(arrays)
        rows = () if samples is None else (samples,)
        outputs = self._functions[function].outputs
        if out is not None:
            results = self._outputs(self._functions[function], rows, out, arrays)
        else:
            results = [np.empty((*rows, *output.shape), self._dtype) for output in outputs]
        if samples is None:  # the kernels take batches; these are views
            batch = {name: array if name == "theta" else array[None] for name, array in arrays.items()}
            self._run(function, batch, [result[None] for result in results], 1)
        else:
            self._run(function, arrays, results, samples)
        if out is not None:
            return tuple(out)
        for value in arguments.values():
            if value is not None and not isinstance(value, np.ndarray):
                return tuple(map(sys.modules["torch"].from_numpy, results))
        return tuple(results)

    @abstractmethod
    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        """Evaluate `function` for all samples into the result arrays."""

    def _array(self, name: str, value: Any) -> Array:
        """The memory of an argument, or a copy where its dtype or its order in memory is another."""
        array = value if isinstance(value, np.ndarray) else _memory(name, value)
        check_mask(name, array)
        check_shape(name, array.shape, self._sizes[name])
        if array.dtype == self._dtype and array.flags.c_contiguous:
            return array
        if array.dtype.kind not in "fiub":
            raise ModelError(f"`{name}` has dtype {array.dtype}; convert it to real numbers ({self._dtype.name}).")
        return np.ascontiguousarray(array, self._dtype)

    def _outputs(
        self, function: Function, rows: tuple[int, ...], out: Sequence[Any], arrays: dict[str, Array]
    ) -> list[Array]:
        names = [output.name for output in function.outputs]
        if not isinstance(out, (tuple, list)) or len(out) != len(names):
            raise ModelError(f"`out` must be a tuple of {len(names)} arrays: {', '.join(names)}.")
        used = list(arrays.items())
        results: list[Array] = []
        for output, given in zip(function.outputs, out, strict=True):
            array = _memory(f"out for {output.name}", given)
            expected = (*rows, *output.shape)
            if array.shape != expected or array.dtype != self._dtype:
                raise ModelError(
                    f"`out` for {output.name} has shape {array.shape} and dtype {array.dtype}; "
                    f"it must be {expected} and {self._dtype.name}."
                )
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise ModelError(f"`out` for {output.name} must be contiguous and writable.")
            for other_name, other in used:
                if np.may_share_memory(array, other):
                    raise ModelError(f"`out` for {output.name} overlaps `{other_name}` in memory; use separate arrays.")
            used.append((output.name, array))
            results.append(array)
        return results


def check_mask(name: str, value: Any) -> None:
    """Raise ModelError for a masked array."""
    if isinstance(value, np.ma.MaskedArray):
        raise ModelError(f"`{name}` is a masked array, whose mask no kernel reads. Pass {name}.filled(value).")


def _memory(name: str, value: Any) -> Array:
    """The memory of an array or of a tensor, not a copy."""
    if isinstance(value, np.ndarray):
        return value
    if not _is_tensor(value):
        raise ModelError(f"`{name}` is a {type(value).__name__}; it must be a NumPy array or a CPU Torch tensor.")
    try:  # what Torch refuses is looked into afterwards: this runs a dozen times in a control period
        array: Array = value.numpy()
    except (RuntimeError, TypeError) as error:
        raise _not_in_memory(name, value, error) from error
    return array


def _not_in_memory(name: str, tensor: Any, error: Exception) -> ModelError:
    """What is wrong with a tensor that Torch does not give as an array."""
    if tensor.device.type != "cpu" or tensor.layout is not sys.modules["torch"].strided:
        return ModelError(
            f"`{name}` is a tensor on {tensor.device} ({tensor.layout}); this backend takes dense CPU tensors. "
            f"Pass {name}.cpu(), or load the robot with backend='torch'."
        )
    if tensor.requires_grad:
        return ModelError(
            f"`{name}` requires a gradient, which does not flow through this backend. "
            f"Pass {name}.detach(), or load the robot with backend='torch'."
        )
    why = str(error).rstrip(".")
    return ModelError(f"`{name}` ({tensor.dtype}) has no memory to read: {why}. Pass {name}.float() or .double().")


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


#: Below so many operations a thread, about 0.1 ms, handing work over costs more than it saves.
_FEWEST = 4_000_000
#: A kernel computes as many samples as it has lanes, 16 at most, however few it is asked for.
_SMALLEST = 16
#: Operations that the calling thread does while the others wake up.
_HEAD_START = 1_000_000

_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """Number of threads: NUMBA_NUM_THREADS if it is set, otherwise the cores that this process may use."""
    count = os.environ.get("NUMBA_NUM_THREADS", "")
    if count.isdigit() and int(count) > 0:
        return int(count)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_chunks(chunk: Callable[[int, int], None], samples: int, operations: int) -> None:
    """Call chunk(start, stop) on ranges that cover all samples, at once on as many threads as pay for the operations.

    `operations` is the number a sample takes.
    """
    count = min(samples * operations // _FEWEST, samples // _SMALLEST)
    count = min(threads(), count) if count > 1 else 1
    if count == 1:
        chunk(0, samples)
        return
    first = min(samples - _SMALLEST * count, _HEAD_START // operations)
    bounds = [0, *(first + (samples - first) * k // count for k in range(1, count + 1))]
    jobs = [_workers().submit(chunk, bounds[k], bounds[k + 1]) for k in range(1, count)]
    chunk(bounds[0], bounds[1])
    for job in jobs:
        job.result()


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="modelgen")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
