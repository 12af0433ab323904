"""What a policy of another library observes: the state in numbers between -1 and 1."""

from __future__ import annotations

import torch
from torch import Tensor

from solver.problem.problem import Problem


def features(problem: Problem, x: Tensor) -> Tensor:
    """Map states (N, n), or their positions (N, q), to features (N, k) in [-1, 1].

    An angle that wraps becomes its cosine and sine; every other state is divided by its limit.
    """
    columns = []
    for i, limit in enumerate(problem.state_limits[: x.shape[1]]):
        wraps = i in problem.continuous
        columns += [torch.cos(x[:, i]), torch.sin(x[:, i])] if wraps else [(x[:, i] / limit).clamp(-1.0, 1.0)]
    return torch.stack(columns, 1)


def feature_scales(problem: Problem, position: float, rate: float) -> list[float]:
    """The factors (k,) of `features` for a network: 1 for cosine and sine, `position` or `rate` for the others."""
    scales = []
    for i, state in enumerate(problem.robot.metadata.states):
        scales += [1.0, 1.0] if i in problem.continuous else [position if state.kind == "position" else rate]
    return scales
