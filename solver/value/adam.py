"""The optimiser of a member's weights: Adam (Kingma and Ba, 2015), or AMSGrad (Reddi et al., 2018)."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim.adam import adam

from solver.value.optimiser import Optimiser


class Adam(Optimiser):
    """Adam on the parameters of one member, a step being one operation on their vector.

    The function behind `torch.optim.Adam` is called, not the class: its first instance imports Torch's compiler and
    SymPy, which takes longer than a small training.
    """

    def __init__(self, member: nn.Module, learning_rate: float, weight_decay: float, amsgrad: bool) -> None:
        super().__init__(member, learning_rate, weight_decay)
        self.amsgrad = amsgrad
        self.state["largest_square"] = torch.zeros_like(self.weights)  # unused without amsgrad

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
