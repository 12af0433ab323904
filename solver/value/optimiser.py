"""An optimiser of a member's weights: gradient steps on one vector, and a state that training can go on from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Optimiser(ABC):
    """The parameters of one member become views of one vector, and their gradients of another."""

    def __init__(self, member: nn.Module, learning_rate: float, weight_decay: float) -> None:
        parameters = list(member.parameters())
        self.weights = torch.cat([each.detach().flatten() for each in parameters])
        self.gradient = torch.zeros_like(self.weights)
        begin = 0
        for each in parameters:
            end = begin + each.numel()
            each.data, each.grad = (part[begin:end].view(each.shape) for part in (self.weights, self.gradient))
            begin = end
        self.weight_decay = weight_decay
        self.taken = 0  # steps so far; read from the state a GPU would be waited for
        self._rate: float | Tensor = learning_rate
        if self.weights.device.type != "cpu":
            self._rate = torch.tensor(learning_rate, device=self.weights.device)
        self.state = {
            "steps": torch.zeros((), device=self.weights.device),
            "mean": torch.zeros_like(self.weights),
            "square": torch.zeros_like(self.weights),
        }

    @property
    def learning_rate(self) -> float | Tensor:
        """The step size; on a GPU in memory that stays, so that a step can be replayed with another one."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if isinstance(self._rate, Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate

    @property
    def kind(self) -> int:
        """Of the next step. Steps of one kind are the same operations, which a GPU can replay."""
        return 0

    def step(self) -> None:
        """Change the weights by the gradients that the member's parameters have."""
        self.compute(self.kind)
        self.count()

    @abstractmethod
    def compute(self, kind: int) -> None:
        """The operations of a step of this kind."""

    def count(self) -> None:
        """Note that a step was computed or replayed."""
        self.taken += 1

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from the `state` of another instance. Raises KeyError or RuntimeError where it does not fit."""
        self.taken = int(state["steps"])
        for name, values in self.state.items():
            values.copy_(state[name])
