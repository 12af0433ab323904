"""Verification of an artifact: its kernels against the model in 50 digits, and the model against mechanics."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modelgen import loader
from modelgen.arrays import Array
from modelgen.artifact import folder as artifact
from modelgen.artifact.manifest import Manifest
from modelgen.backends import MODULES, MOST_OPERATIONS
from modelgen.derivation import model_file
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.loops import refined
from modelgen.derivation.mechanics import MECHANICS
from modelgen.errors import ArtifactError, ModelError, checked
from modelgen.proof import REFUTED, TimeLimits, derived_findings, guard_findings
from modelgen.statement.robot import Robot
from modelgen.verification.checks import LIMITS, PRECISIONS, Check, Points, counts, sample_points, table
from modelgen.verification.kernels import POINTS, kernel_checks, power_balance
from modelgen.verification.mechanics import mechanics_checks
from modelgen.verification.reference import ExactReference, mechanics_quantities

SAMPLES = 128
QUICK_SAMPLES = 4
SECONDS = 30.0  # for the proof of each quantity
SEARCH = 5.0  # s, the longest search of each quantity
#: Backend -> the module that it needs and that may be missing, and the name of its package.
OPTIONAL = {"torch": ("torch", "Torch"), "jax": ("jax", "JAX"), "js": ("py_mini_racer", "mini-racer")}


@dataclass(frozen=True)
class Verification:
    """The checks of one artifact."""

    robot: str
    checks: Sequence[Check]
    seconds: float
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not counts(self.checks)["failed"]

    def text(self, end: str = "") -> str:
        """The table of the checks, and their numbers. end: of the last line."""
        number = ", ".join(
            f"{count} {'checks ' * (name == 'passed')}{name}" for name, count in counts(self.checks).items()
        )
        lines = [self.robot, table(self.checks), f"  {number}, in {self.seconds:.1f} s{end}", self.note]
        return "\n".join(filter(None, lines))


@checked(ModelError)
def verify_artifact(
    model: str, directory: str | Path | None = None, briefly: bool = False, proof_seconds: float = SECONDS
) -> Verification:
    """Verification of the artifact of a model file, by its name or path; a full one is noted beside the artifact.

    directory: as in `modelgen.load`. briefly: `quick` instead of `verify`. proof_seconds: for the proof of each
    quantity. Raises ModelError for a mistake in the file, and if the artifact was made from another content of it.
    """
    start, note, place = time.perf_counter(), "", None if directory is None else Path(directory)
    robot, folder, manifest = subject(model, place)
    equations = equations_of_motion(robot)
    if briefly:
        checks = quick(robot, equations, loader.load, place)
        return Verification(robot.name, checks, time.perf_counter() - start)
    check_domain(robot, equations)
    checks = verify(robot, equations, loader.load, place, proof_seconds)
    seconds = time.perf_counter() - start
    try:
        artifact.keep_proof(folder, manifest, counts(checks), seconds)
    except ArtifactError as error:
        note = f"  warning: {error} The result is not kept."
    return Verification(robot.name, checks, seconds, note)


def subject(model: str, directory: Path | None = None) -> tuple[Robot, Path, Manifest]:
    """Robot of a model file, folder of its artifact in `directory`, and the artifact's manifest.

    Raises ModelError if the artifact was made from another content of the file.
    """
    robot = model_file.load(model)
    folder = artifact.find(robot.name, directory)
    manifest = artifact.read(folder)
    if manifest.model_hash != content_hash(robot):
        raise ModelError(
            f"the artifact of `{robot.name}` was made from another content of its model file, so there is nothing to "
            f"prove. {artifact.rebuild(folder, model)}"
        )
    return robot, folder, manifest


def quick(
    robot: Robot, equations: EquationsOfMotion, load: Callable[..., Any], directory: Path | None = None
) -> list[Check]:
    """The checks of daily use at a few points: the llvm kernel in float64 against 50 digits, and the power balance.

    The power balance replaces the checks of the mechanics, which take most of the time of `verify`.
    """
    points = sample_points(robot, QUICK_SAMPLES)
    compiled = load(robot.name, backend="llvm", dtype="float64", directory=directory)
    equations = refined(robot, equations)
    reference = _reference(robot, equations, points, compiled)
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
    """Every check of the artifact of a robot. load: `modelgen.load`. proof_seconds: for the proof of each quantity."""
    points = sample_points(robot, max(16, SAMPLES // len(robot.joints)))  # the 50-digit reference is slow
    one_theta = replace(points, theta=points.theta[0])
    first, exact = load(robot.name, backend="llvm", directory=directory), refined(robot, equations)
    references = [(batch, _reference(robot, exact, batch, first)) for batch in (points, one_theta)]
    mechanics, kernels = mechanics_checks(robot, exact, points) if exact.velocities else [], []
    mechanics += domain_checks(robot, equations, proof_seconds)
    for backend in MODULES:
        if missing := missing_package(backend):
            mechanics.append(Check("kernels", backend, None, 0.0, f"{missing} is not installed"))
            continue
        for precision in PRECISIONS:
            compiled = load(robot.name, backend=backend, dtype=precision, directory=directory)
            if (backend, precision) == ("llvm", "float64"):
                mechanics += _power(robot, exact, compiled)
            for batch, reference in references:
                case, limit = f"{backend} {precision}", LIMITS[precision]
                kernels += kernel_checks(
                    compiled, case, reference, batch, limit, MOST_OPERATIONS.get(backend, math.inf)
                )
    return mechanics + kernels


def missing_package(backend: str) -> str:
    """The package without which a backend cannot run; empty if it is installed."""
    module, package = OPTIONAL.get(backend, ("", ""))
    return package if module and importlib.util.find_spec(module) is None else ""


def _reference(robot: Robot, equations: EquationsOfMotion, points: Points, compiled: Any) -> dict[str, Array]:
    """Every quantity in 50 digits, including mechanics if its functions are built."""
    reference = ExactReference(equations).quantities(points.x, points.u, points.costate, points.theta, points.w)
    return reference | (mechanics_quantities(robot, equations, points) if MECHANICS.keys() & compiled.functions else {})


def _power(robot: Robot, equations: EquationsOfMotion, compiled: Any, count: int = POINTS) -> list[Check]:
    checked = equations.velocities and "dynamics" in compiled.functions
    return [power_balance(robot, equations, compiled, count)] if checked else []


def domain_checks(robot: Robot, equations: EquationsOfMotion, seconds: float) -> list[Check]:
    """One line per divisor, root, logarithm and inverse function, and for the mass matrix and the state cost.

    Only a refuted quantity fails. seconds: for the proof of each quantity.
    """
    limits = TimeLimits(search=min(SEARCH, seconds), proof=seconds)
    checks = []
    for found in (*guard_findings(robot, limits), *derived_findings(robot, equations, limits)):
        line = f"{Path(found.place.file).name}:{found.place.line}"
        checks.append(Check(found.what, line, float(found.status == REFUTED), 0.5, found.note, found.status))
    return checks
