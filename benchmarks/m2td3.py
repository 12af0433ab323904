"""M2TD3 (Tanabe et al., NeurIPS 2022) on our environments: TD3 against the worst parameters of a box.

The critics are told the parameters omega of a robot, the actor is not. Candidates for the worst omega descend the first
critic, and the actor ascends it at the worst of them. An episode has an omega near a candidate, the more often the
more often that was the worst. `learners.py` trains and judges it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import TD3
from stable_baselines3.td3.policies import Actor, TD3Policy
from torch import Tensor

from solver.gym.environment import RobotVectorEnv
from solver.lab.baselines.stable_baselines import CompiledOffPolicy, Scaled

CANDIDATES, NEAR, RARE = 5, 0.1, 0.05  # refreshed where two are nearer (of 2), or one is chosen more rarely
FORGET = 1e-3  # of how often a candidate was the worst, at each choice
SPREAD = 0.2  # deviation of an episode's omega from its candidate, of 2
NOISE, CLIP = 0.2, 0.5  # of the next action, in the targets
Array = NDArray[Any]


class Hostile(RobotVectorEnv):
    """Robots whose parameters, the last entries of an observation, an adversary chooses for every episode."""

    adversary: M2TD3 | None = None

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        super().reset(**options)
        return self._chosen(np.arange(self.num_envs)), {}

    def step(self, actions: Array) -> Any:
        shown, *others, ended, infos = super().step(actions)
        return (self._chosen(np.flatnonzero(ended)) if ended.any() else shown), *others, ended, infos

    def _chosen(self, rows: Array) -> Array:
        """Observations (N, k), after new parameters of some robots."""
        if self.adversary is not None:
            episodes, context = self.episodes, self.problem.context
            assert context is not None
            episodes.c[rows] = self.adversary.drawn(len(rows))
            episodes.theta[rows] = context.replaced(episodes.theta[rows], episodes.c[rows])
        return self._observe()


class Untold(Scaled):
    """Features of an actor: those of a critic without omega."""

    def forward(self, observations: Tensor) -> Tensor:
        """Input (N, k) of the first layer."""
        return (observations * self.scale)[:, : self.features_dim]


class Policy(TD3Policy):
    """Policy whose actor is not told the last `told` entries of an observation."""

    def __init__(self, *arguments: Any, told: int, **options: Any) -> None:
        self.told = told
        super().__init__(*arguments, **options)

    def make_actor(self, features_extractor: Any = None) -> Actor:  # noqa: ARG002
        """Actor with features of its own."""
        blind = Untold(self.observation_space, **self.features_extractor_kwargs)  # type: ignore[arg-type]
        blind._features_dim -= self.told
        return super().make_actor(blind)


class M2TD3(CompiledOffPolicy, TD3):
    """TD3 that maximises the value of the worst candidate, with the weights, first actions and bound on the values of
    `solver baseline`."""

    def _setup_model(self) -> None:
        super()._setup_model()
        self.actor_target.load_state_dict(self.actor.state_dict())
        assert isinstance(self.policy, Policy)
        self.candidates = torch.nn.Parameter(2.0 * torch.rand(CANDIDATES, self.policy.told) - 1.0)
        self.worst = torch.full((CANDIDATES,), 1.0 / CANDIDATES)  # how often each was the worst
        self.descent = torch.optim.Adam([self.candidates], lr=self.lr_schedule(1))

    def drawn(self, count: int) -> Tensor:
        """Parameters (count, told) in [-1, 1] of new episodes."""
        chosen = self.candidates.detach()[torch.multinomial(self.worst, count, replacement=True)]
        return (chosen + 2.0 * SPREAD * torch.randn(chosen.shape)).clamp(-1.0, 1.0)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Make gradient steps on minibatches of the replay buffer."""
        assert self.replay_buffer is not None
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer, self.descent])
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self.replay_buffer.sample(batch_size)
            self._fit(batch)
            if self._n_updates % self.policy_delay == 0:
                self._play(batch.observations)
                for net, follower in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
                    for leading, following in zip(net.parameters(), follower.parameters(), strict=True):
                        following.data.lerp_(leading.data, self.tau)

    def _fit(self, batch: Any) -> None:
        """One step of both critics."""
        with torch.no_grad():
            noise = (NOISE * torch.randn_like(batch.actions)).clamp(-CLIP, CLIP)
            following = (self.actor_target(batch.next_observations) + noise).clamp(-1.0, 1.0)
            least = torch.minimum(*self.critic_target(batch.next_observations, following)).clamp_max(self.most)
            target = batch.rewards + self.gamma * (1.0 - batch.dones) * least
            weight = self.loss_scale / (self.loss_scale + target.abs())
        values = self.critic(batch.observations, batch.actions)
        _descended(self.critic.optimizer, sum((weight * (value - target)).square().mean() for value in values))

    def _play(self, observations: Tensor) -> None:
        """One step of the actor, and one of the candidate that is the worst for it."""
        told = self.candidates.shape[1]
        action = self.actor(observations)
        at = [torch.cat([observations[:, :-told], row.expand(len(observations), -1)], 1) for row in self.candidates]
        with torch.no_grad():
            worst = int(torch.stack([self.critic(rows, action)[0].mean() for rows in at]).argmin())
        self.actor.optimizer.zero_grad()
        self.descent.zero_grad()
        (-self.critic(at[worst], action)[0].mean()).backward()
        assert self.candidates.grad is not None
        self.candidates.grad.neg_()
        self.actor.optimizer.step()
        self.descent.step()
        self._refresh(worst)

    def _refresh(self, worst: int) -> None:
        """Count the worst candidate, and draw those anew that are rarely the worst or near one of an earlier number."""
        with torch.no_grad():
            self.candidates.clamp_(-1.0, 1.0)
            self.worst.lerp_(torch.nn.functional.one_hot(torch.tensor(worst), CANDIDATES).float(), FORGET)
            near = (torch.cdist(self.candidates, self.candidates) < 2.0 * NEAR).tril(-1).any(1)
            rare = near | (self.worst < RARE)
            rare[worst] = False
            self.candidates[rare] = 2.0 * torch.rand(int(rare.sum()), self.candidates.shape[1]) - 1.0
            self.worst[rare] = 1.0 / CANDIDATES
            self.worst /= self.worst.sum()


def _descended(optimizer: torch.optim.Optimizer, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
