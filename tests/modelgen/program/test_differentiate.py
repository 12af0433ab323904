"""Derivatives on the graph against high-precision differences, and what they may cost."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.lowering import mechanism
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.program.differentiate import forward, program, reverse
from modelgen.program.functions import Program
from modelgen.program.graph import UNARY, Graph
from tests.modelgen.support import mechanisms
from tests.modelgen.support.evaluation import evaluate


@pytest.fixture(scope="module")
def dense() -> Program:
    return program(mechanism(mechanisms.dense()))


def _values(function: Any, graph: Graph, at: SimpleNamespace, sample: int) -> dict[str, float]:
    arrays = {"x": at.x, "u": at.u, "costate": at.costate, "theta": at.theta, "w": at.w}
    return {
        graph.operations[node].name: arrays[argument.name][sample][j]
        for argument in function.arguments
        for j, node in enumerate(argument.entries)
    }


@pytest.mark.slow
def test_every_output_of_every_function(dense: Program, exact: Callable[[str], SimpleNamespace]) -> None:
    at = exact("dense")
    for function in dense.functions:
        values = _values(function, dense.graph, at, sample=1)
        for output in function.outputs:
            found = np.array([float(value) for value in evaluate(dense.graph, output.entries, values)])
            expected = at.values[output.name][1]
            assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max(), output.name


@pytest.mark.parametrize("kind", [*UNARY, "atan2", "pow", "minimum", "maximum"])
def test_rule_of_each_operation(kind: str) -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    arguments = {"pow": (a, graph.constant(2.7)), "atan2": (a, b), "minimum": (a, b), "maximum": (a, b)}
    root = graph.call(kind, *arguments.get(kind, (a,)))
    with mpmath.workdps(40):
        at = {"a": mpmath.mpf("0.3"), "b": mpmath.mpf("-0.6")}
        for name, variable in (("a", a), ("b", b)):
            step = mpmath.mpf(10) ** -15
            above, below = (evaluate(graph, [root], {**at, name: at[name] + sign * step})[0] for sign in (1, -1))
            (derivative,) = forward(graph, [root], variable)
            (adjoint,) = reverse(graph, {root: graph.one}, [variable])
            found = [float(value) for value in evaluate(graph, [derivative, adjoint], at)]
            assert found == pytest.approx([float((above - below) / (2 * step))] * 2, rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
@pytest.mark.slow
def test_forward_and_reverse_agree_through_random_systems(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    graph = Graph()
    inputs = [graph.input(f"x{i}") for i in range(3)]

    def entry() -> int:
        return graph.add(
            graph.mul(graph.call("sin", inputs[random.integers(3)]), inputs[random.integers(3)]),
            graph.constant(random.normal()),
        )

    rows = [[entry() for _ in range(i + 1)] + [graph.zero] * (size - i - 1) for i in range(size)]
    for i in range(size):
        rows[i][i] = graph.add(graph.mul(rows[i][i], rows[i][i]), graph.constant(40.0))
    once = graph.solve(rows, [entry() for _ in range(size)])
    twice = graph.solve(rows, [graph.mul(each, inputs[0]) for each in once])  # a system in a system's right side
    roots = [*once, *twice]
    weights = [graph.input(f"w{i}") for i in range(len(roots))]
    gradient = reverse(graph, dict(zip(roots, weights, strict=True)), inputs)
    columns = [graph.dot(forward(graph, roots, variable), weights) for variable in inputs]
    at = {f"x{i}": random.normal() for i in range(3)} | {f"w{i}": random.normal() for i in range(len(roots))}
    values = [float(value) for value in evaluate(graph, [*gradient, *columns], at)]
    np.testing.assert_allclose(values[:3], values[3:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_system_whose_solution_has_a_constant_row(constant: float) -> None:
    """M = diag(x, 2x), r = (sin y, 2 constant x): the second row is a constant, the first sin y / x is not."""
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    right = [graph.call("sin", y), graph.zero if constant == 0 else graph.mul(graph.constant(2 * constant), x)]
    diagonal = [x, graph.mul(graph.constant(2), x)]
    solution = graph.solve([[diagonal[0], graph.zero], [graph.zero, diagonal[1]]], right)
    weights = [graph.input("w0"), graph.input("w1")]
    gradient = reverse(graph, dict(zip(solution, weights, strict=True)), [x, y])
    columns = [graph.dot(forward(graph, solution, variable), weights) for variable in (x, y)]
    found = evaluate(graph, [*gradient, *columns], {"x": 0.7, "y": 0.4, "w0": 1.5, "w1": -0.3})
    expected = [-1.5 * np.sin(0.4) / 0.7**2, 1.5 * np.cos(0.4) / 0.7]
    np.testing.assert_allclose([float(value) for value in found], expected * 2, rtol=1e-12)


def test_rates_that_are_the_same_node_both_count() -> None:
    """Two rows of xdot are v[0]: dH/dv[0] has both their costates."""
    equations = mechanisms.dense()
    v = equations.velocities
    built = program(
        mechanism(type(equations)(**{**vars(equations), "coordinate_rates": type(equations.force)([v[0], v[0], v[2]])}))
    )
    function = built.function("hamiltonian_gradient")
    (gradient,) = [output.entries for output in function.outputs if output.name == "dH_dx"]
    (costate,) = [argument.entries for argument in function.arguments if argument.name == "costate"]
    names = [built.graph.operations[node].name for argument in function.arguments for node in argument.entries]
    values = dict.fromkeys(names, 0.3) | {built.graph.operations[node].name: 0.0 for node in costate}
    values |= {built.graph.operations[node].name: value for node, value in zip(costate, (0.7, -0.2, 0.4), strict=False)}
    found = [float(value) for value in evaluate(built.graph, gradient, values)]
    assert found == pytest.approx([0, 0, 0, 0.5, 0, 0.4], abs=1e-15)


def test_a_constant_has_no_derivative_node(dense: Program) -> None:
    graph = dense.graph
    jacobians = {output.name: output for output in dense.function("jacobians").outputs}
    n = 6
    rows = np.array(jacobians["da_dx"].entries).reshape(n, n)
    assert (rows[:3, :3] == graph.zero).all()
    assert (rows[:3, 3:] == np.where(np.eye(3, dtype=bool), graph.one, graph.zero)).all()


def _divisions(built: Program, name: str) -> int:
    graph = built.graph
    return sum(graph.operations[node].kind == "div" for node in graph.reachable(built.function(name).roots))


def test_no_inverse_is_differentiated() -> None:
    """Derivatives reuse the reciprocals of D: they need no division that the dynamics do not need."""
    equations = mechanisms.dense()
    plain = type(equations)(
        **{**vars(equations), "force": equations.force.applyfunc(lambda _: equations.velocities[0] ** 2)}
    )
    built = program(mechanism(plain))
    of_root = 1  # sqrt'(a) = 1/2 / sqrt(a), in `third`, is not used by this force
    assert _divisions(built, "dynamics") == 3
    assert _divisions(built, "jacobians") <= 3 + of_root
    assert _divisions(built, "hamiltonian_gradient") <= 3 + of_root


@pytest.mark.parametrize("name", ["cartpole", "cartpole_quanser", "double_pendulum", "furuta", "pendulum"])
@pytest.mark.slow
def test_reverse_sweep_costs_a_small_multiple_of_the_dynamics(name: str) -> None:
    operations = program(mechanism(equations_of_motion(load(str(SHIPPED / f"{name}.py"))))).operations
    assert operations["hamiltonian_gradient"] <= 4 * operations["dynamics"]
