"""The physics of each actuator and loss: speeds in steady state, lost energy, stopped motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from modelgen import LogCos, ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.numeric import numpy_evaluator


def flow(robot: Robot, *u: float) -> Callable[[float, ArrayLike], np.ndarray]:
    """xdot(t, x) at nominal parameters and constant inputs, of a robot that passes the checks of its domain."""
    coordinates = [joint.symbol for joint in robot.joints]
    robot.task(
        state_cost=sum(q**2 + q.rate**2 for q in coordinates),
        action_cost=LogCos(1), start={}, horizon=1, weight_at_horizon=0.5, control_rate=100,
    )  # fmt: skip
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    theta = [parameter.value for parameter in robot.parameters if not parameter.fixed]
    arguments = [*equations.state, *equations.parameters]
    matrices = (equations.mass_matrix, equations.force, equations.input_matrix)
    parts = [numpy_evaluator(arguments, matrix) for matrix in matrices]

    def xdot(_time: float, x: ArrayLike) -> np.ndarray:
        x = np.asarray(x)
        M, force, B = (part(*np.array([*x, *theta])[:, None])[0] for part in parts)
        return np.concatenate([x[len(coordinates) :], np.linalg.solve(M, force[:, 0] + B @ np.array(u))])

    return xdot


def run(xdot: Callable[[float, ArrayLike], np.ndarray], x: Sequence[float], seconds: float) -> np.ndarray:
    """States over time, (n, steps)."""
    return solve_ivp(xdot, (0, seconds), x, rtol=1e-9, atol=1e-12, max_step=seconds / 50).y


def slider(mass: float = 2.0) -> tuple[Robot, Any, Any]:
    """A mass on a level rail, and a force on it."""
    robot = Robot("slider")
    s = robot.prismatic("s", limit=3, rate_limit=10)
    kilograms = robot.parameter("mass", mass, "kg", tolerance=0.5)
    robot.point_mass(kilograms, (s, 0))
    force = robot.input("force", 5, "N")
    return robot, s, force


def disk(inertia: float = 0.02) -> tuple[Robot, Any]:
    """A disk on a shaft, and an input."""
    robot = Robot("disk")
    q = robot.revolute("q", continuous=True, rate_limit=500)
    robot.rotor(q, robot.parameter("inertia", inertia, "kg m^2", tolerance=0.5))
    return robot, q


def test_dc_motor_settles_at_the_speed_where_its_current_carries_the_friction() -> None:
    robot, q = disk()
    volts = robot.input("volts", 12, "V")
    friction = robot.parameter("friction", 3e-3, "N m s", fixed=True)
    robot.dc_motor(q, volts, resistance=2.0, torque_constant=0.05, back_emf=0.06, gear=3, gear_efficiency=0.8)
    robot.damp(q, friction)
    final = run(flow(robot, 10.0), [0, 0], 60)[1, -1]
    gain = 0.8 * 3 * 0.05 / 2.0  # 0 = gain (volts - 0.06 * 3 * speed) - friction * speed
    assert final == pytest.approx(gain * 10 / (gain * 0.18 + 3e-3), rel=1e-6)


def test_motor_behind_a_gear_accelerates_load_and_rotor() -> None:
    robot, q = disk(0.02)
    torque = robot.input("torque", 1, "N m")
    robot.motor(q, torque, gear=10, rotor_inertia=1e-4)
    assert flow(robot, 0.5)(0, [0, 3.0])[1] == pytest.approx(10 * 0.5 / (0.02 + 100 * 1e-4), rel=1e-12)


def test_motor_loses_torque_with_speed_and_never_exceeds_its_power() -> None:
    robot, q = disk(0.02)
    torque = robot.input("torque", 1, "N m")
    robot.motor(q, torque, gear=4, corner_speed=20)
    xdot = flow(robot, 1.0)
    speeds = np.linspace(-400, 400, 81)
    torques = np.array([0.02 * xdot(0, [0, speed])[1] for speed in speeds])  # on the disk
    np.testing.assert_allclose(torques.max(), 4.0)  # at rest
    assert (np.abs(torques * speeds) < 1.0 * 20).all()
    assert torques[0] * speeds[0] == pytest.approx(-20, rel=1e-3)
    at_corner = 0.02 * xdot(0, [0, 5.0])[1]
    assert at_corner == pytest.approx(4 / np.sqrt(2), rel=1e-12)


def test_viscous_friction_brakes_exponentially() -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.damp(s, 0.5)
    speeds = run(flow(robot, 0.0), [0, 3], 4)[1]
    np.testing.assert_allclose(speeds[-1], 3 * np.exp(-0.5 / 2.0 * 4), rtol=1e-8)


@pytest.mark.slow
def test_dry_friction_stops_at_the_distance_of_constant_braking() -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.dry_friction(s, robot.parameter("friction", 1.5, "N", fixed=True), smoothing=1e-3)
    states = run(flow(robot, 0.0), [0, 2], 4)
    assert states[0, -1] == pytest.approx(2.0**2 / (2 * 1.5 / 2.0), rel=1e-3)
    assert abs(states[1, -1]) < 1e-3
    assert (np.diff(np.abs(states[1])) <= 1e-12).all()  # energy only falls


@pytest.mark.slow
def test_dry_friction_holds_against_a_smaller_force() -> None:
    robot, s, force = slider()
    robot.apply(s, force)
    robot.dry_friction(s, 1.5, smoothing=1e-3)
    assert run(flow(robot, 1.0), [0, 0], 2)[0, -1] < 2e-3 * 2  # creeps below the smoothing rate


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.slow
def test_end_stop_turns_the_motion_round_and_takes_energy(direction: int) -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.end_stops(s, 1, 2e4, width=1e-3, damping=100)
    states = run(flow(robot, 0.0), [0, 2.0 * direction], 0.8)
    depth = np.sqrt(2.0 / 2e4) * 2.0  # of a stop without loss
    assert 0.5 * depth < (states[0] * direction).max() - 1 < depth + 1e-3
    assert -2.0 < states[1, -1] * direction < -0.5


def test_end_stop_has_the_force_of_its_doc_string() -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.end_stops(s, 1, 1e3, width=0.05, damping=30)
    xdot = flow(robot, 0.0)
    for at, rate in ((0.97, 2.0), (1.0, -1.0), (1.08, 0.5), (2.9, 0.0)):
        y = (at - 1) / 0.05
        push = 1e3 * 0.05 * np.log1p(np.exp(y)) + 30 * rate / (1 + np.exp(-y))
        assert xdot(0, [at, rate])[1] == pytest.approx(-push / 2.0, rel=1e-9)


def test_end_stops_may_be_asymmetric_and_have_no_force_far_from_them() -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.end_stops(s, (-0.2, 1), 1e4, width=1e-3, damping=50)
    xdot = flow(robot, 0.0)
    assert abs(xdot(0, [0.4, 3.0])[1]) < 1e-12
    assert xdot(0, [-0.3, 0.0])[1] == pytest.approx(1e4 * 0.1 / 2.0, rel=1e-3)
    assert xdot(0, [1.1, 0.0])[1] == pytest.approx(-1e4 * 0.1 / 2.0, rel=1e-3)


@pytest.mark.slow
def test_end_stop_without_loss_gives_back_all_energy() -> None:
    robot, s, force = slider(2.0)
    robot.apply(s, force)
    robot.end_stops(s, 1, 2e4, width=1e-2)
    states = run(flow(robot, 0.0), [0, 2.0], 1.0)
    assert states[0, -1] < 0.5
    assert states[1, -1] == pytest.approx(-2.0, rel=1e-6)


def test_coupling_of_a_continuous_angle_is_refused() -> None:
    robot = Robot("belt")
    first = robot.revolute("first", continuous=True, rate_limit=50)
    second = robot.revolute("second", limit=20, rate_limit=50)
    torque = robot.input("torque", 1, "N m")
    robot.rotor(first, robot.parameter("small", 0.01, "kg m^2", fixed=True))
    robot.rotor(second, robot.parameter("large", 0.09, "kg m^2", tolerance=0.1))
    robot.apply(second, torque)
    robot.coupling(first, second, ratio=3, stiffness=robot.parameter("stiff", 50, "N m/rad", fixed=True), damping=0.5)
    with pytest.raises(ModelError, match="`first`"):  # a spring winds up
        flow(robot, 0.3)


@pytest.mark.slow
def test_coupled_joints_move_as_one_inertia() -> None:
    robot = Robot("belt")
    first = robot.revolute("first", limit=50, rate_limit=50)
    second = robot.revolute("second", limit=20, rate_limit=50)
    torque = robot.input("torque", 1, "N m")
    robot.rotor(first, robot.parameter("small", 0.01, "kg m^2", fixed=True))
    robot.rotor(second, robot.parameter("large", 0.09, "kg m^2", tolerance=0.1))
    robot.apply(second, torque)
    robot.coupling(first, second, ratio=3, stiffness=50, damping=0.5)
    states = run(flow(robot, 0.3), [0, 0, 0, 0], 5)
    assert states[2, -1] == pytest.approx(3 * states[3, -1], rel=1e-4)
    assert states[3, -1] == pytest.approx(0.3 / (0.09 + 9 * 0.01) * 5, rel=1e-3)


@pytest.mark.slow
def test_inputs_act_along_displacements_by_virtual_work() -> None:
    """Two cables over a finger with two joints: each force acts at its lever arms."""
    robot = Robot("finger")
    a = robot.revolute("a", limit=1, rate_limit=5)
    b = robot.revolute("b", limit=1, rate_limit=5)
    robot.rotor(a, 1e-3)
    robot.rotor(b, 2e-3)
    pull = [robot.input(name, 10, "N") for name in ("front", "back")]
    robot.apply(0.02 * a + 0.01 * b, pull[0])
    robot.apply(-0.02 * a, pull[1])
    accelerations = flow(robot, 3.0, 2.0)(0, np.zeros(4))[2:]
    np.testing.assert_allclose(accelerations, [(0.02 * 3 - 0.02 * 2) / 1e-3, 0.01 * 3 / 2e-3])


def test_wrong_arguments_of_forces_and_bodies_are_refused() -> None:
    robot, s, force = slider()
    loss = robot.parameter("loss", 0.1, "N s/m", bounds=(-2.9, 3.1))
    none = robot.parameter("none", 0, "Ohm", fixed=True)
    doubted = robot.parameter("doubted", 0.1, "kg", bounds=(-2.9, 3.1))
    for words, act in (
        ("resistance is 0", lambda: robot.dc_motor(s, force, resistance=0, torque_constant=1)),
        ("smoothing rate is 0", lambda: robot.dry_friction(s, 1, smoothing=0)),
        ("width is 0", lambda: robot.end_stops(s, 1, 10, width=0)),
        ("corner speed is 0", lambda: robot.motor(s, 0.1 * force, corner_speed=0)),
        (r"\(lower, upper\)", lambda: robot.end_stops(s, (1, 2, 3), 10, width=1)),
        ("no coordinate", lambda: robot.damp(3, 1)),
        ("smoothing rate contains `s`", lambda: robot.dry_friction(s, 1, smoothing=s)),
        ("damping coefficient is -0.5", lambda: robot.damp(s, -0.5)),
        ("damping coefficient .*-2.9 .*`loss`", lambda: robot.damp(s, loss)),
        ("friction is -1", lambda: robot.dry_friction(s, -1, smoothing=1)),
        ("smoothing rate is -0.01", lambda: robot.dry_friction(s, 1, smoothing=-0.01)),
        ("gear efficiency is 85", lambda: robot.motor(s, 0.1 * force, gear_efficiency=85)),
        ("rotor inertia is -1", lambda: robot.rotor(s, -1)),
        ("resistance is 0", lambda: robot.dc_motor(s, force, resistance=none, torque_constant=1)),
        ("mass is -0.5", lambda: robot.point_mass(-0.5, (s, 0))),
        ("mass .*-2.9 .*`doubted`", lambda: robot.point_mass(doubted, (s, 0))),
        ("inertia of the body is -0.08", lambda: robot.body(1, -0.08, (s, 0), s)),
        ("mass of `arm` is -1", lambda: robot.link("arm", s, axis="x", mass=-1)),
        ("inertia of `arm` is -0.1", lambda: robot.link("arm", s, axis="x", mass=1, inertia=(1, -0.1, 1))),
        (
            r"inertia of `arm` has the principal moment -1 kg m\^2",
            lambda: robot.link("arm", s, axis="x", mass=1, inertia=(1, 1, 3, 2, 0, 0)),
        ),
        ("the larger first", lambda: robot.end_stops(s, (0.5, -0.5), 10, width=0.1)),
        ("the larger first", lambda: robot.end_stops(s, -1, 10, width=0.1)),
        ("width 1e-12 .*width=0.0002", lambda: robot.end_stops(s, 1, 10, width=1e-12)),
        ("s is coupled with itself", lambda: robot.coupling(s, s, stiffness=10)),
        ("the gear is 0", lambda: robot.motor(s, 0.1 * force, gear=0)),
        ("the gear is 0", lambda: robot.dc_motor(s, force, resistance=1, torque_constant=1, gear=0)),
        ("the gear is 0", lambda: robot.rotor(s, 1, gear=0)),
        ("limit of `spin` is 1e.07.* 1e.06", lambda: robot.speed("spin", limit=1e7, unit="rad/s")),
    ):
        with pytest.raises(ModelError, match=words):
            act()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda robot, s, a, b: robot.damp(s, a - b), "damping coefficient may be -0.7 by the bounds of `a`, `b`"),
        (lambda robot, s, a, b: robot.dry_friction(s, a - b, smoothing=0.1), "friction may be -0.7"),
        (lambda robot, s, a, b: robot.point_mass(a - b, (s, 0)), "mass may be -0.7"),
        (lambda robot, s, a, _: robot.motor(s, 1.0, gear_efficiency=a), "efficiency may be 1.5 by the bounds of `a`"),
        (lambda robot, s, *_: robot.end_stops(s, 0.5, -9.0, width=0.1), "stiffness is -9"),
    ],
)
def test_coefficients_are_judged_at_the_bounds_of_their_parameters(line: Callable[..., None], words: str) -> None:
    """At the nominal values 1 and 0.8 all but the last are in order."""
    robot = Robot("r")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    a = robot.parameter("a", 1.0, "", tolerance=0.5)
    b = robot.parameter("b", 0.8, "", tolerance=0.5)
    with pytest.raises(ModelError, match=words):
        line(robot, s, a, b)
