"""`modelgen verify`: a proof of an artifact against its model file, or a comparison with another engine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import FAILED
from modelgen.errors import ArtifactError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgen.artifact.manifest import Manifest
    from modelgen.statement.robot import Robot
    from modelgen.verification.checks import Check


@dataclass(frozen=True)
class Options:
    """Compares every kernel of every backend with the equations of motion in 50 digits. The exit code is 1 where a
    kernel is wrong."""

    models: Annotated[tuple[str, ...], Positional, arg(metavar="MODEL ...")]
    """Names of robots, or paths of model files."""
    against: Literal["mujoco", "pinocchio"] | None = None
    """Compare with this engine instead."""
    quick: bool = False
    """Check only the llvm kernel in double precision and the balance of power, at four points. This is no proof."""
    mjcf: Path | None = None
    """Description of the robot in MJCF, with --against. By default NAME.xml beside the model file."""
    proof_seconds: Annotated[float, Range(0.001, 1e6)] = 30.0
    """Limit of processor seconds for the proof of each quantity over the whole domain."""
    generated: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> int:
    """Print a table of checks for every model."""
    if not options.models:
        raise ModelError("name a robot to verify, for example `modelgen verify cartpole`.")
    if options.mjcf and (not options.against or len(options.models) > 1):
        raise ModelError("--mjcf belongs to one robot and engine: modelgen verify NAME --against mujoco --mjcf PATH.")
    if options.quick and options.against:
        raise ModelError("--quick is a shorter form of the proof by 50 digits; leave it out with --against.")
    return FAILED if sum(_failed(model, options) for model in options.models) else 0


def _failed(model: str, options: Options) -> bool:
    """Check a model and print the table; whether a check failed."""
    from modelgen.artifact import folder as artifact
    from modelgen.verification import subject
    from modelgen.verification.checks import counts, table

    start = time.perf_counter()
    robot, folder, manifest = subject(model, options.generated)
    checks = _checks(model, robot, manifest, options)
    number, seconds = counts(checks), time.perf_counter() - start
    end = "; a full proof: leave out --quick" if options.quick else ""
    print(f"{robot.name}\n{table(checks)}")
    print(
        f"  {number['passed']} checks passed, {number['failed']} failed, {number['skipped']} skipped, "
        f"in {seconds:.1f} s{end}"
    )
    if not options.quick and options.against is None:
        try:
            artifact.keep_proof(folder, manifest, number, seconds)
        except ArtifactError as error:
            print(f"  warning: {error} The result is not kept.")
    return number["failed"] > 0


def _checks(model: str, robot: Robot, manifest: Manifest, options: Options) -> Sequence[Check]:
    """The checks against the model file, or against the engine."""
    from modelgen import verification
    from modelgen.derivation import model_file
    from modelgen.derivation.derive import equations_of_motion
    from modelgen.derivation.domain_checks import check_domain
    from modelgen.engines.comparison import against, description
    from modelgen.loader import load

    equations = equations_of_motion(robot)
    if options.quick:
        return verification.quick(robot, equations, load, options.generated)
    check_domain(robot, equations)
    if options.against is None:
        return verification.verify(robot, equations, load, options.generated, options.proof_seconds)
    kernels = load(robot.name, backend="casadi", directory=options.generated)
    file = options.mjcf or description(robot, model_file.find(model))
    return against(options.against, robot, equations, kernels, manifest.metadata, file)
