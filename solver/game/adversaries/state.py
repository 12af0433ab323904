"""The state adversary: a force of its own moves the state (Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian, RadiusInTime


@dataclass(frozen=True)
class StateAdversary(Adversary):
    """xdot = a + B u + xi; alpha in SI units of the state per second (stationary) or per root second (Wiener).

    Its choice is the displacement over a value step.
    """

    name: ClassVar[str] = "state"
    usual: ClassVar[float] = 0.025
    radius_in_time: ClassVar[RadiusInTime] = "displacement"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dV/dx (N, n)."""
        return hamiltonian.costate

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Add the displacement (N, n)."""
        before = disturbed.displacement
        return replace(disturbed, displacement=choice if before is None else before + choice)
