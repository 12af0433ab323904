"""Random linear robots with states of first order, lags and commanded accelerations, against a dense solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen import Quadratic, Robot
from modelgen.backends.casadi import compiled
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.lowering import mechanism
from modelgen.program.differentiate import program
from tests.modelgen.support.cases import fuzzed

pytestmark = pytest.mark.slow

LAG = 0.05


@fuzzed
@given(
    seed=st.integers(0, 2**32 - 1),
    nq=st.integers(1, 3),
    nz=st.integers(0, 2),
    m=st.integers(0, 2),
    lagged=st.booleans(),
    commanded=st.sets(st.integers(0, 2)),
)
def test_fuzz_linear_robots(seed: int, nq: int, nz: int, m: int, lagged: bool, commanded: set[int]) -> None:
    random = np.random.default_rng(seed)
    rows = sorted(row for row in commanded if row < nq)
    robot = Robot("fuzzed")
    q = [robot.prismatic(f"q{i}", limit=1, rate_limit=1) for i in range(nq)]
    u = [robot.input(f"u{i}", 1, "") for i in range(m)]
    z = [robot.state(f"z{i}", limit=1, unit="") for i in range(nz)]
    slow = [robot.lag(u[0], seconds=LAG)] if m and lagged else []
    rates = [entry.rate for entry in q]
    everything = [*q, *rates, *z, *slow]
    root = random.normal(size=(nq, nq))
    M = root @ root.T + np.eye(nq)
    F, S = random.normal(size=(nq, len(everything))), random.normal(size=(nq, m))
    C, R = random.normal(size=(nq, len(everything))), random.normal(size=(nq, m))
    Z, T = random.normal(size=(nz, len(everything))), random.normal(size=(nz, m))

    def written(states: np.ndarray, inputs: np.ndarray) -> object:
        return sum(float(a) * b for a, b in zip([*states, *inputs], [*everything, *u], strict=True))

    robot.kinetic_energy(sum(float(M[i, j]) * rates[i] * rates[j] / 2 for i in range(nq) for j in range(nq)))
    for i in range(nq):
        robot.apply(q[i], written(F[i], S[i]))
    for row in rows:
        robot.accelerate(q[row], written(C[row], R[row]))
    for i in range(nz):
        robot.flow(z[i], written(Z[i], T[i]))
    robot.task(
        state_cost=sum(entry**2 for entry in q),
        action_cost=Quadratic(1.0) if m else None,
        start={}, horizon=1, weight_at_horizon=0.5, control_rate=100,
    )  # fmt: skip
    made = program(mechanism(equations_of_motion(robot)), ("dynamics",))
    x, inputs = random.uniform(-1, 1, len(everything)), random.uniform(-1, 1, m)
    got = np.asarray(compiled(made.graph, made.function("dynamics"), "fuzzed")(x, inputs, [])).ravel()

    acting = inputs.copy()  # what forces and flows see in place of the inputs
    if slow:
        acting[0] = x[-1]
    held = np.eye(nq)[rows]
    saddle = np.block([[M, -held.T], [held, np.zeros((len(rows), len(rows)))]])
    right = np.concatenate([F @ x + S @ acting, (C @ x + R @ acting)[rows]])
    lag = (inputs[:1] - x[-1:]) / LAG if slow else np.zeros(0)
    expected = np.concatenate([x[nq : 2 * nq], np.linalg.solve(saddle, right)[:nq], Z @ x + T @ acting, lag])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
