"""`solver reproduce`: the paper's table and figures, from what is trained and what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.commands import ManyTrainings, say, show_failures
from solver.errors import SolverError
from solver.lab.reproduction.experiments import BudgetName, Choice, Plan, Requested, make_plan, require_extras
from solver.streams import SEEDS

COMMON = ("experiment", "budget", "robots", "seeds", "methods", "jobs", "report_only", "resume", "dry_run", "out")
OF_ALL = ("resume", "dry_run", "unchanged")  # options of `all` only


@dataclass(frozen=True)
class Options(ManyTrainings):
    """Trains the missing runs, each in its own process, and compares the result with the numbers of the paper. Called
    again after Ctrl-C, it continues the unfinished runs."""

    experiment: Annotated[Requested, Positional]
    """A table or figure of the paper, or one of our own. `gallery` trains every robot with the default settings;
    `certificates` bounds the failures of every run as `solver certify` does; `fig-parameters` draws returns over the
    error of every parameter. `all` makes all of them with three seeds, row by row."""
    budget: BudgetName = "small"
    """`small`: pendulum, one seed, our algorithms. `full`: three robots, five seeds, baselines, all admissible sets."""
    robots: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """Robots in place of the budget's."""
    seeds: list[Annotated[int, Range(0, SEEDS - 1)]] = field(default_factory=list)
    """Seeds in place of the budget's."""
    methods: Annotated[list[str], arg(metavar="NAME ...")] = field(default_factory=list)
    """Names of rows or curves, such as rFVI "SAC-U UDR"; for the gallery rfvi or cfvi. With `all` capitals do not
    matter. By default all."""
    baseline_steps: Annotated[int | None, Range(1, 10**9)] = None
    """Actions of the training of a baseline. By default as the algorithm needs."""
    resume: bool = False
    """With `all`: keep the rows whose artifact, settings and code are those of today."""
    dry_run: bool = False
    """With `all`: show the rows that would be made, why, and the estimated hours. Make none."""
    unchanged: Annotated[str, arg(metavar="HASH")] = ""
    """With --resume: declare that the rows with this hash of the code, which `made.json` has, are those of today's code
    too, as after a refactoring whose trainings are bit-identical."""
    report_only: bool = False
    """Train nothing, and report what is finished."""
    shipped: bool = False
    """Use the policies of `solver policies` of the same robot, algorithm and seed. Their settings may differ from the
    defaults of this version."""
    runs: Annotated[Path, arg(metavar="DIR")] = Path("runs/reproduce")
    """Parent of the run folders. Finished runs with equal settings are used again."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("docs/results")
    """Folder of the text and the figures."""

    def command(self) -> str:
        """The words that say what is computed: not where files lie, nor what is trained already, nor how."""
        if self.experiment == "all":  # a page keeps rows of earlier calls, with other --robots and --methods
            return "solver reproduce all"
        words = ["solver", "reproduce", self.experiment, "--budget", self.budget]
        for flag in ("robots", "seeds", "methods"):
            if getattr(self, flag):
                words += [f"--{flag}", *map(str, getattr(self, flag))]
        words += [] if self.baseline_steps is None else ["--baseline-steps", str(self.baseline_steps)]
        words += ["--shipped"] if self.shipped else []
        return shlex.join(words)


def run(options: Options) -> int:
    """Train, report, print the paths. The exit code is 1 where a training failed."""
    if options.experiment == "all":
        return make_all(options, Choice(generated=options.generated, threads=options.threads))
    for flag in OF_ALL:
        if getattr(options, flag):
            raise SolverError(f"--{flag.replace('_', '-')} is an option of `solver reproduce all`; leave it out")
    choice = Choice(
        robots=tuple(options.robots),
        seeds=tuple(options.seeds),
        methods=tuple(options.methods),
        baseline_steps=options.baseline_steps,
        generated=options.generated,
        threads=options.threads,
    )
    return carry_out(options, choice)


def make_all(options: Options, choice: Choice, plans: Sequence[Plan] | None = None) -> int:
    """Make all results, or list them; the exit code as `run`. plans: those of the results, for tests."""
    from solver.lab.reproduction.everything import Everything, code_hash, failures
    from solver.lab.reproduction.runs import run_plan

    given = {"--budget": options.budget != "small", "--seeds": options.seeds, "--shipped": options.shipped}
    given |= {"--baseline-steps": options.baseline_steps, "--report-only": options.report_only}
    if wrong := [flag for flag, value in given.items() if value]:
        raise SolverError(f"`solver reproduce all` has its own budgets and seeds; leave out {' '.join(wrong)}")
    if options.unchanged and not options.resume:
        raise SolverError("--unchanged says which rows --resume keeps; give both, or all results are made anew")
    require_writable({"--out": options.out / "made.json"}, error=SolverError)
    every = Everything(options.out, choice, options.robots, options.methods, plans)
    if options.unchanged:
        print(f"{every.declare_unchanged(options.unchanged, options.runs)} rows have the code of today")
    if options.dry_run:
        print(*every.lines(options.runs, not options.resume), sep="\n")
        return 0
    for plan in every.plans:
        require_extras(plan)
    train = partial(run_plan, parent=options.runs / code_hash(), **options.ways)
    made = every.make(train, options.command(), say, not options.resume)
    print(f"{sum(runs.trained for runs in made)} trained    {every.file}")
    return show_failures(failures(made))


def carry_out(options: Options, choice: Choice) -> int:
    """Train and report with a choice from Python; the exit code as `run`."""
    from solver.lab.reproduction.report import reproduce
    from solver.lab.reproduction.runs import run_plan, shipped_runs

    if options.experiment == "fig-value" and len(options.seeds) > 1:
        raise SolverError(f"fig-value shows one seed; give one instead of --seeds {' '.join(map(str, options.seeds))}")
    require_writable({"--out": options.out / "page.md"}, error=SolverError)
    assert options.experiment != "all"
    plan = make_plan(options.experiment, options.budget, choice)
    require_extras(plan)
    ready = shipped_runs(plan.trainings) if options.shipped else {}
    train = partial(run_plan, parent=options.runs, train=not options.report_only, ready=ready, **options.ways)
    runs, paths = reproduce(plan, train, options.out, options.command(), say)
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused")
    print(*paths, sep="\n")
    return show_failures(runs.failures)
