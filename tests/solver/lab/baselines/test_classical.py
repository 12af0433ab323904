"""Controllers of a control engineer: their mathematics against SciPy and the robot's own dynamics, and their runs."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are
from scipy.spatial.transform import Rotation

from modelgen import linear
from modelgen.arrays import Array
from solver.cli import main
from solver.errors import SolverError
from solver.lab.baselines import classical
from solver.lab.baselines.classical import (
    EnergyDesign,
    MotionDesign,
    energy_controller,
    energy_error,
    motion_controller,
    regulator,
)
from solver.local.linearization import linearization
from solver.oracles.trajectory import PlannedMotion
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.folder import load_checkpoint
from solver.runs.kinds import load_rollout_policy

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def problem_of(robot: str) -> Problem:
    return Problem(load_robot(robot, "cpu", None))


@pytest.mark.parametrize("robot", ["pendulum", "cartpole", "furuta"])
def test_the_regulator_is_that_of_scipy(robot: str) -> None:
    problem = problem_of(robot)
    local = linearization(problem.robot)
    Q, R = linear.weights(local.robot)
    P = solve_continuous_are(local.A, local.B, Q, R)
    gain, cost = regulator(problem)
    np.testing.assert_allclose(cost, P, rtol=1e-6, atol=1e-6 * np.abs(P).max())
    np.testing.assert_allclose(gain, np.linalg.solve(R, local.B.T @ P), rtol=1e-6, atol=1e-6 * np.abs(gain).max())


@pytest.mark.parametrize("robot", ["pendulum", "cartpole", "furuta"])
def test_the_input_brings_the_energy_to_that_of_the_target(robot: str) -> None:
    """The slope of the energy, along the robot's whole dynamics, beside that of the same motion without pumping."""
    problem = problem_of(robot)
    nq = problem.robot.metadata.nq
    parts = EnergyDesign(problem)(np.random.default_rng(3)) | {"level": torch.tensor(-1.0)}
    parts["gains"][:3] *= torch.tensor([1e-2, 0.0, 0.0])  # the inputs stay within their limits; the joint runs freely
    idle = parts | {"gains": parts["gains"] * torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0])}
    x = problem.target + torch.randn(200, 2 * nq, generator=torch.Generator().manual_seed(0))
    error, slopes = energy_error(problem, parts, x), []
    for each in (parts, idle):
        u, _ = energy_controller(problem, each)(x)
        assert bool((u.abs() < 0.99 * problem.upper_input).all()) or robot != "pendulum"
        xdot = torch.as_tensor(problem.robot.dynamics(x, u))
        step = 1e-3
        slopes.append(
            (energy_error(problem, each, x + step * xdot) - energy_error(problem, each, x - step * xdot)) / (2 * step)
        )
    change = (slopes[0] - slopes[1]) * error
    assert float(change.max()) <= 1e-3 * float(change.abs().max())
    assert float(change.min()) < 0.0


@pytest.mark.parametrize(("robot", "periods"), [("cartpole", 2000), ("satellite", 400)])
def test_regulators_along_a_robot_at_rest_are_the_discrete_one_of_scipy(robot: str, periods: int) -> None:
    problem = problem_of(robot)
    made, local = MotionDesign(problem), linearization(problem.robot)
    n, m = local.B.shape
    rest = np.tile(problem.target.numpy(), (periods + 1, 1))
    nodes = made.regulators(PlannedMotion(rest, np.zeros((periods, m)), 0.0, "at rest"))
    h = problem.control_step
    block = expm(h * np.block([[local.A, local.B], [np.zeros((m, n + m))]]))
    A, B, (Q, R) = block[:n, :n], block[:n, n:], (h * weight for weight in made.weights)
    S = solve_discrete_are(A, B, Q, R)
    np.testing.assert_allclose(nodes["cost"][0], S, rtol=1e-3, atol=1e-3 * np.abs(S).max())
    gain = np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A)
    np.testing.assert_allclose(nodes["gain"][0], gain, rtol=1e-3, atol=1e-6 * np.abs(gain).max())


def test_the_regulator_of_a_satellite_is_that_of_its_axes() -> None:
    """Each axis is a double integrator of the model file's inertia and costs: 2 e^2 + rate^2/2 + u^2."""
    gain, cost = regulator(problem_of("satellite"))
    for k, inertia in enumerate((1.0, 1.4, 0.8)):
        B, R = np.array([[0.0], [1.0 / inertia]]), np.eye(1)
        P = solve_continuous_are(np.array([[0.0, 1.0], [0.0, 0.0]]), B, np.diag([2.0, 0.5]), R)
        np.testing.assert_allclose(cost[np.ix_([k, k + 3], [k, k + 3])], P, rtol=1e-6)
        np.testing.assert_allclose(gain[k, [k, k + 3]], (B.T @ P)[0], rtol=1e-6)
        assert np.abs(np.delete(gain[k], [k, k + 3])).max() < 1e-6


def test_regulators_along_a_tumbling_satellite_are_those_of_its_errors() -> None:
    """Errors by SciPy's rotations, and slopes by differences of Euler's equations."""
    problem, inertia, h, n = problem_of("satellite"), np.array([1.0, 1.4, 0.8]), 0.05, 6
    made, u = MotionDesign(problem), np.array([[0.4, -0.2, 0.3], [-0.1, 0.3, 0.2], [0.3, 0.1, -0.4]])

    def later(x: tuple[Rotation, Array], u: Array) -> tuple[Rotation, Array]:
        turned, rate = x
        for _ in range(50):
            middle = rate + 0.01 * h * (u - np.cross(rate, inertia * rate)) / inertia
            turned = turned * Rotation.from_rotvec(0.02 * h * middle)
            rate = rate + 0.02 * h * (u - np.cross(middle, inertia * middle)) / inertia
        return turned, rate

    def moved(x: tuple[Rotation, Array], e: Array) -> tuple[Rotation, Array]:
        return x[0] * Rotation.from_rotvec(e[:3]), x[1] + e[3:]

    def slopes(x: tuple[Rotation, Array], u: Array) -> Array:
        columns = []
        for step in 1e-4 * np.eye(n + 3):
            (a, rate), (b, other) = (later(moved(x, sign * step[:n]), u + sign * step[n:]) for sign in (1, -1))
            columns.append(np.concatenate([(b.inv() * a).as_rotvec(), rate - other]) / 2e-4)
        return np.array(columns).T

    states = [(Rotation.from_rotvec([1.0, -2.0, 0.5]), np.array([1.0, -1.5, 0.8]))]
    for each in u:
        states.append(later(states[-1], each))
    x = np.array([[*turned.as_quat(scalar_first=True), *rate] for turned, rate in states])
    nodes = made.regulators(PlannedMotion(x, u, 0.0, "tumbling"))
    S, (Q, R) = made.cost, (h * weight for weight in made.weights)
    for k in (2, 1, 0):
        A, B = np.split(slopes(states[k], u[k]), [n], axis=1)
        S = Q + A.T @ S @ A - A.T @ S @ B @ np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A)
        np.testing.assert_allclose(nodes["cost"][k], S, rtol=1e-4, atol=1e-5 * np.abs(S).max())
    e = 1e-3 * np.array([3.0, -2.0, 1.0, 0.5, -1.0, 2.0])
    near, rate = moved(states[1], e)
    parts = {name: torch.as_tensor(part[1:2], dtype=torch.float32) for name, part in nodes.items()}
    state = torch.tensor([[*near.as_quat(scalar_first=True), *rate]], dtype=torch.float32)
    found = motion_controller(problem, parts)(-state * torch.tensor([1.0] * 4 + [-1.0] * 3))[0]  # of any sign
    np.testing.assert_allclose(found[0], u[1] - nodes["gain"][1] @ e, atol=1e-4)


@pytest.mark.parametrize("robot", ["acrobot", "planar_quadrotor", "double_pendulum"])
def test_energy_shaping_refuses_other_robots(robot: str) -> None:
    with pytest.raises(SolverError, match="algorithm tvlqr"):
        EnergyDesign(problem_of(robot))


def test_a_run_is_tuned_resumed_and_evaluated(
    short: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["classical", "pendulum", "--generated", short, "--algorithm", "energy", "--tries", "2", "--episodes", "4"]
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    saved = classical._save

    def interrupted(folder: Path, run: classical.ClassicalRun, done: int, best: dict[str, object]) -> None:
        saved(folder, run, done, best)
        if done == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(classical, "_save", interrupted)
    assert main([*words, "--out", str(tmp_path / "parts")]) == 130
    monkeypatch.setattr(classical, "_save", saved)
    assert main(["classical", "--resume", str(tmp_path / "parts")]) == 0
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    inputs = [load_rollout_policy(tmp_path / name).act(x)[0] for name in ("whole", "parts")]
    assert torch.equal(*inputs)
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "whole"), "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["return_mean"] < 0.0
    assert main(["evaluate", str(tmp_path / "whole"), "--reaction-periods", "1"]) == 2
    assert "no value function" in capsys.readouterr().err
    shutil.copytree(tmp_path / "whole", tmp_path / "edited")
    description = tmp_path / "edited" / "classical.json"
    description.write_text(description.read_text().replace('"seed": 0', '"seed": 1'))
    assert main(["evaluate", str(tmp_path / "edited")]) == 2


def test_a_try_whose_rollouts_are_not_finite_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No return is larger than NaN."""
    returns = iter([math.nan, -1.0, -50.0, -1.0])  # of both tries: where it is chosen, and where it is evaluated
    judged = {"success_rate": 0.0}
    monkeypatch.setattr(classical, "summary", lambda _: judged | {"return_mean": next(returns)})
    robot = load_robot("pendulum", "cpu", None)
    run = classical.describe(robot, None, "energy", tries=2, episodes=1)
    classical.start(run, tmp_path / "run", lambda _: None, robot)
    assert load_checkpoint(tmp_path / "run", ("best",))["best"]["try"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tries", "-1"], "--tries"),
        ([], "name a robot"),
        (["acrobot", "--algorithm", "energy"], "Use --algorithm tvlqr"),
    ],
)
def test_mistake_is_an_error(words: list[str], message: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    assert main(["classical", *words, *(["--out", str(out)] if words and words[0][0] != "-" else [])]) == 2
    assert message in capsys.readouterr().err
    assert not (out / "checkpoint.pt").exists()
