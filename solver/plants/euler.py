"""The plant of the paper's authors: explicit Euler at the task's simulation rate, and their sum of the cost.

It adds energy, so that returns flatter; rows that stand beside the paper's are trained and evaluated under it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from solver.plants.nominal import Nominal
from solver.plants.plant import Seeds
from solver.problem.problem import Problem

EFFECTS: tuple[str, ...] = ()


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Nominal:  # noqa: ARG001
    """The plant; it has no effects and no noise."""
    return Nominal(problem.integrated_by("euler"), theta)
