"""The 50-digit evaluation of a model compared with closed forms, for robots of any size."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mpf, workdps
from sympy import sin

from modelgen import LogCos, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.verification.reference import DIGITS, ExactReference, slope


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-9, 1.0, 1e9])
@pytest.mark.slow
def test_derivatives_of_a_robot_of_any_size(size: float) -> None:
    """A disc with a weight at its rim. Its inertia, damping and torque are multiples of `size`, in SI units."""
    robot = Robot("disc")
    angle = robot.revolute("angle", limit=2, rate_limit=5)
    inertia = robot.parameter("inertia", size, "kg m^2", tolerance=0.5)
    damping = robot.parameter("damping", 0.1 * size, "N m s", tolerance=0.5)
    torque = robot.input("torque", 5 * size, "N m")
    robot.kinetic_energy(inertia * angle.rate**2 / 2)
    robot.apply(angle, torque + inertia * sin(angle) * 9.81)
    robot.damp(angle, damping)
    robot.task(
        state_cost=angle**2 + angle.rate**2,
        action_cost=LogCos(0.1 / size**2),
        start={},
        horizon=3,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    random, count = np.random.default_rng(0), 5
    x = random.uniform(-2, 2, (count, 2))
    u = random.uniform(-0.999, 0.999, (count, 1)) * 5 * size
    J, d = random.uniform(0.5, 1.5, (2, count)) * [[size], [0.1 * size]]
    values = ExactReference(equations_of_motion(robot)).quantities(
        x, u, np.ones((count, 2)), np.stack([J, d], axis=1), u
    )
    nothing = np.zeros(count)
    by_theta = np.stack([nothing, nothing, d * x[:, 1] / J**2, -x[:, 1] / J], axis=1)
    np.testing.assert_allclose(values["da_dtheta"], by_theta, rtol=1e-13)
    np.testing.assert_allclose(values["dB_dtheta"][:, 2], -1 / J**2, rtol=1e-13)
    pole, beta = 5 * size + 1e-3 * min(1.0, 5 * size), 4 * 25 * 0.1 / np.pi  # g(u) as in docs/concepts/cfvi.md
    turn = np.pi / 2 * u / pole
    np.testing.assert_allclose(values["dg_du"], beta * np.tan(turn), rtol=1e-11)
    np.testing.assert_allclose(values["d2g_du2"], beta * np.pi / 2 / pole / np.cos(turn) ** 2, rtol=1e-11)


def test_a_slope_of_zero_is_exactly_zero_for_a_value_of_any_size() -> None:
    """9.81 m/m depends on m only in the last of the 50 digits, which division by a short step makes large."""
    with workdps(DIGITS):
        for mass in (mpf("1.7e-13"), mpf("1.3e-9"), mpf("0.3")):
            slopes = slope(lambda at: [mpf("9.81") * at[0] / 3 / at[0], at[0] ** 3, mpf(7)], [mass], 0)
            assert (slopes[0], slopes[2]) == (0, 0)
            assert abs(slopes[1] / (3 * mass**2) - 1) < 1e-20
