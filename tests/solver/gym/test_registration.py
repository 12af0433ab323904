"""Registration of shipped robots, and of the robots of a folder, with Gymnasium."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from modelgen.artifact.folder import SHIPPED, known

gymnasium = pytest.importorskip("gymnasium")


from solver.gym import NAMESPACE, register  # noqa: E402
from solver.gym.environment import RobotVectorEnv  # noqa: E402

PENDULUM = f"{NAMESPACE}/pendulum-v0"


def test_every_shipped_robot_is_registered() -> None:
    ids = {f"{NAMESPACE}/{name}-v0" for name in known(SHIPPED)}
    assert ids <= set(gymnasium.registry)
    assert PENDULUM in ids


@pytest.mark.slow
def test_import_registers_no_robot_of_the_working_folder(tmp_path: Path) -> None:
    """`register` does. The artifact is looked up when an environment is made."""
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


def test_register_replaces_an_id_by_the_robot_of_another_folder(tmp_path: Path) -> None:
    (tmp_path / "pendulum").symlink_to(SHIPPED / "pendulum")
    try:
        assert register(tmp_path) == [PENDULUM]
        env = gymnasium.make(PENDULUM).unwrapped
        assert env.problem.robot.folder == tmp_path / "pendulum"
    finally:
        register()
    assert gymnasium.make(PENDULUM).unwrapped.problem.robot.folder != tmp_path / "pendulum"


def test_make_vec_makes_the_vector_environment() -> None:
    env = gymnasium.make_vec(PENDULUM, num_envs=3, vectorization_mode="vector_entry_point", start="uniform")
    assert isinstance(env.unwrapped, RobotVectorEnv)
    observations, infos = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert (observations.shape, infos) == ((3, 3), {})
