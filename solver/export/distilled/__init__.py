"""Policies for small boards, `solver export --budget`: distil, compare, count on an emulated board, and emit C."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from solver.errors import SolverError
from solver.export.c_export import emit_observer
from solver.export.c_folder import kernels, origin
from solver.export.distilled.board import COMPILER, compiler_version, count_period, count_policy, missing_tools
from solver.export.distilled.cost import (
    CYCLES,
    Cost,
    ObserverCost,
    TimeBudget,
    observer_cost,
    read_budget,
    widest,
    with_tell,
)
from solver.export.distilled.network import CLOSE, LAYERS, SmallNetwork, controller, emit
from solver.export.distilled.regression import Effort, compare, distil, require_small_loss, table
from solver.observer import make_sensing, usual_counts
from solver.observer.observability import estimated_parameters
from solver.streams import require_seed
from solver.training.solution import Solution

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
    observer: bool = False,
    estimate: Sequence[str] = (),
) -> dict[str, str]:
    """C files of the widest network that fits the budget, by file name. report: called with lines of text.

    observer: the observer takes its part of the budget, estimates the states on the harsh plant, and is exported too.
    estimate: parameters that it estimates. max_loss: largest loss of return and of successes on the nominal robot, as a
    share. Raises SolverError for a budget that is invalid or too small, and for a larger loss.
    """
    if not 0.0 <= max_loss < math.inf:
        raise SolverError(f"--max-loss is {max_loss}; give a share of the return, for example {MAX_LOSS}")
    require_seed(seed)
    problem, allowed = solution.problem, read_budget(budget)
    besides = emit_observer(problem, estimate) if observer else {}
    estimated = estimated_parameters(problem, make_sensing(problem, usual_counts(problem)), estimate)
    beside = observer_cost(problem, estimated) if observer else None
    width = widest(problem, allowed, beside.period.instructions if beside else 0)
    network = distil(solution, width, seed, effort, report)
    comparisons = compare(
        problem, solution.controller(), controller(problem, network), observer, estimate, effort.episodes
    )
    facts = _facts(solution, allowed, width, with_tell(problem, width), beside, seed)
    compared = [f"Against the run's own policy, {effort.episodes} rollouts each:", *table(comparisons)]
    for line in (*facts, *compared):
        report(line)
    require_small_loss(comparisons[0], max_loss, budget)
    names = [problem.robot.parameter_names[i] for i in estimated]
    counted = _counted(solution, network, besides, effort.counted, names)
    for line in counted:
        report(line)
    return emit(problem, network, label, [*facts, *counted, "", *compared]) | besides


def _counted(
    solution: Solution, network: SmallNetwork, observer: dict[str, str], count: int, estimate: Sequence[str]
) -> list[str]:
    """Lines with the largest of `count` counts on an emulated board, or with the reason why there is no count.

    Raises SolverError if the board computes other inputs than Torch.
    """
    problem, name = solution.problem, solution.problem.robot.name
    if missing := missing_tools():
        return [f"Not counted on an emulated board: {missing} is not installed."]
    with tempfile.TemporaryDirectory() as scratch:
        for file, content in kernels(problem, bool(observer)).items():
            (Path(scratch) / file).write_bytes(content)
        for file, text in (emit(problem, network, name, []) | observer).items():
            (Path(scratch) / file).write_text(text)
        counts, x = count_policy(solution, Path(scratch), count)
        period = count_period(solution, Path(scratch), count, estimate) if observer else None
    wanted = controller(problem, network)(torch.from_numpy(x))[0]
    if not (np.abs(counts.u - wanted.numpy()) <= CLOSE * problem.input_limits.numpy()).all():
        raise SolverError(
            f"the emulated board does not compute the inputs of this run: {COMPILER} {compiler_version()} breaks the "
            "C. Export without --budget, or with another compiler"
        )
    lines = [f"Counted on an emulated board with {COMPILER} {compiler_version()}, at most"]
    lines.append(f"    {_cost(counts.largest)}: {_policy(solution)}, over {len(x)} states" + (",", ".")[period is None])
    if period is not None:
        lines.append(f"    {_cost(period[0].largest)}: policy and observer, over {len(period[1])} control periods.")
    return lines


def _facts(
    solution: Solution, budget: TimeBudget, width: int, policy: Cost, observer: ObserverCost | None, seed: int
) -> list[str]:
    """Lines of the header on the policy and its cost."""
    robot = solution.problem.robot
    return [
        *origin(robot),
        f"Network of {LAYERS} layers of {width} neurons, weights in single precision; seed {seed}. "
        f"Control rate {robot.metadata.task.control_rate} Hz.",
        "On a Cortex-M4F in single precision, arm-none-eabi-gcc, newlib's libm, a control period needs at most",
        *_costs(policy, observer, budget, _policy(solution)),
        "Angles of more than 30 turns need longer.",
    ]


def _policy(solution: Solution) -> str:
    """What a call of the policy is."""
    return "the policy" if solution.problem.context is None else "the policy, told another context in every call"


def _costs(policy: Cost, observer: ObserverCost | None, budget: TimeBudget, what: str) -> list[str]:
    """Lines with instructions, flash and stack of the policy and the observer, and with their sum."""
    lines, instructions = [f"    {_cost(policy)}: {what}, with -O2,"], policy.instructions
    if observer is not None:
        instructions += observer.period.instructions
        lines += [
            f"    {_cost(observer.period)}: the observer with one period of delay, with -O3",
            f"        ({observer.delay} instructions more for every further period of delay),",
        ]
    used = instructions * CYCLES
    spent = f"{used / budget.hertz * 1e6:.0f} us of the budget {budget.text}"
    return [*lines, f"    {instructions} instructions in all: {used} cycles at {CYCLES} each, {spent}."]


def _cost(cost: Cost) -> str:
    return f"{cost.instructions} instructions, {cost.flash} bytes of flash with libm, {cost.stack} of stack"
