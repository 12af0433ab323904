"""What an experiment found, as Markdown with figures beside it: our numbers, the paper's, and how ours were made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from solver.plants import PlantName, make_plant
from solver.plants.rollouts import rollouts, sample_starts
from solver.reproduction import paper_results
from solver.reproduction.experiments import MASSES, Plan
from solver.reproduction.figures import ablation_figure, learning_figure, value_figure
from solver.reproduction.page import Origin, Page, head
from solver.reproduction.runs import Runs
from solver.runs.kinds import load_controller
from solver.runs.metrics import read_metrics
from solver.streams import EVALUATION_SEED
from solver.studies.robustness import Robustness, Trial, measure
from solver.studies.robustness_plot import figure as robustness_figure
from solver.studies.statistics import Group

NONE = "–"  # in a cell without a number
#: The plants of table 1, and their headings. The second is the paper's.
PLANTS: dict[PlantName, str] = {
    "nominal": "RK4, as in training",
    "euler": "Explicit Euler, the paper's plant",
}


@dataclass(frozen=True)
class Returns:
    """Rollouts of the finished runs of one method on one robot, a row for each seed."""

    total: NDArray[np.float64]  # (seeds, episodes)
    state: NDArray[np.float64]
    action: NDArray[np.float64]
    success: NDArray[np.float64]
    seconds: tuple[float, ...]  # of training, without evaluations; of the runs that have a log


def write_report(plan: Plan, runs: Runs, out: Path, origin: Origin, announce: Callable[[str], None]) -> list[Path]:
    """Evaluate the finished runs and write text and figures to `out`; returns their paths."""
    page = Page(plan, out)
    head(page, runs, origin)
    WRITERS[plan.experiment](page, runs, announce)
    return page.write()


def evaluate(plan: Plan, runs: Runs, method: str, robot: str, plant: PlantName) -> Returns | None:
    """Roll out every finished seed of a method from the same starts on a plant; None when there is none."""
    folders = runs.of(method, robot)
    if not folders:
        return None
    found = []
    for folder in folders.values():
        problem, act, _ = load_controller(folder, plan.generated)
        starts = sample_starts(problem, plan.budget.episodes, EVALUATION_SEED)
        found.append(rollouts(problem, act, starts, make_plant(plant, problem)))
    total, state, action, success = (
        np.stack([row.double().numpy() for row in column])
        for column in zip(*((r.returns, r.state_reward, r.action_reward, r.success) for r in found), strict=True)
    )
    seconds = map(training_seconds, folders.values())
    return Returns(total, state, action, success, tuple(each for each in seconds if each > 0.0))


def training_seconds(folder: Path) -> float:
    """Sum of what the iterations or segments of a run took, without evaluations."""
    names = ("seconds", "seconds_targets", "seconds_fit")
    return sum(row.get(name, 0.0) for row in read_metrics(folder) for name in names)


def spread(values: NDArray[np.float64]) -> float:
    """1.96 standard deviations of all numbers together; not a number for a single one."""
    return 1.96 * float(values.std(ddof=1)) if values.size > 1 else math.nan


def _pair(mean: float, deviation: float) -> str:
    return f"{mean:.1f} ± {deviation:.1f}" if math.isfinite(deviation) else f"{mean:.1f}"


def _table1(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """A table for each robot and plant; under the paper's plant each of our columns stands beside the paper's."""
    plan = page.plan
    page.say(
        f"Returns are undiscounted sums over the task's horizon, {plan.budget.episodes} rollouts of every seed from "
        "the task's start distribution, nominal robot; ± is 1.96 standard deviations over all rollouts of all seeds. "
        "`gap` is the limit less the mean. Seconds are the training of one seed without evaluations, as the run itself "
        "logged it: their mean, under whatever else the machine did then."
    )
    page.say(
        "Every run is trained under RK4 and evaluated twice: under RK4, and under explicit Euler, which is the paper's "
        "integrator. Euler adds energy, so that returns flatter. The paper's figures are comparable only under Euler, "
        "and its policies were trained under it too."
    )
    for robot in plan.robots:
        page.say(f"## {robot}")
        for plant, heading in PLANTS.items():
            page.say(f"### {robot}: {heading}")
            limit = paper_results.LIMITS[plant].get(robot, math.nan)
            if math.isfinite(limit):
                page.say(
                    f"Limit {limit:.1f}: the best return of direct trajectory optimisation from the exactly downward "
                    "start, which is no policy."
                )
            rows = []
            for method in plan.methods:
                announce(f"evaluating {method.name}, {robot}, {plant}")
                own = _own(evaluate(plan, runs, method.name, robot, plant), limit)
                rows.append([method.name, *(_beside(own, method.name, robot) if plant == "euler" else own)])
            header = ["return", "success", "state reward", "action reward"]
            header = [name for each in header for name in (each, "paper")] if plant == "euler" else header
            page.table(["", *header, "gap", "mean return of each seed", "seconds"], rows)


def _own(found: Returns | None, limit: float) -> list[str]:
    """Our cells of table 1: return, success, state and action reward, gap, mean of each seed, seconds."""
    if found is None:
        return [NONE, NONE, NONE, NONE, NONE, "not trained", NONE]
    total, state, action = (
        _pair(float(value.mean()), spread(value)) for value in (found.total, found.state, found.action)
    )
    gap = limit - float(found.total.mean())
    means = ", ".join(f"{mean:.2f}" for mean in found.total.mean(1))
    seconds = f"{np.mean(found.seconds):.0f}" if found.seconds else NONE
    cells = [total, f"{100 * found.success.mean():.1f} %", state, action]
    return [*cells, f"{gap:.1f}" if math.isfinite(gap) else NONE, means, seconds]


def _beside(own: list[str], method: str, robot: str) -> list[str]:
    """The same cells, the first four of them beside the paper's."""
    printed, parts = paper_results.returns(method, robot), paper_results.rewards(method, robot)
    theirs = [_pair(*printed[:2]) if printed else NONE, f"{printed[2]:.0f} %" if printed else NONE]
    theirs += [_pair(*part) for part in parts] if parts else [NONE, NONE]
    return [cell for pair in zip(own[:4], theirs, strict=True) for cell in pair] + own[4:]


def _final_returns(page: Page, runs: Runs) -> None:
    """The last evaluation of every curve: mean, worst and best seed, success."""
    rows = []
    for robot in page.plan.robots:
        for method in page.plan.methods:
            keys = ("return_mean", "success_rate")
            logs = [read_metrics(folder, keys) for folder in runs.of(method.name, robot).values()]
            last = [rows[-1] for rows in logs if rows]
            printed = paper_results.returns(method.name, robot)
            paper = _pair(*printed[:2]) if printed else NONE
            cells = [NONE] * 3
            if last:
                means = [row["return_mean"] for row in last]
                success = np.mean([row["success_rate"] for row in last])
                cells = [f"{np.mean(means):.1f}", f"{min(means):.1f} … {max(means):.1f}", f"{100 * success:.1f} %"]
            rows.append([f"{robot}, {method.name}", *cells, paper])
    page.table(["", "return after the last iteration", "worst and best seed", "success", "paper's return"], rows)


def _learning(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say("Mean return over the seeds at every evaluation, in a band from the worst to the best seed.")
    page.show(learning_figure(page.plan, runs), "", "Learning curves")
    _final_returns(page, runs)


def _ablation(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say(
        "Curves as in the learning curves, for shares of the admissible set that multiply all four radii of the "
        "preset. Share 0 is cFVI. Ramped up: the radii grow over the iterations that the preset's `adversary_ramp` "
        "names; at once: they are full from the first iteration, as in the paper. Spread states: RTDP's states from "
        "rollouts have a Gaussian added to them (`on_policy_spread`)."
    )
    page.say(
        "In the paper rFVI learns at every share, while RTDP rFVI fails above a share of 0.3 on the cart-pole and "
        "above 0.1 on the Furuta pendulum. Its shares are of larger radii."
    )
    page.show(ablation_figure(page.plan, runs), "", "Learning curves for several admissible sets")
    _final_returns(page, runs)


def _value(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say("Value function and policy over one joint and its rate, other states at the target; lines are rollouts.")
    for robot in page.plan.robots:
        figure = value_figure(page.plan, runs, robot)
        if figure is not None:
            page.show(figure, f"-{robot}", f"{robot}: value function and policy")


def _robustness(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """One figure, JSON file and table for each robot and plant."""
    plan = page.plan
    page.say(
        f"The mass changes in the plant, not in the policy; {plan.budget.episodes} rollouts of every seed at every "
        "mass. Lowest is over the range of masses. The paper shows percentiles of experiments on hardware, in figures "
        "only; where the pendulum's table has a second line, it is from the authors' published checkpoints, rerun."
    )
    for robot in plan.robots:
        labels = {folder: method.name for method in plan.methods for folder in runs.of(method.name, robot).values()}
        for plant in plan.budget.plants if labels else ():
            trial = Trial(plant, (), plan.budget.episodes, EVALUATION_SEED, observer=plant == "harsh")
            announce(f"robustness of {robot} on the {plant} plant")
            found = measure(list(labels), [MASSES[robot]], trial, plan.generated, announce)
            found = replace(found, groups=tuple(_named(group, labels) for group in found.groups))
            page.say(f"## {robot}, {plant} plant{', states from the observer' if found.observer else ''}")
            suffix = f"-{robot}-{plant}"
            page.show(robustness_figure(found), suffix, f"{robot}: rewards and success over the mass")
            page.keep(json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n", f"{suffix}.json")
            _masses(page, found)


def _named(group: Group, labels: dict[Path, str]) -> Group:
    """Under its method's name, its runs without the way to them."""
    names = {str(folder): name for folder, name in labels.items()}
    return replace(group, label=names[group.runs[0]], runs=tuple(Path(run).name for run in group.runs))


def _masses(page: Page, found: Robustness) -> None:
    """Lowest over the range, and mean return with success at masses along it."""
    (axis,) = found.axes
    shown = [k for k in range(len(axis.changes)) if k % 2 == 0 or math.isclose(axis.values[k], axis.nominal)]
    changes = [f"{axis.changes[k]:+.3g} {axis.unit}" if axis.added else f"x{axis.changes[k]:.3g}" for k in shown]
    header = ["mean return (success)", *changes, "lowest mean return", "lowest return of a rollout", "lowest success"]
    rows = []
    for group in found.groups:
        mean, success = (group.statistics[name].value for name in ("return_mean", "success_rate"))
        cells = [f"{mean[k]:.1f} ({100 * success[k]:.0f} %)" for k in shown]
        worst = [group.worst[name].statistic.value for name in ("return_mean", "return_worst", "success_rate")]
        rows.append([group.label, *cells, f"{worst[0]:.1f}", f"{worst[1]:.1f}", f"{100 * worst[2]:.0f} %"])
        printed = paper_results.CHECKPOINTS.get(group.label, {})
        if found.robot == "pendulum" and found.plant == "nominal" and printed:
            near = {round(axis.changes[k], 6): k for k in shown}
            texts = {near[x]: f"{y:.1f}" + ("" if z is None else f" ({z:.0f} %)") for x, (y, z) in printed.items()}
            rows.append([f"authors' {group.label}", *(texts.get(k, NONE) for k in shown), NONE, NONE, NONE])
    page.table(header, rows)


WRITERS = {
    "table1": _table1,
    "fig-value": _value,
    "fig-learning": _learning,
    "fig-robustness": _robustness,
    "fig-ablation": _ablation,
}
