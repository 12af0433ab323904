"""Kinematic trees compared with their energies and with the double pendulum. Random trees: test_fuzz_trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, pi

from modelgen import ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.verification.checks import Points
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.trees import finished


def values(robot: Robot, x: np.ndarray, theta: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """M (N, n, n) and force (N, n) of the derived equations."""
    equations = equations_of_motion(robot)
    if theta is None:
        nominal = [parameter.value for parameter in robot.parameters if not parameter.fixed]
        theta = np.tile(nominal, (len(x), 1))
    arguments = [*equations.state, *equations.parameters]
    matrix, force = (
        numpy_evaluator(arguments, part, equations.definitions)(*x.T, *theta.T)
        for part in (equations.mass_matrix, equations.force)
    )
    return matrix, force[:, :, 0]


@pytest.mark.slow
def test_verification_finds_a_wrong_recursion() -> None:
    robot = Robot("two")
    for name, axis, on in (("first", "z", None), ("second", "x", "first")):
        joint = robot.revolute(f"q_{name}", limit=3, rate_limit=3)
        carrier = next((link for link in robot.links if link.name == on), None)
        frame: dict[str, Any] = dict(at=(0.1, 0.2, 0.3), turned=(0.4, 0, -0.3), axis=axis)
        robot.link(name, joint, on=carrier, **frame, mass=1.2, centre=(0.1, 0, 0.2), inertia=(0.11, 0.14, 0.15))
    finished(robot)
    equations = equations_of_motion(robot)
    symbol, _ = next(pair for pair in equations.definitions if str(pair[0]).startswith("sin_q_second"))
    spoiled = tuple((s, v * 1.0001 if s == symbol else v) for s, v in equations.definitions)
    random = np.random.default_rng(5)
    points = Points(*(random.uniform(-1, 1, (3, size)) for size in (4, 1, 4, 0, 1)))
    right = mechanics_checks(robot, equations, points)
    assert all(check.passed for check in right), [check for check in right if not check.passed]
    checks = mechanics_checks(robot, replace(equations, definitions=spoiled), points)
    failed = {check.what for check in checks if not check.passed}
    assert {"Lagrange's equations hold", "mass matrix is that of the kinetic energy"} <= failed


@pytest.mark.slow
def test_verification_finds_a_small_wrong_force() -> None:
    robot = double_pendulum()
    equations = equations_of_motion(robot)
    random = np.random.default_rng(5)
    points = Points(*(random.uniform(0.2, 1, (3, size)) for size in (4, 1, 4, 6, 1)))
    assert all(check.passed for check in mechanics_checks(robot, equations, points))
    wrong = mechanics_checks(robot, replace(equations, force=equations.force + Matrix([1e-9, 0])), points)
    assert {check.what for check in wrong if not check.passed} == {"Lagrange's equations hold"}


@pytest.mark.slow
def test_rounding_in_a_constant_mass_matrix_passes_the_check_of_mdot() -> None:
    """One joint about an axis of length one to 16 digits: M is constant, and Mdot is only rounding."""
    robot = Robot("spun")
    q = robot.revolute("q", limit=3, rate_limit=3)
    frame: dict[str, Any] = dict(at=(-0.1, 0.4, 0.1), turned=(-1.0, 1.4, 1.8), axis=(-1.3, 1.2, -1.8))
    robot.link("wheel", q, **frame, mass=2.3, centre=(2.0, -1.2, -1.1), inertia=(2.5, 4, 2.6, 1, -2, 1))
    random = np.random.default_rng(5)
    points = Points(*(random.uniform(-1, 1, (3, size)) for size in (2, 1, 2, 0, 1)))
    checks = mechanics_checks(robot, equations_of_motion(finished(robot)), points)
    assert all(check.passed for check in checks), checks


def double_pendulum() -> Robot:
    """The shipped double pendulum as two links."""
    robot = Robot("double_pendulum")
    shoulder = robot.revolute("shoulder", continuous=True, rate_limit=10)
    elbow = robot.revolute("elbow", continuous=True, rate_limit=20)
    m1, l1, m2, l2, d1, d2 = (
        robot.parameter(name, 1, "", tolerance=0.5)
        for name in ("upper_mass", "upper_length", "lower_mass", "lower_length", "shoulder_damping", "elbow_damping")
    )
    upper = robot.link("upper", shoulder, mass=m1, centre=(0, 0, l1 / 2), inertia=m1 * l1**2 / 12)
    robot.link("lower", elbow, on=upper, at=(0, 0, l1), mass=m2, centre=(0, 0, l2 / 2), inertia=m2 * l2**2 / 12)
    robot.damp(shoulder, d1)
    robot.damp(elbow, d2)
    return finished(robot)


@pytest.mark.slow
def test_double_pendulum_of_links_is_the_shipped_one() -> None:
    random = np.random.default_rng(1)
    x, theta = random.uniform(-3, 3, (20, 4)), random.uniform(0.2, 2, (20, 6))
    shipped = load(str(SHIPPED / "double_pendulum.py"))
    for got, expected in zip(values(double_pendulum(), x, theta), values(shipped, x, theta), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_a_link_that_floats_in_a_plane_is_a_planar_body() -> None:
    """Positive angles lean towards positive x, and the height has a weight."""
    trees = []
    for as_links in (True, False):
        robot = Robot("floater")
        x, height = (robot.prismatic(name, limit=2, rate_limit=2) for name in ("x", "height"))
        angle = robot.revolute("angle", continuous=True, rate_limit=5)
        if as_links:
            robot.link("body", (x, height, angle), mass=2, centre=(0.3, 0, 0.5), inertia=(9, 0.2, 9))
        else:
            from sympy import cos, sin

            centre = (x + 0.3 * cos(angle) + 0.5 * sin(angle), height - 0.3 * sin(angle) + 0.5 * cos(angle))
            robot.body(2, 0.2, centre, angle)
        trees.append(finished(robot))
    states = np.random.default_rng(0).uniform(-2, 2, (10, 6))
    for got, expected in zip(*(values(robot, states) for robot in trees), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_motor_spring_and_link_add_their_inertias_and_forces() -> None:
    robot = Robot("driven")
    q = robot.revolute("q", limit=3, rate_limit=3)
    robot.link("rod", q, mass=1, centre=(0, 0, 0.5), inertia=0.1)
    robot.dc_motor(q, robot.input("voltage", 5, "V"), resistance=2, torque_constant=0.1, gear=10, rotor_inertia=1e-3)
    robot.spring(q, 4)
    M, force = values(finished(robot), np.array([[0.3, 0.7]]))
    assert M[0, 0, 0] == pytest.approx(0.25 + 0.1 + 100e-3)
    assert force[0, 0] == pytest.approx(9.81 * 0.5 * np.sin(0.3) - 4 * 0.3 - 10 * 0.1 / 2 * (0.1 * 10 * 0.7))


def test_names_of_intermediates_are_reproducible_and_unused() -> None:
    first, second = (equations_of_motion(double_pendulum()).definitions for _ in range(2))
    assert first == second
    robot = Robot("taken")
    q = robot.revolute("q", limit=3, rate_limit=3)
    mass = robot.parameter("rod_moment_z", 2, "kg", tolerance=0.5)
    robot.link("rod", q, mass=mass, centre=(0, 0, 0.5), inertia=0.1)
    equations = equations_of_motion(finished(robot))
    check_domain(robot, equations)
    assert len({symbol.name for symbol, _ in equations.definitions} | {"rod_moment_z"}) == 1 + len(
        equations.definitions
    )
    M, _ = values(robot, np.zeros((1, 2)))
    assert M[0, 0, 0] == pytest.approx(2 * 0.25 + 0.1)


def test_content_hash_changes_with_a_link() -> None:
    hashes = set()
    for height in (0.5, 0.6):
        robot = Robot("rod")
        q = robot.revolute("q", limit=3, rate_limit=3)
        robot.link("rod", q, mass=1, centre=(0, 0, height), inertia=0.1)
        hashes.add(content_hash(finished(robot)))
    assert len(hashes) == 2


@pytest.mark.slow
def test_seven_joint_arm_stretched_out_level() -> None:
    """The second joint carries the weight of all links beyond it, each at its distance."""
    robot = load(str(SHIPPED / "large" / "arm7.py"))
    x = np.zeros((1, 14))
    x[0, 1] = np.pi / 2
    masses = np.array([parameter.value for parameter in robot.parameters])
    assert masses.sum() == pytest.approx(29.9)
    joints = np.cumsum([0, 0.2045, 0.2155, 0.1845, 0.2155, 0.081])
    centres = joints + np.array([0.2045, 0.2155, 0.1845, 0.2155, 0.081, 0.045]) / 2
    _, force = values(robot, x)
    assert force[0, 1] == pytest.approx(9.81 * masses[1:] @ centres)


class TestMistakes:
    @pytest.fixture
    def robot(self) -> Robot:
        return Robot("wrong")

    def refused(self, robot: Robot, words: str, *arguments: Any, **named: Any) -> None:
        with pytest.raises(ModelError, match=words) as caught:
            robot.link("rod", *arguments, **named)
        assert "test_newton_euler.py:" in str(caught.value)

    def test_a_wrong_argument_of_a_link_is_refused(self, robot: Robot) -> None:
        q = robot.revolute("q", limit=3, rate_limit=3)
        s = robot.prismatic("s", limit=3, rate_limit=3)
        self.refused(robot, "'q', which is not a coordinate", "q")
        self.refused(robot, "mass of `rod` contains `q`", q, mass=q)
        self.refused(robot, "revolute and prismatic", (q, s))
        self.refused(robot, "base.*not a link", q, on="base")
        self.refused(robot, "position of `rod`", q, at=(0, 1))
        self.refused(robot, "has 4 entries", q, inertia=(1, 2, 3, 4))
        self.refused(robot, "axis of `rod` is zero", q, axis=(0, 0, 0))
        self.refused(robot, "x, y, z", q, axis="w")

    def test_a_name_or_a_coordinate_used_twice_is_refused(self, robot: Robot) -> None:
        q = robot.revolute("q", limit=3, rate_limit=3)
        robot.link("arm", q, mass=1)
        self.refused(robot, "`q` moves the link `arm`", q)
        robot.link("rod", turned=(pi / 2, 0, 0))
        self.refused(robot, "two links named `rod`")

    def test_a_parent_of_another_robot_is_refused(self, robot: Robot) -> None:
        other = Robot("other").link("base")
        self.refused(robot, "base, which is not a link", on=other)

    def test_gravity_after_a_link_is_refused(self, robot: Robot) -> None:
        robot.link("base")
        with pytest.raises(ModelError, match="gravity"):
            robot.gravity(1.62)

    def test_a_coordinate_without_inertia_is_refused(self, robot: Robot) -> None:
        q = robot.revolute("q", limit=3, rate_limit=3)
        robot.link("ghost", q)
        with pytest.raises(ModelError, match="`q`"):
            check_domain(finished(robot), equations_of_motion(robot))

    def test_a_parameter_without_effect_is_refused(self, robot: Robot) -> None:
        q = robot.revolute("q", limit=3, rate_limit=3)
        robot.link("base", mass=robot.parameter("base_mass", 5, "kg", tolerance=0.5))
        robot.link("rod", q, mass=1, inertia=1)
        with pytest.raises(ModelError, match="`base_mass`"):
            check_domain(finished(robot), equations_of_motion(robot))
