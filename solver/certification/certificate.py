"""The certificate of a run: bound, worst case, level set and map, under one specification."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from solver.certification.bound import episodes_for, failure_bound
from solver.certification.experiment import Announce, Experiment, noises
from solver.certification.level_set import LevelSet, Map, arrival_map, level_set
from solver.certification.opponents import Opposed, play_adversaries
from solver.certification.specification import Specification
from solver.certification.worst import Worst, worst_case
from solver.errors import SolverError
from solver.jobs.portions import policy
from solver.runs.kinds import kind_of
from solver.runs.shipped import run_folder
from solver.streams import Purpose, stream
from solver.training.solution import load_solution

MOST_EPISODES = 2_000_000
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bound:
    """What independent rollouts show of the failure probability."""

    episodes: int  # chosen before the first rollout
    failures: int
    confidence: float
    failure_bound: float
    return_mean: float


@dataclass(frozen=True)
class Certificate:
    """All that `solver certify` reports."""

    run: str
    robot: str
    label: str
    seed: int
    specification: Specification
    bound: Bound
    worst: Worst
    opposed: Opposed | None  # for runs with adversaries
    level_set: LevelSet | None
    map: Map

    @property
    def holds(self) -> bool:
        """Whether the bound is at most the one of the specification: no more rollouts failed than it allows."""
        return self.bound.failures <= self.specification.allowed_failures

    def to_json(self) -> dict[str, Any]:
        """The content of `solver certify --json`."""
        worst = self.worst
        return {
            "run": self.run,
            "robot": self.robot,
            "label": self.label,
            "seed": self.seed,
            **vars(self.bound),
            "failure_probability": self.specification.failure_probability,
            "holds": self.holds,
            "worst": worst.found.result() | {"random_return": worst.random.total, "rollouts": worst.rollouts},
            "adversaries": None if self.opposed is None else self.opposed.to_json(),
            "level_set": None if self.level_set is None else self.level_set.to_json(),
            "distribution": self.specification.text,
        }


def prove(experiment: Experiment, seed: int, announce: Announce = lambda _: None) -> Bound:
    """Roll out as many independent samples of the distribution as the specification needs, and count.

    Raises SolverError for a specification that needs more than MOST_EPISODES.
    """
    told = experiment.specification
    episodes = episodes_for(told.failure_probability, told.confidence, told.allowed_failures)
    if episodes > MOST_EPISODES:
        raise SolverError(
            f"failure_probability {told.failure_probability:g} at confidence {told.confidence:.9g} needs {episodes} "
            f"rollouts, and at most {MOST_EPISODES} are made; ask for a larger probability, or for less confidence"
        )
    samples = told.distribution.sample(episodes, stream(seed, 0, Purpose.CERTIFICATE))
    x, theta = told.distribution(experiment.problem, samples)
    found = experiment.outcomes(x, theta, noises(episodes, seed, Purpose.CERTIFICATE), announce)
    failures = int(found.failed.sum())
    bound = failure_bound(episodes, failures, told.confidence)
    return Bound(episodes, failures, told.confidence, bound, float(found.returns.mean()))


def certify(
    run: str | Path,
    specification: Path | None = None,
    seed: int = 0,
    generated: str | None = None,
    announce: Announce = lambda _: None,
    executor: Executor | None = None,
) -> Certificate:
    """The certificate of a run; the arguments are the options of `solver certify`.

    executor: where the rollouts are made, of `solver.jobs.engines.workers`; by default here.
    Raises SolverError for a folder without a run or a checkpoint, and for a specification that cannot be read.
    """
    experiment = Experiment(policy(run, generated), specification, executor)
    trained = kind_of(run_folder(run)).command == "train"
    solution = load_solution(run, generated) if trained else None
    announce("independent rollouts for the bound, and beside them the search for the worst case")
    value = None if solution is None else solution.value

    def oppose(heard: Announce) -> tuple[Worst, Opposed | None]:
        worst = worst_case(run, experiment, seed, heard)
        heard("adversaries")
        return worst, None if solution is None else play_adversaries(experiment, solution, seed)

    with _beside(oppose, announce) as opposition:
        bound = prove(experiment, seed, announce)
        announce("map and level set")
        region = None if value is None else level_set(experiment, value, bound.confidence, seed, announce)
        drawn = arrival_map(experiment, value, seed)
        worst, opposed = opposition.result()
    told = experiment.specification
    robot = experiment.problem.robot.name
    return Certificate(str(run), robot, experiment.label, seed, told, bound, worst, opposed, region, drawn)


@contextmanager
def _beside(call: Callable[[Announce], Result], announce: Announce) -> Iterator[Future[Result]]:
    """Call a function in another thread, which ends with the process. When the block ends by an exception, nobody waits
    for it, and it stops at its next announcement."""
    ended, future = Event(), Future[Result]()

    def heeding(text: str) -> None:
        if ended.is_set():
            raise CancelledError
        announce(text)

    def work() -> None:
        try:
            future.set_result(call(heeding))
        except BaseException as error:  # told to whoever asks for the result
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        yield future
    except BaseException:
        ended.set()
        raise
