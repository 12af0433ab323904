"""Vector environment with the interface of Stable-Baselines3."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from solver.errors import SolverError
from solver.gym.environment import EnvironmentOptions, RobotVectorEnv
from solver.plants.episodes import INFORMATION, Array

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ImportError as error:
    raise SolverError(
        "this needs Stable-Baselines3, which is not installed: pip install 'robust-value-iteration[baselines]'"
    ) from error


class Environments(VecEnv):
    """RobotVectorEnv with the interface of Stable-Baselines3.

    An action of 1 is `input_share` of the input's limit, and a reward of 1 is `unit` of the robot's rewards.
    """

    def __init__(self, environments: RobotVectorEnv, input_share: float = 1.0, unit: float = 1.0) -> None:
        self.environments, self.input_share, self.unit = environments, input_share, unit
        spaces = environments.single_observation_space, environments.single_action_space
        super().__init__(environments.num_envs, *spaces)
        self._actions: Array = np.zeros(environments.action_space.shape or ())

    def reset(self) -> Array:
        """Start new episodes, with the seeds that `seed` got since the last reset."""
        seeds = [seed for seed in self._seeds if seed is not None]
        observations, _ = self.environments.reset(seed=seeds or None)
        self._reset_seeds()
        return observations

    def step_async(self, actions: Array) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Make one action in every episode. The info of an ended episode has its last observation."""
        observations, rewards, _, ended, last = self.environments.step(self.input_share * self._actions)
        shown = {name: last[name].tolist() for name in INFORMATION}
        infos = [dict(zip(shown, values, strict=True)) for values in zip(*shown.values(), strict=True)]
        for row in np.flatnonzero(ended):
            infos[row] |= {"terminal_observation": last["final_obs"][row], "TimeLimit.truncated": True}
        return observations, (rewards / self.unit).astype(np.float32), ended, infos

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Attribute that all environments share, repeated for every index."""
        return [getattr(self.environments, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, *_: Any, **__: Any) -> None:
        """Refused: the environments are one object."""
        raise SolverError(f"{attr_name} cannot be set on single environments of a batch")

    def env_method(self, method_name: str, *_: Any, **__: Any) -> list[Any]:
        """Refused: the environments are one object."""
        raise SolverError(f"{method_name} cannot be called on single environments of a batch")

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:  # noqa: ARG002
        """False for every index."""
        return [False for _ in self._get_indices(indices)]


def vec_env(robot: str, num_envs: int = 8, **options: Unpack[EnvironmentOptions]) -> Environments:
    """Environments of a robot for an agent of Stable-Baselines3: `PPO("MlpPolicy", vec_env("pendulum"))`.

    All episodes are simulated in one call of a kernel. options: see `EnvironmentOptions`.
    """
    return Environments(RobotVectorEnv(robot, num_envs, **options))
