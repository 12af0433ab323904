"""Comparison of numbers that are computed in two ways: by other code, on batches of other sizes, in other processes.

The tolerance is the rounding of float32. It grows with the length of a rollout, because the error of each control
period goes into the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ROUNDING = 16 * float(np.finfo(np.float32).eps)  # of one evaluation of V or of the dynamics, of the largest entry


def assert_close(actual: Any, expected: Any, periods: int = 1) -> None:
    """Assert that numbers, arrays or tensors agree within the rounding of `periods` control periods, one after another.

    Also mappings and sequences of them, as JSON has: their keys, names and flags must be equal.
    """
    if isinstance(expected, Mapping):
        assert actual.keys() == expected.keys()
        for key in expected:
            assert_close(actual[key], expected[key], periods)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other, periods)
    elif isinstance(expected, str | bool | int | None):
        assert actual == expected
    else:
        right = np.asarray(expected, float)
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(actual, float), right, rtol=0.0, atol=ROUNDING * periods * scale)
