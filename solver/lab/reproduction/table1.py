"""Table 1: every method on every robot under RK4 and under the paper's Euler, beside the paper's figures.

The JSON file beside the page has its rows. A later call keeps those whose runs are not there any more, so that the
table can be made on several machines, row by row.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import Plan
from solver.lab.reproduction.page import NONE, Page
from solver.lab.reproduction.rows import read_rows
from solver.lab.reproduction.runs import Runs, settings_hash
from solver.plants import PlantName, make_plant
from solver.plants.rollouts import rollouts, sample_starts
from solver.runs.kinds import load_controller
from solver.runs.metrics import training_seconds
from solver.runs.origin import commit, machine
from solver.streams import EVALUATION_SEED

#: The plants of the table, and their headings. The second is the paper's.
PLANTS: dict[PlantName, str] = {
    "nominal": "RK4, as in training",
    "euler": "Explicit Euler, the paper's plant",
}
Spread = tuple[float, float | None]  # mean and 1.96 standard deviations over all rollouts; None for a single one


@dataclass(frozen=True)
class Row:
    """The finished runs of one method on one robot, under one plant."""

    robot: str
    plant: str
    method: str
    seeds: tuple[int, ...]
    means: tuple[float, ...]  # return of each seed
    total: Spread  # return
    state: Spread
    action: Spread
    success: float
    seconds: float | None  # of training, without evaluations: the mean of the runs that have a log
    machine: str  # of the evaluation
    commit: str
    settings: str  # of the training, `settings_hash`

    @property
    def key(self) -> tuple[str, str, str]:
        """What a page has one row of."""
        return self.robot, self.plant, self.method


def known_rows(page: Page) -> dict[tuple[str, str, str], Row]:
    """The rows of an earlier call. Raises SolverError for a JSON file of another content."""
    return {row.key: row for row in read_rows(page.out / f"{page.name}.json", Row)}


def trained(rows: Mapping[tuple[str, str, str], Row]) -> set[tuple[str, str, int]]:
    """Method, robot and seed of every run in the rows."""
    return {(row.method, row.robot, seed) for row in rows.values() for seed in row.seeds}


def write_table1(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
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
    rows, now = known_rows(page), _settings_now(plan)
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
            table = []
            for method in plan.methods:
                announce(f"evaluating {method.name}, {robot}, {plant}")
                key, settings = (robot, plant, method.name), now[method.name, robot]
                found = measure(plan, runs, method.name, robot, plant, settings)
                before = rows.get(key)
                if found and (not before or before.settings != settings or {*before.seeds} <= {*found.seeds}):
                    rows[key] = found
                own = _own(rows.get(key), limit)
                name = method.name + (", older" if key in rows and rows[key].settings != settings else "")
                table.append([name, *(_beside(own, method.name, robot) if plant == "euler" else own)])
            header = ["return", "success", "state reward", "action reward"]
            header = [name for each in header for name in (each, "paper")] if plant == "euler" else header
            page.table(["", *header, "gap", "mean return of each seed", "seconds"], table)
    if any(row.settings != now.get((row.method, row.robot), row.settings) for row in rows.values()):
        page.say("- **older**: trained with an earlier version of the settings that the method takes now.")
    for where in sorted({row.machine for row in rows.values()}):
        methods = sorted({row.method for row in rows.values() if row.machine == where})
        page.say(f"- Rows made on {where}: {', '.join(methods)}.")
    content = {"rows": [dataclasses.asdict(rows[key]) for key in sorted(rows)]}
    page.keep(json.dumps(content, indent=1, allow_nan=False) + "\n", ".json")


def _settings_now(plan: Plan) -> dict[tuple[str, str], str]:
    """`settings_hash` of every method on every robot."""
    return {(t.method, t.robot): settings_hash(t.run) for t in plan.trainings}


def measure(plan: Plan, runs: Runs, method: str, robot: str, plant: PlantName, settings: str) -> Row | None:
    """Roll out every finished seed of a method from the same starts on a plant; None when there is none."""
    folders: dict[int, Path] = runs.of(method, robot)
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
    seconds = [each for each in map(training_seconds, folders.values()) if each > 0.0]
    return Row(
        *(robot, plant, method, tuple(folders), tuple(total.mean(1).tolist())),
        *(_spread(total), _spread(state), _spread(action), float(success.mean())),
        *(float(np.mean(seconds)) if seconds else None, machine(), commit(), settings),
    )


def _spread(values: np.ndarray) -> Spread:
    return float(values.mean()), 1.96 * float(values.std(ddof=1)) if values.size > 1 else None


def pair(mean: float, deviation: float | None) -> str:
    """A mean with its spread, as text."""
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"


def _own(row: Row | None, limit: float) -> list[str]:
    """Our cells of table 1: return, success, state and action reward, gap, mean of each seed, seconds."""
    if row is None:
        return [NONE, NONE, NONE, NONE, NONE, "not trained", NONE]
    gap = limit - row.total[0]
    means = ", ".join(f"{mean:.2f}" for mean in row.means)
    cells = [pair(*row.total), f"{100 * row.success:.1f} %", pair(*row.state), pair(*row.action)]
    return [*cells, f"{gap:.1f}" if math.isfinite(gap) else NONE, means, f"{row.seconds:.0f}" if row.seconds else NONE]


def _beside(own: list[str], method: str, robot: str) -> list[str]:
    """The same cells, the first four of them beside the paper's."""
    printed, parts = paper_results.returns(method, robot), paper_results.rewards(method, robot)
    theirs = [pair(*printed[:2]) if printed else NONE, f"{printed[2]:.0f} %" if printed else NONE]
    theirs += [pair(*part) for part in parts] if parts else [NONE, NONE]
    return [cell for both in zip(own[:4], theirs, strict=True) for cell in both] + own[4:]
