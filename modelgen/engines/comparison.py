"""Comparison of an artifact with another engine, in which the same robot is described independently.

The tolerance of each entry follows from its own noise. That is the rounding, measured by moving the states by a few
units in the last place, and the error of the engine's finite differences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from modelgen import loader
from modelgen.arrays import Array, on_sphere
from modelgen.derivation import model_file
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata as described
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import numpy_evaluator, samples
from modelgen.engines import STEP, Engine, differences, load
from modelgen.engines.expressions import builder
from modelgen.engines.mujoco import ASSETS
from modelgen.errors import ModelError, shortened
from modelgen.metadata import Metadata
from modelgen.statement.robot import Robot
from modelgen.tangent import Tangent
from modelgen.verification import Verification, subject
from modelgen.verification.checks import Check, natural_scale, numbers, perturbed

SAMPLES = 64
LIMIT = 1e-8  # share of the largest value of an entry
ROUNDING = 100  # times the change of an entry when the states move by rounding
DIFFERENCES = 10  # times the estimated error of the engine's differences
ZERO = 1e-12  # share of the scale of an entry's row and column: rounded lengths and angles in the description
RESOLVED = 1e-3  # share of this scale; an entry with a larger tolerance is lost in noise


def description(robot: Robot, file: Path) -> Path | None:
    """The MJCF file of a robot: NAME.xml beside its model file, or in models/assets for a shipped robot.

    None for a robot with links and without such a file: the engine is then made from the links. Raises ModelError for
    a robot without links and without such a file.
    """
    places = [file.with_suffix(".xml"), ASSETS / f"{robot.name}.xml"]
    for place in places:
        if place.is_file():
            return place
    if robot.links:
        return None
    raise ModelError(
        f"there is no description of `{robot.name}` for the other engine: neither {shortened(places[0])} nor "
        f"{shortened(places[1])} exists. Describe the robot in MJCF, with joints named like the coordinates and "
        "actuators named like the inputs, and pass it with --mjcf PATH."
    )


def verify_against(engine: str, model: str, mjcf: Path | None = None, directory: Path | None = None) -> Verification:
    """Comparison of the artifact of a model file, by its name or path, with an engine. mjcf: by default `description`.

    Raises ModelError as `compare`, and if the artifact was made from another content of the file.
    """
    start = time.perf_counter()
    robot, _, manifest = subject(model, directory)
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    kernels = loader.load(robot.name, backend="casadi", directory=directory)
    file = mjcf or description(robot, model_file.find(model))
    checks = against(engine, robot, equations, kernels, manifest.metadata, file)
    return Verification(robot.name, checks, time.perf_counter() - start)


def against(
    engine: str, robot: Robot, equations: EquationsOfMotion, kernels: Any, metadata: Metadata, file: Path | None
) -> list[Check]:
    """Compare with an engine that reads `file`, or whose mechanism is made from the links of the robot."""
    if file is not None:
        return compare(robot, equations, kernels, load(engine, file, metadata))
    rebuilt = builder(engine, robot)
    return compare(robot, equations, kernels, rebuilt(kernels.nominal_parameters), rebuilt)


def compare(
    robot: Robot,
    equations: EquationsOfMotion,
    kernels: Any,
    engine: Engine,
    rebuilt: Callable[[Array], Engine] | None = None,
) -> list[Check]:
    """Compare kernels and mass matrix with the engine, at nominal parameters and random states of the whole domain.

    rebuilt: makes the engine at other parameters (p,), to compare the derivatives by the parameters. Raises ModelError
    for a robot whose v is not dq/dt, that has closed loops, that rolls, or that has states of first order or commanded
    accelerations.
    """
    if robot.loops or robot.rolls:
        raise ModelError(
            "the other engine closes loops and holds wheels by stiff springs, so that its accelerations differ. Verify "
            "the robot with `modelgen verify NAME` alone.",
            robot.loops[0].place if robot.loops else next(iter(robot.rolls.values())).place,
        )
    unknown = [*(state.place for state in robot.internal), *(each.place for each in robot.commanded)]
    if unknown:
        raise ModelError(
            "the other engine knows neither states of first order nor commanded accelerations. Verify the robot with "
            "`modelgen verify NAME` alone, or compare a copy of the file without this line.",
            unknown[0],
        )
    if robot.system and robot.system.own:
        coordinate = next(iter(robot.system.own))
        raise ModelError(
            f"the rate of `{coordinate}` is not a speed of the system, so that the accelerations of the other engine "
            "are different quantities. Verify the robot with `modelgen verify NAME` alone.",
            robot.system.place,
        )
    x, _ = samples(robot, SAMPLES, seed=2)
    limits = np.array([max(map(abs, declared.range)) for declared in robot.inputs])
    lower, upper = np.array([declared.range for declared in robot.inputs]).reshape(-1, 2).T
    u = np.random.default_rng(2).uniform(lower, upper, (SAMPLES, len(limits)))
    sides = _Sides(robot, equations, kernels, engine, rebuilt, u, limits)
    ours, theirs = sides.ours(x), sides.theirs(x)
    near = perturbed(x)
    on_sphere(near, robot.quaternions)
    noise = {
        name: abs(value - ours[name]) + abs(other - theirs[name][0])
        for (name, value), (other, _) in zip(sides.ours(near).items(), sides.theirs(near).values(), strict=True)
    }
    point = {"x": x, "u": u, "theta": np.tile(sides.nominal, (SAMPLES, 1))}
    return [
        judged(Pair(name, sides.axes(name), ours[name], value, noise[name], error), engine.label, point)
        for name, (value, error) in theirs.items()
    ]


class _Sides:
    """The quantities to be compared, of the kernels and of the engine, at inputs u (N, m)."""

    def __init__(
        self,
        robot: Robot,
        equations: EquationsOfMotion,
        kernels: Any,
        engine: Engine,
        rebuilt: Callable[[Array], Engine] | None,
        u: Array,
        limits: Array,
    ) -> None:
        self.nominal = np.asarray(kernels.nominal_parameters, np.float64)
        self._equations, self._kernels, self._engine, self._u, self._limits = equations, kernels, engine, u, limits
        self._rebuilt = rebuilt if len(self.nominal) else None
        self._size, self._tangent = len(equations.coordinates), Tangent(described(robot))
        self._inputs = [str(declared.symbol) for declared in robot.inputs]
        arguments = [*equations.state, *equations.parameters]
        self._matrix = numpy_evaluator(arguments, equations.mass_matrix, equations.definitions)

    def axes(self, name: str) -> list[list[str]]:
        """The names of the entries along each axis of a quantity."""
        rows = [str(symbol) for symbol in self._equations.velocities]
        by = {
            "mass matrix": rows,
            "acceleration by the inputs": self._inputs,
            "derivative of the acceleration by x": self._tangent.names,
            "derivative of the acceleration by theta": [str(symbol) for symbol in self._equations.parameters],
        }
        return [rows, by[name]] if name in by else [rows]

    def ours(self, x: Array) -> dict[str, Array]:
        """Name -> value by the kernels."""
        u, size = self._u, self._size
        a, B, da_dx, dB_dx, da_dtheta, dB_dtheta = (np.asarray(output) for output in self._kernels.jacobians(x))
        by_error = (da_dx + np.einsum("nijk,nj->nik", dB_dx, u)) @ self._tangent.basis(x)
        result = {
            "mass matrix": self._matrix(*x.T, *np.tile(self.nominal, (len(x), 1)).T),
            "acceleration": (a + np.einsum("nij,nj->ni", B, u))[:, size:],
            "acceleration by the inputs": B[:, size:],
            "derivative of the acceleration by x": by_error[:, size:],
        }
        if self._rebuilt:
            slope = (da_dtheta + np.einsum("nijk,nj->nik", dB_dtheta, u))[:, size:]
            result["derivative of the acceleration by theta"] = slope
        return result

    def theirs(self, x: Array) -> dict[str, tuple[Array, Array]]:
        """Name -> value by the engine, and the error of its differences."""
        u, engine, rebuilt = self._u, self._engine, self._rebuilt
        at_zero = engine.acceleration(x, 0 * u)
        gains = [engine.acceleration(x, np.tile(limit, (len(x), 1))) - at_zero for limit in np.diag(self._limits)]
        values = {
            "mass matrix": engine.mass_matrix(x[:, : self._size]),
            "acceleration": engine.acceleration(x, u),
            "acceleration by the inputs": np.stack(gains, axis=-1) / self._limits,
        }
        result = {name: (value, np.zeros_like(value)) for name, value in values.items()}
        result["derivative of the acceleration by x"] = engine.derivative(x, u)
        if rebuilt:
            result["derivative of the acceleration by theta"] = differences(
                lambda theta: rebuilt(theta).acceleration(x, u), self.nominal, STEP * np.abs(self.nominal)
            )
        return result


@dataclass(frozen=True)
class Pair:
    """One quantity by both sides, (N, ...), with the noise of each entry."""

    what: str
    axes: Sequence[Sequence[str]]
    ours: Array
    theirs: Array
    rounding: Array
    error: Array  # of the engine's differences


def judged(pair: Pair, label: str, point: dict[str, Array]) -> Check:
    """The largest difference of a quantity as a share of its entry's tolerance. NaN and infinity fail.

    The tolerance of an entry is the sum of `LIMIT` of its largest value, `ROUNDING` times its rounding, `DIFFERENCES`
    times the error of its differences, and `ZERO` of the scale of its row and column.
    """
    if not (np.isfinite(pair.ours).all() and np.isfinite(pair.theirs).all()):
        return Check(pair.what, label, math.nan, 1.0, where="an entry is not finite")
    natural = natural_scale(pair.ours)
    parts = {
        f"{LIMIT:g} of the entry's largest value": LIMIT * abs(pair.ours).max(axis=0),
        "rounding": ROUNDING * pair.rounding.max(axis=0),
        "the error of the engine's differences": DIFFERENCES * pair.error.max(axis=0),
        "rounded lengths and angles": ZERO * natural,
    }
    tolerance = sum(parts.values(), np.zeros_like(natural))
    difference = abs(pair.ours - pair.theirs)
    fractions = np.divide(difference, tolerance, out=np.where(difference == 0, 0, math.inf), where=tolerance > 0)
    check = Check(pair.what, label, float(fractions.max(initial=0)), 1.0)
    unresolved = int((tolerance > RESOLVED * natural).sum())
    if unresolved:
        check = replace(check, note=f"{unresolved} of {natural.size} entries are lost in the engine's noise")
    if check.passed:
        return check
    worst = np.unravel_index(fractions.argmax(), fractions.shape)
    entry = worst[1:]
    names = ", ".join(axis[place] for axis, place in zip(pair.axes, entry, strict=True))
    reason = max(parts, key=lambda part: float(parts[part][entry]))
    where = (
        f"entry ({names}): {pair.ours[worst]:.9g} by the kernels, {pair.theirs[worst]:.9g} by the engine, tolerance "
        f"{tolerance[entry]:.1e}, mainly {reason}; at "
        + ", ".join(f"{name} = {numbers(value[worst[0]])}" for name, value in point.items())
    )
    return replace(check, where=where)
