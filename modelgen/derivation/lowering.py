"""From equations of motion to the graph of the program: SymPy's expressions become its nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import sympy
from sympy import Expr, Matrix, Symbol

from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.mechanics import StatedMechanics
from modelgen.derivation.sketch import Sketch
from modelgen.errors import ModelError
from modelgen.program.functions import Argument, Function, Mechanism, Output, Program, unique_names
from modelgen.program.graph import BINARY, UNARY, Graph, Node
from modelgen.program.mechanics import OUTPUTS, Mechanics
from modelgen.statement.functions import CALLS, FUNCTIONS


def mechanism(equations: EquationsOfMotion) -> Mechanism:
    """The graph of the equations of motion, common subexpressions shared.

    Raises ModelError for a function of SymPy that no kernel can evaluate.
    """
    graph = Graph()
    definitions, outputs = _share(equations)
    names = unique_names([symbol.name for symbol in (*equations.state, *equations.inputs, *equations.parameters)])
    known = dict(zip((*equations.state, *equations.inputs, *equations.parameters), names, strict=True))
    state_names = [known[symbol] for symbol in equations.state]
    # Parameters first: products are ordered by node number, so what depends on parameters alone is a
    # subexpression of its own and leaves the sample loop when theta is one vector.
    theta = _argument(graph, "theta", [known[symbol] for symbol in equations.parameters])
    x = _argument(graph, "x", state_names)
    u = _argument(graph, "u", [known[symbol] for symbol in equations.inputs])
    costate = _argument(graph, "costate", unique_names([f"costate_{name}" for name in state_names], names))
    converter = _Converter(graph, {symbol: graph.input(name) for symbol, name in known.items()})
    for symbol, expression in definitions:
        converter.known[symbol] = converter(expression)

    def column(matrix: Matrix) -> tuple[Node, ...]:
        return tuple(converter(entry) for entry in matrix)

    rates, mass, force, input_matrix, cost = outputs
    size = mass.rows
    return Mechanism(
        graph,
        x,
        u,
        costate,
        theta,
        coordinate_rates=column(rates),
        mass_matrix=tuple(column(mass[i, :]) for i in range(size)),
        force=column(force),
        input_columns=tuple(column(input_matrix[:, j]) for j in range(input_matrix.cols)),
        state_cost=converter(cost),
        **_input_costs(graph, converter, equations, names),
    )


def _input_costs(
    graph: Graph, converter: _Converter, equations: EquationsOfMotion, taken: Sequence[str]
) -> dict[str, Any]:
    """The fields of a mechanism that state the action cost."""
    costs = equations.input_costs
    w = _argument(graph, "w", unique_names([f"w_{symbol.name}" for symbol in equations.inputs], taken))
    converter.known.update(zip((each.w for each in costs), w.entries, strict=True))
    return {
        "w": w,
        "input_costs": tuple(converter(each.cost) for each in costs),
        "optimal_inputs": tuple(converter(each.optimal_input) for each in costs),
        "optimal_input_costs": tuple(converter(each.optimal_input_cost) for each in costs),
    }


def mechanics(equations: EquationsOfMotion, stated: StatedMechanics) -> Mechanics:
    """The quantities of mechanics in a graph of their own. Raises ModelError as `scalars` does."""
    symbols = (*equations.parameters, *equations.state)
    none = [sympy.S.Zero]
    groups: list[Sequence[Expr]] = [
        list(equations.coordinate_rates),
        list(equations.mass_matrix),
        list(equations.force),
        list(equations.input_matrix),
        [stated.kinetic],
        none if stated.potential is None else [stated.potential],
        none if stated.weight is None else [stated.weight],
        [entry for position in stated.points.values() for entry in position],
    ]
    flat, definitions = [entry for group in groups for entry in group], (*equations.definitions, *stated.definitions)
    graph, inputs, entries = scalars(symbols, flat, definitions, OUTPUTS)
    ends = list(accumulate(map(len, groups)))
    rates, mass, force, input_map, kinetic, potential, weight, points = (
        entries[end - len(group) : end] for group, end in zip(groups, ends, strict=True)
    )
    count = len(equations.parameters)
    return Mechanics(
        graph,
        Argument("x", inputs[count:]),
        Argument("theta", inputs[:count]),
        rates,
        mass,
        force,
        input_map,
        kinetic[0],
        None if stated.potential is None else potential[0],
        None if stated.weight is None else weight[0],
        points,
    )


def drawing(sketch: Sketch, state: Sequence[Symbol], parameters: Sequence[Symbol]) -> Program:
    """One function, the points of a drawing, in a graph of its own: (x, theta) -> points (P, 2)."""
    flat = [entry for point in sketch.points for entry in point]
    graph, inputs, entries = scalars((*state, *parameters), flat, sketch.definitions)
    x, theta = Argument("x", inputs[: len(state)]), Argument("theta", inputs[len(state) :])
    return Program(graph, (Function("points", (x, theta), (Output("points", (len(sketch.points), 2), entries),)),))


def scalars(
    symbols: Sequence[Symbol],
    expressions: Iterable[Expr],
    definitions: Sequence[Definition] = (),
    taken: Iterable[str] = (),
) -> tuple[Graph, tuple[Node, ...], tuple[Node, ...]]:
    """A graph of its own, the nodes of the symbols in it, and those of the expressions; no input's name is in `taken`.

    Raises ModelError for a function of SymPy that no kernel can evaluate.
    """
    graph = Graph()
    inputs = tuple(graph.input(name) for name in unique_names([symbol.name for symbol in symbols], taken))
    converter = _Converter(graph, dict(zip(symbols, inputs, strict=True)))
    for symbol, expression in definitions:
        converter.known[symbol] = converter(expression)
    return graph, inputs, tuple(converter(each) for each in expressions)


def _argument(graph: Graph, name: str, entries: Iterable[str]) -> Argument:
    return Argument(name, tuple(graph.input(entry) for entry in entries))


def _share(
    equations: EquationsOfMotion,
) -> tuple[list[tuple[Symbol, Expr]], tuple[Matrix, Matrix, Matrix, Matrix, Expr]]:
    """Share common subexpressions over all expressions of the model at once: definitions, and the reduced outputs."""
    outputs = (
        equations.coordinate_rates,
        _lower_triangle(equations.mass_matrix),
        equations.force,
        equations.input_matrix,
        sympy.Matrix([[equations.state_cost]]),
    )
    named = sympy.Matrix([expression for _, expression in equations.definitions])
    shared, reduced = sympy.cse(
        [named, *outputs], symbols=sympy.numbered_symbols("shared", cls=sympy.Dummy), order="canonical"
    )
    reduced_named, rates, mass, force, input_matrix, cost = reduced
    definitions = [
        (symbol, expression) for (symbol, _), expression in zip(equations.definitions, reduced_named, strict=True)
    ]
    return _in_order(shared + definitions), (rates, mass, force, input_matrix, cost[0, 0])


def _lower_triangle(matrix: Matrix) -> Matrix:
    return sympy.Matrix(matrix.rows, matrix.cols, lambda i, j: matrix[i, j] if j <= i else sympy.S.Zero)


def _in_order(definitions: Sequence[tuple[Symbol, Expr]]) -> list[tuple[Symbol, Expr]]:
    """The same definitions, each after those it uses: shared subexpressions may use the user's names."""
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
    """The arguments in an order that is the same in every process."""
    return sorted(expression.args, key=sympy.default_sort_key)


class _Converter:
    """SymPy expression -> node."""

    def __init__(self, graph: Graph, known: dict[Symbol, Node]) -> None:
        self.graph = graph
        self.known = known
        self._seen: dict[Expr, Node] = {}

    def __call__(self, expression: Expr) -> Node:
        expression = sympy.sympify(expression)
        if expression not in self._seen:
            self._seen[expression] = self._convert(expression)
        return self._seen[expression]

    def _convert(self, expression: Expr) -> Node:
        if expression.is_Symbol:
            if expression not in self.known:
                raise ModelError(
                    f"The symbol {expression} appears in the equations of motion but is neither a coordinate, a "
                    "velocity, an input nor a parameter of the robot. Declare it, or replace it by a number."
                )
            return self.known[expression]
        if expression.is_number:
            return self._number(expression)
        if expression.is_Add:
            return self.graph.sum(sorted((self(term) for term in _ordered(expression)), key=self._is_negative))
        if expression.is_Mul:
            return self._product(expression)
        if isinstance(expression, sympy.exp):  # exp is also a Pow to some versions of SymPy
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
            f"The equations of motion use {name} in {expression}, which no kernel can evaluate. Write it with "
            f"+ - * / ** and {', '.join(sorted({*FUNCTIONS, 'sqrt'}))}; replace a Piecewise by a smooth function."
        )
