"""Torch: functions over columns of a batch, on any device, differentiable and compilable, written as Python and run.

The gradient of `dynamics` is the program's `hamiltonian_gradient`. Torch differentiates the other functions itself.
The module that is made imports Torch; this one does not, because the compiler must work without it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from modelgen.backends import statements
from modelgen.backends.arrays import ProgramKernels, check_shape, sample_count
from modelgen.backends.statements import Assignment, Text, kept_module
from modelgen.errors import ModelError
from modelgen.files import sources
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program

_HEADER = '''"""{robot}: functions for Torch, made by modelgen.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0] if first.shape[1] else first.new_empty(len(first))
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def _sign(a):
    """-1, 0 or 1; NaN for NaN, for which torch.sign is 0."""
    return torch.where(torch.isnan(a), a, torch.sign(a))
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


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> TorchKernels:  # noqa: ARG001
    """The functions as text for Torch, run; threads are Torch's own, so `parallel` changes nothing."""
    path, translators = Path(f"{robot.name}_torch.py"), sources(sys.modules[__name__], statements)
    made = kept_module(path, f"{translators} {robot.name} {program.digest}", lambda: source(program, robot))
    return TorchKernels(made, program, robot, dtype)


def source(program: Program, robot: Metadata) -> str:
    """A module of Python that needs only Torch."""
    parts = [_HEADER.replace("{robot}", robot.name)]
    swept = {"dynamics", "hamiltonian_gradient"} <= {function.name for function in program.functions}
    parts += [_function(program, one, swept and one.name == "dynamics") for one in program.functions]
    parts += [_DYNAMICS] if swept else []
    return "\n\n".join(parts)


def _function(program: Program, function: Function, wrapped: bool) -> str:
    """One function, under another name where `_Dynamics` wraps it."""
    code, first = statements.statements(program.graph, function), function.arguments[0].name

    def call(name: str, arguments: list[str]) -> str:
        if name in ("minimum", "maximum", "atan2"):
            arguments = [f"torch.full_like({first}[:, 0], {a})" if _is_number(a) else a for a in arguments]
        return f"{'_sign' if name == 'sign' else f'torch.{name}'}({', '.join(arguments)})"

    text = Text(code, repr, call)
    body = [f"{code.names[entry.node]} = {entry.array}[..., {entry.index}]" for entry in code.entries]
    for line in code.body:
        body += [f"{name} = {value}" for name, value in text.assigned(line)] if isinstance(line, Assignment) else []
    for output in function.outputs:
        entries = "".join(f", {text(node)}" for node in output.entries)
        body.append(f"{output.name} = _rows({first}, {output.shape}{entries})")
    body.append(f"return {', '.join(output.name for output in function.outputs)},")
    names = ", ".join(argument.name for argument in function.arguments)
    return "\n".join([f"def {'_' * wrapped}{function.name}({names}):", *(f"    {line}" for line in body)]) + "\n"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class TorchKernels(ProgramKernels):
    """The functions over tensors of one dtype; every tensor of a call is on the device of x."""

    def __init__(self, module: ModuleType, program: Program, robot: Metadata, dtype: str) -> None:
        self._module = module
        self._torch: Any = module.torch
        self._dtype = getattr(self._torch, dtype)
        super().__init__(program, robot)
        self._elsewhere: dict[Any, Any] = {}  # the same on other devices

    def constant(self, values: Sequence[Any]) -> Any:
        """The values as a CPU tensor of the robot's dtype."""
        return self._torch.tensor(values, dtype=self._dtype)

    def with_nominal(self, values: Sequence[float]) -> Self:
        """The same functions with other nominal parameters (p,)."""
        kernels = super().with_nominal(values)
        kernels._elsewhere = {}
        return kernels

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """As `ProgramKernels.evaluate`, on the device of the first argument."""
        first = next(iter(arguments.values()))
        if "theta" in arguments and arguments["theta"] is None and self._torch.is_tensor(first):
            arguments = {**arguments, "theta": self._nominal_on(first.device)}
        arguments = {name: self._checked(name, tensor) for name, tensor in arguments.items()}
        for name, tensor in arguments.items():
            if tensor.device != first.device:
                other = next(iter(arguments))
                raise ModelError(
                    f"`{name}` is on {tensor.device}, but `{other}` is on {first.device}. Move one of them."
                )
        samples = sample_count(arguments)
        outputs = self._functions[function].outputs
        if samples is None:  # the kernels take batches
            arguments = {name: row if name == "theta" else row[None] for name, row in arguments.items()}
        order = [argument.name for argument in self._functions[function].arguments]
        results: tuple[Any, ...] = getattr(self._module, function)(*(arguments[name] for name in order))
        results = results if samples is not None else tuple(result[0] for result in results)
        rows = () if samples is None else (samples,)
        if out is None:
            return results
        names = [output.name for output in outputs]
        if not isinstance(out, (tuple, list)) or len(out) != len(names):
            raise ModelError(f"`out` must be a tuple of {len(names)} tensors: {', '.join(names)}.")
        for output, given, result in zip(outputs, out, results, strict=True):
            shape = (*rows, *output.shape)
            if not self._torch.is_tensor(given) or given.shape != shape or given.dtype != self._dtype:
                raise ModelError(f"`out` for {output.name} must be a {self._dtype} tensor {shape}.")
            given.copy_(result)
        return tuple(out)

    def _nominal_on(self, device: Any) -> Any:
        """The nominal parameters on a device; they are copied there once."""
        if device not in self._elsewhere:
            self._elsewhere[device] = self._nominal.to(device)
        return self._elsewhere[device]

    def _checked(self, name: str, tensor: Any) -> Any:
        """The tensor in the robot's dtype; a copy where it has another."""
        if not self._torch.is_tensor(tensor):
            raise ModelError(f"`{name}` is a {type(tensor).__name__}; the torch backend takes Torch tensors.")
        if tensor.dtype.is_complex:
            raise ModelError(f"`{name}` has dtype {tensor.dtype}; convert it to real numbers ({self._dtype}).")
        check_shape(name, tuple(tensor.shape), self._sizes[name])
        return tensor.to(self._dtype)
