"""Registration of the robots with Gymnasium, with ids such as `robust-value-iteration/pendulum-v0`.

An id has only the robot's name. The artifact is looked up when an environment is made: in ./generated, then among the
shipped ones.
"""

from __future__ import annotations

from pathlib import Path

from modelgen.artifact.folder import SHIPPED, known
from solver.errors import SolverError

try:
    import gymnasium
except ImportError as error:
    raise SolverError(
        "solver.gym needs Gymnasium, which is not installed: pip install 'robust-value-iteration[gym]'"
    ) from error

NAMESPACE = "robust-value-iteration"


def register(directory: str | Path | None = None) -> list[str]:
    """Ids of the robots of a folder of artifacts, after registration with Gymnasium.

    Without a folder, these are the robots of ./generated and the shipped ones. A registered id is replaced.
    """
    return _register(known(directory), None if directory is None else str(directory))


def register_shipped() -> list[str]:
    """Ids of the shipped robots, after registration with Gymnasium. The working folder is ignored."""
    return _register(known(SHIPPED), None)


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
