"""Proof about the basin of a run: balls for the nominal robot and for wrong ones, what enters them, and its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import in_shell
from solver.errors import SolverError
from solver.jobs import Announce
from solver.jobs.engines import results
from solver.problem.parameters import Relative, changed_parameters
from solver.proof import read, sha256, within, write
from solver.proof.basin_search import Ball, BasinSearch
from solver.proof.held_loop import HeldLoop
from solver.proof.level_set import LevelSet, proven_level
from solver.proof.motion import require_one_input
from solver.proof.reach import Reach, reaching
from solver.runs.folder import CHECKPOINT
from solver.runs.shipped import run_folder
from solver.training.solution import Solution, load_solution

BEYOND = "reach", "level_set"  # parts of a claim about states outside its set


@dataclass(frozen=True)
class BasinProof:
    """Results of `solver prove`."""

    label: str
    robot: str
    state_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    period: float  # s
    input_error: tuple[float, ...]  # (m,) in SI units, assumed
    nominal: Ball | None
    spread: tuple[float, ...]  # (p,) share by which each parameter may differ from its nominal value
    wrong: Ball | None  # for the parameters of the spread
    about: dict[str, Any]  # the loop, as in `solver.proof`
    reason: str | None = None  # why there is no set for the spread, where it is known
    reached: tuple[Reach | None, Reach | None] = (None, None)  # what is proven to enter `nominal`, and `wrong`
    levels: tuple[LevelSet | None, LevelSet | None] = (None, None)  # level sets of V that are

    @property
    def holds(self) -> bool:
        """Whether a set was proven for the nominal robot and for the spread."""
        return self.nominal is not None and self.wrong is not None

    def to_json(self) -> dict[str, Any]:
        """Content of `solver prove --json`."""
        balls = {
            name: None if (ball := getattr(self, name)) is None else ball.to_json() for name in ("nominal", "wrong")
        }
        reached, levels = (
            [None if part is None else part.to_json() for part in parts] for parts in (self.reached, self.levels)
        )
        kept = {name: value for name, value in vars(self).items() if name != "about"}
        return kept | balls | {"reached": reached, "levels": levels, "holds": self.holds}

    def text(self, level_sets: bool) -> str:
        """Lines of `solver prove`. level_sets: whether level sets were searched for."""
        about = [f"{self.label}, {self.robot}, basin around the target"]
        names, claims = ("nominal", within(self.spread, self.parameter_names)), 1 + any(self.spread)
        balls = self.nominal, self.wrong
        for name, ball, reason in list(zip(names, balls, (None, self.reason), strict=True))[:claims]:
            about.append(f"{name:<11} {reason or self._of_ball(ball)}")
        for name, reach in zip(names, self.reached, strict=True):
            if reach is not None:
                about.append(
                    f"{name:<11} from {100 * reach.share:.3g} % of the states within the limits, every trajectory "
                    f"enters that set ({len(reach.proven)} boxes a state, {reach.seconds:.1f} s)"
                )
        for name, level in list(zip(names, self.levels, strict=True))[: claims if level_sets else 0]:
            about.append(f"{name:<11} {self._of_level_set(level)}")
        errors = ", ".join(f"{error:.2g}" for error in self.input_error)
        about.append(
            f"{'assumed':<12}the equations of the model, the exact state at every control period of "
            f"{1e3 * self.period:g} ms, and an input whose error is at most {errors}"
        )
        return "\n".join(about)

    def _of_ball(self, ball: Ball | None) -> str:
        if ball is None:
            return "nothing proven within the time"
        shrinking = 100 * (1 - (1 - ball.rate) ** (1 / self.period))
        widths = self._widths(ball.half_widths)
        return (
            f"proven, {100 * ball.share:.3g} % of the basin's volume, errors up to {widths}\n"
            f"{'':<12}the distance from the target shrinks by {shrinking:.3g} % a second or more, down to "
            f"{ball.core:g} of the set's size ({ball.cells} cells, {ball.seconds:.1f} s)"
        )

    def _of_level_set(self, level: LevelSet | None) -> str:
        if level is None:
            return "no level set is proven within the time"
        return (
            f"from V >= {-level.level:.4g} within the limits, every trajectory enters that set: about "
            f"{level.share:.3g} of the basin's volume, errors up to {self._widths(level.half_widths)} (both sampled; "
            f"{level.cells} cells, {level.seconds:.1f} s)"
        )

    def _widths(self, widths: Array) -> str:
        return ", ".join(f"{name} {width:.3g}" for name, width in zip(self.state_names, widths, strict=True))

    def write(self, path: Path) -> None:
        """Write the proof as data. Raises SolverError where nothing is proven or the file cannot be written."""
        spreads, balls = ((0.0,) * len(self.spread), self.spread), (self.nominal, self.wrong)
        claims = []
        for k, (spread, ball, *more) in enumerate(zip(spreads, balls, self.reached, self.levels, strict=True)):
            if ball is not None and (k == 0 or any(spread)):
                parts = {name: part.claim() for name, part in zip(BEYOND, more, strict=True) if part is not None}
                claims.append(ball.claim(spread) | parts)
        if not claims:
            raise SolverError(f"nothing is proven of {self.label}, so that {path} is not written")
        write(path, self.about | {"claims": claims})


def prove_basin(
    run: str | Path,
    spread: float = 0.05,
    seconds: float = 60.0,
    input_error: float = 1e-5,
    generated: str | None = None,
    reach: float = 0.0,
    level_set: float = 0.0,
    resume: Path | None = None,
    parameters: Sequence[str] = (),
    executor: Executor | None = None,
    announce: Announce = lambda _: None,
    keep: Callable[[BasinProof], None] = lambda _: None,
) -> BasinProof:
    """Proof about the basin of a run, or of a shipped policy by its name.

    spread: share by which `parameters`, all if it is empty, may differ from their nominal values. seconds: processor
    time for one ball. input_error: bound of the error of the computed input, as a share of half the input's range; it
    stands for the rounding of the exported policy. reach: processor time for the states from which every trajectory
    enters a ball (`solver.proof.reach`), none if 0. level_set: processor time for a level set of V from
    which every one does (`solver.proof.level_set`), none if 0. resume: file of an earlier proof, whose balls are kept
    and whose boxes and cells are added to. executor, announce: of `reaching`. keep: receives the proof so far from time
    to time.

    Raises SolverError for a run without a value function or without a basin, where the linearised loop does not
    contract, for an unknown parameter, and for a file of another run, spread or error of the input.
    """
    if resume is not None and not (reach or level_set):
        raise SolverError("only a search outside the basin goes on: give --reach or --level-set with --resume")
    solution, loop = _loop(run, generated, bool(reach or level_set))
    robot, errors = solution.problem.robot, input_error * loop.limit
    changed_parameters(solution.problem, dict.fromkeys(parameters, Relative(1 + spread)))
    shares = [spread * (not parameters or name in parameters) for name in robot.parameter_names]
    about, box = _about(run, loop, errors), np.array(shares) * np.abs(loop.nominal)
    known = solution.label, robot.name, robot.state_names, robot.parameter_names, loop.step, tuple(errors.tolist())
    balls, before, reason = (
        _balls(loop, errors, box, seconds) if resume is None else _stored(resume, about, loop, shares)
    )
    _require_kept(resume, before, (reach, level_set))
    reached: list[Callable[[], Reach | None]] = [lambda: None, lambda: None]
    levels: list[LevelSet | None] = [None, None]
    jobs: list[Future[Any]] = []

    def proof() -> BasinProof:
        parts = (reached[0](), reached[1]()), (levels[0], levels[1])
        return BasinProof(*known, balls[0], tuple(shares), balls[1], about, reason, *parts)

    def kept(k: int, found: Callable[[], Reach]) -> None:
        reached[k] = found
        keep(proof())

    def raised(k: int, found: LevelSet) -> None:
        levels[k] = found
        keep(proof())

    claimed = [
        (k, ball, [k * share for share in shares]) for k, ball in enumerate(balls) if ball and (k == 0 or box.any())
    ]
    for k, ball, wrong in claimed if reach else ():
        way = wrong, float(errors[0]), reach, before[k].get("reach"), generated, executor, announce
        searches, reached[k] = reaching(run, loop, ball.shape, *way, partial(kept, k))
        jobs += searches
    for k, ball, wrong in claimed if level_set else ():
        way = wrong, float(errors[0]), level_set, before[k].get("level_set"), generated, executor, announce
        levels[k] = proven_level(run, solution, loop, ball.shape, *way, partial(raised, k))
    list(results(jobs))
    return proof()


def _loop(run: str | Path, generated: str | None, beyond: bool) -> tuple[Solution, HeldLoop]:
    """Solution and closed loop of a run. Raises SolverError if no ball, or nothing `beyond` it, can be proven."""
    solution = load_solution(run, generated)
    turning = solution.problem.geometry.rotations
    if turning:
        raise SolverError(
            f"the joint {turning[0].name} of {solution.problem.robot.name} is a rotation; only robots of angles and "
            f"lengths can be proven. `solver certify {in_shell(run)}` bounds how often the policy fails, by rollouts"
        )
    loop = HeldLoop(solution)
    if beyond:
        require_one_input(loop)
    return solution, loop


def _require_kept(path: Path | None, claims: Sequence[dict[str, Any]], times: Sequence[float]) -> None:
    """Raises SolverError if claims of a file have a part outside their balls to which no time is given."""
    lost = {name for name, time in zip(BEYOND, times, strict=True) for claim in claims if name in claim and not time}
    if lost:
        what = " and ".join(f"--{name.replace('_', '-')}" for name in sorted(lost))
        raise SolverError(f"{path} has a part of {what}, which would be lost; give {what}, too")


def _balls(
    loop: HeldLoop, errors: Array, spread: Array, seconds: float
) -> tuple[list[Ball | None], list[dict[str, Any]], str | None]:
    """Balls of the nominal robot and of the spread, no claims of a search before, and why there is no second ball."""
    search = BasinSearch(loop, errors)
    nominal = search.largest(np.zeros_like(loop.nominal), seconds)
    try:
        wrong = nominal if nominal is None or not spread.any() else search.largest(spread, seconds)
    except SolverError as error:
        return [nominal, None], [{}, {}], str(error)
    return [nominal, wrong], [{}, {}], None


def _stored(
    path: Path, about: dict[str, Any], loop: HeldLoop, spread: list[float]
) -> tuple[list[Ball | None], list[dict[str, Any]], str | None]:
    """The same of a file. Raises SolverError for one of another run, spread or error of the input."""
    content = read(path, [*about, "claims"])
    other = [name for name in about if content[name] != about[name]]
    claims = {tuple(claim["spread"]): claim for claim in content["claims"]}
    shares = [(0.0,) * len(spread), tuple(spread)]
    if other or shares[1] not in claims or not set(claims) <= set(shares):
        what = ", ".join(other) if other else f"spread, which is {within(max(claims))}"
        raise SolverError(f"{path} is a proof of another {what}; give what it was made with to go on with it")
    both = [claims.get(share) for share in shares]
    try:
        balls = [None if claim is None else Ball.of_claim(claim, loop) for claim in both]
    except (LookupError, TypeError, ValueError) as error:
        raise SolverError(f"the proof {path} is wrong: a claim is not one that `solver prove --out` writes") from error
    return balls, [claim or {} for claim in both], None


def _about(run: str | Path, loop: HeldLoop, input_error: Array) -> dict[str, Any]:
    """What a file says of the loop."""
    arrays = {
        "target": loop.target,
        "cost": loop.cost,
        "trim": loop.trim,
        "middle": loop.middle,
        "limit": loop.limit,
        "bound": loop.bound,
        "parameters": loop.nominal,
        "input_error": input_error,
    }
    return {
        "policy": str(run),
        "robot": loop.robot.name,
        "program": loop.robot.program.digest,
        "checkpoint": sha256(run_folder(run) / CHECKPOINT),
        "period": loop.step,
        "hold": loop.hold,
        "level": loop.level,
    } | {name: array.tolist() for name, array in arrays.items()}
