"""Instructions, flash and stack of an exported policy on a Cortex-M4F, counted on an emulated board.

    solver export furuta-cfvi --c firmware --budget 800us@168MHz && modelgen export furuta --c firmware
    python benchmarks/board.py furuta-cfvi firmware

Needs Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. Compiles the folder's C in single
precision with -O2, runs the policy on QEMU's board mps2-an386 with `-icount shift=0`, where an instruction takes 1 ns
of the emulated clock, and prints JSON. Half of the states are uniform in the domain; the others are those of rollouts
of the run's policy. The count is of instructions, not cycles, and the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from solver.fvi.solution import load_solution
from solver.plants.rollouts import rollouts, sample_starts

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
    parser.add_argument("--generated", help="folder of artifacts, where it has moved")
    options = parser.parse_args()
    solution = load_solution(options.run, options.generated)
    problem, name = solution.problem, solution.problem.robot.name
    half = options.states // 2
    generator = torch.Generator().manual_seed(0)
    seen = rollouts(problem, solution.controller(), sample_starts(problem, 20, 0)).x.flatten(0, 1)
    chosen = seen[torch.randint(len(seen), (options.states - half,), generator=generator)]
    x = torch.cat([problem.sample_domain(half, generator), chosen]).numpy()
    counts, u, stack, flash = measured(name, options.folder, x, len(problem.input_limits))
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


def measured(name: str, folder: Path, x: np.ndarray, inputs: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Instructions (N,) and inputs (N, m) at the states x (N, n), the bytes of stack, and those of flash."""
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for source in (f"{name}.c", f"{name}_policy.c"):
            objects.append(str(Path(scratch) / f"{source}.o"))
            run([COMPILER, *WORDS, f"-D{name.upper()}_REAL=float", "-c", str(folder / source), "-o", objects[-1]])
        sizes = []
        for policy in (f"{name}_policy", "nothing"):
            (Path(scratch) / "states.h").write_text(stated(name, policy, x, inputs))
            program = str(Path(scratch) / "program.elf")
            words = [f"-I{scratch}", f"-I{folder}", f"-D{name.upper()}_REAL=float", "-T", str(HERE / "chip.ld")]
            words += ["-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", str(HERE / "measure.c"), *objects]
            run([COMPILER, *WORDS, *words, "-lm", "-o", program])
            sizes.append(sum(map(int, run(["arm-none-eabi-size", program]).splitlines()[1].split()[:2])))
            if policy != "nothing":
                *rows, stack = run([*EMULATOR, program]).splitlines()
    found = np.array([row.split() for row in rows], np.uint64)
    return found[:, 0].astype(int), found[:, 1:].astype(np.uint32).view(np.float32), int(stack), sizes[0] - sizes[1]


def stated(name: str, policy: str, x: np.ndarray, inputs: int) -> str:
    """states.h, with the numbers' exact bits."""
    rows = ",\n".join("{" + ", ".join(float(value).hex() + "f" for value in row) + "}" for row in x.astype(np.float32))
    return (
        f'#include "{name}_policy.h"\n#define POLICY {policy}\n'
        f"enum {{ STATES = {x.shape[1]}, INPUTS = {inputs}, ROWS = {len(x)} }};\n"
        f"static const float states[ROWS][STATES] = {{\n{rows}}};\n"
    )


def run(command: list[str]) -> str:
    """What a program prints. Raises CalledProcessError where it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout


if __name__ == "__main__":
    main()
