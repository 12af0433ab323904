"""The compiled kernels against the model, evaluated with 50 digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.verification.check import Check
from modelgen.verification.points import Points

Array = NDArray[np.float64]

ZERO = 1e-25  # SI units; no quantity of a robot is as small

CALLS: dict[str, tuple[str, ...]] = {
    "affine_dynamics": ("a", "B"),
    "dynamics": ("xdot",),
    "jacobians": ("a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"),
    "hamiltonian_gradient": ("dH_dx", "dH_du", "dH_dtheta"),
    "state_cost": ("q", "dq_dx"),
    "action_cost": ("g", "dg_du", "d2g_du2"),
    "optimal_input": ("u_optimal",),
    "optimal_input_cost": ("g_optimal",),
}

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "affine_dynamics": ("x", "theta"),
    "dynamics": ("x", "u", "theta"),
    "jacobians": ("x", "theta"),
    "hamiltonian_gradient": ("x", "u", "costate", "theta"),
    "state_cost": ("x", "theta"),
    "action_cost": ("u",),
    "optimal_input": ("w",),
    "optimal_input_cost": ("w",),
}


def kernel_checks(kernels: Any, case: str, reference: dict[str, Array], points: Points, limit: float) -> list[Check]:
    """Compare every output of every call with the reference. theta is per sample (N, p), or one vector (p,) for all."""
    checks = []
    for call, names in CALLS.items():
        if points.theta.ndim == 1 and "theta" not in ARGUMENTS[call]:
            continue
        for name, result in zip(names, _called(kernels, call, points), strict=True):
            if reference[name].size:
                what = f"{call}: {name}" + (", one theta" if points.theta.ndim == 1 else "")
                checks.append(Check(what, case, relative_error(result, reference[name]), limit))
    return checks


def _called(kernels: Any, call: str, points: Points) -> list[Array]:
    """The outputs of one call as float64 arrays (N, entries)."""
    like = kernels.nominal_parameters
    arguments = {name: getattr(points, name) for name in ARGUMENTS[call]}
    # A Torch kernel's own parameters make arrays of their kind; Torch itself is not imported here.
    make = like.new_tensor if hasattr(like, "new_tensor") else lambda value: value.astype(like.dtype)
    results = getattr(kernels, call)(**{name: make(value) for name, value in arguments.items()})
    count = len(points.x)
    outputs = results if isinstance(results, tuple) else (results,)
    return [np.asarray(output, dtype=np.float64).reshape(count, -1) for output in outputs]


def relative_error(got: Array, expected: Array) -> float:
    """The largest error of `got` (N, entries), each entry relative to its own largest expected value over the samples.

    NaN or infinite where either array is not finite.
    """
    scale = np.abs(expected).max(axis=0)
    # An entry that is zero up to cancellation is compared with the scale of the whole output.
    scale = np.where(scale > 1e-14 * scale.max(), scale, scale.max())
    # Where all entries are zero, central differences of 50 digits leave about 1e-40, which is no scale either.
    scale = np.where((scale > 0) & (scale < ZERO), 1.0, scale)
    errors = np.abs(got - expected).max(axis=0)
    return float(np.divide(errors, scale, out=np.where(errors == 0, 0.0, math.inf), where=scale > 0).max())
