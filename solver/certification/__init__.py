"""Certificate of a run under one specification, with its report: lines of text, and one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from modelgen.style import colour, document, figure, table
from solver.certification.counterexample import motion, replay
from solver.certification.experiment import Announce, Experiment, episodes_for, failure_bound, noises
from solver.certification.specification import Specification
from solver.certification.worst import (
    LevelSet,
    Map,
    Opposed,
    WorstCase,
    arrival_map,
    level_set,
    play_adversaries,
    worst_case,
)
from solver.errors import SolverError
from solver.jobs.engines import policy_reference
from solver.plants.outcome import decimals
from solver.problem import Problem
from solver.runs.kinds import kind_of, warn_unfinished
from solver.runs.shipped import run_folder
from solver.streams import Purpose, require_seed, stream
from solver.training.solution import load_solution

MOST_EPISODES = 2_000_000  # rollouts of one certificate
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bound:
    """Upper bound of the failure probability from independent rollouts."""

    episodes: int  # number of rollouts, chosen before the first one
    failures: int
    confidence: float
    failure_bound: float
    return_mean: float


@dataclass(frozen=True)
class Certificate:
    """Results of `solver certify`."""

    run: str
    robot: str
    label: str
    seed: int
    specification: Specification
    bound: Bound
    worst: WorstCase
    opposed: Opposed | None  # for runs with adversaries
    level_set: LevelSet | None
    map: Map

    def __repr__(self) -> str:
        state = "holds" if self.holds else "does not hold"
        failures = f"{self.bound.failures} of {self.bound.episodes} rollouts failed"
        return f"<certificate of {self.label}: {state}, {failures}, worst return {self.worst.worst.total:.2f}>"

    @property
    def holds(self) -> bool:
        """Whether the bound is at most the one of the specification, that is, at most its allowed failures occurred."""
        return self.bound.failures <= self.specification.allowed_failures

    def to_json(self) -> dict[str, Any]:
        """Content of `solver certify --json`."""
        worst = self.worst
        return {
            "run": self.run,
            "robot": self.robot,
            "label": self.label,
            "seed": self.seed,
            **vars(self.bound),
            "failure_probability": self.specification.failure_probability,
            "holds": self.holds,
            "worst": worst.worst.result() | {"random_return": worst.random.total, "rollouts": worst.rollouts},
            "adversaries": None if self.opposed is None else asdict(self.opposed),
            "level_set": None if self.level_set is None else asdict(self.level_set),
            "distribution": self.specification.text,
        }


def prove(experiment: Experiment, seed: int, announce: Announce = lambda _: None) -> Bound:
    """Bound from as many independent rollouts over the distribution as the specification needs.

    Raises SolverError if it needs more than MOST_EPISODES.
    """
    spec = experiment.specification
    episodes = episodes_for(spec.failure_probability, spec.confidence, spec.allowed_failures)
    if episodes > MOST_EPISODES:
        raise SolverError(
            f"failure_probability {spec.failure_probability:g} at confidence {spec.confidence:.9g} needs {episodes} "
            f"rollouts, but at most {MOST_EPISODES} are possible; increase failure_probability, or reduce confidence"
        )
    samples = spec.distribution.sample(episodes, stream(seed, 0, Purpose.CERTIFICATE))
    x, theta = spec.distribution(experiment.problem, samples)
    outcomes = experiment.outcomes(x, theta, noises(episodes, seed, Purpose.CERTIFICATE), announce)
    failures = int(outcomes.failed.sum())
    bound = failure_bound(episodes, failures, spec.confidence)
    return Bound(episodes, failures, spec.confidence, bound, float(outcomes.returns.mean()))


def certify(
    run: str | Path,
    specification: Path | None = None,
    seed: int = 0,
    generated: str | None = None,
    announce: Announce = lambda _: None,
    executor: Executor | None = None,
) -> Certificate:
    """Certificate of a run: a run folder, or the name of a shipped policy.

    specification: TOML file, see docs/how-to/certify.md; without it, the task's starts and the nominal parameters.
    generated: folder of artifacts. announce: receives lines on the progress.
    executor: runs the rollouts, see `solver.jobs.engines.workers`; by default this process.

    Raises SolverError for a folder without a run or a checkpoint, an invalid seed, and a specification that cannot
    be read.
    """
    require_seed(seed)
    warn_unfinished(run)
    experiment = Experiment(policy_reference(run, generated), specification, executor)
    trained = kind_of(run_folder(run)).command == "train"
    solution = load_solution(run, generated, contexts=True) if trained else None
    announce("independent rollouts for the bound, and at the same time the search for the worst case")
    value = None if solution is None else solution.value

    def oppose(report: Announce) -> tuple[WorstCase, Opposed | None]:
        worst = worst_case(run, experiment, seed, report)
        report("adversaries")
        return worst, None if solution is None else play_adversaries(experiment, solution, seed)

    with _in_thread(oppose, announce) as opposition:
        bound = prove(experiment, seed, announce)
        announce("map and level set")
        region = None if value is None else level_set(experiment, value, bound.confidence, seed, announce)
        drawn = arrival_map(experiment, value, seed)
        worst, opposed = opposition.result()
    spec, robot = experiment.specification, experiment.problem.robot.name
    return Certificate(str(run), robot, experiment.label, seed, spec, bound, worst, opposed, region, drawn)


@contextmanager
def _in_thread(call: Callable[[Announce], Result], announce: Announce) -> Iterator[Future[Result]]:
    """Context in which a function runs in a daemon thread. If an exception ends the block, the function stops at its
    next announcement. The block waits for that, except after Ctrl-C.
    """
    ended, future = Event(), Future[Result]()

    def announce_unless_ended(text: str) -> None:
        if ended.is_set():
            raise CancelledError
        announce(text)

    def work() -> None:
        try:
            future.set_result(call(announce_unless_ended))
        except BaseException as error:  # the caller gets it with the result
            future.set_exception(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield future
    except BaseException as error:
        ended.set()
        if isinstance(error, Exception):
            thread.join()  # Python aborts at exit if a thread is in compiled code
        raise


COLOURS = ListedColormap([colour("policy-2"), colour("policy-1")])  # failed, arrived


def html(certificate: Certificate, generated: str | None = None) -> str:
    """HTML page with summary, text of the specification, map, and motion of the worst case."""
    problem, result = replay(certificate.worst.worst, generated)
    level = None if certificate.level_set is None else certificate.level_set.level
    body = [
        table((escape(name), escape(text)) for name, text in summary(certificate)),
        f"<h2>Specification</h2>\n<pre>{escape(certificate.specification.text)}</pre>",
        "<h2>Starts from which the robot arrives</h2>\n<p>Other states start at the target; parameters are nominal. "
        "The map is an illustration and not a bound.</p>",
        figure(map_figure(problem, certificate.map, level), "map of arrivals"),
        "<h2>The worst case</h2>",
        figure(motion(certificate.worst.worst, problem, result), "states and inputs over time"),
    ]
    return document(f"Certificate of {certificate.label}", body)


def map_figure(problem: Problem, drawn: Map, level: float | None) -> Figure:
    """Map of starts that fail and starts that arrive, with the boundary of {V >= level} and the target."""
    drawing = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes = drawing.subplots()
    axes.pcolormesh(*drawn.axes, drawn.arrived.astype(float), cmap=COLOURS, vmin=0.0, vmax=1.0, rasterized=True)
    lines = f"blue: arrives ({100 * drawn.arrived.mean():.0f} %), orange: fails"
    if level is not None and drawn.value is not None and drawn.value.min() < level <= drawn.value.max():
        axes.contour(*drawn.axes, drawn.value, [level], colors=colour("ink"), linewidths=1.2)
        lines += f", line: V = {level:.3g}"
    states = [problem.robot.metadata.states[index] for index in drawn.states]
    axes.plot(*(float(problem.target[index]) for index in drawn.states), "+", color=colour("ink"))
    axes.set(title=lines, xlabel=f"{states[0].name} [{states[0].unit}]", ylabel=f"{states[1].name} [{states[1].unit}]")
    return drawing


def summary(certificate: Certificate) -> list[tuple[str, str]]:
    """Rows of a name and a text, for the terminal and for the page."""
    bound, spec, worst = certificate.bound, certificate.specification, certificate.worst
    digits = decimals(bound.return_mean)
    verdict = "holds" if certificate.holds else "is missed"
    rows = [
        (
            "run",
            certificate.run if certificate.run == certificate.label else f"{certificate.run} ({certificate.label})",
        ),
        (
            "failures",
            f"{bound.failures} of {bound.episodes} independent rollouts, mean return {bound.return_mean:.{digits}f}",
        ),
        (
            "bound",
            f"failure probability at most {100 * bound.failure_bound:.3g} % at confidence {bound.confidence:.9g}, for "
            "the distribution of the specification",
        ),
        ("required", f"at most {100 * spec.failure_probability:.3g} %: {verdict}"),
        (
            "worst case",
            f"return {worst.worst.total:.{digits}f} ({worst.worst.judgement}) in {worst.rollouts} rollouts; worst of "
            f"equally many random rollouts: {worst.random.total:.{digits}f}",
        ),
        ("from", _listed(worst.worst.start)),
        ("at", _listed(worst.worst.parameters)),
    ]
    opposed = certificate.opposed
    if opposed is not None:
        rows.append(
            (
                "adversaries",
                f"of the run ({', '.join(opposed.adversaries)}), on the nominal robot: {opposed.failures} of "
                f"{opposed.episodes} rollouts failed, worst return {opposed.return_worst:.{digits}f}. This is the "
                "game of the training and no test of the robot: all act together, at their full radii, in every "
                "control period and in the worst direction, as no real disturbance does. It is no part of the bound",
            )
        )
    region = certificate.level_set
    if region is not None:
        rows.append(
            (
                "level set",
                f"V >= {region.level:.4g}, {100 * region.share:.1f} % of the domain: {region.failures} of "
                f"{region.episodes} uniform starts in it failed, failure probability at most "
                f"{100 * region.failure_bound:.3g} % with the same confidence and parameters",
            )
        )
    return rows


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.5g}" for name, value in values.items())
