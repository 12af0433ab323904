"""Cost of a distilled policy and of the observer on a Cortex-M4F: upper bounds, computed from numbers of operations.

The constants are bounds on single precision code of `arm-none-eabi-gcc` with newlib's libm: -O2 for the policy, -O3 for
the observer, whose loops it unrolls. `board` counts the instructions on an emulated board. The bound decides, because
it needs no emulator and holds at all states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.export.distilled.network import LAYERS
from solver.problem import Problem
from solver.problem.integrator import steps_estimating
from solver.value.family import exponents

WIDTHS = (64, 48, 40, 32, 24, 16, 8)
CYCLES = 2  # of an instruction on average: most need one, loads two, a division fourteen
PRODUCT = 5  # instructions: two loads, multiply-accumulate, compare, branch
CALL = 130  # instructions of a libm call at most: tanhf 115, sinf and cosf 115, sinhf 130, atanf 70
NEURON, ENTRY, FRAME = 20, 20, 150  # instructions of a loop around a sum, around a state or input, and of the rest
CODE, OPERATION = 9600, 32  # bytes: code with libm, and one operation of grad g~
TELL_CODE, TRIM_CODE, TOLD = 1200, 4000, 600  # bytes: of what a context changes, of the trim, and the struct of both
DOUBLE, DOUBLE_CALL = 60, 3000  # instructions of a product and of a libm call in double, without a unit for it
LIVE = 128  # numbers that the dynamics keep at once at most
STACK = 576  # bytes without the layers; the sine of an angle of many turns needs 420

STAGES = 4  # of a Runge-Kutta step in the observer
OBSERVER_OPERATION = 2.3  # instructions, with loads and stores
SENSITIVITY = 4.1  # instructions of a product or sum of the derivatives
COVARIANCE = 9.7  # instructions of an entry of the factors for each source of error
PREDICTED_ENTRY, PREDICTION = 13, 110  # instructions of a state in a prediction over the delay, and of the prediction
TURN, TURNED = 2500, 100  # instructions of a rotation, and of its errors for every column of derivatives
OBSERVER_CODE, CODE_OPERATION, CODE_DERIVATIVE = 6700, 4, 190  # bytes
CODE_SHIFT, REAL = 1800, 4  # bytes: what estimated parameters change at the target, and one number
OBSERVER_STACK, STACK_DERIVATIVE = 500, 40  # bytes

UNITS = {"us": 1e-6, "ms": 1e-3, "MHz": 1e6, "kHz": 1e3}


@dataclass(frozen=True)
class TimeBudget:
    """Time budget of a control period on a chip, for the policy and, if there is one, the observer."""

    text: str
    seconds: float
    hertz: float  # of the chip's clock

    @property
    def instructions(self) -> int:
        """Number of instructions in the budget. 1e-6 is added against rounding below a whole number."""
        return int(self.seconds * self.hertz / CYCLES + 1e-6)


@dataclass(frozen=True)
class Cost:
    """Upper bound of one call."""

    instructions: int
    flash: int  # bytes
    stack: int  # bytes


def read_budget(text: str) -> TimeBudget:
    """Budget of a text such as 500us@168MHz. Raises SolverError for other texts."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms)@(\d+(?:\.\d+)?)(kHz|MHz)", text)
    if match is None:
        raise SolverError(f"cannot read --budget {text}; write the time of a call and the chip's clock: 500us@168MHz")
    time, time_unit, clock, clock_unit = match.groups()
    return TimeBudget(text, float(time) * UNITS[time_unit], float(clock) * UNITS[clock_unit])


def cost(problem: Problem, width: int) -> Cost:
    """Cost of a policy with a network of this width.

    It has two hidden layers, sine and cosine of the angles, and sinh and grad g~ of the inputs.
    """
    states, inputs, angles = len(problem.state_limits), len(problem.input_limits), len(problem.continuous)
    told = 0 if problem.context is None else len(problem.context)
    features, operations = states + angles, problem.robot.operations["optimal_input"]
    hidden, neurons = (LAYERS - 1) * width * width, LAYERS * width
    products = (features + told) * width + hidden + width * inputs + features * inputs
    instructions = PRODUCT * products + (NEURON + CALL) * neurons + FRAME
    instructions += CALL * (2 * angles + 2 * inputs + operations) + ENTRY * (states + features + told + 2 * inputs)
    weights = products + neurons + inputs
    stack = 4 * (LAYERS + 1) * max(width, features + told, inputs) + 4 * (features + told) + STACK
    return Cost(instructions, 4 * weights + CODE + OPERATION * operations, stack)


def tell_cost(problem: Problem, width: int) -> Cost:
    """Cost of making the policy of a context: the polynomials of the gain, and a pass through the network and back."""
    assert problem.context is not None
    told, inputs, states = len(problem.context), len(problem.input_limits), len(problem.state_limits)
    features, degrees = states + len(problem.continuous), exponents(told, problem.context.shift)
    terms, degree = len(degrees), int(degrees.max())
    hidden = (features + told) * width + (LAYERS - 1) * width * width
    forward = PRODUCT * (hidden + width * inputs) + (NEURON + CALL) * LAYERS * width
    back = inputs * (PRODUCT * hidden + NEURON * LAYERS * width)
    instructions = forward + back + terms * (PRODUCT * (told + inputs * features) + NEURON) + FRAME
    instructions += ENTRY * (states * told + len(problem.theta) + degree * told + inputs * features)
    flash, stack = 4 * terms * (inputs * features + told) + TELL_CODE, 0
    if problem.moving_trim:
        slope, (trim, code) = problem.robot.operations["action_cost"], _of_trim(problem.robot)
        instructions += CALL * slope + trim
        flash += OPERATION * slope + code
        stack = 8 * (inputs * (4 * inputs + states) + LIVE)
    stack += 4 * (2 * (LAYERS + 1) * max(width, features + told, inputs) + (degree + 2) * told) + STACK
    return Cost(instructions, flash, stack + 4 * inputs * features)


def with_tell(problem: Problem, width: int) -> Cost:
    """Cost of a policy that is told another context in every call; of the policy alone without contexts."""
    policy = cost(problem, width)
    if problem.context is None:
        return policy
    tell = tell_cost(problem, width)
    instructions, flash = policy.instructions + tell.instructions, policy.flash + tell.flash
    return Cost(instructions, flash, max(policy.stack, tell.stack) + TOLD)


def widest(problem: Problem, budget: TimeBudget, observer: int = 0) -> int:
    """Width of the largest network that fits the budget. observer: instructions of the observer.

    A family is told another context in every call. Raises SolverError if no network fits.
    """
    for width in WIDTHS:
        if with_tell(problem, width).instructions + observer <= budget.instructions:
            return width
    least, name = with_tell(problem, WIDTHS[-1]).instructions, problem.robot.name
    needs = f"the smallest network for {name} needs {least}"
    if observer > budget.instructions:
        needs = f"the observer of {name} needs {observer}, and the smallest network {least} more"
    elif observer:
        needs += f", and the observer {observer} more"
    raise SolverError(
        f"--budget {budget.text} is {budget.instructions} instructions, at {CYCLES} cycles each, and {needs}; give at "
        f"least {math.ceil(CYCLES * (least + observer) / budget.hertz * 1e6)}us@{budget.hertz / 1e6:g}MHz"
    )


@dataclass(frozen=True)
class ObserverCost:
    """Upper bounds: a control period with one period of delay, and every further period of delay."""

    period: Cost
    delay: int  # instructions


def observer_cost(problem: Problem, parameters: Sequence[int] = ()) -> ObserverCost:
    """Cost of the observer's functions estimate, compensate and sent in a control period.

    parameters: indices of the parameters that it estimates.
    """
    robot, n, m, count = problem.robot, len(problem.target), len(problem.input_limits), len(parameters)
    metadata, errors, stages = robot.metadata, problem.geometry.size, STAGES * steps_estimating(problem, parameters)
    exact = 0 if metadata.rotations or metadata.unrated else metadata.nq  # positions without a Jacobian's rows
    estimated, columns = errors + m + count, errors + m + len(problem.theta)
    jacobians, dynamics = (robot.operations[name] for name in ("jacobians", "affine_dynamics"))
    derivatives = n * columns
    moving = (n - exact) * n * columns + 2 * derivatives
    turning = len(metadata.rotations) * (TURN + TURNED * columns)
    sources = columns + estimated - metadata.pose
    # The rows of the errors' sources are on the stack; the constants are for an observer of no parameter.
    more = estimated * sources - (errors + m) * (sources - count) + 4 * count
    filtering = stages * (CALL * _calls(robot, "jacobians") + OBSERVER_OPERATION * jacobians + SENSITIVITY * moving)
    filtering += COVARIANCE * estimated**2 * sources + turning
    delay = (
        stages * (CALL * _calls(robot, "affine_dynamics") + OBSERVER_OPERATION * dynamics + PREDICTED_ENTRY * n)
        + PREDICTION
    )
    trim, code = _of_trim(robot) if parameters and problem.moving_trim else (0, 0)  # where a shift begins from it
    filtering, flash = filtering + trim, code + (CODE_SHIFT if parameters else 0)
    flash += OBSERVER_CODE + CODE_OPERATION * (jacobians + dynamics) + CODE_DERIVATIVE * derivatives
    return ObserverCost(
        Cost(round(filtering + delay), flash, OBSERVER_STACK + STACK_DERIVATIVE * derivatives + REAL * more),
        round(delay),
    )


def _of_trim(robot: CompiledRobot) -> tuple[int, int]:
    """Instructions and bytes of the function that finds the trim, in double."""
    trim = robot.trim_program.operations["trim"]
    return DOUBLE * trim + DOUBLE_CALL * _calls(robot, "trim", trims=True), OPERATION * trim + TRIM_CODE


def _calls(robot: CompiledRobot, function: str, trims: bool = False) -> int:
    """Number of libm calls in an emitted function. In JavaScript every call is Math.NAME."""
    source, _ = robot.javascript(trims)
    return source.partition(f"function {function}(")[2].partition("\n}")[0].count("Math.")
