"""`modelgen verify`: a proof of an artifact against its model file, or a comparison with another engine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from modelgen.commandline.options import Argument
from modelgen.commandline.program import FAILED
from modelgen.engines import ENGINES
from modelgen.errors import ArtifactError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgen.artifact.manifest import Manifest
    from modelgen.derivation.equations import EquationsOfMotion
    from modelgen.statement.robot import Robot
    from modelgen.verification.check import Check


@dataclass(frozen=True)
class Options:
    """Every kernel of every backend is compared with the equations of motion in 50 digits. The exit code is 1 where one
    of them is wrong."""

    models: Annotated[tuple[str, ...], Argument(positional=True, metavar="MODEL")]
    """Names of robots, or paths of model files."""
    against: Annotated[str | None, Argument(choices=tuple(ENGINES))] = None
    """Compare with this engine instead."""
    quick: bool = False
    """Only the llvm kernel in double precision and the balance of power, at four points: for daily use, no proof."""
    mjcf: Path | None = None
    """The robot's description in the engine's format. By default NAME.xml beside the model file."""
    proof_seconds: float = 30.0
    """Most seconds of processor time for the proof of each quantity over the whole domain."""
    directory: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> int:
    """Print a table of checks for every model."""
    if not options.models:
        raise ModelError("name a robot to verify, for example `modelgen verify cartpole`.")
    if options.mjcf and (not options.against or len(options.models) > 1):
        raise ModelError("--mjcf belongs to one robot and engine: modelgen verify NAME --against mujoco --mjcf PATH.")
    if options.quick and options.against:
        raise ModelError("--quick is a shorter form of the proof by 50 digits; leave it out with --against.")
    if not options.proof_seconds > 0.0:
        raise ModelError(f"--proof-seconds {options.proof_seconds:g} is no time; write seconds above 0.")
    return FAILED if sum(_failed(model, options) for model in options.models) else 0


def _failed(model: str, options: Options) -> bool:
    """Check one model and print the table; whether a check failed."""
    from modelgen.artifact import folder as artifact
    from modelgen.artifact.manifest import GENERATOR_VERSION
    from modelgen.derivation import model_file as modelfile
    from modelgen.derivation.content_hash import content_hash
    from modelgen.derivation.derive import equations_of_motion
    from modelgen.derivation.domain_checks import check_domain
    from modelgen.verification.check import table

    start = time.perf_counter()
    robot = modelfile.load(model)
    folder = artifact.find(robot.name, options.directory)
    manifest = artifact.read(folder)
    if manifest.model_hash != content_hash(robot):
        raise ModelError(
            f"the artifact of `{robot.name}` was made from another content of its model file, so there is nothing to "
            f"prove. Run `modelgen build {model}` first."
        )
    equations = equations_of_motion(robot)
    if not options.quick:  # the build has done it
        check_domain(robot, equations)
    checks = _checks(model, robot, equations, manifest, options)
    wrong = sum(not check.passed for check in checks)
    skipped = sum(check.error is None for check in checks)
    print(f"{robot.name}\n{table(checks)}")
    passed, seconds = len(checks) - wrong - skipped, time.perf_counter() - start
    end = "; a full proof: leave out --quick" if options.quick else ""
    print(f"  {passed} checks passed, {wrong} failed, {skipped} skipped, in {seconds:.1f} s{end}")
    if not options.quick and options.against is None:
        counts = {"passed": passed, "failed": wrong, "skipped": skipped}
        kept = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "modelgen": GENERATOR_VERSION, **counts}
        try:
            artifact.keep_proof(folder, manifest, {**kept, "seconds": round(seconds, 1)})
        except ArtifactError as error:
            print(f"  warning: {error} The result is not kept.")
    return wrong > 0


def _checks(
    model: str, robot: Robot, equations: EquationsOfMotion, manifest: Manifest, options: Options
) -> Sequence[Check]:
    """Against the model file, or against the engine that was named."""
    from modelgen import engines, verification
    from modelgen.derivation import model_file as modelfile
    from modelgen.engines.comparison import compare, description
    from modelgen.loader import load

    if options.quick:
        return verification.quick(robot, equations, load, options.directory)
    if options.against is None:
        return verification.verify(robot, equations, load, options.directory, options.proof_seconds)
    kernels = load(robot.name, backend="casadi", directory=options.directory)
    file = options.mjcf or description(robot, modelfile.find(model))
    if file:
        return compare(robot, equations, kernels, engines.load(options.against, file, manifest.metadata))
    rebuilt = engines.builder(options.against, robot)
    return compare(robot, equations, kernels, rebuilt(kernels.nominal_parameters), rebuilt)
