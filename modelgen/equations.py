"""Equations of motion in implicit form: what every derivation route produces and the program is made from."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Matrix, Symbol


@dataclass(frozen=True)
class EquationsOfMotion:
    """qdot = coordinate_rates(q, v; theta),  M(q; theta) vdot = force(q, v; theta) + input_matrix(q; theta) u.

    Every expression is in the symbols below and in the left-hand sides of `definitions`, which are evaluated
    in order before anything else (a recursive derivation names its intermediates there; energies leave it
    empty). Matrices are SymPy matrices with n_q, n_v rows.
    """

    coordinates: tuple[Symbol, ...]  # q (n_q)
    velocities: tuple[Symbol, ...]  # v (n_v); x = (q, v)
    inputs: tuple[Symbol, ...]  # u (m)
    parameters: tuple[Symbol, ...]  # theta (p)
    definitions: tuple[tuple[Symbol, Expr], ...]
    coordinate_rates: Matrix  # (n_q, 1)
    mass_matrix: Matrix  # (n_v, n_v)
    force: Matrix  # (n_v, 1), all that is not inertia times acceleration, at u = 0
    input_matrix: Matrix  # (n_v, m)
    state_cost: Expr  # q_c(x; theta) as a cost, >= 0; kernels return it as given

    @property
    def state(self) -> tuple[Symbol, ...]:
        """x = (q, v)."""
        return self.coordinates + self.velocities
