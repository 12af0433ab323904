"""Coarse and exact searches, and the guesses from which they start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import modelgen
from solver.errors import SolverError
from solver.oracles.search import DISTINCT, Searches, coarse_hold, pumped, random_motions, search
from solver.oracles.trajectory import RESOLVED, FirstMotion, NonlinearProgram, PlannedMotion

STARTS = np.array([[np.pi, 0.0], [np.pi - 0.1, 0.0], [np.pi + 0.2, 0.0]])
Solve = Callable[[NonlinearProgram, np.ndarray, FirstMotion], PlannedMotion | None]


@pytest.mark.parametrize(
    ("name", "hold", "steps"), [("furuta", 1, 1), ("furuta", 3, 2), ("cart_double_pendulum", 3, 1)]
)  # an exact search takes two steps in a period
def test_coarse_hold_has_the_fewest_steps_that_are_accurate_from_most_states(name: str, hold: int, steps: int) -> None:
    """With the poles of the cart at the limits of their rates, one step has an error of 0.088 limits."""
    robot = modelgen.load(name, backend="casadi")
    exact, program = NonlinearProgram(robot), NonlinearProgram(robot, hold=hold)
    assert program.steps == steps < hold * exact.steps
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, (exact.coordinates * 2, 64)) * np.array(robot.state_limits)[:, None]
    u = rng.uniform(-1.0, 1.0, (len(exact.input_limits), 64)) * exact.input_limits[:, None]
    coarse = np.asarray(program.step(x, u)[0])
    for _ in range(hold):
        x = np.asarray(exact.step(x, u)[0])
    error = np.abs(coarse - x) / exact.state_limits[:, None]
    assert 1e-6 < np.quantile(error.max(0), 0.85) < RESOLVED  # at other states than the program used


def test_exact_program_has_the_steps_of_the_task() -> None:
    robot = modelgen.load("pendulum", backend="casadi")
    assert NonlinearProgram(robot).steps == robot.metadata.task.integration_steps
    assert coarse_hold(robot) == 3  # 625 periods


def pendulum(solve: Solve, monkeypatch: pytest.MonkeyPatch, guesses: int = 3) -> Searches:
    """Searches of a pendulum from STARTS with `solve` instead of IPOPT."""
    monkeypatch.setattr(NonlinearProgram, "solve", solve)
    return search(modelgen.load("pendulum", backend="casadi"), None, STARTS, guesses, 0, [])


def made_up(program: NonlinearProgram, guess: FirstMotion, reward: float) -> PlannedMotion:
    """Trajectory of zeros with a given return."""
    return PlannedMotion(np.zeros((program.periods + 1, 2)), np.zeros((program.periods, 1)), reward, guess.name)


def test_exact_searches_start_from_the_best_distinct_coarse_motions(monkeypatch: pytest.MonkeyPatch) -> None:
    """From every start, and from no guess of the coarse search."""
    exact: list[tuple[float, str]] = []

    def solve(program: NonlinearProgram, start: np.ndarray, guess: FirstMotion) -> PlannedMotion | None:
        if not program.coarse:
            exact.append((float(start[0]), guess.name))
        rewards = {"an idle robot": -40.0, "the straight way": -30.0, "pumped with 0.7 of the inputs": -30.0001}
        return made_up(program, guess, rewards.get(guess.name, -50.0))

    searches = pendulum(solve, monkeypatch)
    assert exact == [(x, name) for x in STARTS[:, 0] for name in ("the straight way", "an idle robot")]
    assert [motion.reward for motion in searches.motions()] == [-30.0] * 3
    assert searches.tried == searches.solved
    assert min(searches.tried) >= 2 + 2 + 1  # at least two guesses, two exact searches, the motion of a neighbour


def test_good_motion_from_one_start_becomes_a_guess_for_every_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """For its neighbours and, because it is the best of all, for the other starts."""

    def solve(program: NonlinearProgram, start: np.ndarray, guess: FirstMotion) -> PlannedMotion | None:
        good = guess.u.any() or (guess.name == "the straight way" and start[0] == STARTS[2, 0])
        motion = made_up(program, guess, -20.0 if good else -30.0)
        motion.u[:] = 1.0 if good else 0.0
        return motion

    assert [motion.reward for motion in pendulum(solve, monkeypatch, guesses=0).motions()] == [-20.0] * 3


@pytest.mark.slow
def test_exact_searches_start_from_all_guesses_if_no_coarse_motion_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(program: NonlinearProgram, _: np.ndarray, guess: FirstMotion) -> PlannedMotion | None:
        return made_up(program, guess, -30.0) if not program.coarse and guess.name == "random motion 1" else None

    with pytest.raises(SolverError, match=r"4 searches from start 0.*pendulum"):
        pendulum(solve, monkeypatch, guesses=0).motions()
    searches = pendulum(solve, monkeypatch, guesses=6)
    assert [motion.guess for motion in searches.motions()] == ["random motion 1"] * 3


def test_guess_from_a_coarse_motion_is_the_same_motion_at_all_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A motion at a constant rate with an input that counts up. The holds do not fill the horizon."""
    exact_guesses: list[FirstMotion] = []

    def solve(program: NonlinearProgram, _: np.ndarray, guess: FirstMotion) -> PlannedMotion | None:
        if not program.coarse:
            exact_guesses.append(guess)
        times = np.arange(program.periods + 1) / program.rate
        x = np.column_stack([np.pi - times, np.full(len(times), -1.0)])
        u = np.arange(program.periods, dtype=float)[:, None]
        return PlannedMotion(x.astype(float), u, -30.0, guess.name)

    pendulum(solve, monkeypatch, guesses=0)
    times = np.arange(626) / 125.0
    assert exact_guesses[0].x[:625, 0] == pytest.approx(np.pi - times[:625])
    assert exact_guesses[0].x[625, 0] == pytest.approx(np.pi - times[624])  # 208 holds of 3 periods end at 624
    assert exact_guesses[0].u[:, 0].tolist() == [min(k // 3, 207) for k in range(625)]


def test_random_motions_of_a_joint_near_its_target_turn_to_both_sides() -> None:
    program = NonlinearProgram(modelgen.load("acrobot", backend="casadi"), seconds=1.0)
    ends = np.array([guess.x[-1, :2] for guess in random_motions(program, np.array([np.pi, 0.0, 0.0, 0.0]), 40, 0)])
    shoulder, elbow = np.round(ends / (2.0 * np.pi)).astype(int).T
    assert set(shoulder) == {0, 1}  # from hanging, both ways up
    assert set(elbow) == {-1, 0, 1}


def test_distinct_motions_are_the_best_with_different_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = iter([-30.0, -20.0, -20.0 * (1 + DISTINCT / 2), -25.0])

    def solve(program: NonlinearProgram, _: np.ndarray, guess: FirstMotion) -> PlannedMotion | None:
        return made_up(program, guess, next(rewards, -50.0)) if program.coarse else None

    monkeypatch.setattr(NonlinearProgram, "solve", solve)
    robot = modelgen.load("pendulum", backend="casadi")
    searches = Searches(NonlinearProgram(robot, hold=3), STARTS[:1], 2, 0)
    searches.explore([])
    assert [motion.reward for motion in searches.distinct(0)] == [-20.0, -25.0]


def test_random_motions_are_within_the_limits_and_depend_only_on_the_seed() -> None:
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"), seconds=2.0)
    start = np.array([0.0, np.pi, 0.0, 0.0])
    guesses = random_motions(program, start, 6, seed=3)
    again = random_motions(program, start, 6, seed=3)
    ends = set()
    for guess, same in zip(guesses, again, strict=True):
        assert isinstance(guess, FirstMotion)
        assert np.array_equal(guess.x, same.x)
        assert guess.x.shape == (251, 4)
        assert (np.abs(guess.x[:, program.clipped]) <= program.state_limits[program.clipped]).all()
        ends.add(round(float(guess.x[-1, 1]) / np.pi))
    assert ends == {0, 2}  # both ways up


def test_pumped_motion_gains_energy_until_it_is_at_the_target() -> None:
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"))
    guess = pumped(program, np.array([np.pi, 0.01]), 0.4)
    pumping = np.flatnonzero(guess.u[:, 0])
    assert np.abs(guess.u).max() == pytest.approx(0.4 * 2.5)
    angle, rate = guess.x[: len(pumping)].T
    energy = rate**2 / 6 + 9.81 / 2 * np.cos(angle)
    assert energy[-1] - energy[0] > 0.7 * 9.81  # 70 % of the energy from the lowest to the highest point
    assert np.diff(energy).min() > -0.02  # it loses a little in the period in which the rod reverses
    np.testing.assert_allclose(np.cos(guess.x[len(pumping) + 1 :, 0]), 1.0)
    assert not guess.x[len(pumping) + 1 :, 1].any()
