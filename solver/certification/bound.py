"""The exact bound on a failure probability from independent rollouts (Clopper and Pearson, 1934)."""

from __future__ import annotations

from scipy.stats import binom, binomtest


def failure_bound(episodes: int, failures: int, confidence: float) -> float:
    """The one-sided upper bound: at a higher failure probability, so few failures have less than 1 - confidence."""
    test = binomtest(failures, episodes, alternative="less")
    return float(test.proportion_ci(confidence, method="exact").high)


def episodes_for(probability: float, confidence: float, failures: int = 0) -> int:
    """The fewest episodes whose bound is at most `probability` when that many fail.

    The bound is at most p just where P(K <= failures) <= 1 - confidence for K of a binomial distribution with p, which
    falls with the number of episodes.
    """

    def enough(episodes: int) -> bool:
        return bool(binom.cdf(failures, episodes, probability) <= 1.0 - confidence)

    few, many = failures, failures + 1
    while not enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
