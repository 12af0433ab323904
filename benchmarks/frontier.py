"""What makes a robot hard for fitted value iteration, measured before a training: docs/results/gallery.md.

    python benchmarks/frontier.py pendulum cartpole triple_cart --generated generated

A row has the number of states, the fastest unstable motion at the target, the number of fast states, the level of the
basin, and the cost of the idle robot from the task's starts as a multiple of that level. Over this range V must be
right to a few per cent of itself, because the policy follows its slope from the starts into the basin.
"""

from __future__ import annotations

import argparse

from solver.local.basin import find_basin
from solver.local.linearization import linearization, unstable_directions
from solver.plants.outcome import rollouts, sample_starts, without_input
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.value.family import Basin

STARTS = 64
COLUMNS = ("robot", "states", "fastest unstable motion, 1/s", "fast states", "basin, V", "idle cost / basin")


def row(name: str, generated: str | None) -> str:
    """One line of the table."""
    robot = load_robot(name, "cpu", generated)
    problem = Problem(robot)
    basin = find_basin(problem, 1.0)
    growth = max((motion.rate for motion in unstable_directions(linearization(robot))), default=0.0)
    starts = sample_starts(problem, STARTS, 0)
    cost = -float(rollouts(problem, without_input(problem), starts).returns.mean())
    level, share = ("none", "") if not isinstance(basin, Basin) else (f"{basin.level:.2g}", f"{cost / basin.level:.2g}")
    count, fast = len(problem.target), int(problem.fast.sum())
    return f"| `{name}` | {count} | {growth:.1f} | {fast} | {level} | {share} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--generated")
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n{len(COLUMNS) * '|---'}|")
    for name in options.robots:
        print(row(name, options.generated), flush=True)


if __name__ == "__main__":
    main()
