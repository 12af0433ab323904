"""Stable-Baselines3 on the robots' environments: its vector environment, and its models with our settings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from solver.errors import SolverError
from solver.gym.environment import RobotVectorEnv, feature_scales
from solver.gym.stable_baselines import Environments
from solver.lab.baselines.settings import BaselineSettings

try:
    from gymnasium.spaces import Box
    from stable_baselines3 import PPO
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from solver.lab.baselines.compiled import Compiled, CompiledDDPG, CompiledSAC
except ImportError as error:
    raise SolverError(
        "baselines need Stable-Baselines3, which is not installed: pip install 'robust-value-iteration[baselines]'"
    ) from error

Array = NDArray[Any]
TEMPERATURE = 0.05  # of SAC, before it is learned
ROLLOUT = 32  # actions in every environment between two updates of PPO
NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)  # entropy of a Gaussian with deviation 1, in nats
ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")  # of a replay buffer


class Scaled(BaseFeaturesExtractor):
    """Features of the networks: observations (N, k) times a scale (k,), as in the solver's own networks."""

    scale: Tensor

    def __init__(self, observation_space: Box, scale: list[float]) -> None:
        super().__init__(observation_space, len(scale))
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, observations: Tensor) -> Tensor:
        """Input (N, k) of the first layer."""
        return observations * self.scale


def make_model(settings: BaselineSettings, environments: RobotVectorEnv, steps: int) -> BaseAlgorithm:
    """Untrained model with a buffer for `steps` actions; docs/reference/baseline-settings.md gives the reasons."""
    s, problem = settings, environments.problem
    shared: dict[str, Any] = {
        "policy": "MlpPolicy",
        "env": Environments(environments, s.input_share, s.loss_scale if s.algorithm == "ppo" else 1.0),
        "learning_rate": s.learning_rate,
        "batch_size": s.minibatch,
        "gamma": discount(s, environments.episodes.seconds),
        "seed": s.seed,
        "device": "cpu",
    }
    scale = feature_scales(problem, s.position_scale, s.rate_scale)
    networks = {
        "net_arch": [s.width] * s.layers,
        "features_extractor_class": Scaled,
        "features_extractor_kwargs": {"scale": scale},
    }
    if s.algorithm == "ppo":
        learner = PPO(**shared, n_steps=ROLLOUT, policy_kwargs=networks)
        learner.policy.log_std.requires_grad_(False)  # a learned deviation vanishes before the swing-up
        return learner
    off_policy: dict[str, Any] = {
        "buffer_size": min(steps, 1_000_000),
        "learning_starts": s.environments * environments.episodes.length,
        "gradient_steps": max(1, s.environments // 2),
        "tau": 0.01,
        "policy_kwargs": networks,
    }
    if s.algorithm == "sac":
        entropy = s.entropy * len(problem.input_limits)
        automatic: dict[str, Any] = {"ent_coef": f"auto_{TEMPERATURE}", "target_entropy": entropy}
        model: Compiled = CompiledSAC(**shared, **off_policy, **automatic)
    else:
        size = len(problem.input_limits)
        deviation, period = 0.3 * np.ones(size), environments.episodes.seconds
        noise = OrnsteinUhlenbeckActionNoise(np.zeros(size), deviation, theta=2.0, dt=period)
        model = CompiledDDPG(**shared, **off_policy, action_noise=noise)
    model.loss_scale = s.loss_scale
    return model


def renew_logger(model: BaseAlgorithm) -> None:
    """Give the model an empty logger: its own leaves a folder of temporary files at every call of `learn`."""
    model.set_logger(Logger(None, []))


def discount(settings: BaselineSettings, seconds: float, steps: int = 0) -> float:
    """Discount factor (gamma) of an action. seconds: of the action. steps: actions so far."""
    late = settings.algorithm != "ppo" and 2 * steps >= settings.steps
    lookahead = settings.last_lookahead if late else settings.lookahead
    return math.exp(-seconds / lookahead)


def follow_schedules(model: BaseAlgorithm, settings: BaselineSettings, seconds: float) -> None:
    """Set the values that change during the training: learning rate, discount of SAC and DDPG, entropy of SAC and PPO.

    seconds: of an action.
    """
    rate = settings.learning_rate * (1.0 - 0.9 * model.num_timesteps / settings.steps)
    model.lr_schedule = lambda _: rate
    if isinstance(model, Compiled):
        model.gamma = discount(settings, seconds, model.num_timesteps)
    entropy = entropy_at(settings, model.num_timesteps)
    if isinstance(model, CompiledSAC):
        model.target_entropy = (model.action_space.shape or (1,))[0] * entropy
    if isinstance(model, PPO):
        model.policy.log_std.data.fill_(entropy - NORMAL)


def entropy_at(settings: BaselineSettings, steps: int) -> float:
    """Entropy of each input in nats. steps: actions so far."""
    late = max(0.0, 2.0 * steps / settings.steps - 1.0)
    return settings.entropy + late * (settings.last_entropy - settings.entropy)


def contents(model: BaseAlgorithm) -> dict[str, Any]:
    """Weights and replay buffer of a model, as tensors and numbers that `torch.load` reads with weights_only."""
    content: dict[str, Any] = {
        "parameters": model.get_parameters(),
        "entropy": model.log_ent_coef if isinstance(model, CompiledSAC) else None,
        "updates": model._n_updates,
        "buffer": None,
    }
    if isinstance(model, OffPolicyAlgorithm) and model.replay_buffer is not None:
        buffer = model.replay_buffer
        size = buffer.buffer_size if buffer.full else buffer.pos
        arrays = {name: torch.from_numpy(getattr(buffer, name)[:size]).clone() for name in ARRAYS}
        content["buffer"] = {"position": buffer.pos, "full": buffer.full, **arrays}
    return content


def fill(model: BaseAlgorithm, content: dict[str, Any]) -> None:
    """Inverse of `contents`. Raises errors of Torch and NumPy for content of other shapes."""
    model.set_parameters(content["parameters"], device="cpu")
    model._n_updates = content["updates"]
    if isinstance(model, CompiledSAC) and model.log_ent_coef is not None:
        model.log_ent_coef.data.copy_(content["entropy"])
    held = content["buffer"]
    if held is not None and isinstance(model, OffPolicyAlgorithm) and model.replay_buffer is not None:
        buffer = model.replay_buffer
        buffer.pos, buffer.full = held["position"], held["full"]
        for name in ARRAYS:
            getattr(buffer, name)[: len(held[name])] = held[name].numpy()
