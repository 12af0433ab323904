"""Derivatives of functions of JAX of a family; `tests/solver/export/test_families.py` compares their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import solver
from solver.errors import SolverError
from tests.solver.small_trainings import FAMILIES

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")


def test_a_derivative_by_what_is_told(trained_family: Callable[[str], Path]) -> None:
    functions = solver.load(trained_family("pendulum")).to_jax()
    assert set(FAMILIES["pendulum"]) == {"mass", "length"}
    x = np.array([2.0, 0.5], np.float32)
    slope = float(jax.grad(lambda mass: functions.value(x, mass=mass))(1.1))
    step = 0.02
    expected = float(functions.value(x, mass=1.1 + step) - functions.value(x, mass=1.1 - step)) / (2 * step)
    assert slope == pytest.approx(expected, rel=0.02, abs=1e-3)
    with pytest.raises(SolverError, match="weight"):
        functions.policy(x, weight=1.0)
    with pytest.raises(SolverError, match=r"mass .*\(3,\)"):
        functions.policy(x, mass=np.ones(3))
