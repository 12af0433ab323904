"""States of first order and lagged inputs: hand-written equations by SciPy, statics by hand, MuJoCo's actuators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sympy import cos, pi, sin

import modelgen
from modelgen import Quadratic, Robot
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.loader import CompiledRobot
from modelgen.report.linearization import linearize
from modelgen.verification import quick
from modelgen.verification.checks import sample_points
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.declared import rejects

TASK: dict[str, Any] = {
    "action_cost": Quadratic(0.01), "start": {}, "horizon": 3, "weight_at_horizon": 0.5, "control_rate": 100
}  # fmt: skip
MASS, LENGTH, INDUCTANCE, RESISTANCE, K, DRAG = 0.5, 0.3, 0.02, 1.0, 0.15, 0.005


def motor() -> Robot:
    """A pendulum on a DC motor with inductance."""
    robot = Robot("motor")
    angle = robot.revolute("angle", continuous=True, rate_limit=12)
    mass = robot.parameter("mass", MASS, "kg", tolerance=0.3)
    inductance = robot.parameter("inductance", INDUCTANCE, "H", tolerance=0.3)
    resistance = robot.parameter("resistance", RESISTANCE, "Ohm", fixed=True)
    k = robot.parameter("k", K, "N m/A", fixed=True)
    voltage = robot.input("voltage", 10, "V")
    current = robot.state("current", limit=10, unit="A")
    robot.flow(current, (voltage - resistance * current - k * angle.rate) / inductance)
    robot.point_mass(mass, (LENGTH * sin(angle), LENGTH * cos(angle)))
    robot.damp(angle, DRAG)
    robot.apply(angle, k * current)
    robot.task(state_cost=sin(angle / 2) ** 2 + 0.01 * angle.rate**2, **TASK)
    return robot


def held(limit: float = 2.0, **task: Any) -> Robot:
    """A rod at half a radian, held by a motor with a lag."""
    robot = Robot("held")
    angle = robot.revolute("angle", continuous=True, rate_limit=12)
    mass = robot.parameter("mass", MASS, "kg", tolerance=0.3)
    torque = robot.input("torque", limit, "N m")
    robot.lag(torque, seconds=robot.parameter("tau", 0.02, "s", bounds=(0.01, 0.03)))
    robot.point_mass(mass, (LENGTH * sin(angle), LENGTH * cos(angle)))
    robot.motor(angle, torque, gear=2)
    robot.task(state_cost=sin((angle - 0.5) / 2) ** 2 + 0.01 * angle.rate**2, target={"angle": 0.5}, **{**TASK, **task})
    return robot


def built(robot: Robot, folder: Path, **options: Any) -> CompiledRobot:
    """The robot in float64, from an artifact in the folder."""
    build_artifact(robot, folder)
    return modelgen.load(robot.name, directory=folder, **options)


@pytest.mark.slow
def test_a_motor_with_inductance_moves_as_its_equations_say(tmp_path: Path) -> None:
    kernels = built(motor(), tmp_path)
    assert [state.kind for state in kernels.metadata.states] == ["position", "velocity", "internal"]
    assert kernels.metadata.inputs[0].coordinate == "angle"

    def volts(time: float) -> float:
        return 6 * np.sin(5 * time)

    def by_hand(time: float, x: Any) -> list[float]:
        angle, speed, current = x
        torque = K * current - DRAG * speed + MASS * 9.81 * LENGTH * np.sin(angle)
        rate = (volts(time) - RESISTANCE * current - K * speed) / INDUCTANCE
        return [speed, torque / (MASS * LENGTH**2), rate]

    def compiled(time: float, x: Any) -> Any:
        return kernels.dynamics(np.array([x]), np.array([[volts(time)]]))[0]

    ends = [solve_ivp(f, (0, 2), [0.3, 0, 1], rtol=1e-10, atol=1e-12).y[:, -1] for f in (by_hand, compiled)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)


@pytest.mark.parametrize("make", [motor, held])
@pytest.mark.slow
def test_the_model_is_verified(make: Any, tmp_path: Path) -> None:
    robot = make()
    build_artifact(robot, tmp_path)
    equations = equations_of_motion(robot)
    checks = [
        *mechanics_checks(robot, equations, sample_points(robot, 16)),
        *quick(robot, equations, modelgen.load, tmp_path),
    ]
    assert all(check.passed for check in checks), [check for check in checks if not check.passed]
    assert all(check.error is not None for check in checks)


@pytest.mark.slow
def test_a_lag_is_held_with_the_torque_of_statics(tmp_path: Path) -> None:
    kernels = built(held(), tmp_path)
    torque = -MASS * 9.81 * LENGTH * np.sin(0.5) / 2  # behind a gear of 2
    task = kernels.metadata.task
    np.testing.assert_allclose(task.target, [0.5, 0, torque], rtol=1e-9)
    np.testing.assert_allclose(task.start_mean, task.target, rtol=1e-12)
    assert kernels.metadata.inputs[0].trim == pytest.approx(torque, rel=1e-9)
    rest = linearize(kernels, {"angle": 1.0})
    expected = -MASS * 9.81 * LENGTH * np.sin(1.0) / 2
    np.testing.assert_allclose([rest.state[2], rest.input[0]], [expected] * 2, rtol=1e-8)
    assert rest.controllable == 3
    np.testing.assert_allclose(rest.B[:, 0], [0, 0, 1 / 0.02], rtol=1e-12)


def test_a_lag_is_the_filter_of_an_actuator_of_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    kernels = built(held(), tmp_path)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option gravity="0 0 -9.81"/><compiler angle="radian"/><worldbody><body>
        <joint name="angle" axis="0 1 0"/><inertial pos="0 0 {LENGTH}" mass="{MASS}" diaginertia="1e-14 1e-14 1e-14"/>
        </body></worldbody><actuator>
        <general joint="angle" gear="2" dyntype="filter" dynprm="0.02" gainprm="1"/></actuator></mujoco>"""
    )
    data = mujoco.MjData(model)
    random = np.random.default_rng(0)
    for x, u in zip(random.uniform(-1, 1, (10, 3)) * [3, 10, 2], random.uniform(-2, 2, (10, 1)), strict=True):
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = x[0], x[1], x[2], u
        mujoco.mj_forward(model, data)
        theirs = [x[1], data.qacc[0], data.act_dot[0]]
        np.testing.assert_allclose(kernels.dynamics(x[None], u[None])[0], theirs, rtol=1e-9)


def test_a_lagged_rotor_pushes_a_link(tmp_path: Path) -> None:
    """A rotor that only pushes and spins up late, on a link that slides upward: m vdot = z - m g."""
    robot = Robot("riser")
    height = robot.prismatic("height", limit=1, rate_limit=2)
    body = robot.link("body", height, axis="z", mass=0.5)
    robot.push(body, (0, 0, robot.lag(robot.input("thrust", (0, 12), "N"), seconds=0.05)))
    task = dict(state_cost=height**2, action_cost=Quadratic(0.1), start={}, horizon=3, weight_at_horizon=0.6)
    robot.task(**task, control_rate=100)
    kernels = built(robot, tmp_path)
    np.testing.assert_allclose(kernels.metadata.task.target, [0, 0, 0.5 * 9.81], rtol=1e-12)
    slopes = kernels.dynamics(np.array([[0.1, 0.2, 7.0]]), np.array([[9.0]]))[0]
    np.testing.assert_allclose(slopes, [0.2, 7.0 / 0.5 - 9.81, (9.0 - 7.0) / 0.05], rtol=1e-12)


def test_the_time_constant_is_a_parameter_with_derivatives(tmp_path: Path) -> None:
    kernels = built(held(), tmp_path)
    x, u, step = np.array([[0.2, 1.0, 0.7]]), np.array([[-0.4]]), 1e-30
    *_, da, dB = kernels.jacobians(x)
    tau = kernels.parameter_names.index("tau")
    slope = (da + np.einsum("nimp,nm->nip", dB, u))[0, 2, tau]
    assert slope == pytest.approx(((u[0, 0] - x[0, 2]) / (0.02 + 1j * step)).imag / step, rel=1e-12)


def test_the_hash_follows_a_flow() -> None:
    robot = motor()
    before = content_hash(robot)
    flow = robot.flows[0]
    robot.flows[0] = replace(flow, rate=2 * flow.rate)
    assert content_hash(robot) != before


class TestRefusals:
    def robot(self) -> tuple[Robot, Any, Any, Any]:
        robot = Robot("rod")
        angle = robot.revolute("angle", limit=1, rate_limit=2)
        torque = robot.input("torque", 1, "N m")
        return robot, angle, torque, robot.parameter("tau", 0.02, "s", tolerance=0.5)

    def test_flows(self) -> None:
        robot, angle, torque, tau = self.robot()
        z = robot.state("z", limit=1, unit="N m")
        rejects("flow of `z`", "torque", action=lambda: robot.flow(z, torque))
        rejects("neither a state of first order", "`z`", action=lambda: robot.flow(torque, torque / tau))
        robot.flow(z, (torque - z) / tau)
        rejects("flow of `z` is set twice", action=lambda: robot.flow(z, (torque - z) / tau))
        rejects("the name `z` is used twice", action=lambda: robot.state("z", limit=1, unit="A"))
        rejects("limit of `y`", action=lambda: robot.state("y", limit=-1, unit="A"))
        rejects("kinetic energy contains `z`", action=lambda: robot.kinetic_energy(z * angle.rate**2))

    @pytest.mark.parametrize(
        ("rate", "used", "words"),
        [
            (None, True, ["the state `z` has no flow", "robot.flow(z, rate)"]),
            (lambda z, u, tau: (u**2 - z) / tau, True, ["not affine in the input `torque`"]),
            (lambda z, u, tau: (u - z) / tau, False, ["the state `z` acts on nothing"]),
        ],
    )
    def test_at_the_build(self, rate: Any, used: bool, words: list[str], tmp_path: Path) -> None:
        robot, angle, torque, tau = self.robot()
        z = robot.state("z", limit=1, unit="")
        if rate:
            robot.flow(z, rate(z, torque, tau))
        robot.point_mass(1, (0.1 * sin(angle), 0.1 * cos(angle)))
        robot.apply(angle, torque + (z if used else 0))
        robot.task(state_cost=sin(angle / 2) ** 2 + (pi * angle.rate) ** 2, **TASK)
        with pytest.raises(modelgen.ModelError) as caught:
            build_artifact(robot, tmp_path)
        assert all(word in str(caught.value) for word in words), caught.value

    def test_lags(self) -> None:
        robot, angle, torque, tau = self.robot()
        rejects("not an input", action=lambda: robot.lag(angle, seconds=0.1))
        rejects("time constant of the lag is 0", action=lambda: robot.lag(torque, seconds=0))
        rejects("time constant of the lag", action=lambda: robot.lag(torque, seconds=angle))
        robot.apply(angle, torque)
        rejects("acts already", "Move robot.lag", action=lambda: robot.lag(torque, seconds=tau))
        other, *_, command, tau = self.robot()
        other.lag(command, seconds=tau)
        rejects("has a lag already", action=lambda: other.lag(command, seconds=tau))
