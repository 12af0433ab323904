"""Lagrange's equations: the mass matrix and forces of kinetic and potential energies."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Matrix, S, Symbol, factor_terms

from modelgen.derivation.shortening import collapsed, is_expandable
from modelgen.errors import ModelError, abridged
from modelgen.statement.declarations import Energy


def lagrange(
    kinetic: Sequence[Energy], potential: Sequence[Energy], q: Sequence[Symbol], rates: Sequence[Symbol]
) -> tuple[Matrix, Matrix]:
    """M (n_q, n_q) and force (n_q, 1) of M(q) qddot = force(q, qdot), without applied forces.

    With T = qdot' M qdot / 2 + b' qdot + T0 (all functions of q), force = -c(q, qdot) + d(T0 - U)/dq, where c holds
    the Christoffel terms of M and the gyroscopic terms of b. Raises ModelError if T is not quadratic in the rates.
    """
    mass_matrix = _mass_matrix(kinetic, rates)
    force = _remainder(kinetic, q, rates) - _christoffel(mass_matrix, q, rates)
    return mass_matrix, force - _gradient([energy.value for energy in potential], q)


def _mass_matrix(kinetic: Sequence[Energy], rates: Sequence[Symbol]) -> Matrix:
    """M = d2T/dqdot2. Raises ModelError if it depends on the rates."""
    size = len(rates)
    matrix = Matrix.zeros(size, size)
    for energy in kinetic:
        for row in range(size):
            slope = energy.value.diff(rates[row])
            for column in range(row, size):
                entry = slope.diff(rates[column])
                if not entry.free_symbols.isdisjoint(rates) and is_expandable(entry):
                    entry = entry.expand()
                if not entry.free_symbols.isdisjoint(rates):
                    raise ModelError(
                        f"the kinetic energy is not quadratic in `{rates[row]}` and `{rates[column]}`: its second "
                        f"derivative is {abridged(str(entry))}. Write energies such as mass * "
                        "coordinate.rate**2 / 2.",
                        energy.place,
                    )
                matrix[row, column] += entry
    for row in range(size):
        for column in range(row, size):
            matrix[row, column] = matrix[column, row] = collapsed(matrix[row, column])
    return matrix


def _christoffel(mass_matrix: Matrix, q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """c_i = sum_jk (dM_ij/dq_k - dM_jk/dq_i / 2) v_j v_k, with one coefficient per product of rates."""
    size = len(q)
    slopes = [
        [[mass_matrix[min(i, j), max(i, j)].diff(q[k]) for k in range(size)] for j in range(size)] for i in range(size)
    ]
    result = []
    for i in range(size):
        row = S.Zero
        for j in range(size):
            row += _compact(slopes[i][j][j] - slopes[j][j][i] / 2) * v[j] ** 2
            for k in range(j):
                row += _compact(slopes[i][j][k] + slopes[i][k][j] - slopes[j][k][i]) * v[j] * v[k]
        result.append(row)
    return Matrix(result)


def _compact(coefficient: Expr) -> Expr:
    """The expression without terms that cancel, and with common factors in front; unchanged if it is too long."""
    return factor_terms(coefficient.expand()) if is_expandable(coefficient) else coefficient


def _remainder(kinetic: Sequence[Energy], q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """Forces of the parts of T that are linear in the rates (gyroscopic) or independent of them."""
    at_rest = dict.fromkeys(v, S.Zero)
    linear = [S.Zero] * len(q)
    free = []
    for energy in kinetic:
        if energy.value.free_symbols.isdisjoint(v):
            free.append(energy.value)
            continue
        free.append(energy.value.xreplace(at_rest))
        for i, rate in enumerate(v):
            linear[i] += energy.value.diff(rate).xreplace(at_rest)
    gyroscopic = [
        sum(((linear[j].diff(q[i]) - linear[i].diff(q[j])) * v[j] for j in range(len(q))), S.Zero)
        for i in range(len(q))
    ]
    return Matrix(gyroscopic) + _gradient(free, q)


def _gradient(terms: Sequence[Expr], q: Sequence[Symbol]) -> Matrix:
    """d(sum of terms)/dq as a column."""
    total = sum(terms, S.Zero)
    slopes = [total.diff(symbol) for symbol in q]
    return Matrix([factor_terms(slope) if is_expandable(slope) else slope for slope in slopes])
