"""What the observer costs on a Cortex-M4F in a control period, stated from its operations: a bound, as in `cost.py`.

The constants are upper bounds on what `arm-none-eabi-gcc -O3`, which unrolls the loops, makes in single precision of
`templates/observer.c` and of the robot's own functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelgen.loader import CompiledRobot
from solver.export.distilled.cost import CALL, Cost
from solver.problem.problem import Problem

STAGES = 4  # of a Runge-Kutta step
OPERATION = 2.3  # instructions, with its loads and stores
SENSITIVITY = 4.1  # of a product or sum of the derivatives
COVARIANCE = 9.7  # of an entry of the factors, for each source of error
ENTRY, PERIOD = 13, 110  # of a state in a prediction over the delay; of such a prediction
CODE, CODE_OPERATION, CODE_DERIVATIVE = 6500, 4, 190  # bytes
STACK, STACK_DERIVATIVE = 500, 40  # bytes


@dataclass(frozen=True)
class ObserverCost:
    """At most: of a control period with one period of delay, and of every further period of delay."""

    period: Cost
    delay: int  # instructions


def observer_cost(problem: Problem) -> ObserverCost:
    """Of estimate, compensate and sent."""
    robot, n, m = problem.robot, len(problem.target), len(problem.input_limits)
    positions, stages = len(robot.metadata.coordinates), STAGES * problem.substeps
    estimated, columns = n + m, n + m + len(problem.theta)
    jacobians, dynamics = (robot.operations[name] for name in ("jacobians", "affine_dynamics"))
    derivatives = n * columns
    moving = (n - positions) * n * columns + 2 * derivatives
    sources = columns + estimated - positions
    filtering = stages * (CALL * _calls(robot, "jacobians") + OPERATION * jacobians + SENSITIVITY * moving)
    filtering += COVARIANCE * estimated**2 * sources
    delay = stages * (CALL * _calls(robot, "affine_dynamics") + OPERATION * dynamics + ENTRY * n) + PERIOD
    flash = CODE + CODE_OPERATION * (jacobians + dynamics) + CODE_DERIVATIVE * derivatives
    return ObserverCost(Cost(round(filtering + delay), flash, STACK + STACK_DERIVATIVE * derivatives), round(delay))


def _calls(robot: CompiledRobot, function: str) -> int:
    """The number of calls of libm in an emitted function; the JavaScript has each of them as Math.NAME."""
    source, _ = robot.javascript()
    return source.partition(f"function {function}(")[2].partition("\n}")[0].count("Math.")
