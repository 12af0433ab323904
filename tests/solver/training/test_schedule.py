"""The positions that a training takes for evaluations of a given outcome, without a training."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.fvi.algorithm import Iteration
from solver.fvi.step import Step
from solver.problem.robots import load_robot
from solver.training.schedule import Convergence, Schedule
from solver.training.selection import Polish
from solver.training.settings import Settings, make_settings

#: The steps become short at iteration 6 of 8.
STEPS = (2, 2, 2, 1)
EIGHT = Settings(iterations=8, step_periods=STEPS, evaluate_every=1, convergence=0.01)
Look = tuple[float, float, float]  # success rate, mean return, mismatch of V


class Training:
    """A schedule with its observers, and a selection that always keeps the same share of successes."""

    def __init__(self, settings: Settings, kept: float) -> None:
        best = SimpleNamespace(best=SimpleNamespace(score=SimpleNamespace(successes=kept)), restore_best=lambda: None)
        self.schedule = Schedule(settings)
        self.convergence = Convergence(self.schedule, settings.convergence)
        self.polish = Polish(self.schedule, cast(Any, best))

    def observe(self, step: Step, row: dict[str, float]) -> None:
        for observer in (self.convergence, self.polish):
            observer.observe(cast(Iteration, SimpleNamespace(step=step)), row)

    def state(self) -> dict[str, Any]:
        return self.schedule.state() | self.convergence.state() | self.polish.state()

    def restore(self, state: dict[str, Any]) -> None:
        for part in (self.schedule, self.convergence, self.polish):
            part.restore(state)


def followed(
    settings: Settings, looks: list[Look], kept: float = 0.0, stored_at: int = -1, best: int = 10**9
) -> list[dict[str, float]]:
    """What was done in every iteration; the last look stays. stored_at: stored and restored after this iteration. best:
    number of the iteration whose V stays the best."""
    training, number = Training(settings, kept), count()
    rows: list[dict[str, float]] = []
    steps = iter(training.schedule)
    while True:
        polishing = training.schedule.polishing
        step = next(steps, None)
        if step is None:
            return rows
        rows.append(
            {
                "done": step.number,
                "step_periods": step.lookahead.step_periods,
                "polishing": polishing,
                "rate": step.learning_rates[0],
                "states": step.states,
            }
        )
        row: dict[str, float] = {}
        if training.schedule.due:
            success, returned, mismatch = looks[min(next(number), len(looks) - 1)]
            row = {"success_rate": success, "return_mean": returned, "value_mismatch": mismatch}
            row["kept"] = min(best, training.schedule.number)
        training.observe(step, row)
        if step.number == stored_at:
            state = json.loads(json.dumps(training.state()))
            training = Training(settings, kept)
            training.restore(state)
            steps = iter(training.schedule)


@pytest.mark.parametrize(
    ("returns", "success", "done"),
    [
        ([-20.0, -10.0, -9.95, -9.91, -9.9, -9.9], 1.0, [0, 1, 2, 3, 6]),  # agrees on the fourth look
        ([-9.9], 0.97, list(range(12))),  # and waits for success as long as it may
    ],
)
def test_a_converged_training_goes_on_to_its_next_phase(returns: list[float], success: float, done: list[int]) -> None:
    rows = followed(EIGHT, [(success, each, 0.0) for each in returns])
    assert [row["done"] for row in rows] == done


@pytest.mark.parametrize(
    ("successes", "returns", "done"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.5, 1.0], [-9.9] * 6, [*range(8), 9]),  # solved while it waits, then converged
        ([0.0], [-9.9], [*range(12)]),  # never solved: half as many iterations again
        ([1.0] * 12, [-9.0, -10.0] * 6, [*range(12)]),  # solved, and never converged
    ],
)
@pytest.mark.parametrize("stored_at", [-1, 6])
def test_a_training_that_has_not_converged_waits_before_the_last_step_length(
    successes: list[float], returns: list[float], done: list[int], stored_at: int
) -> None:
    rows = followed(EIGHT, [(*each, 0.0) for each in zip(successes, returns, strict=True)], stored_at=stored_at)
    assert [row["done"] for row in rows] == done
    late = 8 if done[-1] == 9 else 10
    assert [row["step_periods"] for row in rows] == [2.0] * late + [1.0] * (len(rows) - late)


def test_adversaries_grow_step_by_step_after_a_wait() -> None:
    """A training that converges when they begin to grow does not leave the growth out."""
    schedule = Schedule(make_settings("fast", load_robot("pendulum", "cpu", None), iterations=100))
    assert schedule.refinement == 70
    for position, phase in ((69, 70), (70, 70), (80, 80)):
        schedule.position = position
        assert schedule.next_phase() == phase
    schedule.position = 85
    assert schedule.next_phase() > 85


@pytest.mark.parametrize(
    ("mismatches", "successes", "begin"),
    [
        ([0.02, 0.02], [1.0], 10),  # V is right in the first evaluation, and with the short steps from iteration 10 on
        ([0.3, 0.02], [1.0], 15),  # with long steps, then with short ones
        ([0.02, 0.3, 0.3, 0.02], [1.0], 20),
        ([0.02], [0.9, 0.9, 1.0], 15),
        ([0.3], [1.0], 30),  # the fourth to the sixth return agree
    ],
)
def test_the_adversaries_begin_when_v_is_worth_what_its_policy_is_paid(
    mismatches: list[float], successes: list[float], begin: int
) -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), iterations=100)
    returns = [-14.0, -13.0, -12.0, *4 * [-11.0]]
    held = [values + (8 - len(values)) * values[-1:] for values in (successes, returns, mismatches)]
    rows = followed(settings, list(zip(*held, strict=True)))
    assert sum(row["done"] < 70 for row in rows) == begin
    assert [row["done"] for row in rows[begin : begin + 3]] == [70, 72, 74]
    nominal = followed(replace(settings, adversaries={}), list(zip(*held, strict=True)))
    assert [row["done"] for row in nominal[:20]] == [*range(20)]  # cFVI compares three evaluations


def test_a_settled_training_follows_the_ramp_in_half_as_many_steps_until_it_fails() -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), iterations=100)
    settles = [row["done"] for row in followed(settings, [(1.0, -9.9, 0.0)])]
    assert settles == [*range(5), *range(10, 15), *range(70, 86, 2), 90, 92, 94]
    falls = [(1.0, -9.9 - fall, 0.0) for fall in (0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]
    assert [row["done"] for row in followed(settings, falls)][10:] == [*range(70, 100, 2)]
    for best, last in ((76, 88), (86, 88), (90, 94)):  # the end: a V of the full adversaries that is not the best
        assert [row["done"] for row in followed(settings, falls, best=best)][-1] == last
    fails = [(1.0, -9.9, 0.0)] * 2 + [(0.9, -9.9, 0.0)]  # in the evaluation at position 76
    assert [row["done"] for row in followed(settings, fails)][10:] == [*range(70, 76, 2), *range(76, 100)]


@pytest.mark.parametrize(("kept", "mismatch", "polished"), [(1.0, 0.1, 6), (0.9, 0.1, 0), (1.0, 0.01, 0)])
def test_a_rough_v_of_a_solved_task_is_polished_at_the_end(kept: float, mismatch: float, polished: int) -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), algorithm="cfvi", evaluate_every=40)
    rows = followed(settings, [(1.0, -9.9, mismatch)], kept)
    assert [row["polishing"] for row in rows] == [False] * settings.iterations + [True] * polished
    if polished:
        assert rows[-1]["rate"] == pytest.approx(1.5 * settings.learning_rate)
        assert rows[-1]["states"] == 6 * settings.states


@pytest.mark.slow
@given(
    st.sampled_from(["cfvi", "rfvi"]),
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-50, -1), st.floats(0, 1)), min_size=1, max_size=40),
    st.sampled_from([0.0, 1.0]),
    st.integers(1, 12),
    st.integers(-1, 60),
)
def test_every_training_ends_and_a_restored_one_alike(
    algorithm: str, looks: list[tuple[float, float, float]], kept: float, every: int, stored_at: int
) -> None:
    robot = load_robot("pendulum", "cpu", None)
    settings = make_settings("fast", robot, algorithm=algorithm, iterations=40, evaluate_every=every)
    rows = followed(settings, looks, kept)
    assert len(rows) <= 40 + 0.5 * 40 + 6
    done = [row["done"] for row in rows]
    assert done == sorted(set(done))
    assert followed(settings, looks, kept, stored_at) == rows


def test_the_learning_rate_falls_on_a_half_cosine_and_the_authors_stays() -> None:
    rates = [row["rate"] for row in followed(Settings(iterations=9, learning_rate=3e-3), [(0.0, -1.0, 0.0)])]
    assert rates[0] == pytest.approx(3e-3)
    assert rates[4] == pytest.approx((3e-3 + 1e-5) / 2.0)
    assert rates[-1] == pytest.approx(1e-5)
    constant = Settings(iterations=9, learning_rate=3e-3, authors=True)
    assert {row["rate"] for row in followed(constant, [(0.0, -1.0, 0.0)])} == {3e-3}


def test_the_rates_of_a_polish_fall_to_the_end_in_twice_the_epochs() -> None:
    schedule = Schedule(Settings(epochs=3, learning_rate=2e-3), polished=1)
    schedule.position = schedule.nominal_end - 1
    rates = schedule.step().learning_rates
    assert len(rates) == 6
    assert rates[0] == pytest.approx(3e-3)
    assert rates[3] == pytest.approx((3e-3 + 1e-5) / 2.0)  # half way of half a cosine
    assert list(rates) == sorted(rates, reverse=True)
    assert rates[-1] < 3e-4


def test_the_adversaries_grow_between_the_shares_of_their_ramp() -> None:
    schedule = Schedule(Settings(iterations=10, adversary_ramp=(0.2, 0.6), adversaries={"action": 2.0}))
    assert [schedule.adversary_share(k) for k in range(10)] == pytest.approx([0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1, 1])
    radii = []
    for position in (0, 2, 4, 9):
        schedule.position = position
        radii.append([adversary.alpha for adversary in schedule.step().adversaries])
    assert radii == [[], [], [1.0], [2.0]]
    assert Schedule(Settings(adversaries={"action": 2.0})).adversary_share(0) == 1.0
    ends = Schedule(Settings(iterations=10, adversary_ramp=(0.5, 0.5), adversaries={"action": 2.0}))
    assert (ends.adversary_share(4), ends.adversary_share(5)) == (0.0, 1.0)


@pytest.mark.parametrize(("iterations", "periods"), [(10, [4] * 5 + [2] * 5), (1, [4])])
def test_step_lengths_take_equal_shares_of_the_iterations(iterations: int, periods: list[int]) -> None:
    steps = Schedule(Settings(iterations=iterations, step_periods=(4, 2)))
    assert [step.lookahead.step_periods for step in steps] == periods


@pytest.mark.parametrize("algorithm", ["rfvi", "cfvi"])
def test_the_next_phase_is_where_the_steps_change_or_the_adversaries_begin(algorithm: str) -> None:
    radii = {} if algorithm == "cfvi" else {"action": 1.0}
    schedule = Schedule(
        Settings(iterations=20, step_periods=(4, 2, 2, 2, 1), adversary_ramp=(0.5, 0.7), adversaries=radii)
    )
    begins = [4, 16, 17, 20] if algorithm == "cfvi" else [4, 10, 16, 17, 20]
    for k in range(20):
        schedule.position = k
        growing = algorithm == "rfvi" and k >= 10 and schedule.adversary_share(k) < 1.0  # from its first iteration on
        assert schedule.next_phase() == (k if growing else next(begin for begin in begins if begin > k)), k
