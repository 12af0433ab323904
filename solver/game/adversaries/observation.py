"""The observation adversary: the dynamics are those of a state beside the true one (Theorem 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian


@dataclass(frozen=True)
class ObservationAdversary(Adversary):
    """xdot = a(x + xi) + B(x + xi) u; alpha in SI units of the state."""

    name: ClassVar[str] = "observation"
    usual: ClassVar[float] = 0.025

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dx (N, n)."""
        return hamiltonian.dH_dx

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add the offset (N, n)."""
        return replace(disturbed, offset=choice if disturbed.offset is None else disturbed.offset + choice)
