"""A robot whose inputs command velocities, so that no speed is a state: success, horizon, sensors, training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sympy import sin

import modelgen
import solver
from modelgen import Quadratic, Robot
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.observer import Observer, make_sensing, usual_counts
from solver.plants.harsh import Harsh, Harshness, Sensors
from solver.plants.outcome import settling_periods, succeeded, tolerances
from solver.preflight.warnings import forewarnings
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.integrator import integrate_period
from solver.problem.robots import largest_rates
from solver.training.settings import make_settings
from tests.solver.references import unicycle


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(unicycle())


def test_largest_rates_are_those_of_full_inputs() -> None:
    np.testing.assert_allclose(largest_rates(unicycle()), [1.0, 1.0, 2.0], rtol=2e-3)


def test_a_success_is_judged_by_the_pose(problem: Problem) -> None:
    count = settling_periods(problem) + 1
    (side, _, turn), rates = tolerances(problem)
    assert len(rates) == 0
    ends = torch.tensor([[0.9, -0.9, 0.9], [1.1, 0.0, 0.0], [0.0, 0.0, 1.1]]) * torch.stack([side, side, turn])
    whole = ends[:1] - torch.tensor([0.0, 0.0, 2 * math.pi])
    assert succeeded(problem, torch.cat([ends, whole]).expand(count, -1, -1)).tolist() == [True, False, False, True]


def test_a_family_has_the_time_of_its_slowest_robot() -> None:
    slow = Problem(unicycle(), given=(Given("kept", 0.5, 1.0),))
    assert slow.horizon == pytest.approx(2 * Problem(unicycle()).horizon, rel=1e-6)


def test_encoders_count_and_stiction_needs_a_drive(problem: Problem) -> None:
    x = torch.tensor([[0.5001, -0.2, 0.3]])
    sensors = Sensors(problem, 1.0, 0.0, 0, x)
    counts = usual_counts(problem)
    moved = torch.tensor([[0.7003, -0.1, 0.31]])
    error = (sensors.read(moved) - moved).abs()[0]
    assert bool((error <= counts / 2 + 1e-6).all())
    assert bool((error > 0).any())
    with pytest.raises(SolverError, match="speed of unicycle commands a velocity"):
        Harsh(problem, Harshness(stiction=1.0))


def test_no_warning_is_about_missing_speeds() -> None:
    settings = make_settings("fast", unicycle(), "cfvi")
    assert not any("out of reach" in text for text in forewarnings(unicycle(), settings))


def test_an_observer_finds_the_pose_and_a_parameter(problem: Problem) -> None:
    observer = Observer(problem, make_sensing(problem, usual_counts(problem)), [0])
    x, theta = torch.tensor([[0.4, -0.3, 0.8]]), torch.tensor([1.3])
    observer.reset()
    for period in range(60):
        estimate = observer.estimate(x)
        u = torch.tensor([[0.8, math.sin(0.3 * period)]])
        observer.sent(u)
        x, _ = integrate_period(problem, x, u, theta)
    assert float((estimate - x).abs().max()) < 0.1
    assert observer.parameters is not None
    assert float(observer.parameters[0, 0]) == pytest.approx(1.3, abs=0.02)


def follower() -> CompiledRobot:
    """A car at a speed of 2 m/s beside a straight path, without an uncertain parameter."""
    robot = Robot("follower")
    away, yaw = robot.prismatic("away", limit=1), robot.revolute("yaw", limit=1.5)
    robot.flow(away, 2.0 * sin(yaw))
    robot.flow(yaw, robot.input("turn", 2, "rad/s"))
    robot.task(
        state_cost=away**2 + yaw**2,
        action_cost=Quadratic(0.2),
        start=dict(away=(0, 0.3)),
        horizon=3,
        weight_at_horizon=0.5,
        control_rate=20,
    )
    return modelgen.compile(robot, dtype="float32")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> solver.Run:
    """A small training of it."""
    sizes: dict[str, Any] = {"iterations": 4, "states": 1024, "width": 16, "members": 1}
    folder = tmp_path_factory.mktemp("kinematic") / "run"
    return solver.train(follower(), algorithm="cfvi", seed=0, out=folder, preview=0, **sizes)


@pytest.mark.slow
def test_a_training_brings_it_to_the_path(run: solver.Run) -> None:
    assert run.evaluate().statistics["success_rate"] == 1.0
    harsh = run.evaluate(plant="harsh", harsh=["delay", "encoder", "noise"], observer=True)
    assert harsh.statistics["success_rate"] == 1.0


@pytest.mark.slow
def test_what_enters_the_basin_is_proven_without_parameters(
    run: solver.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = str(tmp_path / "proof.json")
    assert main(["prove", str(run.folder), "--spread", "0", "--reach", "3", "--jobs", "1", "--out", proof]) == 0
    words = capsys.readouterr().out
    assert words.count("% of the basin's volume") == 1
    share = float(words.partition("nominal     from ")[2].partition(" %")[0])
    assert share > 20
    assert main(["check", proof, "--one-in", "100", "--jobs", "1"]) == 0
    assert f"{share:.3g} % of the domain enters the set" in capsys.readouterr().out
