"""The number of integration steps, for robots whose error has a closed form and for shipped robots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sympy import asin, sqrt

import modelgen
from modelgen import ModelError, Robot
from modelgen.arrays import MOST_STEPS, TOLERANCE, robust_steps
from modelgen.artifact.folder import MANIFEST
from modelgen.builder import build_artifact
from modelgen.errors import ReliabilityWarning
from tests.modelgen.support.declared import TASK, cart

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
PERIOD = 1.0 / TASK["control_rate"]


def steps_of(damping: float, folder: Path, **task: Any) -> int:
    """The steps in the manifest of a cart of 1 kg with this friction (N s/m), at most 3 N and 2 m/s."""
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.damp(s, damping)
    robot.task(**{**TASK, "state_cost": s**2, **task})
    build_artifact(robot, folder)
    return int(json.loads((folder / "cart" / MANIFEST).read_text())["metadata"]["task"]["integration_steps"])


def factor(damping: float, steps: int, period: float) -> float:
    """The remaining share of a rate beyond its equilibrium after these steps: powers of the stability polynomial."""
    z = -damping * period / steps
    return float((1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24) ** steps)


@pytest.mark.parametrize("damping", [1.0, 60.0, 300.0, 900.0, 2000.0])
def test_a_stiffer_robot_gets_more_steps(damping: float, tmp_path: Path) -> None:
    """The rate is farthest from its equilibrium at 2 m/s with 3 N against it, and its limit is 2 m/s."""
    largest = (2.0 + 3.0 / damping) / 2.0
    counts = [2**k for k in range(9)]
    errors = [largest * abs(factor(damping, n, PERIOD) - factor(damping, 2 * n, PERIOD)) for n in counts]
    expected = next(n for n, error in zip(counts, errors, strict=True) if error <= TOLERANCE)
    assert all(not 0.9 < error / TOLERANCE < 1.2 for error in errors)  # the samples come near the corner
    assert steps_of(damping, tmp_path) == expected
    assert (damping == 1.0) == (expected == 1)


def test_a_shorter_control_period_needs_fewer_steps(tmp_path: Path) -> None:
    assert steps_of(2000.0, tmp_path) > steps_of(2000.0, tmp_path, control_rate=1000) > 1


@pytest.mark.parametrize("damping", [3e4, 1e9])
def test_a_robot_that_no_step_resolves_is_refused(damping: float, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        steps_of(damping, tmp_path)
    message = str(caught.value)
    stiff = Path(__file__).read_text().splitlines().index("    robot.damp(s, damping)") + 1
    assert f"test_integration.py:{stiff}:" in message
    for word in ("`s_rate`", "0.008 s", f"{MOST_STEPS} Runge-Kutta steps"):
        assert word in message
    assert not (tmp_path / "cart").exists()


@pytest.mark.parametrize(("most", "enough"), [(300.0, True), (1e6, False)])
def test_bounds_of_a_parameter_that_no_step_resolves_give_a_warning(
    most: float, enough: bool, recwarn: pytest.WarningsRecorder
) -> None:
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.damp(s, robot.parameter("friction", 150.0, "N s/m", bounds=(50, most)))
    robot.task(**{**TASK, "state_cost": s**2})
    compiled = modelgen.compile(robot)
    steps = robust_steps(compiled.metadata, compiled.dynamics)
    assert (1 < steps < MOST_STEPS) if enough else steps == MOST_STEPS
    messages = [str(each.message) for each in recwarn if issubclass(each.category, ReliabilityWarning)]
    assert [message[:14] for message in messages] == ["s_rate of cart"] * (not enough)


@pytest.mark.parametrize(("name", "steps"), [("pendulum", 1), ("furuta", 2), ("cart_double_pendulum", 2)])
def test_the_steps_of_shipped_robots_suffice_and_half_of_them_do_not(name: str, steps: int) -> None:
    """Compared with an adaptive method of eighth order, at other states than the build's."""
    robot = modelgen.load(name, backend="llvm", parallel=False)
    task, random = robot.metadata.task, np.random.default_rng(7)
    assert task.integration_steps == steps
    limits = np.asarray(robot.state_limits)
    x = random.uniform(-1.0, 1.0, (2000, len(limits))) * limits
    u = random.choice([-1.0, 1.0], (2000, len(robot.input_limits))) * np.asarray(robot.input_limits)
    period = 1.0 / task.control_rate

    def flow(_: float, y: Array) -> Array:
        return np.asarray(robot.dynamics(y.reshape(x.shape), u)).ravel()

    exact = solve_ivp(flow, (0.0, period), x.ravel(), method="DOP853", rtol=1e-9, atol=1e-9).y[:, -1].reshape(x.shape)

    def error(count: int) -> float:
        y, h = x, period / count
        for _ in range(count):
            k = [robot.dynamics(y, u)]
            for share in (0.5, 0.5, 1.0):
                k.append(robot.dynamics(y + share * h * k[-1], u))
            y = y + h / 6.0 * (k[0] + 2.0 * k[1] + 2.0 * k[2] + k[3])
        return float((np.abs(y - exact) / limits).max())

    assert error(steps) < 2.0 * TOLERANCE
    assert steps == 1 or error(steps // 2) > TOLERANCE


def thrown(limit: float, folder: Path) -> tuple[int, list[str]]:
    """The steps and warnings of 1 kg in a drag of 1 N s^2/m^2, with this input limit (N)."""
    robot = Robot("cart")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    robot.point_mass(1.0, (s, 0))
    robot.apply(s, robot.input("force", limit, "N"))
    robot.apply(s, -1.0 * s.rate * sqrt(s.rate**2 + 1e-6))
    robot.task(**{**TASK, "state_cost": s**2})
    report = build_artifact(robot, folder)
    return int(json.loads((folder / "cart" / MANIFEST).read_text())["metadata"]["task"]["integration_steps"]), (
        report.warnings
    )


def test_inputs_that_throw_a_robot_out_of_its_domain_cause_a_warning(tmp_path: Path) -> None:
    """At 10^8 N the drag allows 10^4 m/s. A hundredth of the force is resolved, as with that limit."""
    steps, (warning,) = thrown(1e8, tmp_path / "strong")
    for word in ("test_integration.py:", f"{steps} steps", "1% of their limits"):
        assert word in warning
    assert thrown(1e6, tmp_path / "weak") == (steps, [])


def test_a_force_without_a_value_beyond_the_limits_is_named(tmp_path: Path) -> None:
    """asin(0.999 s) ends at s = 1.001, which a motion at 2 m/s from within the limits reaches."""
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.apply(s, asin(0.999 * s))
    robot.task(**{**TASK, "state_cost": s**2})
    with pytest.raises(ModelError) as caught:
        build_artifact(robot, tmp_path)
    line = Path(__file__).read_text().splitlines().index("    robot.apply(s, asin(0.999 * s))") + 1
    for word in (f"test_integration.py:{line}:", "at s = 1.0", "no finite value"):
        assert word in str(caught.value).replace("s = -1", "s = 1")
