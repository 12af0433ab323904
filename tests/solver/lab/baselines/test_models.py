"""What Stable-Baselines3 is given: environments, features, discounts and holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solver.gym.environment import RobotEnv, RobotVectorEnv
from solver.gym.stable_baselines import Environments
from solver.lab.baselines import lifecycle, stable_baselines
from solver.lab.baselines.settings import BaselineSettings, baseline_settings
from solver.plants.episodes import features
from solver.problem.robots import load_robot
from tests.closeness import assert_close
from tests.solver.lab.baselines.small_runs import ALGORITHMS, Train


def test_batched_environments_equal_single_ones_in_stable_baselines() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    options: dict[str, Any] = {"start": "uniform", "randomize": 0.2, "seconds": 0.04}
    ours = Environments(RobotVectorEnv("pendulum", 3, **options))
    theirs = DummyVecEnv([lambda: RobotEnv("pendulum", **options)] * 3)
    for each in (ours, theirs):
        each.seed(7)
    assert_close(ours.reset(), theirs.reset())
    for move in np.random.default_rng(0).uniform(-1.0, 1.0, (12, 3, 1)):
        (seen, reward, ended, infos), expected = ours.step(move), theirs.step(move)
        assert_close(seen, expected[0], periods=12)
        assert_close(reward, expected[1], periods=12)
        assert np.array_equal(ended, expected[2])
        for info, other in zip(infos, expected[3], strict=True):
            assert info.get("TimeLimit.truncated", False) == other["TimeLimit.truncated"]
            last, expected_last = (each.get("terminal_observation", np.zeros(0)) for each in (info, other))
            assert_close(last, expected_last, periods=12)


def test_training_environments_follow_the_settings(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[RobotVectorEnv] = []

    def keep(settings: BaselineSettings, environments: RobotVectorEnv, steps: int) -> Any:
        seen.append(environments)
        model: Any = stable_baselines.make_model(settings, environments, steps)
        assert model.gamma == pytest.approx(math.exp(-5 * 0.04 / 1.5))
        return model

    monkeypatch.setattr("solver.lab.baselines.lifecycle.make_model", keep)
    train(tmp_path, randomize=True, randomize_share=0.3, lookahead=1.5, steps=1)
    episodes = seen[0].episodes
    assert (episodes.start, episodes.randomize, episodes.hold, episodes.length) == ("angle", 0.3, 5, 5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_networks_get_scaled_features(algorithm: str) -> None:
    environments = RobotVectorEnv("furuta", 4, hold=25)
    settings = baseline_settings(algorithm=algorithm, position_scale=3.0, rate_scale=5.0, minibatch=64)
    policy = stable_baselines.make_model(settings, environments, 200).policy
    extractors = [module for module in policy.modules() if isinstance(module, stable_baselines.Scaled)]
    assert len(extractors) == {"sac": 3, "ddpg": 4, "ppo": 1}[algorithm]  # actor, critics and those they follow
    x = torch.tensor([[0.5, 0.3, -6.0, 8.0]])  # limits 2 rad, none, 30 and 40 rad/s
    by_hand = [3.0 * 0.25, math.cos(0.3), math.sin(0.3), 5.0 * -0.2, 5.0 * 0.2]
    for extractor in extractors:
        np.testing.assert_allclose(extractor(features(environments.problem, x))[0], by_hand, rtol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_discount_follows_physical_time(algorithm: str) -> None:
    def gamma(hold: int) -> float:
        environments = RobotVectorEnv("cartpole", 4, hold=hold)
        model: Any = stable_baselines.make_model(baseline_settings(algorithm, hold=hold), environments, 200)
        return float(model.gamma)

    assert gamma(10) == pytest.approx(gamma(5) ** 2)


@pytest.mark.parametrize(("robot", "periods", "seconds"), [("pendulum", 8, 0.261), ("furuta", 2, 0.0641)])
def test_action_is_held_for_a_quarter_of_the_time_scale(robot: str, periods: int, seconds: float) -> None:
    loaded = load_robot(robot, "cpu", None)
    assert lifecycle.usual_hold(loaded) == periods == round(seconds / 4.0 * 125)
    run = lifecycle.describe(loaded, None)
    assert lifecycle._environments(run, Path()).episodes.hold == periods


@pytest.mark.parametrize("algorithm", ["sac", "ddpg"])
@pytest.mark.slow
def test_value_at_the_time_limit_is_bootstrapped(algorithm: str) -> None:
    environments = RobotVectorEnv("pendulum", 4, hold=25)  # 25 actions an episode
    model: Any = stable_baselines.make_model(
        baseline_settings(algorithm, hold=25, layers=1, width=8), environments, 200
    )
    model.learn(200)
    buffer = model.replay_buffer
    assert buffer.dones[:50].sum(1).tolist() == [4.0 * (i % 25 == 24) for i in range(50)]
    assert not (buffer.next_observations[24] == buffer.observations[25]).all(1).any()  # the last state
    assert not buffer._get_samples(np.full(4, 24)).dones.any()  # what the targets are masked with
