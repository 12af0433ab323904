"""Counts of a distilled policy and of the observer on an emulated Cortex-M4F.

The C is compiled in single precision with -O2. QEMU's board mps2-an386 runs it with `-icount shift=0`, where an
instruction takes 1 ns of the emulated clock. The result is the number of instructions, not of cycles, and the same on
every machine. Half of the states are uniform in the domain; the others come from rollouts of the run's policy.

A family is told another context in every call.

With an observer, a call is a whole control period: the observer with one period of delay, the policy, and the
compensation of the disturbance. The positions then come from rollouts on the harsh plant, in order. The observer and
the robot's functions are compiled with -O3, which unrolls their loops.
"""

from __future__ import annotations

import math
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

from solver.errors import SolverError
from solver.export.c_folder import TEMPLATES
from solver.export.distilled.cost import Cost
from solver.plants import make_plant
from solver.plants.harsh import possible_effects
from solver.plants.outcome import rollouts, sample_starts
from solver.problem import Problem
from solver.training.solution import Solution

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
    plant = make_plant("harsh", problem, problem.split(starts)[1], possible_effects(problem), seed=0)
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
