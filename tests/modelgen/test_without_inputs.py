"""Robots without inputs and without parameters: every backend, exports, verification, identification, refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sympy import cos, pi, sin

import modelgen
from modelgen import LogCos, Robot
from modelgen.backends import MODULES
from modelgen.builder import build_artifact, export
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.program.functions import SIGNATURES
from modelgen.verification import missing_package, quick
from solver.errors import SolverError
from solver.problem.robots import load_robot

MASS, REACH, INERTIA, DRAG, G = 0.0142, 0.08, 4e-5, 3e-5, 9.81


def rod(inputs: bool = False, parameters: bool = True) -> Robot:
    """A rod that swings."""
    robot = Robot("rod")
    theta = robot.revolute("theta", continuous=True, rate_limit=25)
    reach: Any = robot.parameter("reach", REACH, "m", bounds=(0.05, 0.12)) if parameters else REACH
    drag: Any = robot.parameter("drag", DRAG, "N m s", bounds=(0, 1e-4)) if parameters else DRAG
    robot.body(MASS, INERTIA, (reach * sin(theta), reach * cos(theta)), theta)
    robot.damp(theta, drag)
    if inputs:
        robot.apply(theta, robot.input("torque", 0.02, "N m"))
    robot.task(
        state_cost=(pi * cos(theta / 2)) ** 2 + 0.01 * theta.rate**2,
        action_cost=LogCos(0.5) if inputs else None,
        target={"theta": np.pi},
        start={"theta": (0.5, 0.03)},
        horizon=3,
        weight_at_horizon=0.65,
        control_rate=200,
    )
    return robot


CASES = [(False, True), (True, False), (False, False)]


@pytest.fixture(scope="module", params=CASES, ids=["no inputs", "no parameters", "neither"])
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Robot, Path]:
    robot, folder = rod(*request.param), tmp_path_factory.mktemp("generated")
    build_artifact(robot, folder)
    return robot, folder


def by_hand(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """xdot (N, 2) of the rod."""
    torque = MASS * G * REACH * np.sin(x[:, 0]) - DRAG * x[:, 1] + u.sum(axis=1)
    return np.stack([x[:, 1], torque / (INERTIA + MASS * REACH**2)], 1)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("backend", MODULES)
def test_every_backend_computes_every_function(artifact: tuple[Robot, Path], backend: str, precision: str) -> None:
    if missing := missing_package(backend):
        pytest.skip(f"{missing} is not installed")
    robot, folder = artifact
    parallel = precision == "float64" and not robot.inputs and not robot.parameters  # which Numba compiles for seconds
    kernels: Any = modelgen.load("rod", backend, precision, folder, parallel)
    n, m, p = 2, len(kernels.input_names), len(kernels.parameter_names)
    random, like = np.random.default_rng(0), kernels.nominal_parameters
    make: Any = like.new_tensor if hasattr(like, "new_tensor") else lambda value: value.astype(like.dtype)
    x, u = random.uniform(-2, 2, (5, n)), random.uniform(-0.01, 0.01, (5, m))
    given = {"x": x, "u": u, "costate": random.normal(size=(5, n)), "w": random.normal(size=(5, m))}
    shapes = {"a": (n,), "B": (n, m), "dB_dx": (n, m, n), "dB_dtheta": (n, m, p), "dH_du": (m,), "u_optimal": (m,)}
    for rows in (slice(None), 0):
        for call, (names, results) in SIGNATURES.items():
            if call in kernels.functions:
                got = getattr(kernels, call)(**{name: make(given[name][rows]) for name in names if name in given})
                for name, result in zip(results, got if isinstance(got, tuple) else (got,), strict=True):
                    if name in shapes:
                        assert tuple(result.shape) == ((5,) if rows != 0 else ()) + shapes[name]
    got = np.asarray(kernels.dynamics(make(x), make(u)), np.float64)
    np.testing.assert_allclose(got, by_hand(x, u), rtol=1e-12 if precision == "float64" else 1e-4, atol=1e-4)
    own = np.asarray(kernels.dynamics(make(x), make(u), make(np.tile(like, (5, 1)))), np.float64)
    np.testing.assert_allclose(own, got, rtol=1e-5)


def test_the_model_is_verified(artifact: tuple[Robot, Path]) -> None:
    robot, folder = artifact
    checks = quick(robot, equations_of_motion(robot), modelgen.load, folder)
    assert checks
    assert all(check.passed for check in checks), checks


def test_exports_compile(artifact: tuple[Robot, Path], tmp_path: Path) -> None:
    for name, text in export(artifact[0], "c").items():
        (tmp_path / name).write_bytes(text)
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-c", "rod.c", "-o", "rod.o"], cwd=tmp_path, check=True)
    assert export(artifact[0], "js")
    assert export(artifact[0], "casadi")


@pytest.mark.parametrize("words", [["--linearize"], []])
def test_show(artifact: tuple[Robot, Path], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "rod", "--generated", str(artifact[1]), *words]) == 0
    assert "rod" in capsys.readouterr().out


@pytest.mark.slow
def test_a_free_decay_is_identified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    build_artifact(rod())
    reach, drag = 0.09, 2e-5
    inertia = INERTIA + MASS * reach**2
    time = np.arange(0, 5, 0.005)

    def falling(_: float, x: np.ndarray) -> list[float]:
        return [x[1], (MASS * G * reach * np.sin(x[0]) - drag * x[1]) / inertia]

    angle = solve_ivp(falling, (0, 5), [0.5, 0], t_eval=time, rtol=1e-9).y[0]
    angle += np.random.default_rng(0).normal(0, 1e-3, len(angle))
    np.savetxt("decay.csv", np.stack([time, angle], 1), delimiter=",", header="time,theta", comments="")
    assert main(["identify", "rod", "decay.csv"]) == 0
    found = json.loads((tmp_path / "rod.identified.json").read_text())["parameters"]
    assert found["reach"]["value"] == pytest.approx(reach, rel=5e-3)
    assert found["drag"]["value"] == pytest.approx(drag, rel=0.05)


def test_the_solver_refuses_a_robot_without_inputs(tmp_path: Path) -> None:
    build_artifact(rod(), tmp_path)
    with pytest.raises(SolverError, match=r"rod .*robot\.input"):
        load_robot("rod", "cpu", str(tmp_path))


def test_a_robot_with_inputs_needs_an_action_cost() -> None:
    robot = Robot("cart")
    s = robot.prismatic("s", limit=1, rate_limit=1)
    robot.input("force", 1, "N")
    with pytest.raises(modelgen.ModelError, match=r"action_cost is None.*LogCos"):
        robot.task(state_cost=s**2, start={}, horizon=1, weight_at_horizon=0.5, control_rate=100)
