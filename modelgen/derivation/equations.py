"""Equations of motion in implicit form, the result of every derivation, and shorter forms of their expressions.

The trigonometric identities are applied directly, which is faster than SymPy's simplification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, prod

from sympy import Add, Expr, Matrix, Mul, S, Symbol, cos, default_sort_key, factor_terms, postorder_traversal, sin

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

    def xreplace(self, known: Mapping[Symbol, Expr]) -> Free:
        """The mechanism with expressions in place of symbols."""
        names = "mass_matrix", "force", "input_matrix"
        return replace(self, **{name: getattr(self, name).xreplace(known) for name in names})


Followed = tuple[str, tuple[float, ...]]  # a parameter's name, and the slopes (n_z,) of z at the target by it


@dataclass(frozen=True)
class EquationsOfMotion:
    """qdot = coordinate_rates(q, v; theta),  M(q; theta) vdot = force(x; theta) + input_matrix(x; theta) u,
    zdot = flow(x; theta) + flow_matrix(x; theta) u, with the state x = (q, v, z).

    A kinematic robot, whose inputs command velocities, has its coordinates in `internal`, before its other states of
    first order: q and v are empty here.

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
    rest: tuple[float, ...] = ()  # z at the target, without the coordinates of a kinematic robot
    followed: tuple[Followed, ...] = ()  # parameters with which `rest` moves

    @property
    def state(self) -> tuple[Symbol, ...]:
        """x = (q, v, z)."""
        return self.coordinates + self.velocities + self.internal

    def xreplace(self, known: Mapping[Symbol, Expr]) -> EquationsOfMotion:
        """The equations with expressions in place of symbols, along which nothing is differentiated any more."""
        names = ("coordinate_rates", "mass_matrix", "force", "input_matrix", "state_cost", "flow", "flow_matrix")
        return replace(
            self,
            **{name: getattr(self, name).xreplace(known) for name in names},
            definitions=tuple((symbol, value.xreplace(known)) for symbol, value in self.definitions),
            free=self.free and self.free.xreplace(known),
            implicit={
                z: tuple((symbol, slope.xreplace(known)) for symbol, slope in slopes if symbol not in known)
                for z, slopes in self.implicit.items()
            },
        )


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


Pair = tuple[str, Expr, Expr]  # the functions ("cc", "ss", "sc", "cs") and their two angles

MOST_TERMS = 500  # of an expanded expression; an expansion to more takes seconds and is rarely shorter


def is_expandable(expression: Expr) -> bool:
    """Whether the expansion of an expression, with its arguments, has at most MOST_TERMS terms. Expands nothing."""
    terms: dict[Expr, int] = {}  # of every node, as a factor of the nodes above
    total = 0
    for node in postorder_traversal(expression):
        if node in terms:
            continue
        count = 1
        if node.is_Add:
            count = sum(terms[argument] for argument in node.args)
        elif node.is_Mul:
            count = prod(terms[argument] for argument in node.args)
        elif node.is_Pow and node.exp.is_Integer:
            power, base = abs(int(node.exp)), terms[node.base]
            count = comb(base + power - 1, power)
        total += count
        terms[node] = 1 if node.is_Pow and node.exp.is_negative else count
    return total <= MOST_TERMS


def collapsed(expression: Expr) -> Expr:
    """The expression with cos^2 a + sin^2 a replaced by 1, and cos a cos b + sin a sin b by cos(a - b), and so on.

    Only terms with equal coefficients are joined, so that no term is added. Returns the original expression if the new
    one is not shorter, or if the expansion would be too long.
    """
    if not is_expandable(expression):
        return expression
    angles = {function.args[0] for function in expression.atoms(sin, cos)}
    terms = list(Add.make_args(expression.expand()))
    for angle in sorted(angles, key=default_sort_key):
        terms = list(Add.make_args(_squares_joined(terms, angle)))
    return min((expression, factor_terms(_products_joined(terms))), key=lambda candidate: candidate.count_ops())


def _squares_joined(terms: Iterable[Expr], angle: Expr) -> Expr:
    """The sum of the terms, with p cos^2 + q sin^2 written as p + (q - p) sin^2 if the other factors are equal."""
    others = []
    squares: dict[Expr, list[Expr]] = defaultdict(lambda: [S.Zero, S.Zero])
    for term in terms:
        coefficient, factors = term.as_coeff_mul()
        kind = next((n for n, square in enumerate((cos(angle) ** 2, sin(angle) ** 2)) if square in factors), None)
        if kind is None:
            others.append(term)
        else:
            square = (cos(angle) ** 2, sin(angle) ** 2)[kind]
            squares[Mul(*(factor for factor in factors if factor != square))][kind] += coefficient
    for rest, (p, q) in squares.items():
        if p != 0 and q != 0:
            others += [p * rest, (q - p) * rest * sin(angle) ** 2]
        else:
            others.append(p * rest * cos(angle) ** 2 + q * rest * sin(angle) ** 2)
    return Add(*others)


def _products_joined(terms: Iterable[Expr]) -> Expr:
    """The sum of the terms, with products of functions of two angles joined if the other factors are equal."""
    others = []
    products: dict[Expr, dict[Pair, Expr]] = defaultdict(dict)
    for term in terms:
        coefficient, pair, rest = _parted(term)
        if pair is None:
            others.append(term)
        else:
            products[rest][pair] = products[rest].get(pair, S.Zero) + coefficient
    return Add(*others, *(rest * _sum(pairs) for rest, pairs in products.items()))


def _parted(term: Expr) -> tuple[Expr, Pair | None, Expr]:
    """The number, the two sine or cosine factors if their angles differ, and the other factors of a term."""
    coefficient, factors = term.as_coeff_mul()
    functions = [factor for factor in factors if isinstance(factor, sin | cos)]
    if len(functions) != 2 or functions[0].args == functions[1].args:
        return coefficient, None, term
    first, second = sorted(functions, key=lambda function: default_sort_key(function.args[0]))
    kind = "".join("s" if isinstance(function, sin) else "c" for function in (first, second))
    rest = Mul(*(factor for factor in factors if not isinstance(factor, sin | cos)))
    return coefficient, (kind, first.args[0], second.args[0]), rest


def _sum(pairs: dict[Pair, Expr]) -> Expr:
    """The sum of coefficient * product over the pairs of angles."""
    result = S.Zero
    for a, b in dict.fromkeys((a, b) for _, a, b in pairs):
        cc, ss, sc, cs = (pairs.get((kind, a, b), S.Zero) for kind in ("cc", "ss", "sc", "cs"))
        if cc in (ss, -ss):
            result += cc * cos(a - b if cc == ss else a + b)
        else:
            result += cc * cos(a) * cos(b) + ss * sin(a) * sin(b)
        if sc in (cs, -cs):
            result += sc * sin(a + b if sc == cs else a - b)
        else:
            result += sc * sin(a) * cos(b) + cs * cos(a) * sin(b)
    return result
