"""MuJoCo's mechanism made from the links of a robot of any size."""

from __future__ import annotations

import numpy as np
import pytest

from modelgen import Quadratic, Robot
from modelgen.engines.expressions import builder


@pytest.mark.parametrize(("length", "weight"), [(1e-3, 1e-9), (0.01, 1e-3), (1.0, 1.0), (100.0, 1e6)])
def test_point_masses_on_two_links_have_their_closed_form(length: float, weight: float) -> None:
    """MuJoCo refuses a body without inertia; the replacement is negligible, also for milligrams at millimetres."""
    pytest.importorskip("mujoco")
    robot = Robot("double")
    shoulder, elbow = (robot.revolute(name, limit=3, rate_limit=5) for name in ("shoulder", "elbow"))
    mass = robot.parameter("mass", weight, "kg", tolerance=0.5)
    upper = robot.link("upper", shoulder, mass=mass, centre=(0, 0, length))
    lower = robot.link("lower", elbow, on=upper, at=(0, 0, length))
    robot.link("tip", on=lower, at=(0, 0, length), mass=2 * mass)
    torque = robot.input("torque", weight * length, "N m")
    robot.apply(elbow, torque)
    robot.task(
        state_cost=shoulder**2 + elbow**2,
        action_cost=Quadratic(1.0),
        start={},
        horizon=3,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    engine = builder("mujoco", robot)(np.array([weight]))
    q = np.array([[0.3, 1.1]])
    cos = np.cos(q[0, 1])
    expected = weight * length**2 * np.array([[5 + 4 * cos, 2 + 2 * cos], [2 + 2 * cos, 2.0]])
    np.testing.assert_allclose(engine.mass_matrix(q)[0], expected, rtol=1e-12)
    x, u = np.hstack([q, 0 * q]), np.array([[0.7 * weight * length]])
    weighed = 9.81 * weight * length * (np.array([3, 0]) * np.sin(0.3) + 2 * np.sin(1.4))
    moved = np.linalg.solve(expected, weighed + np.array([0, u[0, 0]]))
    np.testing.assert_allclose(engine.acceleration(x, u)[0], moved, rtol=1e-11)
