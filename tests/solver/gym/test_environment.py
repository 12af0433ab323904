"""Gymnasium environments: public checkers, vector and single environments, seeds, random parameters, rewards."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.errors import SolverError
from solver.plants.outcome import rollouts

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from solver.gym import NAMESPACE  # noqa: E402
from solver.gym.environment import EnvironmentOptions, RobotEnv, RobotVectorEnv  # noqa: E402
from solver.plants.episodes import features  # noqa: E402
from tests.closeness import assert_close  # noqa: E402

PENDULUM = f"{NAMESPACE}/pendulum-v0"


def actions(space: Any, periods: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random actions (periods, *space.shape), some of them beyond the limits."""
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (periods, *space.shape)).astype(np.float32)


@pytest.mark.parametrize("robot", ["pendulum", "furuta", "planar_quadrotor"])
@pytest.mark.parametrize("options", [{}, {"observation": "state", "start": "uniform", "randomize": 0.2, "hold": 3}])
@pytest.mark.slow
def test_checkers_of_gymnasium_and_stable_baselines_pass_without_a_warning(robot: str, options: dict[str, Any]) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"{NAMESPACE}/{robot}-v0", **options).unwrapped
        check_env(env)
        sb3.check_env(env)


@pytest.mark.parametrize("observation", ["features", "state"])
def test_encoders_measure_only_positions_in_whole_counts(observation: Any) -> None:
    env = RobotVectorEnv("cartpole", 200, start="uniform", observation=observation, sensors="encoders")
    measured = env.reset(seed=0)[0]
    assert env.observation_space.contains(measured)
    x = env.episodes.x
    if observation == "state":
        assert measured.shape == (200, 2)
        counts = np.array([2.5e-5, 2.0 * np.pi / 2048])
        whole = measured.astype(float) / counts
        np.testing.assert_allclose(whole, whole.round(), atol=5e-3)
        error = np.abs(measured - x[:, :2].numpy())
        assert (error <= 0.501 * counts).all()
        assert (error.max(0) > 0.4 * counts).all()
    else:
        np.testing.assert_allclose(measured, features(env.problem, x)[:, :3], atol=2e-3)
    check_env(gymnasium.make(PENDULUM, observation=observation, sensors="encoders").unwrapped)


@pytest.mark.parametrize("robot", ["pendulum", "double_pendulum"])
def test_vector_environment_equals_single_environments(robot: str) -> None:
    options: dict[str, Any] = {"start": "uniform", "randomize": 0.3, "seconds": 0.08, "hold": 2}
    vector = RobotVectorEnv(robot, 3, **options)
    moves = actions(vector.action_space, 12)
    start, _ = vector.reset(seed=5)
    steps = [vector.step(move) for move in moves]
    for i in range(3):
        env = RobotEnv(robot, **options)
        assert_close(env.reset(seed=5 + i)[0], start[i])
        for t, (observations, reward, terminated, truncated, infos) in enumerate(steps):
            observation, one_reward, one_terminated, one_truncated, _ = env.step(moves[t, i])
            assert (one_terminated, one_truncated) == (terminated[i], truncated[i])
            assert_close(one_reward, reward[i], periods=10)
            if truncated[i]:
                assert infos["_final_obs"][i]
                assert_close(infos["final_obs"][i], observation, periods=10)
                observation = env.reset()[0]
            assert_close(observation, observations[i], periods=10)
    assert [bool(step[3].any()) for step in steps] == [t % 5 == 4 for t in range(12)]


@pytest.mark.slow
def test_sum_of_rewards_is_the_return_of_rollouts_with_the_same_inputs() -> None:
    env = RobotVectorEnv("cartpole", 4, start="uniform")
    env.reset(seed=1)
    x, problem, length = env.episodes.x.clone(), env.problem, env.episodes.length
    moves = actions(env.action_space, length)
    total = sum(env.step(move)[1] for move in moves[:-1])
    _, reward, _, truncated, infos = env.step(moves[-1])
    assert truncated.all()
    period = iter(moves)

    def act(_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = torch.from_numpy(next(period).clip(-1.0, 1.0)) * problem.input_limits
        return u, problem.action_cost.cost(u)

    result = rollouts(problem, act, x)
    np.testing.assert_allclose(total + reward, result.returns, rtol=2e-5)
    assert_close(np.stack(list(infos["final_obs"])), features(problem, result.x[-1]), length)


def test_reward_of_a_held_action_is_the_sum_over_its_control_periods() -> None:
    one, four = (RobotEnv("pendulum", start="uniform", hold=hold) for hold in (1, 4))
    assert np.array_equal(one.reset(seed=2)[0], four.reset(seed=2)[0])
    observation, reward, *_ = four.step(np.array([0.4]))
    steps = [one.step(np.array([0.4])) for _ in range(4)]
    assert_close(steps[-1][0], observation, periods=4)
    assert sum(step[1] for step in steps) == pytest.approx(reward, rel=1e-5)
    assert (one.episodes.length, four.episodes.length) == (625, 157)


def test_reward_and_features_agree_with_a_calculation_by_hand() -> None:
    """One control period of the pendulum. The reward is minus the integral of pi^2 sin^2(angle/2) + 0.1 rate^2 along
    the motion to second order, by Simpson's rule, and of g(u)."""
    env = RobotEnv("pendulum")
    env.reset(seed=0)
    env.episodes.x[:] = torch.tensor([[2.0, -3.0]])
    reward = env.step(np.array([0.5]))[1]
    beta = 4.0 * 2.5**2 * 0.5 / np.pi
    action_cost = -2.0 * beta * 2.501 / np.pi * np.log(np.cos(np.pi * 1.25 / (2.0 * 2.501)))
    acceleration = 1.5 * 9.81 * np.sin(2.0) + 3.0 * 1.25
    time = np.array([0.0, 0.004, 0.008])
    rate, angle = -3.0 + acceleration * time, 2.0 - 3.0 * time + acceleration * time**2 / 2
    cost = (np.pi * np.sin(angle / 2)) ** 2 + 0.1 * rate**2
    assert reward == pytest.approx(-0.008 * (cost @ [1, 4, 1] / 6 + action_cost), rel=1e-4)
    assert reward != pytest.approx(-0.008 * (cost[0] + action_cost), rel=5e-3)  # explicit Euler's
    observation = features(env.problem, torch.tensor([[2.0, -3.0]]))
    np.testing.assert_allclose(observation, [[np.cos(2.0), np.sin(2.0), -3.0 / 8.0]], rtol=1e-6)


def test_episode_depends_only_on_the_seed() -> None:
    def run(seed: int | list[int] | None, env: RobotVectorEnv) -> np.ndarray[Any, Any]:
        observation = [env.reset(seed=seed)[0]]
        observation += [env.step(move)[0] for move in actions(env.action_space, 8)]
        return np.stack(observation)

    options: EnvironmentOptions = {"start": "uniform", "randomize": 0.1, "seconds": 0.04}
    env = RobotVectorEnv("pendulum", 2, **options)
    first = run(3, env)
    again = run(None, env)
    assert np.array_equal(run(3, env), first)
    assert np.array_equal(run([3, 4], RobotVectorEnv("pendulum", 2, **options)), first)
    assert not np.array_equal(again, first)
    assert not np.array_equal(run(4, env), first)


@pytest.mark.slow
def test_gaussian_starts_follow_the_task_and_uniform_starts_fill_the_domain() -> None:
    gaussian, uniform = (RobotVectorEnv("cartpole", 4000, start=start) for start in ("gaussian", "uniform"))
    gaussian.reset(seed=0)
    task = gaussian.problem.robot.metadata.task
    error = gaussian.episodes.x - torch.tensor(task.start_mean)
    error[:, 1] = torch.remainder(error[:, 1] + torch.pi, 2.0 * torch.pi) - torch.pi
    np.testing.assert_allclose(error.std(0), task.start_deviation, rtol=0.1, atol=1e-6)
    uniform.reset(seed=0)
    share = uniform.episodes.x / uniform.problem.state_limits
    np.testing.assert_allclose(share.std(0), np.full(4, 3.0**-0.5), rtol=0.05)
    assert bool((share.abs() <= 1.0).all())


@pytest.mark.slow
def test_angle_starts_are_uniform_in_the_angle_and_target_share_starts_near_the_target() -> None:
    angle, near = (RobotVectorEnv("cartpole", 4000, start="angle", target_share=share) for share in (0.0, 0.25))
    angle.reset(seed=0)
    task, limits = angle.problem.robot.metadata.task, angle.problem.state_limits
    others = angle.episodes.x[:, [0, 2, 3]]
    np.testing.assert_allclose(others.std(0), np.array(task.start_deviation)[[0, 2, 3]], rtol=0.1, atol=1e-6)
    assert float(angle.episodes.x[:, 1].std()) == pytest.approx(torch.pi / 3.0**0.5, rel=0.05)
    near.reset(seed=0)
    about = near.episodes.x[near.episodes.x[:, 2].abs() > 0.01]  # the task's starts are at rest
    assert len(about) == pytest.approx(1000, rel=0.15)
    np.testing.assert_allclose(about.std(0), 0.2 * 3.0**-0.5 * limits, rtol=0.1)


def test_random_parameters_are_drawn_once_in_an_episode_within_their_bounds() -> None:
    env = RobotVectorEnv("pendulum", 500, randomize=0.8, seconds=0.016)
    env.reset(seed=0)
    theta, bounds, nominal = env.episodes.theta.clone(), env.problem.theta_bounds, env.problem.theta
    assert bool(((theta >= bounds[:, 0]) & (theta <= bounds[:, 1])).all())
    assert bool(((theta - nominal).abs() <= 0.8 * nominal + 1e-6).all())
    for i, low in enumerate(bounds[:, 0].tolist()):  # 0.2 to 1.8, of which 0.2 to 0.5 is cut off
        assert float((theta[:, i] == low).float().mean()) == pytest.approx(0.3 / 1.6, abs=0.05)
        assert float(theta[:, i].max()) > 1.75
    env.step(np.zeros((500, 1)))
    assert torch.equal(env.episodes.theta, theta)
    env.step(np.zeros((500, 1)))
    assert not torch.equal(env.episodes.theta, theta)
    assert torch.equal(RobotVectorEnv("pendulum", 2).episodes.theta, nominal.repeat(2, 1))


def test_random_parameters_change_the_dynamics() -> None:
    """A rod of twice the length falls with half the acceleration, 3g/(2L) sin(angle)."""
    env = RobotVectorEnv("pendulum", 2, randomize=0.5)
    env.reset(seed=0)
    env.episodes.theta[:] = torch.tensor([[1.0, 1.0], [1.0, 2.0]])
    env.episodes.x[:] = torch.tensor([1.0, 0.0])
    env.step(np.zeros((2, 1)))
    rates = env.episodes.x[:, 1]
    assert float(rates[0] / rates[1]) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robot": "pendulm"}, "`pendulum`"),
        ({"start": "normal"}, "gaussian, angle, uniform"),
        ({"randomize": 1.0}, r"in \[0, 1\)"),
        ({"randomize": float("nan")}, r"in \[0, 1\)"),
        ({"randomize": "0.1"}, r"randomize is '0.1'"),
        ({"seconds": "5"}, "seconds is '5'"),
        ({"seconds": True}, "seconds is True"),
        ({"num_envs": 2.0}, "num_envs is 2.0"),
        ({"num_envs": True}, "num_envs is True"),
        ({"observation": "pixels"}, "features, state"),
        ({"sensors": "camera"}, "state, encoders"),
        ({"seconds": 0.001}, r"0 control periods of 0\.008 s"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"hold": 0}, "hold is 0"),
        ({"hold": 1.5}, r"hold is 1\.5"),
        ({"num_envs": 0}, "num_envs is 0"),
    ],
)
def test_option_out_of_range_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobotVectorEnv(**{"robot": "pendulum", **options})


@pytest.mark.parametrize("action", [[0.0], [[0.0, 0.0]], [[float("nan")]]])
def test_action_of_another_shape_or_not_finite_is_an_error(action: Any) -> None:
    env = RobotVectorEnv("pendulum", 1)
    env.reset(seed=0)
    with pytest.raises(SolverError, match=re.escape("array (1,) of finite numbers")):
        env.step(np.array(action))


@pytest.mark.parametrize("action", ["full", {"torque": 1.0}, [[1.0], [1.0, 2.0]], None])
def test_action_that_is_no_array_of_numbers_is_an_error(action: Any) -> None:
    env = RobotEnv("pendulum")
    env.reset(seed=0)
    with pytest.raises(SolverError, match=re.escape("array (1,) of finite numbers")):
        env.step(action)


def test_step_before_the_first_reset_is_an_error() -> None:
    for env in (RobotEnv("pendulum"), RobotVectorEnv("pendulum", 1)):
        with pytest.raises(SolverError, match="reset"):
            env.step(np.zeros((1,)))


def test_reset_with_options_or_another_number_of_seeds_is_an_error() -> None:
    env = RobotVectorEnv("pendulum", 2)
    with pytest.raises(SolverError, match="state"):
        env.reset(options={"state": 1})
    with pytest.raises(SolverError, match=r"3 .*2"):
        env.reset(seed=[1, 2, 3])


def test_states_that_are_not_finite_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    env = RobotEnv("pendulum")
    env.reset(seed=0)
    monkeypatch.setattr(env.problem.robot, "dynamics", lambda x, *_: x * float("nan"))
    with pytest.raises(SolverError, match="control_rate"):
        env.step(np.zeros(1))


@pytest.mark.slow
def test_information_has_the_terms_of_the_cost_and_the_success() -> None:
    """Beside those of rollouts with the same inputs: a policy that succeeds, and no input."""
    policy = solver.load_policy("pendulum-rfvi", reaction_periods=0)
    env = RobotVectorEnv("pendulum", 8)
    observations, _ = env.reset(seed=1)
    x, problem = env.episodes.x.clone(), env.problem
    state_cost, action_cost = np.zeros(8), np.zeros(8)
    for period in range(env.episodes.length):
        u = policy(env.episodes.x.numpy()) * (np.arange(8) < 5)[:, None]
        observations, reward, _, truncated, infos = env.step(u / 2.5)
        np.testing.assert_allclose(infos["state_cost"] + infos["action_cost"], -reward, rtol=1e-5)
        state_cost, action_cost = state_cost + infos["state_cost"], action_cost + infos["action_cost"]
        assert truncated.any() or not infos["is_success"].any()
        assert ("final_info" in infos) == (period + 1 == env.episodes.length)
    assert observations.shape == (8, 3)

    def act(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = torch.from_numpy(policy(x.numpy())) * (torch.arange(8) < 5)[:, None]
        return u, problem.action_cost.cost(u)

    result = rollouts(problem, act, x)
    assert infos["is_success"].tolist() == result.success.tolist() == [True] * 5 + [False] * 3
    assert infos["final_info"]["is_success"].tolist() == result.success.tolist()
    np.testing.assert_allclose(state_cost, -result.state_reward, rtol=1e-4)
    np.testing.assert_allclose(action_cost, -result.action_reward, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_single_environment_says_whether_it_succeeded() -> None:
    policy, env = solver.load_policy("pendulum-rfvi", reaction_periods=0), RobotEnv("pendulum")
    for seed in range(2):  # a second episode, after one that was cut short
        env.reset(seed=seed)
        for _ in range(env.episodes.length if seed else 100):
            *_, truncated, info = env.step(policy(env.episodes.x.numpy())[0] / 2.5)
    assert truncated
    assert info["is_success"] is True
    short = RobotEnv("pendulum", seconds=0.08, start="uniform")
    short.reset(seed=1)
    assert [short.step(np.zeros(1))[4]["is_success"] for _ in range(10)] == [False] * 10


@pytest.mark.slow
def test_stable_baselines_takes_the_environment_and_reads_successes() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from solver.gym import vec_env

    env = vec_env("pendulum", 4, seconds=0.16)
    agent = sb3.PPO("MlpPolicy", env, n_steps=20, batch_size=20, n_epochs=1, device="cpu", seed=0)
    agent.learn(80)
    assert list(agent.ep_success_buffer) == [False] * 4
    env.reset()
    _, rewards, _, infos = env.step(np.zeros((4, 1), np.float32))
    for reward, info in zip(rewards, infos, strict=True):
        assert info["state_cost"] + info["action_cost"] == pytest.approx(-reward, rel=1e-5)


@pytest.mark.parametrize("make", [RobotEnv, RobotVectorEnv])
def test_an_unknown_option_is_named(make: Callable[..., Any]) -> None:
    with pytest.raises(SolverError, match=re.escape("no option 'randomise'. Did you mean `randomize`")):
        make("pendulum", randomise=0.1)
