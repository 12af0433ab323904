"""Rivals that learn from transitions (benchmarks/learners.py): histories, the judge, and a short training."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.lab.baselines.settings import baseline_settings
from solver.plants.outcome import rollouts
from solver.problem.problem import Problem
from solver.problem.robots import load_robot

pytestmark = pytest.mark.slow
FILE = Path(__file__).parents[4] / "benchmarks" / "learners.py"
HOLD, DEPTH, SHARE = 8, 5, 0.85


@pytest.fixture(scope="module")
def learners() -> dict[str, Any]:
    """Names of the script."""
    return runpy.run_path(str(FILE))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(load_robot("pendulum", "cpu", None))


def test_histories_of_training_and_judge_are_those_of_the_observations(
    learners: dict[str, Any], problem: Problem
) -> None:
    generator = np.random.default_rng(0)
    weights = 0.2 * generator.normal(size=(4 * DEPTH - 1, 1))  # so that the input is seldom at its limit
    robots = learners["History"](DEPTH, 3, hold=HOLD, seconds=1.3)
    seen, _ = robots.reset(seed=0)
    starts, returns, shown, actions = robots.episodes.x, 0.0, [seen[:, :3]], list[Any]()
    for k in range(1, robots.episodes.length + 1):
        actions.append(SHARE * np.tanh(seen @ weights))
        seen, reward, _, ended, infos = robots.step(actions[-1])
        returns = returns + reward
        last = infos["final_obs"] if ended.all() else seen
        shown.append(np.stack(list(last))[:, :3])
        then = [max(k - age, 0) for age in range(DEPTH)]  # the first observation stands for those before it
        expected = [shown[then[0]]]
        for age in range(1, DEPTH):
            expected += [actions[k - age] if k >= age else np.zeros((3, 1)), shown[then[age]]]
        np.testing.assert_allclose(np.stack(list(last)), np.concatenate(expected, 1), rtol=1e-6, atol=1e-7)
    assert ended.all()
    first = [seen[:, :3], *[np.zeros((3, 1)), seen[:, :3]] * (DEPTH - 1)]
    np.testing.assert_allclose(seen, np.concatenate(first, 1), rtol=1e-6)

    judge = learners["Held"](problem, lambda past: np.tanh(past @ weights), SHARE, HOLD, DEPTH)
    periods = robots.episodes.length * HOLD
    found = rollouts(problem, judge, starts, seconds=periods * problem.control_step)
    np.testing.assert_allclose(found.returns.numpy(), returns, rtol=1e-4)


def test_a_short_training_gives_a_row(
    learners: dict[str, Any], problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(learners["learned"].__globals__, "ROLLOUTS", 3)
    settings = baseline_settings("ppo", steps=400, evaluate_every=400, environments=4, layers=1, width=8, minibatch=16)
    row = learners["learned"](problem, learners["history"](settings, HOLD), SHARE, HOLD, DEPTH)
    assert -200.0 < row["return"] == row["last_return"] < -30.0  # the best known motion has -30.4
    assert list(row["masses"]) == ["x0.7", "x1", "x1.3", "x1.5"]
    assert row["masses"]["x1"] == (row["return"], 0.0)


def test_seconds_to_a_share_of_the_best_return(learners: dict[str, Any], problem: Problem) -> None:
    idle = -49.35  # hanging for 5 s
    rows = [(idle, 1.0), (idle + 0.951 * 18.0, 2.0), (idle + 18.0, 5.0), (idle + 17.9, 7.0)]
    found = learners["reached"](problem, rows)
    assert found == {
        "seconds_to_95": 2.0,
        "seconds_to_99": 5.0,
        "seconds": 7.0,
        "return": idle + 18.0,
        "last_return": idle + 17.9,
    }
    assert learners["reached"](problem, [(idle - 1.0, 1.0)])["seconds_to_95"] is None
