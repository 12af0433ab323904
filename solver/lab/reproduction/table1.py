"""Table 1 of the paper: all methods on all robots under RK4 and under the paper's Euler, with the paper's figures.

The JSON file beside the page has its rows. A later call keeps rows without a run, so that several machines can make the
table row by row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

import numpy as np

from solver.lab.reproduction import results_page
from solver.lab.reproduction.experiments import Plan
from solver.lab.reproduction.results_page import NONE, Page, cell, read_rows
from solver.lab.reproduction.runs import Runs, settings_hash
from solver.plants import PlantName, make_plant
from solver.plants.outcome import rollouts, sample_starts
from solver.runs.kinds import load_rollout_policy
from solver.runs.metrics import training_seconds
from solver.runs.shipped import commit, machine
from solver.streams import EVALUATION_SEED

PLANTS: tuple[PlantName, ...] = ("nominal", "euler")  # RK4 as in training, and the paper's integrator
Spread = tuple[float, float | None]  # mean and 1.96 standard deviations over all rollouts; None for one rollout


@dataclass(frozen=True)
class TableRow:
    """Results of all finished runs of a method on a robot and a plant."""

    robot: str
    plant: str
    method: str
    seeds: tuple[int, ...]
    means: tuple[float, ...]  # mean return of each seed
    total: Spread  # return
    state: Spread
    action: Spread
    success: float
    seconds: float | None  # of training without evaluations, mean of the runs with a log
    machine: str  # of the evaluation
    commit: str
    settings: str  # of the training, `settings_hash`

    @property
    def key(self) -> tuple[str, str, str]:
        """Key of a row: robot, plant and method."""
        return self.robot, self.plant, self.method


def known_rows(page: Page) -> dict[tuple[str, str, str], TableRow]:
    """Rows of an earlier call, by key. Raises SolverError for a JSON file with other content."""
    return {row.key: row for row in read_rows(page.out / f"{page.name}.json", TableRow)}


def trained(rows: Mapping[tuple[str, str, str], TableRow]) -> set[tuple[str, str, int]]:
    """Method, robot and seed of all runs in the rows."""
    return {(row.method, row.robot, seed) for row in rows.values() for seed in row.seeds}


def write_table1(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """Write a table of mean returns: RK4, the paper's integrator, and the paper's figures. A CSV file has the rest."""
    plan = page.plan
    page.say(
        f"Mean undiscounted returns of {plan.budget.episodes} rollouts of every seed from the task's starts, with the "
        "success rate if it is not 100 %. Every run is trained under RK4. Compare the paper's figures with Euler only: "
        f"this is the paper's integrator, which adds energy. The best known motion is of trajectory optimisation from "
        f"exactly downward. `{page.name}.csv` has spreads, seeds, rewards, and gaps to that motion."
    )
    rows, now = known_rows(page), {(t.method, t.robot): settings_hash(t.run) for t in plan.trainings}
    for robot in plan.robots:
        for method, plant in product(plan.methods, PLANTS):
            announce(f"evaluating {method.name}, {robot}, {plant}")
            if (method.name, robot) not in now:
                continue  # the method is not for this robot
            key, settings = (robot, plant, method.name), now[method.name, robot]
            measured, before = measure(plan, runs, method.name, robot, plant, settings), rows.get(key)
            if measured and (not before or before.settings != settings or {*before.seeds} <= {*measured.seeds}):
                rows[key] = measured
            if key in rows and rows[key].settings != settings:
                announce(f"{method.name}, {robot}, {plant}: trained with other settings than today's")
    names = [method.name for method in plan.methods if any(method.name == key[2] for key in rows)]
    header = [head for robot in plan.robots for head in (f"{robot}: RK4", "Euler", "paper")]
    table = [[name, *chain.from_iterable(_short(rows, name, robot) for robot in plan.robots)] for name in names]
    page.table(["", *header], [["best known motion", *chain.from_iterable(map(_best, plan.robots))], *table])
    limits = {robot: results_page.LIMITS["nominal"].get(robot, math.nan) for robot in plan.robots}
    columns = ["RK4: return", "success", "gap", "mean return of each seed"]
    columns += [
        f"Euler: {kind}{who}"
        for kind in ("return", "success", "state reward", "action reward")
        for who in ("", ", paper")
    ]
    cells = [
        [robot, name, *_own(rows, name, robot, limits[robot]), *_euler(rows, name, robot)]
        for robot, name in product(plan.robots, names)
        if (name, robot) in now
    ]
    page.data(["robot", "method", *columns], cells)
    content = {"rows": [dataclasses.asdict(rows[key]) for key in sorted(rows)]}
    page.keep(content, ".json")


def measure(plan: Plan, runs: Runs, method: str, robot: str, plant: PlantName, settings: str) -> TableRow | None:
    """Row of a method on a plant: rollouts of all finished seeds from the same starts. None without a run."""
    folders: dict[int, Path] = runs.of(method, robot)
    if not folders:
        return None
    results = []
    for folder in folders.values():
        problem, act, _ = load_rollout_policy(folder, plan.generated)
        starts = sample_starts(problem, plan.budget.episodes, EVALUATION_SEED)
        results.append(rollouts(problem, act, starts, make_plant(plant, problem)))
    total, state, action, success = (
        np.stack([row.double().numpy() for row in column])
        for column in zip(*((r.returns, r.state_reward, r.action_reward, r.success) for r in results), strict=True)
    )
    seconds = [time for time in map(training_seconds, folders.values()) if time > 0.0]
    return TableRow(
        *(robot, plant, method, tuple(folders), tuple(total.mean(1).tolist())),
        *(_spread(total), _spread(state), _spread(action), float(success.mean())),
        *(float(np.mean(seconds)) if seconds else None, machine(), commit(), settings),
    )


def _spread(values: np.ndarray) -> Spread:
    return float(values.mean()), 1.96 * float(values.std(ddof=1)) if values.size > 1 else None


def pair(mean: float, deviation: float | None) -> str:
    """Mean with its spread, as text."""
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"


def _short(rows: Mapping[tuple[str, str, str], TableRow], method: str, robot: str) -> list[str]:
    """Returns of a method under RK4 and under Euler, and the paper's."""
    own = [rows.get((robot, plant, method)) for plant in PLANTS]
    printed = results_page.returns(method, robot)
    measured = [cell(row.total[0], 100 * row.success) if row else NONE for row in own]
    return [*measured, cell(printed[0], printed[2]) if printed else NONE]


def _best(robot: str) -> list[str]:
    """Returns of the best known motion under RK4 and under Euler, and no figure of the paper."""
    limits = (results_page.LIMITS[plant].get(robot) for plant in PLANTS)
    return [*(NONE if limit is None else f"{limit:.1f}" for limit in limits), NONE]


def _own(rows: Mapping[tuple[str, str, str], TableRow], method: str, robot: str, limit: float) -> list[str]:
    """Cells of a method under RK4: return, success, gap, mean return of every seed."""
    row = rows.get((robot, "nominal", method))
    if row is None:
        return [NONE, NONE, NONE, "not trained"]
    gap = limit - row.total[0]
    means = ", ".join(f"{mean:.2f}" for mean in row.means)
    return [pair(*row.total), f"{100 * row.success:.1f} %", f"{gap:.1f}" if math.isfinite(gap) else NONE, means]


def _euler(rows: Mapping[tuple[str, str, str], TableRow], method: str, robot: str) -> list[str]:
    """Cells of a method under Euler: return, success, state and action reward, each followed by the paper's figure."""
    row, printed = rows.get((robot, "euler", method)), results_page.returns(method, robot)
    parts = results_page.rewards(method, robot)
    own, theirs = [NONE] * 4, [NONE] * 4
    if row:
        own = [pair(*row.total), f"{100 * row.success:.1f} %", pair(*row.state), pair(*row.action)]
    if printed:
        theirs[:2] = [pair(*printed[:2]), f"{printed[2]:.0f} %"]
    if parts:
        theirs[2:] = [pair(*part) for part in parts]
    return [cell for both in zip(own, theirs, strict=True) for cell in both]
