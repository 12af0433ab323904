"""Best motion from one start, compared with the Riccati recursion and with the integrator of the evaluation."""

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
from sympy import sin

import modelgen
from modelgen import Quadratic, Robot
from modelgen.cli import main as modelgen_main
from modelgen.derivation.model_file import SHIPPED
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.oracles.limit import design
from solver.oracles.search import idle, random_motions, straight
from solver.oracles.trajectory import NonlinearProgram
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from tests.solver.oracles.linear_quadratic import riccati


@pytest.mark.parametrize("mass", [1.3, 0.8])
@pytest.mark.slow
def test_linear_quadratic_task_matches_the_riccati_recursion(slider: str, mass: float) -> None:
    """One program solves for two starts."""
    theta = None if mass == 1.3 else np.array([mass, 0.4])
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider), theta)
    for start in (np.array([0.5, 0.0]), np.array([-0.3, 0.2])):
        exact, inputs, _ = riccati(start, mass, 0.4)
        for guess in (idle(program, start), straight(program, start), *random_motions(program, start, 1, 0)):
            motion = program.solve(start, guess)
            assert motion is not None
            assert motion.reward == pytest.approx(exact, rel=1e-6)
            assert motion.u == pytest.approx(inputs, abs=1e-4)


def replay(problem: Problem, start: np.ndarray, inputs: np.ndarray) -> float:
    """Return of the inputs (K, m) by the integrator of the evaluation."""
    x, total = torch.tensor(start[None], dtype=torch.float32), 0.0
    for row in torch.tensor(inputs, dtype=torch.float32)[:, None]:
        x, state_cost = integrate_period(problem, problem.confine(x), row)
        total -= float(state_cost[0]) + float(problem.action_cost.cost(row)[0]) * problem.control_step
    return total


@pytest.mark.slow
def test_optimal_inputs_have_a_higher_return_in_the_evaluation_than_changed_inputs(
    load: Callable[[str], CompiledRobot],
) -> None:
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"), seconds=1.0)
    start = np.array([0.4, 0.0])
    motion = program.solve(start, straight(program, start))
    assert motion is not None
    problem = Problem(load("pendulum"))
    limit = float(problem.input_limits[0])
    assert replay(problem, start, motion.u) == pytest.approx(motion.reward, abs=1e-3)
    assert replay(problem, start, np.zeros_like(motion.u)) < motion.reward - 0.5  # the rod falls
    time = np.linspace(0.0, np.pi, len(motion.u))[:, None]
    for cycles in range(1, 5):
        for sign in (-1.0, 1.0):
            change = sign * 0.1 * np.sin(cycles * time)
            assert replay(problem, start, np.clip(motion.u + change, -limit, limit)) < motion.reward


@pytest.mark.parametrize(("name", "seconds"), [("planar_quadrotor", 2.0), ("furuta", 0.4), ("ball_on_beam", 2.0)])
@pytest.mark.slow
def test_optimal_inputs_have_the_same_return_in_the_evaluation(
    name: str, seconds: float, load: Callable[[str], CompiledRobot]
) -> None:
    robot = modelgen.load(name, backend="casadi")
    program, problem = NonlinearProgram(robot, seconds=seconds), Problem(load(name))
    for start in design(robot.metadata, 2):
        motion = program.solve(start, straight(program, start)) or program.solve(start, idle(program, start))
        assert motion is not None
        assert motion.reward < -0.05  # a robot away from its target has a cost
        assert replay(problem, start, motion.u) == pytest.approx(motion.reward, rel=0.005)


def test_states_are_within_their_limits_after_every_integration_step(load: Callable[[str], CompiledRobot]) -> None:
    """The arm of the Furuta pendulum moves towards its limit and must brake before it, also within the periods."""
    robot = modelgen.load("furuta", backend="casadi")
    assert robot.metadata.task.integration_steps == 2
    program, start = NonlinearProgram(robot, seconds=0.3), np.array([1.7, np.pi, 12.0, 0.0])
    motion = program.solve(start, idle(program, start))
    assert motion is not None
    inner = [np.asarray(program.step(x, u)[2]).ravel() for x, u in zip(motion.x, motion.u, strict=False)]
    limits = program.state_limits[program.clipped]
    assert (np.abs(motion.x[:, program.clipped]) <= limits).all()
    assert (np.abs(inner) <= limits * (1.0 + 1e-6)).all()
    assert np.abs(motion.x[:, 0]).max() > 0.999 * limits[0]  # the limit is active
    first = torch.tensor(motion.x[:1], dtype=torch.float32), torch.tensor(motion.u[:1], dtype=torch.float32)
    ends = integrate_period(Problem(load("furuta")), *first).x
    assert ends[0, 0].item() == pytest.approx(motion.x[1, 0], abs=1e-4)


@pytest.mark.parametrize(
    "name", ["pendulum", "cartpole", "furuta", "planar_arm3", "planar_quadrotor", "satellite", "quadrotor"]
)
def test_step_of_the_program_is_a_control_period_of_the_evaluation(
    load: Callable[[str], CompiledRobot], name: str
) -> None:
    """State and cost, across the seam of angles, with other parameters, within the limits of the rates."""
    problem = Problem(load(name))
    generator = torch.Generator().manual_seed(1)
    theta = problem.theta * (1.0 + 0.1 * torch.rand(len(problem.theta), generator=generator))
    program = NonlinearProgram(modelgen.load(name, backend="casadi"), theta.double().numpy(), seconds=0.1)
    x = problem.sample_domain(30, generator) * torch.where(problem.clipped, 0.4, 1.0)
    x[::2, problem.continuous] = math.pi - 0.01
    u = (torch.rand(30, len(problem.input_limits), generator=generator) - 0.5) * problem.input_limits
    motion = integrate_period(problem, x, u, theta)
    cost = motion.state_cost + problem.action_cost.cost(u) * problem.control_step
    inside = ~problem.at_limit(motion.x).any(1)  # the evaluation clips states at their limits
    assert int(inside.sum()) > 20
    for k in inside.nonzero()[:, 0].tolist():
        later, its_cost, *_ = program.step(x[k].double().numpy(), u[k].double().numpy())
        error = np.asarray(later).ravel() - motion.x[k].double().numpy()
        turns = np.round(error / (2.0 * np.pi)) * ~problem.clipped.numpy()
        np.testing.assert_allclose((error - 2.0 * np.pi * turns) / problem.state_limits.numpy(), 0.0, atol=2e-5)
        assert float(its_cost) == pytest.approx(float(cost[k]), rel=2e-4, abs=1e-6)
    if problem.continuous:
        assert bool((motion.x[:, problem.continuous[0]] < x[:, problem.continuous[0]] - 6.0).any())  # crossed the seam


def rigid(kind: str, limit: float | None = None, weight: float = 1.0) -> CompiledRobot:
    """A body that one torque turns about its x axis: a ball joint, or a hinge with the same cost."""
    robot = Robot(f"rigid_{kind}", "A body that turns")
    torque = robot.input("torque", 0.5, "N m")
    if kind == "ball":
        ball = robot.ball("attitude", rate_limit=2, limit=limit)
        robot.link("body", ball, inertia=(1.0, 1.4, 0.8))
        robot.apply(ball.turn[0], torque)
        cost = 2 * ball.away().dot(ball.away()) + sum(rate**2 for rate in ball.rate) / 2
    else:
        angle = robot.revolute("angle", limit=3, rate_limit=2)
        robot.link("body", angle, axis="x", inertia=(1.0, 1.4, 0.8))
        robot.apply(angle, torque)
        cost = 2 * (2 * sin(angle / 2)) ** 2 + angle.rate**2 / 2
    robot.task(
        state_cost=cost, action_cost=Quadratic(weight), start={}, horizon=4, weight_at_horizon=0.5, control_rate=10
    )
    return modelgen.compile(robot, backend="casadi")


@pytest.mark.slow
def test_a_rotation_about_one_axis_has_the_optimum_of_a_hinge() -> None:
    ball, hinge = NonlinearProgram(rigid("ball")), NonlinearProgram(rigid("hinge"))
    turned = np.array([np.cos(0.6), np.sin(0.6), 0.0, 0.0, 0.2, 0.0, 0.0])
    one = ball.solve(turned, straight(ball, turned))
    other = hinge.solve(np.array([1.2, 0.2]), straight(hinge, np.array([1.2, 0.2])))
    assert one is not None
    assert other is not None
    assert one.reward == pytest.approx(other.reward, rel=1e-5)
    np.testing.assert_allclose(one.u, other.u, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(one.x[:, :4], axis=1), 1.0, atol=1e-6)


@pytest.mark.slow
def test_a_rotation_stays_within_its_limit() -> None:
    """Torques are dear, so that the body would turn on if it could."""
    start = np.array([np.cos(0.25), np.sin(0.25), 0.0, 0.0, 0.3, 0.0, 0.0])
    largest = []
    for limit in (0.6, None):
        program = NonlinearProgram(rigid("ball", limit, weight=50.0))
        motion = program.solve(start, straight(program, start))
        assert motion is not None
        largest.append(2.0 * np.arccos(np.abs(motion.x[:, 0]).min()))
    assert largest[0] == pytest.approx(0.6, abs=1e-4)
    assert largest[1] > 0.65


def test_cost_is_computed_from_wrapped_angles() -> None:
    """The cart-pole's cost has a barrier on the pole's angle, which would block the second way up."""
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"))
    later, cost, *_ = program.step([0.1, -0.4, 0.3, 1.0], [2.0])
    turned, same, *_ = program.step([0.1, -0.4 + 2.0 * np.pi, 0.3, 1.0], [2.0])
    assert float(same) == pytest.approx(float(cost), rel=1e-9)
    assert np.asarray(turned - later).ravel() == pytest.approx([0.0, 2.0 * np.pi, 0.0, 0.0], abs=1e-9)


@pytest.mark.slow
def test_state_cost_uses_the_nominal_parameters(tmp_path: Path) -> None:
    """As in the evaluation, also if the state cost of the task depends on a parameter that --set changes."""
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
def test_hessian_of_the_lagrangian_agrees_with_differences_of_its_gradient(robot: str, hold: int) -> None:
    """Along random directions, with a pull, with one and two inputs, and with steps within a period."""
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
    """Solver that fails after a number of calls, and then returns arbitrary variables."""

    solver: Any
    searches: int
    calls: int = 0

    def __call__(self, **arguments: Any) -> Any:
        result = self.solver(**arguments)
        self.calls += 1
        return {**result, "x": 1e3 + result["x"], "f": 7.0} if self.calls > self.searches else result

    def stats(self) -> dict[str, Any]:
        success = self.calls <= self.searches
        return {"success": success, "return_status": "Solve_Succeeded" if success else "Maximum_Iterations_Exceeded"}


@pytest.mark.parametrize("searches", [3, 2, 1, 0])
@pytest.mark.slow
def test_motion_of_the_last_successful_solve_is_kept(slider: str, searches: int) -> None:
    """With a pull towards the guess, an idle robot, it costs a little more than the optimum."""
    program, start = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider)), np.array([0.5, 0.0])
    best = program.solve(start, idle(program, start))
    program._solver = Failing(program._solver, searches)
    motion = program.solve(start, idle(program, start))
    if searches == 0:
        assert motion is None
        return
    assert best is not None
    assert motion is not None
    later, cost, *_ = program.step.map(program.periods)(motion.x[:-1].T, motion.u.T)
    assert pytest.approx(motion.x[1:], abs=1e-6) == np.asarray(later).T  # a motion of the robot
    assert motion.reward == pytest.approx(-float(np.asarray(cost).sum()), rel=1e-9)  # without the cost of the pull
    assert best.reward - 2.0 < motion.reward < best.reward - 1e-6


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_interrupts_a_search(slider: str) -> None:
    program = NonlinearProgram(modelgen.load("slider", backend="casadi", directory=slider))
    start = np.array([0.5, 0.0])
    guess = idle(program, start)

    def solve_without_end() -> None:
        while True:
            program.solve(start, guess)

    Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        solve_without_end()


def test_start_from_which_limits_cannot_be_kept_has_no_solution() -> None:
    """Horizontal and falling at the largest rate: the motor is too weak to keep the rate within its limit."""
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"), seconds=0.2)
    start = np.array([np.pi / 2, 8.0])
    assert program.solve(start, idle(program, start)) is None


def test_start_beyond_a_limit_is_an_error() -> None:
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"), seconds=0.2)
    beyond = np.array([np.pi, 8.5])
    with pytest.raises(SolverError, match=r"angle_rate 8\.5.* 8 rad/s"):
        program.solve(beyond, idle(program, beyond))


def test_search_without_patience_has_no_solution() -> None:
    """IPOPT reads its clock in every iteration, of which this search needs more than one."""
    robot, start = modelgen.load("pendulum", backend="casadi"), np.array([3.0, 0.0])
    patient, hasty = (NonlinearProgram(robot, seconds=0.5, patience=patience) for patience in (60.0, 1e-6))
    assert patient.solve(start, straight(patient, start)) is not None
    assert hasty.solve(start, straight(hasty, start)) is None
