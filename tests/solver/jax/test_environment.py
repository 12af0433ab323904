"""The environment in JAX beside the one for Gymnasium, which another integrator in Torch runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modelgen import Quadratic, Robot
from modelgen.builder import build_artifact
from solver.errors import SolverError
from solver.problem import Problem
from solver.problem.robots import load_robot
from tests.solver.references import lean, standing

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
Environment: Any = pytest.importorskip("solver.jax.environment").Environment
features: Any = pytest.importorskip("solver.gym.environment").features
Vector: Any = pytest.importorskip("solver.gym.environment").RobotVectorEnv


def begun(env: Any, size: int, seed: int = 0) -> Any:
    """What `reset` returns: compiled as a whole, it is ready three times as soon."""
    return jax.jit(env.reset, static_argnums=1)(jax.random.key(seed), size)


@pytest.mark.parametrize("options", [{"hold": 3, "randomize": 0.2}, {"observation": "state"}])
def test_steps_beside_gymnasium(options: dict[str, Any]) -> None:
    follow("cartpole", 1, **options)


@pytest.mark.parametrize("options", [{"hold": 2}, {"observation": "state", "randomize": 0.1}])
def test_references_and_given_parameters_beside_gymnasium(options: dict[str, Any]) -> None:
    """A reference that moves target and trim, and a mass that moves the trim."""
    options = {**options, "given": ["mass"], "generated": str(lean().folder.parent)}
    follow("lean", 1, **options)
    state, shown = begun(Environment("lean", **options), 2000)
    x, observed = Vector("lean", 2000, **options), np.asarray(shown)
    for theirs, ours in zip(x.reset(seed=0)[0][:, -2:].T, observed[:, -2:].T, strict=True):
        shares = (0.1, 0.5, 0.9)
        np.testing.assert_allclose(np.quantile(ours, shares), np.quantile(theirs, shares), atol=0.08)
    assert np.unique(np.asarray(state.theta)[:, 1]).size > 1900


def test_a_start_moves_with_the_reference() -> None:
    state, _ = begun(Environment("standing", generated=str(standing().folder.parent)), 50)
    np.testing.assert_allclose(state.x[:, 0], state.theta[:, 0], atol=1e-6)


def follow(robot: str, inputs: int, **options: Any) -> None:
    """The same 20 actions in both environments, from the same starts."""
    vector, env = Vector(robot, 4, **options), Environment(robot, **options)
    observed, _ = vector.reset(seed=0)
    state, _ = begun(env, 4)
    state = state._replace(x=vector.episodes.x.numpy(), theta=vector.episodes.theta.numpy())
    np.testing.assert_allclose(jax.vmap(env.observe)(state.x, state.theta), observed, atol=1e-6)
    step, random = jax.jit(env.step), np.random.default_rng(0)
    for _ in range(20):
        action = random.uniform(-1.5, 1.5, (4, inputs)).astype(np.float32)
        result = step(state, action)
        observed, reward, _, ended, _ = vector.step(action)
        np.testing.assert_allclose(result.observation, observed, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(result.reward, reward, rtol=1e-3, atol=1e-6)
        assert not ended.any()
        assert not result.truncated.any()
        state = result.state


def test_an_episode_that_ends_begins_anew_within_scan() -> None:
    env = Environment("pendulum", seconds=0.08)  # ten periods
    state, _ = begun(env, 3, seed=1)

    def act(state: Any, _: None) -> tuple[Any, Any]:
        result = env.step(state, np.zeros((3, 1), np.float32))
        return result.state, (result.state.x, result.truncated, result.observation, result.last_observation)

    last, (x, truncated, observation, before) = jax.jit(lambda s: jax.lax.scan(act, s, length=25))(state)
    assert np.flatnonzero(truncated[:, 0]).tolist() == [9, 19]
    assert (last.taken == 5).all()
    assert not np.allclose(x[9], x[19])  # other starts each time
    assert np.unique(np.asarray(x[9, :, 0])).size == 3
    assert not np.allclose(observation[9], before[9])
    np.testing.assert_array_equal(observation[8], before[8])


@pytest.mark.parametrize("start", ["gaussian", "angle", "uniform"])
def test_starts_are_those_of_the_task(start: Any) -> None:
    compare_starts("cartpole", start)


def compare_starts(robot: str, start: Any, generated: str | None = None) -> None:
    """Quantiles of the features."""
    x = np.asarray(begun(Environment(robot, start=start, generated=generated), 40_000)[1])
    problem = Problem(load_robot(robot, "cpu", generated))
    draw = {"gaussian": problem.sample_starts, "angle": problem.sample_angles, "uniform": problem.sample_domain}[start]
    expected = features(problem, draw(40_000, torch.Generator().manual_seed(0))).numpy()
    shares = np.linspace(0.05, 0.95, 19)
    differences = np.abs(np.quantile(x, shares, 0) - np.quantile(expected, shares, 0))
    assert (differences <= 0.1 * expected.std(0)).all()


def test_rotations_start_and_turn_as_in_gymnasium(tmp_path: Path) -> None:
    """A body whose rotations are limited, about a target that is turned."""
    robot = Robot("tilted", "a rigid body that turns by 0.9 rad at most")
    torques = [robot.input(f"torque_{axis}", 3.0, "N m") for axis in "xyz"]
    attitude = robot.ball("attitude", rate_limit=4.0, limit=0.9)
    robot.link("body", attitude, inertia=(0.1, 0.15, 0.2))
    for turn, torque in zip(attitude.turn, torques, strict=True):
        robot.apply(turn, torque)
    target = (0.4, -0.3, 0.2)
    away = attitude.away(target)
    robot.task(
        state_cost=away.dot(away) + sum(rate**2 for rate in attitude.rate),
        action_cost=Quadratic(1.0),
        target=dict(attitude=target),
        start=dict(attitude=(target, 0.5)),
        horizon=2.0,
        weight_at_horizon=0.6,
        control_rate=50,
    )
    build_artifact(robot, tmp_path)
    for start in ("gaussian", "uniform"):
        compare_starts("tilted", start, str(tmp_path))
    follow("tilted", 3, start="uniform", generated=str(tmp_path))


def test_gradient_of_the_reward_by_differences() -> None:
    with jax.enable_x64(True):
        env = Environment("pendulum", dtype="float64")
        state, _ = env.reset(jax.random.key(0))

        @jax.jit
        def reward(action: Any) -> Any:
            return env.step(state, action).reward

        found, step = jax.grad(reward)(np.array([0.3])), 1e-6
        expected = (reward(np.array([0.3 + step])) - reward(np.array([0.3 - step]))) / (2 * step)
        np.testing.assert_allclose(found, [expected], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "gauss"}, "choices are gaussian, angle, uniform"),
        ({"observation": "pixels"}, "choices are features, state"),
        ({"randomize": 2.0}, "share of the nominal parameters"),
        ({"randomize": "much"}, "share of the nominal parameters"),
        ({"seconds": -1.0}, "positive length"),
        ({"hold": 10**6}, "number of control periods"),
    ],
)
def test_options_out_of_range_are_explained(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SolverError, match=words):
        Environment("pendulum", **options)


def test_an_action_of_another_shape_is_explained() -> None:
    env = Environment("pendulum")
    state, _ = begun(env, 3)
    with pytest.raises(SolverError, match=r"action .*\(2, 1\).*\(3, 1\)"):
        env.step(state, np.zeros((2, 1)))
    assert env.step(state, [[0.5]] * 3).reward.shape == (3,)


@pytest.mark.parametrize("size", [0, -1, 2.0])
def test_a_number_of_episodes_that_is_no_count_is_explained(size: Any) -> None:
    with pytest.raises(SolverError, match="whole number from 1 on"):
        Environment("pendulum").reset(jax.random.key(0), size)
