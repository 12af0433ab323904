"""From equations of motion to the graph of the program: SymPy's expressions become nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy import Expr, Matrix, Symbol

from modelgen.derivation.equations import Definition, EquationsOfMotion, Slopes, mechanism_of, used
from modelgen.derivation.frames import Sketch
from modelgen.derivation.mechanics import OUTPUTS, Mechanics, MechanicsExpressions
from modelgen.errors import ModelError
from modelgen.program.functions import Argument, EquationNodes, Function, Output, Program, unique_names
from modelgen.program.graph import BINARY, UNARY, Graph, Node, Operation
from modelgen.statement.checker import CALLS, FUNCTIONS


def mechanism(equations: EquationsOfMotion) -> EquationNodes:
    """The graph of the equations of motion, with common subexpressions shared.

    Raises ModelError for a function of SymPy that kernels cannot evaluate.
    """
    graph = Graph()
    definitions, outputs = _share(equations)
    names = unique_names([symbol.name for symbol in (*equations.state, *equations.inputs, *equations.parameters)])
    known = dict(zip((*equations.state, *equations.inputs, *equations.parameters), names, strict=True))
    state_names = [known[symbol] for symbol in equations.state]
    # Parameters first: products are ordered by node number. What depends on parameters alone is then a subexpression,
    # and leaves the sample loop when theta is one vector.
    theta = _argument(graph, "theta", [known[symbol] for symbol in equations.parameters])
    x = _argument(graph, "x", state_names)
    u = _argument(graph, "u", [known[symbol] for symbol in equations.inputs])
    costate = _argument(graph, "costate", unique_names([f"costate_{name}" for name in state_names], names))
    converter = _Converter(graph, {symbol: graph.input(name) for symbol, name in known.items()})
    converter.define(definitions, equations.implicit)

    def column(matrix: Matrix) -> tuple[Node, ...]:
        return tuple(converter(entry) for entry in matrix)

    rates, mass, force, input_matrix, cost, flow, flow_matrix = outputs
    size = mass.rows
    return EquationNodes(
        graph,
        x,
        u,
        costate,
        theta,
        coordinate_rates=column(rates),
        mass_matrix=tuple(column(mass[i, :]) for i in range(size)),
        force=column(force),
        input_columns=tuple(column(input_matrix[:, j]) for j in range(input_matrix.cols)),
        state_cost=converter(cost[0, 0]),
        flow=column(flow),
        flow_columns=tuple(column(flow_matrix[:, j]) if flow.rows else () for j in range(input_matrix.cols)),
        **_input_costs(graph, converter, equations, names),
    )


def _input_costs(
    graph: Graph, converter: _Converter, equations: EquationsOfMotion, taken: Sequence[str]
) -> dict[str, Any]:
    """The fields of a mechanism that hold the action cost."""
    costs = equations.input_costs
    w = _argument(graph, "w", unique_names([f"w_{symbol.name}" for symbol in equations.inputs], taken))
    converter.known.update(zip((cost.w for cost in costs), w.entries, strict=True))
    return {
        "w": w,
        "input_costs": tuple(converter(cost.cost) for cost in costs),
        "optimal_inputs": tuple(converter(cost.optimal_input) for cost in costs),
        "optimal_input_costs": tuple(converter(cost.optimal_input_cost) for cost in costs),
    }


def mechanics(equations: EquationsOfMotion, terms: MechanicsExpressions) -> Mechanics:
    """The quantities of mechanics in a separate graph. Raises ModelError as `scalars` does."""
    free, count = mechanism_of(equations), len(equations.parameters)
    last = count + len(equations.state)
    symbols = (*equations.parameters, *equations.state, *(equations.inputs if free.rows else ()))
    converter, inputs = _prepared(symbols, (*equations.definitions, *terms.definitions), OUTPUTS, equations.implicit)

    def nodes(entries: Iterable[Expr]) -> tuple[Node, ...]:
        return tuple(map(converter, entries))

    u = Argument("u", inputs[last:])
    rates, mass, force = map(nodes, (equations.coordinate_rates, equations.mass_matrix, equations.force))
    input_map = nodes(equations.input_matrix)
    kinetic = converter(terms.kinetic)
    potential, weight = (None if energy is None else converter(energy) for energy in (terms.potential, terms.weight))
    points = nodes(entry for position in terms.points.values() for entry in position)
    driven = [
        tuple(nodes(part[row, :]) for part in (free.mass_matrix, free.force, free.input_matrix)) for row in free.rows
    ]
    return Mechanics(
        converter.graph,
        Argument("x", inputs[count:last]),
        Argument("theta", inputs[:count]),
        rates,
        mass,
        force,
        input_map,
        kinetic,
        potential,
        weight,
        points,
        u,
        _reactions(converter.graph, mass, force, input_map, driven, u) if driven else (),
        terms.places,
    )


def _reactions(
    graph: Graph,
    mass: Sequence[Node],
    force: Sequence[Node],
    input_map: Sequence[Node],
    driven: Sequence[tuple[tuple[Node, ...], ...]],
    u: Argument,
) -> tuple[Node, ...]:
    """The forces of the drives, row . vdot - force - inputs . u, from the rows `driven` of the mechanism."""
    size, m = len(force), len(u.entries)
    right = [graph.add(force[i], graph.dot(input_map[i * m : (i + 1) * m], u.entries)) for i in range(size)]
    accelerations = graph.solve([mass[i * size : (i + 1) * size] for i in range(size)], right)
    return tuple(
        graph.sub(graph.sub(graph.dot(row, accelerations), own), graph.dot(slopes, u.entries))
        for row, (own,), slopes in driven
    )


def drawing(sketch: Sketch, equations: EquationsOfMotion) -> Program:
    """A program with one function, the points of a drawing: (x, theta) -> points (P, 2).

    The points may contain coordinates that the equations of motion define.
    """
    flat, state = [entry for point in sketch.points for entry in point], equations.state
    wanted = [*flat, *(value for _, value in sketch.definitions)]
    definitions = (
        [*used(equations.definitions, wanted), *sketch.definitions] if equations.implicit else sketch.definitions
    )
    graph, inputs, entries = scalars((*state, *equations.parameters), flat, definitions)
    x, theta = Argument("x", inputs[: len(state)]), Argument("theta", inputs[len(state) :])
    return Program(graph, (Function("points", (x, theta), (Output("points", (len(sketch.points), 2), entries),)),))


def scalars(
    symbols: Sequence[Symbol],
    expressions: Iterable[Expr],
    definitions: Sequence[Definition] = (),
    taken: Iterable[str] = (),
    implicit: Mapping[Symbol, Slopes] | None = None,
) -> tuple[Graph, tuple[Node, ...], tuple[Node, ...]]:
    """A separate graph, the nodes of the symbols in it, and the nodes of the expressions.

    No input has a name in `taken`. implicit: as in `EquationsOfMotion`; all its slopes are defined. Raises ModelError
    for a function of SymPy that kernels cannot evaluate.
    """
    converter, inputs = _prepared(symbols, definitions, taken, implicit or {})
    return converter.graph, inputs, tuple(map(converter, expressions))


def _prepared(
    symbols: Sequence[Symbol],
    definitions: Sequence[Definition],
    taken: Iterable[str],
    implicit: Mapping[Symbol, Slopes],
) -> tuple[_Converter, tuple[Node, ...]]:
    """A converter to a separate graph that knows symbols and definitions, and the nodes of the symbols."""
    graph = Graph()
    inputs = tuple(graph.input(name) for name in unique_names([symbol.name for symbol in symbols], taken))
    converter = _Converter(graph, dict(zip(symbols, inputs, strict=True)))
    converter.define(definitions, implicit)
    return converter, inputs


def _argument(graph: Graph, name: str, entries: Iterable[str]) -> Argument:
    return Argument(name, tuple(graph.input(entry) for entry in entries))


def _share(equations: EquationsOfMotion) -> tuple[list[Definition], list[Matrix]]:
    """Definitions of the common subexpressions of all expressions of the model, and the outputs in terms of them."""
    outputs = (
        equations.coordinate_rates,
        equations.mass_matrix.lower_triangular(),
        equations.force,
        equations.input_matrix,
        Matrix([[equations.state_cost]]),
        equations.flow,
        equations.flow_matrix,
    )
    named = Matrix([expression for _, expression in equations.definitions])
    names = sympy.numbered_symbols("shared", cls=sympy.Dummy)
    shared, (reduced, *others) = sympy.cse([named, *outputs], symbols=names, order="canonical")
    definitions = zip((symbol for symbol, _ in equations.definitions), reduced, strict=True)
    return _in_order([*shared, *definitions]), others


def _in_order(definitions: Sequence[Definition]) -> list[Definition]:
    """The definitions, each after the ones that it uses. Shared subexpressions may use the user's names."""
    expressions = dict(definitions)
    ordered: dict[Symbol, Expr] = {}
    stack = [symbol for symbol, _ in reversed(definitions)]
    while stack:
        symbol = stack[-1]
        used = expressions[symbol].free_symbols & expressions.keys() - ordered.keys()
        if symbol in ordered or not used:
            ordered.setdefault(symbol, expressions[symbol])
            stack.pop()
        else:
            stack.extend(sorted(used, key=lambda other: other.sort_key(), reverse=True))
    return list(ordered.items())


def _ordered(expression: Expr) -> list[Expr]:
    """The arguments in an order that does not depend on the process."""
    return sorted(expression.args, key=sympy.default_sort_key)


class _Converter:
    """Converts SymPy expressions to nodes of the graph."""

    def __init__(self, graph: Graph, known: dict[Symbol, Node]) -> None:
        self.graph = graph
        self.known = known
        self._converted: dict[Expr, Node] = {}

    def define(self, definitions: Sequence[Definition], implicit: Mapping[Symbol, Slopes]) -> None:
        """Make the nodes of definitions. The result of an iteration is a node of its own, with its slopes."""
        for symbol, expression in definitions:
            node = self(expression)
            if symbol in implicit:
                row = str(list(implicit).index(symbol))
                node = self.graph.append(Operation("solution", (node,), name=row))
            self.known[symbol] = node
        for symbol, slopes in implicit.items():
            pairs = tuple((self.known[variable], self(slope)) for variable, slope in slopes)
            self.graph.implicit[self.known[symbol]] = pairs

    def __call__(self, expression: Expr) -> Node:
        expression = sympy.sympify(expression)
        if expression not in self._converted:
            self._converted[expression] = self._convert(expression)
        return self._converted[expression]

    def _convert(self, expression: Expr) -> Node:
        if expression.is_Symbol:
            if expression not in self.known:
                raise ModelError(
                    f"The symbol {expression} appears in the equations of motion but is not a coordinate, a velocity, "
                    "an input or a parameter of the robot. Declare it, or replace it by a number."
                )
            return self.known[expression]
        if expression.is_number:
            return self._number(expression)
        if expression.is_Add:
            return self.graph.sum(sorted((self(term) for term in _ordered(expression)), key=self._is_negative))
        if expression.is_Mul:
            return self._product(expression)
        if isinstance(expression, sympy.exp):  # in some versions of SymPy, exp is also a Pow
            return self.graph.call("exp", self(expression.args[0]))
        if expression.is_Pow:
            return self._power(*expression.args)
        return self._call(expression)

    def _is_negative(self, node: Node) -> tuple[bool, Node]:
        return self.graph.operations[node].kind == "negative", node

    def _number(self, expression: Expr) -> Node:
        value = complex(expression.evalf(20))
        if value.imag or not math.isfinite(value.real):
            raise ModelError(f"The number {expression} in the equations of motion is not real and finite.")
        return self.graph.constant(value.real)

    def _product(self, expression: Expr) -> Node:
        above: list[Node] = []
        below: list[Node] = []
        for factor in _ordered(expression):
            base, exponent = factor.as_base_exp()
            if factor.is_Pow and exponent.is_number and exponent.is_negative:
                below.append(self._power(base, -exponent))
            else:
                above.append(self(factor))
        graph = self.graph
        quotient = graph.one
        for node in sorted(above):
            quotient = graph.mul(quotient, node)
        divisor = graph.one
        for node in sorted(below):
            divisor = graph.mul(divisor, node)
        return graph.div(quotient, divisor)

    def _power(self, base: Expr, exponent: Expr) -> Node:
        graph = self.graph
        if exponent.is_Integer:
            return graph.power(self(base), int(exponent))
        if abs(exponent) == sympy.S.Half:
            return graph.power(graph.call("sqrt", self(base)), int(2 * exponent))
        if exponent.is_number:
            return graph.call("pow", self(base), self(exponent))
        return graph.call("exp", graph.mul(self(exponent), graph.call("log", self(base))))

    def _call(self, expression: Expr) -> Node:
        graph, name = self.graph, type(expression).__name__
        arguments = [self(argument) for argument in expression.args] if name in FUNCTIONS else []
        if name == "tan":
            return graph.div(graph.call("sin", *arguments), graph.call("cos", *arguments))
        function = CALLS.get(name)
        if function in UNARY:
            return graph.call(function, *arguments)
        if function in BINARY:
            node = arguments[0]
            for other in arguments[1:]:
                node = graph.call(function, node, other)
            return node
        raise ModelError(
            f"The equations of motion use {name} in {expression}, which kernels cannot evaluate. Use only "
            f"+ - * / ** and {', '.join(sorted({*FUNCTIONS, 'sqrt'}))}; replace a Piecewise by a smooth function."
        )
