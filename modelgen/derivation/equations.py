"""Equations of motion in implicit form: the result of every derivation and the source of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sympy import Expr, Matrix, Symbol

from modelgen.statement.action_costs import InputCost

Definition = tuple[Symbol, Expr]
Slopes = tuple[tuple[Symbol, Expr], ...]  # pairs of a variable and the slope along it


@dataclass(frozen=True)
class EquationsOfMotion:
    """qdot = coordinate_rates(q, v; theta),  M(q; theta) vdot = force(q, v; theta) + input_matrix(q; theta) u.

    The expressions contain the symbols below and the left-hand sides of `definitions`, which are evaluated first, in
    order. The recursive derivation names its intermediates there; Lagrange's equations have none. A symbol of
    `implicit` is the result of an iteration that its definition unrolls: derivatives use its slopes instead.
    """

    coordinates: tuple[Symbol, ...]  # q (n_q)
    velocities: tuple[Symbol, ...]  # v (n_v); x = (q, v)
    inputs: tuple[Symbol, ...]  # u (m)
    parameters: tuple[Symbol, ...]  # theta (p)
    definitions: tuple[Definition, ...]
    coordinate_rates: Matrix  # (n_q, 1)
    mass_matrix: Matrix  # (n_v, n_v)
    force: Matrix  # (n_v, 1), everything except M vdot, at u = 0
    input_matrix: Matrix  # (n_v, m)
    state_cost: Expr  # q_c(x; theta) >= 0, a cost rate, as the model file writes it
    input_costs: tuple[InputCost, ...]  # (m,), the action cost
    trim: tuple[float, ...] = ()  # (m,) the input that holds the target; () counts as zero
    implicit: Mapping[Symbol, Slopes] = field(default_factory=dict)  # a defined symbol -> its slopes, for derivatives
    unheld: tuple[float, ...] = ()  # (n_v,) the drift at the target that no input within the limits cancels

    @property
    def state(self) -> tuple[Symbol, ...]:
        """x = (q, v)."""
        return self.coordinates + self.velocities


def used(definitions: Sequence[Definition], expressions: Iterable[Expr]) -> tuple[Definition, ...]:
    """The definitions that the expressions need, in their order."""
    wanted = {symbol for expression in expressions for symbol in expression.free_symbols}
    kept = []
    for symbol, value in reversed(definitions):
        if symbol in wanted:
            kept.append((symbol, value))
            wanted |= value.free_symbols
    return tuple(reversed(kept))
