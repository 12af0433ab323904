"""SAC and DDPG: compiled gradient steps beside Stable-Baselines3's own, the bound, first actions and schedules."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
import textwrap
from typing import Any, cast

import numpy as np
import pytest
import torch
from stable_baselines3 import DDPG, SAC

from solver.gym.environment import RobotVectorEnv
from solver.lab.baselines import stable_baselines
from solver.lab.baselines.settings import baseline_settings

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("algorithm", "other"), [("sac", SAC), ("ddpg", DDPG)])
def test_compiled_gradient_step_equals_stable_baselines(
    algorithm: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments = RobotVectorEnv("cartpole", 4, hold=25)
    settings = baseline_settings(algorithm, hold=25, width=16, minibatch=32, environments=4, loss_scale=1e30)
    ours, theirs = (cast(Any, stable_baselines.make_model(settings, environments, 400)) for _ in range(2))
    ours.most = math.inf
    ours.learn(120)
    assert ours._n_updates > 0  # so that the moments of the optimisers are not zero
    theirs._setup_learn(1)
    stable_baselines.fill(theirs, copy.deepcopy(stable_baselines.contents(ours)))  # not the same moments
    if algorithm == "ddpg":  # theirs is twice ours, which halves the square of an error as SAC's does
        mse = torch.nn.functional.mse_loss
        monkeypatch.setattr(torch.nn.functional, "mse_loss", lambda *values: 0.5 * mse(*values))
    for model, train in ((ours, type(ours).train), (theirs, other.train)):
        np.random.seed(0)
        torch.manual_seed(0)
        train(model, 1, 32)
    expected = theirs.policy.state_dict()
    for name, own in ours.policy.state_dict().items():  # the networks that follow, too
        torch.testing.assert_close(own, expected[name], rtol=1e-4, atol=2e-6, msg=name)
    if algorithm == "sac":
        torch.testing.assert_close(ours.log_ent_coef, theirs.log_ent_coef)


def test_critic_errors_are_weighted_by_the_value() -> None:
    """With gamma 0 the target is the reward, so that Torch differentiates the weighted loss in three lines."""
    settings = baseline_settings("sac", hold=25, width=16, minibatch=32, loss_scale=3.0)
    model: Any = stable_baselines.make_model(settings, RobotVectorEnv("cartpole", 4, hold=25), 400)
    model.learn(100)
    model.gamma = 0.0
    np.random.seed(0)
    batch = model.replay_buffer.sample(32)
    assert batch.rewards.abs().max() > 3.0 * batch.rewards.abs().min()
    weight = 3.0 / (3.0 + batch.rewards.abs())
    errors = [weight * (value - batch.rewards) for value in model.critic(batch.observations, batch.actions)]
    slopes = torch.autograd.grad(0.5 * sum((error**2).mean() for error in errors), list(model.critic.parameters()))
    np.random.seed(0)
    model.train(1, 32)
    moments = [model.critic.optimizer.state[each]["exp_avg"] for each in model.critic.parameters()]
    for moment, slope in zip(moments, slopes, strict=True):
        torch.testing.assert_close(moment, 0.1 * slope, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("algorithm", ["sac", "ddpg"])
def test_lookahead_grows_in_the_second_half(algorithm: str) -> None:
    settings = baseline_settings(algorithm, steps=1000, lookahead=0.5, last_lookahead=2.0)
    gammas = [stable_baselines.discount(settings, 0.032, steps) for steps in (499, 500)]
    assert gammas == pytest.approx([math.exp(-0.032 / 0.5), math.exp(-0.032 / 2.0)])


def test_values_stay_below_the_bound() -> None:
    environments = RobotVectorEnv("pendulum", 4, hold=25)
    settings = baseline_settings("sac", hold=25, width=16, minibatch=32, learning_rate=0.01)
    values = []
    for most in (-1000.0, 0.0):
        model: Any = stable_baselines.make_model(settings, environments, 400)
        model.most = most
        model.learn(104)
        model.train(300, 32)
        batch = model.replay_buffer.sample(64)
        values.append(float(model.critic(batch.observations, batch.actions)[0].detach().mean()))
    assert values[0] < -100.0 < values[1]


def test_import_of_jax_draws_no_random_numbers() -> None:
    """It happens in the first segment that a process trains, after the seed: a resumed run would differ."""
    script = """
        import numpy as np
        np.random.seed(0)
        import solver.lab.baselines.gradient_steps
        print(np.random.random())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert float(printed) == np.random.RandomState(0).random_sample()


@pytest.mark.parametrize("algorithm", ["sac", "ddpg"])
def test_first_actions_are_small(algorithm: str) -> None:
    environments = RobotVectorEnv("pendulum", 4, hold=25)
    model: Any = stable_baselines.make_model(
        baseline_settings(algorithm, hold=25, layers=1, width=8), environments, 200
    )
    model.learn(100)
    first = model.replay_buffer.actions[:25]
    assert 0.1 < float(first.std()) < 0.2


def test_entropy_falls_in_the_second_half() -> None:
    settings = baseline_settings(steps=1000, entropy=-1.0, last_entropy=-3.0)
    found = [stable_baselines.entropy_at(settings, steps) for steps in (0, 500, 750, 1000)]
    assert found == pytest.approx([-1.0, -1.0, -2.0, -3.0])


def test_ppo_has_the_entropy_of_the_settings() -> None:
    """Its rewards are those of the robot divided by the scale, and its episodes have the stated length."""
    settings = baseline_settings("ppo", steps=4000, environments=8, hold=25, layers=1, width=8, entropy=-1.0)
    environments = RobotVectorEnv("pendulum", 8, hold=25, seconds=16 * 25 / 125)
    assert environments.episodes.length == 16
    model: Any = stable_baselines.make_model(settings, environments, 4000)
    for actions, entropy in ((0, -1.0), (2000, -1.0), (3000, -1.3), (4000, -1.6)):
        model.num_timesteps = actions
        stable_baselines.follow_schedules(model, settings, 0.2)
        assert float(model.policy.get_distribution(torch.zeros(1, 3)).entropy()) == pytest.approx(entropy)
    model.num_timesteps = 0
    model.learn(256)
    assert float(model.policy.get_distribution(torch.zeros(1, 3)).entropy()) == pytest.approx(-1.6)
    same = RobotVectorEnv("pendulum", 8, hold=25, seconds=16 * 25 / 125)
    for each in (environments, same):
        each.reset(seed=3)
    action = np.full((8, 1), 0.3, np.float32)
    model.env.step_async(action)
    _, reward, _, _ = model.env.step_wait()
    np.testing.assert_allclose(reward, same.step(settings.input_share * action)[1] / 10.0, rtol=1e-6)
