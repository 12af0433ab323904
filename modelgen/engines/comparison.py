"""The proof of an artifact against another engine: the same robot, described there by another hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from modelgen.engines import Engine
from modelgen.equations import EquationsOfMotion
from modelgen.errors import ModelError, shortened
from modelgen.inspection import samples
from modelgen.reference import exact
from modelgen.robot import Robot
from modelgen.verify import Check, relative_error

Array = NDArray[np.float64]

SAMPLES = 64
LIMIT = 1e-8
DERIVATIVE_LIMIT = 1e-6  # the engine's derivatives are differences of its accelerations
STEP = 1e-3  # of the coordinate's limit
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))  # a first derivative, exact to the fourth order
ASSETS = Path(__file__).resolve().parents[2] / "models" / "assets"


def description(robot: Robot, model_file: Path) -> Path:
    """The MJCF file of a robot: NAME.xml beside its model file, or of a shipped robot in models/assets."""
    places = [model_file.with_suffix(".xml"), ASSETS / f"{robot.name}.xml"]
    for place in places:
        if place.is_file():
            return place
    raise ModelError(
        f"there is no description of `{robot.name}` for the other engine: neither {shortened(places[0])} nor "
        f"{shortened(places[1])}. Write the robot down in MJCF, its joints named like the coordinates and its "
        "actuators like the inputs, and give it as --mjcf PATH."
    )


def compare(robot: Robot, equations: EquationsOfMotion, kernels: Any, engine: Engine) -> list[Check]:
    """Kernels and mass matrix against the engine, at nominal parameters and random states over the whole domain."""
    x, theta = samples(robot, SAMPLES, seed=2)
    theta = np.broadcast_to(np.asarray(kernels.nominal_parameters, np.float64), theta.shape)
    limits = np.array([drive.limit for drive in robot.drives])
    u = np.random.default_rng(2).uniform(-limits, limits, (SAMPLES, len(limits)))
    size = len(equations.coordinates)
    a, B, da_dx, dB_dx, *_ = (np.asarray(each) for each in kernels.jacobians(x))
    acceleration = (a + np.einsum("nij,nj->ni", B, u))[:, size:]
    derivative = (da_dx + np.einsum("nijk,nj->nik", dB_dx, u))[:, size:]
    at_zero = engine.acceleration(x, 0 * u)
    gains = [engine.acceleration(x, np.tile(limit, (SAMPLES, 1))) - at_zero for limit in np.diag(limits)]
    matrix = exact([*equations.state, *equations.parameters], list(equations.mass_matrix), equations.definitions)
    with mpmath.workdps(20):
        masses = np.array([[float(entry) for entry in matrix(*row)] for row in np.hstack([x, theta])])
    pairs = (
        ("mass matrix", masses, engine.mass_matrix(x[:, :size]), LIMIT),
        ("acceleration", acceleration, engine.acceleration(x, u), LIMIT),
        ("acceleration by the inputs", B[:, size:], np.stack(gains, axis=-1) / limits, LIMIT),
        ("derivative of the acceleration by x", derivative, _slopes(engine, x, u), DERIVATIVE_LIMIT),
    )
    return [Check(what, engine.label, _difference(ours, theirs), limit) for what, ours, theirs, limit in pairs]


def _difference(ours: Array, theirs: Array) -> float:
    """The largest difference beside our entries' sizes: ours are exactly zero where theirs may be rounding."""
    if not np.isfinite(ours).all():
        return math.nan
    return relative_error(theirs.reshape(SAMPLES, -1), ours.reshape(SAMPLES, -1))


def _slopes(engine: Engine, x: Array, u: Array) -> Array:
    """dvdot/dx (N, n_q, n) by differences of the engine's accelerations."""
    steps = STEP * np.abs(x).max(axis=0)
    columns = [
        sum(weight * engine.acceleration(x + multiple * step, u) for multiple, weight in STENCIL) / step.sum()
        for step in np.diag(steps)
    ]
    return np.stack(columns, axis=-1)
