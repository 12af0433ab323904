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

from modelgen.commandline.options import Argument
from solver.commands import FAILED
from solver.errors import SolverError
from solver.lab.reproduction.experiments import BudgetName, Choice, Experiment, Plan, make_plan


@dataclass(frozen=True)
class Options:
    """Trains what is not there yet, each run in a process of its own, and writes the result beside the paper's numbers.
    Called again after Ctrl-C, it continues the unfinished runs."""

    experiment: Annotated[Experiment, Argument(positional=True)]
    """The table or figure: table1, fig-learning, fig-value, fig-robustness or fig-ablation. Two are not the
    paper's: `gallery` trains every robot with the settings that `solver train` takes by itself, and `certificates`
    bounds the failures of every run as `solver certify` does."""
    budget: BudgetName = "small"
    """`small`: pendulum, one seed, our algorithms. `full`: three robots, five seeds, baselines, all admissible sets."""
    robots: Annotated[list[str], Argument(metavar="NAME")] = field(default_factory=list)
    """Robots in place of the budget's."""
    seeds: list[int] = field(default_factory=list)
    """Seeds in place of the budget's."""
    methods: Annotated[list[str], Argument(metavar="NAME")] = field(default_factory=list)
    """Some of the rows or curves, by name, such as rFVI "SAC-U UDR"; of the gallery rfvi or cfvi. By default all."""
    baseline_steps: int | None = None
    """Actions to train each baseline for. By default the algorithm's own."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Trainings at once on this machine. They share the cores."""
    cluster: Annotated[str | None, Argument(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers train, as in `solver sweep`."""
    report_only: bool = False
    """Train nothing, and report what is finished."""
    shipped: bool = False
    """Take the policies of `solver policies`, where there is one of the robot, algorithm and seed. It may have been
    trained with the settings that were usual before today's."""
    runs: Annotated[Path, Argument(metavar="DIR")] = Path("runs/reproduce")
    """Parent of the run folders. Finished runs with the settings asked for are reused, whoever trained them."""
    out: Annotated[Path, Argument(metavar="DIR")] = Path("docs/results")
    """Folder of the text and the figures."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    trust: Annotated[tuple[str, ...], Argument(metavar="HASH")] = ()
    """Let code of these artifacts run, which were neither built here nor shipped. A message names the hash."""

    def command(self) -> str:
        """The words that say what is computed; not where files lie."""
        words = ["solver", "reproduce", self.experiment, "--budget", self.budget]
        for flag in ("robots", "seeds", "methods"):
            if getattr(self, flag):
                words += [f"--{flag}", *map(str, getattr(self, flag))]
        words += [] if self.baseline_steps is None else ["--baseline-steps", str(self.baseline_steps)]
        words += ["--shipped"] if self.shipped else []
        words += ["--report-only"] if self.report_only else []
        return shlex.join([*words, "--jobs", str(self.jobs)])


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
    """`run`, with a choice that Python code made."""
    from solver.lab.reproduction.certificates import Certificates
    from solver.lab.reproduction.gallery import Gallery
    from solver.lab.reproduction.page import Origin
    from solver.lab.reproduction.report import write_report
    from solver.lab.reproduction.runs import run_plan, shipped_runs

    if options.experiment == "fig-value" and len(options.seeds) > 1:
        raise SolverError(f"fig-value shows one seed; give one instead of --seeds {' '.join(map(str, options.seeds))}")
    plan = make_plan(options.experiment, options.budget, choice)
    _require_extras(plan)
    origin = Origin(options.command(), options.jobs, choice.threads)
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
    )
    by_row: dict[str, type[Gallery] | type[Certificates]] = {"gallery": Gallery, "certificates": Certificates}
    if plan.experiment in by_row:
        rows = by_row[plan.experiment](plan, options.out, origin, _announce)
        runs = train(finished=rows.add)
        paths = rows.write()
    else:
        runs = train()
        paths = write_report(plan, runs, options.out, origin, _announce)
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused")
    print(*paths, sep="\n")
    for failure in runs.failures:
        t = failure.training
        print(f"error: {t.method}, {t.robot}, seed {t.seed} {failure.said}", file=sys.stderr)
    return FAILED if runs.failures else 0


def _require_extras(plan: Plan) -> None:
    """Raise SolverError before hours of training where a package is missing that only the last of them needs."""
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
