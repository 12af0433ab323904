"""Instructions, flash and stack of an exported policy on a Cortex-M4F, counted on an emulated board.

    solver export furuta-cfvi --c firmware --budget 800us@168MHz && modelgen export furuta --c firmware
    python benchmarks/board.py furuta-cfvi firmware

Needs Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. Compiles the folder's C in single
precision with -O2, runs the policy on QEMU's board mps2-an386 with `-icount shift=0`, where an instruction takes 1 ns
of the emulated clock, and prints JSON. Half of the states are uniform in the domain; the others are those of rollouts
of the run's policy. The count is of instructions, not cycles, and the same on every machine.

With --observer, for a folder of `solver export --observer`, a call is a whole control period: the observer with a delay
of one period, the policy, and the disturbance taken off. The positions are those of one rollout on the harsh plant, in
their order. The observer and the robot's own functions are compiled with -O3, which unrolls their loops.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from solver.fvi.solution import Solution, load_solution
from solver.plants import make_plant
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.problem import Problem

HERE = Path(__file__).parent / "board"
CHIP = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
COMPILER = "arm-none-eabi-gcc"
WORDS = [*CHIP, "-std=gnu99", "-O2", "-ffunction-sections", "-fdata-sections", "-fno-tree-loop-distribute-patterns"]
EMULATOR = ["qemu-system-arm", "-M", "mps2-an386", "-icount", "shift=0", "-nographic", "-monitor", "none"]
EMULATOR += ["-serial", "null", "-chardev", "stdio,id=out"]
EMULATOR += ["-semihosting-config", "enable=on,target=native,chardev=out", "-kernel"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", help="run folder or shipped policy, whose states are taken")
    parser.add_argument("folder", type=Path, help="folder with the C of `solver export` and `modelgen export`")
    parser.add_argument("--states", type=int, default=10000)
    parser.add_argument("--observer", action="store_true", help="count a whole control period with the observer")
    parser.add_argument("--generated", help="folder of artifacts, where it has moved")
    options = parser.parse_args()
    solution = load_solution(options.run, options.generated)
    problem, name = solution.problem, solution.problem.robot.name
    inputs = len(problem.input_limits)
    if options.observer:
        x = positions_of_one_rollout(solution)[: options.states]
        counts, u, stack, flash = measured(name, options.folder, x, inputs, period(problem))
    else:
        x = states(solution, options.states)
        counts, u, stack, flash = measured(name, options.folder, x, inputs)
    print(
        json.dumps(
            {
                "run": options.run,
                "states": len(x),
                "instructions_largest": int(counts.max()),
                "instructions_mean": round(float(counts.mean())),
                "stack_bytes": stack,
                "flash_bytes": flash,
                "largest_input_share": float((np.abs(u) / problem.input_limits.numpy()).max()),
            },
            indent=2,
        )
    )


def states(solution: Solution, count: int) -> np.ndarray:
    """(N, n): half of them uniform in the domain, the others of rollouts."""
    problem, half, generator = solution.problem, count // 2, torch.Generator().manual_seed(0)
    seen = rollouts(problem, solution.controller(), sample_starts(problem, 20, 0)).x.flatten(0, 1)
    chosen = seen[torch.randint(len(seen), (count - half,), generator=generator)]
    return torch.cat([problem.sample_domain(half, generator), chosen]).numpy()


def positions_of_one_rollout(solution: Solution) -> np.ndarray:
    """(T, q) on the harsh plant."""
    problem = solution.problem
    plant, start = make_plant("harsh", problem, seed=0), sample_starts(problem, 1, 0)
    x = rollouts(problem, solution.controller(), start, plant, observed=True).x
    return x[:, 0, : len(problem.robot.metadata.coordinates)].numpy()


def period(problem: Problem) -> str:
    """C of a function POLICY that does what the robot does in a control period."""
    name, n = problem.robot.name, len(problem.target)
    return f"""#include "{name}_observer.h"
static {name}_observer observer;
static void POLICY(const float *positions, float *u) {{
    float x[{n}];
    if (observer.variance[0] == 0) {name}_observer_reset(&observer);
    {name}_observer_estimate(&observer, positions, x);
    {name}_policy(x, u);
    {name}_observer_compensate(&observer, u);
    {name}_observer_sent(&observer, u);
}}
"""


def measured(
    name: str, folder: Path, x: np.ndarray, inputs: int, code: str = ""
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Instructions (N,) and inputs (N, m) at the states x (N, n), the bytes of stack, and those of flash.

    code: C of another POLICY than the policy alone, with a memory, and of the rows of x in their order.
    """
    real, called, calls = [f"-D{name.upper()}_REAL=float"], f"#define POLICY {name}_policy\n", 8
    speed: dict[str, list[str]] = {f"{name}.c": [], f"{name}_policy.c": []}
    if code:
        real, called, calls = [*real, f"-D{name.upper()}_DELAY=1"], code, 1
        speed |= {f"{name}.c": ["-O3"], f"{name}_observer.c": ["-O3"]}
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for source, faster in speed.items():
            objects.append(str(Path(scratch) / f"{source}.o"))
            run([COMPILER, *WORDS, *faster, *real, "-c", str(folder / source), "-o", objects[-1]])
        sizes = []
        for policy in (called, "#define POLICY nothing\n"):
            text = f'#include "{name}_policy.h"\n{policy}{stated(x, inputs, calls)}'
            (Path(scratch) / "states.h").write_text(text)
            program = str(Path(scratch) / "program.elf")
            words = [f"-I{scratch}", f"-I{folder}", *real, "-T", str(HERE / "chip.ld")]
            words += ["-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", str(HERE / "measure.c"), *objects]
            run([COMPILER, *WORDS, *words, "-lm", "-o", program])
            sizes.append(sum(map(int, run(["arm-none-eabi-size", program]).splitlines()[1].split()[:2])))
            if policy == called:
                *rows, stack = run([*EMULATOR, program]).splitlines()
    found = np.array([row.split() for row in rows], np.uint64)
    return found[:, 0].astype(int), found[:, 1:].astype(np.uint32).view(np.float32), int(stack), sizes[0] - sizes[1]


def stated(x: np.ndarray, inputs: int, calls: int) -> str:
    """The rest of states.h, with the numbers' exact bits."""
    rows = ",\n".join("{" + ", ".join(float(value).hex() + "f" for value in row) + "}" for row in x.astype(np.float32))
    return (
        f"enum {{ STATES = {x.shape[1]}, INPUTS = {inputs}, ROWS = {len(x)}, CALLS = {calls} }};\n"
        f"static const float states[ROWS][STATES] = {{\n{rows}}};\n"
    )


def run(command: list[str]) -> str:
    """What a program prints. Raises CalledProcessError where it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout


if __name__ == "__main__":
    main()
