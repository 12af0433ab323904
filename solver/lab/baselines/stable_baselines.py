"""Stable-Baselines3 on the robots' environments: its models with our settings, and gradient steps that JAX compiles.

Models, networks, optimisers and files come from Stable-Baselines3. A gradient step of `CompiledOffPolicy` computes the
same, except for a bound on the values and for the weights of the critics' errors. Evaluation and loading need no JAX.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from solver.errors import SolverError
from solver.gym.environment import RobotVectorEnv
from solver.gym.stable_baselines import Environments
from solver.lab.baselines.settings import BaselineSettings
from solver.plants.episodes import feature_scales

try:
    from gymnasium.spaces import Box
    from stable_baselines3 import DDPG, PPO, SAC
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.noise import ActionNoise, OrnsteinUhlenbeckActionNoise
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ImportError as error:
    raise SolverError(
        "baselines need Stable-Baselines3, which is not installed: pip install 'robust-value-iteration[baselines]'"
    ) from error

if TYPE_CHECKING:
    from solver.lab.baselines.gradient_steps import OffPolicyName

Array = NDArray[Any]
FIRST_ACTIONS = 0.15  # standard deviation of the actions before learning starts
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Torch's Adam
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


class CompiledOffPolicy(OffPolicyAlgorithm):
    """Algorithm of Stable-Baselines3 with other initial weights, first actions and critic fits, and faster steps.

    The actor and the critics have the same features.
    """

    kind: ClassVar[OffPolicyName]
    actor: Any
    critic: Any
    critic_target: Any
    #: Upper bound of the values: costs are never negative. Without it values rise when the entropy falls.
    most: float = 0.0
    #: Target of the learned temperature of SAC.
    target_entropy: Any = 0.0
    #: An error of a critic weighs loss_scale / (loss_scale + |target|); see `BaselineSettings`.
    loss_scale: float = 1.0

    def _setup_model(self) -> None:
        super()._setup_model()
        for module in self.policy.modules():
            if isinstance(module, torch.nn.Linear):  # as in Flax; Torch's default has a third of this variance
                torch.nn.init.normal_(module.weight, std=module.in_features**-0.5)
                torch.nn.init.zeros_(module.bias)
        with torch.no_grad():
            held = self._held()
            for name, followers in held["followers"].items():
                _copy(followers, _numpy(held["parameters"][name]))

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[Array, Array]:
        """Draw small random actions at first: full actions fill the buffer with costs far above the task's costs."""
        if self.num_timesteps >= learning_starts:
            return super()._sample_action(learning_starts, action_noise, n_envs)
        shape = (n_envs, *(self.action_space.shape or ()))
        action = np.clip(np.random.normal(0.0, FIRST_ACTIONS, shape), -1.0, 1.0).astype(np.float32)
        return action, action

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Make gradient steps on minibatches of the replay buffer."""
        from solver.lab.baselines.gradient_steps import Batches, StepSettings, gradient_steps_on

        assert self.replay_buffer is not None
        optimizers = self._optimizers()
        self._update_learning_rate(list(optimizers.values()))
        sample = self.replay_buffer.sample(gradient_steps * batch_size)
        extract = self.actor.features_extractor
        columns = [extract(sample.observations), extract(sample.next_observations), sample.actions]
        columns += [sample.rewards[:, 0], self.gamma * (1.0 - sample.dones[:, 0])]
        arrays = [column.view(gradient_steps, batch_size, *column.shape[1:]).numpy() for column in columns]
        noise = self._noise(gradient_steps, batch_size)
        learning_rate = optimizers["actor"].param_groups[0]["lr"]
        settings = StepSettings(learning_rate, float(self.target_entropy), self.most, self.loss_scale, self.tau)
        held = self._held()
        trained, losses = gradient_steps_on(self.kind, _numpy(held), Batches(*[*arrays, noise]), settings)
        with torch.no_grad():
            _copy(held, trained)
        self._n_updates += gradient_steps
        for name, value in losses.items():
            self.logger.record(f"train/{name}", float(value))

    def _held(self) -> dict[str, Any]:
        """Tensors that a gradient step changes: parameters, moments and followers."""
        parameters = {"actor": _linear(self.actor), "critics": _critics(self.critic), **self._others()}
        moments = {name: _moments(optimizer, parameters[name]) for name, optimizer in self._optimizers().items()}
        return {"parameters": parameters, "moments": moments, "followers": self._followers()}

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Optimizer of every part of the parameters."""
        return {"actor": self.actor.optimizer, "critics": self.critic.optimizer}

    def _others(self) -> dict[str, list[Tensor]]:
        """Parameters outside of the networks."""
        return {}

    def _followers(self) -> dict[str, Any]:
        """Target networks, which follow the networks of the same name."""
        return {"critics": _critics(self.critic_target)}

    def _noise(self, gradient_steps: int, batch_size: int) -> Array:  # noqa: ARG002
        """Noise of the actions in gradient steps: empty."""
        return np.zeros((gradient_steps, 0), np.float32)


class CompiledSAC(CompiledOffPolicy, SAC):
    """SAC with a learned temperature."""

    kind = "sac"

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        assert self.ent_coef_optimizer is not None
        return {**super()._optimizers(), "temperature": self.ent_coef_optimizer}

    def _others(self) -> dict[str, list[Tensor]]:
        assert self.log_ent_coef is not None
        return {"temperature": [self.log_ent_coef]}

    def _noise(self, gradient_steps: int, batch_size: int) -> Array:
        """Noise of the actions, drawn in the order of Stable-Baselines3."""
        size = (batch_size, *(self.action_space.shape or ()))
        draws = [torch.normal(torch.zeros(size), torch.ones(size)) for _ in range(2 * gradient_steps)]
        return torch.cat(draws).view(gradient_steps, 2 * batch_size, -1).numpy()


class CompiledDDPG(CompiledOffPolicy, DDPG):
    """DDPG, which has a target network of the actor too."""

    kind = "ddpg"

    def _followers(self) -> dict[str, Any]:
        return {**super()._followers(), "actor": _linear(self.actor_target)}


def _critics(critic: Any) -> list[list[Tensor]]:
    """Layers of each critic network."""
    return [_linear(net) for net in critic.q_networks]


def _linear(module: Any) -> list[Tensor]:
    """Weight and bias of each linear layer, in order."""
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    return [tensor for layer in layers for tensor in (layer.weight, layer.bias)]


def _moments(optimizer: torch.optim.Optimizer, part: Any) -> Any:
    """Step, first and second moment of each parameter, in the structure of `part`; zeros before the first step."""
    if isinstance(part, list):
        return [_moments(optimizer, inner) for inner in part]
    state = optimizer.state[part]
    if not state:
        zeros = (torch.tensor(0.0), torch.zeros_like(part), torch.zeros_like(part))
        state.update(zip(MOMENTS, zeros, strict=True))
    return [state[name] for name in MOMENTS]


def _numpy(part: Any) -> Any:
    """Same structure with arrays that share the memory of the tensors."""
    if isinstance(part, Tensor):
        return part.detach().numpy()
    if isinstance(part, dict):
        return {name: _numpy(inner) for name, inner in part.items()}
    return [_numpy(inner) for inner in part]


def _copy(part: Any, source: Any) -> None:
    """Write arrays into the tensors of the same structure."""
    if isinstance(part, Tensor):
        part.copy_(torch.from_numpy(np.array(source)))
    elif isinstance(part, dict):
        for name, inner in part.items():
            _copy(inner, source[name])
    else:
        for inner, array in zip(part, source, strict=True):
            _copy(inner, array)


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
        model: CompiledOffPolicy = CompiledSAC(**shared, **off_policy, **automatic)
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
    if isinstance(model, CompiledOffPolicy):
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
