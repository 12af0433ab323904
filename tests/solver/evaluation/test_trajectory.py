"""`solver.simulate`, and policies of every kind in `solver.evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import modelgen
import solver
from modelgen.files import shipped
from solver.cli import main
from solver.errors import SolverError
from tests.closeness import assert_close
from tests.solver.references import limited_body

Array = np.ndarray[Any, Any]


def zero(x: Array) -> Array:
    return np.zeros((len(x), 1))


def half(x: Array) -> Array:
    return np.full((len(x), 1), 1.25)


@pytest.mark.slow
def test_a_trajectory_is_that_of_scipy() -> None:
    """The robot in double precision, with the policy called at the control rate."""
    run, start = solver.load("pendulum-rfvi"), {"angle": 2.0, "angle_rate": 1.0}
    found = run.simulate(start, 1.0, parameters={"mass": 1.3})
    robot = modelgen.load("pendulum", directory=shipped("generated"))
    theta = np.array([found.parameters[name] for name in robot.parameter_names])
    assert theta[robot.parameter_names.index("mass")] == pytest.approx(1.3)
    x = np.array([2.0, 1.0])
    for k, u in enumerate(found.u):
        np.testing.assert_allclose(np.cos(found.x[k] - x), 1.0, atol=1e-5)
        np.testing.assert_allclose(u, run.policy(found.x[k]), atol=1e-5)
        moved = solve_ivp(lambda _, y, u=u: robot.dynamics(y[None], u[None].astype(float), theta)[0], (0, 0.008), x)
        x = moved.y[:, -1]
    assert (found.t[0], found.t[-1], len(found.t)) == (0.0, 1.0, 126)
    assert found.state_names == ("angle", "angle_rate")


@pytest.mark.slow
def test_a_trajectory_has_the_figures_of_an_evaluation() -> None:
    found = solver.simulate("pendulum-rfvi", [0.2, 0.0], seconds=1.5, plant="harsh", observer=True, seed=3)
    assert found.is_success
    assert "success" in repr(found)
    assert found.total_reward == pytest.approx(found.state_reward + found.action_reward)
    assert -1.5 < found.total_reward < -0.8
    one = solver.simulate("pendulum-rfvi", seconds=0.1, plant="harsh", harsh="delay", observer=True, estimate="mass")
    assert len(one.u) > 1  # a text is one name, as in an evaluation
    figure = found.plot()
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "angle\n[rad]",
        "angle_rate\n[rad/s]",
        "torque\n[N m]",
    ]


def test_a_row_of_a_table_is_a_start_by_name() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    start = pandas.Series({"angle_rate": 1.0, "angle": 0.5})
    np.testing.assert_array_equal(solver.simulate(zero, start, 0.1, robot="pendulum").x[0], [0.5, 1.0])


@pytest.mark.slow
def test_a_dataframe_has_a_row_for_each_period(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    found = solver.simulate(zero, {"angle": 1.0}, 0.1, robot="pendulum")
    table = found.to_dataframe()
    assert list(table.columns) == ["angle", "angle_rate", "torque"]
    assert table.index.name == "time"
    np.testing.assert_array_equal(table[["angle", "angle_rate"]].to_numpy(), found.x)
    assert table["torque"].isna().tolist() == [False] * 12 + [True]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SolverError, match="pip install pandas"):
        found.to_dataframe()


@pytest.mark.parametrize(
    ("x0", "seconds", "said"),
    [
        ([1.0], None, "give 2 finite numbers: angle, angle_rate"),
        ({"angl": 1.0}, None, "Did you mean `angle`"),
        ([0.0, 9.0], None, "angle_rate beyond the limit"),
        ([0.0, np.nan], None, "finite numbers"),
        ("up", None, "not an array of real numbers"),
        (np.ma.array([1.0, 0.0], mask=[True, False]), None, "masked"),
        (None, 0.0, "from 0.008 to 8000"),
        (None, float("nan"), "from 0.008 to 8000"),
        (None, "1", "seconds is '1'; give a number or None"),
    ],
)
def test_what_is_not_possible_is_refused(x0: Any, seconds: Any, said: str) -> None:
    with pytest.raises(SolverError, match=said):
        solver.simulate("pendulum-rfvi", x0, seconds)


def test_a_rotation_beyond_its_limit_is_no_start() -> None:
    compiled = limited_body()

    def motion(angle: float) -> Array:
        x0 = {"attitude_qw": -np.cos(angle / 2.0), "attitude_qy": np.sin(angle / 2.0)}
        return solver.simulate(lambda x: np.zeros((len(x), 3)), x0, 0.1, robot=compiled).x

    assert_close(motion(0.499)[:, 2], [np.sin(0.2495)] * 3)
    with pytest.raises(SolverError, match="start has attitude beyond the limit"):
        motion(0.6)


def test_a_quaternion_of_zero_is_no_start() -> None:
    with pytest.raises(SolverError, match="quaternion of `attitude` in the start is zero, which is no rotation"):
        solver.simulate(lambda x: np.zeros((len(x), 3)), {"attitude_qw": 0.0}, 0.2, robot="satellite")


@pytest.mark.slow
def test_runs_policies_and_functions_are_evaluated_alike(finished_run: Path, short: str) -> None:
    run, heavier = solver.load(finished_run), {"mass": 1.3}
    expected = solver.evaluate(str(finished_run), episodes=20, parameters=heavier).statistics
    assert expected != solver.evaluate(run, episodes=20).statistics
    for subject in (run, run.policy, run.folder):
        assert solver.evaluate(subject, episodes=20, parameters=heavier).statistics == expected
    act: dict[str, Any] = {"robot": "pendulum", "generated": short}
    found = solver.evaluate(lambda x: run.policy(x), **act, episodes=20, parameters=heavier).statistics
    for name, value in expected.items():
        assert_close(found[name], value, periods=25)
    closed = solver.load_policy(finished_run, reaction_periods=0)
    assert solver.evaluate(closed, episodes=5).reaction_periods == 0.0


@pytest.mark.slow
def test_inputs_of_a_function_are_clipped() -> None:
    much, most = (
        solver.evaluate(act, robot="pendulum", episodes=3).statistics for act in (lambda x: 99 + zero(x), two)
    )
    assert much == most


def two(x: Array) -> Array:
    return 2 * half(x)


@pytest.mark.parametrize(
    ("subject", "options", "said"),
    [
        (3, {"robot": "pendulum"}, "3 is no policy"),
        (zero, {}, "robot='pendulum'"),
        (zero, {"robot": "pendulum", "reaction_periods": 1.0}, "reaction_periods is for runs"),
        (lambda x: x, {"robot": "pendulum"}, r"shape \(100, 2\)"),
        (lambda _: "left", {"robot": "pendulum"}, "result of <lambda> is not an array of real numbers"),
        (lambda x: np.ma.array(zero(x), mask=True), {"robot": "pendulum"}, "masked"),
        (lambda x: np.nan + zero(x), {"robot": "pendulum"}, r"<lambda> returned \[nan\] at the state .*finite inputs"),
        (zero, {"robot": "pendulum", "parameters": {"mass": True}}, "mass is True; give a number in SI units"),
        ("pendulum-rfvi", {"robot": "pendulum"}, "has its own; leave robot out"),
        (Path("nothing"), {}, "is not a run folder"),
    ],
)
def test_what_is_no_policy_is_refused(subject: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SolverError, match=said):
        solver.evaluate(subject, **options)


@pytest.mark.slow
@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("observation", ["features", "state"])
def test_an_agent_of_stable_baselines_is_evaluated(ours: bool, observation: Any) -> None:
    """Its deterministic actions, from the observations of its environment, in every control period."""
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from solver.gym import RobotEnv, vec_env

    environment: Any = vec_env("pendulum", 2, observation=observation)
    environment = environment if ours else RobotEnv("pendulum", observation=observation)
    agent = sb3.PPO("MlpPolicy", environment, seed=1, device="cpu", n_steps=32, batch_size=32)
    agent.learn(64)

    def act(x: Array) -> Array:
        seen = np.stack([np.cos(x[:, 0]), np.sin(x[:, 0]), x[:, 1] / 8], 1) if observation == "features" else x
        return 2.5 * agent.predict(seen, deterministic=True)[0].clip(-1, 1)

    short: Any = {"episodes": 5, "seconds": 0.4}
    expected = solver.evaluate(act, robot="pendulum", **short).statistics
    for name, value in solver.evaluate(agent, **short).statistics.items():
        assert_close(value, expected[name], periods=50)
    agent.env = None
    assert solver.evaluate(agent, robot="pendulum", **short).robot == "pendulum"
    with pytest.raises(SolverError, match=r"\b[23] .*planar_arm3 .*6"):
        solver.evaluate(agent, robot="planar_arm3")


@pytest.mark.slow
def test_an_agent_with_normalised_observations_is_evaluated_with_them() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from stable_baselines3.common.vec_env import VecNormalize

    from solver.gym import vec_env

    environment: Any = VecNormalize(vec_env("pendulum", 2, observation="state"), norm_reward=False)
    agent = sb3.PPO("MlpPolicy", environment, seed=1, device="cpu", n_steps=32, batch_size=32)
    agent.learn(64)
    mean, deviation = environment.obs_rms.mean, np.sqrt(environment.obs_rms.var + environment.epsilon)

    def act(x: Array) -> Array:
        seen = ((x - mean) / deviation).clip(-10, 10).astype(np.float32)
        return 2.5 * agent.predict(seen, deterministic=True)[0].clip(-1, 1)

    expected = solver.evaluate(act, robot="pendulum", episodes=5).statistics
    for name, value in solver.evaluate(agent, episodes=5).statistics.items():
        assert_close(value, expected[name], periods=625)


@pytest.mark.slow
def test_a_late_policy_succeeds_in_more_time(capsys: pytest.CaptureFixture[str]) -> None:
    """With 1.6 times the mass the shipped cFVI needs one swing more: it is upright just after the task's 5 s."""
    words = ["evaluate", "pendulum-cfvi", "--set", "mass=1.6x", "--episodes", "4", "--json"]
    shares = {}
    for seconds in (5.0, 8.0):
        assert main([*words, "--seconds", f"{seconds:g}"]) == 0
        result = json.loads(capsys.readouterr().out)
        shares[seconds] = result["success_rate"]
        assert result["horizon"] == (None if seconds == 5.0 else seconds)
    assert shares == {5.0: 0.0, 8.0: 1.0}


def test_jumps_have_their_own_time() -> None:
    with pytest.raises(SolverError, match="leave one out"):
        solver.evaluate("pendulum-rfvi", seconds=1.0, jump=0.5)


@pytest.mark.slow
def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    episodes: Any = np.int64(2)
    result = solver.evaluate("pendulum-rfvi", seconds=0.1, episodes=episodes)
    assert json.loads(json.dumps(result.to_json()))["episodes"] == 2


@pytest.mark.slow
def test_a_rollout_with_estimates_starts_where_one_without_does(trained_family: Callable[[str], Path]) -> None:
    """The reference moves the target, at which the state is that nobody names."""
    run = trained_family("lean")
    words: dict[str, Any] = {"parameters": {"lean": 0.3, "mass": 1.2}, "observer": True, "seconds": 0.1}
    for x0 in ({"angle_rate": 0.5}, None):
        plain = solver.simulate(run, x0, **words)
        told = solver.simulate(run, x0, **words, estimate=["told"])
        np.testing.assert_allclose(told.x[0], plain.x[0], atol=1e-6)
    np.testing.assert_allclose(solver.simulate(run, {"angle_rate": 0.5}, **words).x[0], np.array([0.3, 0.5]), atol=1e-6)
