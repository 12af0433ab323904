"""Proof of an artifact: its kernels against the model with 50 digits, and the model against mechanics."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelgen.backends import MODULES, MOST_OPERATIONS
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.program.mechanics import MECHANICS
from modelgen.statement.robot import Robot
from modelgen.verification.check import LIMITS, PRECISIONS, Check
from modelgen.verification.energy import POINTS, power_balance
from modelgen.verification.kernels import kernel_checks
from modelgen.verification.mechanics import mechanics_checks, routes_check
from modelgen.verification.on_request import mechanics_quantities
from modelgen.verification.points import Points, sample_points
from modelgen.verification.reference import Array, Reference
from modelgen.verification.whole_domain import SECONDS, domain_checks

SAMPLES = 128
QUICK_SAMPLES = 4
#: By backend, the module that it needs and that need not be there, and the package that brings it.
OPTIONAL = {"torch": ("torch", "Torch"), "js": ("py_mini_racer", "mini-racer")}


def quick(
    robot: Robot, equations: EquationsOfMotion, load: Callable[..., Any], directory: Path | None = None
) -> list[Check]:
    """The checks of daily use at a few points: the llvm kernel in double precision against 50 digits and the energies.

    The balance of power stands for the mechanics, whose other checks take most of a proof's time.
    """
    points = sample_points(robot, QUICK_SAMPLES)
    compiled = load(robot.name, backend="llvm", dtype="float64", directory=directory)
    reference = _exactly(robot, equations, points, compiled)
    return [
        *_power(robot, equations, compiled, QUICK_SAMPLES),
        *kernel_checks(compiled, "llvm float64", reference, points, LIMITS["float64"]),
    ]


def verify(
    robot: Robot,
    equations: EquationsOfMotion,
    load: Callable[..., Any],
    directory: Path | None = None,
    proof_seconds: float = SECONDS,
) -> list[Check]:
    """Every check of the artifact of `robot`; `load` is `modelgen.load`, `proof_seconds` for each quantity's proof."""
    points = sample_points(robot, max(16, SAMPLES // len(robot.joints)))  # 50 digits take their time
    together = replace(points, theta=points.theta[0])
    first = load(robot.name, backend="llvm", directory=directory)
    references = [(each, _exactly(robot, equations, each, first)) for each in (points, together)]
    mechanics, kernels = mechanics_checks(robot, equations, points), []
    mechanics += domain_checks(robot, equations, proof_seconds)
    if robot.links:
        mechanics.append(routes_check(robot, equations, points))
    for backend in MODULES:
        if missing := missing_package(backend):
            mechanics.append(Check("kernels", backend, None, 0.0, f"{missing} is not installed"))
            continue
        for precision in PRECISIONS:
            compiled = load(robot.name, backend=backend, dtype=precision, directory=directory)
            if (backend, precision) == ("llvm", "float64"):
                mechanics += _power(robot, equations, compiled)
            for each, reference in references:
                case, limit = f"{backend} {precision}", LIMITS[precision]
                kernels += kernel_checks(compiled, case, reference, each, limit, MOST_OPERATIONS.get(backend, math.inf))
    return mechanics + kernels


def missing_package(backend: str) -> str:
    """The package without which a backend cannot run here; empty where it can."""
    module, package = OPTIONAL.get(backend, ("", ""))
    return package if module and importlib.util.find_spec(module) is None else ""


def _exactly(robot: Robot, equations: EquationsOfMotion, points: Points, compiled: Any) -> dict[str, Array]:
    """Every quantity with 50 digits; those of mechanics where their functions are built."""
    reference = Reference(equations).quantities(points.x, points.u, points.costate, points.theta, points.w)
    return reference | (mechanics_quantities(robot, equations, points) if MECHANICS.keys() & compiled.functions else {})


def _power(robot: Robot, equations: EquationsOfMotion, compiled: Any, count: int = POINTS) -> list[Check]:
    return [power_balance(robot, equations, compiled, count)] if "dynamics" in compiled.functions else []
