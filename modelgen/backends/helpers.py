"""Functions that Python's `math` lacks, as statements: they are emitted as they stand, and translated for vectors."""

from __future__ import annotations


def sign(x: float) -> float:
    """-1, 0 or 1; NaN for NaN."""
    return x if (x != x) | (x == 0) else abs(x) / x


def minimum(a: float, b: float) -> float:
    """The smaller of two; NaN when one of them is NaN."""
    return a if (a < b) | (a != a) else b


def maximum(a: float, b: float) -> float:
    """The larger of two; NaN when one of them is NaN."""
    return a if (a > b) | (a != a) else b
