"""`modelgen verify`: a proof of an artifact against its model file, or a comparison with another engine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import FAILED, USAGE
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
    proof_seconds: Annotated[float | None, Range(0.001, 1e6)] = None
    """Limit of processor seconds for the proof of each quantity over the whole domain, by default 30."""
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
    if options.proof_seconds is not None and (options.quick or options.against):
        raise ModelError("--proof-seconds is for the proof, which --quick and --against leave out; give one of them.")
    if options.against:
        from modelgen.engines.comparison import verify_against

        verify = partial(verify_against, options.against, mjcf=options.mjcf, directory=options.generated)
    else:
        from modelgen.verification import SECONDS, verify_artifact

        seconds = options.proof_seconds or SECONDS
        verify = partial(verify_artifact, directory=options.generated, briefly=options.quick, proof_seconds=seconds)
    code = 0
    for model in options.models:
        try:
            result = verify(model)
        except ModelError as error:
            if len(options.models) == 1:
                raise
            print(f"error: {error}", file=sys.stderr)
            code = USAGE
            continue
        print(result.text("; a full proof: leave out --quick" if options.quick else ""))
        code = code or (0 if result.holds else FAILED)
    return code
