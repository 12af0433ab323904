"""Rollouts without a policy compared with closed forms, and animations as files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import modelgen
from modelgen import ModelError
from modelgen.artifact import folder as artifact
from modelgen.cli import main
from modelgen.loader import CompiledRobot
from modelgen.report.animation import Signal, animate, leaning, rollout, signal
from modelgen.style.gif import FRAMES
from tests.modelgen.support.declared import TASK, cart


@pytest.fixture(scope="module")
def pendulum() -> CompiledRobot:
    return modelgen.load("pendulum", backend="casadi", directory=artifact.SHIPPED, parallel=False)


@pytest.mark.slow
def test_a_small_swing_is_that_of_a_textbook(pendulum: CompiledRobot) -> None:
    states = rollout(pendulum, np.array([np.pi - 1e-3, 0.0]), {}, 4)
    time = np.arange(4 * FRAMES + 1) / FRAMES
    frequency = np.sqrt(1.5 * 9.81)  # a rod of 1 m that hangs from its end
    np.testing.assert_allclose(states[:, 0], np.pi - 1e-3 * np.cos(frequency * time), atol=2e-9)


def test_a_sinusoidal_input_moves_the_rod_as_its_closed_form(pendulum: CompiledRobot) -> None:
    """The upright rod falls under a torque: angle'' = k angle + 3 torque while the angle is small."""
    states = rollout(pendulum, np.zeros(2), {"torque": Signal(1e-4, 0.5)}, 0.8)
    time, pulse, root = 0.8, np.pi, np.sqrt(1.5 * 9.81)
    expected = 3e-4 / (pulse**2 + root**2) * (pulse / root * np.sinh(root * time) - np.sin(pulse * time))
    assert states[-1, 0] == pytest.approx(expected, rel=1e-6)
    assert rollout(pendulum, np.zeros(2), {"torque": Signal(0.0)}, 0.2)[-1] == pytest.approx(0)


@pytest.mark.slow
def test_a_double_pendulum_without_input_keeps_its_energy() -> None:
    robot = modelgen.load("planar_arm2", backend="casadi", directory=artifact.SHIPPED, parallel=False)
    states = rollout(robot, leaning(robot), {}, 2)

    def energy(shoulder: np.ndarray, elbow: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """From the positions of the model file's bodies, with velocities by hand."""
        total = first + second
        lower = (0.5 * total) ** 2 + first**2 + first * total * np.cos(elbow)
        kinetic = 50 * (0.5 * first) ** 2 / 2 + 50 * lower / 2 + 5 * first**2 / 2
        kinetic += (10 * first**2 + 10 * total**2) / 2 + 0.01 * ((100 * first) ** 2 + (first + 100 * second) ** 2) / 2
        heights = 50 * 0.5 * np.sin(shoulder) + 50 * (np.sin(shoulder) + 0.5 * np.sin(shoulder + elbow))
        return kinetic + 9.81 * (heights + 5 * np.sin(shoulder))

    energies = energy(*states.T)
    assert np.ptp(states[:, 0]) > 0.5
    assert np.ptp(energies) < 1e-6 * np.abs(energies).max()


@pytest.mark.slow
def test_a_stiff_robot_moves_as_its_closed_form() -> None:
    """At 2000 N s/m, steps of the simulation rate (500 Hz) would diverge; the build chose shorter ones."""
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.damp(s, 2000.0)
    robot.task(**{**TASK, "state_cost": s**2})
    states = rollout(modelgen.compile(robot), np.array([0.0, 2.0]), {"force": Signal(3.0)}, 0.2)
    np.testing.assert_allclose(states[1:, 1], 3.0 / 2000.0, rtol=1e-3)


def test_the_command_writes_a_gif_that_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["animate", "cartpole", "--seconds", "0.4", "--start", "pole=pi/2", "--input", "force=2@0.5"]) == 0
    assert capsys.readouterr().out.startswith("cartpole.gif: 0.4 s of cartpole")
    with Image.open(tmp_path / "cartpole.gif") as picture:
        assert getattr(picture, "n_frames", 1) == 11
        assert picture.info["duration"] == 40
        assert max(picture.size) == 320
        first = np.asarray(picture.convert("L"))
        picture.seek(10)
        last = np.asarray(picture.convert("L"))
    assert (first < 128).sum() > 300
    assert (first != last).any()
    assert [path.name for path in tmp_path.iterdir()] == ["cartpole.gif"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--start", "angl=1"], "Did you mean `angle`"),
        (["--start", "angle=one"], "has no number behind"),
        (["--start", "angle_rate=9"], "angle_rate=9 is beyond its limit of 8 rad/s"),
        (["--input", "force=1"], "names no input of `pendulum`"),
        (["--input", "torque=1@0"], "no frequency above zero"),
        (["--input", "torque=1@x"], "torque=1@x has no frequency"),
        (["--seconds", "0"], "0.01"),
        (["--seconds", "61"], "60"),
        (["--out", "."], "is a folder"),
        (["--out", "picture.png"], "neither .gif nor .mp4"),
        (["--out", "file/picture.gif"], "cannot write file/picture.gif"),
        (["--out", "picture.mp4"], "need ffmpeg"),
    ],
)
def test_a_wrong_argument_of_animate_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (tmp_path / "file").write_text("")
    assert main(["animate", "pendulum", "--seconds", "0.04", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not installed")
def test_an_mp4_file_is_written(pendulum: CompiledRobot, tmp_path: Path) -> None:
    animate(pendulum, np.zeros((3, 2)), tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").stat().st_size > 500


def test_ffmpeg_gets_every_pixel_and_its_error_is_reported(
    pendulum: CompiledRobot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that replaces ffmpeg stores its input and then fails."""
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\ncat > {tmp_path}/pixels\necho no codec >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(ModelError, match=r"ffmpeg .*a\.mp4"):
        animate(pendulum, np.zeros((3, 2)), tmp_path / "a.mp4")
    words = (tmp_path / "told").read_text().split()
    width, height = map(int, words[words.index("-s") + 1].split("x"))
    assert (tmp_path / "pixels").stat().st_size == 3 * width * height
    assert not (tmp_path / "a.mp4").exists()


def test_signals_are_constant_or_sinusoidal() -> None:
    assert signal("torque", "2")(9.0) == 2
    assert signal("torque", "-2@0.25")(1.0) == pytest.approx(-2)
    with pytest.raises(ModelError, match="input torque=2@"):
        signal("torque", "2@")


@pytest.mark.slow
def test_a_motion_beyond_floating_point_numbers_is_reported(tmp_path: Path) -> None:
    (tmp_path / "unstable.py").write_text(UNSTABLE)
    assert main(["build", str(tmp_path / "unstable.py"), "--generated", str(tmp_path)]) == 0
    robot = modelgen.load("unstable", backend="casadi", directory=tmp_path, parallel=False)
    with pytest.raises(ModelError, match=r"`unstable`.* s. "):
        rollout(robot, np.array([1.0, 1.0]), {}, 5)
    with pytest.raises(ModelError, match=r"robot\.draw"):
        animate(robot, np.zeros((2, 2)), tmp_path / "a.gif")


UNSTABLE = """
from modelgen import LogCos, Robot
robot = Robot("unstable")
s = robot.prismatic("s", limit=2, rate_limit=2)
robot.kinetic_energy(s.rate**2 / 2)
robot.apply(s, robot.input("force", 1, "N") + s**3 + s.rate**3)
robot.task(state_cost=s**2, action_cost=LogCos(1.0), start={}, horizon=5, weight_at_horizon=0.7, control_rate=125)
"""


def test_a_rotation_stays_a_rotation() -> None:
    """The default start leans a body in space, and no start makes its quaternion longer."""
    robot = modelgen.load("satellite", parallel=False)
    (quaternion,) = (rotation.quaternion for rotation in robot.metadata.rotations)
    assert np.linalg.norm(leaning(robot)[quaternion]) == pytest.approx(1, abs=1e-12)
    long = 1.3 * leaning(robot)
    np.testing.assert_allclose(np.linalg.norm(rollout(robot, long, {}, 0.5)[:, quaternion], axis=1), 1, atol=1e-12)
