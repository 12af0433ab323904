"""Taylor models and their power series contain the results for all members, by Arb's series in time."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from flint import arb, arb_series
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.arrays import Array
from solver.proof.balls import FUNCTIONS
from solver.proof.taylor import Dual, Model, Series

SYMBOLS, LENGTH, COUNT = 2, 4, 3
seeds = st.integers(0, 2**32 - 1)


def drawn(generator: np.random.Generator, middle: float, width: float) -> Series:
    rows = 1 + SYMBOLS + SYMBOLS * (SYMBOLS + 1) // 2
    terms = [width * generator.uniform(-1, 1, (rows, COUNT)) for _ in range(LENGTH)]
    for k, part in enumerate(terms):
        part[0] = generator.uniform(-0.5, 0.5, COUNT) if k else middle
    rests = width * generator.choice([0.0, 1e-3, 0.2], (LENGTH, COUNT))
    return Series([Model(part, rest) for part, rest in zip(terms, rests, strict=True)])


def member(number: Model, t: Array, at: int, share: float = 0.0) -> arb:
    """The number of one box at symbols t, `share` of the rest above its terms."""
    first, second = np.triu_indices(SYMBOLS)
    monomials = [arb(1), *map(arb, t), *(arb(t[i]) * arb(t[j]) for i, j in zip(first, second, strict=True))]
    terms = number.terms[:, at].tolist()
    return sum((m * arb(term) for m, term in zip(monomials, terms, strict=False)), arb(share) * arb(number.rest[at]))


def at(series: Series, t: Array, box: int, shares: Array) -> arb_series:
    parts = [member(part or Model.of(np.zeros(COUNT)), t, box, s) for part, s in zip(series.terms, shares, strict=True)]
    return arb_series(parts, prec=LENGTH)


def holds(found: Series, exact: arb_series, t: Array, box: int) -> bool:
    for k, part in enumerate(found.terms):
        known = part or Model.of(np.zeros(COUNT))
        distance = abs(exact[k] - member(known, t, box))
        if not distance.mid() - distance.rad() <= arb(known.rest[box]):
            return False
    return True


@pytest.mark.parametrize("kind", [*sorted(FUNCTIONS), "inverse", "product", "square"])
@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from([1e-3, 0.05]))
@pytest.mark.slow
def test_a_function_of_a_series_contains_that_of_every_member(kind: str, seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    series, other = drawn(generator, 0.7, width), drawn(generator, -0.4, width)
    if kind in FUNCTIONS:
        found = series.function(kind)[0]
    else:
        found = series.inverse() if kind == "inverse" else series * (other if kind == "product" else series)
    assert all(np.isfinite((part or Model.of(np.zeros(COUNT))).rest).all() for part in found.terms)
    shares = generator.choice([-1.0, 1.0], (2, LENGTH))
    for box, side in product(range(COUNT), (-1.0, 1.0, 0.3)):  # at the far corners a rest that is too small shows
        t = np.where(series.first.terms[1 : 1 + SYMBOLS, box] < 0, -side, side)
        t = np.where(generator.uniform(size=SYMBOLS) < 0.2, -t, t)
        x, y = at(series, t, box, shares[0]), at(other, t, box, shares[1])
        if kind == "tanh":
            exact = 1 - 2 / ((2 * x).exp() + 1)
        elif kind in FUNCTIONS:
            exact = getattr(x, kind)()
        else:
            exact = 1 / x if kind == "inverse" else x * (y if kind == "product" else x)
        assert holds(found, exact, t, box)


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(sorted(FUNCTIONS)))
def test_slopes_are_those_of_a_neighbour(seed: int, kind: str) -> None:
    """Dual numbers have the derivative of the function: a small step tells it."""
    generator, step = np.random.default_rng(seed), 1e-6
    middle = Model.of(generator.uniform(0.3, 0.8, COUNT))
    ahead = Model.of(middle.terms[0] + step)
    one = Model.of(np.ones(COUNT))
    number = Dual.of(middle, [one, None]).function(kind)
    moved = Dual.of(ahead, [one, None]).function(kind)
    assert number.slopes[1] is None
    slope = number.slopes[0]
    assert slope is not None
    difference = (moved.value.first.terms[0] - number.value.first.terms[0]) / step
    assert np.abs(slope.first.terms[0] - difference).max() < 1e-4


@pytest.mark.parametrize("larger", [True, False])
def test_the_larger_of_two_numbers_holds_both_where_it_is_not_known(larger: bool) -> None:
    a = Dual.of(Model.linear(np.array([0.0, 0.0, 1.0]), [np.full(3, 0.1)]), [Model.of(np.full(3, 2.0))])
    b = Dual.of(Model.of(np.array([0.5, 0.05, 0.0])), [Model.of(np.full(3, -1.0))])
    found = a.chosen(b, larger)
    best, slope = max if larger else min, found.slopes[0]
    assert slope is not None
    for box in range(3):
        for t in (-1.0, 0.3, 1.0):
            exact = best(float(a.value.first.terms[0, box]) + 0.1 * t, float(b.value.first.terms[0, box]))
            terms = found.value.first.terms[:, box] @ [1.0, t, t * t]
            assert abs(exact - terms) <= found.value.first.rest[box] + 1e-12
    assert slope.first.rest[1] >= 1.5 - 1e-9  # both slopes
    assert slope.first.terms[0, 0] == (-1.0 if larger else 2.0)


def test_an_enclosure_that_is_too_narrow_is_none() -> None:
    inner = Model.linear(np.zeros(2), [np.array([0.1, 0.1])], 0.01)
    outer = Model.linear(np.zeros(2), [np.array([0.1, 0.2])], 0.05)
    assert outer.contains(inner).tolist() == [True, False]
