"""Gymnasium environments of the robots.

Importing this package registers the shipped robots, so that `gymnasium.make("robust-value-iteration/pendulum-v0")`
works. `register()` adds the robots of ./generated, and `register(folder)` the robots of another folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solver.gym.registration import register, register_shipped

if TYPE_CHECKING:
    from solver.gym.environment import RobotEnv, RobotVectorEnv
    from solver.gym.stable_baselines import vec_env

__all__ = ["RobotEnv", "RobotVectorEnv", "register", "vec_env"]

register_shipped()


def __getattr__(name: str) -> Any:
    """Import the environments, and Torch with them, when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "vec_env":
        from solver.gym.stable_baselines import vec_env

        return vec_env
    from solver.gym import environment

    return getattr(environment, name)
