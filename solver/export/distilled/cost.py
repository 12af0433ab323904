"""Cost of a distilled policy and of the observer on a Cortex-M4F: its bounds, and counts on an emulated board.

The C is compiled in single precision with -O2. QEMU's board mps2-an386 runs it with `-icount shift=0`, where an
instruction takes 1 ns of the emulated clock. The result is the number of instructions, not of cycles, and the same on
every machine. Half of the states are uniform in the domain; the others come from rollouts of the run's policy.

A family is told another context in every call.

With an observer, a call is a whole control period: the observer with one period of delay, the policy, and the
compensation of the disturbance. The positions then come from rollouts on the harsh plant, in order. The observer and
the robot's functions are compiled with -O3, which unrolls their loops.

The costs are upper bounds, computed from the numbers of operations. Their constants are bounds on single precision code
of `arm-none-eabi-gcc` with newlib's libm: -O2 for the policy, -O3 for the observer, whose loops it unrolls.
`benchmarks/board.py` counts the instructions on an emulated board; docs/how-to/export-to-c.md compares both. The bound
decides, because it needs no emulator and holds at all states.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.export.c_folder import TEMPLATES
from solver.export.distilled.network import LAYERS
from solver.plants import make_plant
from solver.plants.outcome import rollouts, sample_starts
from solver.problem.integrator import steps_estimating
from solver.problem.problem import Problem
from solver.training.solution import Solution
from solver.value.family import exponents

COMPILER = "arm-none-eabi-gcc"
CHIP = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
WORDS = [*CHIP, "-std=gnu99", "-O2", "-ffunction-sections", "-fdata-sections", "-fno-tree-loop-distribute-patterns"]
EMULATOR = ["qemu-system-arm", "-M", "mps2-an386", "-icount", "shift=0", "-nographic", "-monitor", "none"]
EMULATOR += ["-serial", "null", "-chardev", "stdio,id=out"]
EMULATOR += ["-semihosting-config", "enable=on,target=native,chardev=out", "-kernel"]
LONGEST = 600  # seconds of a program, for example the emulator
TOOLS = (COMPILER, EMULATOR[0])
CALLS = 8  # calls of the policy in a count, which is their mean: exact to 5 instructions
PAINTED = 16_384  # bytes of stack that are checked

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Counts:
    """Counts of every call and of the program."""

    instructions: NDArray[np.int64]  # (N,)
    u: Array  # (N, m) inputs that the board computed
    flash: int  # bytes with libm
    stack: int  # bytes

    @property
    def largest(self) -> Cost:
        """Cost with the largest number of instructions."""
        return Cost(int(self.instructions.max()), self.flash, self.stack)


def missing_tools() -> str:
    """Names of the compiler and the emulator if they are not installed."""
    return " and ".join(tool for tool in TOOLS if shutil.which(tool) is None)


def compiler_version() -> str:
    """Version of the compiler."""
    return _run([COMPILER, "-dumpversion"]).strip()


def count_policy(solution: Solution, folder: Path, number: int) -> tuple[Counts, Array]:
    """Counts of the policy in the C files of a folder, and their rows (N, n + k).

    Raises SolverError if the C cannot be compiled or run.
    """
    problem, half, generator = solution.problem, number // 2, torch.Generator().manual_seed(0)
    visited = rollouts(problem, solution.controller(), sample_starts(problem, 20, 0)).x.flatten(0, 1)
    chosen = visited[torch.randint(len(visited), (number - half,), generator=generator)]
    x = torch.cat([problem.sample_domain(half, generator), chosen])
    return measured(problem, folder, shown(problem, x).numpy(), told_policy(problem)), x.numpy()


def count_period(solution: Solution, folder: Path, number: int, estimate: Sequence[str] = ()) -> tuple[Counts, Array]:
    """Counts of control periods with the observer in the C files of a folder, and its measured positions (N, q).

    estimate: parameters that it estimates. A family is told their estimates, and the nominal values of others. Raises
    SolverError if the C cannot be compiled or run.
    """
    problem, task = solution.problem, solution.problem.robot.metadata.task
    starts = sample_starts(problem, math.ceil(number / (problem.horizon * task.control_rate)), 0)
    starts = problem.told(problem.split(starts)[0], problem.theta)
    plant = make_plant("harsh", problem, problem.split(starts)[1], seed=0)
    x = rollouts(problem, solution.controller(), starts, plant, observed=True, estimate=estimate).x
    every = x[:, :, : problem.robot.metadata.nq].transpose(0, 1).flatten(0, 1)
    positions = every[:number].numpy()
    code = period(problem, len(x), [problem.robot.parameter_names.index(name) for name in estimate])
    return measured(problem, folder, positions, code), positions


def shown(problem: Problem, rows: Tensor) -> Tensor:
    """Rows (N, n + k) with their contexts in SI units."""
    x, theta = problem.split(rows)
    return x if theta is None or problem.context is None else torch.cat([x, theta[:, problem.context.columns]], 1)


def told_policy(problem: Problem) -> str:
    """C of a function POLICY of states with contexts, which is told them; empty without contexts."""
    if problem.context is None:
        return ""
    name, n = problem.robot.name, len(problem.target)
    entries = ", ".join(f"in[{n + i}]" for i in range(len(problem.context)))
    return f"""static void POLICY(const float *in, float *u) {{
    {name}_told told;
    {name}_tell(&(const {name}_context){{{entries}}}, &told);
    {name}_policy(&told, in, u);
}}
"""


def period(problem: Problem, rows: int, estimated: Sequence[int] = ()) -> str:
    """C of a function POLICY for a whole control period. It resets the observer after `rows` calls.

    estimated: indices of the parameters whose estimates a family is told, in every call.
    """
    name, n, told, tell = problem.robot.name, len(problem.target), "", ""
    if problem.context is not None:
        entries = [
            f"observer.filters[observer.likeliest].parameters[{i}]" if i in estimated else repr(float(problem.theta[i]))
            for i in problem.context.columns.tolist()
        ]
        told = "&told, "
        tell = f"""    static {name}_told told;
    {name}_tell(&(const {name}_context){{{", ".join(entries)}}}, &told);
"""
    return f"""#include "{name}_observer.h"
static {name}_observer observer;
static void POLICY(const float *positions, float *u) {{
    static int row;
    float x[{n}];
    if (row++ % {rows} == 0) {name}_observer_reset(&observer);
    {name}_observer_estimate(&observer, positions, x);
{tell}    {name}_policy({told}x, u);
    {name}_observer_compensate(&observer, u);
    {name}_observer_sent(&observer, u);
}}
"""


def measured(problem: Problem, folder: Path, x: Array, code: str = "") -> Counts:
    """Counts at the rows of x (N, n + k).

    code: C of a POLICY, called with the rows of x in order; by default the policy alone. Raises SolverError
    if the C files of the folder cannot be compiled or run.
    """
    name, inputs = problem.robot.name, len(problem.input_limits)
    real, called, calls = [f"-D{name.upper()}_REAL=float"], f"#define POLICY {name}_policy\n", CALLS
    optimisation = {f"{name}.c": "-O2", f"{name}_policy.c": "-O2"}
    if code:
        called = code
    if "observer" in code:  # it has a memory
        real, calls = [*real, f"-D{name.upper()}_DELAY=1"], 1
        optimisation |= {f"{name}.c": "-O3", f"{name}_observer.c": "-O3"}
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for source, level in optimisation.items():
            objects.append(str(Path(scratch) / f"{source}.o"))
            _run([COMPILER, *WORDS, level, *real, "-c", str(folder / source), "-o", objects[-1]])
        sizes = []
        for policy in ("#define POLICY nothing\n", called):
            text = f'#include "{name}_policy.h"\n{policy}{_states(x, inputs, calls)}'
            (Path(scratch) / "states.h").write_text(text)
            program = str(Path(scratch) / "program.elf")
            words = [f"-I{scratch}", f"-I{folder}", *real, "-T", str(TEMPLATES / "board.ld")]
            words += ["-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", str(TEMPLATES / "board.c"), *objects]
            _run([COMPILER, *WORDS, *words, "-lm", "-o", program])
            sizes.append(sum(map(int, _run(["arm-none-eabi-size", program]).splitlines()[1].split()[:2])))
        *rows, stack = _run([*EMULATOR, program]).splitlines()
    printed = np.array([row.split() for row in rows], np.uint64)
    if int(stack) >= PAINTED:
        raise SolverError(f"cannot count the stack of {name}: it needs more than {PAINTED} bytes")
    u = printed[:, 1:].astype(np.uint32).view(np.float32)
    return Counts(printed[:, 0].astype(np.int64), u, sizes[1] - sizes[0], int(stack))


def _states(x: Array, inputs: int, calls: int) -> str:
    """Second part of states.h: the states with their exact bits."""
    rows = ",\n".join("{" + ", ".join(float(value).hex() + "f" for value in row) + "}" for row in x.astype(np.float32))
    return (
        f"enum {{ STATES = {x.shape[1]}, INPUTS = {inputs}, ROWS = {len(x)}, CALLS = {calls}, PAINTED = {PAINTED} }};\n"
        f"static const float states[ROWS][STATES] = {{\n{rows}}};\n"
    )


def _run(command: list[str]) -> str:
    """Output of a program. Raises SolverError if it fails."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST).stdout
    except (OSError, subprocess.SubprocessError) as error:
        reason = str(getattr(error, "stderr", None) or error).strip()
        raise SolverError(f"cannot count instructions: {command[0]} failed: {reason[-500:]}") from error


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
