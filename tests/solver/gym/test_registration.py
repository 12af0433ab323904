"""Registration of shipped robots, and of the robots of a folder, with Gymnasium."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from modelgen.artifact.folder import SHIPPED, known
from solver.errors import SolverError

gymnasium = pytest.importorskip("gymnasium")


import solver.gym  # noqa: E402
from solver.gym import NAMESPACE, register  # noqa: E402
from solver.gym.environment import RobotVectorEnv  # noqa: E402

PENDULUM = f"{NAMESPACE}/pendulum-v0"


def test_every_shipped_robot_is_registered() -> None:
    ids = {f"{NAMESPACE}/{name}-v0" for name in known(SHIPPED)}
    assert ids <= set(gymnasium.registry)
    assert PENDULUM in ids


def test_import_registers_no_robot_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`register` does. The artifact is looked up when an environment is made."""
    mine = f"{NAMESPACE}/mine-v0"
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "mine").symlink_to(SHIPPED / "pendulum")
    monkeypatch.chdir(tmp_path)
    registry: dict[str, object] = {}
    for module in (gymnasium, gymnasium.envs.registration):
        monkeypatch.setattr(module, "registry", registry)
    importlib.reload(solver.gym)
    assert mine not in registry
    assert PENDULUM in registry
    assert mine in solver.gym.register()
    assert gymnasium.make(mine).unwrapped.problem.robot.name == "pendulum"


def test_register_replaces_an_id_by_the_robot_of_another_folder(tmp_path: Path) -> None:
    (tmp_path / "pendulum").symlink_to(SHIPPED / "pendulum")
    try:
        assert register(tmp_path) == [PENDULUM]
        env = gymnasium.make(PENDULUM).unwrapped
        assert env.problem.robot.folder == tmp_path / "pendulum"
    finally:
        register()
    assert gymnasium.make(PENDULUM).unwrapped.problem.robot.folder != tmp_path / "pendulum"


def test_a_folder_without_artifacts_has_no_robot_to_register(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="no artifact"):
        register(tmp_path)


def test_make_vec_makes_the_vector_environment() -> None:
    env = gymnasium.make_vec(PENDULUM, num_envs=3, vectorization_mode="vector_entry_point", start="uniform")
    assert isinstance(env.unwrapped, RobotVectorEnv)
    observations, infos = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert (observations.shape, infos) == ((3, 3), {})
