"""The action adversary: an input of its own beside the policy's (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian


@dataclass(frozen=True)
class ActionAdversary(Adversary):
    """xdot = a + B (u + xi); alpha in units of the input."""

    name: ClassVar[str] = "action"
    usual: ClassVar[float] = 0.1

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """B^T dV/dx (N, m)."""
        return hamiltonian.dH_du

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add its input (N, m) to the one that reaches the robot."""
        return replace(disturbed, u=disturbed.u + choice)
