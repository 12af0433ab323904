"""References: every error is measured from the target of its own row, in each place that knows a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation.statistics import ParameterRange, make_box
from solver.game import Game
from solver.game.adversaries import Modulation, make_adversaries
from solver.game.policies import Hold
from solver.gym.environment import RobotEnv, RobotVectorEnv
from solver.local.basin import find_basin, near_target, shell
from solver.observer import make_sensing
from solver.observer.observability import estimated_parameters
from solver.observer.rest import largest_disturbance
from solver.plants import make_plant
from solver.plants.outcome import Controller, Jumps, controller, rollouts, settling_periods, succeeded
from solver.problem import Problem
from solver.problem.parameters import resolve
from solver.training.settings import Settings
from solver.training.solution import make_ensemble
from solver.value.family import BasinFamily
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble
from tests.closeness import assert_close
from tests.solver.references import lean, motor_arm, slide

pytestmark = pytest.mark.slow  # its fixtures train, or fit the basins of a family

Made = tuple[Problem, Ensemble]


def problem_of(robot: CompiledRobot, given: Any = ()) -> Problem:
    return Problem(robot, given=resolve(robot, given))


def networks(problem: Problem) -> Ensemble:
    """Untrained networks with the basins of a problem."""
    basin = find_basin(problem, Hold(0.0))
    assert isinstance(basin, BasinFamily)
    ensemble = make_ensemble(problem.robot, Settings(members=2, layers=2, width=16), problem.context)
    ensemble.place(basin)
    return ensemble


@pytest.fixture(scope="module")
def sliding() -> Made:
    problem = problem_of(slide())
    return problem, networks(problem)


@pytest.fixture(scope="module")
def leaning() -> Made:
    problem = problem_of(lean())
    return problem, networks(problem)


def regulated(problem: Problem, ensemble: Ensemble) -> Controller:
    """The policy of the quadratic form in the whole domain."""
    basin = ensemble.frame.basin
    return controller(problem, lambda rows: basin.at(rows).quadratic(rows[:, :2])[:2])


def riccati(problem: Problem, angle: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """P (2, 2) by SciPy, and the gain K (2,) of u = -K e, of a point mass that the force moves."""
    rho = problem.discount_rate
    if problem.robot.name == "slide":
        A, B, Q, R = np.array([[0, 1], [0, 0]]), np.array([[0], [1 / 1.3]]), np.diag([2, 0.3]), np.array([[0.05]])
    else:
        A = np.array([[0, 1], [9.81 * math.cos(angle), -0.1]])
        B, Q, R = np.array([[0], [1]]), np.diag([math.pi**2 / 4, 0.1]), np.array([[0.02]])
    P = solve_continuous_are(A - rho / 2 * np.eye(2), B, Q, R)
    return P, (np.linalg.inv(R) @ B.T @ P)[0]


def test_the_quadratic_form_and_the_policy_are_those_of_the_shifted_state(sliding: Made) -> None:
    """A mass on a rail is alike everywhere: V(x, c) and u(x, c) depend on x - goal only, as SciPy's solution says."""
    problem, ensemble = sliding
    P, K = riccati(problem)
    goal = torch.linspace(-1.0, 1.0, 9)
    e = torch.tensor([0.05, -0.1]).expand(9, 2)
    rows = torch.cat([e + torch.stack([goal, 0.0 * goal], 1), goal[:, None]], 1)
    assert bool(ensemble.frame.at(rows)[2].quadratic(rows[:, :2])[2].all())
    value, gradient = FrozenValue(ensemble)(rows)
    exact = -np.einsum("i,ij,j", e[0], P, e[0])
    np.testing.assert_allclose(value, exact, rtol=2e-3)
    np.testing.assert_allclose(gradient, np.tile(-2 * P @ e[0].numpy(), (9, 1)), rtol=2e-3)
    u, _ = controller(problem, FrozenValue(ensemble))(rows)
    np.testing.assert_allclose(u[:, 0], -K @ e[0].numpy(), rtol=2e-3)


def test_the_networks_of_a_robot_that_is_alike_everywhere_need_to_learn_nothing_about_its_reference(
    sliding: Made,
) -> None:
    """Where the weights of the context are zero, V and its gradient are those of the shifted state, also far away."""
    problem, ensemble = sliding
    for member in ensemble.factors:
        member.weights[0].data[2:] = 0.0
    rows = problem.sample_domain(100, torch.Generator().manual_seed(0))
    at_zero = torch.cat([rows[:, :2] - problem.targets(rows), torch.zeros(100, 1)], 1)
    value = FrozenValue(ensemble)
    for moved, still in zip(value(rows), value(at_zero), strict=True):
        assert_close(moved, still, 10)


@pytest.mark.parametrize("name", ["sliding", "leaning"])
def test_all_forms_of_the_value_function_agree(request: pytest.FixtureRequest, name: str) -> None:
    problem, ensemble = request.getfixturevalue(name)
    rows = problem.sample_domain(200, torch.Generator().manual_seed(1))
    rows[:50] = near_target(problem, ensemble.frame.basin, 50, torch.Generator().manual_seed(2))
    exact = ensemble.double()
    at = rows.double().requires_grad_()
    value = exact(at)
    (slope,) = torch.autograd.grad(value.sum(), at)
    found, gradient = FrozenValue(exact)(rows.double())
    torch.testing.assert_close(found, value.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, slope[:, :2], rtol=1e-7, atol=1e-9)
    ensemble.float()
    at_target = problem.sample_targets(20, torch.Generator().manual_seed(3))
    assert_close(ensemble(at_target).detach(), torch.zeros(20), 10)
    assert float(ensemble(rows).detach().max()) <= 0.0
    c = torch.tensor([0.4])
    rows[:, 2:] = c
    single = ensemble.told_that(c)
    for one, other in zip(FrozenValue(single)(rows[:, :2]), FrozenValue(ensemble)(rows), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_every_target_has_its_trim_and_its_riccati_solution(leaning: Made) -> None:
    """The weight pulls with m g l sin(angle); SciPy solves the equation at every angle."""
    problem, ensemble = leaning
    rows = problem.sample_targets(20, torch.Generator().manual_seed(5))
    angle = 0.6 * rows[:, 2]
    assert_close(problem.targets(rows), torch.stack([angle, 0.0 * angle], 1))
    _, theta = problem.split(rows)
    assert theta is not None
    np.testing.assert_allclose(
        problem.trim_of(theta)[:, 0].numpy(), -9.81 * np.sin(angle.numpy()), rtol=1e-4, atol=1e-4
    )
    u, cost = controller(problem, FrozenValue(ensemble))(rows)
    np.testing.assert_allclose(u[:, 0].numpy(), -9.81 * np.sin(angle.numpy()), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(cost, 0.0, atol=1e-6)
    P = ensemble.frame.basin.at(rows).cost.numpy()
    for one, at in zip(P, angle.tolist(), strict=True):
        np.testing.assert_allclose(one, riccati(problem, at)[0], rtol=5e-3)


@pytest.mark.parametrize("name", ["sliding", "leaning"])
def test_states_around_the_target_surround_the_target_of_their_row(request: pytest.FixtureRequest, name: str) -> None:
    problem, ensemble = request.getfixturevalue(name)
    rows = shell(problem, ensemble.frame.basin, 400)
    basin = ensemble.frame.basin.at(rows)
    torch.testing.assert_close(
        basin.distance(rows[:, :2]), torch.as_tensor(basin.level).expand(400), rtol=2e-3, atol=1e-5
    )
    error = rows[:, :2] - problem.targets(rows)
    assert bool((error.mean(0).abs() < 0.2 * error.std(0)).all())


def test_success_and_cost_are_those_of_the_target_of_the_row(sliding: Made) -> None:
    problem, _ = sliding
    rows = torch.tensor([[0.7, 0.0, 0.7], [0.0, 0.0, 0.7], [0.0, 0.0, 0.0], [-0.7, 0.0, 0.7]])
    assert succeeded(problem, rows.expand(60, -1, -1)).tolist() == [True, False, True, False]
    x, theta = problem.split(rows)
    assert theta is not None
    assert_close(problem.state_cost(x, theta), 2.0 * torch.tensor([0.0, 0.49, 0.0, 1.96]))
    moved = Problem(slide().with_nominal([0.7, 1.3]))
    assert succeeded(moved, x.expand(60, -1, -1)).tolist() == [True, False, False, False]
    assert_close(moved.state_cost(x), problem.state_cost(x, torch.tensor([[0.7, 1.3]]).expand(4, -1)))


def test_a_value_step_is_that_of_the_robot_with_this_target_and_no_adversary_moves_it(leaning: Made) -> None:
    told, _ = leaning
    rows = told.sample_domain(5, torch.Generator().manual_seed(3))
    x, theta = told.split(rows)
    assert theta is not None

    def step(problem: Problem, at: torch.Tensor, radii: dict[str, float]) -> tuple[Any, ...]:
        game = Game(problem, make_adversaries(radii), limit_cost=1.0)
        value = lambda rows: (-rows[:, :2].square().sum(1), -2.0 * rows[:, :2])  # noqa: E731
        policy = Hold(1.0).policy(problem, value, 2)
        move = game.move(at, value(at)[1], policy, Modulation("stationary", 0.1, torch.Generator().manual_seed(0)))
        return (*game.advance(at, move, 2), move)

    ends, costs, _ = step(told, rows, {"action": 0.1})
    for i in range(len(rows)):
        single = Problem(lean().with_nominal(theta[i].tolist()))
        single.hold(told.trim_of(theta)[i])
        end, cost, _ = step(single, x[i : i + 1], {"action": 0.1})
        torch.testing.assert_close(ends[i, :2], end[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(costs[i], cost[0], rtol=1e-4, atol=1e-6)
    *_, move = step(told, rows, {"parameters": 0.2})
    column = told.robot.parameter_names.index("lean")
    assert_close(move.disturbed.theta[:, column], theta[:, column])
    assert not torch.equal(move.disturbed.theta, theta)


def test_a_jump_changes_target_cost_and_success_at_its_time(sliding: Made) -> None:
    problem, ensemble = sliding
    act, periods = regulated(problem, ensemble), 150
    rows = torch.tensor([[0.0, 0.0, -0.5], [0.0, 0.0, 0.8], [0.0, 0.0, 0.2]])
    contexts = torch.tensor([[[0.5], [0.8], [-0.9]], [[-0.1], [0.8], [0.9]]])
    plant = make_plant("nominal", problem, problem.split(rows)[1], (), 0)
    result = rollouts(problem, act, rows, plant, jumps=Jumps(periods, contexts))
    assert len(result.u) == 3 * periods
    goals = torch.cat([rows[None, :, 2], contexts[..., 0]])
    for part in range(3):
        end = result.x[(part + 1) * periods]
        torch.testing.assert_close(end[:, 0], goals[part], atol=0.02, rtol=0.0)
        assert torch.equal(end[:, 2], goals[part])
    assert result.success.tolist() == [True] * 3
    alone, paid, x = [], torch.zeros(3), rows
    for part in range(3):  # the same motion as three rollouts, one after the other
        x = torch.cat([x[:, :2], goals[part][:, None]], 1)
        alone.append(rollouts(problem, act, x, seconds=periods * problem.control_step))
        x, paid = alone[-1].x[-1], paid + alone[-1].state_reward
    assert_close(result.x[-1], x, 3 * periods)
    assert_close(result.state_reward, paid, 3 * periods)
    missed = contexts.clone()
    missed[0, 0, 0] = 2.0  # beyond what the policy knows, so that it is not reached
    again = rollouts(
        problem,
        lambda at: act(torch.cat([at[:, :2], at[:, 2:].clamp(-1.0, 1.0)], 1)),
        rows,
        make_plant("nominal", problem, problem.split(rows)[1], (), 0),
        jumps=Jumps(periods, missed),
    )
    assert again.success.tolist() == [False, True, True]


@pytest.mark.parametrize("longest", [None, 2])
def test_an_observer_takes_the_jump_too(leaning: Made, longest: int | None) -> None:
    problem, ensemble = leaning
    rows = torch.tensor([[-0.6, 0.0, -1.0], [0.6, 0.0, 1.0]])
    plant = make_plant("nominal", problem, problem.split(rows)[1], (), 0)
    jumps = Jumps(100, -rows[None, :, 2:])
    act = regulated(problem, ensemble)
    result = rollouts(problem, act, rows, plant, observed=True, longest_delay=longest, jumps=jumps)
    torch.testing.assert_close(result.x[-1, :, 0], torch.tensor([0.6, -0.6]), atol=0.02, rtol=0.0)
    assert result.success.tolist() == [True, True]


def test_nobody_estimates_a_reference_and_it_disturbs_nothing(leaning: Made) -> None:
    problem, _ = leaning
    sensing = make_sensing(problem)
    assert estimated_parameters(problem, sensing, ["all"]) == [0]
    with pytest.raises(SolverError, match="estimate lean"):
        estimated_parameters(problem, sensing, ["lean"])
    assert_close(largest_disturbance(problem, [0]), 0.1 * problem.input_limits)


def test_references_are_given_without_being_asked_for_within_a_smaller_range_if_wanted() -> None:
    assert [entry.name for entry in resolve(slide(), ())] == ["goal"]
    assert [entry.name for entry in resolve(slide(), ["mass"])] == ["goal", "mass"]
    problem = problem_of(slide(), {"goal": (-0.1, 0.6)})
    rows = problem.sample_domain(200, torch.Generator().manual_seed(0))
    targets = problem.targets(rows)[:, 0]
    assert -0.1 <= float(targets.min()) < -0.05
    assert 0.55 < float(targets.max()) <= 0.6
    assert_close(targets, problem.split(rows)[1][:, 0])  # type: ignore[index]
    ensemble = networks(problem)
    assert_close(ensemble(problem.sample_targets(5, torch.Generator().manual_seed(1))).detach(), torch.zeros(5), 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: resolve(lean(torque=3), ()),
            r"no input within the limits holds the target of lean with lean = -?0\.\d",
        ),
        (
            lambda: resolve(
                lean(torque=9.81 * math.sin(0.6)), ()
            ),  # at the end of the range it takes all of the torque
            r"no input within the limits holds the target of lean with lean = -?0\.[56]",
        ),
        (lambda: resolve(slide(), {"goal": (-2.0, 2.0)}), r"goal=-2:2 exceeds the bounds of the model file, -1 to 1 m"),
        (lambda: resolve(motor_arm(), ["mass", "length"]), "held by another current .* does not change linearly"),
        (lambda: resolve(motor_arm(lean=True), ()), "does not change linearly .* Lower the limit of lean"),
        (lambda: resolve(slide(), ["gaol"]), "no parameter 'gaol'.*goal"),
        (
            lambda: make_box(Problem(slide()), [ParameterRange("goal", -0.5, 0.5, 3, True)]),
            "goal is a reference, which the policy is always told",
        ),
    ],
)
def test_ranges_and_targets_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        make()


def test_the_current_that_holds_an_arm_follows_its_mass() -> None:
    """Current and voltage by hand; P of the basin by SciPy, of a robot that is linearised by hand at the same mass."""
    problem = problem_of(motor_arm(), {"mass": (0.8, 1.2)})
    mass = torch.tensor([0.8, 0.9, 1.2])
    theta = torch.tensor([1.0, 0.5]).repeat(3, 1)
    theta[:, 0] = mass
    targets, u = problem.targets_of(theta), problem.trim_of(theta)
    np.testing.assert_allclose(targets[:, 2], 9.81 * mass, rtol=1e-5)
    np.testing.assert_allclose(u[:, 0], 0.5 * targets[:, 2], rtol=1e-4)
    assert float(problem.robot.dynamics(targets, u, theta).abs().max()) < 1e-3
    assert_close(problem.robot.with_nominal([1.2, 0.5]).metadata.task.target[2], float(targets[2, 2]))
    basin, rho = find_basin(problem, Hold(0.0)), problem.discount_rate
    assert isinstance(basin, BasinFamily)
    for kg, form in zip(mass.tolist(), basin.at(problem.told(targets, theta)).cost, strict=True):
        A = np.array([[0, 1, 0], [0, 0, 0.5 / (kg * 0.25)], [0, -10, -10]])
        P = solve_continuous_are(A - rho / 2 * np.eye(3), np.array([[0], [0], [20]]), np.diag([1, 0.1, 0]), [[0.01]])
        np.testing.assert_allclose(form, P, rtol=0.02, atol=0.01 * np.abs(P).max())


def test_starts_may_move_with_the_reference(sliding: Made) -> None:
    problem, _ = sliding
    rows = problem.sample_starts(300, torch.Generator().manual_seed(0))
    assert abs(float(torch.corrcoef(rows[:, [0, 2]].T)[0, 1])) < 0.2  # this one's starts do not
    assert settling_periods(problem) < 50


@pytest.mark.parametrize("observation", ["features", "state"])
def test_an_environment_shows_the_reference_and_pays_for_the_distance_to_it(observation: Any) -> None:
    directory = str(slide().folder.parent)
    make = partial(RobotEnv, "slide", generated=directory, observation=observation, seconds=0.2)
    env = make()
    seen, _ = env.reset(seed=3)
    assert env.observation_space.shape == (3,)
    goal = float(seen[2])
    assert -1.0 <= goal <= 1.0
    s = float(seen[0]) * (2.0 if observation == "features" else 1.0)
    _, reward, *_ = env.step(np.zeros(1, np.float32))
    assert reward == pytest.approx(-2.0 * (s - goal) ** 2 / 50, rel=0.05)
    many = RobotVectorEnv("slide", 64, generated=directory)
    goals = many.reset(seed=0)[0][:, 2]
    assert goals.min() < -0.8 < 0.8 < goals.max()


def test_an_environment_pays_nothing_for_what_holds_the_target_of_its_episode() -> None:
    environment = RobotVectorEnv("lean", 3, generated=str(lean().folder.parent), given=["mass"])
    environment.reset(seed=0)
    episodes, problem = environment.episodes, environment.problem
    assert problem.moving_trim
    episodes.x = problem.at_target(episodes.rows)
    u = problem.trim_of(episodes.theta)
    assert float(u.abs().min()) > 0.1
    _, reward, *_ = environment.step(((u - problem.input_middle) / problem.input_limits).numpy())
    np.testing.assert_allclose(reward, 0.0, atol=1e-6)
