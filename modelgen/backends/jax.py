"""JAX: pure functions, made from the nodes, under `jit`, `vmap`, `grad` and every other transformation of JAX.

A function of one sample is traced, mapped over the batch and compiled by XLA for the device of its arguments. Every
derivative that JAX takes is of the nodes, in forward and in reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from modelgen.backends.arrays import ProgramKernels, check_mask, check_shape, sample_count
from modelgen.errors import ModelError
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Program
from modelgen.program.graph import ARITHMETIC, FLAT_POWER, UNARY, Graph, Node
from modelgen.program.trim import REFINED, TOGETHER, rounds

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ModelError(
        "the backend jax needs JAX, which is not installed. Install it with pip install 'robust-value-iteration[jax]'."
    ) from error


def _flat_power(base: Any, exponent: float) -> Any:
    """max(0, w)**p, all of whose derivatives are zero at w <= 0; those of `jnp.power` are 0 * inf there."""
    closed = ~(base <= 0.0)  # also NaN, which stays
    return jnp.where(closed, jnp.power(jnp.where(closed, base, 1.0), exponent), 0.0)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    "pow": jnp.power,
    FLAT_POWER: _flat_power,
    "minimum": jnp.minimum,
    "maximum": jnp.maximum,
    "atan2": jnp.arctan2,
    **{name: getattr(jnp, name) for name in UNARY},
}


def load(program: Program, robot: Metadata, dtype: str, parallel: bool) -> JaxKernels:  # noqa: ARG001
    """The functions, traced when they are first called; threads are XLA's own, so `parallel` changes nothing."""
    return JaxKernels(program, robot, dtype)


def of_one_sample(graph: Graph, function: Function, *rows: Any) -> tuple[Any, ...]:
    """The outputs of a function at one row for each of its arguments."""
    values: dict[Node, Any] = {}
    for argument, row in zip(function.arguments, rows, strict=True):
        values.update((node, row[i]) for i, node in enumerate(argument.entries))
    graph.evaluate(function.roots, values, _OPERATIONS)
    dtype = rows[0].dtype
    return tuple(
        jnp.stack([jnp.asarray(values[node], dtype) for node in output.entries]).reshape(output.shape)
        if output.entries
        else jnp.zeros(output.shape, dtype)
        for output in function.outputs
    )


def nearest(N: Any, wanted: Any, weight: Any, low: Any, high: Any) -> Any:
    """The z (m,) of `modelgen.program.trim._bounded`, whose rounds are a loop: XLA would compile them for minutes."""
    last = jnp.arange(len(wanted))

    def solved(below: Any, above: Any, refined: int = 0) -> tuple[Any, Any]:
        """z (m,) with some entries held at their limits, and a mask of the others."""
        free, fixed = ~(below | above), jnp.where(below, low, 0.0) + jnp.where(above, high, 0.0)
        masked = jnp.where(free[:, None] & free, N, jnp.diag(jnp.where(free, 0.0, 1.0)))
        right = jnp.where(free, wanted - N @ fixed, fixed)
        z = jnp.linalg.solve(masked, right)
        for _ in range(refined):
            z = jnp.linalg.solve(masked, right + jnp.where(free, weight * z, 0.0))
        return z, free

    def sides(number: Any, held: tuple[Any, Any]) -> tuple[Any, Any]:
        """The inputs below and above of the next round."""
        below, above = held
        z, free = jax.lax.stop_gradient(solved(below, above))
        pull = jax.lax.stop_gradient(wanted - N @ z)
        under = (free & (low > z)) | (below & ~(pull > 0.0))
        over = (free & (z > high)) | (above & ~(pull < 0.0))
        changed = (under != below) | (over != above)
        moves = changed & ((number < TOGETHER) | (last == jnp.max(jnp.where(changed, last, -1))))
        return jnp.where(moves, under, below), jnp.where(moves, over, above)

    none = jnp.zeros(len(wanted), bool)
    below, above = jax.lax.fori_loop(0, rounds(len(wanted)), sides, (none, none))
    return jnp.clip(solved(below, above, REFINED)[0], low, high)


def _in_double(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A function (x, theta) of one sample in double precision, whose results and derivatives have the type `dtype`:
    redundant inputs have no digits to lose. The derivative is a matrix, since a reverse sweep leaves the precision."""
    rounded = jax.custom_jvp(_doubled(function, dtype))

    def moving(at: tuple[Any, Any], moved: tuple[Any, Any]) -> tuple[Any, Any]:
        slopes = _doubled(jax.jacfwd(function, (0, 1)), dtype)(*at)
        return rounded(*at), tuple(sum(map(partial(jnp.tensordot, axes=1), each, moved)) for each in slopes)

    rounded.defjvp(moving)
    return rounded  # type: ignore[no-any-return]


def _doubled(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A function (x, theta) in double precision, also under `vmap`, which would leave it; its results are rounded."""

    def rounded(*rows: Any) -> Any:
        with jax.enable_x64(True):
            results = function(*(jnp.asarray(each, np.float64) for each in rows))
            return jax.tree.map(lambda each: each.astype(dtype), results)

    def batch(size: int, batched: Sequence[bool], *rows: Any) -> Any:
        mapped = jax.vmap(function, [0 if each else None for each in batched], axis_size=size)
        results = _doubled(mapped, dtype)(*rows) if any(batched) else rounded(*rows)
        return results, jax.tree.map(lambda _: any(batched), results)

    mappable = jax.custom_batching.custom_vmap(rounded)
    mappable.def_vmap(batch)
    return mappable  # type: ignore[no-any-return]


class JaxKernels(ProgramKernels):
    """The functions over JAX arrays of one dtype, or NumPy arrays; the results are JAX arrays."""

    def __init__(self, program: Program, robot: Metadata, dtype: str) -> None:
        self._graph, self._dtype, self._inputs = program.graph, np.dtype(dtype), robot.inputs
        super().__init__(program, robot)
        self._compiled = cache(self._compile)

    def constant(self, values: Sequence[Any]) -> Any:
        """The values as an array of the robot's dtype, also while JAX traces a function in which a robot is loaded."""
        with self._precision(), jax.ensure_compile_time_eval():
            return jnp.asarray(np.array(values, self._dtype))

    def evaluate(self, function: str, arguments: dict[str, Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """As `ProgramKernels.evaluate`.

        Raises ModelError for `out`, and for float64 inside a transformation while JAX is set to 32 bits.
        """
        if out is not None:
            raise ModelError("JAX arrays are never written to, so the backend jax takes no `out`. Leave it out.")
        self._require_precision(arguments)
        with self._precision():
            arrays = self._given(arguments, self._checked)
            samples = sample_count(arrays)
            order = [argument.name for argument in self._functions[function].arguments]
            axes = tuple(0 if arrays[name].ndim == 2 else None for name in order)
            return self._compiled(function, axes if samples is not None else None)(*(arrays[name] for name in order))

    def _compile(self, function: str, axes: tuple[int | None, ...] | None) -> Callable[..., tuple[Any, ...]]:
        """The jitted function of one sample, axes None, or of a batch with the given axes of its arguments."""
        looped = function == "trim" and len(self._inputs) > 1
        single = self._trim if looped else partial(of_one_sample, self._graph, self._functions[function])
        if "trim" in self._functions and self._dtype != np.float64:
            single = _in_double(single, self._dtype)
        return jax.jit(single if axes is None else jax.vmap(single, axes))  # type: ignore[no-any-return]

    def _trim(self, x: Any, theta: Any) -> tuple[Any]:
        """u0 (m,) of `trim` at one sample."""
        N, wanted, weight = of_one_sample(self._graph, self._functions["trim_balance"], x, theta)
        half = np.array([entry.limit for entry in self._inputs])
        low, high = (np.array([getattr(entry, end) for entry in self._inputs]) / half for end in ("lower", "upper"))
        return (half * nearest(N, wanted, weight, low, high),)

    def _precision(self) -> Any:
        """JAX's setting for this dtype, within a `with` block: float64 needs 64 bits, and float32 no change."""
        return jax.enable_x64(self._dtype == np.float64 or bool(jax.config.jax_enable_x64))

    def _require_precision(self, arguments: dict[str, Any]) -> None:
        """Raises ModelError for float64 inside `jit`, `grad` or `vmap` of a program that has JAX in 32 bits."""
        narrow = self._dtype == np.float64 and not jax.config.jax_enable_x64
        if narrow and any(isinstance(value, jax.core.Tracer) for value in arguments.values()):
            raise ModelError(
                "JAX is set to 32 bits, and inside jit, grad and vmap it would round this float64 robot. Write "
                "jax.config.update('jax_enable_x64', True) at the beginning, or load the robot with dtype='float32'."
            )

    def _checked(self, name: str, value: Any) -> Any:
        """The array in the robot's dtype; a copy where it has another."""
        if not isinstance(value, (jax.Array, np.ndarray)):
            raise ModelError(f"`{name}` is a {type(value).__name__}; the backend jax takes JAX and NumPy arrays.")
        check_mask(name, value)
        if value.dtype.kind not in "fiub" and not jnp.issubdtype(value.dtype, jnp.floating):
            raise ModelError(f"`{name}` has dtype {value.dtype}; convert it to real numbers ({self._dtype.name}).")
        check_shape(name, tuple(value.shape), self._sizes[name])
        return jnp.asarray(value, self._dtype)
