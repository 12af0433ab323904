"""What is said of a task before a training: of one that can be solved, one that cannot, one that leans on a limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from modelgen.errors import ModelError
from solver.cli import main
from solver.oracles.search import PERIODS
from solver.oracles.trajectory import Guess, NonlinearProgram, Trajectory
from solver.plants.nominal import Nominal
from solver.preflight.preview import GUESSES, Preview, preview, previewed
from solver.problem.problem import Problem
from solver.problem.robots import load_robot

SECONDS = 20.0


def test_a_task_that_can_be_solved_gets_one_line() -> None:
    """The plant itself pays what the search says, and arrives."""
    robot = load_robot("pendulum", "cpu", None)
    found = preview(robot, SECONDS)
    assert found.at_target
    assert not found.warnings()
    assert "a motion to the target returns -3" in found.text()
    assert found.idle_return == pytest.approx(-49.35, abs=0.01)  # 5 s at (pi sin(pi/2))^2
    assert found.best is not None
    problem = Problem(robot)
    hold = -(-625 // PERIODS)
    u = torch.tensor(found.best.u.repeat(hold, axis=0), dtype=torch.float32)
    simulation = Nominal(problem).begin(torch.tensor(found.best.x[:1], dtype=torch.float32))
    paid = 0.0
    for each in u:
        cost = problem.action_cost.cost(each[None]) * problem.control_step
        paid += float(cost + simulation.step(each[None]))
    assert -paid == pytest.approx(found.best.reward, rel=2e-2)  # the motion is unstable, and in single precision here
    assert abs(float(simulation.x[0, 0])) < 0.2


def test_a_horizon_that_is_too_short_is_said(short: str) -> None:
    line, warnings = previewed(load_robot("pendulum", "cpu", short), SECONDS)
    assert line == ""
    assert len(warnings) == 1
    assert "found" in warnings[0]
    assert "within 1 s" in warnings[0]
    assert "lengthen the horizon" in warnings[0]
    # pi^2, and 0.5 limit^3 8/pi^2 log(sqrt 2)
    assert "half of the input limits costs 2.19, one at the start 9.87" in warnings[0]


def test_kinds_of_guesses_take_turns(short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leads nowhere takes at most half of the time, and does not keep the other kind from its turn."""
    tried: list[tuple[str, float]] = []

    def nothing(program: NonlinearProgram, _: object, guess: Guess) -> None:
        tried.append((guess.name, program.patience))

    monkeypatch.setattr(NonlinearProgram, "solve", nothing)
    preview(load_robot("pendulum", "cpu", short), SECONDS)
    names, patience = zip(*tried, strict=True)
    assert [name.split()[0] for name in names[:7]] == ["the", *["random", "pumped"] * 3]
    assert [name.split()[2] for name in names[2:7:2]] == ["0.2", "0.4", "0.7"]  # gently first
    assert len(names) == len(set(names)) == 1 + 3 + GUESSES
    assert set(patience) == {SECONDS / 2.0}


def test_a_limit_that_binds_is_named() -> None:
    """A motion that turns for 2 of 5 s at the largest rate; the angle wraps, and has no limit to lean on."""
    robot = load_robot("pendulum", "cpu", None)
    x = np.zeros((501, 2))
    x[:, 0], x[100:300, 1] = 4.0, 8.0
    found = Preview(
        robot, 1.0, -49.35, (10.0, 2.0), Trajectory(x, np.zeros((500, 1)), -30.0, "by hand"), at_target=True
    )
    (said,) = found.warnings()
    assert "keeps angle_rate at its limit of 8 rad/s for 2 s" in said


def test_no_preview_is_asked_for_or_can_be_made(
    short: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = load_robot("pendulum", "cpu", short)
    assert previewed(robot, 0.0) == ("", [])
    assert main(["train", "pendulum", "--preview", "-1"]) == 2
    assert "preview" in capsys.readouterr().err

    def unreadable(*_: object, **__: object) -> None:
        raise ModelError("generated/pendulum is gone")

    monkeypatch.setattr("modelgen.load", unreadable)
    _, warnings = previewed(robot, SECONDS)
    assert len(warnings) == 1
    assert "is not previewed" in warnings[0]
    assert "generated/pendulum is gone" in warnings[0]
