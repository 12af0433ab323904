"""Limit of a task over its starts, compared with the Riccati recursion, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sympy import cos, sin

import modelgen
from modelgen import Quadratic, Robot
from solver.cli import main
from solver.errors import SolverError
from solver.oracles.limit import find_limit
from tests.solver.oracles.linear_quadratic import riccati

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def test_mean_limit_over_the_starts_is_the_mean_over_the_gaussian(slider: str) -> None:
    """E[x' P x] = mean' P mean + deviation^2 P_11. Quantiles of variance 1 give it exactly."""
    limit = find_limit("slider", {}, 0, 0, slider, starts=3)
    exact, _, p = riccati(np.array([0.5, 0.0]), 1.3, 0.4)
    starts = [start_limit.start for start_limit in limit.starts]
    assert len(starts) == 3
    assert limit.reward == pytest.approx(exact - 0.1**2 * p[0, 0], rel=1e-5)
    assert limit.worst == int(np.argmax([x[0] for x in starts]))
    # Without a force the slider stays where it is, at a cost of 2 s^2 for 3 s.
    assert limit.idle_return == pytest.approx(-6.0 * np.mean([x[0] ** 2 for x in starts]), rel=1e-4)


def held_arm(angle: float | None = None) -> Robot:
    """An arm that is held against its weight at a reference, or at an angle that the file states."""
    robot = Robot("arm")
    arm = robot.revolute("arm", limit=1.5, rate_limit=6)
    goal = robot.reference("goal", limit=0.8, unit="rad") if angle is None else angle
    robot.point_mass(robot.parameter("mass", 0.6, "kg", tolerance=0.5), (0.5 * cos(arm), 0.5 * sin(arm)))
    robot.apply(arm, robot.input("torque", 8, "N m"))
    robot.task(
        state_cost=5 * (arm - goal) ** 2 + 0.1 * arm.rate**2,
        action_cost=Quadratic(0.02),
        target=dict(arm=goal),
        start=dict(arm=(-0.4, 0.1)),
        horizon=1,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    return robot


def test_limit_at_a_reference_is_that_of_a_robot_whose_file_states_the_target(tmp_path: Path) -> None:
    """State cost, starts, and the input from which the action cost is measured move with the reference."""
    for folder, angle in (("moved", None), ("stated", 0.5)):
        modelgen.build(held_arm(angle), tmp_path / folder)
    moved = find_limit("arm", {"goal": 0.5}, 0, 0, str(tmp_path / "moved"), starts=2)
    stated = find_limit("arm", {}, 0, 0, str(tmp_path / "stated"), starts=2)
    assert moved.reward == pytest.approx(stated.reward, rel=1e-5)
    assert moved.idle_return == pytest.approx(stated.idle_return, rel=1e-5)
    with pytest.raises(SolverError, match=r"\b2\b.*-0\.8 to 0\.8"):
        find_limit("arm", {"goal": 2.0}, 0, 0, str(tmp_path / "moved"))


def test_solver_limit_of_a_run_prints_the_gap_to_the_limit(gallery_run: Path, capsys: Capture) -> None:
    assert main(["limit", str(gallery_run), "--guesses", "0", "--starts", "2", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["robot"] == "pendulum"
    assert content["label"].startswith("pendulum-rfvi")
    assert content["gap"] == pytest.approx(content["limit"] - content["run_return"])
    assert content["gap"] > 0.0
    gain = content["limit"] - content["idle_return"]
    assert content["gap_percent"] == pytest.approx(100.0 * content["gap"] / gain)
    assert -32.0 < content["limit"] < -29.5
    assert content["at_target"] is True
    angles, limits = zip(*((start["start"]["angle"], start["limit"]) for start in content["starts"]), strict=True)
    assert len(limits) == 2
    assert np.mean(angles) == pytest.approx(np.pi)
    assert np.std(angles) == pytest.approx(np.sqrt(0.001))
    assert content["limit"] == pytest.approx(np.mean(limits))


def test_solver_limit_warns_if_the_best_motion_does_not_end_at_the_target(slider: str, capsys: Capture) -> None:
    words = ["limit", "slider", "--generated", slider, "--guesses", "1", "--set", "mass=2", "--starts"]
    assert main([*words, "1"]) == 0
    out, err = capsys.readouterr()
    exact = riccati(np.array([0.5, 0.0]), 2.0, 0.4)[0]
    assert out.startswith(f"slider, mass=2, limit {exact:.3f} (from ")
    assert err.startswith("warning: ")
    assert main([*words, "2"]) == 0
    out, err = capsys.readouterr()
    assert "(mean of 2 starts;" in out
    assert out.count("not at the target") == 1
    assert out.count(", worst") == 1
    assert "1 of 2 starts" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pendulm"], "Did you mean `pendulum`"),
        (["pendulum", "--guesses", "-1"], "--guesses"),
        (["pendulum", "--starts", "0"], "--starts"),
        (["pendulum", "--seed", "-1"], "--seed"),
        (["pendulum", "--set", "mas=2"], "Did you mean `mass`"),
    ],
)
def test_wrong_option_of_solver_limit_is_an_error(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["limit", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_solver_limit_of_a_folder_without_a_run_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    assert main(["limit", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
