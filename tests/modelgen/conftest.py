"""Artifacts of hand-made mechanisms, built once, and the exact values to hold them against."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from modelgen.builder import build_from_equations
from modelgen.verification.reference import ExactReference
from tests.modelgen.support import mechanisms
from tests.modelgen.support.quantities import Calls, Close, Exact, Quantities

EQUATIONS = {"pendulum": mechanisms.pendulum, "dense": mechanisms.dense}


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts of `pendulum` and `dense`."""
    folder = tmp_path_factory.mktemp("generated")
    for name, make in EQUATIONS.items():
        equations = make()
        build_from_equations(equations, mechanisms.metadata(name, equations), "0" * 64, folder)
    return folder


@pytest.fixture(scope="session")
def exact() -> Exact:
    """exact(name): samples of a mechanism and every quantity of the loader's contract, with 50 digits."""
    made: dict[str, SimpleNamespace] = {}

    def of(name: str) -> SimpleNamespace:
        if name not in made:
            equations = EQUATIONS[name]()
            random = np.random.default_rng(3)
            n, m, p = len(equations.state), len(equations.inputs), len(equations.parameters)
            x, costate, w, u = (
                random.uniform(-reach, reach, (5, size)).astype(np.float32).astype(np.float64)
                for size, reach in ((n, 2), (n, 2), (m, 4), (m, 1))  # inputs end at 1
            )
            theta = random.uniform(0.5, 1.5, (5, p)).astype(np.float32).astype(np.float64)
            values = ExactReference(equations).quantities(x, u, costate, theta, w)
            made[name] = SimpleNamespace(x=x, u=u, costate=costate, theta=theta, w=w, values=values)
        return made[name]

    return of


@pytest.fixture(scope="session")
def calls() -> Calls:
    """calls(robot, samples, convert): every output of every method by name, flattened to (N, entries)."""

    def of(robot: Any, at: SimpleNamespace, convert: Any = lambda array: array, rows: Any = slice(None)) -> Quantities:
        x, u, costate, w = (convert(array[rows].copy()) for array in (at.x, at.u, at.costate, at.w))
        theta = convert(at.theta[rows].copy())
        results = {
            **dict(zip(("a", "B"), robot.affine_dynamics(x, theta), strict=True)),
            "xdot": robot.dynamics(x, u, theta),
            **dict(
                zip(
                    ("a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"),
                    robot.jacobians(x, theta),
                    strict=True,
                )
            ),
            **dict(
                zip(
                    ("dH_dx", "dH_du", "dH_dtheta"),
                    robot.hamiltonian_gradient(x, u, costate, theta),
                    strict=True,
                )
            ),
            **dict(zip(("q", "dq_dx"), robot.state_cost(x, theta), strict=True)),
            **dict(zip(("g", "dg_du", "d2g_du2"), robot.action_cost(u), strict=True)),
            "u_optimal": robot.optimal_input(w),
            "g_optimal": robot.optimal_input_cost(w),
        }
        return {name: np.asarray(value, np.float64).reshape(len(x), -1) for name, value in results.items()}

    return of


@pytest.fixture(scope="session")
def close() -> Close:
    """close(found, expected, limit): largest error of every quantity beside its largest entry."""

    def check(found: Quantities, expected: Quantities, limit: float) -> None:
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            scale = np.abs(value).max() or 1.0
            error = np.abs(found[name] - value).max() / scale
            assert error <= limit, f"{name}: {error:.1e}"

    return check
