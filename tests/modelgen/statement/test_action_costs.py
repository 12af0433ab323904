"""Action costs: the three functions against closed forms, a search for the maximiser, and each other."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from sympy import Abs, Expr, Max, Min, Symbol, lambdify

from modelgen import ActionCost, LogCos, ModelError, Quadratic, Tanh
from modelgen.derivation.lowering import scalars
from modelgen.statement.action_costs import ACTION_COSTS, InputCost
from tests.modelgen.support.action_costs import LIMITS, REFERENCES, WEIGHTS, pair
from tests.modelgen.support.evaluation import evaluate

pytestmark = pytest.mark.slow

U = Symbol("u", real=True)
Function = Callable[[mpf], mpf]

every_cost = pytest.mark.parametrize("kind", ACTION_COSTS)
every_input = pytest.mark.parametrize(("limit", "weight"), list(zip(LIMITS, WEIGHTS, strict=True)))


def functions(cost: InputCost) -> tuple[Function, Function, Function]:
    """g, grad g~ and g(grad g~) in mpmath."""
    return (
        lambdify([cost.u], cost.cost, "mpmath"),
        lambdify([cost.w], cost.optimal_input, "mpmath"),
        lambdify([cost.w], cost.optimal_input_cost, "mpmath"),
    )


def maximiser(objective: Function, limit: float) -> mpf:
    """The maximiser of a concave function on |u| <= limit, by golden section."""
    low, high, ratio = mpf(-limit), mpf(limit), (mpmath.sqrt(5) - 1) / 2
    for _ in range(100):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (left, high) if objective(left) < objective(right) else (low, right)
    return (low + high) / 2


@every_cost
@every_input
def test_cost_is_its_closed_form(kind: type[ActionCost], limit: float, weight: float) -> None:
    g, _, _ = functions(kind(1.0).of_input(U, limit, weight))
    for share in (-0.99, -0.5, -1e-3, 0.0, 0.2, 0.7, 0.999):
        expected = REFERENCES[kind](share * limit, limit, weight)
        assert float(g(share * limit)) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@every_cost
@every_input
def test_fenchel_young_equality(kind: type[ActionCost], limit: float, weight: float) -> None:
    """g(u*) + g~(w) = w u*, with u* by search and g~ as the integral of grad g~; and g(grad g~(w)) is g(u*)."""
    with mpmath.workdps(20):
        g, best, best_cost = functions(kind(1.0).of_input(U, limit, weight))
        slope = mpmath.diff(g, limit / 2)
        for w in (factor * slope for factor in (-3, -1, -0.1, 0.01, 0.5, 2)):
            u = best(w)
            searched = maximiser(lambda u, w=w: w * u - g(u), limit)  # type: ignore[misc]
            assert abs(u - searched) < 1e-8 * limit  # a maximum is flat: half the digits
            if abs(u) < limit * (1 - mpf("1e-9")):
                conjugate = mpmath.quad(best, [0, w / 2, w])
                assert abs(g(u) + conjugate - w * u) < 1e-12 * abs(w * u)
                assert abs(best_cost(w) - g(u)) < 1e-12 * g(u)


@every_cost
@every_input
def test_cost_is_convex_even_and_zero_only_at_rest(kind: type[ActionCost], limit: float, weight: float) -> None:
    g, _, _ = functions(kind(1.0).of_input(U, limit, weight))
    values = [g(mpf(k) / 100 * limit) for k in range(-99, 100)]
    assert all(a - 2 * b + c > 0 for a, b, c in zip(values, values[1:], values[2:], strict=False))
    assert all(abs(a - b) < 1e-12 * (a + 1) for a, b in zip(values, reversed(values), strict=True))
    assert values[99] == 0
    assert min(values[:99]) > 0


def of_any_size(low: float, high: float) -> st.SearchStrategy[float]:
    """Positive numbers, with the exponent distributed uniformly."""
    return st.floats(low, high).map(lambda power: float(10**power))


@every_cost
@settings(max_examples=10)
@given(
    limit=of_any_size(-6, 6),
    at_limit=of_any_size(-6, 6),
    small=of_any_size(-12, -0.1),
    to_limit=of_any_size(-12, -0.1),
    other=st.floats(-1, 1),
)
def test_conjugate_in_double_precision(
    kind: type[ActionCost], limit: float, at_limit: float, small: float, to_limit: float, other: float
) -> None:
    """Motors from 1e-6 to 1e6 N m, with inputs near zero and near the limit.

    g, grad g~ and g(grad g~) are evaluated as a kernel does, w is the slope of the closed form in 60 digits. No other
    u has a higher w u - g(u) (Fenchel-Young).
    """
    weight = at_limit / limit**2
    cost = kind(1.0).of_input(U, limit, weight)
    graph, inputs, roots = scalars([cost.u, cost.w], [cost.cost, cost.optimal_input, cost.optimal_input_cost])
    names = [graph.operations[node].name for node in inputs]

    def computed(u: float, w: float) -> tuple[float, ...]:
        return tuple(map(float, evaluate(graph, roots, dict(zip(names, (u, w), strict=True)), np)))

    def exact(u: mpf) -> mpf:
        return REFERENCES[kind](u, mpf(limit), mpf(weight), mpmath)

    for u in (small * limit, -small * limit / 2, (1 - to_limit) * limit, (to_limit - 1) * limit):
        with mpmath.workdps(60):
            w, expected = float(mpmath.diff(exact, u, h=mpf("1e-25") * limit)), float(exact(mpf(u)))
        cost_of_u, best, best_cost = computed(u, w)
        assert cost_of_u == pytest.approx(expected, rel=1e-12, abs=0)
        assert best == pytest.approx(u, rel=1e-12, abs=0)
        lost = 1e-15 * at_limit if kind is Tanh else 0.0  # for a small w, Tanh rounds relative to the cost at the limit
        assert best_cost == pytest.approx(expected, rel=1e-12, abs=lost)
        v = other * limit
        noise = 1e-12 * cost_of_u + 1e-15 * abs(w) * limit
        assert w * v - computed(v, w)[0] <= w * u - cost_of_u + noise
        at, most, most_cost = computed(math.copysign(limit, u), 1e25 * w)
        assert most == pytest.approx(math.copysign(limit, u), rel=1e-15, abs=0)
        assert most_cost >= at * (1 - 1e-12)


@every_cost
def test_name_in_the_artifact_is_the_class_name(kind: type[ActionCost]) -> None:
    assert {LogCos: "log_cos", Quadratic: "quadratic", Tanh: "tanh"}[kind] == kind(1.0).name


Change = Callable[[Expr, Symbol, float], Expr]


class Changed(ActionCost):
    """The quadratic cost with one of its functions changed."""

    changes: dict[str, Change] = {}  # noqa: RUF012

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        return self._changed("cost", weight * u**2, u, limit)

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return Max(Min(self._changed("optimal_input", w / (2 * weight), w, limit), limit), -limit)

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        return self._changed("optimal_input_cost", w**2 / (4 * weight), w, limit)

    def _changed(self, name: str, expression: Expr, symbol: Symbol, limit: float) -> Expr:
        return self.changes[name](expression, symbol, limit) if name in self.changes else expression


class Unclipped(Changed):
    """The quadratic cost whose optimal input ignores the limits."""

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:  # noqa: ARG002
        return w / (2 * weight)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("cost", lambda g, _u, _limit: g + 1, r"force_left.* at 0 and"),
        ("cost", lambda g, u, limit: g + 1 / (limit - Abs(u)) - 1 / limit, "force_left.*inf at the limit"),
        ("cost", lambda g, _u, _limit: -g, "force_left.*convex"),
        ("optimal_input", lambda u, _w, _limit: u / 2, "force_left.*u = -2.25"),
        ("optimal_input_cost", lambda g, _w, _limit: 2 * g, r"`optimal_input_cost` of w = -2.25 is 5.06.*is 2.53"),
    ],
)
def test_functions_that_do_not_belong_together_are_refused(
    name: str, change: Change, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair(Changed)  # without a change it is a valid cost
    monkeypatch.setattr(Changed, "changes", {name: change})
    with pytest.raises(ModelError, match=words):
        pair(Changed)


def test_an_optimal_input_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ModelError, match=r"`optimal_input` .* 2\.5; .*Min and Max"):
        pair(Unclipped)


@pytest.mark.parametrize(
    ("kind", "middle", "limit", "trim"),
    [(Tanh, 2.35, 2.35, 2.4), *((kind, 40.0, 40.0, 19.62) for kind in ACTION_COSTS), (LogCos, 0.0, 3.0, -1.04)],
)
def test_the_cost_is_the_bregman_divergence_from_the_trim(
    kind: Callable[[float], ActionCost], middle: float, limit: float, trim: float
) -> None:
    """D by finite differences of g in 40 digits, and the policy by a search for the maximum of w u - D(u)."""
    stated = kind(1.0).of_input(Symbol("u", real=True), limit, 0.3)
    cost = stated.measured_from(middle, trim)
    D, in_double = (lambdify([cost.u], cost.cost, numbers) for numbers in ("mpmath", "math"))
    best, best_cost = (lambdify([cost.w], entry, "mpmath") for entry in (cost.optimal_input, cost.optimal_input_cost))
    with mpmath.workdps(40):
        g = lambdify([stated.u], stated.cost, "mpmath")
        h, u0 = mpmath.mpf("1e-12"), mpmath.mpf(trim) - middle
        slope = (g(u0 + h) - g(u0 - h)) / (2 * h)
        size = g(mpmath.mpf(limit) * 0.9)
        for share in (-0.99, -0.4, 0.0, 0.3, 0.95):
            u = mpmath.mpf(middle) + share * limit
            assert abs(D(u) - (g(u - middle) - g(u0) - slope * (u - trim))) < 1e-13 * size
        assert abs(D(mpmath.mpf(trim))) < 1e-14 * size
        assert abs(best(mpmath.mpf(0)) - trim) < 1e-13 * limit
    scale = float(mpmath.diff(g, 0.6 * limit))
    reach = 0.9999 * limit
    coarse = np.linspace(middle - reach, middle + reach, 401)
    for w in scale * np.array([-3.0, -0.7, -0.1, 0.05, 0.4, 2.0]):
        near = coarse[np.argmax([w * u - in_double(u) for u in coarse])]  # of a concave function: the best is beside it
        fine = np.clip(near + np.linspace(-0.005, 0.005, 201) * limit, middle - reach, middle + reach)
        found = fine[np.argmax([w * u - in_double(u) for u in fine])]
        assert float(best(w)) == pytest.approx(found, abs=1.01e-4 * limit)
        assert abs(float(best(w)) - middle) <= limit * (1 + 1e-15)
        assert float(best_cost(w)) == pytest.approx(float(D(best(w))), rel=1e-6, abs=1e-9 * float(size))


@every_cost
@pytest.mark.parametrize("name", ["log", "sin", "abs", "max", "log1p", "mpf"])
def test_an_input_may_have_the_name_of_a_function(kind: type[ActionCost], name: str) -> None:
    ratios = [kind(1.0).of_input(symbol, 2.5, 1.0).curvature_ratio(1.2) for symbol in (Symbol(name, real=True), U)]
    assert ratios[0] == ratios[1]
