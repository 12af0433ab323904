"""Equations of motion in implicit form: the result of every derivation and the source of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sympy import Expr, Matrix, Symbol

from modelgen.statement.action_costs import InputCost

Definition = tuple[Symbol, Expr]
Slopes = tuple[tuple[Symbol, Expr], ...]  # pairs of a variable and the slope along it


@dataclass(frozen=True)
class Free:
    """M vdot = force + input_matrix u + reaction of a robot with commanded accelerations.

    The reaction is the force of the drives. It is not zero only in the commanded `rows`.
    """

    mass_matrix: Matrix  # (n_v, n_v)
    force: Matrix  # (n_v, 1)
    input_matrix: Matrix  # (n_v, m)
    rows: tuple[int, ...]  # of v


@dataclass(frozen=True)
class EquationsOfMotion:
    """qdot = coordinate_rates(q, v; theta),  M(q; theta) vdot = force(x; theta) + input_matrix(x; theta) u,
    zdot = flow(x; theta) + flow_matrix(x; theta) u, with the state x = (q, v, z).

    The expressions contain the symbols below and the left-hand sides of `definitions`, which are evaluated first, in
    order. The recursive derivation names its intermediates there; Lagrange's equations have none. A symbol of
    `implicit` is the result of an iteration that its definition unrolls: derivatives use its slopes instead.
    """

    coordinates: tuple[Symbol, ...]  # q (n_q)
    velocities: tuple[Symbol, ...]  # v (n_v)
    inputs: tuple[Symbol, ...]  # u (m)
    parameters: tuple[Symbol, ...]  # theta (p)
    definitions: tuple[Definition, ...]
    coordinate_rates: Matrix  # (n_q, 1)
    mass_matrix: Matrix  # (n_v, n_v)
    force: Matrix  # (n_v, 1), everything except M vdot, at u = 0
    input_matrix: Matrix  # (n_v, m)
    state_cost: Expr  # q_c(x; theta) >= 0, a cost rate, as the model file writes it
    input_costs: tuple[InputCost, ...]  # (m,), the action cost
    internal: tuple[Symbol, ...] = ()  # z (n_z)
    flow: Matrix = field(default_factory=Matrix)  # (n_z, 1), zdot at u = 0
    flow_matrix: Matrix = field(default_factory=Matrix)  # (n_z, m), slopes of zdot in the inputs
    free: Free | None = None  # the mechanism, where M vdot = force + input_matrix u holds commanded accelerations
    trim: tuple[float, ...] = ()  # (m,) the input that holds the target; () counts as zero
    implicit: Mapping[Symbol, Slopes] = field(default_factory=dict)  # a defined symbol -> its slopes, for derivatives
    unheld: tuple[float, ...] = ()  # (n_v + n_z,) the drift at the target that no input within the limits cancels
    rest: tuple[float, ...] = ()  # (n_z,) z at the target

    @property
    def state(self) -> tuple[Symbol, ...]:
        """x = (q, v, z)."""
        return self.coordinates + self.velocities + self.internal


def mechanism_of(equations: EquationsOfMotion) -> Free:
    """M, force and input matrix of the mechanism itself, without commanded accelerations."""
    own = Free(equations.mass_matrix, equations.force, equations.input_matrix, ())
    return equations.free or own


def used(definitions: Sequence[Definition], expressions: Iterable[Expr]) -> tuple[Definition, ...]:
    """The definitions that the expressions need, in their order."""
    wanted = {symbol for expression in expressions for symbol in expression.free_symbols}
    kept = []
    for symbol, value in reversed(definitions):
        if symbol in wanted:
            kept.append((symbol, value))
            wanted |= value.free_symbols
    return tuple(reversed(kept))
