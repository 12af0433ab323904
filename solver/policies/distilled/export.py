"""`solver export --budget`: distil, compare, and write the C source."""

from __future__ import annotations

import math
from collections.abc import Callable

from solver.errors import SolverError
from solver.fvi.solution import Solution
from solver.policies.distilled.c_source import emit
from solver.policies.distilled.comparison import EPISODES, compare, require_small_loss, table
from solver.policies.distilled.cost import CYCLES, Budget, Cost, cost, read_budget, widest
from solver.policies.distilled.network import LAYERS, controller
from solver.policies.distilled.training import Effort, distil
from solver.streams import require_seed

MAX_LOSS = 0.02
USUAL = Effort()


def export(
    solution: Solution,
    label: str,
    budget: str,
    max_loss: float = MAX_LOSS,
    seed: int = 0,
    effort: Effort = USUAL,
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """The C files of the widest network that fits the budget, by file name; `report` gets lines of text.

    Raises SolverError for a budget that cannot be read or that no network fits, and where the distilled policy loses
    more than max_loss, a share of return and successes on the nominal robot.
    """
    if not 0.0 <= max_loss < math.inf:
        raise SolverError(f"--max-loss is {max_loss}; give a share of the return, for example {MAX_LOSS}")
    require_seed(seed)
    problem, allowed = solution.problem, read_budget(budget)
    width = widest(problem, allowed)
    network = distil(solution, width, seed, effort, report)
    comparisons = compare(problem, solution.controller(), controller(problem, network))
    facts = _facts(solution, allowed, width, cost(problem, width), seed)
    compared = [f"Against the run's own policy, {EPISODES} rollouts each:", *table(comparisons)]
    for line in (*facts, *compared):
        report(line)
    require_small_loss(comparisons[0], max_loss, budget)
    return emit(problem, network, label, [*facts, "", *compared])


def _facts(solution: Solution, budget: Budget, width: int, needed: Cost, seed: int) -> list[str]:
    """What the header states of the policy and of its cost."""
    robot, used = solution.problem.robot, needed.instructions * CYCLES
    return [
        f"Made from artifact {robot.hash}",
        f"of model {robot.model_hash}; seed {seed}.",
        f"Network of {LAYERS} layers of {width} neurons, weights in single precision. "
        f"Control rate {robot.metadata.task.control_rate} Hz.",
        "On a Cortex-M4F in single precision, arm-none-eabi-gcc -O2, newlib's libm, a call takes at most",
        f"    {needed.instructions} instructions ({used} cycles at {CYCLES} each: "
        f"{used / budget.hertz * 1e6:.0f} us of the budget {budget.text}),",
        f"    {needed.flash} bytes of flash, libm included, and {needed.stack} bytes of stack.",
        "Angles of more than 30 turns take longer. An observer is not counted: benchmarks/board.py --observer does.",
    ]
