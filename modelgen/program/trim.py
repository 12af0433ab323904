"""The trim u0(theta) as functions of an artifact's nodes, and the active set method that keeps it within limits.

They are made when they are asked for, so that artifacts and their hashes stay as they are.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace

from modelgen.files import sources
from modelgen.metadata import Metadata
from modelgen.program.functions import Function, Output, Program
from modelgen.program.graph import Graph, Node

REGULAR = 1e-10  # weight of the size of the inputs in a trim, which makes redundant ones small
REFINED = 3  # solutions that take off what the weight has taken from an input that is weaker than others
SMALLEST = 1e-12  # of that weight, for inputs without an effect
PARALLEL = 1e-20  # of a squared length: what is left of it by rounding, where a state acts as others do
TOGETHER = 3  # rounds of a trim in which all inputs on the wrong side of a limit change it,
SINGLE, MORE = 1, 6  # then rounds in which one does: of two inputs, and for every further input


def trims(program: Program, robot: Metadata) -> Program:
    """`trim`, a function (x, theta) -> u0 (m,): the smallest inputs within the limits that hold a target x.

    Where no input holds it, they come nearest to it. Inputs are measured in units of half their range, and rates in
    units of the limits of the states. `trim_slopes` gives du0_dtheta (m, p) too, by the implicit function theorem on
    the Jacobians of the dynamics; without them in the program it is left out. States of first order at the target, such
    as currents, move with theta there: of the rates, only those count that no such state takes up.

    Where inputs would leave their limits, an active set method finds those that stay at one, as `_bounded` says.
    `trim_balance` gives its N (m, m), wanted (m,) and weight, for backends that have loops.
    """
    graph, known = program.graph, {function.name: function for function in program.functions}
    x, theta = known["affine_dynamics"].arguments
    a, B = (output.entries for output in known["affine_dynamics"].outputs)
    m, half = len(robot.inputs), [entry.limit for entry in robot.inputs]
    scales = [(i, 1.0 / robot.states[i].limit) for i in robot.held]

    def rows(by_input: Sequence[Node]) -> list[list[Node]]:
        """Rates (h, m) of the held states by shares of the inputs, in units of their limits."""
        return [[graph.mul(graph.constant(s * half[k]), by_input[i * m + k]) for k in range(m)] for i, s in scales]

    A, drift = rows(B), [graph.mul(graph.constant(s), a[i]) for i, s in scales]
    columns = [list(column) for column in zip(*A, strict=True)] or [[] for _ in range(m)]
    N, weight = _products(graph, columns)
    wanted = [graph.negative(graph.dot(column, drift)) for column in columns]
    bounds = [(entry.lower / entry.limit, entry.upper / entry.limit) for entry in robot.inputs]
    z, free = _bounded(graph, N, wanted, weight, bounds)
    u0 = Output("u0", (m,), tuple(graph.mul(graph.constant(h), share) for h, share in zip(half, z, strict=True)))
    products = Output("N", (m, m), tuple(each for row in N for each in row))
    balance = products, Output("wanted", (m,), tuple(wanted)), Output("weight", (), (weight,))
    made = [Function("trim", (x, theta), (u0,)), Function("trim_balance", (x, theta), balance)]
    if "jacobians" in known:
        of = {output.name: output.entries for output in known["jacobians"].outputs}
        n, p, u0s = len(robot.states), len(theta.entries), u0.entries
        rest = [graph.add(graph.dot(row, z), each) for row, each in zip(A, drift, strict=True)]
        taken = []  # rates (h,) by every state of first order
        for j in range(robot.velocities.stop, n):
            by_state = [
                graph.add(of["da_dx"][i * n + j], graph.dot(of["dB_dx"][i * m * n + j :: n][:m], u0s)) for i in range(n)
            ]
            taken.append([graph.mul(graph.constant(s * robot.states[j].limit), by_state[i]) for i, s in scales])
        *counted, rest = _cleared(graph, [*columns, rest], taken)
        (N, weight), slopes = _products(graph, counted), []
        for j in range(p):
            dA = rows(of["dB_dtheta"][j::p])
            moved = [
                graph.add(graph.dot(row, z), graph.mul(graph.constant(s), of["da_dtheta"][i * p + j]))
                for row, (i, s) in zip(dA, scales, strict=True)
            ]
            right = [
                graph.negative(graph.add(graph.dot(column, moved), graph.dot([row[k] for row in dA], rest)))
                for k, column in enumerate(counted)
            ]
            slopes.append(_refined(graph, N, free, [graph.mul(f, r) for f, r in zip(free, right, strict=True)], weight))
        by_theta = tuple(graph.mul(graph.constant(half[k]), slopes[j][k]) for k in range(m) for j in range(p))
        made.append(Function("trim_slopes", (x, theta), (u0, Output("du0_dtheta", (m, p), by_theta))))
    facts = [robot.held, [state.limit for state in robot.states], half, bounds]  # which are not in the program
    digest = hashlib.sha256(f"{program.digest} {facts} {sources(sys.modules[__name__])}".encode()).hexdigest()
    return replace(program, functions=tuple(made), drawing=None, segments=(), digest=digest)


def _products(graph: Graph, columns: Sequence[Sequence[Node]]) -> tuple[list[list[Node]], Node]:
    """Products (m, m) of the columns with each other, plus the weight of the size of the inputs; the weight."""
    N = [[graph.dot(one, other) for other in columns] for one in columns]
    size = graph.call("maximum", graph.sum(N[k][k] for k in range(len(N))), graph.constant(SMALLEST))
    weight = graph.mul(graph.constant(REGULAR), size)
    for k in range(len(N)):
        N[k][k] = graph.add(N[k][k], weight)
    return N, weight


def _refined(
    graph: Graph, N: list[list[Node]], free: Sequence[Node], right: Sequence[Node], weight: Node
) -> Sequence[Node]:
    """z with N z = right among the free entries, without the share of N that is the weight (iterated Tikhonov
    regularisation; M. Hanke and C. Groetsch, J. Optim. Theory Appl. 98, 1998). Redundant entries stay small."""
    masked, pulls = _masked(graph, N, free), [graph.mul(weight, each) for each in free]
    z = graph.solve(masked, right)
    for _ in range(REFINED):
        more = [graph.add(r, graph.mul(pull, each)) for r, pull, each in zip(right, pulls, z, strict=True)]
        z = graph.solve(masked, more)
    return z


def _cleared(graph: Graph, columns: Sequence[list[Node]], taken: Sequence[list[Node]]) -> list[list[Node]]:
    """The columns without their parts in the span of those in `taken` (modified Gram-Schmidt)."""
    left = [*taken, *columns]
    for k, before in enumerate(taken):
        first = left[k]
        least = graph.add(graph.constant(SMALLEST), graph.mul(graph.constant(PARALLEL), graph.dot(before, before)))
        size = graph.add(graph.dot(first, first), least)
        for other in range(k + 1, len(left)):
            share = graph.div(graph.dot(first, left[other]), size)
            left[other] = [graph.sub(a, graph.mul(share, b)) for a, b in zip(left[other], first, strict=True)]
    return left[len(taken) :]


def _masked(graph: Graph, N: list[list[Node]], free: Sequence[Node]) -> list[list[Node]]:
    """N (m, m) among the free entries, and the unit matrix among the others."""
    m = len(free)
    held = [graph.sub(graph.one, each) for each in free]
    return [
        [
            graph.add(graph.mul(graph.mul(free[i], free[k]), N[i][k]), held[i] if i == k else graph.zero)
            for k in range(m)
        ]
        for i in range(m)
    ]


def _bounded(
    graph: Graph, N: list[list[Node]], wanted: Sequence[Node], weight: Node, bounds: Sequence[tuple[float, float]]
) -> tuple[list[Node], list[Node]]:
    """The z (m,) with the least z' N z/2 - wanted' z within bounds; 1 for its entries that are free, 0 for others.

    Every round solves for the free entries. Those beyond a limit are held there, and those that are drawn back from
    theirs are free again: first all together (Newton's method), then the last one alone, which cannot cycle
    (K. Murty, 1974; J. Judice and F. Pires: A block principal pivoting algorithm, 1994).
    """
    m = len(wanted)
    low, high = ([graph.constant(each[side]) for each in bounds] for side in (0, 1))
    if m == 1:
        (alone,) = graph.solve(N, wanted)
        return [_clipped(graph, alone, low[0], high[0])], [_between(graph, alone, low[0], high[0])]
    below, above = [graph.zero] * m, [graph.zero] * m  # 1 for an input that is held at its limit
    for number in range(rounds(m) + 1):
        free = [graph.sub(graph.one, graph.add(*sides)) for sides in zip(below, above, strict=True)]
        fixed = [graph.add(graph.mul(below[k], low[k]), graph.mul(above[k], high[k])) for k in range(m)]
        right = [_chosen(graph, free[k], graph.sub(wanted[k], graph.dot(N[k], fixed)), fixed[k]) for k in range(m)]
        if number == rounds(m):
            z = _refined(graph, N, free, right, weight)
            break
        z = graph.solve(_masked(graph, N, free), right)
        last = graph.one  # 1 until an input has changed its side
        for k in reversed(range(m)):
            pull = graph.sub(wanted[k], graph.dot(N[k], z))
            under = _held(graph, free[k], _beyond(graph, low[k], z[k]), below[k], _beyond(graph, pull, graph.zero))
            over = _held(graph, free[k], _beyond(graph, z[k], high[k]), above[k], _beyond(graph, graph.zero, pull))
            if number >= TOGETHER:
                changes = [graph.sub(new, old) for new, old in ((under, below[k]), (over, above[k]))]
                under, over = (
                    graph.add(old, graph.mul(last, change))
                    for old, change in zip((below[k], above[k]), changes, strict=True)
                )
                last = graph.mul(last, graph.sub(graph.one, graph.dot(changes, changes)))
            below[k], above[k] = under, over
    return [_clipped(graph, *each) for each in zip(z, low, high, strict=True)], free


def rounds(m: int) -> int:
    """Number of rounds that find which of m > 1 inputs stay at a limit."""
    return TOGETHER + SINGLE + MORE * (m - 2)


def _held(graph: Graph, free: Node, leaves: Node, held: Node, returns: Node) -> Node:
    """1 for an input at a limit in the next round: it leaves its range there, or is held and is not drawn back."""
    return graph.add(graph.mul(free, leaves), graph.mul(held, graph.sub(graph.one, returns)))


def _beyond(graph: Graph, a: Node, b: Node) -> Node:
    """1 where a > b, otherwise 0."""
    return graph.call("maximum", graph.zero, graph.call("sign", graph.sub(a, b)))


def _between(graph: Graph, z: Node, low: Node, high: Node) -> Node:
    """1 where z is within the limits, otherwise 0."""
    return graph.sub(graph.one, graph.call("maximum", _beyond(graph, low, z), _beyond(graph, z, high)))


def _chosen(graph: Graph, mask: Node, a: Node, b: Node) -> Node:
    return graph.add(graph.mul(mask, a), graph.mul(graph.sub(graph.one, mask), b))


def _clipped(graph: Graph, z: Node, low: Node, high: Node) -> Node:
    return graph.call("minimum", graph.call("maximum", z, low), high)
