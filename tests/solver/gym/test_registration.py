"""Robots as environments by name: those that ship, those of another folder, and the old names."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from modelgen.artifact.folder import SHIPPED, known

gymnasium = pytest.importorskip("gymnasium")


import solver.gym  # noqa: E402
from solver.gym.environment import RobotVectorEnv  # noqa: E402
from solver.gym.registration import NAMESPACE, register  # noqa: E402

PENDULUM = f"{NAMESPACE}/pendulum-v0"


def test_every_robot_is_registered() -> None:
    ids = {f"{NAMESPACE}/{name}-v0" for name in known(SHIPPED)}
    assert ids <= set(gymnasium.registry)
    assert PENDULUM in ids


@pytest.mark.slow
def test_importing_registers_nothing_from_the_working_folder(tmp_path: Path) -> None:
    """Only `register` does, and it looks the artifact up when an environment is made."""
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "mine").symlink_to(SHIPPED / "pendulum")
    script = f"""
        import gymnasium, os, solver.gym
        assert "{NAMESPACE}/mine-v0" not in gymnasium.registry
        assert "{PENDULUM}" in gymnasium.registry
        assert "{NAMESPACE}/mine-v0" in solver.gym.register()
        assert gymnasium.make("{NAMESPACE}/mine-v0").unwrapped.problem.robot.name == "pendulum"
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_old_name_of_register_works_and_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"is now solver\.gym\.register"):
        assert solver.gym.environment.register is solver.gym.register


def test_robots_of_another_folder(tmp_path: Path) -> None:
    (tmp_path / "pendulum").symlink_to(SHIPPED / "pendulum")
    try:
        assert register(tmp_path) == [PENDULUM]
        env = gymnasium.make(PENDULUM).unwrapped
        assert env.problem.robot.folder == tmp_path / "pendulum"
    finally:
        register()
    assert gymnasium.make(PENDULUM).unwrapped.problem.robot.folder != tmp_path / "pendulum"


def test_vector_by_name() -> None:
    env = gymnasium.make_vec(PENDULUM, num_envs=3, vectorization_mode="vector_entry_point", start="uniform")
    assert isinstance(env.unwrapped, RobotVectorEnv)
    observations, infos = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert (observations.shape, infos) == ((3, 3), {})


def test_the_old_name_warns_and_registers_the_robots_of_the_working_folder(
    slider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "generated").symlink_to(slider)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("solver.environment", None)
    with pytest.warns(DeprecationWarning, match=r"called solver\.gym now"):
        import_module("solver.environment")
    assert "robust-value-iteration/slider-v0" in gymnasium.registry
    gymnasium.registry.pop("robust-value-iteration/slider-v0")
