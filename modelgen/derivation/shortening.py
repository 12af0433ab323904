"""Shorter forms of expressions: a bounded expansion, and joined products of sines and cosines.

The trigonometric identities are applied directly, which is faster than SymPy's simplification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import comb, prod

from sympy import Add, Expr, Mul, S, cos, default_sort_key, factor_terms, postorder_traversal, sin

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
