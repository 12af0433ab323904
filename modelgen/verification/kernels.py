"""Comparison of compiled kernels with the model in 50 digits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.program.functions import SIGNATURES
from modelgen.verification.check import Check
from modelgen.verification.points import Points, natural_scale, numbers, perturbed

ZERO = 1e-25  # SI units; smaller than any quantity of a robot
FLOOR = 1e-6  # smallest scale of an entry, as a share of the scale of its row and column
ROUNDING = 30  # times the change of an entry when the arguments move by rounding; not an error of the kernel


def kernel_checks(
    kernels: Any,
    case: str,
    reference: dict[str, Array],
    points: Points,
    limit: float,
    most_operations: float = math.inf,
) -> list[Check]:
    """Compare every output of every built function with the reference. theta: (N, p), or (p,) for all samples.

    The rounding of each entry is measured by a second call at states moved by a few units in the last place.
    Functions of more than `most_operations` are skipped.
    """
    checks = []
    near = replace(points, x=perturbed(points.x, np.finfo(_precision(kernels)).dtype.type))
    for call, (arguments, names) in SIGNATURES.items():
        if call not in kernels.functions or (points.theta.ndim == 1 and "theta" not in arguments):
            continue
        if kernels.operations.get(call, 0) > most_operations:
            note = f"has more than {most_operations:.0f} operations"
            checks += [Check(f"{call}: {name}", case, None, limit, note) for name in names]
            continue
        again = _called(kernels, call, near) if "x" in arguments else [None] * len(names)
        for name, result, other in zip(names, _called(kernels, call, points), again, strict=True):
            if not reference[name].size:
                continue
            what = f"{call}: {name}" + (", one theta" if points.theta.ndim == 1 else "")
            expected = reference[name].reshape(result.shape)
            least = 0.0 if other is None else ROUNDING / limit * abs(other - result).max(axis=0)
            error = relative_error(result, expected, least)
            check = Check(what, case, error, limit)
            checks.append(
                check if check.passed else replace(check, where=_worst(result, expected, points, least, limit))
            )
    return checks


def _worst(got: Array, expected: Array, points: Points, least: Array | float, limit: float) -> str:
    """The entry with the largest error relative to its scale: both values, the tolerance and its reason, the point."""
    scale, difference = _scale(expected, least), abs(got - expected)
    errors = np.divide(difference, scale, out=np.where(difference == 0, 0.0, np.inf), where=scale > 0)
    sample, *entry = np.unravel_index(np.where(np.isfinite(errors), errors, np.inf).argmax(), errors.shape)
    theta = np.broadcast_to(points.theta, (len(points.x), points.theta.shape[-1]))
    at = {"x": points.x, "u": points.u, "theta": theta}
    size = float(scale[tuple(entry)])
    rounds = size > 0 and size <= float(np.broadcast_to(least, scale.shape)[tuple(entry)])
    reason = "its rounding" if rounds else f"{limit:g} of its largest value over the samples, {size:.3g}"
    return (
        f"entry {[int(index) for index in entry]}: {got[sample, *entry]:.12g}, in 50 digits "
        f"{expected[sample, *entry]:.12g}, difference {difference[sample, *entry]:.3g}, allowed {limit * size:.3g} "
        f"({reason}), at " + ", ".join(f"{name} = {numbers(values[sample])}" for name, values in at.items())
    )


def _precision(kernels: Any) -> Any:
    """The dtype of the kernel's numbers, as the name of a NumPy dtype."""
    return str(kernels.nominal_parameters.dtype).removeprefix("torch.")


def _called(kernels: Any, call: str, points: Points) -> list[Array]:
    """The outputs of one call as float64 arrays (N, ...)."""
    like = kernels.nominal_parameters
    arguments = {name: getattr(points, name) for name in SIGNATURES[call][0]}
    # a Torch kernel's parameters make Torch tensors, so that Torch itself is not imported here
    make = like.new_tensor if hasattr(like, "new_tensor") else lambda value: value.astype(like.dtype)
    results = getattr(kernels, call)(**{name: make(value) for name, value in arguments.items()})
    outputs = results if isinstance(results, tuple) else (results,)
    return [np.asarray(output, dtype=np.float64) for output in outputs]


def relative_error(got: Array, expected: Array, least: Array | float = 0.0) -> float:
    """The largest error of `got` (N, ...), each entry relative to its largest expected value over the samples.

    least: the smallest scale of each entry. An entry that is much smaller than the others of its row and column is
    relative to those. NaN or infinite if one of the arrays is not finite.
    """
    scale, errors = _scale(expected, least), np.abs(got - expected).max(axis=0)
    return float(np.divide(errors, scale, out=np.where(errors == 0, 0.0, math.inf), where=scale > 0).max())


def _scale(expected: Array, least: Array | float) -> Array:
    """The scale of the error of each entry."""
    scale = np.abs(expected).max(axis=0)
    if scale.ndim > 1:
        scale = np.maximum(scale, FLOOR * natural_scale(expected))
    # An entry that is zero up to cancellation has the scale of the whole output.
    scale = np.where(scale > 1e-14 * scale.max(), scale, scale.max())
    # If all entries are zero, central differences in 50 digits leave about 1e-40, which is not a scale either.
    return np.asarray(np.maximum(np.where((scale > 0) & (scale < ZERO), 1.0, scale), least))
