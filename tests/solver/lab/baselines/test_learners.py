"""Rivals that learn from transitions (benchmarks/learners.py): histories, M2TD3, the judge, and short trainings."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from solver.gym.stable_baselines import Environments
from solver.lab.baselines.settings import baseline_settings
from solver.lab.baselines.stable_baselines import Scaled
from solver.plants.outcome import rollouts
from solver.problem import Problem
from solver.problem.parameters import Relative
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
    assert list(row["masses"]) == ["x0.7", "x1", "x1.3", "x1.4", "x1.5"]
    assert row["masses"]["x1"] == (row["return"], 0.0)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Names of `benchmarks/m2td3.py`."""
    monkeypatch.syspath_prepend(FILE.parent)
    return runpy.run_path(str(FILE.with_name("m2td3.py")))


def hostile(played: dict[str, Any]) -> Any:
    return played["Hostile"]("pendulum", 3, hold=HOLD, seconds=0.2, given={"mass": (Relative(0.7), Relative(1.3))})


def test_the_adversary_chooses_the_mass_of_every_episode(played: dict[str, Any], problem: Problem) -> None:
    robots, nominal = hostile(played), problem.theta[0].item()

    def play(share: float) -> None:
        robots.adversary = SimpleNamespace(drawn=lambda count: torch.full((count, 1), share))

    play(0.5)
    shown, _ = robots.reset(seed=0)
    np.testing.assert_allclose(shown[:, -1], 0.5)
    np.testing.assert_allclose(robots.episodes.theta[:, 0], 1.15 * nominal, rtol=1e-6)
    play(-1.0)
    for k in range(robots.episodes.length):
        np.testing.assert_allclose(robots.episodes.theta[:, 0], 1.15 * nominal, rtol=1e-6)
        shown, *_, ended, _ = robots.step(np.zeros((3, 1), np.float32))
        assert ended.all() == (k == robots.episodes.length - 1)
    np.testing.assert_allclose(shown[:, -1], -1.0)
    np.testing.assert_allclose(robots.episodes.theta[:, 0], 0.7 * nominal, rtol=1e-6)


def test_candidates_descend_the_critic_and_the_actor_is_not_told(played: dict[str, Any]) -> None:
    networks = {"features_extractor_class": Scaled, "features_extractor_kwargs": {"scale": [1.0] * 4}}
    model = played["M2TD3"](
        played["Policy"],
        Environments(hostile(played)),
        learning_rate=0.02,
        seed=0,
        policy_kwargs={"told": 1, "net_arch": [8], **networks},
    )
    seen = torch.rand(16, 4)
    other = torch.cat([seen[:, :-1], -seen[:, -1:]], 1)
    actions = model.actor(seen)
    assert torch.equal(actions, model.actor(other))
    assert not torch.allclose(model.critic(seen, actions)[0], model.critic(other, actions)[0])

    def worst_where_heavy(z: Tensor) -> Tensor:  # of the features, omega and the action
        return -1.0 - z[:, 3:4] - (z[:, 4:5] - 0.25) ** 2

    model.critic.q_networks = [worst_where_heavy] * 2
    for _ in range(400):
        model._play(seen)
    assert model.candidates.max() > 0.99
    assert model.worst.argmax() == model.candidates.argmax()
    np.testing.assert_allclose(model.actor(seen).detach(), 0.25, atol=0.05)


def test_m2td3_is_judged_by_its_worst_mass(
    learners: dict[str, Any], played: dict[str, Any], problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    del played  # it makes the script importable
    monkeypatch.setitem(learners["learned"].__globals__, "ROLLOUTS", 3)
    settings = baseline_settings("sac", steps=400, evaluate_every=400, environments=4, layers=1, width=8, minibatch=16)
    row = learners["learned"](problem, learners["m2td3"](settings, HOLD), SHARE, HOLD, 1, robust=True)
    assert row["return"] == min(found for found, _ in row["masses"].values())


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
