"""Mechanism -> program: the functions of an artifact, with derivatives formed on the graph.

Subexpressions are named before they are differentiated, so every rule is for one operation. A solution of
M c = r is a free symbol: forward, dc = M^-1 (dr - dM c); reverse, w = M^-1 c_bar gives r_bar = w and
M_bar = -w c^T. Both reuse the factorisation of M, and no derivative of an inverse is ever formed. The result of an
iteration has the slopes of the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from modelgen.program.functions import Argument, EquationNodes, Function, Output, Program
from modelgen.program.graph import Graph, Node, Operation

#: d f(a) / da of the graph's functions of one argument; v is the node f(a) itself.
_UNARY_RULES: dict[str, Callable[[Graph, Node, Node], Node]] = {
    "negative": lambda g, _a, _v: g.constant(-1),
    "sin": lambda g, a, _v: g.call("cos", a),
    "cos": lambda g, a, _v: g.negative(g.call("sin", a)),
    "asin": lambda g, a, _v: g.div(g.one, g.call("sqrt", g.sub(g.one, g.mul(a, a)))),
    "acos": lambda g, a, _v: g.negative(g.div(g.one, g.call("sqrt", g.sub(g.one, g.mul(a, a))))),
    "atan": lambda g, a, _v: g.div(g.one, g.add(g.one, g.mul(a, a))),
    "sinh": lambda g, a, _v: g.call("cosh", a),
    "cosh": lambda g, a, _v: g.call("sinh", a),
    "tanh": lambda g, _a, v: g.sub(g.one, g.mul(v, v)),
    "exp": lambda _g, _a, v: v,
    "log": lambda g, a, _v: g.div(g.one, a),
    "log1p": lambda g, a, _v: g.div(g.one, g.add(g.one, a)),
    "sqrt": lambda g, _a, v: g.div(g.constant(0.5), v),
    "abs": lambda g, a, _v: g.call("sign", a),
    "sign": lambda g, _a, _v: g.zero,
    "solution": lambda g, _a, _v: g.one,  # of a program that was read from its file, which holds no systems
}


def _partials(graph: Graph, node: Node) -> list[tuple[Node, Node]]:
    """(argument, derivative of the node with respect to it) for one operation that is not a solution."""
    if node in graph.implicit:
        return list(graph.implicit[node])
    g, operation = graph, graph.operations[node]
    kind, arguments = operation.kind, operation.arguments
    if len(arguments) < 2:
        return [(a, _UNARY_RULES[kind](g, a, node)) for a in arguments]
    a, b = arguments
    if kind == "add":
        return [(a, g.one), (b, g.one)]
    if kind == "sub":
        return [(a, g.one), (b, g.constant(-1))]
    if kind == "mul":
        return [(a, b), (b, a)]
    if kind == "div":
        reciprocal = g.div(g.one, b)
        return [(a, reciprocal), (b, g.negative(g.mul(node, reciprocal)))]
    if kind == "pow":  # the exponent is a constant
        exponent = graph.operations[b].value
        return [(a, g.mul(b, g.call("pow", a, g.constant(exponent - 1))))]
    if kind == "atan2":
        square = g.add(g.mul(a, a), g.mul(b, b))
        return [(a, g.div(b, square)), (b, g.negative(g.div(a, square)))]
    if kind in ("minimum", "maximum"):
        side = g.mul(g.constant(0.5), g.call("sign", g.sub(a, b)))
        above, below = g.add(g.constant(0.5), side), g.sub(g.constant(0.5), side)
        return [(a, above), (b, below)] if kind == "maximum" else [(a, below), (b, above)]
    raise AssertionError(kind)


def forward(graph: Graph, roots: Sequence[Node], variable: Node) -> list[Node]:
    """Derivatives of the roots by a variable, by forward accumulation; zeros are the graph's zero node."""
    order = graph.ancestors(roots)
    tangent: dict[Node, Node] = {variable: graph.one}
    solved: dict[tuple[Node, ...], tuple[Node, ...]] = {}
    for node in order:
        if node == variable:
            continue
        if node in graph.systems:
            system, row = graph.systems[node]
            if system.solution not in solved:
                size = len(system.right)
                right = [
                    graph.sub(
                        tangent.get(system.right[i], graph.zero),
                        graph.dot([tangent.get(entry, graph.zero) for entry in system.matrix[i]], system.solution),
                    )
                    for i in range(size)
                ]
                solved[system.solution] = graph.solve(system.matrix, right)
            derivative = solved[system.solution][row]
        else:
            if not any(argument in tangent for argument in graph.dependencies(node)):
                continue
            derivative = graph.sum(
                graph.mul(partial, tangent[argument])
                for argument, partial in _partials(graph, node)
                if argument in tangent
            )
        if derivative != graph.zero:
            tangent[node] = derivative
    return [tangent.get(root, graph.zero) for root in roots]


def reverse(graph: Graph, seeds: dict[Node, Node], variables: Sequence[Node]) -> list[Node]:
    """Gradient of sum(seed * root) with respect to the variables, at fixed seeds, in one reverse sweep."""
    adjoint: dict[Node, Node] = {}

    def accumulate(node: Node, value: Node) -> None:
        adjoint[node] = graph.add(adjoint[node], value) if node in adjoint else value

    for root, seed in seeds.items():
        accumulate(root, seed)
    needed = _dependent(graph, list(seeds), set(variables))
    for node in reversed(needed):
        if node not in adjoint or adjoint[node] == graph.zero:
            continue
        if node in graph.systems:
            system, _ = graph.systems[node]
            size = len(system.right)
            right = [adjoint.pop(free, graph.zero) if free in graph.systems else graph.zero for free in system.solution]
            multiplier = graph.solve(system.matrix, right)
            c = system.solution
            for i in range(size):
                accumulate(system.right[i], multiplier[i])
                accumulate(system.matrix[i][i], graph.negative(graph.mul(multiplier[i], c[i])))
                for j in range(i):
                    pair = graph.add(graph.mul(multiplier[i], c[j]), graph.mul(multiplier[j], c[i]))
                    accumulate(system.matrix[i][j], graph.negative(pair))
            continue
        if graph.dependencies(node):
            for argument, partial in _partials(graph, node):
                accumulate(argument, graph.mul(partial, adjoint[node]))
    return [adjoint.get(variable, graph.zero) for variable in variables]


def _dependent(graph: Graph, roots: Sequence[Node], variables: set[Node]) -> list[Node]:
    """The ancestors of the roots that depend on a variable."""
    dependent: set[Node] = set()
    order = graph.ancestors(roots)
    for node in order:
        if node in variables or any(other in dependent for other in graph.dependencies(node)):
            dependent.add(node)
    return [node for node in order if node in dependent]


#: The functions of a whole artifact, in the order in which they are made.
FUNCTIONS = (
    "affine_dynamics",
    "dynamics",
    "jacobians",
    "hamiltonian_gradient",
    "state_cost",
    "action_cost",
    "optimal_input",
    "optimal_input_cost",
)


def program(mechanism: EquationNodes, names: Collection[str] = FUNCTIONS) -> Program:
    """Program of the named functions of an artifact. Derivatives are formed for these only."""
    graph, x, u, theta = mechanism.graph, mechanism.x, mechanism.u, mechanism.theta
    n, m, p = len(x.entries), len(u.entries), len(theta.entries)
    padding = (graph.zero,) * len(mechanism.coordinate_rates)
    a = mechanism.coordinate_rates + graph.solve(mechanism.mass_matrix, mechanism.force) + mechanism.flow
    columns = [
        padding + graph.solve(mechanism.mass_matrix, column) + flows
        for column, flows in zip(mechanism.input_columns, mechanism.flow_columns, strict=True)
    ]
    b = tuple(columns[j][i] for i in range(n) for j in range(m))

    right, flow = (
        [graph.add(drift, graph.dot([column[i] for column in columns], u.entries)) for i, drift in enumerate(drifts)]
        for drifts, columns in ((mechanism.force, mechanism.input_columns), (mechanism.flow, mechanism.flow_columns))
    )
    xdot = mechanism.coordinate_rates + graph.solve(mechanism.mass_matrix, right) + tuple(flow)
    affine = (Output("a", (n,), a), Output("B", (n, m), b))
    made = [
        Function("affine_dynamics", (x, theta), affine),
        Function("dynamics", (x, u, theta), (Output("xdot", (n,), xdot),)),
    ]
    if "jacobians" in names:
        derivatives = (
            Output("da_dx", (n, n), _jacobian(graph, a, x)),
            Output("dB_dx", (n, m, n), _jacobian(graph, b, x)),
            Output("da_dtheta", (n, p), _jacobian(graph, a, theta)),
            Output("dB_dtheta", (n, m, p), _jacobian(graph, b, theta)),
        )
        made.append(Function("jacobians", (x, theta), (*affine, *derivatives)))
    if "hamiltonian_gradient" in names:
        made.append(_hamiltonian_gradient(mechanism, xdot))
    made += [_state_cost(mechanism), *_action_cost(mechanism)]
    return Program(graph, tuple(function for function in made if function.name in names))


def _state_cost(mechanism: EquationNodes) -> Function:
    graph, x, cost = mechanism.graph, mechanism.x, mechanism.state_cost
    slopes = _spreading(graph, x, reverse(graph, {cost: graph.one}, x.entries), [cost])
    return Function(
        "state_cost", (x, mechanism.theta), (Output("q", (), (cost,)), Output("dq_dx", (len(x.entries),), slopes))
    )


def _spreading(graph: Graph, x: Argument, slopes: Sequence[Node], others: Sequence[Node]) -> tuple[Node, ...]:
    """The gradient by x, in which NaN in x gives NaN: x_j - x_j for a zero whose x_j the function does not use."""
    used = set(graph.reachable([*slopes, *others]))
    return tuple(
        graph.append(Operation("sub", (entry, entry))) if slope == graph.zero and entry not in used else slope
        for entry, slope in zip(x.entries, slopes, strict=True)
    )


def _action_cost(mechanism: EquationNodes) -> tuple[Function, ...]:
    """g(u) with its derivatives, grad g~(w), g(grad g~(w)). A sum over the inputs has a diagonal Hessian."""
    graph, u, w = mechanism.graph, mechanism.u, mechanism.w
    m = len(u.entries)
    g = graph.sum(mechanism.input_costs)
    slopes = reverse(graph, {g: graph.one}, u.entries)
    curvatures = [forward(graph, [slope], entry)[0] for slope, entry in zip(slopes, u.entries, strict=True)]
    derivatives = Output("dg_du", (m,), tuple(slopes)), Output("d2g_du2", (m,), tuple(curvatures))
    return (
        Function("action_cost", (u,), (Output("g", (), (g,)), *derivatives)),
        Function("optimal_input", (w,), (Output("u_optimal", (m,), mechanism.optimal_inputs),)),
        Function("optimal_input_cost", (w,), (Output("g_optimal", (), (graph.sum(mechanism.optimal_input_costs),)),)),
    )


def _jacobian(graph: Graph, rows: Sequence[Node], variables: Argument) -> tuple[Node, ...]:
    columns = [forward(graph, rows, variable) for variable in variables.entries]
    return tuple(column[i] for i in range(len(rows)) for column in columns)


def _hamiltonian_gradient(mechanism: EquationNodes, xdot: Sequence[Node]) -> Function:
    x, u, costate, theta = mechanism.x, mechanism.u, mechanism.costate, mechanism.theta
    graph = mechanism.graph
    seeds: dict[Node, Node] = {}
    for rate, multiplier in zip(xdot, costate.entries, strict=True):
        seeds[rate] = graph.add(seeds[rate], multiplier) if rate in seeds else multiplier
    n, m, p = len(x.entries), len(u.entries), len(theta.entries)
    gradient = tuple(reverse(graph, seeds, x.entries + u.entries + theta.entries))
    by_state = _spreading(graph, x, gradient[:n], gradient[n:])
    return Function(
        "hamiltonian_gradient",
        (x, u, costate, theta),
        (
            Output("dH_dx", (n,), by_state),
            Output("dH_du", (m,), gradient[n : n + m]),
            Output("dH_dtheta", (p,), gradient[n + m :]),
        ),
    )
