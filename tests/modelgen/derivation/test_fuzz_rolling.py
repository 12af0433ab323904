"""Random rolling robots against d'Alembert's principle: forces that prevent slip do no work along possible motions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, cos, sin

from modelgen import Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.numeric import compiled_evaluator
from tests.modelgen.derivation.test_loops import Array, second, slopes
from tests.modelgen.support.cases import CASES

pytestmark = pytest.mark.slow


@settings(max_examples=max(CASES // 10, 2), deadline=None)  # a derivation takes seconds
@given(seed=st.integers(0, 2**32 - 1), nq=st.integers(2, 3), rolling=st.integers(1, 3), declared=st.integers(1, 2))
def test_fuzz_rolling_robots(seed: int, nq: int, rolling: int, declared: int) -> None:
    """T' (M qddot + c - f) = 0 and qdot = T(q) s, with T and M differentiated by complex steps."""
    random, rolling = np.random.default_rng(seed), min(rolling, nq)
    declared = min(declared, rolling)  # a robot with more speeds than coordinates has a singular mass matrix
    free, masses = nq - rolling, 1
    count = free + declared  # of the speeds s: rates of the coordinates that do not roll, then declared ones
    turns, phases = random.uniform(-2, 2, (rolling, count, nq)), random.uniform(-2, 2, (rolling, count))
    sizes = random.uniform(-1, 1, (rolling, count))
    places = random.uniform(-1, 1, (2 * masses, nq)), random.uniform(-2, 2, (2 * masses, nq))
    heavy, torque = random.uniform(0.5, 2, masses), random.uniform(-1, 1, nq)

    robot = Robot("fuzzed")
    q = [robot.prismatic(f"q{i}", limit=1, rate_limit=1 if i < free else None) for i in range(nq)]
    s = [robot.speed(f"s{i}", limit=1, unit="m/s") for i in range(declared)]
    speeds = [*(symbol.rate for symbol in q[:free]), *s]
    u = robot.input("u", (0, 2), "N")
    rates = {
        q[free + i]: sum(
            float(sizes[i, j])
            * cos(sum(float(a) * b for a, b in zip(turns[i, j], q, strict=True)) + float(phases[i, j]))
            * speeds[j]
            for j in range(count)
        )
        for i in range(rolling)
    }
    robot.roll(rates)
    at = [
        sum(float(places[0][k, i]) * sin(q[i] + float(places[1][k, i])) for i in range(nq)) for k in range(2 * masses)
    ]
    robot.gravity(3.0)
    for k in range(masses):
        robot.point_mass(float(heavy[k]), (at[2 * k], at[2 * k + 1]))
        robot.kinetic_energy(0.1 * sum(symbol.rate**2 for symbol in q))
    for i in range(nq):
        robot.apply(q[i], float(torque[i]) * u)
    robot.task(
        state_cost=sum(entry**2 for entry in q),
        action_cost=Quadratic(1.0), start={}, horizon=1, weight_at_horizon=0.5, control_rate=100,
    )  # fmt: skip
    equations = equations_of_motion(robot)
    parts = equations.mass_matrix.row_join(equations.force).row_join(equations.input_matrix)
    x = random.uniform(-1, 1, nq + count)
    order = [speeds.index(symbol) for symbol in equations.velocities]
    found = compiled_evaluator((*equations.state, *equations.parameters), parts, equations.definitions)
    rate_of = compiled_evaluator(equations.state, Matrix(equations.coordinate_rates), equations.definitions)
    state = np.concatenate([x[:nq], x[nq:][order]])[None]
    values, pushed = found(state)[0], random.uniform(0, 2)
    vdot = np.linalg.solve(values[:, :count], values[:, count] + values[:, count + 1] * pushed)

    def T(at: Array) -> Array:
        matrix = np.zeros((nq, count), at.dtype)
        matrix[:free, :free] = np.eye(free)
        matrix[free:] = sizes * np.cos(turns @ at + phases)
        return matrix

    def placed(at: Array) -> Array:
        return (places[0] * np.sin(at + places[1])).sum(axis=1)

    position, moving = x[:nq], x[nq:]
    v = T(position) @ moving
    bent = np.imag(T(position + 1e-30j * v)) / 1e-30 @ moving  # Tdot s
    P = slopes(placed, position)
    each = np.repeat(heavy, 2)
    M = P.T @ (each[:, None] * P) + 0.1 * masses * 2 * np.eye(nq)
    fall = -3.0 * P[1::2].T @ heavy
    force = torque * pushed + fall - P.T @ (each * second(placed, position, v)) - M @ bent
    expected = np.linalg.solve(T(position).T @ M @ T(position), T(position).T @ force)
    scale = max(1.0, np.abs(expected).max()) * np.linalg.cond(T(position).T @ M @ T(position))
    np.testing.assert_allclose(vdot, expected[order], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(rate_of(state)[0, :, 0], v, rtol=0, atol=1e-12)
