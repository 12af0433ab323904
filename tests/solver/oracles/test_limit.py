"""The limit by trajectory optimisation: against the Riccati recursion and the evaluation's own rollouts."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import torch
from scipy.linalg import expm

import modelgen
from modelgen.cli import main as modelgen_main
from modelgen.derivation.model_file import SHIPPED
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.oracles.trajectory import Guess, NonlinearProgram, idle, random_motions, straight
from solver.plants.rollouts import rollouts
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

Capture = pytest.CaptureFixture[str]


def riccati(start: np.ndarray, mass: float, damping: float) -> tuple[float, np.ndarray]:
    """Return and inputs of the optimum: inputs held for 4 ms, 750 periods, no final cost.

    Flow and cost of a period are exact, from the exponential of one matrix (Van Loan, 1978).
    """
    flow = np.array([[0.0, 1.0, 0.0], [0.0, -damping / mass, 1.0 / mass], [0.0, 0.0, 0.0]])  # of (s, s_rate, u)
    weights = np.diag([2.0, 0.3, 0.3])
    block = expm(0.004 * np.block([[-flow.T, weights], [np.zeros((3, 3)), flow]]))
    over = block[3:, 3:]
    cost, a, b = over.T @ block[:3, 3:], over[:2, :2], over[:2, 2:]
    q, s, r = cost[:2, :2], cost[:2, 2:], cost[2:, 2:]
    p, gains = np.zeros((2, 2)), []
    for _ in range(750):
        gains.append(np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a + s.T))
        p = q + a.T @ p @ a - (a.T @ p @ b + s) @ gains[-1]
    x, inputs = start, []
    for gain in reversed(gains):
        inputs.append(-gain @ x)
        x = a @ x + b @ inputs[-1]
    return float(-start @ p @ start), np.array(inputs)


@pytest.mark.parametrize("mass", [1.3, 0.8])
def test_linear_quadratic_task_matches_the_riccati_recursion(slider: str, mass: float) -> None:
    theta = None if mass == 1.3 else np.array([mass, 0.4])
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider), theta)
    exact, inputs = riccati(program.start, mass, 0.4)
    for guess in (idle(program), straight(program), *random_motions(program, 1, 0)):
        found = program.solve(guess)
        assert found is not None
        assert found.reward == pytest.approx(exact, rel=1e-6)
        assert found.u == pytest.approx(inputs, abs=1e-4)


def moved(start: tuple[float, ...]) -> CompiledRobot:
    """The pendulum with another mean start."""
    robot = modelgen.load("pendulum", backend="casadi")
    robot.metadata = dataclasses.replace(
        robot.metadata, task=dataclasses.replace(robot.metadata.task, start_mean=start)
    )
    return robot


def test_a_motion_of_the_pendulum_replayed_by_the_evaluation(load: Callable[[str], CompiledRobot]) -> None:
    """The evaluation gives the optimal inputs the same return, and smooth changes of them a lower one."""
    program = NonlinearProgram(moved((0.4, 0.0)), seconds=1.0)
    found = program.solve(straight(program))
    assert found is not None
    problem = Problem(load("pendulum"))
    limit = float(problem.input_limits[0])

    def replay(inputs: np.ndarray) -> float:
        steps = iter(torch.tensor(inputs, dtype=torch.float32)[:, None])

        def act(_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            u = next(steps)
            return u, problem.action_cost.cost(u)

        start = torch.tensor(program.start[None], dtype=torch.float32)
        return float(rollouts(problem, act, start, seconds=1.0).returns[0])

    assert replay(found.u) == pytest.approx(found.reward, abs=1e-3)
    assert replay(np.zeros_like(found.u)) < found.reward - 0.5  # the rod falls
    time = np.linspace(0.0, np.pi, len(found.u))[:, None]
    for cycles in range(1, 5):
        for sign in (-1.0, 1.0):
            change = sign * 0.1 * np.sin(cycles * time)
            assert replay(np.clip(found.u + change, -limit, limit)) < found.reward


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "planar_arm3", "planar_quadrotor"])
def test_a_step_is_the_evaluation_s_control_period(load: Callable[[str], CompiledRobot], name: str) -> None:
    """State and cost, over the seam of angles and at other parameters, inside the limits of the rates."""
    problem = Problem(load(name))
    generator = torch.Generator().manual_seed(1)
    theta = problem.theta * (1.0 + 0.1 * torch.rand(len(problem.theta), generator=generator))
    program = NonlinearProgram(modelgen.load(name, backend="casadi"), theta.double().numpy(), seconds=0.1)
    x = problem.sample_domain(30, generator) * torch.where(problem.clipped, 0.4, 1.0)
    x[::2, problem.continuous] = math.pi - 0.01
    u = (torch.rand(30, len(problem.input_limits), generator=generator) - 0.5) * problem.input_limits
    found = integrate_period(problem, x, u, theta)
    cost = found.state_cost + problem.action_cost.cost(u) * problem.control_step
    assert not problem.at_limit(found.x).any()
    for k in range(30):
        later, its_cost = program.step(x[k].double().numpy(), u[k].double().numpy())
        error = np.asarray(later).ravel() - found.x[k].double().numpy()
        turns = np.round(error / (2.0 * np.pi)) * ~problem.clipped.numpy()
        np.testing.assert_allclose((error - 2.0 * np.pi * turns) / problem.state_limits.numpy(), 0.0, atol=2e-5)
        assert float(its_cost) == pytest.approx(float(cost[k]), rel=2e-4, abs=1e-6)
    if problem.continuous:
        assert bool((found.x[:, problem.continuous[0]] < x[:, problem.continuous[0]] - 6.0).any())  # crossed the seam


def test_costs_are_those_of_wrapped_angles() -> None:
    """The cart-pole's cost has a barrier on the pole's angle, which would punish the second way up."""
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"))
    later, cost = program.step([0.1, -0.4, 0.3, 1.0], [2.0])
    turned, same = program.step([0.1, -0.4 + 2.0 * np.pi, 0.3, 1.0], [2.0])
    assert float(same) == pytest.approx(float(cost), rel=1e-9)
    assert np.asarray(turned - later).ravel() == pytest.approx([0.0, 2.0 * np.pi, 0.0, 0.0], abs=1e-9)


def test_the_state_cost_is_that_of_the_nominal_parameters(tmp_path: Path) -> None:
    """As in the evaluation, where a task may weigh by a parameter that --set changes."""
    text = (SHIPPED / "pendulum.py").read_text().replace("state_cost=(pi", "state_cost=length * (pi")
    (tmp_path / "pendulum.py").write_text(text)
    assert modelgen_main(["build", str(tmp_path / "pendulum.py"), "--directory", str(tmp_path)]) == 0
    x, u, theta = [3.0, 0.0], [0.0], np.array([1.0, 1.3])
    costs = [
        float(NonlinearProgram(modelgen.load("pendulum", backend="casadi", directory=folder), theta).step(x, u)[1])
        for folder in (tmp_path, None)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


def test_ctrl_c_is_no_worse_limit(slider: str) -> None:
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider))
    guess = idle(program)

    def solve_on_and_on() -> None:
        while True:
            program.solve(guess)

    Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        solve_on_and_on()


def test_a_start_that_leaves_the_limits_has_no_solution() -> None:
    """Horizontal and falling at the largest rate: the motor is too weak to keep the rate within its limit."""
    program = NonlinearProgram(moved((np.pi / 2, 8.0)), seconds=0.2)
    assert program.solve(idle(program)) is None
    with pytest.raises(SolverError, match="the mean start has angle_rate beyond its limit of 8 rad/s"):
        NonlinearProgram(moved((np.pi, 8.5)))


def test_guesses_stay_within_the_limits_and_repeat() -> None:
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"), seconds=2.0)
    guesses = random_motions(program, 6, seed=3)
    again = random_motions(program, 6, seed=3)
    ends = set()
    for guess, same in zip(guesses, again, strict=True):
        assert isinstance(guess, Guess)
        assert np.array_equal(guess.x, same.x)
        assert guess.x.shape == (251, 4)
        assert (np.abs(guess.x[:, program.clipped]) <= program.state_limits[program.clipped]).all()
        ends.add(round(float(guess.x[-1, 1]) / np.pi))
    assert ends == {0, 2}  # up by either way round


def test_limit_of_a_run(finished_run: Path, capsys: Capture) -> None:
    assert main(["limit", str(finished_run), "--guesses", "0", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["robot"] == "pendulum"
    assert content["label"].startswith("pendulum rfvi fast")
    assert content["gap"] == pytest.approx(content["limit"] - content["run_return"])
    assert content["gap"] > 0.0
    assert content["guesses"] == 3
    assert -32.0 < content["limit"] < -29.5
    assert content["at_target"] is True


def test_limit_of_a_robot_that_does_not_arrive(slider: str, capsys: Capture) -> None:
    words = ["limit", "slider", "--generated", slider, "--guesses", "1", "--set", "mass=2"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    exact, _ = riccati(np.array([0.5, 0.0]), 2.0, 0.4)
    assert out.startswith(f"slider, mass=2, limit {exact:.2f} (from ")
    assert err.startswith("warning: the best motion found does not end at the target")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pendulm"], "Did you mean `pendulum`"),
        (["pendulum", "--guesses", "-1"], "--guesses is -1"),
        (["pendulum", "--seed", "-1"], "--seed is -1"),
        (["pendulum", "--set", "mas=2"], "Did you mean `mass`"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["limit", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_folder_without_a_run(tmp_path: Path, capsys: Capture) -> None:
    assert main(["limit", str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err
