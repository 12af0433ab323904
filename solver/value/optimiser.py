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
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.state = {
            "steps": torch.zeros((), device=self.weights.device),
            "mean": torch.zeros_like(self.weights),
            "square": torch.zeros_like(self.weights),
        }

    @abstractmethod
    def step(self) -> None:
        """Change the weights by the gradients that the member's parameters have."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from the `state` of another instance. Raises KeyError or RuntimeError where it does not fit."""
        for name, values in self.state.items():
            values.copy_(state[name])
