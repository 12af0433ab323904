"""Linearisations compared with differences of the dynamics, SciPy, and closed forms of the action costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are
from sympy import cos, sin

import modelgen
from modelgen import ModelError, load
from modelgen.artifact import folder as artifact
from modelgen.cli import main
from modelgen.loader import CompiledRobot
from modelgen.report.linearization import equilibrium, given_coordinates, linearize


@pytest.fixture(scope="module")
def robot() -> Callable[[str], CompiledRobot]:
    """A function robot(name): a shipped robot, with the backend that needs no compilation."""
    return lambda name: load(name, backend="casadi", directory=artifact.SHIPPED)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("cartpole", {}),
        ("cartpole", {"pole": math.pi}),
        ("furuta", {"arm": 0.7}),
        ("planar_arm2", {"shoulder": 0.5}),
        ("planar_arm3", {"shoulder": 1.0, "wrist": 0.3}),
        ("planar_quadrotor", {}),
        ("ball_on_beam", {"ball": 0.3}),
        ("acrobot", {"shoulder": 0.3}),
    ],
)
def test_the_equilibrium_rests_and_matrices_are_slopes_of_the_dynamics(
    robot: Callable[[str], CompiledRobot], name: str, at: dict[str, Any]
) -> None:
    compiled = robot(name)
    result = linearize(compiled, at)
    for coordinate, value in at.items():
        assert result.state[compiled.state_names.index(coordinate)] == value
    n = len(result.state)
    assert not result.state[n // 2 :].any()

    def flow(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray(compiled.dynamics(x[None], u[None]))[0]

    assert np.abs(flow(result.state, result.input)).max() < 1e-7
    step = 1e-5
    A = [(flow(result.state + h, result.input) - flow(result.state - h, result.input)) for h in step * np.eye(n)]
    B = [
        (flow(result.state, result.input + h) - flow(result.state, result.input - h)) for h in np.eye(len(result.input))
    ]
    np.testing.assert_allclose(result.A, np.array(A).T / (2 * step), atol=1e-6 * np.abs(result.A).max())
    np.testing.assert_allclose(result.B, np.array(B).T / 2, atol=1e-9 * np.abs(result.B).max())


def test_of_several_inputs_the_smallest_hold_the_robot() -> None:
    """Two arms whose levers change: at the target only the first holds, a quarter turn away only the second."""
    made = modelgen.Robot("levers")
    q = made.revolute("q", limit=3, rate_limit=3)
    first, second = made.input("first", 20, "N m"), made.input("second", 20, "N m")
    made.rotor(q, made.parameter("inertia", 1.0, "kg m^2", tolerance=0.3))
    made.apply(q, cos(q) * first + sin(q) * second - 5.0)
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.6, "control_rate": 100}
    made.task(state_cost=q**2 + q.rate**2, action_cost=modelgen.Quadratic(0.1), **task)
    compiled = modelgen.compile(made, backend="casadi")
    for angle in (0.0, 1.0, math.pi / 2):
        expected = 5 * np.array([math.cos(angle), math.sin(angle)])
        np.testing.assert_allclose(linearize(compiled, {"q": angle}).input, expected, atol=1e-9)


def test_a_hydraulic_boom_rests_and_keeps_its_small_slopes() -> None:
    """Its pressure (Pa) and its angle (rad) differ by 1e16 in slopes. In closed form p lever = m g r cos(angle)."""
    boom = modelgen.Robot("boom")
    angle, pressure = boom.revolute("angle", limit=1.2, rate_limit=1), boom.state("pressure", limit=2e7, unit="Pa")
    flow, lever, leak = boom.input("flow", 1e-4, "m^3/s"), 4e-4, 1e-13
    mass = boom.parameter("mass", 200.0, "kg", tolerance=0.1)
    boom.point_mass(mass, (2.0 * cos(angle), 2.0 * sin(angle)))
    boom.apply(angle, lever * pressure)
    boom.damp(angle, 50.0)
    boom.flow(pressure, 1.6e13 * (flow - lever * angle.rate - leak * pressure))
    task: dict[str, Any] = {"start": {}, "horizon": 1, "weight_at_horizon": 0.5, "control_rate": 1000}
    boom.task(state_cost=angle**2 + 0.1 * angle.rate**2, action_cost=modelgen.Quadratic(1e7), **task)
    made = modelgen.compile(boom, backend="casadi")
    found, held = linearize(made, {"angle": 0.5}), 200 * 9.81 * 2 * math.cos(0.5) / lever
    np.testing.assert_allclose(found.state, [0.5, 0, held], rtol=1e-13)
    np.testing.assert_allclose(found.input, leak * held, rtol=1e-13)
    turns = [9.81 / 2 * math.sin(0.5), -50 / 800, lever / 800]
    by_hand = np.array([[0, 1, 0], turns, [0, -1.6e13 * lever, -1.6e13 * leak]])
    np.testing.assert_allclose(found.A, by_hand, rtol=1e-12)
    assert found.controllable == 3
    assert found.gain is not None
    assert np.linalg.eigvals(found.A - found.B @ found.gain).real.max() < -0.5


def test_matrices_of_the_cartpole_are_those_by_hand(robot: Callable[[str], CompiledRobot]) -> None:
    """M at rest is [[mc + mp, mp l], [mp l, mp l^2]], so that A and B follow by hand."""
    result = linearize(robot("cartpole"), {})
    mc, mp, l, dc, dp = 0.57, 0.127, 0.16825, 0.1, 1e-3
    inverse = np.linalg.inv([[mc + mp, mp * l], [mp * l, mp * l**2]])
    np.testing.assert_allclose(result.A[2:], inverse @ [[0, 0, -dc, 0], [0, mp * l * 9.81, 0, -dp]], atol=1e-12)
    np.testing.assert_allclose(result.B[2:, 0], inverse[:, 0], rtol=1e-12)
    assert result.controllable == 4


class TestGain:
    def test_the_gain_solves_the_riccati_equation_and_stabilises(self, robot: Callable[[str], CompiledRobot]) -> None:
        compiled = robot("planar_arm2")
        result = linearize(compiled, {"shoulder": 0.5})
        Q = np.diag([4, 4, 0.5, 0.5])
        R = np.diag([2.5e-9 * 2000**2 / (2000 + 1e-3), 2.5e-8 * 700**2 / (700 + 1e-3)])
        P = solve_continuous_are(result.A, result.B, Q, R)
        assert result.gain is not None
        np.testing.assert_allclose(result.gain, np.linalg.solve(R, result.B.T @ P), rtol=1e-6)
        assert np.linalg.eigvals(result.A - result.B @ result.gain).real.max() < 0

    def test_a_coordinate_without_cost_has_no_gain(self, robot: Callable[[str], CompiledRobot]) -> None:
        result = linearize(robot("reaction_wheel"), {})
        assert result.gain is None
        for word in ("state cost", "`wheel`", "eigenvalue 0"):
            assert word in result.without_gain
        assert result.controllable == 4


class TestEquilibrium:
    def test_the_smallest_of_many_possible_inputs_is_chosen(self, robot: Callable[[str], CompiledRobot]) -> None:
        """Three torques for three equations: the arm needs exactly these."""
        compiled = robot("planar_arm3")
        x, u = equilibrium(compiled, {"shoulder": 1.0, "elbow": 0.0, "wrist": 0.0})
        masses, lengths = [2.0, 1.2, 0.5], [0.35, 0.3, 0.15]
        beyond = [sum(lengths[:k]) + lengths[k] / 2 for k in range(3)]
        shoulder = -9.81 * math.sin(1) * sum(m * r for m, r in zip(masses, beyond, strict=True))
        assert u[0] == pytest.approx(shoulder, rel=1e-9)
        assert list(x) == [1, 0, 0, 0, 0, 0]

    @pytest.mark.slow
    def test_a_place_that_cannot_be_held_is_refused(self, robot: Callable[[str], CompiledRobot]) -> None:
        with pytest.raises(ModelError, match=r"pole = 3.14\..* pole = 3.141592654"):
            equilibrium(robot("cartpole"), {"pole": 3.14})

    @pytest.mark.parametrize(
        ("pair", "value"), [("pole=pi", math.pi), ("pole=-pi/2", -math.pi / 2), ("pole=0.5*pi", math.pi / 2)]
    )
    def test_values_may_contain_pi(self, robot: Callable[[str], CompiledRobot], pair: str, value: float) -> None:
        assert given_coordinates([pair], robot("cartpole")) == {"pole": pytest.approx(value)}

    @pytest.mark.parametrize(
        ("pair", "words"),
        [
            ("poel=1", "Did you mean `pole`"),
            ("pole_rate=1", "Rates are zero"),
            ("pole", "no number behind"),
            ("pole=up", "no number behind"),
            ("pole=nan", "no number behind"),
            ("pole=pi/0", "no number behind"),
            ("cart=-0.6", "cart=-0.6 is beyond its limit of 0.5 m"),
        ],
    )
    def test_a_wrong_coordinate_or_value_is_refused(
        self, robot: Callable[[str], CompiledRobot], pair: str, words: str
    ) -> None:
        with pytest.raises(ModelError, match=words):
            given_coordinates([pair], robot("cartpole"))


class TestCommand:
    def show(self, *arguments: str) -> int:
        return main(["show", *arguments, "--generated", str(artifact.SHIPPED)])

    def test_linearize_prints_equilibrium_gain_and_eigenvalues(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.show("cartpole", "--linearize", "--at", "pole=pi", "cart=0.1") == 0
        output = capsys.readouterr().out
        for words in ("3.14159 rad", "controllable: 4 of 4", "LQR gain", "eigenvalues of A: 0, -0.14348"):
            assert words in output

    def test_an_input_beyond_its_limit_is_marked(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.show("pendulum", "--linearize", "--at", "angle=pi/2") == 0
        assert "-4.905 N m   beyond its limit of 2.5" in capsys.readouterr().out

    def test_a_whole_turn_of_a_continuous_angle_is_not_marked(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.show("acrobot", "--linearize", "--at", "shoulder=2*pi") == 0
        assert "beyond" not in capsys.readouterr().out

    def test_a_place_without_linearize_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.show("cartpole", "--at", "pole=0") == 2
        assert "--linearize --at" in capsys.readouterr().err
