"""The optimiser of a member's weights: Adam (Kingma and Ba, 2015), or AMSGrad (Reddi et al., 2018)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.adam import adam


class Adam:
    """Adam on the parameters of one member, which become views of one vector: a step is one operation on it.

    The function behind `torch.optim.Adam` is called, not the class: its first instance imports Torch's compiler and
    SymPy, which takes longer than a small training.
    """

    def __init__(self, member: nn.Module, learning_rate: float, weight_decay: float, amsgrad: bool) -> None:
        parameters = list(member.parameters())
        self.weights = torch.cat([each.detach().flatten() for each in parameters])
        self.gradient = torch.zeros_like(self.weights)
        begin = 0
        for each in parameters:
            end = begin + each.numel()
            each.data, each.grad = (part[begin:end].view(each.shape) for part in (self.weights, self.gradient))
            begin = end
        self.learning_rate, self.weight_decay, self.amsgrad = learning_rate, weight_decay, amsgrad
        self.state = {
            "steps": torch.zeros((), device=self.weights.device),
            "mean": torch.zeros_like(self.weights),
            "square": torch.zeros_like(self.weights),
            "largest_square": torch.zeros_like(self.weights),  # unused without amsgrad
        }

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights by the gradients that the member's parameters have."""
        state = self.state
        adam(
            [self.weights],
            [self.gradient],
            [state["mean"]],
            [state["square"]],
            [state["largest_square"]] if self.amsgrad else [],
            [state["steps"]],
            fused=True,
            amsgrad=self.amsgrad,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from the `state` of another instance. Raises KeyError or RuntimeError where it does not fit."""
        for name, values in self.state.items():
            values.copy_(state[name])
