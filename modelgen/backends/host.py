"""What the CPU backends share: NumPy arrays and CPU Torch tensors checked, results made, `out` honoured.

Torch is never imported here: a tensor can only be passed by a caller that has imported it.
"""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from modelgen.artifact.manifest import Manifest, Signature
from modelgen.backends.array_checks import check_shape, sample_count
from modelgen.errors import ModelError

Array = np.ndarray[Any, Any]


class HostKernels(ABC):
    """Checks and results; a backend adds `_run`, which fills the result arrays."""

    def __init__(self, manifest: Manifest, dtype: str) -> None:
        self._signatures = manifest.functions
        self._sizes = manifest.sizes()
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._nominal = self.constant([parameter.value for parameter in manifest.metadata.parameters])

    def constant(self, values: Sequence[Any]) -> Array:
        """The values as an array of the robot's dtype."""
        return np.array(values, dtype=self._dtype)

    def with_nominal(self, values: Sequence[float]) -> Self:
        """The same functions with other nominal parameters (p,)."""
        kernels = copy.copy(self)
        kernels._nominal = self.constant(values)
        return kernels

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """The function's outputs; `theta` None means the nominal parameters.

        Without the sample axis in the arguments, the outputs have none either.
        """
        signature = self._signatures[function]
        arrays = {
            name: self._nominal if name == "theta" and value is None else self._array(name, value)
            for name, value in arguments.items()
        }
        samples = sample_count({name: array.shape for name, array in arrays.items()})
        rows = () if samples is None else (samples,)
        if out is not None:
            results = self._outputs(signature, rows, out, arrays)
        else:
            results = [np.empty((*rows, *shape), self._dtype) for _, shape in signature.outputs]
        if samples is None:  # the kernels take batches; these are views
            batch = {name: array if name == "theta" else array[None] for name, array in arrays.items()}
            self._run(function, batch, [result[None] for result in results], 1)
        else:
            self._run(function, arrays, results, samples)
        if out is not None:
            return tuple(out)
        return tuple(map(_tensor, results)) if any(map(_is_tensor, arguments.values())) else tuple(results)

    @abstractmethod
    def _run(self, function: str, arrays: dict[str, Array], results: Sequence[Array], samples: int) -> None:
        """Evaluate `function` for all samples into the result arrays."""

    def _array(self, name: str, value: Any) -> Array:
        array = _memory(name, value)
        if array.dtype != self._dtype or isinstance(array, np.ma.MaskedArray):
            raise self._wrong_type(name, array)
        check_shape(name, array.shape, self._sizes[name])
        if not array.flags.c_contiguous:
            raise ModelError(
                f"`{name}` is not contiguous in memory (shape {array.shape}, strides {array.strides}). "
                f"Pass numpy.ascontiguousarray({name}), or {name}.contiguous() for a tensor."
            )
        return array

    def _wrong_type(self, name: str, array: Array) -> ModelError:
        if isinstance(array, np.ma.MaskedArray):
            return ModelError(f"`{name}` is a masked array, whose mask no kernel reads. Pass {name}.filled(value).")
        if array.dtype == self._dtype.newbyteorder():
            return ModelError(
                f"`{name}` has the byte order of another machine (dtype {array.dtype}). "
                f"Pass {name}.astype(numpy.{self._dtype.name})."
            )
        if array.dtype.kind in "biu":
            return ModelError(
                f"`{name}` has whole numbers (dtype {array.dtype}); the robot was loaded with dtype "
                f"{self._dtype.name}. Pass {name}.astype(numpy.{self._dtype.name}), or write 1.0 for 1."
            )
        known = array.dtype.name in ("float32", "float64")
        or_load = f", or load the robot with dtype='{array.dtype.name}'" if known else " to real numbers"
        return ModelError(
            f"`{name}` has dtype {array.dtype}, but the robot was loaded with dtype {self._dtype.name}. "
            f"Convert `{name}`{or_load}."
        )

    def _outputs(
        self, signature: Signature, rows: tuple[int, ...], out: Sequence[Any], arrays: dict[str, Array]
    ) -> list[Array]:
        names = [name for name, _ in signature.outputs]
        if not isinstance(out, (tuple, list)) or len(out) != len(names):
            raise ModelError(f"`out` must be a tuple of {len(names)} arrays: {', '.join(names)}.")
        used = list(arrays.items())
        results: list[Array] = []
        for (name, shape), given in zip(signature.outputs, out, strict=True):
            array = _memory(f"out for {name}", given)
            expected = (*rows, *shape)
            if array.shape != expected or array.dtype != self._dtype:
                raise ModelError(
                    f"`out` for {name} has shape {array.shape} and dtype {array.dtype}; "
                    f"it must be {expected} and {self._dtype.name}."
                )
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise ModelError(f"`out` for {name} must be contiguous and writable.")
            for other_name, other in used:
                if np.may_share_memory(array, other):
                    raise ModelError(f"`out` for {name} overlaps `{other_name}` in memory; use separate arrays.")
            used.append((name, array))
            results.append(array)
        return results


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


def _tensor(array: Array) -> Any:
    return sys.modules["torch"].from_numpy(array)
