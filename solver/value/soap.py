"""SOAP, an optimiser of a member's weights: Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al., 2024).

Adam divides every entry of a gradient by its own size. SOAP does that in the directions in which the gradients of a
weight matrix vary together, so that steep and flat directions of the loss get steps of the same size.
"""

from __future__ import annotations

import torch
from torch import nn

from solver.value.adam import adam_step
from solver.value.optimiser import Optimiser

PERIOD = 20  # steps between two changes of the basis
DECAY = 0.95  # of all running means
FIRST, TURNING, USUAL = range(3)  # kinds of steps


class Soap(Optimiser):
    """SOAP on the parameters of one member. A weight matrix has a basis for its rows and one for its columns; biases
    are Adam's."""

    def __init__(self, member: nn.Module, learning_rate: float, weight_decay: float) -> None:
        super().__init__(member, learning_rate, weight_decay)
        self.rotated, self.change = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.matrices: list[_Matrix] = []
        self.biases: list[slice] = []
        begin = 0
        for name, each in member.named_parameters():
            part = slice(begin, begin + each.numel())
            begin = part.stop
            if each.dim() == 2:
                self.matrices.append(_Matrix(self, part, each.shape, name))
            else:
                self.biases.append(part)

    @property
    def kind(self) -> int:
        """The first step, one that changes the basis, or another."""
        return USUAL if self.taken % PERIOD else TURNING if self.taken else FIRST

    @torch.no_grad()
    def compute(self, kind: int) -> None:
        """The operations of a step of this kind."""
        if self.weight_decay:
            self.gradient.add_(self.weights, alpha=self.weight_decay)
        for matrix in self.matrices:
            matrix.observe(0.0 if kind == FIRST else DECAY)
            if kind != USUAL:
                matrix.turn_basis()
            matrix.rotate()
        for part in self.biases:
            self.rotated[part] = self.gradient[part]
        adam_step(self.change.zero_(), self.rotated, self.state, self.learning_rate, (DECAY, DECAY))
        for matrix in self.matrices:
            matrix.apply()
        for part in self.biases:
            self.weights[part] += self.change[part]


class _Matrix:
    """One weight matrix W (m, n): the covariances of its gradient G, E[G G'] and E[G' G], and a basis for each."""

    def __init__(self, of: Soap, part: slice, shape: torch.Size, name: str) -> None:
        self.weight, self.gradient, self.rotated, self.change, self.mean = (
            each[part].view(shape) for each in (of.weights, of.gradient, of.rotated, of.change, of.state["mean"])
        )
        self.covariances, self.bases = [], []
        for side, size in zip(("rows", "columns"), shape, strict=True):
            covariance, basis = self.weight.new_zeros(size, size), torch.eye(size).to(self.weight)
            of.state |= {f"{name} {side} covariance": covariance, f"{name} {side} basis": basis}
            self.covariances.append(covariance)
            self.bases.append(basis)
        self.product = torch.empty_like(self.weight)

    def observe(self, decay: float) -> None:
        """Take the gradient into the covariances."""
        g = self.gradient
        for covariance, left, right in zip(self.covariances, (g, g.T), (g.T, g), strict=True):
            torch.addmm(covariance, left, right, beta=decay, alpha=1.0 - decay, out=covariance)

    def turn_basis(self) -> None:
        """One step of the QR algorithm towards the eigenvectors; the mean gradient is the same in the new basis."""
        turns = []
        for covariance, basis in zip(self.covariances, self.bases, strict=True):
            new = torch.linalg.qr(covariance @ basis)[0]
            turns.append(basis.T @ new)
            basis.copy_(new)
        self.mean.copy_(turns[0].T @ self.mean @ turns[1])

    def rotate(self) -> None:
        """The gradient in the bases."""
        torch.mm(self.bases[0].T, self.gradient, out=self.product)
        torch.mm(self.product, self.bases[1], out=self.rotated)

    def apply(self) -> None:
        """Add the change, which is in the bases, to the weights."""
        torch.mm(self.bases[0], self.change, out=self.product)
        self.weight.addmm_(self.product, self.bases[1].T)
