"""Coarse searches and the exact ones after them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import modelgen
from solver.errors import SolverError
from solver.oracles.guesses import random_motions
from solver.oracles.search import DISTINCT, Searches, coarse_hold, search
from solver.oracles.trajectory import RESOLVED, Guess, NonlinearProgram, Trajectory

STARTS = np.array([[np.pi, 0.0], [np.pi - 0.1, 0.0], [np.pi + 0.2, 0.0]])
Solve = Callable[[NonlinearProgram, np.ndarray, Guess], Trajectory | None]


@pytest.mark.parametrize(
    ("name", "hold", "steps"), [("furuta", 1, 1), ("furuta", 3, 2), ("cart_double_pendulum", 3, 1)]
)  # exactly, two a period
def test_a_coarse_hold_takes_as_few_steps_as_resolve_it_from_most_states(name: str, hold: int, steps: int) -> None:
    """And not from all: the cart's poles at the limits of their rates move 0.088 of a limit otherwise in a step."""
    robot = modelgen.load(name, backend="casadi")
    exact, program = NonlinearProgram(robot), NonlinearProgram(robot, hold=hold)
    assert program.steps == steps < hold * exact.steps
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, (exact.coordinates * 2, 64)) * np.array(robot.state_limits)[:, None]
    u = rng.uniform(-1.0, 1.0, (len(exact.input_limits), 64)) * exact.input_limits[:, None]
    found = np.asarray(program.step(x, u)[0])
    for _ in range(hold):
        x = np.asarray(exact.step(x, u)[0])
    error = np.abs(found - x) / exact.state_limits[:, None]
    assert 1e-6 < np.quantile(error.max(0), 0.85) < RESOLVED  # at other states than it has looked at


def test_periods_that_are_few_are_searched_exactly() -> None:
    robot = modelgen.load("pendulum", backend="casadi")
    assert NonlinearProgram(robot).steps == robot.metadata.task.integration_steps
    assert coarse_hold(robot) == 3  # 625 periods


def pendulum(solve: Solve, monkeypatch: pytest.MonkeyPatch, guesses: int = 3) -> Searches:
    """Searches of a pendulum from STARTS, whose results `solve` makes up."""
    monkeypatch.setattr(NonlinearProgram, "solve", solve)
    return search(modelgen.load("pendulum", backend="casadi"), None, STARTS, guesses, 0, [])


def made_up(program: NonlinearProgram, guess: Guess, reward: float) -> Trajectory:
    return Trajectory(np.zeros((program.periods + 1, 2)), np.zeros((program.periods, 1)), reward, guess.name)


def test_the_best_motions_of_the_coarse_search_are_made_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that differ, from every start; and no guess of the coarse search is tried again."""
    exact: list[tuple[float, str]] = []

    def solve(program: NonlinearProgram, start: np.ndarray, guess: Guess) -> Trajectory | None:
        if not program.coarse:
            exact.append((float(start[0]), guess.name))
        rewards = {"an idle robot": -40.0, "the straight way": -30.0, "pumped with 0.7 of the inputs": -30.0001}
        return made_up(program, guess, rewards.get(guess.name, -50.0))

    found = pendulum(solve, monkeypatch)
    assert exact == [(x, name) for x in STARTS[:, 0] for name in ("the straight way", "an idle robot")]
    assert [motion.reward for motion in found.motions()] == [-30.0] * 3
    assert found.tried == found.solved
    assert min(found.tried) >= 2 + 2 + 1  # two guesses at least, two exact ones, a neighbour's motion


def test_a_good_motion_reaches_every_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one start to its neighbours and, as the best of all, to those that are no neighbours."""

    def solve(program: NonlinearProgram, start: np.ndarray, guess: Guess) -> Trajectory | None:
        good = guess.u.any() or (guess.name == "the straight way" and start[0] == STARTS[2, 0])
        motion = made_up(program, guess, -20.0 if good else -30.0)
        motion.u[:] = 1.0 if good else 0.0
        return motion

    assert [motion.reward for motion in pendulum(solve, monkeypatch, guesses=0).motions()] == [-20.0] * 3


def test_where_no_coarse_motion_leads_on_all_guesses_are_searched_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(program: NonlinearProgram, _: np.ndarray, guess: Guess) -> Trajectory | None:
        return made_up(program, guess, -30.0) if not program.coarse and guess.name == "random motion 1" else None

    with pytest.raises(SolverError, match="none of 4 searches from start 0 found a motion of pendulum"):
        pendulum(solve, monkeypatch, guesses=0).motions()
    found = pendulum(solve, monkeypatch, guesses=6)
    assert [motion.guess for motion in found.motions()] == ["random motion 1"] * 3


def test_a_coarse_motion_at_all_periods_is_the_same_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A motion at constant rate under an input that counts up, also where the holds do not fill the horizon."""
    seen: list[Guess] = []

    def solve(program: NonlinearProgram, _: np.ndarray, guess: Guess) -> Trajectory | None:
        if not program.coarse:
            seen.append(guess)
        times = np.arange(program.periods + 1) / program.rate
        x = np.column_stack([np.pi - times, np.full(len(times), -1.0)])
        u = np.arange(program.periods, dtype=float)[:, None]
        return Trajectory(x.astype(float), u, -30.0, guess.name)

    pendulum(solve, monkeypatch, guesses=0)
    times = np.arange(626) / 125.0
    assert seen[0].x[:625, 0] == pytest.approx(np.pi - times[:625])
    assert seen[0].x[625, 0] == pytest.approx(np.pi - times[624])  # 208 holds of 3 periods end at 624
    assert seen[0].u[:, 0].tolist() == [min(k // 3, 207) for k in range(625)]


def test_motions_from_beside_the_target_turn_to_either_side() -> None:
    program = NonlinearProgram(modelgen.load("acrobot", backend="casadi"), seconds=1.0)
    ends = np.array([guess.x[-1, :2] for guess in random_motions(program, np.array([np.pi, 0.0, 0.0, 0.0]), 40, 0)])
    shoulder, elbow = np.round(ends / (2.0 * np.pi)).astype(int).T
    assert set(shoulder) == {0, 1}  # from hanging: up by either way round
    assert set(elbow) == {-1, 0, 1}


def test_distinct_motions_are_the_best_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = iter([-30.0, -20.0, -20.0 * (1 + DISTINCT / 2), -25.0])

    def solve(program: NonlinearProgram, _: np.ndarray, guess: Guess) -> Trajectory | None:
        return made_up(program, guess, next(rewards, -50.0)) if program.coarse else None

    monkeypatch.setattr(NonlinearProgram, "solve", solve)
    robot = modelgen.load("pendulum", backend="casadi")
    searches = Searches(NonlinearProgram(robot, hold=3), STARTS[:1], 2, 0)
    searches.explore([])
    assert [motion.reward for motion in searches.distinct(0)] == [-20.0, -25.0]
