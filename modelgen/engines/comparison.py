"""Compare an artifact with another engine, in which the same robot is described independently."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import evaluator
from modelgen.derivation.sampling import samples
from modelgen.engines.differences import STEP, differences
from modelgen.engines.engine import Array, Engine
from modelgen.engines.mjcf import ASSETS
from modelgen.errors import ModelError, shortened
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check
from modelgen.verification.kernels import relative_error

SAMPLES = 64
LIMIT = 1e-8
DERIVATIVE_LIMIT = 1e-6  # larger, because the engine's derivatives may be differences of its accelerations


def description(robot: Robot, model_file: Path) -> Path | None:
    """The MJCF file of a robot: NAME.xml beside its model file, or of a shipped robot in models/assets.

    None for a robot with links and without such a file; the engine is then made from the links. Raises ModelError for
    a robot with neither.
    """
    places = [model_file.with_suffix(".xml"), ASSETS / f"{robot.name}.xml"]
    for place in places:
        if place.is_file():
            return place
    if robot.links:
        return None
    raise ModelError(
        f"there is no description of `{robot.name}` for the other engine: neither {shortened(places[0])} nor "
        f"{shortened(places[1])}. Write the robot down in MJCF, its joints named like the coordinates and its "
        "actuators like the inputs, and give it as --mjcf PATH."
    )


def compare(
    robot: Robot,
    equations: EquationsOfMotion,
    kernels: Any,
    engine: Engine,
    rebuilt: Callable[[Array], Engine] | None = None,
) -> list[Check]:
    """Kernels and mass matrix against the engine, at nominal parameters and random states over the whole domain.

    rebuilt: makes the engine at other parameters (p,), to compare the derivatives by the parameters. Raises ModelError
    for a robot whose v is not dq/dt.
    """
    if robot.system and robot.system.own:
        speed = next(iter(robot.system.own.values()))
        raise ModelError(
            f"the speed `{speed.symbol}` is no rate of a coordinate, so that the other engine's accelerations are of "
            "another quantity. Verify the robot with `modelgen verify NAME` alone.",
            speed.place,
        )
    x, _ = samples(robot, SAMPLES, seed=2)
    nominal = np.asarray(kernels.nominal_parameters, np.float64)
    limits = np.array([each.limit for each in robot.inputs])
    u = np.random.default_rng(2).uniform(-limits, limits, (SAMPLES, len(limits)))
    size = len(equations.coordinates)
    a, B, da_dx, dB_dx, da_dtheta, dB_dtheta = (np.asarray(each) for each in kernels.jacobians(x))
    at_zero = engine.acceleration(x, 0 * u)
    gains = [engine.acceleration(x, np.tile(limit, (SAMPLES, 1))) - at_zero for limit in np.diag(limits)]
    theta = np.tile(nominal, (SAMPLES, 1))
    matrix = evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    pairs = [
        ("mass matrix", matrix(*x.T, *theta.T), engine.mass_matrix(x[:, :size]), LIMIT),
        ("acceleration", (a + np.einsum("nij,nj->ni", B, u))[:, size:], engine.acceleration(x, u), LIMIT),
        ("acceleration by the inputs", B[:, size:], np.stack(gains, axis=-1) / limits, LIMIT),
        (
            "derivative of the acceleration by x",
            (da_dx + np.einsum("nijk,nj->nik", dB_dx, u))[:, size:],
            engine.derivative(x, u),
            DERIVATIVE_LIMIT,
        ),
    ]
    if rebuilt and len(nominal):
        slopes = differences(lambda at: rebuilt(at).acceleration(x, u), nominal, STEP * np.abs(nominal))
        ours = (da_dtheta + np.einsum("nijk,nj->nik", dB_dtheta, u))[:, size:]
        pairs.append(("derivative of the acceleration by theta", ours, slopes, DERIVATIVE_LIMIT))
    return [Check(what, engine.label, _difference(ours, theirs), limit) for what, ours, theirs, limit in pairs]


def _difference(ours: Array, theirs: Array) -> float:
    """The largest difference relative to our entries, which are exactly zero where the engine's are rounding."""
    if not np.isfinite(ours).all():
        return math.nan
    return relative_error(theirs.reshape(SAMPLES, -1), ours.reshape(SAMPLES, -1))
