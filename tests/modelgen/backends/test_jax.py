"""The JAX backend: pure functions under every transformation, in both precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import modelgen
from modelgen.builder import build_artifact
from modelgen.derivation import model_file
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from tests.modelgen.support import systems

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.fixture
def wide() -> Iterator[None]:
    """A program that has JAX in 64 bits."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def robot(artifacts: Path) -> CompiledRobot:
    return modelgen.load("dense", backend="jax", directory=artifacts)


def differences(function: Callable[[Any], Any], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences (..., k) of a function of a vector (k,)."""
    columns = [np.asarray(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(len(at))]
    return np.stack(columns, -1)


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("of", ["x", "theta"])
def test_forward_and_reverse_derivatives_by_differences(
    robot: CompiledRobot, exact: Callable[[str], SimpleNamespace], of: str
) -> None:
    row = {name: getattr(exact("dense"), name)[0] for name in ("x", "u", "theta")}

    def xdot(value: Any) -> Any:
        return robot.dynamics(**{**{name: jnp.asarray(array) for name, array in row.items()}, of: jnp.asarray(value)})

    expected = differences(xdot, row[of])
    np.testing.assert_allclose(jax.jacfwd(xdot)(row[of]), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.jacrev(xdot)(row[of]), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("wide")
@pytest.mark.slow
def test_second_derivatives_by_differences(robot: CompiledRobot, exact: Callable[[str], SimpleNamespace]) -> None:
    x, theta = exact("dense").x[1], exact("dense").theta[1]

    def cost(at: Any) -> Any:
        return robot.state_cost(jnp.asarray(at), theta)[0]

    found = jax.jit(jax.hessian(cost))(x)
    np.testing.assert_allclose(found, differences(jax.grad(cost), x), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("shared", [True, False])
def test_transformations_give_what_the_plain_call_gives(
    robot: CompiledRobot, exact: Callable[[str], SimpleNamespace], shared: bool
) -> None:
    """jit, vmap, vmap of vmap, and theta (p,) or (N, p)."""
    at = exact("dense")
    x, u, theta = at.x, at.u, at.theta[0] if shared else at.theta
    plain = robot.dynamics(x, u, theta)
    axes = (0, 0, None if shared else 0)
    np.testing.assert_allclose(jax.jit(robot.dynamics)(x, u, theta), plain, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(jax.vmap(robot.dynamics, axes)(x, u, theta), plain, rtol=1e-12, atol=1e-13)
    twice = jax.vmap(lambda rows: jax.vmap(robot.dynamics, axes)(rows, u, theta))(jnp.stack([x, x]))
    np.testing.assert_allclose(twice[1], plain, rtol=1e-12, atol=1e-13)


def test_float32_under_grad(artifacts: Path, exact: Callable[[str], SimpleNamespace]) -> None:
    at = exact("pendulum")
    robot = modelgen.load("pendulum", backend="jax", dtype="float32", directory=artifacts)
    x, u = (jnp.asarray(array, jnp.float32) for array in (at.x, at.u))
    gradient = jax.jit(jax.grad(lambda u: robot.dynamics(x, u).sum()))(u)
    assert gradient.dtype == jnp.float32
    B = modelgen.load("pendulum", directory=artifacts).affine_dynamics(at.x)[1]
    np.testing.assert_allclose(gradient, B.sum(1), rtol=1e-5)


def test_float64_in_a_program_of_32_bits(robot: CompiledRobot, exact: Callable[[str], SimpleNamespace]) -> None:
    """A plain call computes in float64; within a transformation JAX would round."""
    at = exact("dense")
    with jax.enable_x64(False):
        found = robot.dynamics(at.x, at.u, at.theta)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, at.values["xdot"], rtol=1e-11, atol=1e-11)
        with pytest.raises(ModelError, match="jax_enable_x64"):
            jax.jit(robot.dynamics)(at.x, at.u)


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_a_closed_contact_has_finite_second_derivatives(tmp_path: Path) -> None:
    """Max(0, w)**1.5 has the slopes 0 where it is open; the force of the closed one is Hertz's."""
    text = (
        "from sympy import Max, Rational\nfrom modelgen import Quadratic, Robot\nrobot = Robot('drop')\n"
        "h = robot.prismatic('h', limit=2, rate_limit=9)\nF = robot.input('F', 5, 'N')\n"
        "robot.kinetic_energy(h.rate**2 / 2)\nrobot.apply(h, F + 100 * Max(0, -h) ** Rational(3, 2))\n"
        "robot.task(state_cost=h**2, action_cost=Quadratic(0.5), start={}, horizon=5,\n"
        "           weight_at_horizon=0.65, control_rate=125)\n"
    )
    (tmp_path / "drop.py").write_text(text)
    build_artifact(model_file.load(str(tmp_path / "drop.py")), tmp_path)
    robot = modelgen.load("drop", backend="jax", directory=tmp_path)

    def force(h: Any) -> Any:
        return robot.dynamics(jnp.stack([h, 0.0 * h]), jnp.zeros(1))[1]

    assert float(jax.grad(jax.grad(force))(0.5)) == 0.0
    assert float(jax.grad(force)(0.0)) == 0.0
    assert float(jax.grad(jax.grad(force))(-0.25)) == pytest.approx(75 / 0.5)

    def slope(h: Any) -> Any:
        return robot.jacobians(jnp.stack([h, 0.0 * h]))[2][1, 0]

    assert float(jax.grad(slope)(0.5)) == 0.0
    assert float(jax.grad(slope)(-0.25)) == pytest.approx(75 / 0.5)
    assert np.isnan(float(force(jnp.nan)))


def test_an_empty_batch(robot: CompiledRobot) -> None:
    shapes = [tuple(result.shape) for result in robot.jacobians(np.zeros((0, 6)))]
    assert shapes[:4] == [(0, 6), (0, 6, 2), (0, 6, 6), (0, 6, 2, 6)]


@pytest.mark.parametrize(
    ("x", "u", "words"),
    [
        ([[0.0] * 6], np.zeros((1, 2)), "`x` is a list; the backend jax takes JAX and NumPy arrays"),
        (np.zeros((3, 6), complex), np.zeros((3, 2)), "dtype complex128"),
        (np.ma.zeros((3, 6)), np.zeros((3, 2)), r"masked.*x\.filled"),
        (np.zeros((3, 5)), np.zeros((3, 2)), r"shape \(3, 5\)"),
        (np.zeros((3, 6)), np.zeros((4, 2)), "`u` has 4 rows"),
    ],
)
def test_a_wrong_call_is_explained(robot: CompiledRobot, x: Any, u: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        robot.dynamics(x, u)


def test_out_is_refused(robot: CompiledRobot) -> None:
    with pytest.raises(ModelError, match="`out`"):
        robot.dynamics(np.zeros((3, 6)), np.zeros((3, 2)), out=(np.zeros((3, 6)),))


@pytest.mark.slow
def test_redundant_trims_have_all_digits_in_single_precision() -> None:
    exact = modelgen.compile(systems.lift())
    single = exact.with_kernels("jax", "float32")
    x, theta = np.zeros((5, 2)), np.linspace(1, 3, 5)[:, None]
    expected, slopes = exact.trim_slopes(x, theta)
    of_mass = jax.jit(jax.vmap(lambda each: single.trim_at(jnp.zeros(2), each)))
    np.testing.assert_allclose(single.trim_at(x, theta), expected, atol=1e-5)
    np.testing.assert_allclose(of_mass(theta), expected, atol=1e-5)
    np.testing.assert_allclose(single.trim_slopes(x, theta)[1], slopes, atol=1e-4)
    np.testing.assert_allclose(jax.jacrev(of_mass)(jnp.asarray(theta)).sum(2), slopes, atol=1e-4)


@pytest.mark.slow
def test_a_trim_within_limits_is_that_of_llvm() -> None:
    """Its rounds are a loop here, unrolled there. A ninth of the inputs or more are at a limit."""
    name = "planar_quadrotor"
    robot, plain = modelgen.load(name, backend="jax"), modelgen.load(name, parallel=False)
    random, nominal = np.random.default_rng(0), np.asarray(plain.nominal_parameters)
    theta = nominal * random.uniform(0.3, 2.5, (200, len(nominal)))
    x = np.tile(plain.metadata.task.target, (200, 1))
    expected, found = plain.trim_at(x, theta), np.asarray(robot.trim_at(x, theta))
    np.testing.assert_allclose(found, expected, atol=1e-6 * float(plain.input_limits[0]))
    upper = np.array([entry.upper for entry in plain.metadata.inputs])
    assert 0.1 < np.mean(expected > upper - 1e-9) < 0.9

    with jax.enable_x64():
        slopes = jax.vmap(jax.jacrev(lambda each: robot.trim_at(jnp.asarray(x[0]), each)))(jnp.asarray(theta[:20]))
    steps = 1e-5 * np.diag(nominal)
    ends = [np.stack([plain.trim_at(x[:20], theta[:20] + sign * step) for step in steps], -1) for sign in (-1, 1)]
    by_differences = (ends[1] - ends[0]) / (2e-5 * nominal)
    np.testing.assert_allclose(slopes, by_differences, rtol=0.0, atol=1e-5 * np.abs(by_differences).max())
