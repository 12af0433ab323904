"""The model adversary: other physical parameters within a box about the nominal ones (Theorem 4), or an ellipsoid.

The paper's table prints da/dx in the row of this adversary; Theorem 4 and the appendix have da/dtheta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from solver.game.admissible_sets import AdmissibleSet, Box, Ellipsoid
from solver.game.adversaries.adversary import Adversary, Disturbed, Hamiltonian, RadiusInTime
from solver.problem.problem import Problem


@dataclass(frozen=True)
class ParameterAdversary(Adversary):
    """xdot = a(x, theta) + B(x, theta) u; alpha is a share of every nominal parameter, or of the identified set.

    Its choice is theta itself.
    """

    name: ClassVar[str] = "parameters"
    usual: ClassVar[float] = 0.15
    most: ClassVar[float] = 1.0
    radius_in_time: ClassVar[RadiusInTime] = "constant"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """dH/dtheta (N, p)."""
        return hamiltonian.dH_dtheta

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> AdmissibleSet:
        """The box of nominal parameters +- radius * nominal, within the bounds of the model file. Where the robot was
        identified, the ellipsoid of its confidence set with semi-axes times radius."""
        if problem.identified is not None:
            return Ellipsoid(problem.theta, radius * problem.theta.new_tensor(problem.identified.semi_axes()))
        spread, (lowest, highest) = radius * problem.theta.abs(), problem.theta_bounds.T
        lower, upper = (torch.clamp(problem.theta + side, lowest, highest) for side in (-spread, spread))
        return Box(lower, upper, problem.theta)

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Replace the parameters (N, p)."""
        return replace(disturbed, theta=choice)
