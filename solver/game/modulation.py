"""The radii of the admissible sets along a rollout: fixed, or modulated by a Wiener process."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.game.adversaries.adversary import Adversary


class Modulation:
    """The radius of every adversary, from one value step of a rollout to the next.

    kind `stationary`: the radius is alpha, which defines a stationary Hamilton-Jacobi-Isaacs equation. An adversary
    that displaces the state (`radius_in_time` is "displacement") moves it at the rate alpha, by alpha h in a step of
    h seconds.

    kind `wiener`, the authors': in every step each adversary draws sqrt(h) alpha/1.96 N(0, I). The radius is the norm
    of the sum of these draws since the rollout's start ("walk"), of the step's own draw ("displacement"), or alpha
    ("constant").
    """

    def __init__(self, kind: str, seconds: float, generator: torch.Generator) -> None:
        self.kind, self.seconds, self.generator = kind, seconds, generator
        self.walks: dict[str, Tensor] = {}

    def restart(self) -> None:
        """Begin another rollout of as many states."""
        for walk in self.walks.values():
            walk.zero_()

    def radius(self, adversary: Adversary, shape: torch.Size) -> Tensor | float:
        """The radius at this step: (N, 1), or one number for all; shape: (N, d) of the adversary's variable."""
        in_time, name, alpha = adversary.radius_in_time, adversary.name, adversary.alpha
        if in_time == "constant":
            return alpha
        if self.kind == "stationary":
            return alpha * self.seconds if in_time == "displacement" else alpha
        draw = torch.randn(shape, generator=self.generator, device=self.generator.device)
        draw.mul_(math.sqrt(self.seconds) * alpha / 1.96)
        if in_time == "walk":
            draw = self.walks.setdefault(name, torch.zeros_like(draw)).add_(draw)
        norm: Tensor = torch.linalg.vector_norm(draw, dim=1, keepdim=True)
        return norm
