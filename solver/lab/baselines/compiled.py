"""Soft actor-critic and deterministic policy gradient of Stable-Baselines3, their gradient steps compiled by JAX.

The models, their networks in Torch, their optimisers and their files are those of `stable_baselines3.SAC` and `DDPG`,
and so is what a gradient step computes, but for a bound on the values and the weights of the critics' errors. Policies
are evaluated, and runs are read, without JAX.
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
    from solver.lab.baselines.gradient_steps import Kind

Array = NDArray[Any]
FIRST_ACTIONS = 0.15  # deviation of the actions before learning starts
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Torch's Adam


class Compiled(OffPolicyAlgorithm):
    """An algorithm of Stable-Baselines3 but for its time, initial weights, first actions, and how critics are fitted.

    The actor and the critics are given the same features.
    """

    kind: ClassVar[Kind]
    actor: Any
    critic: Any
    critic_target: Any
    #: Costs are never negative. Without the bound values rose to +80 when the entropy fell, and the policy was lost.
    most: float = 0.0
    #: Of SAC, which learns its temperature by it.
    target_entropy: Any = 0.0
    #: An error of a critic weighs loss_scale / (loss_scale + |target|); see `BaselineSettings`.
    loss_scale: float = 1.0

    def _setup_model(self) -> None:
        super()._setup_model()
        for module in self.policy.modules():
            if isinstance(module, torch.nn.Linear):  # as in Flax: Torch's own are a third as large in variance
                torch.nn.init.normal_(module.weight, std=module.in_features**-0.5)
                torch.nn.init.zeros_(module.bias)
        with torch.no_grad():
            held = self._held()
            for name, followers in held["followers"].items():
                _copy(followers, _numpy(held["parameters"][name]))

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[Array, Array]:
        """Small random actions at first: full ones fill the buffer with costs far above those of the task."""
        if self.num_timesteps >= learning_starts:
            return super()._sample_action(learning_starts, action_noise, n_envs)
        shape = (n_envs, *(self.action_space.shape or ()))
        action = np.clip(np.random.normal(0.0, FIRST_ACTIONS, shape), -1.0, 1.0).astype(np.float32)
        return action, action

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """So many gradient steps on minibatches of the replay buffer."""
        from solver.lab.baselines.gradient_steps import Batches, Settings, gradient_steps_on

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
        settings = Settings(learning_rate, float(self.target_entropy), self.most, self.loss_scale, self.tau)
        held = self._held()
        found, losses = gradient_steps_on(self.kind, _numpy(held), Batches(*[*arrays, noise]), settings)
        with torch.no_grad():
            _copy(held, found)
        self._n_updates += gradient_steps
        for name, value in losses.items():
            self.logger.record(f"train/{name}", float(value))

    def _held(self) -> dict[str, Any]:
        """What a gradient step changes, as lists of Torch's own tensors."""
        parameters = {"actor": _linear(self.actor), "critics": _critics(self.critic), **self._others()}
        moments = {name: _moments(each, parameters[name]) for name, each in self._optimizers().items()}
        return {"parameters": parameters, "moments": moments, "followers": self._followers()}

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Of every part of the parameters."""
        return {"actor": self.actor.optimizer, "critics": self.critic.optimizer}

    def _others(self) -> dict[str, list[Tensor]]:
        """Parameters beside the networks."""
        return {}

    def _followers(self) -> dict[str, Any]:
        """Networks that follow those of the same name."""
        return {"critics": _critics(self.critic_target)}

    def _noise(self, gradient_steps: int, batch_size: int) -> Array:  # noqa: ARG002
        """Draws of the actions in gradient steps: none."""
        return np.zeros((gradient_steps, 0), np.float32)


class CompiledSAC(Compiled, SAC):
    """SAC; its temperature is learned."""

    kind = "sac"

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        assert self.ent_coef_optimizer is not None
        return {**super()._optimizers(), "temperature": self.ent_coef_optimizer}

    def _others(self) -> dict[str, list[Tensor]]:
        assert self.log_ent_coef is not None
        return {"temperature": [self.log_ent_coef]}

    def _noise(self, gradient_steps: int, batch_size: int) -> Array:
        """As many draws in the same order as Stable-Baselines3."""
        size = (batch_size, *(self.action_space.shape or ()))
        draws = [torch.normal(torch.zeros(size), torch.ones(size)) for _ in range(2 * gradient_steps)]
        return torch.cat(draws).view(gradient_steps, 2 * batch_size, -1).numpy()


class CompiledDDPG(Compiled, DDPG):
    """DDPG; its actor is followed too."""

    kind = "ddpg"

    def _followers(self) -> dict[str, Any]:
        return {**super()._followers(), "actor": _linear(self.actor_target)}


def _critics(critic: Any) -> list[list[Tensor]]:
    """The layers of each of its networks."""
    return [_linear(net) for net in critic.q_networks]


def _linear(module: Any) -> list[Tensor]:
    """Weight and bias of each linear layer, in order."""
    layers = [each for each in module.modules() if isinstance(each, torch.nn.Linear)]
    return [tensor for layer in layers for tensor in (layer.weight, layer.bias)]


def _moments(optimizer: torch.optim.Optimizer, part: Any) -> Any:
    """Step, first and second moment of each parameter, in the part's own structure; zeros before the first step."""
    if isinstance(part, list):
        return [_moments(optimizer, each) for each in part]
    state = optimizer.state[part]
    if not state:
        zeros = (torch.tensor(0.0), torch.zeros_like(part), torch.zeros_like(part))
        state.update(zip(MOMENTS, zeros, strict=True))
    return [state[name] for name in MOMENTS]


def _numpy(part: Any) -> Any:
    """The same structure with arrays that share the tensors' memory."""
    if isinstance(part, Tensor):
        return part.detach().numpy()
    if isinstance(part, dict):
        return {name: _numpy(each) for name, each in part.items()}
    return [_numpy(each) for each in part]


def _copy(part: Any, found: Any) -> None:
    """Write arrays into the tensors of the same structure."""
    if isinstance(part, Tensor):
        part.copy_(torch.from_numpy(np.array(found)))
    elif isinstance(part, dict):
        for name, each in part.items():
            _copy(each, found[name])
    else:
        for each, array in zip(part, found, strict=True):
            _copy(each, array)
