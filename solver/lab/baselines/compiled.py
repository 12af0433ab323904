"""SAC and DDPG of Stable-Baselines3 with gradient steps that JAX compiles.

Models, networks, optimisers and files come from `stable_baselines3.SAC` and `DDPG`. A gradient step computes the same,
except for a bound on the values and for the weights of the critics' errors. Evaluation and loading need no JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DDPG, SAC
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import Tensor

if TYPE_CHECKING:
    from solver.lab.baselines.gradient_steps import OffPolicyName

Array = NDArray[Any]
FIRST_ACTIONS = 0.15  # standard deviation of the actions before learning starts
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Torch's Adam


class Compiled(OffPolicyAlgorithm):
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


class CompiledSAC(Compiled, SAC):
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


class CompiledDDPG(Compiled, DDPG):
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
