"""What makes a robot hard for fitted value iteration, measured before a training: docs/results/gallery.md.

    python benchmarks/frontier.py pendulum cartpole triple_cart --generated generated

A row has the number of states, the fastest unstable motion at the target, the number of fast states, the level of the
basin, and the cost of the idle robot from the task's starts as a multiple of that level. Over this range V must be
right to a few per cent of itself, because the policy follows its slope from the starts into the basin.

With `--cost` a row has what an iteration of cFVI costs with the preset `fast`, in products of the networks alone:
docs/concepts/performance.md.
"""

from __future__ import annotations

import argparse

from networks import WEIGHTS, evaluations

from solver.fvi.step import Lookahead
from solver.local.basin import find_basin
from solver.local.linearization import linearization, unstable_directions
from solver.plants.outcome import rollouts, sample_starts, without_input
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.training.presets import make_settings
from solver.training.solution import make_ensemble
from solver.value.family import Basin

STARTS = 64
COSTS = (
    "robot",
    "states n",
    "inputs m",
    "entries of L",
    "weights",
    "a target, MFLOP",
    "a fit of one state, MFLOP",
    "an iteration, GFLOP",
)
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


def cost(name: str, generated: str | None) -> str:
    """One line of the table of costs. Each weight takes four operations for V and its gradient in the state."""
    robot = load_robot(name, "cpu", generated)
    settings = make_settings("fast", robot, "cfvi")
    ensemble, problem = make_ensemble(robot, settings), Problem(robot)
    weights = sum(weight.numel() for member in ensemble.factors for weight in member.weights)
    steps = Lookahead(settings.trace_decay, settings.trace_floor, 1).steps
    target = 4e-6 * weights * evaluations(problem, settings) * steps
    fit = 4e-6 * weights * WEIGHTS * settings.epochs
    sizes = len(problem.target), len(problem.input_limits), len(ensemble.factors[0].rows), weights
    numbers = *sizes, f"{target:.1f}", f"{fit:.1f}", f"{1e-3 * settings.states * (target + fit):.0f}"
    return f"| `{name}` | {' | '.join(map(str, numbers))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--generated")
    parser.add_argument("--cost", action="store_true", help="what an iteration costs, in place of what is hard")
    options = parser.parse_args()
    columns, line = (COSTS, cost) if options.cost else (COLUMNS, row)
    print(f"| {' | '.join(columns)} |\n{len(columns) * '|---'}|")
    for name in options.robots:
        print(line(name, options.generated), flush=True)


if __name__ == "__main__":
    main()
