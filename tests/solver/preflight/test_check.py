"""A training stops before it writes anything where no input within the limits holds the target."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from sympy import cos, pi, sin

import modelgen
import solver
from modelgen import Quadratic, Robot
from modelgen.builder import build_artifact
from solver.cli import main
from solver.errors import SolverError
from solver.preflight import weak_corners
from solver.problem.context import Given
from tests.solver.conftest import TINY, words_of

LENGTH, MASS, TORQUE = 0.3, 0.5, 0.5
SMALL: dict[str, Any] = {**TINY, "iterations": 2, "preview": 0}
#: Gravity less the torque at 45 degrees, in rad/s^2.
LEFT = 9.81 * math.sin(math.pi / 4) / LENGTH - TORQUE / (MASS * LENGTH**2)


def arm(free: tuple[str, ...] = ()) -> Robot:
    """An arm at 45 degrees that is heavier than its motor."""
    robot = Robot("heavy_arm")
    angle = robot.revolute("angle", limit=3, rate_limit=8)
    mass = robot.parameter("mass", MASS, "kg", tolerance=0.3)
    robot.point_mass(mass, (LENGTH * sin(angle), LENGTH * cos(angle)))
    robot.apply(angle, robot.input("torque", TORQUE, "N m"))
    robot.task(
        target={"angle": pi / 4},
        state_cost=(angle - pi / 4) ** 2 + 0.05 * angle.rate**2,
        action_cost=Quadratic(0.01),
        start={"angle": (0, 0.5)},
        horizon=1,
        weight_at_horizon=0.65,
        control_rate=25,
        free=free,
    )
    return robot


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("generated")
    build_artifact(arm(), folder)
    return str(folder)


def test_python_names_what_moves_at_the_target_and_by_how_much(generated: str, tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=rf"angle_rate .* {LEFT:.3g} rad/s per second") as caught:
        solver.train("heavy_arm", generated=generated, out=tmp_path / "run", **SMALL)
    assert "With unheld_target the training begins" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_stops_until_it_is_told_to_go_on_and_a_resumed_one_does_not_ask(
    generated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "heavy_arm", "--generated", generated, "--out", str(tmp_path / "run"), "--preview", "20"]
    words += [word for name, value in TINY.items() for word in words_of(name, value)]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()  # and no preview, which takes 20 s
    assert "--unheld-target" in line
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings(action="ignore"):
        solver.train(
            "heavy_arm", generated=generated, out=tmp_path / "run", unheld_target=True, callback=interrupted, **SMALL
        )
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_sweep_and_a_reproduction_make_the_same_checks_before_any_training(
    generated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each robot once for all seeds; the trainings themselves do not search again. One is made, in this process."""
    monkeypatch.setattr("solver.jobs.SOLVER", "import sys; sys.exit(3)")
    settings = {**TINY, "iterations": 1, "adversaries": {}}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    (tmp_path / "s.toml").write_text(f'robots = ["heavy_arm"]\nseeds = [0, 1]\n[settings.tiny]\n{text}')
    sweep = ["sweep", str(tmp_path / "s.toml"), "--generated", generated, "--out", str(tmp_path / "sweep")]
    words = ["reproduce", "gallery", "--robots", "heavy_arm", "--methods", "rfvi", "--seeds", "0"]
    words += ["--generated", generated, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    for command in (sweep, words):
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: no input within the limits (torque")
        assert "--unheld-target" in line
    assert not list(tmp_path.rglob("*.pt"))
    assert main([*sweep, "--unheld-target", "--preview", "1"]) == 1
    said = capsys.readouterr().err.splitlines()
    begin = said.index(next(line for line in said if line.startswith("2 trainings")))
    searched = [line for line in said[:begin] if " search of " in line]
    assert len(searched) == 1
    assert searched[0].startswith("heavy_arm, tiny: warning: ")
    first, second = (log.read_text().splitlines()[-1] for log in tmp_path.glob("sweep/*/training.log"))
    assert "--resume" in second
    assert main(shlex.split(first.removeprefix("$ solver "))) == 0
    assert " search of " not in capsys.readouterr().err


@pytest.mark.slow
def test_speeds_that_may_end_anywhere_need_not_be_held(tmp_path: Path) -> None:
    build_artifact(arm(free=("angle_rate",)), tmp_path / "generated")
    with warnings.catch_warnings(action="ignore"):
        solver.train("heavy_arm", generated=str(tmp_path / "generated"), out=tmp_path / "run", **SMALL)


@pytest.mark.slow
def test_a_corner_of_a_reference_is_judged_at_its_own_target() -> None:
    """A force that fades along a rail moves nothing where the reference ends."""
    robot = Robot("fading")
    goal, s = robot.reference("goal", limit=1, unit="m"), robot.prismatic("s", limit=2, rate_limit=4)
    robot.point_mass(1.3, (s, 0))
    robot.apply(s, (1 - s) * robot.input("force", 12, "N"))
    cost = 2 * (s - goal) ** 2 + 0.3 * s.rate**2
    task = dict(state_cost=cost, action_cost=Quadratic(0.05), target=dict(s=goal), start=dict(s=(0, 0.2)))
    robot.task(**task, horizon=4, weight_at_horizon=0.5, control_rate=50)
    compiled = modelgen.compile(robot, dtype="float32")
    assert weak_corners(compiled, (Given("goal", -1.0, 0.5),)) == []
    (text,) = weak_corners(compiled, (Given("goal", -1.0, 1.0),))
    assert text.startswith("at the corner of --given with goal 1, near the target no input reaches a motion of s_rate")
