"""The positions that a training takes for evaluations of a given outcome, without a training."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solver.fvi.algorithm import Iteration
from solver.fvi.targets import Step
from solver.problem.robots import load_robot
from solver.training.schedule import Convergence, Schedule, improves
from solver.training.selection import Polish
from solver.training.settings import Settings, make_settings

#: The steps become short at iteration 6 of 8.
STEPS = (2, 2, 2, 1)
EIGHT = Settings(iterations=8, step_periods=STEPS, evaluate_every=1, convergence=0.01)
Look = tuple[float, float, float]  # success rate, mean return, mismatch of V


class Training:
    """A schedule with its observers, and a selection that always keeps the same share of successes. All rollouts of an
    evaluation have the same return."""

    def __init__(self, settings: Settings, kept: float) -> None:
        best = SimpleNamespace(score=SimpleNamespace(successes=kept))
        self.selection = SimpleNamespace(best=best, restore_best=lambda: None, returns=torch.empty(0))
        self.schedule = Schedule(settings)
        self.convergence = Convergence(self.schedule, cast(Any, self.selection), settings.convergence)
        self.polish = Polish(self.schedule, cast(Any, self.selection))

    def observe(self, step: Step, row: dict[str, float]) -> None:
        self.selection.returns = torch.full((8,), row.get("return_mean", 0.0))
        for observer in (self.convergence, self.polish):
            observer.observe(cast(Iteration, SimpleNamespace(step=step)), row)

    def state(self) -> dict[str, Any]:
        return self.schedule.state() | self.convergence.state() | self.polish.state()

    def restore(self, state: dict[str, Any]) -> None:
        for part in (self.schedule, self.convergence, self.polish):
            part.restore(state)


def followed(settings: Settings, looks: list[Look], kept: float = 0.0, stored_at: int = -1) -> list[dict[str, float]]:
    """What was done in every iteration; the last look stays. stored_at: stored and restored after this iteration."""
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
        training.observe(step, row)
        if step.number == stored_at:
            stored = io.BytesIO()
            torch.save(training.state(), stored)
            state = torch.load(io.BytesIO(stored.getvalue()), weights_only=True)
            training = Training(settings, kept)
            training.restore(state)
            steps = iter(training.schedule)


#: Mean returns of evaluations, the numbers of iterations done by a training of eight with the last phase from 6 on.
CURVES = {
    "rises": ([-20.0, -18.0, -16.0, -14.0, -12.0, -10.0, -9.0, -8.0, -7.0, -6.0], range(12)),
    "rises to a plateau": ([-20.0, -10.0, -9.95], [0, 1, 2, 3, 6, 7]),
    "is flat with noise": ([-10.0, -10.05, -9.97, -10.02], [0, 1, 2, 6, 7]),
    "falls": ([-10.0, -12.0, -14.0], range(12)),
    "swings": ([-10.0, -12.0, -10.02, -12.0, -8.0], [*range(7), 7, 8]),
    "rises after a fall": ([-10.0, -10.5, -8.0], [0, 1, 2, 3, 4, 6, 7]),
}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("algorithm", ["cfvi", "rfvi"])
@pytest.mark.parametrize("stored_at", [-1, 1])
def test_a_phase_ends_when_the_policy_improves_no_more(curve: str, algorithm: str, stored_at: int) -> None:
    returns, done = CURVES[curve]
    radii: dict[str, Any] = (
        {"adversaries": {"action": 1.0}, "adversary_ramp": (0.75, 0.75)} if algorithm == "rfvi" else {}
    )
    rows = followed(replace(EIGHT, **radii), [(1.0, each, 0.5) for each in returns], stored_at=stored_at)
    assert [row["done"] for row in rows] == [*done]


@pytest.mark.parametrize(
    ("returns", "success", "done"),
    [([-20.0, -9.9], 0.97, 12), ([-20.0, -9.9], 0.0, 12)],  # half as many iterations again
)
def test_a_training_that_has_not_solved_its_task_waits_before_the_last_phase(
    returns: list[float], success: float, done: int
) -> None:
    rows = followed(EIGHT, [(success, each, 0.0) for each in returns])
    assert [row["done"] for row in rows] == [*range(done)]
    assert [row["step_periods"] for row in rows] == [2.0] * 10 + [1.0] * 2
    solved = followed(EIGHT, [*[(success, -20.0, 0.5)] * 6, (1.0, -9.9, 0.0)])
    assert [row["done"] for row in solved] == [*range(9), 9, 10]  # while it waits


@pytest.mark.parametrize(("kept", "long"), [(0.0, 50), (1 / 64, 10)])
def test_long_steps_last_until_a_rollout_succeeds(kept: float, long: int) -> None:
    """But for at most half as many iterations again, and then nothing waits before the last phase."""
    settings = make_settings("fast", load_robot("pendulum", "cpu", None))
    rows = followed(settings, [(kept, -50.0, 0.5)], kept)
    assert [row["step_periods"] for row in rows] == [8] * long + [4] * (120 - long)


@pytest.mark.parametrize(
    ("gain", "noise", "better"),
    [
        (0.5, 0.1, True),
        (0.05, 0.0, False),  # half a per cent of the return, at every start
        (-0.5, 0.1, False),
        (0.2, 4.0, False),  # two per cent: some swings are shorter and some longer
        (0.2, 0.4, True),
    ],
)
def test_a_gain_exceeds_its_own_noise_and_the_tolerance(gain: float, noise: float, better: bool) -> None:
    """The noise is a standard deviation over 64 starts; an eighth of it is that of the mean."""
    before = torch.linspace(-15.0, -5.0, 64)  # the starts differ by more than the policies
    scatter = noise * math.sqrt(63 / 64) * torch.tensor([1.0, -1.0]).repeat(32)
    assert improves(before, before + gain + scatter, 0.01) is better


def test_a_diverged_rollout_and_a_single_one_can_improve() -> None:
    assert improves(torch.tensor([-2.0, -2.0, torch.nan]), torch.tensor([-1.0, -1.0, -1.0]), 0.01)
    assert improves(torch.tensor([-2.0]), torch.tensor([-1.0]), 0.01)


@pytest.mark.parametrize("algorithm", ["rfvi", "cfvi"])
def test_evaluations_of_long_steps_do_not_end_the_short_ones(algorithm: str) -> None:
    """Long steps for ten iterations, with an evaluation after every five; the last of these has no gain."""
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), algorithm)
    rows = followed(settings, [(1.0, each, 0.0) for each in (-14.0, -14.0, -14.0, -12.0, -12.0)], 1.0)
    assert [row["done"] for row in rows] == [*range(30), *range(70, 80)]
    flat = followed(settings, [(1.0, -14.0, 0.0)], 1.0)
    assert [row["done"] for row in flat] == [*range(20), *range(70, 80)]


@pytest.mark.parametrize(("robot", "algorithm"), [("pendulum", "rfvi"), ("pendulum", "cfvi"), ("furuta", "cfvi")])
def test_the_last_phase_has_all_its_iterations_and_the_whole_fall_of_the_learning_rate(
    robot: str, algorithm: str
) -> None:
    """However early it begins, and though Furuta's usual step of one period cannot be halved."""
    settings = make_settings("fast", load_robot(robot, "cpu", None), algorithm)
    assert Schedule(settings).refinement == 70
    early = followed(settings, [(1.0, -9.9, 0.0)], 1.0)
    full = followed(replace(settings, convergence=0.0), [(1.0, -9.9, 0.0)], 1.0)
    for rows in (early, full):
        rates = [row["rate"] for row in rows]
        assert [row["done"] for row in rows[-10:]] == [*range(70, 80)]
        assert rates == sorted(rates, reverse=True)
        assert rates[-1] == pytest.approx(1e-5)
    assert early[-10]["rate"] == pytest.approx(early[-11]["rate"], rel=0.02)
    assert early[-10]["rate"] > 0.8 * settings.learning_rate


@pytest.mark.parametrize("algorithm", ["rfvi", "cfvi"])
def test_the_phases_before_the_last_take_half_of_the_states_in_as_many_gradient_steps(algorithm: str) -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), algorithm)
    schedule = Schedule(settings)
    for position, states in ((0, 1536), (69, 1536), (70, 3072), (79, 3072)):
        schedule.position = position
        step = schedule.step()
        assert step.states == states
        assert step.states * len(step.learning_rates) == settings.states * settings.epochs


@pytest.mark.parametrize(("kept", "mismatch", "polished"), [(1.0, 0.1, 6), (0.9, 0.1, 0), (1.0, 0.01, 0)])
def test_a_rough_v_of_a_solved_task_is_polished_at_the_end(kept: float, mismatch: float, polished: int) -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), algorithm="cfvi", evaluate_every=10)
    rows = followed(settings, [(1.0, -9.9, mismatch)], kept)
    assert [row["polishing"] for row in rows] == [False] * 40 + [True] * polished
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
    schedule.position = schedule.settings.iterations - 1
    rates = schedule.step().learning_rates
    assert len(rates) == 6
    assert rates[0] == pytest.approx(3e-3)
    assert rates[3] == pytest.approx((3e-3 + 1e-5) / 2.0)  # half way of half a cosine
    assert list(rates) == sorted(rates, reverse=True)
    assert rates[-1] < 3e-4


def test_the_adversaries_grow_between_the_shares_of_their_ramp() -> None:
    schedule = Schedule(Settings(iterations=10, adversary_ramp=(0.2, 0.6), adversaries={"action": 2.0}))
    assert [schedule.adversary_share(k) for k in range(10)] == pytest.approx([0, 0, 0.25, 0.5, 0.75, 1, 1, 1, 1, 1])
    radii = []
    for position in (0, 2, 4, 9):
        schedule.position = position
        radii.append([adversary.alpha for adversary in schedule.step().adversaries])
    assert radii == [[], [0.5], [1.5], [2.0]]
    assert Schedule(Settings(adversaries={"action": 2.0})).adversary_share(0) == 1.0
    ends = Schedule(Settings(iterations=10, adversary_ramp=(0.5, 0.5), adversaries={"action": 2.0}))
    assert (ends.adversary_share(4), ends.adversary_share(5)) == (0.0, 1.0)


@pytest.mark.parametrize("iterations", [1, 2, 3, 7, 8, 80])
def test_the_last_step_of_every_rfvi_meets_the_full_adversaries(iterations: int) -> None:
    schedule = Schedule(make_settings("fast", load_robot("pendulum", "cpu", None), iterations=iterations))
    assert schedule.adversary_share(iterations - 1) == 1.0
    assert schedule.refinement < iterations


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
    begins = [4, 16] if algorithm == "cfvi" else [4, 10, 16]
    for k in range(20):
        schedule.position = k
        assert schedule.next_phase == next((begin for begin in begins if begin >= k), k), k
