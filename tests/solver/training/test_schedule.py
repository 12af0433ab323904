"""The iterations that a training makes, for evaluations of a given outcome, without a training."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.problem.robots import load_robot
from solver.training import polish
from solver.training.presets import make_settings
from solver.training.schedule import WAIT, Schedule
from solver.training.settings import NO_ADVERSARIES, Settings

#: The steps become short at iteration 6 of 8.
STEPS = (2, 2, 2, 1)
EIGHT = Settings(**NO_ADVERSARIES, iterations=8, step_periods=STEPS, evaluate_every=1, convergence=0.01)


def followed(
    settings: Settings, looks: list[tuple[float, float, float]], kept: float = 0.0, stored_at: int = -1
) -> list[dict[str, float]]:
    """What was done in every iteration; the last look stays. stored_at: stored and restored after this iteration."""
    schedule, rows, seen = Schedule(settings), [], count()
    while schedule.iteration < settings.iterations:
        row = {"done": schedule.done, "step_periods": settings.trace(schedule.iteration).step_periods}
        rows.append(row | {"polishing": schedule.polishing, "rate": schedule.learning_rates[0]})
        schedule.iteration += 1
        if schedule.due:
            schedule.look(*looks[min(next(seen), len(looks) - 1)])
        schedule.pace(kept)
        if rows[-1]["done"] == stored_at:
            state = json.loads(json.dumps(schedule.state()))
            schedule = Schedule(settings)
            schedule.restore(state)
    return rows


@pytest.mark.parametrize(
    ("returns", "success", "done"),
    [
        ([-20.0, -10.0, -9.95, -9.91, -9.9, -9.9], 1.0, [0, 1, 2, 3, 6, 7]),  # agrees on the fourth look
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
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), iterations=100)
    assert settings.refinement == 70
    assert [settings.next_phase(k) for k in (69, 70, 80)] == [70, 70, 80]
    assert settings.next_phase(85) > 85


@pytest.mark.parametrize(("kept", "mismatch", "polished"), [(1.0, 0.1, 6), (0.9, 0.1, 0), (1.0, 0.01, 0)])
def test_a_rough_v_of_a_solved_task_is_polished_at_the_end(kept: float, mismatch: float, polished: int) -> None:
    settings = make_settings("fast", load_robot("pendulum", "cpu", None), algorithm="cfvi", convergence=0.0)
    rows = followed(settings, [(1.0, -9.9, mismatch)], kept)
    assert [row["polishing"] for row in rows] == [False] * settings.iterations + [True] * polished
    if polished:
        assert rows[-1]["rate"] == pytest.approx(polish.RATE * settings.learning_rate)


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
    assert len(rows) <= 40 + WAIT * 40 + settings.polish
    done = [row["done"] for row in rows]
    assert done == sorted(set(done))
    assert followed(settings, looks, kept, stored_at) == rows
