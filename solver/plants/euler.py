"""Plant of the paper's authors: explicit Euler at the task's simulation rate, and their sum of the cost.

It adds energy to the robot, so that returns are too good. Results that are compared with the paper use it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from solver.plants.plant import Nominal, Seeds
from solver.problem.problem import Problem

EFFECTS: tuple[str, ...] = ()


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: Seeds) -> Nominal:  # noqa: ARG001
    """Plant without effects and noise."""
    return Nominal(problem.integrated_by("euler"), theta)
