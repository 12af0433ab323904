"""The CasADi backend: functions for optimisation problems, and the batch over them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import casadi
import mpmath
import numpy as np
import pytest
import sympy
import torch

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends.casadi import compiled
from modelgen.cli import main
from modelgen.errors import ModelError
from modelgen.files import CACHE
from modelgen.loader import CompiledRobot
from modelgen.program.functions import Argument, Function, Output
from modelgen.program.graph import Graph
from tests.closeness import assert_close


@pytest.fixture(scope="module")
def robot(artifacts: Path) -> CompiledRobot:
    return modelgen.load("dense", backend="casadi", directory=artifacts)


def test_functions_have_matrix_shapes(robot: CompiledRobot) -> None:
    function = robot.casadi_function("jacobians")
    assert function.name_in() == ["x", "theta"]
    assert function.name_out() == ["a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"]
    shapes = [function.size_out(index) for index in range(function.n_out())]
    assert shapes == [(6, 1), (6, 2), (6, 6), (12, 6), (6, 2), (12, 2)]


def test_a_function_that_an_earlier_process_made_is_read_and_not_made(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    first = modelgen.load("dense", backend="casadi", directory=artifacts).casadi_function("jacobians")
    monkeypatch.delattr("modelgen.backends.casadi.compiled")
    again = modelgen.load("dense", backend="casadi", directory=artifacts).casadi_function("jacobians")
    assert (again.name(), again.name_in(), again.name_out()) == (first.name(), first.name_in(), first.name_out())
    x, theta = np.linspace(-1.0, 1.0, 6), np.array([0.9, 1.1])
    for one, other in zip(first(x, theta), again(x, theta), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_rows_of_a_function_are_the_batch(robot: CompiledRobot, exact: Callable[[str], SimpleNamespace]) -> None:
    at = exact("dense")
    outputs = robot.casadi_function("jacobians")(at.x[0], at.theta[0])
    for output, batch in zip(outputs, robot.jacobians(at.x, at.theta), strict=True):
        found = np.asarray(output).reshape(batch.shape[1:])
        np.testing.assert_allclose(found, batch[0], rtol=1e-13)


def test_symbolic_use_and_casadis_own_derivative(robot: CompiledRobot, exact: Callable[[str], SimpleNamespace]) -> None:
    at = exact("dense")
    x, u = casadi.MX.sym("x", 6), casadi.MX.sym("u", 2)
    xdot = robot.casadi_function("dynamics")(x, u, at.theta[0])
    slope = casadi.Function("slope", [x, u], [casadi.jacobian(xdot, u)])(at.x[0], at.u[0])
    np.testing.assert_allclose(np.asarray(slope), at.values["B"][0].reshape(6, 2), rtol=1e-11, atol=1e-13)


def test_threads_give_what_one_gives(artifacts: Path, robot: CompiledRobot) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (101, 6))
    serial = modelgen.load("dense", backend="casadi", directory=artifacts, parallel=False)
    for together, alone in zip(robot.affine_dynamics(x), serial.affine_dynamics(x), strict=True):
        assert_close(together, alone)


def test_tensors_in_tensors_out_and_no_samples(robot: CompiledRobot) -> None:
    assert torch.is_tensor(robot.state_cost(torch.ones(2, 6, dtype=torch.float64))[0])
    assert robot.jacobians(np.zeros((0, 6)))[3].shape == (0, 6, 2, 6)


def test_an_unknown_function_gets_a_suggestion(robot: CompiledRobot) -> None:
    with pytest.raises(ModelError, match="`jacobians`"):
        robot.casadi_function("jacobian")


def test_a_wrong_call_is_explained(robot: CompiledRobot) -> None:
    with pytest.raises(ModelError, match=r"`x` .*\(2, 5\)"):
        robot.state_cost(np.zeros((2, 5)))


OLDER = tuple(map(int, version("casadi").split(".")[:3])) < (3, 8, 2)  # than the CasADi that wrote the shipped files
FRESH = """
import sys, casadi, numpy
f = casadi.Function.load(sys.argv[1])
assert f.name_in() == ["x", "u", "theta"] and f.name_out() == ["xdot"]
x, u, theta = casadi.SX.sym("x", 4), casadi.SX.sym("u"), casadi.SX.sym("theta", 5)  # parameters are inputs as well
slope = casadi.Function("slope", [x, u, theta], [casadi.jacobian(f(x, u, theta), theta)])
values = [[0.1, 0.2, 0.3, 0.4], [2.0], [0.5, 0.1, 0.2, 0.1, 0.001]]
numpy.savetxt(sys.stdout, numpy.hstack([f(*values).full(), slope(*values).full()]), "%.17g")
assert not {"modelgen", "sympy"} & set(sys.modules)
"""


@pytest.mark.slow
def test_an_exported_function_needs_only_casadi(tmp_path: Path) -> None:
    assert main(["export", "cartpole", "--casadi", str(tmp_path)]) == 0
    command = [sys.executable, "-c", FRESH, str(tmp_path / "cartpole_dynamics.casadi")]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    found = np.loadtxt(text.splitlines())
    robot = modelgen.load("cartpole", backend="torch", directory=artifact.SHIPPED)
    rows = [[0.1, 0.2, 0.3, 0.4]], [[2.0]], [0.5, 0.1, 0.2, 0.1, 0.001]
    x, u, theta = (torch.tensor(row, dtype=torch.float64) for row in rows)
    np.testing.assert_allclose(found[:, 0], robot.dynamics(x, u, theta)[0].numpy(), rtol=1e-13)
    slopes = torch.autograd.functional.jacobian(lambda value: robot.dynamics(x, u, value)[0], theta)
    np.testing.assert_allclose(found[:, 1:], slopes.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.skipif(OLDER, reason="a CasADi reads no files of a newer one; kernels are made from the program")
def test_the_files_of_an_artifact_are_what_casadi_loads() -> None:
    (path,) = (artifact.SHIPPED / "pendulum").glob("dynamics_*.casadi")
    found = casadi.Function.load(str(path))([0.5, 0.0], [1.0], [1.0, 1.0])
    np.testing.assert_allclose(found.full().ravel(), [0, 1.5 * 9.81 * np.sin(0.5) + 3], rtol=1e-14)


@pytest.mark.parametrize("exponent", ["3/2", "5/2", "6/5"])
@pytest.mark.slow
def test_derivatives_of_a_contact_force_are_finite(tmp_path: Path, exponent: str) -> None:
    """Force k max(0, -z)**p on 1 kg: mpmath's derivatives where it is closed, zero where it is open and at contact."""
    robot, power = modelgen.Robot("hertz", "mass on an elastic ground"), sympy.Rational(exponent)
    height = robot.prismatic("z", limit=0.5, rate_limit=4)
    robot.point_mass(robot.parameter("m", 1.0, "kg", tolerance=0.3), (0, height))
    robot.apply(height, 4000.0 * sympy.Max(0, -height) ** power + robot.input("F", 20, "N"))
    robot.task(
        state_cost=(height - 0.2) ** 2,
        action_cost=modelgen.Quadratic(0.01),
        target={"z": 0.2},
        start={"z": (0.1, 0.05)},
        horizon=1,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    modelgen.build(robot, tmp_path)
    function = modelgen.load("hertz", backend="casadi", directory=tmp_path).casadi_function("dynamics")
    x = casadi.SX.sym("x", 2)
    acceleration = function(x, 0.0, [1.0])[1]
    hessian, slope = casadi.hessian(acceleration, x)
    derivatives = casadi.Function("derivatives", [x], [acceleration, slope[0], hessian[0, 0]])
    free = float(derivatives([0.3, 0.0])[0])
    for position in (0.3, 1e-9, 0.0, -1e-9, -0.01, -0.4):
        found = np.array([float(value) for value in derivatives([position, 0.0])]) - [free, 0.0, 0.0]
        force = partial(lambda p, at: 4000 * (-at) ** p, mpmath.mpf(power.p) / power.q)
        right = [float(mpmath.diff(force, position, order)) for order in range(3)] if position < 0 else [0.0] * 3
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_the_smaller_and_the_larger_of_nan_are_nan(name: str) -> None:
    """As in NumPy, C, JAX and Torch; fmin and fmax of CasADi give the other argument."""
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    outputs = (Output("value", (), (graph.call(name, a, b),)),)
    function = compiled(graph, Function("extreme", (Argument("a", (a,)), Argument("b", (b,))), outputs), "two")
    for pair in [(1.0, 2.0), (2.0, 1.0), (-1.0, -1.0), (np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (np.inf, 3.0)]:
        np.testing.assert_allclose(float(function(*pair)), getattr(np, name)(*pair), rtol=1e-12)
