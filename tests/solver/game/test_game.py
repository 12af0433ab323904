"""Moves of both players, compared with brute force over inputs and admissible sets; steps, compared with NumPy loops;
radii of a Wiener process, compared with the variance of a random walk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game import ClosedFormPolicy, Game, Move
from solver.game.adversaries import (
    ActionAdversary,
    Disturbed,
    Modulation,
    ObservationAdversary,
    ParameterAdversary,
    StateAdversary,
    ToldAdversary,
    make_adversaries,
)
from solver.observer.observability import remaining_error
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.integrator import integrate_period
from tests.closeness import assert_close

Load = Callable[[str], CompiledRobot]
ROBOTS = ("pendulum", "furuta", "double_pendulum")
robots = pytest.mark.parametrize("name", ROBOTS)
RADII = {"state": 0.03, "action": 0.2, "observation": 0.04, "parameters": 0.15}
ADVERSARIES = make_adversaries(RADII)
STATE, ACTION, OBSERVATION = StateAdversary(0.03), ActionAdversary(0.2), ObservationAdversary(0.04)
PERIOD = 0.032  # s, of a value step


def sampled(game: Game, size: int = 12) -> tuple[Tensor, Tensor]:
    """States (size, n), and costates of the size that a trained V has."""
    generator = torch.Generator().manual_seed(3)
    x = game.problem.sample_domain(size, generator)
    return x, torch.randn(size, x.shape[1], generator=generator) * 3.0 / game.problem.state_limits


def stationary() -> Modulation:
    """Fixed radii."""
    return Modulation("stationary", PERIOD, torch.Generator())


def played(game: Game) -> tuple[Tensor, Tensor, Move]:
    """States, costates and the move at them."""
    x, costate = sampled(game)
    return x, costate, game.move(x, costate, ClosedFormPolicy(game.problem), stationary())


def sphere(dimension: int, size: int = 4000) -> np.ndarray:
    """Random unit vectors (size, dimension), followed by +-e_i."""
    draw = np.random.default_rng(0).standard_normal((size, dimension))
    return np.concatenate([draw / np.linalg.norm(draw, axis=1, keepdims=True), np.eye(dimension), -np.eye(dimension)])


def hamiltonian(robot: CompiledRobot, x: np.ndarray, u: np.ndarray, costate: np.ndarray, theta: np.ndarray) -> float:
    """Hamiltonian costate . (a + B u) at one state, in float64."""
    a, control_matrix = robot.affine_dynamics(x[None], theta)
    return float(costate @ (a[0] + control_matrix[0] @ u))


def slope(function: Callable[[np.ndarray], float], at: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Gradient by central differences with steps 1e-5 * size."""
    steps = np.diag(1e-5 * size)
    return np.array([(function(at + s) - function(at - s)) / (2.0 * s.sum()) for s in steps])


@robots
def test_policy_maximises_the_hamiltonian_over_a_grid_of_inputs(load: Load, load64: Load, name: str) -> None:
    game, robot = Game(Problem(load(name))), load64(name)
    x, costate = sampled(game, 6)
    u, cost, _ = ClosedFormPolicy(game.problem).respond(x, costate)
    torch.testing.assert_close(cost, game.problem.action_cost.cost(u), rtol=1e-4, atol=1e-6)
    axes = [torch.linspace(-limit, limit, 301) for limit in game.problem.input_limits.tolist()]
    grid = torch.cartesian_prod(*axes).reshape(-1, len(axes))
    grid_cost = game.problem.action_cost.cost(grid).double().numpy()
    for i in range(len(x)):
        a, control_matrix = robot.affine_dynamics(x[i : i + 1].double().numpy())
        p = costate[i].double().numpy()
        objective = p @ a[0] + grid.double().numpy() @ (control_matrix[0].T @ p) - grid_cost
        reached = p @ (a[0] + control_matrix[0] @ u[i].double().numpy()) - float(cost[i])
        scale = np.abs(objective).max()
        assert reached >= objective.max() - 1e-5 * scale
        best = grid[int(objective.argmax())]
        assert bool(((u[i] - best).abs() <= 2.0 * game.problem.input_limits / 150.0).all())


@robots
def test_state_and_action_adversaries_are_the_worst_on_their_spheres(load: Load, load64: Load, name: str) -> None:
    game, robot = Game(Problem(load(name)), ADVERSARIES), load64(name)
    x, costate, move = played(game)
    for i in range(len(x)):
        p = costate[i].double().numpy()
        worst = float(p @ move.choices["state"][i].double().numpy())
        assert np.linalg.norm(move.choices["state"][i]) == pytest.approx(RADII["state"] * PERIOD, rel=1e-5)
        assert (RADII["state"] * PERIOD * sphere(len(p)) @ p).min() >= worst - 1e-6 * abs(worst)
        u, xi = move.u[i].double().numpy(), move.choices["action"][i].double().numpy()
        assert np.linalg.norm(xi) == pytest.approx(RADII["action"], rel=1e-5)
        _, control_matrix = robot.affine_dynamics(x[i : i + 1].double().numpy())
        gain = sphere(len(u)) @ (control_matrix[0].T @ p)
        worst = float(xi @ control_matrix[0].T @ p)
        assert RADII["action"] * gain.min() >= worst - 1e-4 * abs(worst)


@robots
def test_observation_adversary_is_the_worst_of_the_linearised_hamiltonian(load: Load, load64: Load, name: str) -> None:
    game, robot = Game(Problem(load(name)), ADVERSARIES), load64(name)
    x, costate, move = played(game)
    theta = np.asarray(robot.nominal_parameters)
    for i in range(len(x)):
        xi, u, p = (t[i].double().numpy() for t in (move.choices["observation"], move.u, costate))
        gradient = slope(lambda y: hamiltonian(robot, y, u, p, theta), x[i].double().numpy(), np.ones(len(p)))  # noqa: B023
        assert np.linalg.norm(xi) == pytest.approx(RADII["observation"], rel=1e-5)
        worst = float(xi @ gradient)
        assert RADII["observation"] * (sphere(len(p)) @ gradient).min() >= worst - 1e-3 * abs(worst)
        assert worst < 0.0


@robots
def test_model_adversary_is_the_worst_corner_of_the_box(load: Load, load64: Load, name: str) -> None:
    game, robot = Game(Problem(load(name)), ADVERSARIES), load64(name)
    x, costate, move = played(game)
    nominal = np.asarray(robot.nominal_parameters)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=len(nominal)))) * RADII["parameters"] * nominal
    for i in range(len(x)):
        y, u, p = (t[i].double().numpy() for t in (x, move.u, costate))

        def of_theta(theta: np.ndarray, y: np.ndarray = y, u: np.ndarray = u, p: np.ndarray = p) -> float:
            return hamiltonian(robot, y, u, p, theta)

        gradient = slope(of_theta, nominal, nominal)
        shift = move.choices["parameters"][i].double().numpy() - nominal
        worst = float(shift @ gradient)
        assert (corners @ gradient).min() >= worst - 1e-3 * abs(worst)
        np.testing.assert_allclose(np.abs(shift), RADII["parameters"] * nominal, rtol=1e-4)
        assert of_theta(nominal + 0.01 * shift) <= of_theta(nominal)


def test_model_adversary_stays_within_the_parameter_bounds(load: Load) -> None:
    robot = load("pendulum")
    game = Game(Problem(robot), [ParameterAdversary(0.9)])  # +-90 %, bounds 0.5 ... 2 at nominal 1
    _, _, move = played(game)
    assert float(move.choices["parameters"].min()) == pytest.approx(0.5)
    assert float(move.choices["parameters"].max()) == pytest.approx(1.9)


@pytest.mark.slow
def test_the_adversary_of_told_parameters_plays_about_each_context(load: Load) -> None:
    """The told mass is wrong by half a standard deviation of the filter, in the direction of a worse Hamiltonian."""
    problem = Problem(load("pendulum"), given=(Given("mass", 0.6, 1.4),))
    game = Game(problem, [ParameterAdversary(0.2), ToldAdversary(0.5)])
    deviation = float(remaining_error(problem, (0,))[0, 0]) ** 0.5
    rows = problem.sample_domain(64, torch.Generator().manual_seed(1))
    costate = torch.randn(64, 2, generator=torch.Generator().manual_seed(2))
    modulation = Modulation("stationary", 0.05, torch.Generator())
    move = game.move(rows, costate, ClosedFormPolicy(problem), modulation)
    theta, (x, told) = move.disturbed.theta, problem.split(rows)
    assert theta is not None
    assert told is not None
    torch.testing.assert_close((theta - told)[:, 0].abs(), torch.full((64,), 0.5 * deviation))
    torch.testing.assert_close((theta / problem.theta)[:, 1].sub(1.0).abs(), torch.full((64,), 0.2))
    other = 2.0 * told[:, :1] - theta[:, :1]
    worst, better = (
        (costate * problem.robot.dynamics(x, move.u, torch.cat([mass, told[:, 1:]], 1))).sum(1)
        for mass in (theta[:, :1], other)
    )
    assert bool((worst <= better).all())
    alone = Game(problem, [ParameterAdversary(0.2)]).move(rows, costate, ClosedFormPolicy(problem), modulation)
    assert alone.disturbed.theta is not None
    torch.testing.assert_close(alone.disturbed.theta[:, 0], told[:, 0])
    with pytest.raises(SolverError, match="given, or leave the adversary out"):
        Game(Problem(load("pendulum")), [ToldAdversary(0.1)])


def test_worst_parameters_are_the_same_for_a_robot_written_in_negated_parameters(load: Load) -> None:
    """The pendulum is written in minus its parameters."""
    robot = load("pendulum")

    def gradient(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        dx, du, dtheta = robot.hamiltonian_gradient(*arguments)
        return dx, du, -dtheta

    mirrored = SimpleNamespace(
        metadata=robot.metadata,
        state_limits=robot.state_limits,
        input_limits=robot.input_limits,
        input_middle=robot.input_middle,
        trim=robot.trim,
        nominal_parameters=-np.asarray(robot.nominal_parameters),
        declared_parameters=[-value for value in robot.declared_parameters],
        parameter_bounds=-np.asarray(robot.parameter_bounds)[:, ::-1],
        dynamics=lambda x, u, theta: robot.dynamics(x, u, -theta),
        affine_dynamics=robot.affine_dynamics,
        optimal_input=robot.optimal_input,
        optimal_input_cost=robot.optimal_input_cost,
        hamiltonian_gradient=gradient,
    )
    theta, negated = (played(Game(Problem(r), ADVERSARIES))[2].choices["parameters"] for r in (robot, mirrored))  # type: ignore[arg-type]
    torch.testing.assert_close(negated, -theta)
    assert not torch.equal(theta, Problem(robot).theta.expand_as(theta))


@robots
def test_game_without_adversaries_integrates_the_nominal_robot(load: Load, name: str) -> None:
    game = Game(Problem(load(name)))
    x, _, move = played(game)
    assert not move.choices
    assert move.disturbed.u is move.u
    x_next, _ = game.advance(x, move, 1)
    torch.testing.assert_close(x_next, integrate_period(game.problem, x, move.u, game.problem.theta).x)


@pytest.mark.parametrize("only", ["state", "action", "observation", "parameters"])
def test_single_adversary_disturbs_only_its_own_variable(load: Load, only: str) -> None:
    _, _, move = played(Game(Problem(load("double_pendulum")), make_adversaries({only: 0.1})))
    changed = {
        "state": move.disturbed.displacement is not None,
        "action": not torch.equal(move.disturbed.u, move.u),
        "observation": move.disturbed.offset is not None,
        "parameters": move.disturbed.theta is not None,
    }
    assert list(move.choices) == [name for name, has in changed.items() if has] == [only]


def test_adversaries_play_the_centre_of_their_set_if_the_gradient_is_zero(load: Load) -> None:
    game = Game(Problem(load("furuta")), ADVERSARIES)
    x, costate = sampled(game, 5)
    move = game.move(x, torch.zeros_like(costate), ClosedFormPolicy(game.problem), stationary())
    for name in ("state", "action", "observation"):
        assert torch.equal(move.choices[name], torch.zeros_like(move.choices[name]))
    torch.testing.assert_close(move.choices["parameters"], game.problem.theta.expand(5, -1))


def test_limit_cost_counts_the_time_at_a_limit_and_the_clipped_distance(load: Load) -> None:
    """A rod that falls from 1.5 rad with 7.95 rad/s passes 8 rad/s within the first period. A second rod hangs."""
    free, dear = (Game(Problem(load("pendulum")), limit_cost=share) for share in (0.0, 3.0))
    assert free.problem.substeps == 1
    x = torch.tensor([[1.5, 7.95], [math.pi, 0.0]])
    move = Move(torch.zeros(2, 1), torch.zeros(2), {}, Disturbed(torch.zeros(2, 1)))
    (end, cost), (same, dearer) = (game.advance(x.clone(), move, 2) for game in (free, dear))
    assert_close(end, same)
    assert end[0, 1] == 8.0
    falling = [1.5, 7.95]
    taken = []
    for _ in range(2):  # SciPy integrates without a limit; 3 g/(2 L) = 14.715
        fall = solve_ivp(lambda _, y: [y[1], 14.715 * math.sin(y[0])], (0.0, 0.008), falling, rtol=1e-9, atol=1e-9)
        taken.append((fall.y[1, -1] - 8.0) / 8.0)
        falling = [fall.y[0, -1], 8.0]
    assert min(taken) > 0.005
    corner = math.pi**2 + 0.1 * 8.0**2  # the state cost at an angle of pi and 8 rad/s
    discount = free.problem.discount(1)
    held = 0.008 * (1.0 + discount)
    absorbed = 0.1 * 5.0 * (taken[0] + discount * taken[1])  # a tenth of the horizon of 5 s
    expected = float(3.0 * corner * (held + absorbed))
    torch.testing.assert_close(dearer - cost, torch.tensor([expected, 0.0]), rtol=1e-3, atol=1e-6)


def test_advance_discounts_every_period_and_displaces_the_state_once(load: Load) -> None:
    game = Game(Problem(load("double_pendulum")), ADVERSARIES)
    x, _, move = played(game)
    rho = -math.log(0.65) / 5.0
    y, expected = x, torch.zeros(len(x))
    for k in range(3):
        y, state_cost = integrate_period(
            game.problem, y, move.u + move.choices["action"], move.choices["parameters"], move.choices["observation"]
        )
        expected += math.exp(-rho * 0.008 * k) * (state_cost + 0.008 * move.cost)
    x_next, cost = game.advance(x, move, 3)
    torch.testing.assert_close(cost, expected)
    torch.testing.assert_close(x_next, game.problem.confine(y + move.choices["state"]))
    assert game.problem.discount(625) == pytest.approx(0.65)


def test_advance_with_the_euler_scheme_sums_the_costs_of_the_first_states_of_periods(load: Load) -> None:
    game = Game(Problem(load("double_pendulum"), scheme="euler"), ADVERSARIES)
    x, _, move = played(game)
    y, expected = x, torch.zeros(len(x))
    for k in range(3):
        expected += 0.008 * game.problem.discount(k) * (load("double_pendulum").state_cost(y)[0] + move.cost)
        y = integrate_period(
            game.problem, y, move.u + move.choices["action"], move.choices["parameters"], move.choices["observation"]
        ).x
    torch.testing.assert_close(game.advance(x, move, 3)[1], expected)


def test_nan_states_have_nan_costs_and_stay_nan(load: Load) -> None:
    game = Game(Problem(load("pendulum")), ADVERSARIES)
    x = torch.full((3, 2), math.nan)
    x_next, cost = game.advance(x, game.move(x, x, ClosedFormPolicy(game.problem), stationary()), 1)
    assert bool(torch.isnan(x_next).all())
    assert bool(torch.isnan(cost).all())


def test_wiener_radii_have_the_variance_of_a_random_walk() -> None:
    """E[radius^2] is d (alpha/1.96)^2 t for action and observation, and d (alpha/1.96)^2 h for the state."""
    n, m, h, size = 4, 2, 0.032, 40000
    modulation = Modulation("wiener", h, torch.Generator().manual_seed(0))
    for step in range(1, 6):
        for adversary, d, seconds in ((STATE, n, h), (ACTION, m, h * step), (OBSERVATION, n, h * step)):
            radius = modulation.radius(adversary, torch.Size((size, d)))
            assert isinstance(radius, Tensor)
            assert radius.shape == (size, 1)
            expected = d * (adversary.alpha / 1.96) ** 2 * seconds
            assert float((radius**2).mean()) == pytest.approx(expected, rel=0.04)


def test_wiener_radii_are_correlated_in_time_for_the_action_and_not_for_the_state() -> None:
    modulation = Modulation("wiener", 0.1, torch.Generator().manual_seed(0))

    def correlation(adversary: StateAdversary | ActionAdversary, d: int) -> float:
        walk = [modulation.radius(adversary, torch.Size((20000, d))) for _ in range(4)]
        return float(torch.corrcoef(torch.cat([torch.as_tensor(radius) for radius in walk], 1).T)[2, 3])

    assert abs(correlation(STATE, 4)) < 0.05
    assert correlation(ACTION, 2) > 0.5


@pytest.mark.parametrize("kind", ["stationary", "wiener"])
def test_radius_of_the_parameters_is_constant_in_time(kind: str) -> None:
    assert Modulation(kind, 0.1, torch.Generator()).radius(ParameterAdversary(0.15), torch.Size((5, 3))) == 0.15


def test_stationary_radii_are_alpha_and_for_the_state_alpha_times_the_step() -> None:
    modulation = Modulation("stationary", 0.1, torch.Generator())
    for _ in range(3):
        assert modulation.radius(STATE, torch.Size((5, 2))) == pytest.approx(0.1 * STATE.alpha)
        assert modulation.radius(ACTION, torch.Size((5, 1))) == ACTION.alpha
        assert modulation.radius(OBSERVATION, torch.Size((5, 2))) == OBSERVATION.alpha
