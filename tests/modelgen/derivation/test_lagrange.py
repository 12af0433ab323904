"""Lagrange's equations against equations by hand, and the errors of energies and forces that have none."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Matrix, Symbol, cos, diag, simplify, sin

from modelgen import LogCos, ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.equations import EquationsOfMotion


def derived(robot: Robot, cost: Any) -> EquationsOfMotion:
    robot.task(
        state_cost=cost,
        action_cost=LogCos(1),
        start={},
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return equations_of_motion(robot)


def block() -> tuple[Robot, Any, Any]:
    """A sliding block of unit mass with a force."""
    robot = Robot("block")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    robot.kinetic_energy(s.rate**2 / 2)
    return robot, s, robot.input("force", 1, "N")


def test_forces_of_a_spring_and_a_damper() -> None:
    robot, s, force = block()
    stiffness = robot.parameter("stiffness", 2, "N/m", tolerance=0.5)
    damping = robot.parameter("damping", 1, "N s/m", tolerance=0.5)
    robot.spring(s, stiffness, rest=0.1)
    robot.damp(s, damping)
    robot.apply(s, force)
    equations = derived(robot, s**2)
    assert simplify(equations.force[0] - (-stiffness * (s - 0.1) - damping * s.rate)) == 0
    assert equations.input_matrix == Matrix([1])
    assert equations.mass_matrix == Matrix([1])


def test_force_along_a_displacement_does_its_work_on_every_coordinate() -> None:
    robot = Robot("two")
    a, b = (robot.prismatic(name, limit=1, rate_limit=1) for name in "ab")
    robot.kinetic_energy(a.rate**2 + b.rate**2)
    force = robot.input("force", 1, "N")
    robot.apply(a - 2 * b, force)
    robot.damp(a - b, 3)
    equations = derived(robot, a**2 + b**2)
    assert equations.input_matrix == Matrix([1, -2])
    relative = -3 * (a.rate - b.rate)
    assert (equations.force - Matrix([relative, -relative])).expand() == Matrix([0, 0])


def test_equations_of_a_dc_motor() -> None:
    robot, s, _ = block()
    R, k, e, g, eta, eta_g, J = (
        robot.parameter(name, 0.5, "1", tolerance=0.5) for name in ("R", "k", "e", "g", "eta", "eta_g", "J")
    )
    voltage = robot.input("voltage", 12, "V")
    robot.dc_motor(
        s,
        voltage,
        resistance=R,
        torque_constant=k,
        back_emf=e,
        gear=g,
        efficiency=eta,
        gear_efficiency=eta_g,
        rotor_inertia=J,
    )
    robot.apply(s, Symbol("force", real=True))
    equations = derived(robot, s**2)
    assert simplify(equations.mass_matrix[0] - (1 + eta_g * g**2 * J)) == 0
    assert simplify(equations.force[0] + eta_g * g * eta * k / R * e * g * s.rate) == 0
    assert simplify(equations.input_matrix[1] - eta_g * g * eta * k / R) == 0


def test_fixed_parameters_become_numbers() -> None:
    robot, s, force = block()
    gain = robot.parameter("gain", 2.5, "1", fixed=True)
    robot.apply(s, gain * force)
    equations = derived(robot, gain * s**2)
    assert equations.parameters == ()
    assert equations.input_matrix[0] == 2.5
    assert equations.state_cost == 2.5 * s**2


def test_gravity_acts_along_the_last_component() -> None:
    robot = Robot("spatial")
    q = robot.revolute("q", continuous=True, rate_limit=1)
    mass = robot.parameter("mass", 1, "kg", tolerance=0.5)
    robot.gravity(1.62)
    robot.point_mass(mass, (0, sin(q), cos(q)))
    robot.apply(q, robot.input("torque", 1, "N m"))
    equations = derived(robot, sin(q / 2) ** 2)
    assert equations.mass_matrix == Matrix([mass])
    assert simplify(equations.force[0] - 1.62 * mass * sin(q)) == 0


def test_a_body_and_its_energies_have_the_same_equations() -> None:
    def pendulum(as_energies: bool) -> EquationsOfMotion:
        robot = Robot("pendulum")
        q = robot.revolute("q", continuous=True, rate_limit=1)
        m = robot.parameter("m", 1, "kg", tolerance=0.5)
        l = robot.parameter("l", 1, "m", tolerance=0.5)
        if as_energies:
            robot.kinetic_energy(m * l**2 / 3 * q.rate**2 / 2)
            robot.potential_energy(m * 9.81 * l / 2 * cos(q))
        else:
            robot.body(m, m * l**2 / 12, (l / 2 * sin(q), l / 2 * cos(q)), q)
        robot.apply(q, robot.input("torque", 1, "N m"))
        return derived(robot, sin(q / 2) ** 2)

    bodies, energies = pendulum(False), pendulum(True)
    assert bodies.mass_matrix == energies.mass_matrix
    assert simplify(bodies.force - energies.force) == Matrix([0])


def test_kinetic_energy_with_parts_linear_in_the_rates_and_free_of_them() -> None:
    """A bead on a hoop that turns at a given speed, and a charge in a magnetic field."""
    robot = Robot("bead")
    q = robot.revolute("q", continuous=True, rate_limit=1)
    x, y = (robot.prismatic(name, limit=1, rate_limit=1) for name in "xy")
    speed = robot.parameter("speed", 2, "", tolerance=0.5)
    field = robot.parameter("field", 2, "N s/m", tolerance=0.5)
    robot.kinetic_energy((q.rate**2 + speed**2 * sin(q) ** 2) / 2)
    robot.kinetic_energy((x.rate**2 + y.rate**2) / 2 + field * (x * y.rate - y * x.rate) / 2)
    robot.apply(q, robot.input("torque", 1, "N m"))
    equations = derived(robot, sin(q / 2) ** 2 + x**2 + y**2)
    assert equations.mass_matrix == diag(1, 1, 1)
    expected = Matrix([speed**2 * sin(q) * cos(q), field * y.rate, -field * x.rate])
    assert simplify(equations.force - expected) == Matrix([0, 0, 0])


def test_a_sine_of_an_input_is_refused() -> None:
    robot, s, force = block()
    robot.apply(s, sin(1.0 * force))
    with pytest.raises(ModelError, match=r"test_lagrange\.py:\d+: .*`force`"):
        derived(robot, s**2)


def test_a_product_of_inputs_is_refused() -> None:
    robot, s, force = block()
    robot.apply(s, force * robot.input("second", 1, "1"))
    with pytest.raises(ModelError, match="`force`"):
        derived(robot, s**2)


def test_a_force_whose_nonlinear_terms_cancel_is_accepted() -> None:
    robot, s, force = block()
    robot.apply(s, 1.0 * (force + s) ** 2 - 1.0 * force**2 - s**2 - 2.0 * force * s + 3 * force)
    assert derived(robot, s**2).input_matrix == Matrix([3])


def test_a_kinetic_energy_that_is_not_quadratic_is_refused() -> None:
    robot, s, _ = block()
    robot.kinetic_energy(s.rate**4)
    with pytest.raises(ModelError, match=r"test_lagrange\.py:\d+: .*`s_rate`"):
        derived(robot, s**2)


def test_a_robot_without_a_task_has_no_equations() -> None:
    robot, *_ = block()
    with pytest.raises(ModelError, match=r"`block`.*robot\.task"):
        equations_of_motion(robot)


def test_metadata_orders_positions_before_rates() -> None:
    robot = Robot("two", "words")
    robot.revolute("a", continuous=True, rate_limit=3, meaning="first")
    robot.prismatic("b", limit=1, rate_limit=2)
    robot.input("u", 1, "N")
    robot.task(state_cost=0, action_cost=LogCos(1), start={}, horizon=1, weight_at_horizon=0.5, control_rate=100)
    states = metadata(robot).states
    assert [state.name for state in states] == ["a", "b", "a_rate", "b_rate"]
    assert [state.unit for state in states] == ["rad", "m", "rad/s", "m/s"]
    assert [state.kind for state in states] == ["position"] * 2 + ["velocity"] * 2
    assert states[0].meaning == "first"


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.slow
def test_the_mass_matrix_of_three_rods_is_short(relative: bool) -> None:
    robot = Robot("chain")
    joints = [robot.revolute(f"q{i}", continuous=True, rate_limit=9) for i in range(3)]
    x = y = angle = 0
    for i, joint in enumerate(joints):
        m = robot.parameter(f"m{i}", 1, "kg", tolerance=0.5)
        l = robot.parameter(f"l{i}", 1, "m", tolerance=0.5)
        angle = angle + joint if relative else joint
        robot.body(m, m * l**2 / 12, (x + l / 2 * sin(angle), y + l / 2 * cos(angle)), angle)
        x, y = x + l * sin(angle), y + l * cos(angle)
    robot.apply(joints[0], robot.input("torque", 1, "N m"))
    equations = derived(robot, sum(sin(joint / 2) ** 2 for joint in joints))
    # no product of sines and cosines of a sum of angles is left expanded
    assert sum(entry.count_ops() for entry in equations.mass_matrix) < (200 if relative else 80)
