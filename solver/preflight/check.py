"""All checks and warnings before a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.local.basin import REST
from solver.local.linearization import linearization
from solver.preflight.controllable import require_controllable, weak_corners
from solver.preflight.preview import previewed
from solver.preflight.warnings import forewarnings
from solver.problem.context import Given
from solver.problem.identified import Identified
from solver.problem.robots import require_current
from solver.training.settings import Settings


@dataclass(frozen=True)
class Preflight:
    """Result of the checks before a training: lines to show, and warnings."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(
    robot: CompiledRobot,
    settings: Settings,
    identified: Identified | None = None,
    preview: float = 20.0,
    unheld_target: bool = False,
    given: tuple[Given, ...] = (),
) -> Preflight:
    """Checks of a task and of the settings before minutes of training.

    robot: with float32 kernels on the CPU and the nominal parameters of the training. preview: seconds of the search
    for a motion to the target, 0 for no search. unheld_target: accept a target that no input holds. given: parameters
    that the policy is told. Raises SolverError for such a target otherwise, for an artifact that was not built from the
    present model file, and if the robot cannot be controlled on the identified set.
    """
    require_current(robot)
    if not 0.0 <= preview < float("inf"):
        raise SolverError(f"preview is {preview}; give seconds, or 0 for no preview")
    if not unheld_target:
        _require_held_target(robot)
    lines = []
    if identified is not None:
        share = settings.adversaries.get("parameters", 0.0)
        if share > 0.0:
            require_controllable(robot, identified.scaled(share))
        lines.append(identified.text(robot, settings.algorithm == "rfvi"))
    motion, warnings = previewed(robot, preview)
    lines += [motion] if motion else []
    return Preflight(tuple(lines), (*forewarnings(robot, settings, identified), *weak_corners(robot, given), *warnings))


def _require_held_target(robot: CompiledRobot) -> None:
    """Raise SolverError if a state outside `free` moves at the target under every input within the limits.

    The input is the least-squares solution of drift + B (u - trim) = 0 in units of the limits.
    """
    local, inputs = linearization(robot), robot.metadata.inputs
    tangent = local.tangent
    judged = np.array([name not in tangent.free for name in tangent.names])
    drift, B = local.drift / local.limits, local.scaled_dynamics()[1]
    if np.abs(drift[judged]).max(initial=0.0) <= REST:
        return
    lower = [(entry.lower - entry.trim) / entry.limit for entry in inputs]
    upper = [(entry.upper - entry.trim) / entry.limit for entry in inputs]
    best = lsq_linear(B[judged], -drift[judged], (lower, upper), tol=1e-14).x
    left = np.where(judged, drift + B @ best, 0.0)
    worst = int(np.abs(left).argmax())
    if np.abs(left[worst]) <= REST:
        return
    state, unit, limit = tangent.entries[worst]
    ranges = ", ".join(f"{entry.name} {entry.range} {entry.unit}" for entry in inputs)
    raise SolverError(
        f"no input within the limits ({ranges}) holds the target of {robot.name}: {state} changes there by at "
        f"least {abs(left[worst] * limit):.3g} {unit} per second, so a policy cannot stay. In the model "
        f"file, choose another target=..., widen the limits, or write free=['{state}'] if its final value does "
        "not matter. --unheld-target (unheld_target=True in Python) trains all the same."
    )
