"""Enclosures of a program's nodes as a program of their own: intervals as midpoint and radius, for any backend.

Every node becomes two, a midpoint and a radius that is rounded upward. A radius that is infinite or NaN means that the
arguments may leave the domain of an operation. `affine` keeps the slopes at the middle of a box, so that what is known
of a function stays linear in its arguments, with an error of second order in the width of the box.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from modelgen.errors import ModelError
from modelgen.program import stored
from modelgen.program.differentiate import forward
from modelgen.program.functions import Argument, Function, Output, Program
from modelgen.program.graph import Graph, Node

UNIT = 1.2e-16  # relative error of an operation that is rounded once
LIBRARY = 2e-15  # relative error of other functions: nine units in the last place
PADDING = 1 + 2e-15  # of a radius, for the rounding of its own few operations
TINY = 1e-300  # absolute error of an operation that underflows
CHANGED = 0.25  # radius of a sign above which it changes in the box: it is 0, 1/2 or 1, up to rounding

Ball = tuple[Node, Node]  # midpoint and radius


def affine(program: Program, roots: Sequence[Node], variables: Sequence[Node]) -> Program:
    """The function `enclosure` (middle (d,), radius (d,)) -> middles (k,), slopes (k, d), rests (k,) of k roots.

    For |t| <= 1 and x = middle + radius t, the roots at x are within `rests` of middles + slopes (x - middle). The
    mean value theorem says so: rests = sum_j |f_j(box) - f_j(middle)| radius_j, of second order in the radius. It does
    not hold where a sign changes in the box: the rests then follow from the values of the box alone.
    variables: the d inputs that the roots depend on. Raises ModelError for an operation that has no rule.
    """
    source = Graph()
    inputs = {node: source.input(program.graph.operations[node].name) for node in variables}
    here = list(source.absorb(program.graph, [*roots], inputs))
    places = list(inputs.values())
    slopes = [forward(source, here, place) for place in places]
    graph = Graph()
    middle = tuple(graph.input(f"c{k}") for k in range(len(places)))
    radius = tuple(graph.input(f"r{k}") for k in range(len(places)))
    at_point = _Translation(source, graph, dict(zip(places, ((c, graph.zero) for c in middle), strict=True)))
    over_box = _Translation(source, graph, dict(zip(places, zip(middle, radius, strict=True), strict=True)))
    middles: list[Node] = []
    linear: list[Node] = []
    rests: list[Node] = []
    for k, root in enumerate(here):
        point, natural = at_point(root), over_box(root)
        steep = [at_point(slope[k]) for slope in slopes]
        bent = graph.sum(
            graph.mul(_distance(graph, over_box(slope[k]), at[0]), r)
            for slope, at, r in zip(slopes, steep, radius, strict=True)
        )
        changes = [graph.sub(over_box(node)[1], graph.constant(CHANGED)) for node in source.of_kind([root], "sign")]
        unknown = graph.sum(graph.call("maximum", change, graph.zero) for change in changes)
        bent = graph.add(bent, graph.mul(graph.constant(1 / TINY), unknown))
        tilted = graph.sum(graph.mul(graph.call("abs", at[0]), r) for at, r in zip(steep, radius, strict=True))
        wide = graph.add(_distance(graph, natural, point[0]), tilted)
        middles.append(point[0])
        linear.extend(at[0] for at in steep)
        rests.append(graph.mul(graph.constant(PADDING), graph.call("minimum", graph.add(point[1], bent), wide)))
    arguments = Argument("middle", middle), Argument("radius", radius)
    outputs = (
        Output("middles", (len(roots),), tuple(middles)),
        Output("slopes", (len(roots), len(places)), tuple(linear)),
        Output("rests", (len(roots),), tuple(rests)),
    )
    made = Program(graph, (Function("enclosure", arguments, outputs),))
    return replace(made, digest=hashlib.sha256(stored.write(made)).hexdigest())


def _distance(graph: Graph, ball: Ball, point: Node) -> Node:
    """The largest distance of the numbers of a ball from a point."""
    return graph.add(graph.call("abs", graph.sub(ball[0], point)), ball[1])


def _largest(graph: Graph, ball: Ball) -> Node:
    return graph.add(graph.call("abs", ball[0]), ball[1])


class _Translation:
    """Nodes of one graph as balls of another."""

    def __init__(self, source: Graph, graph: Graph, known: dict[Node, Ball]) -> None:
        self._source, self._graph, self._known = source, graph, known

    def __call__(self, root: Node) -> Ball:
        for node in self._source.reachable([root]):
            if node not in self._known:
                self._known[node] = self._made(node)
        return self._known[root]

    def _made(self, node: Node) -> Ball:
        g, operation = self._graph, self._source.operations[node]
        if operation.kind == "constant":
            return g.constant(operation.value), g.zero
        if operation.kind == "mul" and operation.arguments[0] == operation.arguments[1]:
            return _square(g, *self._known[operation.arguments[0]])
        balls = [self._known[argument] for argument in operation.arguments]
        if operation.kind in ("negative", "solution"):
            (c, r), *_ = balls
            return (g.negative(c) if operation.kind == "negative" else c), r
        if operation.kind in MONOTONE:
            return _by_ends(g, lambda at: g.call(operation.kind, at), *balls[0])
        if operation.kind == "pow":
            return _by_ends(g, lambda at: g.call("pow", at, balls[1][0]), *balls[0])
        if operation.kind not in RULES:
            raise ModelError(
                f"`{operation.kind}` has no rule in interval arithmetic, so that nothing can be proven of it."
            )
        return RULES[operation.kind](g, *balls)


def _rounded(g: Graph, c: Node, r: Node, relative: float = UNIT) -> Ball:
    error = g.add(g.mul(g.constant(relative), g.call("abs", c)), g.constant(TINY))
    return c, g.mul(g.constant(PADDING), g.add(r, error))


def _by_ends(g: Graph, function: Callable[[Node], Node], c: Node, r: Node) -> Ball:
    """A monotone function."""
    if r == g.zero:
        value = function(c)
        return _rounded(g, value, g.zero, LIBRARY)
    _, wide = _rounded(g, c, r)
    low, high = function(g.sub(c, wide)), function(g.add(c, wide))
    half = g.constant(0.5)
    size = g.add(g.call("abs", low), g.call("abs", high))
    radius = g.add(g.call("abs", g.mul(half, g.sub(high, low))), g.mul(g.constant(2 * LIBRARY), size))
    return _rounded(g, g.mul(half, g.add(low, high)), radius)


def _sum(g: Graph, a: Ball, b: Ball) -> Ball:
    return _rounded(g, g.add(a[0], b[0]), g.add(a[1], b[1]))


def _difference(g: Graph, a: Ball, b: Ball) -> Ball:
    return _rounded(g, g.sub(a[0], b[0]), g.add(a[1], b[1]))


def _product(g: Graph, a: Ball, b: Ball) -> Ball:
    radius = g.add(g.mul(g.call("abs", a[0]), b[1]), g.mul(a[1], _largest(g, b)))
    return _rounded(g, g.mul(a[0], b[0]), radius)


def _square(g: Graph, c: Node, r: Node) -> Ball:
    """A number times itself, which is never negative."""
    if r == g.zero:
        return _rounded(g, g.mul(c, c), g.zero)
    size, padded = g.call("abs", c), g.mul(g.constant(PADDING), r)
    low, high = g.call("maximum", g.sub(size, padded), g.zero), g.add(size, padded)
    ends, half = (g.mul(low, low), g.mul(high, high)), g.constant(0.5)
    middle = g.mul(half, g.add(*ends))
    return _rounded(g, middle, g.mul(half, g.sub(ends[1], ends[0])), 4 * UNIT)


def _quotient(g: Graph, a: Ball, b: Ball) -> Ball:
    """a/b - c = (a - a0)/b + a0 (1/b - 1/b0), with c = a0/b0; a radius that is infinite where b may be zero."""
    c = g.div(a[0], b[0])
    if b[1] == g.zero:
        return _rounded(g, c, g.div(a[1], g.call("abs", b[0])))
    least = g.call("maximum", g.sub(g.call("abs", b[0]), g.mul(g.constant(PADDING), b[1])), g.zero)
    return _rounded(g, c, g.div(g.add(a[1], g.mul(g.call("abs", c), b[1])), least))


def _root(g: Graph, a: Ball) -> Ball:
    c = g.call("sqrt", a[0])
    if a[1] == g.zero:
        return _rounded(g, c, g.zero)
    return _rounded(g, c, g.div(a[1], g.add(c, g.call("sqrt", g.sub(a[0], g.mul(g.constant(PADDING), a[1]))))))


def _wave(name: str, slope: str) -> Callable[[Graph, Ball], Ball]:
    """Sine or cosine: |f(c + d) - f(c)| <= |f'(c)| |d| + d^2/2, and at most |d|."""

    def rule(g: Graph, a: Ball) -> Ball:
        c, r = a
        value = g.call(name, c)
        bent = g.add(g.mul(g.call("abs", g.call(slope, c)), r), g.mul(g.constant(0.5), g.mul(r, r)))
        radius = g.call("minimum", r, bent) if r != g.zero else r
        return value, g.mul(g.constant(PADDING), g.add(radius, g.constant(LIBRARY)))

    return rule


def _hyperbolic_cosine(g: Graph, a: Ball) -> Ball:
    return _rounded(g, g.call("cosh", a[0]), g.mul(a[1], g.call("cosh", _largest(g, a))), LIBRARY)


def _magnitude(g: Graph, a: Ball) -> Ball:
    return g.call("abs", a[0]), a[1]


def _extreme(name: str) -> Callable[[Graph, Ball, Ball], Ball]:
    def rule(g: Graph, a: Ball, b: Ball) -> Ball:
        return g.call(name, a[0], b[0]), g.call("maximum", a[1], b[1])

    return rule


#: Functions of one argument that rise or fall wherever they are defined; outside they are NaN.
MONOTONE = {"asin", "acos", "atan", "sinh", "tanh", "exp", "log", "log1p", "sign"}
#: Kind of operation -> rule.
RULES: dict[str, Callable[..., Ball]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "sqrt": _root,
    "sin": _wave("sin", "cos"),
    "cos": _wave("cos", "sin"),
    "cosh": _hyperbolic_cosine,
    "abs": _magnitude,
    "minimum": _extreme("minimum"),
    "maximum": _extreme("maximum"),
}
