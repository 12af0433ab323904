"""The optimiser of a member's weights: Adam (Kingma and Ba, 2015), or AMSGrad (Reddi et al., 2018)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
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
    def compute(self, kind: int) -> None:  # noqa: ARG002
        """The operations of a step, all of one kind."""
        adam_step(
            self.weights, self.gradient, self.state, self.learning_rate, (0.9, 0.999), self.weight_decay, self.amsgrad
        )


def adam_step(
    weights: Tensor,
    gradient: Tensor,
    state: Mapping[str, Tensor],
    learning_rate: float | Tensor,
    decays: tuple[float, float],
    weight_decay: float = 0.0,
    amsgrad: bool = False,
) -> None:
    """Change the weights and the state of an `Optimiser`, in place. decays: of the mean and the square."""
    adam(
        [weights],
        [gradient],
        [state["mean"]],
        [state["square"]],
        [state["largest_square"]] if amsgrad else [],
        [state["steps"]],
        fused=True,
        amsgrad=amsgrad,
        beta1=decays[0],
        beta2=decays[1],
        lr=learning_rate,
        weight_decay=weight_decay,
        eps=1e-8,
        maximize=False,
    )
