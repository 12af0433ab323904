"""Instructions, flash and stack of an exported policy on a Cortex-M4F, counted on an emulated board.

The C is compiled in single precision with -O2 and run on QEMU's board mps2-an386 with `-icount shift=0`, where an
instruction takes 1 ns of the emulated clock. The count is of instructions, not cycles, and the same on every machine.
Half of the states are uniform in the domain; the others are those of rollouts of the run's policy. With an observer,
a call is a whole control period: the observer with a delay of one period, the policy, and the disturbance taken off.
The positions are then those of rollouts on the harsh plant, in their order. The observer and the robot's own functions
are compiled with -O3, which unrolls their loops.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.export.c_templates import TEMPLATES
from solver.export.distilled.cost import Cost
from solver.plants import make_plant
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.problem import Problem
from solver.training.solution import Solution

COMPILER = "arm-none-eabi-gcc"
CHIP = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
WORDS = [*CHIP, "-std=gnu99", "-O2", "-ffunction-sections", "-fdata-sections", "-fno-tree-loop-distribute-patterns"]
EMULATOR = ["qemu-system-arm", "-M", "mps2-an386", "-icount", "shift=0", "-nographic", "-monitor", "none"]
EMULATOR += ["-serial", "null", "-chardev", "stdio,id=out"]
EMULATOR += ["-semihosting-config", "enable=on,target=native,chardev=out", "-kernel"]
LONGEST = 600  # seconds, of the emulator
TOOLS = (COMPILER, EMULATOR[0])
CALLS = 8  # a count is the mean of so many, for the policy alone, which has no memory: it is right to 5 instructions
PAINTED = 16_384  # bytes of stack that are looked at

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Counts:
    """Of every call, and of the program."""

    instructions: NDArray[np.int64]  # (N,)
    u: Array  # (N, m), what the board computed
    flash: int  # bytes, libm included
    stack: int  # bytes

    @property
    def largest(self) -> Cost:
        return Cost(int(self.instructions.max()), self.flash, self.stack)


def missing_tools() -> str:
    """What is not installed of the compiler and the emulator; empty where both are."""
    return " and ".join(tool for tool in TOOLS if shutil.which(tool) is None)


def compiler_version() -> str:
    return _run([COMPILER, "-dumpversion"]).strip()


def count_policy(solution: Solution, folder: Path, number: int) -> tuple[Counts, Array]:
    """The counts of the policy in the C of a folder, and the states (N, n) that they are of. Raises SolverError where
    it cannot be compiled or run."""
    problem, half, generator = solution.problem, number // 2, torch.Generator().manual_seed(0)
    seen = rollouts(problem, solution.controller(), sample_starts(problem, 20, 0)).x.flatten(0, 1)
    chosen = seen[torch.randint(len(seen), (number - half,), generator=generator)]
    x = torch.cat([problem.sample_domain(half, generator), chosen]).numpy()
    return measured(problem, folder, x), x


def count_period(solution: Solution, folder: Path, number: int) -> tuple[Counts, Array]:
    """The counts of whole control periods with the observer in the C of a folder, and the positions (N, q) that it
    gets. Raises SolverError where it cannot be compiled or run."""
    problem, task = solution.problem, solution.problem.robot.metadata.task
    starts = sample_starts(problem, math.ceil(number / (task.horizon * task.control_rate)), 0)
    x = rollouts(problem, solution.controller(), starts, make_plant("harsh", problem, seed=0), observed=True).x
    every = x[:, :, : len(problem.robot.metadata.coordinates)].transpose(0, 1).flatten(0, 1)
    positions = every[:number].numpy()
    return measured(problem, folder, positions, period(problem, len(x))), positions


def period(problem: Problem, rows: int) -> str:
    """C of a function POLICY that does what the robot does in a control period, and begins anew after so many rows."""
    name, n = problem.robot.name, len(problem.target)
    return f"""#include "{name}_observer.h"
static {name}_observer observer;
static void POLICY(const float *positions, float *u) {{
    static int row;
    float x[{n}];
    if (row++ % {rows} == 0) {name}_observer_reset(&observer);
    {name}_observer_estimate(&observer, positions, x);
    {name}_policy(x, u);
    {name}_observer_compensate(&observer, u);
    {name}_observer_sent(&observer, u);
}}
"""


def measured(problem: Problem, folder: Path, x: Array, code: str = "") -> Counts:
    """Count at the rows of x (N, n).

    code: C of another POLICY than the policy alone, with a memory, and of the rows of x in their order. Raises
    SolverError where the C of the folder cannot be compiled or run.
    """
    name, inputs = problem.robot.name, len(problem.input_limits)
    real, called, calls = [f"-D{name.upper()}_REAL=float"], f"#define POLICY {name}_policy\n", CALLS
    optimisation = {f"{name}.c": "-O2", f"{name}_policy.c": "-O2"}
    if code:
        real, called, calls = [*real, f"-D{name.upper()}_DELAY=1"], code, 1
        optimisation |= {f"{name}.c": "-O3", f"{name}_observer.c": "-O3"}
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for source, level in optimisation.items():
            objects.append(str(Path(scratch) / f"{source}.o"))
            _run([COMPILER, *WORDS, level, *real, "-c", str(folder / source), "-o", objects[-1]])
        sizes = []
        for policy in ("#define POLICY nothing\n", called):
            text = f'#include "{name}_policy.h"\n{policy}{_stated(x, inputs, calls)}'
            (Path(scratch) / "states.h").write_text(text)
            program = str(Path(scratch) / "program.elf")
            words = [f"-I{scratch}", f"-I{folder}", *real, "-T", str(TEMPLATES / "board.ld")]
            words += ["-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", str(TEMPLATES / "board.c"), *objects]
            _run([COMPILER, *WORDS, *words, "-lm", "-o", program])
            sizes.append(sum(map(int, _run(["arm-none-eabi-size", program]).splitlines()[1].split()[:2])))
        *rows, stack = _run([*EMULATOR, program]).splitlines()
    found = np.array([row.split() for row in rows], np.uint64)
    if int(stack) >= PAINTED:
        raise SolverError(f"cannot count the stack of {name}: it takes more than {PAINTED} bytes")
    u = found[:, 1:].astype(np.uint32).view(np.float32)
    return Counts(found[:, 0].astype(np.int64), u, sizes[1] - sizes[0], int(stack))


def _stated(x: Array, inputs: int, calls: int) -> str:
    """The rest of states.h, with the numbers' exact bits."""
    rows = ",\n".join("{" + ", ".join(float(value).hex() + "f" for value in row) + "}" for row in x.astype(np.float32))
    return (
        f"enum {{ STATES = {x.shape[1]}, INPUTS = {inputs}, ROWS = {len(x)}, CALLS = {calls}, PAINTED = {PAINTED} }};\n"
        f"static const float states[ROWS][STATES] = {{\n{rows}}};\n"
    )


def _run(command: list[str]) -> str:
    """What a program prints. Raises SolverError where it fails."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST).stdout
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip()
        raise SolverError(f"cannot count instructions: {command[0]} failed: {said[-500:]}") from error
