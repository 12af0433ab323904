"""Controllers of a control engineer: their mathematics against SciPy and the robot's own dynamics, and their runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

from modelgen import linear
from solver.cli import main
from solver.errors import SolverError
from solver.lab.baselines import classical
from solver.lab.baselines.classical import EnergyDesign, MotionDesign, energy_controller, energy_error, regulator
from solver.local.linearization import linearization
from solver.oracles.trajectory import PlannedMotion
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
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


def test_regulators_along_a_robot_at_rest_are_the_discrete_one_of_scipy() -> None:
    problem = problem_of("cartpole")
    made, local = MotionDesign(problem), linearization(problem.robot)
    rest = np.tile(problem.target.numpy(), (2001, 1))
    nodes = made.regulators(PlannedMotion(rest, np.zeros((2000, 1)), 0.0, "at rest"))
    h, n = problem.control_step, 4
    block = expm(h * np.block([[local.A, local.B], [np.zeros((1, n + 1))]]))
    A, B, (Q, R) = block[:n, :n], block[:n, n:], (h * weight for weight in made.weights)
    S = solve_discrete_are(A, B, Q, R)
    np.testing.assert_allclose(nodes["cost"][0], S, rtol=1e-3, atol=1e-3 * np.abs(S).max())
    gain = np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A)
    np.testing.assert_allclose(nodes["gain"][0], gain, rtol=1e-3)


@pytest.mark.parametrize("robot", ["acrobot", "planar_quadrotor", "double_pendulum"])
def test_energy_shaping_refuses_other_robots(robot: str) -> None:
    with pytest.raises(SolverError, match="--algorithm tvlqr"):
        EnergyDesign(problem_of(robot))


def test_a_run_is_tuned_resumed_and_evaluated(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["classical", "pendulum", "--algorithm", "energy", "--tries", "3", "--episodes", "4"]
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
    description = tmp_path / "edited" / classical.CLASSICAL
    description.write_text(description.read_text().replace('"seed": 0', '"seed": 1'))
    assert main(["evaluate", str(tmp_path / "edited")]) == 2


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
