"""Instructions, flash and stack of an exported policy on a Cortex-M4F, counted on an emulated board.

    solver export furuta-cfvi --c firmware --budget 797us@168MHz
    python benchmarks/board.py furuta-cfvi firmware

Prints JSON. Needs Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. `solver export --budget`
counts in the same way (`solver/export/distilled/cost.py`) and writes the largest count into the header; this counts
again, at other numbers of states or for C that was edited. With --observer, for a folder of `solver export --observer`,
a call is a whole control period.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from solver.export.distilled.board import count_period, count_policy
from solver.export.distilled.regression import Effort
from solver.training.solution import load_solution


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", help="run folder or shipped policy, whose states are taken")
    parser.add_argument("folder", type=Path, help="folder with the C of `solver export`")
    parser.add_argument("--states", type=int, default=Effort.counted)
    parser.add_argument("--observer", action="store_true", help="count a whole control period with the observer")
    parser.add_argument("--generated", help="folder of artifacts, where it has moved")
    options = parser.parse_args()
    solution = load_solution(options.run, options.generated)
    counts, x = (count_period if options.observer else count_policy)(solution, options.folder, options.states)
    problem = solution.problem
    shares = (counts.u - problem.input_middle.numpy()) / problem.input_limits.numpy()
    print(
        json.dumps(
            {
                "run": options.run,
                "states": len(x),
                "instructions_largest": counts.largest.instructions,
                "instructions_mean": round(float(counts.instructions.mean())),
                "stack_bytes": counts.stack,
                "flash_bytes": counts.flash,
                "largest_input_share": float(np.abs(shares).max()),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
