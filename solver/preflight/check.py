"""All checks and warnings before a training; whether the robot can be controlled on an identified set."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import lsq_linear

from modelgen.arrays import Array
from modelgen.identification.confidence import in_words
from modelgen.linear.regulator import obstacle
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.local.basin import REST
from solver.local.linearization import Linearization, linearization, linearize, unstable_directions
from solver.plants.outcome import tolerances
from solver.preflight.preview import previewed
from solver.preflight.warnings import forewarnings
from solver.problem.context import Given
from solver.problem.identified import Identified
from solver.problem.problem import Problem
from solver.problem.robots import require_current
from solver.training.settings import Settings

HELD = 1e-3  # limits per second: largest drift at the target that the inputs may leave


def require_controllable(robot: CompiledRobot, identified: Identified) -> None:
    """Raises SolverError with the semi-axis along which the robot cannot be controlled any more.

    robot: with the identified parameters. A robot that cannot be controlled at these parameters passes, because the set
    is not the cause.
    """
    nominal_linearization = linearization(robot)
    if _obstacle(nominal_linearization):
        return
    robot = nominal_linearization.robot
    nominal = np.array(identified.nominal)
    for axis in identified.semi_axes().T:
        for change in (axis, -axis):
            changed = robot.with_nominal((nominal + change).tolist())
            reason = _obstacle(linearize(changed, changed.metadata))
            if reason:
                raise SolverError(
                    f"{robot.name} cannot be controlled on the whole set in {identified.source}. At its end with "
                    f"{in_words(robot.parameter_names, change, nominal)} "
                    f"({_listed(robot, nominal + change)}), {reason}. Record motion that excites this direction, "
                    "narrow the bounds in the model file, or use a part of the set: --adversaries parameters=0.5."
                )


def weak_corners(robot: CompiledRobot, given: tuple[Given, ...]) -> list[str]:
    """Warning of a corner of the ranges of told parameters at which the robot cannot be controlled near its target.

    A robot that cannot be controlled at the nominal parameters gives none, because the ranges are not the cause.
    """
    local = linearization(robot)
    if not given or _obstacle(local):
        return []
    for corner in product(*((entry.lower, entry.upper) for entry in given)):
        values = dict(zip(robot.parameter_names, robot.nominal_parameters.tolist(), strict=True))
        values |= {entry.name: value for entry, value in zip(given, corner, strict=True)}
        changed = local.robot.with_nominal(list(values.values()))
        reason = _obstacle(linearize(changed, robot.metadata))
        if reason:
            where = ", ".join(f"{entry.name} {value:.4g}" for entry, value in zip(given, corner, strict=True))
            return [f"at the corner of --given with {where}, {reason}. Make a range smaller, or widen the limits."]
    return []


def _listed(robot: CompiledRobot, theta: Array) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(robot.parameter_names, theta, strict=True))


def _obstacle(local: Linearization) -> str:
    """Reason why the robot cannot be held at its target, or an empty text."""
    names, free = local.tangent.names, local.tangent.free
    if not (np.isfinite(local.drift).all() and np.isfinite(local.A).all() and np.isfinite(local.B).all()):
        return "the dynamics are not finite"
    inputs = local.B / local.limits[:, None] * local.input_limits
    away = np.array([(entry.trim - entry.middle) / entry.limit for entry in local.metadata.inputs])
    left = lsq_linear(inputs, -local.drift / local.limits, bounds=(-1.0 - away, 1.0 - away)).fun
    worst = int(np.abs(left).argmax())
    if abs(left[worst]) > HELD and names[worst] not in free:
        return f"no input within the limits holds {names[worst]} at the target"
    motion = obstacle(*local.scaled_dynamics(), local.scaled_weights()[0])
    if motion is not None and names[motion.state] not in free:
        return f"near the target {motion.reason} a motion of {names[motion.state]} that does not decay"
    return _too_weak_input(local)


def _too_weak_input(local: Linearization) -> str:
    """Message on an unstable coordinate that the inputs cannot bring back from its tolerance, or an empty text."""
    near, tangent = tolerances(Problem(local.robot))[0], local.tangent
    for direction in unstable_directions(local):
        if direction.reach < float(near[tangent.states[direction.joint]]):
            name, unit, _ = tangent.entries[direction.joint]
            return (
                f"the input is too weak to hold the target: {name} is brought back from at most "
                f"{direction.reach:.2g} {unit}"
            )
    return ""


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
