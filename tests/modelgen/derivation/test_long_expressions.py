"""Long sums, expanded products and nested functions are built, and their kernels have the values of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Add, expand, sin

import modelgen
from modelgen.builder import build_artifact
from tests.modelgen.support.declared import TASK, cart

pytestmark = pytest.mark.slow

TERMS = range(1, 401)
FORCES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "400 terms": (
        lambda s: Add(*(sin(k * s) / (400 * k) for k in TERMS)),
        lambda s: sum(np.sin(k * s) / (400 * k) for k in TERMS),
    ),
    "an expanded product": (
        lambda s: expand((1 + sin(s) + s / 10) ** 12) / 1000,
        lambda s: (1 + np.sin(s) + s / 10) ** 12 / 1000,
    ),
    "100 nested sines": (
        lambda s: reduce(lambda e, _: sin(e), range(100), s),
        lambda s: reduce(lambda e, _: np.sin(e), range(100), s),
    ),
}


@pytest.mark.parametrize("name", FORCES)
def test_a_long_force_is_built(name: str, tmp_path: Path) -> None:
    stated, formula = FORCES[name]
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.apply(s, 1.0 * stated(s))
    robot.task(**{**TASK, "state_cost": s**2})
    build_artifact(robot, tmp_path)
    kernel = modelgen.load("cart", backend="llvm", directory=tmp_path)
    at = np.linspace(-1, 1, 9)
    a, _ = kernel.affine_dynamics(np.column_stack([at, 0 * at]))
    np.testing.assert_allclose(a[:, 1], formula(at), rtol=1e-11, atol=1e-13)
