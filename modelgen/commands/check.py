"""`modelgen check`: comparison of artifacts with their model files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline.program import FAILED
from modelgen.commands import ARTIFACTS
from modelgen.errors import ModelError


@dataclass(frozen=True)
class Options:
    """The exit code is 1 where an artifact is damaged, was edited, or was made from another content of its model file.

    An artifact whose model file is elsewhere is checked for damage only.
    """

    models: Annotated[tuple[str, ...], Positional, arg(metavar="[MODEL ...]")] = ()
    """Names of robots, or paths of model files. By default all models in ./models and all artifacts."""
    generated: Annotated[Path, arg(metavar="DIR")] = Path(ARTIFACTS)
    """Folder of artifacts."""


def run(options: Options) -> int:
    """Print a line for every model, and what is wrong with it."""
    from modelgen.artifact import folder as artifact
    from modelgen.derivation import model_file as modelfile
    from modelgen.derivation.description import content_hash
    from modelgen.derivation.mechanics import point_hashes

    built = sorted(path.parent.name for path in options.generated.glob(f"*/{artifact.MANIFEST}"))
    models = options.models or sorted({*built, *modelfile.own()})
    if not models:
        raise ModelError(
            f"there is nothing to check: no artifact in {options.generated} and no model file in ./models."
        )
    failures = 0
    for model in models:
        name, here = model, model in modelfile.available() or model not in built
        try:
            robot = modelfile.load(model) if here else None
            name = robot.name if robot else model
            hashes = (content_hash(robot), point_hashes(robot)) if robot else ()
            findings = artifact.check(name, options.generated, *hashes)
        except ModelError as error:
            if len(models) == 1:
                raise
            findings = [str(error)]
        print(f"{name:<20} {'FAILED' if findings else 'ok' if here else 'ok, but its model file is not here'}")
        for finding in findings:
            print(f"  {finding}")
        failures += bool(findings)
    return FAILED if failures else 0
