"""`solver reproduce`: the paper's table and figures, from what is trained and what is missing."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import FlagCreatePairsOff, Positional

from solver.commands import FAILED
from solver.errors import SolverError
from solver.reproduction.experiments import BudgetName, Choice, Experiment, Plan, make_plan


@dataclass(frozen=True)
class Options:
    """Train what a table or figure of the paper needs and is not there yet, then write it with the paper's figures."""

    experiment: Positional[Experiment]
    """What to reproduce."""
    budget: BudgetName = "small"
    """`small`: pendulum, one seed, our algorithms. `full`: three robots, five seeds, baselines, all admissible sets."""
    robots: list[str] = field(default_factory=list)
    """Robots, instead of the budget's."""
    seeds: list[int] = field(default_factory=list)
    """Seeds, instead of the budget's."""
    methods: list[str] = field(default_factory=list)
    """Some of the rows or curves, by name, such as rFVI "SAC-U UDR"; by default all."""
    baseline_steps: int | None = None
    """Actions that each baseline is trained for, instead of its default."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Trainings at once; the cores are shared among them."""
    report_only: FlagCreatePairsOff[bool] = False
    """Train nothing: report what is finished."""
    runs: Path = Path("runs/reproduce")
    """Parent of the run folders. Finished runs with the settings asked for are reused, whoever trained them."""
    out: Path = Path("docs/results")
    """Folder of the text and the figures."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""

    def command(self) -> str:
        """The words that say what is computed; not where files lie."""
        words = ["solver", "reproduce", self.experiment, "--budget", self.budget]
        for flag in ("robots", "seeds", "methods"):
            if getattr(self, flag):
                words += [f"--{flag}", *map(str, getattr(self, flag))]
        words += [] if self.baseline_steps is None else ["--baseline-steps", str(self.baseline_steps)]
        words += ["--report-only"] if self.report_only else []
        return shlex.join([*words, "--jobs", str(self.jobs)])


def run(options: Options) -> None:
    """Train, report, print the paths; SystemExit after failed trainings."""
    choice = Choice(
        robots=tuple(options.robots),
        seeds=tuple(options.seeds),
        methods=tuple(options.methods),
        baseline_steps=options.baseline_steps,
        generated=options.generated,
        threads=max(1, (os.cpu_count() or 1) // max(1, options.jobs)),
    )
    carry_out(options, choice)


def carry_out(options: Options, choice: Choice) -> None:
    """`run` with a choice that Python made."""
    from solver.reproduction.page import Origin
    from solver.reproduction.report import write_report
    from solver.reproduction.runs import run_plan

    if options.experiment == "fig-value" and len(options.seeds) > 1:
        raise SolverError(f"fig-value shows one seed; give one instead of --seeds {' '.join(map(str, options.seeds))}")
    plan = make_plan(options.experiment, options.budget, choice)
    _require_extras(plan)
    runs = run_plan(plan, options.runs, options.jobs, _announce, train=not options.report_only)
    origin = Origin(options.command(), options.jobs, choice.threads)
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused")
    print(*write_report(plan, runs, options.out, origin, _announce), sep="\n")
    for failure in runs.failures:
        t = failure.training
        print(f"error: {t.method}, {t.robot}, seed {t.seed} failed ({failure.code}): {failure.log}", file=sys.stderr)
    if runs.failures:
        raise SystemExit(FAILED)


def _require_extras(plan: Plan) -> None:
    """SolverError before hours of training for what only the last of them would miss."""
    needed = {"stable_baselines3": "baselines"} if any(method.baseline for method in plan.methods) else {}
    if plan.experiment == "fig-robustness" and "mujoco" in plan.budget.plants:
        needed["mujoco"] = "engines"
    for module, extra in needed.items():
        if importlib.util.find_spec(module) is None:
            raise SolverError(
                f"{plan.experiment} with --budget {plan.budget_name} needs {module}; "
                f"pip install 'robust-value-iteration[{extra}]'"
            )


def _announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
