"""`modelgen verify`: a proof of an artifact against its model file, or a comparison with another engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import FAILED
from modelgen.errors import ModelError


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
    if options.against:
        from modelgen.engines.comparison import verify_against

        results = (verify_against(options.against, model, options.mjcf, options.generated) for model in options.models)
    else:
        from modelgen.verification import verify_artifact

        settings = options.generated, options.quick, options.proof_seconds
        results = (verify_artifact(model, *settings) for model in options.models)
    failed = False
    for result in results:
        print(result.text("; a full proof: leave out --quick" if options.quick else ""))
        failed |= not result.holds
    return FAILED if failed else 0
