"""Numbers of an export that is told a context: the polynomials of its basin and metric, and what gives its trim.

The metric W(c) is a Cholesky factor of a form F(c), which is linear in P(c) and in the level of the basin
(`solver.value.family`). Every export evaluates the polynomials, composes P, and factors F, in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import torch
from torch import Tensor

from modelgen.metadata import Parameter
from solver.problem import Problem
from solver.problem.context import Context
from solver.value.family import REACH, BasinFamily
from solver.value.network import Ensemble


@dataclass(frozen=True)
class Told:
    """A context and its polynomials: coefficients of the b products of `degrees` (b, k)."""

    context: Context
    parameters: tuple[Parameter, ...]  # (k,)
    degrees: Tensor  # (b, k)
    polynomial: Tensor  # (b, 1 + q) of the reciprocal of the largest level, and of `factored` P
    share: float  # of the largest level is the level of the basin; 0: there is no basin
    form: Tensor  # (2 + q, n_z (n_z + 1)/2) the lower triangle of F = W W^T by 1, the level, and the triangle of P

    @property
    def errors(self) -> int:
        """Number nt of rows of P."""
        return _rows(self.polynomial.shape[1] - 1)

    @property
    def features(self) -> int:
        """Number n_z of rows of F."""
        return _rows(self.form.shape[1])

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Ends of the ranges, in SI units."""
        return [(entry.lower, entry.upper) for entry in self.context.given]

    @property
    def nominal(self) -> dict[str, float | None]:
        """Nominal values by name; None for one out of its range, which has no policy unless it is told another."""
        pairs = zip(self.parameters, self.ranges, strict=True)
        return {one.name: one.value if low <= one.value <= high else None for one, (low, high) in pairs}

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
    basin, features, size = ensemble.frame.basin, ensemble.features, ensemble.basin_cost.shape[-1]
    rows, columns = torch.tril_indices(size, size)
    polynomial, share = ensemble.polynomial.double().roll(1, 1), 0.0
    form = torch.zeros(2 + len(rows), features.size, features.size).double()
    if isinstance(basin, BasinFamily) and not basin.empty:
        share, units = float(ensemble.basin_level), torch.zeros(len(rows), size, size).double()
        each = torch.arange(len(rows))
        units[each, rows, columns] = units[each, columns, rows] = 1.0
        form[1] = features.form_of(torch.zeros(size, size), ensemble.target, REACH)
        form[2:] = features.form_of(units, ensemble.target, 0.0)
    else:  # the errors are measured by the same metric in all contexts, and V is the networks' everywhere
        form[0] = (features.metric @ features.metric.T).double()
    rows, columns = torch.tril_indices(features.size, features.size)
    parameters = tuple(named[name] for name in context.names)
    return Told(context, parameters, ensemble.degrees, polynomial, share, form[:, rows, columns])


def _rows(numbers: int) -> int:
    """Rows of a triangle of so many numbers."""
    return (isqrt(1 + 8 * numbers) - 1) // 2
