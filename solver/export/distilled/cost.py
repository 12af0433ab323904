"""What a distilled policy costs on a Cortex-M4F, stated from its operations, and the widest network that fits a budget.

The constants are upper bounds on what `arm-none-eabi-gcc -O2` makes in single precision, with newlib's libm.
`benchmarks/board.py` counts the instructions of the same program on an emulated board, which are fewer:
docs/how-to/export-to-c.md has both. The bound decides, for it needs no emulator and holds at every state.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from solver.errors import SolverError
from solver.export.distilled.network import LAYERS
from solver.problem.problem import Problem

WIDTHS = (64, 48, 32, 24, 16, 8)
CYCLES = 2  # of an instruction, on average: most take one, loads two, a division fourteen
PRODUCT = 5  # instructions: two loads, multiply-accumulate, compare, branch
CALL = 130  # of libm, at most, with its call: tanhf 115, sinf and cosf 115, sinhf 130, atanf 70
NEURON, ENTRY, FRAME = 20, 20, 150  # loops: around a sum, a state or an input, and all else
CODE, OPERATION = 9600, 32  # bytes, libm included, and of one operation of grad g~
STACK = 576  # bytes beside the layers; 420 of them are for the sine of an angle of many turns
UNITS = {"us": 1e-6, "ms": 1e-3, "MHz": 1e6, "kHz": 1e3}


@dataclass(frozen=True)
class Budget:
    """Time for a control period's computation on a chip: the policy, and the observer where there is one."""

    text: str
    seconds: float
    hertz: float  # of the chip's clock

    @property
    def instructions(self) -> int:
        """That fit; 1e-6 more, for what rounding takes off a whole number."""
        return int(self.seconds * self.hertz / CYCLES + 1e-6)


@dataclass(frozen=True)
class Cost:
    """At most, of one call."""

    instructions: int
    flash: int  # bytes
    stack: int  # bytes


def read_budget(text: str) -> Budget:
    """Read words such as 500us@168MHz. Raises SolverError for others."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms)@(\d+(?:\.\d+)?)(kHz|MHz)", text)
    if found is None:
        raise SolverError(f"cannot read --budget {text}; write the time of a call and the chip's clock: 500us@168MHz")
    time, time_unit, clock, clock_unit = found.groups()
    return Budget(text, float(time) * UNITS[time_unit], float(clock) * UNITS[clock_unit])


def cost(problem: Problem, width: int) -> Cost:
    """Of a network of this width: two hidden layers, sine and cosine of the angles, sinh and grad g~ of the inputs."""
    states, inputs, angles = len(problem.state_limits), len(problem.input_limits), len(problem.continuous)
    features, operations = states + angles, problem.robot.operations["optimal_input"]
    hidden, neurons = (LAYERS - 1) * width * width, LAYERS * width
    products = features * width + hidden + width * inputs + features * inputs
    instructions = PRODUCT * products + (NEURON + CALL) * neurons + FRAME
    instructions += CALL * (2 * angles + 2 * inputs + operations) + ENTRY * (states + features + 2 * inputs)
    weights = products + neurons + inputs
    stack = 8 * max(width, features, inputs) + 4 * features + STACK
    return Cost(instructions, 4 * weights + CODE + OPERATION * operations, stack)


def widest(problem: Problem, budget: Budget, observer: int = 0) -> int:
    """The width of the largest network that fits beside an observer of so many instructions. Raises SolverError where
    none does."""
    for width in WIDTHS:
        if cost(problem, width).instructions + observer <= budget.instructions:
            return width
    least, name = cost(problem, WIDTHS[-1]).instructions, problem.robot.name
    needs = f"the smallest network for {name} takes {least}"
    if observer > budget.instructions:
        needs = f"the observer of {name} alone takes {observer}, before the {least} of the smallest network"
    elif observer:
        needs += f", beside {observer} of the observer"
    raise SolverError(
        f"--budget {budget.text} is {budget.instructions} instructions, at {CYCLES} cycles each, and {needs}; give at "
        f"least {math.ceil(CYCLES * (least + observer) / budget.hertz * 1e6)}us@{budget.hertz / 1e6:g}MHz"
    )
