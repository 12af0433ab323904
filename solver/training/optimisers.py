"""The optimiser that the settings of a run name."""

from __future__ import annotations

from solver.training.settings import Settings
from solver.value.network import Factor
from solver.value.optimiser import Adam, Optimiser, Soap


def make_optimiser(member: Factor, settings: Settings) -> Optimiser:
    """A fresh one on a member of the ensemble."""
    s = settings
    if s.optimiser == "soap":
        return Soap(member, s.learning_rate, s.weight_decay)
    return Adam(member, s.learning_rate, s.weight_decay, s.amsgrad)
