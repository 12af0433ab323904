"""The best motion from one start: against the Riccati recursion and the evaluation's own rollouts."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
from modelgen.cli import main as modelgen_main
from modelgen.derivation.model_file import SHIPPED
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.oracles.guesses import idle, random_motions, straight
from solver.oracles.starts import design
from solver.oracles.trajectory import NonlinearProgram
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem
from tests.solver.oracles.linear_quadratic import riccati


@pytest.mark.parametrize("mass", [1.3, 0.8])
def test_linear_quadratic_task_matches_the_riccati_recursion(slider: str, mass: float) -> None:
    """From two starts by one program."""
    theta = None if mass == 1.3 else np.array([mass, 0.4])
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider), theta)
    for start in (np.array([0.5, 0.0]), np.array([-0.3, 0.2])):
        exact, inputs, _ = riccati(start, mass, 0.4)
        for guess in (idle(program, start), straight(program, start), *random_motions(program, start, 1, 0)):
            found = program.solve(start, guess)
            assert found is not None
            assert found.reward == pytest.approx(exact, rel=1e-6)
            assert found.u == pytest.approx(inputs, abs=1e-4)


def replay(problem: Problem, start: np.ndarray, inputs: np.ndarray) -> float:
    """The return of the inputs (K, m) by the solver's own integrator."""
    x, total = torch.tensor(start[None], dtype=torch.float32), 0.0
    for row in torch.tensor(inputs, dtype=torch.float32)[:, None]:
        x, state_cost = integrate_period(problem, problem.confine(x), row)
        total -= float(state_cost[0]) + float(problem.action_cost.cost(row)[0]) * problem.control_step
    return total


def test_a_motion_of_the_pendulum_replayed_by_the_evaluation(load: Callable[[str], CompiledRobot]) -> None:
    """The evaluation gives the optimal inputs the same return, and smooth changes of them a lower one."""
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"), seconds=1.0)
    start = np.array([0.4, 0.0])
    found = program.solve(start, straight(program, start))
    assert found is not None
    problem = Problem(load("pendulum"))
    limit = float(problem.input_limits[0])
    assert replay(problem, start, found.u) == pytest.approx(found.reward, abs=1e-3)
    assert replay(problem, start, np.zeros_like(found.u)) < found.reward - 0.5  # the rod falls
    time = np.linspace(0.0, np.pi, len(found.u))[:, None]
    for cycles in range(1, 5):
        for sign in (-1.0, 1.0):
            change = sign * 0.1 * np.sin(cycles * time)
            assert replay(problem, start, np.clip(found.u + change, -limit, limit)) < found.reward


@pytest.mark.parametrize(("name", "seconds"), [("planar_quadrotor", 2.0), ("furuta", 0.4), ("ball_on_beam", 2.0)])
def test_inputs_give_the_same_return_in_the_evaluation(
    name: str, seconds: float, load: Callable[[str], CompiledRobot]
) -> None:
    robot = modelgen.load(name, backend="casadi")
    program, problem = NonlinearProgram(robot, seconds=seconds), Problem(load(name))
    for start in design(robot.metadata, 2):
        found = program.solve(start, straight(program, start)) or program.solve(start, idle(program, start))
        assert found is not None
        assert found.reward < -0.05  # a robot that begins away from its target pays
        assert replay(problem, start, found.u) == pytest.approx(found.reward, rel=0.005)


def test_states_keep_within_their_limits_after_every_integration_step(load: Callable[[str], CompiledRobot]) -> None:
    """The arm of the Furuta pendulum runs towards its limit and is braked before it, between the periods too."""
    robot = modelgen.load("furuta", backend="casadi")
    assert robot.metadata.task.integration_steps == 2
    program, start = NonlinearProgram(robot, seconds=0.3), np.array([1.7, np.pi, 12.0, 0.0])
    found = program.solve(start, idle(program, start))
    assert found is not None
    inner = [np.asarray(program.step(x, u)[2]).ravel() for x, u in zip(found.x, found.u, strict=False)]
    limits = program.state_limits[program.clipped]
    assert (np.abs(found.x[:, program.clipped]) <= limits).all()
    assert (np.abs(inner) <= limits * (1.0 + 1e-6)).all()
    assert np.abs(found.x[:, 0]).max() > 0.999 * limits[0]  # the limit is in the way
    first = torch.tensor(found.x[:1], dtype=torch.float32), torch.tensor(found.u[:1], dtype=torch.float32)
    ends = integrate_period(Problem(load("furuta")), *first).x
    assert ends[0, 0].item() == pytest.approx(found.x[1, 0], abs=1e-4)


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
    inside = ~problem.at_limit(found.x).any(1)  # the evaluation stops states at their limits
    assert int(inside.sum()) > 20
    for k in inside.nonzero()[:, 0].tolist():
        later, its_cost, *_ = program.step(x[k].double().numpy(), u[k].double().numpy())
        error = np.asarray(later).ravel() - found.x[k].double().numpy()
        turns = np.round(error / (2.0 * np.pi)) * ~problem.clipped.numpy()
        np.testing.assert_allclose((error - 2.0 * np.pi * turns) / problem.state_limits.numpy(), 0.0, atol=2e-5)
        assert float(its_cost) == pytest.approx(float(cost[k]), rel=2e-4, abs=1e-6)
    if problem.continuous:
        assert bool((found.x[:, problem.continuous[0]] < x[:, problem.continuous[0]] - 6.0).any())  # crossed the seam


def test_costs_are_those_of_wrapped_angles() -> None:
    """The cart-pole's cost has a barrier on the pole's angle, which would punish the second way up."""
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"))
    later, cost, _ = program.step([0.1, -0.4, 0.3, 1.0], [2.0])
    turned, same, _ = program.step([0.1, -0.4 + 2.0 * np.pi, 0.3, 1.0], [2.0])
    assert float(same) == pytest.approx(float(cost), rel=1e-9)
    assert np.asarray(turned - later).ravel() == pytest.approx([0.0, 2.0 * np.pi, 0.0, 0.0], abs=1e-9)


def test_the_state_cost_is_that_of_the_nominal_parameters(tmp_path: Path) -> None:
    """As in the evaluation, where a task may weigh by a parameter that --set changes."""
    text = (SHIPPED / "pendulum.py").read_text().replace("state_cost=(pi", "state_cost=length * (pi")
    (tmp_path / "pendulum.py").write_text(text)
    assert modelgen_main(["build", str(tmp_path / "pendulum.py"), "--generated", str(tmp_path)]) == 0
    x, u, theta = [3.0, 0.0], [0.0], np.array([1.0, 1.3])
    costs = [
        float(NonlinearProgram(modelgen.load("pendulum", backend="casadi", directory=folder), theta).step(x, u)[1])
        for folder in (tmp_path, None)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@pytest.mark.parametrize(("robot", "hold"), [("cartpole", 10), ("double_pendulum", 1), ("furuta", 1)])
def test_the_hessian_is_the_slope_of_the_gradient(robot: str, hold: int) -> None:
    """Of the Lagrangian with its pull, along random directions; with one and two inputs, steps within a period."""
    program = NonlinearProgram(modelgen.load(robot, backend="casadi"), seconds=0.2, hold=hold)
    slope, jacobian, hessian = (program._solver.get_function(f"nlp_{name}") for name in ("grad_f", "jac_g", "hess_l"))
    random = np.random.default_rng(0)
    w, step = (0.3 * random.normal(size=hessian.size1_in(0)) for _ in range(2))
    p, of_cost = np.append(0.7, random.normal(size=len(w))), 1.3
    multipliers = random.normal(size=hessian.size1_in(3))

    def gradient(at: np.ndarray) -> np.ndarray:
        of_constraints = np.asarray(jacobian(at, p)[1]).T @ multipliers
        return of_cost * np.asarray(slope(at, p)[1]).ravel() + of_constraints

    upper = np.asarray(hessian(w, p, of_cost, multipliers))
    along = (upper + np.triu(upper, 1).T) @ step
    difference = (gradient(w + 1e-5 * step) - gradient(w - 1e-5 * step)) / 2e-5
    assert along == pytest.approx(difference, abs=1e-6 * np.abs(along).max())


@dataclass
class Failing:
    """A solver that finds nothing after so many searches, and then leaves its variables anywhere."""

    solver: Any
    searches: int
    calls: int = 0

    def __call__(self, **given: Any) -> Any:
        result = self.solver(**given)
        self.calls += 1
        return {**result, "x": 1e3 + result["x"], "f": 7.0} if self.calls > self.searches else result

    def stats(self) -> dict[str, Any]:
        success = self.calls <= self.searches
        return {"success": success, "return_status": "Solve_Succeeded" if success else "Maximum_Iterations_Exceeded"}


@pytest.mark.parametrize("searches", [3, 2, 1, 0])
@pytest.mark.slow
def test_a_motion_of_a_search_with_a_pull_is_kept(slider: str, searches: int) -> None:
    """Under a pull towards the guess, here an idle robot, it costs a little more than the optimum."""
    program, start = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider)), np.array([0.5, 0.0])
    best = program.solve(start, idle(program, start))
    program._solver = Failing(program._solver, searches)
    found = program.solve(start, idle(program, start))
    if searches == 0:
        assert found is None
        return
    assert best is not None
    assert found is not None
    later, cost, _ = program.step.map(program.periods)(found.x[:-1].T, found.u.T)
    assert pytest.approx(found.x[1:], abs=1e-6) == np.asarray(later).T  # a motion of the robot
    assert found.reward == pytest.approx(-float(np.asarray(cost).sum()), rel=1e-9)  # without what the pull costs
    assert best.reward - 2.0 < found.reward < best.reward - 1e-6


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_is_no_worse_limit(slider: str) -> None:
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider))
    start = np.array([0.5, 0.0])
    guess = idle(program, start)

    def solve_on_and_on() -> None:
        while True:
            program.solve(start, guess)

    Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        solve_on_and_on()


def test_a_start_that_leaves_the_limits_has_no_solution() -> None:
    """Horizontal and falling at the largest rate: the motor is too weak to keep the rate within its limit."""
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"), seconds=0.2)
    start = np.array([np.pi / 2, 8.0])
    assert program.solve(start, idle(program, start)) is None
    beyond = np.array([np.pi, 8.5])
    with pytest.raises(SolverError, match="the start has angle_rate beyond its limit of 8 rad/s"):
        program.solve(beyond, idle(program, beyond))


def test_a_search_without_patience_finds_nothing() -> None:
    """IPOPT looks at its clock in every iteration, of which this search takes more than one."""
    robot, start = modelgen.load("pendulum", backend="casadi"), np.array([3.0, 0.0])
    patient, hasty = (NonlinearProgram(robot, seconds=0.5, patience=each) for each in (60.0, 1e-6))
    assert patient.solve(start, straight(patient, start)) is not None
    assert hasty.solve(start, straight(hasty, start)) is None
