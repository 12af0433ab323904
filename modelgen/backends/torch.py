"""Torch: readable functions over columns of a batch, on any device, differentiable and compilable.

Gradients of the dynamics are the emitted ones; those of the other functions are Torch's, through the emitted code.

The emitted module imports Torch; this one does not, for the generator must work without it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from modelgen.artifact.folder import source
from modelgen.artifact.manifest import Manifest
from modelgen.backends.array_checks import check_shape, sample_count
from modelgen.backends.listing import Dialect, columns, listing
from modelgen.backends.modules import emitted_module
from modelgen.errors import ModelError
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program

_HEADER = '''"""{robot}: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))
'''

_DYNAMICS = '''class _Dynamics(torch.autograd.Function):
    """xdot, and backward the Hamiltonian's gradient with the incoming gradient as costate: one reverse sweep."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, u, theta):
        return _dynamics(x, u, theta)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, costate):
        x, u, theta = ctx.saved_tensors
        dH_dx, dH_du, dH_dtheta = hamiltonian_gradient(x, u, costate, theta)
        return dH_dx, dH_du, dH_dtheta.sum(0) if theta.ndim == 1 else dH_dtheta


def dynamics(x, u, theta):
    return _Dynamics.apply(x, u, theta),
'''


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """One module that needs only Torch."""
    parts = [_HEADER.replace("{robot}", robot.name)]
    swept = {"dynamics", "hamiltonian_gradient"} <= {function.name for function in program.functions}
    parts += [_function(program, each, swept and each.name == "dynamics") for each in program.functions]
    parts += [_DYNAMICS] if swept else []
    return {"torch.py": "\n\n".join(parts).encode()}


def _function(program: Program, function: Function, wrapped: bool) -> str:
    """One function, under another name where what wraps it has its own."""
    graph, first = program.graph, function.arguments[0].name

    def call(name: str, arguments: list[str]) -> str:
        if name in ("minimum", "maximum", "atan2"):
            arguments = [f"torch.full_like({first}[:, 0], {each})" if _is_number(each) else each for each in arguments]
        return f"torch.{name}({', '.join(arguments)})"

    lines = listing(graph, function, Dialect(repr, call, sincos=lambda a: f"torch.sin({a}), torch.cos({a})"))
    body = columns(graph, function)
    body += [f"{name} = {text}" for name, text in lines.assignments]
    for output in function.outputs:
        entries = "".join(f", {lines.roots[node]}" for node in output.entries)
        body.append(f"{output.name} = _rows({first}, {output.shape}{entries})")
    body.append(f"return {', '.join(output.name for output in function.outputs)},")
    names = ", ".join(argument.name for argument in function.arguments)
    return "\n".join([f"def {'_' * wrapped}{function.name}({names}):", *(f"    {line}" for line in body)]) + "\n"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def load(folder: Path, manifest: Manifest, dtype: str, parallel: bool) -> TorchKernels:  # noqa: ARG001
    """The emitted functions; threads are Torch's own, so `parallel` changes nothing."""
    return TorchKernels(emitted_module(*source(folder, manifest, "torch")), manifest, dtype)


class TorchKernels:
    """The functions over tensors of one dtype; every tensor of a call is on the device of x."""

    def __init__(self, module: ModuleType, manifest: Manifest, dtype: str) -> None:
        self._module = module
        self._torch: Any = module.torch
        self._signatures = manifest.functions
        self._sizes = manifest.sizes()
        self._dtype = getattr(self._torch, dtype)
        self._nominal = self.constant([parameter.value for parameter in manifest.metadata.parameters])
        self._elsewhere: dict[Any, Any] = {}  # the same on other devices

    def constant(self, values: Sequence[Any]) -> Any:
        """The values as a CPU tensor of the robot's dtype."""
        return self._torch.tensor(values, dtype=self._dtype)

    def with_nominal(self, values: Sequence[float]) -> Self:
        """The same functions with other nominal parameters (p,)."""
        kernels = copy.copy(self)
        kernels._nominal, kernels._elsewhere = self.constant(values), {}
        return kernels

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """The function's outputs; `theta` None means the nominal parameters.

        Without the sample axis in the arguments, the outputs have none either.
        """
        first = next(iter(arguments.values()))
        if "theta" in arguments and arguments["theta"] is None and self._torch.is_tensor(first):
            arguments = {**arguments, "theta": self._nominal_on(first.device)}
        for name, tensor in arguments.items():
            self._check(name, tensor)
            if tensor.device != first.device:
                other = next(iter(arguments))
                raise ModelError(
                    f"`{name}` is on {tensor.device}, but `{other}` is on {first.device}. Move one of them."
                )
        samples = sample_count({name: tensor.shape for name, tensor in arguments.items()})
        signature = self._signatures[function]
        if samples is None:  # the kernels take batches
            arguments = {name: each if name == "theta" else each[None] for name, each in arguments.items()}
        results: tuple[Any, ...] = getattr(self._module, function)(*(arguments[name] for name in signature.arguments))
        results = results if samples is not None else tuple(result[0] for result in results)
        rows = () if samples is None else (samples,)
        if out is None:
            return results
        names = [name for name, _ in signature.outputs]
        if not isinstance(out, (tuple, list)) or len(out) != len(names):
            raise ModelError(f"`out` must be a tuple of {len(names)} tensors: {', '.join(names)}.")
        for (name, shape), given, result in zip(signature.outputs, out, results, strict=True):
            if not self._torch.is_tensor(given) or given.shape != (*rows, *shape) or given.dtype != self._dtype:
                raise ModelError(f"`out` for {name} must be a {self._dtype} tensor {(*rows, *shape)}.")
            given.copy_(result)
        return tuple(out)

    def _nominal_on(self, device: Any) -> Any:
        """The nominal parameters on a device; they are copied there once."""
        if device not in self._elsewhere:
            self._elsewhere[device] = self._nominal.to(device)
        return self._elsewhere[device]

    def _check(self, name: str, tensor: Any) -> None:
        if not self._torch.is_tensor(tensor):
            raise ModelError(f"`{name}` is a {type(tensor).__name__}; the torch backend takes Torch tensors.")
        if tensor.dtype != self._dtype:
            raise ModelError(f"`{name}` has dtype {tensor.dtype}, but the robot was loaded with {self._dtype}.")
        check_shape(name, tuple(tensor.shape), self._sizes[name])
