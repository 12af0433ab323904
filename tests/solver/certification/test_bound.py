"""Bound of a failure probability, compared with sums of the binomial distribution, and its coverage."""

from __future__ import annotations

import math

import pytest

from solver.certification.experiment import episodes_for, failure_bound


def probability(successes: int, count: int, p: float) -> float:
    """Binomial probability of exactly `successes` events, by the textbook formula."""
    return math.comb(count, successes) * p**successes * (1.0 - p) ** (count - successes)


def at_most(most: int, count: int, p: float) -> float:
    """Binomial probability of at most `most` events."""
    return sum(probability(k, count, p) for k in range(most + 1))


@pytest.mark.parametrize(("p", "confidence", "expected"), [(1e-3, 1.0 - 1e-6, 13_809), (0.01, 0.95, 299)])
def test_number_of_episodes_without_failures_is_the_smallest_that_suffices(
    p: float, confidence: float, expected: int
) -> None:
    assert episodes_for(p, confidence) == expected
    assert (1.0 - p) ** expected <= 1.0 - confidence < (1.0 - p) ** (expected - 1)
    assert failure_bound(expected, 0, confidence) <= p < failure_bound(expected - 1, 0, confidence)


@pytest.mark.parametrize(("p", "confidence", "failures"), [(0.02, 0.99, 3), (0.3, 0.9, 10), (0.5, 0.5, 0)])
def test_number_of_episodes_with_failures_is_the_smallest_that_suffices(
    p: float, confidence: float, failures: int
) -> None:
    count = episodes_for(p, confidence, failures)
    assert at_most(failures, count, p) <= 1.0 - confidence < at_most(failures, count - 1, p)


@pytest.mark.parametrize("p", [0.01, 0.13, 0.5, 0.93])
def test_bound_covers_the_true_probability_as_often_as_its_confidence(p: float) -> None:
    count, confidence = 60, 0.95
    covered = sum(probability(k, count, p) for k in range(count + 1) if failure_bound(count, k, confidence) >= p)
    assert covered >= confidence
    assert failure_bound(count, count, confidence) == 1.0
