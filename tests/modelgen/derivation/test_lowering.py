"""SymPy expressions become nodes with the same value; others are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from modelgen.derivation.lowering import mechanism
from modelgen.errors import ModelError
from tests.modelgen.support import mechanisms
from tests.modelgen.support.evaluation import evaluate


def _with_cost(cost: Any) -> Any:
    equations = mechanisms.pendulum()
    return mechanism(type(equations)(**{**vars(equations), "state_cost": cost}))


x, v = sp.symbols("angle rate", real=True)


@pytest.mark.parametrize(
    "cost",
    [
        x**7 / (1 + v**2) ** 2,
        sp.sqrt(2 + x) / (v + 3),
        (2 + x) ** sp.Rational(-3, 2),
        (2 + x) ** sp.Float(0.3),
        (2 + x) ** (v + 1),
        sp.tan(x) + sp.asin(x / 4) + sp.acos(v / 9) + sp.atan(x) + sp.atan2(v, x),
        sp.sinh(x) + sp.cosh(v) + sp.tanh(x) + sp.exp(-x) + sp.log(2 + x),
        sp.Abs(x - v) + sp.sign(v) + sp.Min(x, v, 3) + sp.Max(x, v, -3),
        -(x - v) - 2 * (v - x) * sp.Rational(1, 3) + sp.pi,
        sp.exp(x) ** 2 + sp.exp(2),
        sp.Integer(0),
    ],
)
def test_nodes_have_the_value_of_the_expression(cost: Any) -> None:
    made = _with_cost(cost)
    at = {"angle": 0.3, "rate": -0.8}
    value = float(evaluate(made.graph, [made.state_cost], at)[0])
    assert value == pytest.approx(float(sp.N(cost.subs({x: 0.3, v: -0.8}), 30)), rel=1e-13, abs=1e-15)


def test_shared_subexpressions_are_computed_once() -> None:
    part = sp.sin(x) * v + 2
    made = _with_cost(part**2 + sp.cos(part) + part * v)
    kinds = [made.graph.operations[node].kind for node in made.graph.reachable([made.state_cost])]
    assert kinds.count("sin") == 1
    assert kinds.count("add") == 3


def test_a_function_that_kernels_cannot_evaluate_is_refused() -> None:
    with pytest.raises(ModelError, match=r"gamma in gamma\(angle\)"):
        _with_cost(sp.gamma(x))
    with pytest.raises(ModelError, match="Piecewise"):
        _with_cost(sp.Piecewise((x, x > 0), (0, True)))


def test_an_undeclared_symbol_is_refused() -> None:
    with pytest.raises(ModelError, match="zeta"):
        _with_cost(sp.Symbol("zeta") ** 2)


def test_a_complex_number_is_refused() -> None:
    with pytest.raises(ModelError, match=r"\bI\b"):
        _with_cost(sp.I * x)


def test_a_state_with_the_name_of_a_costate_is_a_separate_input() -> None:
    equations = mechanisms.pendulum()
    rate = sp.Symbol("costate_angle", real=True)
    fields = {
        name: value.subs(v, rate) if name in ("coordinate_rates", "state_cost") else value
        for name, value in vars(equations).items()
    }
    made = mechanism(type(equations)(**{**fields, "velocities": (rate,)}))
    assert len({*made.x.entries, *made.u.entries, *made.costate.entries, *made.theta.entries}) == 2 + 1 + 2 + 2


def test_definitions_are_used_in_their_order(exact: Callable[[str], SimpleNamespace]) -> None:
    at = exact("dense")
    made = mechanism(mechanisms.dense())
    names = [made.graph.operations[node].name for node in (*made.x.entries, *made.theta.entries)]
    values = dict(zip(names, [*at.x[0], *at.theta[0]], strict=True))
    mass = np.array(
        [
            [float(evaluate(made.graph, [entry], values)[0]) for entry in row[: i + 1]] + [0.0] * (2 - i)
            for i, row in enumerate(made.mass_matrix)
        ]
    )
    mass += np.tril(mass, -1).T
    right = np.array([float(value) for value in evaluate(made.graph, made.force, values)])
    np.testing.assert_allclose(np.linalg.solve(mass, right), at.values["a"][0][3:], rtol=1e-11)
