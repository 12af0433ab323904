"""The trim u0(theta) as functions of an artifact's nodes, and the interior point method that keeps it within limits.

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
SMALLEST = 1e-12  # of that weight, for inputs without an effect
ROUNDS = 16  # steps of the interior point method for trims of several inputs
CENTRED = 0.1  # of the mean product of room and multiplier, which a step aims at
NOT_YET = 0.99  # of the way to the nearest limit, which no step exceeds
NEAREST = 1e-12  # to a limit, in shares of an input


def trims(program: Program, robot: Metadata) -> Program:
    """`trim`, a function (x, theta) -> u0 (m,): the smallest inputs within the limits that hold a target x.

    Where no input holds it, they come nearest to it. Inputs are measured in units of half their range, and rates in
    units of the limits of the states. `trim_slopes` gives du0_dtheta (m, p) too, by the implicit function theorem on
    the Jacobians of the dynamics; without them in the program it is left out.

    Where several inputs would leave their limits, an interior point method finds those at a limit, and the equations
    of the others are solved again (S. Wright: Primal-Dual Interior-Point Methods, 1997).
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
    N = [[graph.dot(one, other) for other in columns] for one in columns]
    size = graph.call("maximum", graph.sum(N[k][k] for k in range(m)), graph.constant(SMALLEST))
    for k in range(m):
        N[k][k] = graph.add(N[k][k], graph.mul(graph.constant(REGULAR), size))
    wanted = [graph.negative(graph.dot(column, drift)) for column in columns]
    z, free = _bounded(
        graph, N, wanted, [(entry.lower / entry.limit, entry.upper / entry.limit) for entry in robot.inputs]
    )
    u0 = Output("u0", (m,), tuple(graph.mul(graph.constant(h), share) for h, share in zip(half, z, strict=True)))
    made = [Function("trim", (x, theta), (u0,))]
    if "jacobians" in known:
        of = {output.name: output.entries for output in known["jacobians"].outputs}
        p, rest = len(theta.entries), [graph.add(graph.dot(row, z), each) for row, each in zip(A, drift, strict=True)]
        slopes = []
        for j in range(p):
            dA = rows(of["dB_dtheta"][j::p])
            moved = [
                graph.add(graph.dot(row, z), graph.mul(graph.constant(s), of["da_dtheta"][i * p + j]))
                for row, (i, s) in zip(dA, scales, strict=True)
            ]
            right = [
                graph.negative(graph.add(graph.dot(column, moved), graph.dot([row[k] for row in dA], rest)))
                for k, column in enumerate(columns)
            ]
            slopes.append(
                graph.solve(_masked(graph, N, free), [graph.mul(f, r) for f, r in zip(free, right, strict=True)])
            )
        by_theta = tuple(graph.mul(graph.constant(half[k]), slopes[j][k]) for k in range(m) for j in range(p))
        made.append(Function("trim_slopes", (x, theta), (u0, Output("du0_dtheta", (m, p), by_theta))))
    digest = hashlib.sha256(f"{program.digest} {sources(sys.modules[__name__])}".encode()).hexdigest()
    return replace(program, functions=tuple(made), drawing=None, segments=(), digest=digest)


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
    graph: Graph, N: list[list[Node]], wanted: Sequence[Node], bounds: Sequence[tuple[float, float]]
) -> tuple[list[Node], list[Node]]:
    """The z (m,) with the least z' N z/2 - wanted' z within bounds; 1 for its entries that are free, 0 for others."""
    m, alone = len(wanted), list(graph.solve(N, wanted))
    low, high = ([graph.constant(each[side]) for each in bounds] for side in (0, 1))
    free = [_between(graph, t, a, b) for t, a, b in zip(alone, low, high, strict=True)]
    if m == 1:
        return [_clipped(graph, alone[0], low[0], high[0])], free
    inside = graph.one
    for each in free:
        inside = graph.mul(inside, each)
    z, below, above = _interior(graph, N, wanted, low, high)
    loose = [_between(graph, z[k], graph.add(low[k], below[k]), graph.sub(high[k], above[k])) for k in range(m)]
    ends = [_chosen(graph, _beyond(graph, below[k], above[k]), low[k], high[k]) for k in range(m)]
    fixed = [graph.mul(graph.sub(graph.one, loose[k]), ends[k]) for k in range(m)]
    right = [_chosen(graph, loose[k], graph.sub(wanted[k], graph.dot(N[k], fixed)), fixed[k]) for k in range(m)]
    polished = [
        _clipped(graph, *entries)
        for entries in zip(graph.solve(_masked(graph, N, loose), right), low, high, strict=True)
    ]
    worse = _beyond(graph, *(_quadratic(graph, N, wanted, each) for each in (polished, z)))
    limited = [_chosen(graph, worse, one, other) for one, other in zip(z, polished, strict=True)]
    return (
        [_chosen(graph, inside, one, other) for one, other in zip(alone, limited, strict=True)],
        [_chosen(graph, inside, graph.one, each) for each in loose],
    )


def _interior(
    graph: Graph, N: list[list[Node]], wanted: Sequence[Node], low: Sequence[Node], high: Sequence[Node]
) -> tuple[list[Node], list[Node], list[Node]]:
    """z (m,) of `_bounded` up to rounding, and the multipliers of both limits by the trace of N."""
    m = len(wanted)
    size = graph.call("maximum", graph.sum(N[k][k] for k in range(m)), graph.constant(SMALLEST))
    z = [graph.mul(graph.constant(0.5), graph.add(a, b)) for a, b in zip(low, high, strict=True)]
    pulls = [[size] * m, [size] * m]  # multipliers of the lower and of the upper limits
    share = graph.constant(CENTRED / (2 * m))
    for _ in range(ROUNDS):
        rooms = [
            [
                graph.call("maximum", graph.sub(b, a), graph.constant(NEAREST))
                for a, b in zip(ends[0], ends[1], strict=True)
            ]
            for ends in ((low, z), (z, high))
        ]
        mu = graph.mul(share, graph.add(*(graph.dot(room, pull) for room, pull in zip(rooms, pulls, strict=True))))
        stiff = [
            [graph.div(l, s) for l, s in zip(pull, room, strict=True)] for pull, room in zip(pulls, rooms, strict=True)
        ]
        push = [[graph.div(mu, s) for s in room] for room in rooms]
        matrix = [
            [graph.add(N[i][k], graph.add(stiff[0][k], stiff[1][k])) if i == k else N[i][k] for k in range(m)]
            for i in range(m)
        ]
        right = [
            graph.add(graph.sub(wanted[k], graph.dot(N[k], z)), graph.sub(push[0][k], push[1][k])) for k in range(m)
        ]
        step = graph.solve(matrix, right)
        towards = [step, [graph.negative(each) for each in step]]  # growth of the room to either limit
        changes = [
            [
                graph.sub(graph.sub(push[side][k], pulls[side][k]), graph.mul(stiff[side][k], towards[side][k]))
                for k in range(m)
            ]
            for side in (0, 1)
        ]
        most = graph.constant(NOT_YET)
        for side in (0, 1):
            for k in range(m):
                most = graph.call("maximum", most, graph.negative(graph.div(towards[side][k], rooms[side][k])))
                most = graph.call("maximum", most, graph.negative(graph.div(changes[side][k], pulls[side][k])))
        length = graph.div(graph.constant(NOT_YET), most)
        z = [graph.add(each, graph.mul(length, change)) for each, change in zip(z, step, strict=True)]
        pulls = [
            [graph.add(each, graph.mul(length, change)) for each, change in zip(pull, changed, strict=True)]
            for pull, changed in zip(pulls, changes, strict=True)
        ]
    return z, *([graph.div(each, size) for each in pull] for pull in pulls)  # type: ignore[return-value]


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


def _quadratic(graph: Graph, N: list[list[Node]], wanted: Sequence[Node], z: Sequence[Node]) -> Node:
    squares = graph.dot(z, [graph.dot(row, z) for row in N])
    return graph.sub(graph.mul(graph.constant(0.5), squares), graph.dot(wanted, z))
