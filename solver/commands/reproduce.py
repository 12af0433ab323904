"""`solver reproduce`: the paper's table and figures, from what is trained and what is missing."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.commands import FAILED, MOST_JOBS
from solver.errors import SolverError
from solver.lab.reproduction.experiments import BudgetName, Choice, ExperimentName, Plan, make_plan
from solver.streams import SEEDS

COMMON = ("experiment", "budget", "robots", "seeds", "methods", "jobs", "report_only", "runs", "out")


@dataclass(frozen=True)
class Options:
    """Trains the missing runs, each in its own process, and compares the result with the numbers of the paper. Called
    again after Ctrl-C, it continues the unfinished runs."""

    experiment: Annotated[ExperimentName, Positional]
    """A table or figure of the paper, or one of two tables of our own. `gallery` trains every robot with the default
    settings; `certificates` bounds the failures of every run as `solver certify` does."""
    budget: BudgetName = "small"
    """`small`: pendulum, one seed, our algorithms. `full`: three robots, five seeds, baselines, all admissible sets."""
    robots: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """Robots in place of the budget's."""
    seeds: list[Annotated[int, Range(0, SEEDS - 1)]] = field(default_factory=list)
    """Seeds in place of the budget's."""
    methods: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """Names of rows or curves, such as rFVI "SAC-U UDR"; for the gallery rfvi or cfvi. By default all."""
    baseline_steps: Annotated[int | None, Range(1, 10**9)] = None
    """Actions of the training of a baseline. By default as the algorithm needs."""
    jobs: Annotated[int, Range(1, MOST_JOBS)] = field(default_factory=lambda: os.cpu_count() or 1)
    """Simultaneous trainings on this machine. They share the cores."""
    cluster: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers train, as in `solver sweep`."""
    report_only: bool = False
    """Train nothing, and report what is finished."""
    shipped: bool = False
    """Use the policies of `solver policies` of the same robot, algorithm and seed. Their settings may differ from the
    defaults of this version."""
    runs: Annotated[Path, arg(metavar="DIR")] = Path("runs/reproduce")
    """Parent of the run folders. Finished runs with equal settings are used again."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("docs/results")
    """Folder of the text and the figures."""
    preview: Annotated[float, Range(0.0, 86_400.0)] = 20.0
    """Seconds of a search for a motion to the target of every robot before the trainings, as in `solver train`."""
    unheld_target: bool = False
    """Train for targets that no input within the limits holds."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""

    def command(self) -> str:
        """The words that say what is computed: not where files lie, nor what is trained already, nor how."""
        words = ["solver", "reproduce", self.experiment, "--budget", self.budget]
        for flag in ("robots", "seeds", "methods"):
            if getattr(self, flag):
                words += [f"--{flag}", *map(str, getattr(self, flag))]
        words += [] if self.baseline_steps is None else ["--baseline-steps", str(self.baseline_steps)]
        words += ["--shipped"] if self.shipped else []
        return shlex.join(words)


def run(options: Options) -> int:
    """Train, report, print the paths. The exit code is 1 where a training failed."""
    choice = Choice(
        robots=tuple(options.robots),
        seeds=tuple(options.seeds),
        methods=tuple(options.methods),
        baseline_steps=options.baseline_steps,
        generated=options.generated,
        threads=1 if options.cluster else max(1, (os.cpu_count() or 1) // max(1, options.jobs)),
    )
    return carry_out(options, choice)


def carry_out(options: Options, choice: Choice) -> int:
    """Train and report with a choice from Python; the exit code as `run`."""
    from solver.lab.reproduction.certificates import Certificates
    from solver.lab.reproduction.gallery import Gallery
    from solver.lab.reproduction.report import write_report
    from solver.lab.reproduction.runs import run_plan, shipped_runs

    if options.experiment == "fig-value" and len(options.seeds) > 1:
        raise SolverError(f"fig-value shows one seed; give one instead of --seeds {' '.join(map(str, options.seeds))}")
    require_writable({"--out": options.out / "page.md"}, error=SolverError)
    plan = make_plan(options.experiment, options.budget, choice)
    _require_extras(plan)
    ready = shipped_runs(plan.trainings) if options.shipped else {}
    train = partial(
        run_plan,
        plan,
        options.runs,
        options.jobs,
        _announce,
        not options.report_only,
        cluster=options.cluster,
        ready=ready,
        preview=options.preview,
        unheld_target=options.unheld_target,
    )
    by_row: dict[str, type[Gallery] | type[Certificates]] = {"gallery": Gallery, "certificates": Certificates}
    if plan.experiment in by_row:
        rows = by_row[plan.experiment](plan, options.out, options.command(), _announce)
        runs = train(finished=rows.add)
        paths = rows.write()
    else:
        runs = train()
        paths = write_report(plan, runs, options.out, options.command(), _announce)
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused")
    print(*paths, sep="\n")
    for failure in runs.failures:
        t = failure.training
        print(f"error: {t.method}, {t.robot}, seed {t.seed} {failure.reason}", file=sys.stderr)
    return FAILED if runs.failures else 0


def _require_extras(plan: Plan) -> None:
    """Raise SolverError for a missing package before the trainings begin."""
    needed = {"stable_baselines3": "baselines"} if any(method.is_baseline for method in plan.methods) else {}
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
