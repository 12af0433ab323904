"""All checks and warnings before a training."""

from __future__ import annotations

from dataclasses import dataclass

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.preflight.controllable import require_controllable
from solver.preflight.preview import previewed
from solver.preflight.warnings import forewarnings
from solver.problem.identified import Identified
from solver.problem.robots import require_current
from solver.training.settings import Settings


@dataclass(frozen=True)
class Preflight:
    """Result of the checks before a training: lines to show, and warnings."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(
    robot: CompiledRobot, settings: Settings, identified: Identified | None = None, preview: float = 20.0
) -> Preflight:
    """Checks of a task and of the settings before minutes of training.

    robot: with float32 kernels on the CPU and the nominal parameters of the training. preview: seconds of the search
    for a motion to the target, 0 for no search. Raises SolverError for an artifact that was not built from the present
    model file, and if the robot cannot be controlled on the identified set.
    """
    require_current(robot)
    if not 0.0 <= preview < float("inf"):
        raise SolverError(f"preview is {preview}; give seconds, or 0 for no preview")
    lines = []
    if identified is not None:
        share = settings.adversaries.get("parameters", 0.0)
        if share > 0.0:
            require_controllable(robot, identified.scaled(share))
        lines.append(identified.text(robot, settings.algorithm == "rfvi"))
    motion, warnings = previewed(robot, preview)
    lines += [motion] if motion else []
    return Preflight(tuple(lines), (*forewarnings(robot, settings, identified), *warnings))
