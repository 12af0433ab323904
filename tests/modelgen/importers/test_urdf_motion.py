"""An imported robot moves as in Pinocchio and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import load
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import (
    ARM,
    BASE,
    RAIL,
    ROBOT,
    SHOULDER,
    SLIDER,
)

pytestmark = pytest.mark.slow


pytest.importorskip("yourdfpy")


def test_imported_robot_moves_as_in_pinocchio(written: Callable[..., Path]) -> None:
    pin = pytest.importorskip("pinocchio")
    path = written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    robot = load("machine")
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    coordinates = [joint.symbol.name for joint in robot.joints]
    rows = [coordinates.index(name) for name in ("arm", "lambda_joint", "rail")]
    order = [model.getJointId(name) for name in ("arm", "lambda", "rail")]
    q, v = np.random.default_rng(0).uniform(-1, 1, (2, 3))
    configuration, rates = pin.neutral(model), np.zeros(3)
    for joint, position, rate in zip(order, q, v, strict=True):
        at = model.joints[joint]
        turns = at.nq == 2
        configuration[at.idx_q : at.idx_q + at.nq] = (np.cos(position), np.sin(position)) if turns else position
        rates[at.idx_v] = rate
    permuted = [model.joints[joint].idx_v for joint in order]
    x = np.zeros(6)
    x[rows], x[[3 + row for row in rows]] = q, v
    theta = [parameter.value for parameter in robot.parameters if not parameter.fixed]
    arguments = [*equations.state, *equations.parameters]
    M, force = (
        numpy_evaluator(arguments, part, equations.definitions)(*np.array([*x, *theta])[:, None])[0]
        for part in (equations.mass_matrix, equations.force)
    )
    expected = np.triu(pin.crba(model, data, configuration))
    expected = (expected + np.triu(expected, 1).T)[np.ix_(permuted, permuted)]
    bias = pin.rnea(model, data, configuration, rates, np.zeros(3))[permuted]
    losses = np.array([0.3 * v[0] + 0.2 * np.tanh(100 * v[0]), 0, 0])
    np.testing.assert_allclose(M[np.ix_(rows, rows)], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(-force[rows, 0] - losses, bias, rtol=1e-9, atol=1e-9)


def test_kernels_of_an_imported_robot_agree_with_both_engines(
    written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for engine in ("pinocchio", "mujoco"):
        pytest.importorskip(engine)
    written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    assert main(["build", "machine"]) == 0
    for engine in ("pinocchio", "mujoco"):
        assert main(["verify", "machine", "--against", engine]) == 0, capsys.readouterr().out
        assert "5 checks passed, 0 failed, 0 skipped" in capsys.readouterr().out


def against_pinocchio(path: Path, planar: Sequence[str] = (), fixed: Sequence[str] = ()) -> tuple[Any, ...]:
    """The imported robot, its equations of motion, Pinocchio, and its model of the same file."""
    pin = pytest.importorskip("pinocchio")
    text = model_file(path, "machine", fixed, planar)
    (path.parent / "models").mkdir(exist_ok=True)
    (path.parent / "models" / "machine.py").write_text(text)
    robot = load("machine")
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    root = pin.JointModelPlanar() if planar == ("base-plate",) else None
    model = pin.buildModelFromUrdf(str(path), root) if root else pin.buildModelFromUrdf(str(path))
    return robot, equations, pin, model


def test_planar_joint_moves_as_in_pinocchio(written: Callable[..., Path]) -> None:
    """Two displacements in the plane across the axis, and a rotation about it (z in Pinocchio)."""
    mount = RAIL.replace("prismatic", "planar").replace("1 1 0", "0 0 1").replace('effort="0"', 'effort="3"')
    path = written(BASE, ARM, SLIDER, SHOULDER, mount.replace('"tool"', '"arm"'))
    robot, equations, pin, model = against_pinocchio(path)
    names = [joint.symbol.name for joint in robot.joints]
    assert names == ["arm", "rail_x", "rail_y", "rail_turn"]
    q, v = np.random.default_rng(0).uniform(-1, 1, (2, 4))
    at = np.array([*q, *v, *(parameter.value for parameter in robot.parameters if not parameter.fixed)])[:, None]
    arguments = [*equations.state, *equations.parameters]
    parts = (equations.mass_matrix, equations.force)
    M, force = (numpy_evaluator(arguments, part, equations.definitions)(*at)[0] for part in parts)
    configuration = np.array([q[0], q[1], q[2], np.cos(q[3]), np.sin(q[3])])
    # the rates of Pinocchio's planar joint are along the axes of the moving link
    turn = np.eye(4)
    turn[1:3, 1:3] = [[np.cos(q[3]), np.sin(q[3])], [-np.sin(q[3]), np.cos(q[3])]]
    rates = turn @ v
    data = model.createData()
    upper = np.triu(pin.crba(model, data, configuration))
    np.testing.assert_allclose(M, turn.T @ (upper + np.triu(upper, 1).T) @ turn, rtol=1e-9, atol=1e-12)
    spin = np.zeros((4, 4))
    spin[1:3, 1:3] = v[3] * np.array([[0, 1], [-1, 0]])
    bias = turn.T @ pin.rnea(model, data, configuration, rates, spin @ rates)
    losses = np.array([0.3 * v[0] + 0.2 * np.tanh(100 * v[0]), 0, 0, 0])
    np.testing.assert_allclose(-force[:, 0] - losses, bias, rtol=1e-9, atol=1e-9)


def test_a_floating_base_falls_freely_in_a_plane(written: Callable[..., Path]) -> None:
    path = written(*ROBOT)
    robot, equations, *_ = against_pinocchio(path, planar=("base-plate",))
    names = [joint.symbol.name for joint in robot.joints]
    assert names[:3] == ["base_plate_x", "base_plate_height", "base_plate_pitch"]
    theta = [parameter.value for parameter in robot.parameters if not parameter.fixed]
    at = np.array([*np.zeros(2 * len(names)), *theta])[:, None]
    arguments = [*equations.state, *equations.parameters]
    parts = (equations.mass_matrix, equations.force)
    M, force = (numpy_evaluator(arguments, part, equations.definitions)(*at)[0] for part in parts)
    assert M[0, 0] == pytest.approx(3 + 2 + 0.5 + 0.7 + 0.4, rel=1e-12)
    acceleration = np.linalg.solve(M, force)[:, 0]
    np.testing.assert_allclose(acceleration, [0, -9.81, *np.zeros(len(names) - 2)], atol=1e-9)
    assert "base_plate_x, base_plate_height, base_plate_pitch and their rates are guesses" in model_file(
        path, "machine", (), ["base-plate"]
    ).replace("The limits of ", "")


def test_floating_joint_moves_as_pinocchios_free_flyer(written: Callable[..., Path]) -> None:
    """Pinocchio's quaternion ends with w, and its linear velocity is along the axes of the moving link."""
    mount = RAIL.replace("prismatic", "floating").replace('"tool"', '"arm"')
    path = written(BASE, ARM, SLIDER.replace("0 0 0", "0.1 0 -0.2", 1), SHOULDER, mount)
    robot, equations, pin, model = against_pinocchio(path)
    assert [joint.symbol.name for joint in robot.joints][1:4] == ["rail_x", "rail_y", "rail_z"]
    random = np.random.default_rng(0)
    arm, p, quaternion, rates = random.uniform(-1, 1), *random.uniform(-1, 1, (2, 3)), random.uniform(-1, 1, 7)
    q = np.append(quaternion, random.uniform(-1, 1))
    q /= np.linalg.norm(q)
    theta = [parameter.value for parameter in robot.parameters if not parameter.fixed]
    at = np.array([arm, *p, *q, *rates, *theta])[:, None]
    arguments = [*equations.state, *equations.parameters]
    parts = (equations.mass_matrix, equations.force)
    M, force = (numpy_evaluator(arguments, part, equations.definitions)(*at)[0] for part in parts)
    configuration = np.array([arm, *p, q[1], q[2], q[3], q[0]])
    turn = np.eye(7)
    turn[1:4, 1:4] = Rotation.from_quat(q, scalar_first=True).as_matrix().T
    data = model.createData()
    upper = np.triu(pin.crba(model, data, configuration))
    np.testing.assert_allclose(M, turn.T @ (upper + np.triu(upper, 1).T) @ turn, rtol=1e-9, atol=1e-9)
    moved = turn @ rates
    gained = np.zeros(7)
    gained[1:4] = -np.cross(rates[4:], moved[1:4])
    bias = turn.T @ pin.rnea(model, data, configuration, moved, gained)
    losses = np.array([0.3 * rates[0] + 0.2 * np.tanh(100 * rates[0]), *np.zeros(6)])
    np.testing.assert_allclose(-force[:, 0] - losses, bias, rtol=1e-9, atol=1e-9)
