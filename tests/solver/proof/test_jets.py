"""Balls and power series of many numbers: Arb's series and random points lie within them."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, arb_series
from numpy.typing import NDArray

from solver.proof.balls import FUNCTIONS, Balls
from solver.proof.jets import Jet, Powers, Sloped, Tiles, combined, hull, sloped

ORDER = 4
WITHIN = {"sin": (-9, 9), "cos": (-9, 9), "exp": (-5, 5), "tanh": (-4, 4), "atan": (-9, 9), "log": (0.1, 9)}


def of_arb(kind: str, at: float) -> list[arb]:
    """Coefficients of a function at one number."""
    x = arb_series([arb(at), 1], prec=ORDER + 1)
    e = (x + x).exp() if kind == "tanh" else x
    series = (e - 1) / (e + 1) if kind == "tanh" else getattr(x, kind)()
    return [series[k] for k in range(ORDER + 1)]


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_series_of_arb_are_within(kind: str) -> None:
    generator = np.random.default_rng(0)
    low, high = WITHIN.get(kind, (0.1, 9.0))
    middle, radius = generator.uniform(low, high, 40), 10.0 ** generator.uniform(-12, -2, 40)
    radius = np.minimum(radius, 0.5 * (middle - low)) if low > 0 else radius
    at, point = middle + radius * generator.uniform(-1, 1, 40), Powers.up_to(1, ORDER)
    found = Jet.start(point, Balls(middle, radius), 0).function(kind).terms
    for n in range(40):
        for k, value in enumerate(of_arb(kind, at[n])):
            assert arb(found.low[k, n]) <= value <= arb(found.high[k, n]), (kind, k, at[n])
    assert np.median(found.radius[0] / radius) < 20


def test_a_series_of_two_variables_is_that_of_finite_differences() -> None:
    powers = Powers.up_to(2, 3)
    x, y = (Jet.start(powers, Balls.of(np.array(value)), i) for i, value in enumerate((0.3, 1.2)))
    terms = (x.function("sin") * y / (y * y + x).function("sqrt")).terms.middle

    def f(a: float, b: float) -> float:
        return float(np.sin(a) * b / np.sqrt(b * b + a))

    h = 1e-3
    mixed = sum(i * j * f(0.3 + i * h, 1.2 + j * h) for i in (-1, 1) for j in (-1, 1)) / (4 * h * h)
    assert terms[powers.exponents.index((1, 1))] == pytest.approx(mixed, rel=1e-5)
    third = (f(0.3, 1.2 + 2 * h) - 2 * f(0.3, 1.2 + h) + 2 * f(0.3, 1.2 - h) - f(0.3, 1.2 - 2 * h)) / (2 * h**3)
    assert 6 * terms[powers.exponents.index((0, 3))] == pytest.approx(third, rel=1e-3)


@pytest.mark.slow
def test_narrowed_series_hold_those_at_all_points_and_are_narrow() -> None:
    """x^2 - x y over a set of many occurrences: bounds by the next coefficients are closer than those by balls."""
    powers, generator, bend = Powers.up_to(2, 3), np.random.default_rng(1), [np.full(1, 0.1), np.full(1, 0.2)]

    def f(first: Balls, second: Balls) -> Jet:
        x, y = Jet.start(powers, first, 0), Jet.start(powers, second, 1)
        return x * x * x - x * y + y - y * x

    middle = [np.array([0.7, 0.7]), np.array([0.4, 0.4])]
    wide = f(*(Balls(m, np.append(0.0, b)) for m, b in zip(middle, bend, strict=True)))
    found = wide.narrowed(bend).terms
    for _ in range(200):
        t = generator.uniform(-1, 1, 2)
        at = f(*(Balls.of(m[:1] + b * s) for m, b, s in zip(middle, bend, t, strict=True))).terms.middle[:, 0]
        assert (found.low[:, 1] <= at).all()
        assert (at <= found.high[:, 1]).all()
    assert found.radius[0, 1] < 0.6 * wide.terms.radius[0, 1]


def test_sets_hold_what_functions_of_them_are() -> None:
    generator, count = np.random.default_rng(2), 50
    middles, slopes = generator.normal(size=(2, count)), generator.normal(size=(2, 3, count))
    x, y = (Sloped(m, s, np.full(count, 0.1)) for m, s in zip(middles, slopes, strict=True))
    t, e = generator.uniform(-1, 1, (3, count)), generator.uniform(-0.1, 0.1, (2, count))
    a, b = (s.middle + (s.slopes * t).sum(0) + part for s, part in zip((x, y), e, strict=True))
    everywhere = np.ones(count, bool)
    cases = {
        "product": (x * y, a * b),
        "sum": (combined([(2.0, x), (-3.0, y)], 1.0), 2 * a - 3 * b + 1),
        "sine": (sloped(Balls.of(x.middle).sine(), [(Balls(np.zeros(count), np.ones(count)), x)]), np.sin(a)),
        "first of two": (hull([(everywhere, x), (everywhere, y)]), a),
        "second of two": (hull([(everywhere, x), (everywhere, y)]), b),
        "opened": (x.opened(1, 2), a),
    }
    for name, (found, value) in cases.items():
        symbols = np.concatenate([t, [np.zeros(count), e[0] / 0.1]]) if name == "opened" else t
        missed = np.abs(value - found.middle - (found.slopes * symbols).sum(0))
        assert (missed <= found.rest + 1e-12).all(), name
    with np.errstate(all="ignore"):
        assert np.isinf(hull([(~everywhere, x)]).rest).all()


@np.errstate(all="ignore")
def test_what_is_not_known_is_not_finite() -> None:
    wide = Balls(np.zeros(2), np.ones(2))
    powers = Powers.up_to(1, 2)
    one = Jet.start(powers, Balls.of(np.ones(2)))
    assert not np.isfinite((one / Jet.start(powers, wide, 0)).terms.high).any()
    for kind in ("log", "sqrt"):
        assert not np.isfinite(Jet.start(powers, wide, 0).function(kind).terms.high).any()
    kink = Jet.start(powers, wide, 0).chosen(Jet.start(powers, Balls.of(np.zeros(2))), True)
    assert kink.value.low[0] <= 0
    assert kink.value.high[0] >= 1
    assert np.isinf(kink.terms.radius[1:]).all()  # no curvature is known beyond a kink


@pytest.mark.parametrize("width", [0.002, 0.05, 0.4, 3.0])
def test_a_function_over_sets_is_below_the_bounds_of_their_tiles(width: float) -> None:
    """sin(a) (b + 2), where a is an angle and b has a limit: sets at their edges and of any number of turns."""
    generator, domain = np.random.default_rng(0), (np.array([-np.pi, -1.0]), np.array([np.pi, 1.0]))

    def bounds(x: list[Balls]) -> NDArray[np.float64]:
        wave = x[0].sine()
        return np.stack([(wave * (x[1] + 2.0)).high, (-wave * (x[1] + 2.0)).high], 1)

    tiles = Tiles(bounds, 2, *domain, np.array([True, False]), 64)
    centre, half = generator.uniform(-1, 1, (200, 2)) * [9.0, 1.0], width * generator.uniform(0, 1, (200, 2))
    centre[::2] = np.round(centre[::2] * 32) / 32  # edges of tiles
    x = [Sloped(centre[:, i], np.zeros((1, 200)), half[:, i]) for i in range(2)]
    found = tiles(x)
    for _ in range(50):
        a, b = (centre + half * generator.uniform(-1, 1, (200, 2)).round(1)).T
        truth = np.sin(a) * (b + 2)
        assert (found[:, 0] >= truth).all()
        assert (found[:, 1] >= -truth).all()
    assert np.isinf(found).any() or width < 3.0  # sets that no tile holds
    if width < 0.1:
        assert np.median(found[:, 0] - np.sin(centre[:, 0]) * (centre[:, 1] + 2)) < 0.5
