"""The generalized forces of loads, by virtual work."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Matrix, S, Symbol

from modelgen.errors import ModelError, Place
from modelgen.statement.declarations import Load


def generalized_forces(loads: Sequence[Load], q: Sequence[Symbol], u: Sequence[Symbol]) -> tuple[Matrix, Matrix]:
    """The generalized forces (n_q, 1) at u = 0, and the input matrix (n_q, m).

    A load does the work force * d(displacement), so it acts along q_i with force * d(displacement)/dq_i.
    Raises ModelError for a force that is not affine in the inputs.
    """
    forces = Matrix.zeros(len(q), 1)
    input_matrix = Matrix.zeros(len(q), len(u))
    for load in loads:
        at_zero, slopes = affine(load.force, u, load.place)
        for row, coordinate in enumerate(q):
            lever = load.displacement.diff(coordinate)
            forces[row] += lever * at_zero
            for column, slope in enumerate(slopes):
                input_matrix[row, column] += lever * slope
    return forces, input_matrix


def affine(force: Expr, u: Sequence[Symbol], place: Place) -> tuple[Expr, Matrix]:
    """A force at u = 0, and its slope in each input (1, m). Raises ModelError where the slope depends on an input."""
    slopes = [force.diff(symbol) for symbol in u]
    for column, slope in enumerate(slopes):
        if not slope.free_symbols.isdisjoint(u):
            slopes[column] = slope.expand()
        if not slopes[column].free_symbols.isdisjoint(u):
            raise ModelError(
                f"the applied force {force} is not affine in the input `{u[column]}`. Inputs may "
                "only be multiplied by expressions of the state and added; declare the nonlinear term "
                "itself as the input, for example.",
                place,
            )
    return force.xreplace(dict.fromkeys(u, S.Zero)), Matrix([slopes])
