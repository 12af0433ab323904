"""Returns of all sizes are printed with three digits."""

from __future__ import annotations

import pytest

from solver.plants.outcome import decimals


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.018654, "-0.0187"), (-1.2345, "-1.23"), (-30.6123, "-30.61"), (-6339.1, "-6339.10"), (0.0, "0.00")],
)
def test_a_small_return_keeps_three_digits(value: float, text: str) -> None:
    assert f"{value:.{decimals(value)}f}" == text
    assert len(f"{value:.{decimals(value, least=1)}f}") == len(text) - 1


def test_nan_is_printed() -> None:
    assert f"{float('nan'):.{decimals(float('nan'))}f}" == "nan"
