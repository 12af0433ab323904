"""Whether the robot can be controlled everywhere on an identified set: at both ends of every semi-axis."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from modelgen.arrays import Array
from modelgen.identification.identifiability import in_words
from modelgen.linear.regulator import obstacle
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.local.authority import unstable_directions
from solver.local.linearization import in_double_precision, in_units_of_limits, linearized, scaled_weights
from solver.plants.outcome import tolerances
from solver.problem.identified import Identified
from solver.problem.problem import Problem

HELD = 1e-3  # of a state's limit per second: a drift that the input leaves at the target beyond this is not held


def require_controllable(robot: CompiledRobot, identified: Identified) -> None:
    """SolverError names the semi-axis along which the robot cannot be controlled any more.

    robot: with kernels on the CPU, at the identified parameters. What is wrong there already is no matter of the set.
    """
    robot = in_double_precision(robot)
    if _reason(robot):
        return
    nominal = np.array(identified.nominal)
    for axis in identified.semi_axes().T:
        for change in (axis, -axis):
            reason = _reason(robot.with_nominal((nominal + change).tolist()))
            if reason:
                raise SolverError(
                    f"the set in {identified.source} is larger than {robot.name} can be controlled in. At its end with "
                    f"{in_words(robot.parameter_names, change, nominal)} "
                    f"({_listed(robot, nominal + change)}), {reason}. Record motion that tells this direction better, "
                    "narrow the bounds in the model file, or train with a smaller radius of the adversary `parameters`."
                )


def _listed(robot: CompiledRobot, theta: Array) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(robot.parameter_names, theta, strict=True))


def _reason(robot: CompiledRobot) -> str:
    """Why the robot, in double precision, cannot be held at its target; nothing where it can."""
    drift, A, B = linearized(robot)
    names, task = robot.state_names, robot.metadata.task
    if not (np.isfinite(drift).all() and np.isfinite(A).all() and np.isfinite(B).all()):
        return "the dynamics are not finite"
    limits, reach = np.asarray(robot.state_limits), np.asarray(robot.input_limits)
    away = (np.asarray(robot.trim) - robot.input_middle) / reach
    left = lsq_linear(B / limits[:, None] * reach, -drift / limits, bounds=(-1.0 - away, 1.0 - away)).fun
    worst = int(np.abs(left).argmax())
    if abs(left[worst]) > HELD and names[worst] not in task.free:
        return f"no input within the limits holds {names[worst]} at the target"
    found = obstacle(*in_units_of_limits(robot, A, B), scaled_weights(robot)[0])
    if found is not None and names[found.state] not in task.free:
        return f"near the target {found.reason} a motion of {names[found.state]} that does not decay"
    return _too_weak(robot, A, B)


def _too_weak(robot: CompiledRobot, A: Array, B: Array) -> str:
    """An unstable motion from which the input brings no coordinate back beyond its tolerance; nothing without one."""
    near = tolerances(Problem(robot))[0]
    for direction in unstable_directions(robot, A, B):
        if direction.reach < float(near[direction.joint]):
            state = robot.metadata.states[direction.joint]
            return (
                f"the input is too weak to hold the target: {state.name} is brought back from at most "
                f"{direction.reach:.2g} {state.unit}"
            )
    return ""
