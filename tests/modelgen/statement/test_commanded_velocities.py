"""Coordinates whose velocities the inputs command: arcs and drifts by hand, a dense linear system, wrong files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from sympy import Expr, cos, sin

import modelgen
from modelgen import ModelError, Quadratic, Robot
from modelgen.backends.casadi import compiled
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash, metadata
from modelgen.derivation.lowering import mechanism
from modelgen.errors import ReliabilityWarning
from modelgen.program.differentiate import program
from modelgen.report.contents import contents, latex
from modelgen.verification import quick, verify
from tests.modelgen.support.cases import fuzzed
from tests.modelgen.support.declared import rejects

TASK: dict[str, Any] = {
    "action_cost": Quadratic(0.1), "start": {}, "horizon": 4, "weight_at_horizon": 0.5, "control_rate": 20
}  # fmt: skip


def unicycle(late: bool = False, slip: float = 0.9) -> Robot:
    """Two driven wheels without slip but for a share of the way. late: the speed follows its command by a lag."""
    robot = Robot("unicycle")
    x, y = robot.prismatic("x", limit=3), robot.prismatic("y", limit=3)
    yaw = robot.revolute("yaw", continuous=True)
    speed, turn = robot.input("speed", 1, "m/s"), robot.input("turn", 2, "rad/s")
    kept = robot.parameter("kept", slip, "1", tolerance=0.1)
    acting = robot.lag(speed, seconds=0.2) if late else speed
    robot.flow(x, kept * acting * cos(yaw))
    robot.flow(y, kept * acting * sin(yaw))
    robot.flow(yaw, turn)
    robot.point("nose", (x + 0.2 * cos(yaw), y + 0.2 * sin(yaw), 0))
    robot.task(state_cost=x**2 + y**2 + sin(yaw / 2) ** 2, **TASK)
    return robot


def boat(current: float = 0.3, strongest: float = 1.0) -> Robot:
    """A boat in a current."""
    robot = Robot("boat")
    along, across = robot.prismatic("along", limit=3), robot.prismatic("across", limit=3)
    ahead, aside = robot.input("ahead", strongest, "m/s"), robot.input("aside", 1, "m/s")
    robot.flow(along, ahead + robot.parameter("current", current, "m/s", tolerance=0.5))
    robot.flow(across, aside)
    robot.task(state_cost=along**2 + across**2, **TASK)
    return robot


@pytest.mark.slow
def test_constant_inputs_drive_an_arc(tmp_path: Path) -> None:
    build_artifact(unicycle(), tmp_path)
    kernels = modelgen.load("unicycle", directory=tmp_path)
    described = kernels.metadata
    assert [state.kind for state in described.states] == ["position"] * 3
    assert (described.nv, described.kinematic, described.held) == (0, True, [0, 1, 2])

    def moved(_: float, x: Any) -> Any:
        return kernels.dynamics(np.array([x]), np.array([[0.8, 0.5]]))[0]

    end = solve_ivp(moved, (0, 3), [1.0, -0.5, 0.2], rtol=1e-10, atol=1e-12).y[:, -1]
    radius = 0.9 * 0.8 / 0.5
    arc = [1.0 + radius * (np.sin(1.7) - np.sin(0.2)), -0.5 - radius * (np.cos(1.7) - np.cos(0.2)), 1.7]
    np.testing.assert_allclose(end, arc, rtol=1e-8)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.slow
def test_the_model_is_verified(late: bool, tmp_path: Path) -> None:
    robot = unicycle(late)
    build_artifact(robot, tmp_path)
    checks = quick(robot, equations_of_motion(robot), modelgen.load, tmp_path)
    assert all(check.passed and check.error is not None for check in checks)
    assert any("dB_dx" in check.what for check in checks)


@pytest.mark.slow
def test_a_kinematic_robot_has_points_and_no_masses(tmp_path: Path) -> None:
    robot = unicycle()
    build_artifact(robot, tmp_path)
    report = build_artifact(robot, tmp_path, "mechanics")
    assert set(report.operations) == {"forward_kinematics"}
    assert "no masses" in report.left_out["bias"]
    with pytest.raises(ModelError, match=r"no `mass_matrix`.* no masses"):
        build_artifact(robot, tmp_path, "mass_matrix")
    positions, slopes = modelgen.load("unicycle", directory=tmp_path).forward_kinematics(np.array([[1.0, 2.0, 0.3]]))
    np.testing.assert_allclose(positions[0, 0], [1 + 0.2 * np.cos(0.3), 2 + 0.2 * np.sin(0.3), 0])
    np.testing.assert_allclose(slopes[0, 0, :2], [[1, 0, -0.2 * np.sin(0.3)], [0, 1, 0.2 * np.cos(0.3)]])
    checks = verify(robot, equations_of_motion(robot), modelgen.load, tmp_path, 0.1)
    assert all(check.passed for check in checks)
    assert any("positions" in check.what for check in checks)
    assert not any("mass" in check.what or "Lagrange" in check.what for check in checks)


@fuzzed
@given(
    seed=st.integers(0, 2**32 - 1), nq=st.integers(1, 4), nz=st.integers(0, 2), m=st.integers(1, 3), late=st.booleans()
)
@pytest.mark.slow
def test_fuzz_linear_flows(seed: int, nq: int, nz: int, m: int, late: bool) -> None:
    random = np.random.default_rng(seed)
    robot = Robot("fuzzed")
    q = [robot.prismatic(f"q{i}", limit=1) for i in range(nq)]
    u = [robot.input(f"u{i}", 1, "") for i in range(m)]
    z = [robot.state(f"z{i}", limit=1, unit="") for i in range(max(nz, nq + late == 1))]
    slow = [robot.lag(u[0], seconds=0.05)] if late else []
    states = [*q, *z, *slow]
    A, B = random.normal(size=(len(q) + len(z), len(states))), random.normal(size=(len(q) + len(z), m))
    for row, state in enumerate([*q, *z]):
        terms = [*zip(A[row], states, strict=True), *zip(B[row], u, strict=True)]
        robot.flow(state, sum(float(number) * symbol for number, symbol in terms))
    robot.task(state_cost=sum(entry**2 for entry in q), **TASK)
    made = program(mechanism(equations_of_motion(robot)), ("dynamics",))
    x, inputs = random.uniform(-1, 1, len(states)), random.uniform(-1, 1, m)
    got = np.asarray(compiled(made.graph, made.function("dynamics"), "fuzzed")(x, inputs, [])).ravel()
    acting = np.concatenate([x[-1:], inputs[1:]]) if late else inputs
    expected = [*(A @ x + B @ acting), *((inputs[:1] - x[-1:]) / 0.05 if late else [])]
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_the_trim_stems_the_current(tmp_path: Path) -> None:
    equations = equations_of_motion(boat())
    np.testing.assert_allclose(equations.trim, [-0.3, 0.0], atol=1e-12)
    assert not any(equations.unheld)
    with pytest.warns(ReliabilityWarning, match="changes there"):
        report = build_artifact(boat(strongest=0.2), tmp_path)
    assert any("`along` changes there by at least 0.1 m per second" in warning for warning in report.warnings)


def test_a_target_of_a_state_of_first_order_follows_the_trim() -> None:
    robot = Robot("towed")
    along = robot.prismatic("along", limit=3)
    pull = robot.lag(robot.input("pull", 1, "m/s"), seconds=0.2)
    robot.flow(along, pull + robot.parameter("current", 0.3, "m/s", tolerance=0.5))
    robot.task(state_cost=along**2, **TASK)
    task = metadata(robot, equations_of_motion(robot)).task
    np.testing.assert_allclose(task.target, [0.0, -0.3], atol=1e-12)
    np.testing.assert_allclose([entry.target for entry in task.followed], [[0.0, -1.0]], atol=1e-9)


def test_another_flow_is_another_model() -> None:
    hashes = {content_hash(robot) for robot in (unicycle(), unicycle(late=True), unicycle(slip=0.8))}
    assert len(hashes) == 3
    changed = unicycle()
    changed.flows[0] = type(changed.flows[0])(changed.flows[0].state, 2 * changed.flows[0].rate)
    assert content_hash(changed) not in hashes


def test_the_report_has_no_masses() -> None:
    robot = unicycle(late=True)
    equations = equations_of_motion(robot)
    text = latex(contents(metadata(robot, equations), equations))
    assert r"\dot v" not in text
    assert r"\dot{s}_{1} &= " in text
    assert r"\dot{z}_{1} &= " in text


def free() -> tuple[Robot, Any, Any, Any]:
    robot = Robot("free")
    return robot, robot.prismatic("x", limit=1), robot.revolute("yaw", limit=1), robot.input("speed", 1, "m/s")


def test_wrong_flows_are_refused() -> None:
    robot, x, yaw, speed = free()
    rejects("flow of `yaw`", "`speed` in m/s", action=lambda: robot.flow(yaw, speed))
    rejects("neither a state of first order nor a coordinate", action=lambda: robot.flow(speed, speed))
    robot.flow(x, speed)
    rejects("flow of `x` is set twice", action=lambda: robot.flow(x, speed))
    fast = robot.prismatic("fast", limit=1, rate_limit=2)
    rejects("rate_limit", "Leave rate_limit out", action=lambda: robot.flow(fast, speed))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (lambda robot, x, _: robot.point_mass(1, (x, 0)), ["forces and masses change nothing", "Remove this line"]),
        (lambda robot, x, _: robot.apply(x, 3.0 * x), ["forces and masses change nothing"]),
        (lambda robot, *_: robot.prismatic("y", limit=1), ["the state `y` has no flow"]),
        (lambda robot, _, yaw: robot.ignore(yaw), ["Remove this line"]),
    ],
)
def test_what_a_kinematic_robot_cannot_have(more: Callable[..., object], words: list[str]) -> None:
    robot, x, yaw, speed = free()
    robot.flow(x, speed)
    robot.flow(yaw, 1.0 * speed)
    more(robot, x, yaw)
    robot.task(state_cost=x**2, **TASK)
    with pytest.raises(ModelError) as caught:
        equations_of_motion(robot)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("rate", "cost", "words"),
    [
        (lambda speed: speed, lambda x: x**2 + x.rate**2, "`x.rate` is no state: robot.flow(x, ...) gives it"),
        (lambda speed: 1.0 * speed**2, lambda x: x**2, "not affine in the input `speed`"),
    ],
)
def test_wrong_terms_are_refused(rate: Callable[[Any], Expr], cost: Callable[[Any], Expr], words: str) -> None:
    robot, x, yaw, speed = free()
    robot.flow(x, rate(speed))
    robot.flow(yaw, 1.0 * speed)
    robot.task(state_cost=cost(x), **TASK)
    with pytest.raises(ModelError, match=re.escape(words)):
        equations_of_motion(robot)


def test_one_state_is_too_few() -> None:
    robot = Robot("alone")
    x = robot.prismatic("x", limit=1)
    robot.flow(x, robot.input("speed", 1, "m/s"))
    robot.task(state_cost=x**2, **TASK)
    with pytest.raises(ModelError, match="one state, and needs two"):
        equations_of_motion(robot)
