"""Numba: scalar straight-line code per sample in one loop, which LLVM vectorises across samples.

The loop is serial and releases the GIL; with `parallel` the samples are cut into one chunk a thread.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from modelgen.backends.source import Dialect, listing
from modelgen.backends.threads import run_chunks
from modelgen.errors import ArtifactError, ModelError
from modelgen.manifest import Manifest, Signature
from modelgen.program import Function, Program

_CALLS = {"abs": "abs", "minimum": "minimum", "maximum": "maximum", "sign": "sign"}


def emit(program: Program, robot: str) -> dict[str, bytes]:
    """One module that needs only Numba."""
    prelude = Path(__file__).with_name("numba_prelude.py").read_text(encoding="utf-8")
    _, _, helpers = prelude.partition('"""\n\n')
    parts = [f'"""{robot}: kernels for Numba, made by modelgen; not to be edited."""\n\n{helpers.rstrip()}\n']
    parts += [_kernel(program, function) for function in program.functions]
    return {"numba.py": "\n\n".join(parts).encode()}


def _kernel(program: Program, function: Function) -> str:
    graph = program.graph
    literals: dict[float, str] = {}

    def literal(value: float) -> str:
        return literals.setdefault(value, f"c{len(literals) + 1}")

    def call(name: str, arguments: list[str]) -> str:
        if name in ("sin", "cos"):
            return f"sincos({arguments[0]}, real, half_pi)[{int(name == 'cos')}]"
        return f"{_CALLS.get(name, f'math.{name}')}({', '.join(arguments)})"

    dialect = Dialect(literal, call, sincos=lambda argument: f"sincos({argument}, real, half_pi)")
    lines = listing(graph, function, dialect)
    used = set(graph.reachable(function.roots))
    body = []
    for argument in function.arguments:
        row = "row" if argument.name == "theta" else f"{len(argument.entries)} * i"
        body += [
            f"{graph.operations[node].name} = {argument.name}[{row} + {j}]"
            for j, node in enumerate(argument.entries)
            if node in used
        ]
    body += [f"{name} = {text}" for name, text in lines.assignments]
    for output in function.outputs:
        count = len(output.entries)
        body += [f"{output.name}[{count} * i + {j}] = {lines.roots[node]}" for j, node in enumerate(output.entries)]
    names = [argument.name for argument in function.arguments]
    theta = next(argument for argument in function.arguments if argument.name == "theta")
    head = [
        f"def {function.name}({', '.join([*names, 'per_sample', *(output.name for output in function.outputs)])}):",
        "    real = x.dtype.type",
        "    half_pi = HALF_PI_32 if x.itemsize == 4 else HALF_PI_64",
        *(f"    {name} = real({value!r})" for value, name in literals.items()),
        f"    for i in range(x.size // {len(function.arguments[0].entries)}):",
        f"        row = 0 if per_sample is None else {len(theta.entries)} * i",
    ]
    return "\n".join(["@kernel", *head, *(f"        {line}" for line in body)]) + "\n"


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> NumbaKernels:
    """The compiled functions; machine code is made, or read from the cache, at a function's first call."""
    (name,) = manifest.files["numba"]
    module_name = f"modelgen_{name.removesuffix('.py')}"
    module = sys.modules.get(module_name) or _module(module_name, folder / name)
    return NumbaKernels(module, manifest, dtype, parallel)


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArtifactError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


class NumbaKernels:
    """The functions over NumPy arrays, or over CPU Torch tensors whose memory is used as it is."""

    def __init__(self, module: ModuleType, manifest: Manifest, dtype: str, parallel: bool) -> None:
        self._module = module
        self._manifest = manifest
        self._sizes = manifest.sizes()
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._parallel = parallel

    def constant(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        return np.array(values, dtype=self._dtype)

    def evaluate(self, function: str, arguments: dict[str, Any], out: tuple[Any, ...] | None) -> tuple[Any, ...]:
        signature = self._manifest.functions[function]
        tensors = any(_is_tensor(value) for value in arguments.values())
        arrays = {name: self._array(name, value) for name, value in arguments.items()}
        samples = _samples(arrays, self._sizes)
        if out is None:
            results = [np.empty((samples, *shape), self._dtype) for _, shape in signature.outputs]
            returned: tuple[Any, ...] = tuple(map(_tensor, results)) if tensors else tuple(results)
        else:
            results, returned = self._outputs(signature, samples, out, arrays), tuple(out)
        flat = [arrays[name].reshape(-1) for name in signature.arguments]
        per_sample = 1 if arrays["theta"].ndim == 2 else None
        self._run(getattr(self._module, function), signature, flat, per_sample, results, samples)
        return returned

    def _run(
        self,
        kernel: Callable[..., None],
        signature: Signature,
        flat: list[np.ndarray[Any, Any]],
        per_sample: int | None,
        results: list[np.ndarray[Any, Any]],
        samples: int,
    ) -> None:
        flat_results = [result.reshape(-1) for result in results]

        def chunk(start: int, stop: int) -> None:
            inputs = [
                array if name == "theta" and per_sample is None else _rows(array, self._sizes[name], start, stop)
                for name, array in zip(signature.arguments, flat, strict=True)
            ]
            outputs = [
                _rows(array, math.prod(shape), start, stop)
                for array, (_, shape) in zip(flat_results, signature.outputs, strict=True)
            ]
            kernel(*inputs, per_sample, *outputs)

        if self._parallel:
            run_chunks(chunk, samples)
        elif samples:
            chunk(0, samples)

    def _array(self, name: str, value: Any) -> np.ndarray[Any, Any]:
        if _is_tensor(value):
            if value.device.type != "cpu":
                raise ModelError(
                    f"`{name}` is a tensor on {value.device}, but numba kernels run on the CPU. "
                    f"Pass {name}.cpu(), or load the robot with backend='torch'."
                )
            value = value.detach().numpy()
        if not isinstance(value, np.ndarray):
            raise ModelError(
                f"`{name}` is a {type(value).__name__}; numba kernels take NumPy arrays or CPU Torch tensors "
                f"of dtype {self._dtype.name}."
            )
        if value.dtype != self._dtype:
            raise ModelError(
                f"`{name}` has dtype {value.dtype}, but the robot was loaded with dtype {self._dtype.name}. "
                f"Convert it with {name}.astype('{self._dtype.name}'), or load the robot with the other dtype."
            )
        columns = self._sizes[name]
        if value.shape != (columns,) * (name == "theta") and (value.ndim != 2 or value.shape[1] != columns):
            either = f"({columns},) or " if name == "theta" else ""
            raise ModelError(f"`{name}` has shape {value.shape}; it must be {either}(N, {columns}).")
        if not value.flags.c_contiguous:
            raise ModelError(
                f"`{name}` is not contiguous in memory (shape {value.shape}, strides {value.strides}). "
                f"Pass numpy.ascontiguousarray({name})."
            )
        return value

    def _outputs(
        self, signature: Signature, samples: int, out: tuple[Any, ...], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> list[np.ndarray[Any, Any]]:
        names = [name for name, _ in signature.outputs]
        if len(out) != len(names):
            raise ModelError(f"`out` holds {len(out)} arrays; it must hold {len(names)}: {', '.join(names)}.")
        results: list[np.ndarray[Any, Any]] = []
        for (name, shape), given in zip(signature.outputs, out, strict=True):
            array = given.detach().numpy() if _is_tensor(given) and given.device.type == "cpu" else given
            expected = (samples, *shape)
            if not isinstance(array, np.ndarray) or array.shape != expected or array.dtype != self._dtype:
                found = f"{getattr(array, 'dtype', type(array).__name__)} {getattr(array, 'shape', '')}"
                raise ModelError(f"`out` for {name} is {found}; it must be a {self._dtype.name} array {expected}.")
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise ModelError(f"`out` for {name} must be contiguous and writable.")
            for other_name, other in [*arrays.items(), *zip(names, results, strict=False)]:
                if np.may_share_memory(array, other):
                    raise ModelError(f"`out` for {name} overlaps `{other_name}` in memory; use separate arrays.")
            results.append(array)
        return results


def _rows(flat: np.ndarray[Any, Any], width: int, start: int, stop: int) -> np.ndarray[Any, Any]:
    return flat[width * start : width * stop]


def _samples(arrays: dict[str, np.ndarray[Any, Any]], sizes: dict[str, int]) -> int:
    rows = {name: len(array) for name, array in arrays.items() if name != "theta" or array.ndim == 2}
    if len(set(rows.values())) > 1:
        raise ModelError(f"The arrays disagree on the number of samples: {rows}.")
    return rows["x"]


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    return sys.modules["torch"].from_numpy(array)
