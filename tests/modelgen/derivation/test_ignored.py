"""Coordinates that the state leaves out: reduced equations by hand, the full model, other engines, refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import cos, pi, sin

import modelgen
from modelgen import ModelError, Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.ignored import ignorable
from modelgen.derivation.mechanics import mechanics_expressions
from modelgen.derivation.numeric import compiled_evaluator, samples
from modelgen.engines.comparison import compare
from modelgen.engines.expressions import builder
from solver.observer import Observer, make_sensing, usual_counts
from solver.plants.outcome import succeeded, tolerances
from solver.problem import Problem
from tests.modelgen.support.cases import CASES

pytestmark = pytest.mark.slow


GRAVITY, MASS, LENGTH, INERTIA, WHEEL, DAMPING = 9.81, 0.3, 0.2, 0.004, 0.0005, 0.001


def stated(ignore: bool = True, **changes: Any) -> Robot:
    """A pendulum with a driven wheel at its tip, of links. changes: `spring` of the wheel, or its `rim` point."""
    robot = Robot("wheeled", "A pendulum with a wheel")
    rod = robot.revolute("rod", limit=3, rate_limit=8)
    wheel = robot.revolute("wheel", continuous=True, rate_limit=100)
    torque = robot.input("torque", 0.5, "N m")
    mass = robot.parameter("mass", MASS, "kg", tolerance=0.3)
    arm = robot.link("arm", rod, mass=mass, centre=(0, 0, LENGTH), inertia=INERTIA)
    disc = robot.link(
        "disc", wheel, on=arm, at=(0, 0, LENGTH), turned=(0.3, 0, 0), inertia=(WHEEL / 2, WHEEL, WHEEL / 2)
    )
    robot.apply(wheel, torque)
    robot.damp(wheel, DAMPING)
    if changes.get("spring"):
        robot.apply(wheel, -0.1 * sin(wheel))
    if changes.get("rim"):
        robot.point("rim", (0.05, 0, 0), on=disc)
    robot.draw(circle=((0, 0), 0.1, rod + wheel))
    if ignore:
        robot.ignore(wheel)
    robot.task(
        state_cost=(pi * sin(rod / 2)) ** 2 + 0.1 * rod.rate**2 + 1e-4 * wheel.rate**2,
        action_cost=Quadratic(1.0),
        start=dict(rod=(0.5, 0.1)),
        horizon=2,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    return robot


def test_a_pendulum_with_a_free_wheel_moves_as_its_reduced_equations() -> None:
    """With the wheel's momentum p = J (c w + W) along its axle, of the angle 0.3 rad to the rod's, c = cos(0.3)."""
    robot = modelgen.compile(stated())
    assert robot.state_names == ("rod", "rod_rate", "wheel_rate")
    random = np.random.default_rng(0)
    x, u = random.uniform(-1, 1, (50, 3)) * robot.state_limits, random.uniform(-0.5, 0.5, (50, 1))
    angle, w, W = x.T
    c, across = np.cos(0.3), WHEEL / 2 * np.sin(0.3) ** 2  # across its axle a disc has half the inertia
    push = u[:, 0] - DAMPING * W
    matrix = np.array([[MASS * LENGTH**2 + INERTIA + WHEEL * c**2 + across, WHEEL * c], [WHEEL * c, WHEEL]])
    forces = np.stack([MASS * GRAVITY * LENGTH * np.sin(angle), push])
    expected = np.vstack([w, np.linalg.solve(matrix, forces)]).T
    np.testing.assert_allclose(robot.dynamics(x, u), expected, rtol=1e-11, atol=1e-11)


def test_the_motion_is_that_of_the_robot_with_the_angle() -> None:
    robot, full = modelgen.compile(stated()), modelgen.compile(stated(ignore=False))
    random = np.random.default_rng(1)
    x, u = random.uniform(-1, 1, (50, 4)) * full.state_limits, random.uniform(-0.5, 0.5, (50, 1))
    kept = [0, 2, 3]
    np.testing.assert_allclose(robot.dynamics(x[:, kept], u), full.dynamics(x, u)[:, kept], rtol=1e-12)
    whole = stated(ignore=False)
    assert "robot.ignore(wheel)" in ignorable(whole, equations_of_motion(whole))


def test_wheels_whose_angles_follow_from_rolling_are_ignored() -> None:
    """A cart whose centre of mass is before its axle, reduced by hand; the warning names what to write."""

    def cart(ignore: bool) -> Robot:
        robot = Robot("cart", "A cart on two wheels that roll without slip")
        x, y = (robot.prismatic(name, limit=2) for name in "xy")
        yaw = robot.revolute("yaw", limit=3, rate_limit=6)
        left, right = (robot.revolute(name, continuous=True) for name in ("left", "right"))
        speed = robot.speed("speed", limit=2, unit="m/s")
        wheels = {left: (speed - 0.2 * yaw.rate) / 0.1, right: (speed + 0.2 * yaw.rate) / 0.1}
        robot.roll({x: speed * cos(yaw), y: speed * sin(yaw), **wheels})
        mass = robot.parameter("mass", 5, "kg", tolerance=0.2)
        robot.point_mass(mass, (x + 0.3 * cos(yaw), y + 0.3 * sin(yaw), 0))
        for wheel in (left, right):
            robot.kinetic_energy(0.004 * wheel.rate**2 / 2)
            robot.apply(wheel, robot.input(f"torque_{wheel}", 3, "N m"))
            robot.damp(wheel, 0.01)
            if ignore:
                robot.ignore(wheel)
        robot.task(
            state_cost=x**2 + y**2 + yaw**2 + 0.001 * left.rate**2,
            action_cost=Quadratic(1.0),
            start=dict(x=(0, 0.2)),
            horizon=4,
            weight_at_horizon=0.6,
            control_rate=100,
        )
        return robot

    robot = modelgen.compile(cart(True))
    assert robot.state_names == ("x", "y", "yaw", "yaw_rate", "speed")
    random = np.random.default_rng(0)
    x, u = random.uniform(-1, 1, (50, 5)) * robot.state_limits, random.uniform(-3, 3, (50, 2))
    yaw, turn, speed = x[:, 2:].T
    pull, twist = (u[:, 0] + u[:, 1]) / 0.1, (u[:, 1] - u[:, 0]) * 0.2 / 0.1
    along = 5 * 0.3 * turn**2 + pull - 2 * 0.01 * speed / 0.1**2
    about = -5 * 0.3 * turn * speed + twist - 2 * 0.01 * 0.2**2 * turn / 0.1**2
    faster = np.stack([about / (5 * 0.3**2 + 2 * 0.004 * 4), along / (5 + 2 * 0.4)])
    expected = np.vstack([speed * np.cos(yaw), speed * np.sin(yaw), turn, faster]).T
    np.testing.assert_allclose(robot.dynamics(x, u), expected, rtol=1e-11, atol=1e-11)
    whole = cart(False)
    assert "Write robot.ignore(left) and robot.ignore(right) before" in ignorable(whole, equations_of_motion(whole))


@pytest.mark.parametrize("engine", ["mujoco", "pinocchio"])
def test_other_engines_agree(engine: str) -> None:
    pytest.importorskip(engine)
    robot = stated()
    kernels, rebuilt = modelgen.compile(robot), builder(engine, robot)
    checks = compare(robot, equations_of_motion(robot), kernels, rebuilt(kernels.nominal_parameters), rebuilt)
    assert [check.what for check in checks if not check.passed] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spring": True}, ["leaves `wheel` out of the state", "the force along `wheel_rate` depends on it"]),
        ({"rim": True}, ["the point `rim` moves with `wheel`"]),
    ],
)
def test_what_depends_on_an_ignored_coordinate_is_refused(changes: dict[str, Any], words: list[str]) -> None:
    robot = stated(**changes)
    with pytest.raises(ModelError) as caught:
        mechanics_expressions(robot, equations_of_motion(robot))
    for word in ["test_ignored.py:", *words]:
        assert word in str(caught.value)


def test_only_a_coordinate_of_the_state_is_ignored() -> None:
    robot = Robot("alone")
    angle = robot.revolute("angle", limit=1, rate_limit=1)
    for wrong in ("angle", cos(angle), angle.rate):
        with pytest.raises(ModelError, match=rf"robot\.ignore .*{re.escape(str(wrong))}"):
            robot.ignore(wrong)
    with pytest.raises(ModelError, match="`angle`"):
        robot.ignore(angle)


def test_the_observer_and_the_rule_of_success_know_the_rate_alone() -> None:
    problem = Problem(modelgen.compile(stated(), dtype="float32"))
    position, rate = tolerances(problem)
    assert (len(position), len(rate)) == (1, 2)
    rest = problem.target.expand(30, 4, 3).clone()
    assert succeeded(problem, rest).all()
    rest[..., 2] = 0.5 * problem.state_limits[2]  # a wheel that still turns
    assert not succeeded(problem, rest).any()
    observer = Observer(problem, make_sensing(problem, usual_counts(problem)))
    x = torch.tensor([[0.1, 0.5, 20.0]])
    for _ in range(100):
        estimate = observer.estimate(x[:, :1])
        u = torch.full((1, 1), 0.05)
        observer.sent(u)
        x = problem.confine(x + problem.control_step * torch.as_tensor(problem.robot.dynamics(x, u)))
    assert estimate.shape == (1, 3)


def tree(seed: int, links: int, spoiled: str) -> Robot:
    """A random chain with a wheel at its end, whose angle matters a little where it is spoiled."""
    random = np.random.default_rng(seed)
    robot, below = Robot("chain"), None
    torque = robot.input("torque", 1, "N m")
    joints = []
    for i in range(links):
        declare: Any = robot.prismatic if random.random() < 0.3 else robot.revolute
        joints.append(declare(f"q{i}", limit=1, rate_limit=2))
        place: dict[str, Any] = dict(at=tuple(random.uniform(-0.5, 0.5, 3)), turned=tuple(random.uniform(-3, 3, 3)))
        body: dict[str, Any] = dict(
            mass=random.uniform(0.2, 2), centre=tuple(random.uniform(-0.3, 0.3, 3)), inertia=0.02
        )
        below = robot.link(f"link{i}", joints[-1], on=below, axis="xyz"[random.integers(3)], **place, **body)
    wheel = robot.revolute("wheel", continuous=True, rate_limit=20)
    centre = (1e-3, 0.1, 0) if spoiled == "unbalance" else (0, 0.1, 0)
    place = dict(at=tuple(random.uniform(-0.5, 0.5, 3)), turned=tuple(random.uniform(-3, 3, 3)))
    robot.link("disc", wheel, on=below, mass=0.3, centre=centre, inertia=(0.002, 0.003, 0.002), **place)
    robot.apply(wheel, torque)
    robot.damp(wheel, 0.01)
    if spoiled == "cogging":
        robot.apply(joints[0], 1e-4 * sin(7 * wheel))
    cost = joints[0] ** 2 + 1e-3 * wheel.rate**2 + (1e-5 * sin(wheel / 2) ** 2 if spoiled == "cost" else 0)
    robot.ignore(wheel)
    times: dict[str, Any] = dict(horizon=2, weight_at_horizon=0.5, control_rate=50)
    robot.task(state_cost=cost, action_cost=Quadratic(1.0), start={}, **times)
    return robot


@settings(max_examples=max(CASES // 10, 2), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    links=st.integers(1, 3),
    spoiled=st.sampled_from(["", "", "unbalance", "cogging", "cost"]),
)
def test_fuzz_a_wheel_is_ignored_where_nothing_depends_on_its_angle(seed: int, links: int, spoiled: str) -> None:
    """Accelerations are MuJoCo's at another angle of the wheel; where its angle matters, it is refused."""
    robot = tree(seed, links, spoiled)
    if spoiled:
        with pytest.raises(ModelError, match="`wheel`"):
            equations_of_motion(robot)
        return
    equations = equations_of_motion(robot)
    engine: Any = builder("mujoco", robot)(np.zeros(0))
    engine.mechanism._data.qpos[-1] = 1.7  # the wheel's angle, which the state leaves out
    x, _ = samples(robot, 8, seed % 1000)
    u = np.random.default_rng(seed).uniform(-1, 1, (8, 1))
    parts = equations.mass_matrix.row_join(equations.force).row_join(equations.input_matrix)
    values = compiled_evaluator(equations.state, parts, equations.definitions)(x)
    size = len(equations.velocities)
    right = values[:, :, size] + values[:, :, size + 1] * u
    expected = engine.acceleration(x, u)
    scale = np.abs(expected).max() * np.linalg.cond(values[:, :, :size]).max()
    found = np.linalg.solve(values[:, :, :size], right[..., None])[..., 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)


def test_wheels_on_oblique_axes_of_a_cube_on_its_corner_are_ignored() -> None:
    """A wheel is symmetric about its axis up to rounding of the numbers: entries that cancel do not count."""
    robot = Robot("cube", "A cube on its corner with three wheels")
    corner = robot.ball("corner", rate_limit=5, limit=0.5)
    cube = robot.link("cube", corner, mass=1.2, centre=(0, 0, 0.13), inertia=2e-3)
    for k, angle in enumerate((0.0, 2 * np.pi / 3, -2 * np.pi / 3)):
        axis = (np.sqrt(2 / 3) * np.cos(angle), np.sqrt(2 / 3) * np.sin(angle), np.sqrt(1 / 3))
        wheel = robot.revolute(f"wheel{k}", continuous=True, rate_limit=400)
        robot.link(f"disc{k}", wheel, axis=axis, on=cube, at=tuple(0.1 * c for c in axis), mass=0.15, inertia=3e-4)
        robot.apply(wheel, robot.input(f"torque{k}", 0.3, "N m"))
        robot.ignore(wheel)
    robot.task(
        state_cost=corner.away().dot(corner.away()),
        action_cost=Quadratic(1.0),
        start=dict(corner=((0, 0, 0), 0.05)),
        horizon=3,
        weight_at_horizon=0.65,
        control_rate=100,
    )
    equations = equations_of_motion(robot)
    assert len(equations.state) == 4 + 3 + 3
    M = compiled_evaluator(list(equations.state), equations.mass_matrix, equations.definitions)
    # Of the whole body about the corner, and of a wheel about its own axis.
    at = np.array([[1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    whole = 2e-3 + 1.2 * 0.13**2 + 3 * (3e-4 + 0.15 * 0.1**2) - 0.15 * 0.1**2
    assert M(at)[0].reshape(6, 6)[0, 0] == pytest.approx(whole, rel=1e-9)
    assert M(at)[0].reshape(6, 6)[3, 3] == pytest.approx(3e-4, rel=1e-9)
