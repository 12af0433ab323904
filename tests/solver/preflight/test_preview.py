"""Previews of a task that can be solved, of a task that cannot, and of a motion along a limit."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import modelgen
from modelgen.derivation import model_file
from solver.errors import SolverError
from solver.oracles.search import PERIODS
from solver.oracles.trajectory import FirstMotion, NonlinearProgram, PlannedMotion
from solver.plants.plant import Nominal
from solver.preflight import GUESSES, Preview, preflight, preview, previewed
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.training.lifecycle import describe

SECONDS = 20.0
UNSEEN = Path(__file__).parents[3] / "benchmarks" / "unseen"


@pytest.mark.slow
def test_motion_of_a_solvable_task_has_the_same_return_on_the_plant() -> None:
    robot = load_robot("pendulum", "cpu", None)
    result = preview(robot, SECONDS)
    assert result.at_target
    assert not result.warnings()
    assert "a motion to the target returns -3" in result.text()
    assert result.idle_return == pytest.approx(-49.35, abs=0.01)  # 5 s at (pi sin(pi/2))^2
    assert result.best is not None
    problem = Problem(robot)
    hold = -(-625 // PERIODS)
    u = torch.tensor(result.best.u.repeat(hold, axis=0), dtype=torch.float32)
    simulation = Nominal(problem).begin(torch.tensor(result.best.x[:1], dtype=torch.float32))
    paid = 0.0
    for input_of_period in u:
        cost = problem.action_cost.cost(input_of_period[None]) * problem.control_step
        paid += float(cost + simulation.step(input_of_period[None]))
    assert -paid == pytest.approx(result.best.reward, rel=2e-2)  # the motion is unstable, and in single precision here
    assert abs(float(simulation.x[0, 0])) < 0.2


@pytest.mark.slow
def test_too_short_horizon_is_warned_of(short: str) -> None:
    line, warnings = previewed(load_robot("pendulum", "cpu", short), SECONDS)
    assert line == ""
    assert len(warnings) == 1
    assert "found" in warnings[0]
    assert "within 1 s" in warnings[0]
    assert "lengthen the horizon" in warnings[0]
    # pi^2, and 0.5 limit^3 8/pi^2 log(sqrt 2)
    assert "2.19" in warnings[0]
    assert "9.87" in warnings[0]


def test_kinds_of_guesses_alternate(short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leads nowhere takes at most half of the time, and does not keep the other kind from its turn."""
    tried: list[tuple[str, float]] = []

    def nothing(program: NonlinearProgram, _: object, guess: FirstMotion) -> None:
        tried.append((guess.name, program.patience))

    monkeypatch.setattr(NonlinearProgram, "solve", nothing)
    preview(load_robot("pendulum", "cpu", short), SECONDS)
    names, patience = zip(*tried, strict=True)
    assert [name.split()[0] for name in names[:7]] == ["the", *["random", "pumped"] * 3]
    assert [name.split()[2] for name in names[2:7:2]] == ["0.2", "0.4", "0.7"]  # gently first
    assert len(names) == len(set(names)) == 1 + 3 + GUESSES
    assert set(patience) == {SECONDS / 2.0}


def test_limit_that_binds_is_named() -> None:
    """A motion that turns for 2 of 5 s at the largest rate. The angle wraps and has no limit."""
    robot = load_robot("pendulum", "cpu", None)
    x = np.zeros((501, 2))
    x[:, 0], x[100:300, 1] = 4.0, 8.0
    result = Preview(
        robot, 1.0, -49.35, (10.0, 2.0), PlannedMotion(x, np.zeros((500, 1)), -30.0, "by hand"), at_target=True
    )
    (warning,) = result.warnings()
    assert "angle_rate at its limit of 8 rad/s for 2 s" in warning


def test_a_mean_start_at_the_target_has_no_line() -> None:
    """Doing nothing costs 0 there, and the returns of both motions are rounding."""
    robot = load_robot("pendulum", "cpu", None)
    still = PlannedMotion(np.zeros((501, 2)), np.zeros((500, 1)), -4e-13, "by hand")
    result = Preview(robot, 1.0, 2e-7, (0.0, 2.0), still, at_target=True)
    assert result.text() == ""
    assert not result.warnings()


def test_preview_of_no_seconds_is_empty_and_of_negative_seconds_an_error(short: str) -> None:
    robot = load_robot("pendulum", "cpu", short)
    assert previewed(robot, 0.0) == ("", [])
    with pytest.raises(SolverError, match="-1"):
        preflight(robot, describe(robot, None), preview=-1.0)


def test_mean_start_beyond_a_limit_is_a_warning_in_place_of_a_preview(short: str) -> None:
    robot = copy.copy(load_robot("pendulum", "cpu", short))
    task = dataclasses.replace(robot.metadata.task, start_mean=(3.0, 1e3))
    robot.metadata = dataclasses.replace(robot.metadata, task=task)
    line, (warning,) = previewed(robot, SECONDS)
    assert line == ""
    assert "angle_rate" in warning


LANE = "12 * (sqrt(y**2 + 0.03**2) - 0.03)"


@pytest.mark.slow
@pytest.mark.parametrize(("lane", "dead"), [(LANE, ()), ("8 * y**2", ("y",))])
def test_a_car_that_may_as_well_stop_beside_its_lane_is_warned_of(
    lane: str, dead: tuple[str, ...], tmp_path: Path
) -> None:
    """Standing 0.094 m beside the lane costs 4.9 or 0.42 in 6 s, and the best manoeuvre costs 1.8 with the first."""
    text = (UNSEEN / "rolling_car.py").read_text()
    assert LANE in text
    (tmp_path / "rolling_car.py").write_text(text.replace(LANE, lane))
    robot = modelgen.compile(model_file.load(str(tmp_path / "rolling_car.py")), dtype="float32")
    result = preview(robot, SECONDS)
    assert result.dead == dead
    assert ["rolling_car rolls" in text for text in result.warnings()] == [True] * len(dead)
