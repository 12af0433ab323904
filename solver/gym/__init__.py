"""Gymnasium environments of the robots.

Importing this package registers the shipped robots, so that `gymnasium.make("robust-value-iteration/pendulum-v0")`
works. `register()` adds the robots of ./generated, and `register(folder)` the robots of another folder. The artifact of
a robot is looked up when an environment is made: in ./generated, then among the shipped ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelgen.artifact.folder import SHIPPED, known
from solver.errors import SolverError

if TYPE_CHECKING:
    from solver.gym.environment import RobotEnv, RobotVectorEnv
    from solver.gym.stable_baselines import vec_env

__all__ = ["RobotEnv", "RobotVectorEnv", "register", "vec_env"]

try:
    import gymnasium
except ImportError as error:
    raise SolverError(
        "solver.gym needs Gymnasium, which is not installed: pip install 'robust-value-iteration[gym]'"
    ) from error

NAMESPACE = "robust-value-iteration"


def register(directory: str | Path | None = None) -> list[str]:
    """Ids of the robots of a folder of artifacts, after registration with Gymnasium.

    Without a folder, these are the robots of ./generated and the shipped ones. A registered id is replaced. Raises
    SolverError for a folder without artifacts.
    """
    if not (names := known(directory)):
        raise SolverError(f"there is no artifact in {directory}; write one with `modelgen build`, or name its folder")
    return _register(names, None if directory is None else str(directory))


def _register(names: list[str], generated: str | None) -> list[str]:
    ids = [f"{NAMESPACE}/{name}-v0" for name in names]
    for name, identifier in zip(names, ids, strict=True):
        gymnasium.registry.pop(identifier, None)
        gymnasium.register(
            identifier,
            entry_point="solver.gym.environment:RobotEnv",
            vector_entry_point="solver.gym.environment:RobotVectorEnv",
            kwargs={"robot": name, "generated": generated},
        )
    return ids


_register(known(SHIPPED), None)


def __getattr__(name: str) -> Any:
    """Import the environments, and Torch with them, when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "vec_env":
        from solver.gym.stable_baselines import vec_env

        return vec_env
    from solver.gym import environment

    return getattr(environment, name)
