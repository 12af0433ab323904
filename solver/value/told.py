"""Numbers of an export that is told a context: the polynomials of its basin and metric, and what gives its trim.

The metric W(c) is a Cholesky factor of a form F(c), which is linear in P(c). So F is a polynomial of the context, like
P and the level of the basin (`solver.value.family`), and every export evaluates the three in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from modelgen.metadata import Parameter
from solver.problem.context import Context
from solver.problem.problem import Problem
from solver.value.family import REACH, BasinFamily
from solver.value.network import Ensemble


@dataclass(frozen=True)
class Told:
    """A context and its polynomials: (b, ...) coefficients of the b products of `degrees` (b, k)."""

    context: Context
    parameters: tuple[Parameter, ...]  # (k,)
    degrees: Tensor  # (b, k)
    level: Tensor  # (b,) of the basin
    cost: Tensor  # (b, nt, nt) P
    form: Tensor  # (b, n_z, n_z) F = W W^T

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Ends of the ranges, in SI units."""
        return [(entry.lower, entry.upper) for entry in self.context.given]

    @property
    def polynomial(self) -> Tensor:
        """Coefficients (b, 1 + nt (nt + 1)/2 + n_z (n_z + 1)/2): the level, then P and F, their lower triangles."""
        parts = [self.level[:, None]]
        for matrix in (self.cost, self.form):
            rows, columns = torch.tril_indices(matrix.shape[-1], matrix.shape[-1])
            parts.append(matrix[:, rows, columns])
        return torch.cat(parts, 1)

    def described(self) -> list[dict[str, object]]:
        """Facts on every entry, for JSON: name, unit, meaning, range of the training and nominal value."""
        return [
            {
                "name": one.name,
                "unit": one.unit,
                "meaning": one.meaning,
                "lower": low,
                "upper": high,
                "nominal": one.value,
            }
            for one, (low, high) in zip(self.parameters, self.ranges, strict=True)
        ]


def told_by(problem: Problem, ensemble: Ensemble) -> Told | None:
    """The context of a value function and its polynomials in float64; None for a policy that is told nothing."""
    context = problem.context
    if context is None:
        return None
    named = {parameter.name: parameter for parameter in problem.robot.metadata.parameters}
    basin, features = ensemble.frame.basin, ensemble.features
    degrees, size = ensemble.degrees, ensemble.basin_cost.shape[-1]
    if isinstance(basin, BasinFamily) and not basin.empty:
        numbers = basin.coefficients.double()
        level, cost = float(ensemble.basin_level) * numbers[:, -1], numbers[:, :-1].reshape(-1, size, size)
        form = features.form_of(cost, ensemble.target, REACH * level[:, None, None])
    else:  # the errors are measured by the same metric in all contexts, and V is the networks' everywhere
        first = (degrees == 0).all(1).double()
        level, cost = 0.0 * first, first[:, None, None] * torch.zeros(size, size).double()
        form = first[:, None, None] * (features.metric @ features.metric.T).double()
    return Told(context, tuple(named[name] for name in context.names), degrees, level, cost, form)
