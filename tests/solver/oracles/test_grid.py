"""Grid solution, compared with analytic derivatives and the Riccati solution; a trained value function, compared with
the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are

import modelgen
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game import Game
from solver.game.adversaries import make_adversaries
from solver.oracles.grid import one_sided, solve
from solver.policy import load_value
from solver.problem import Problem
from solver.training.settings import Settings
from tests.solver.small_trainings import start, unjudged

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]


def riccati(game: Game) -> np.ndarray:
    """P of V = -x^T P x for the slider, from the discounted algebraic Riccati equation in continuous time."""
    mass, damping = game.problem.theta.tolist()
    a, b = np.array([[0.0, 1.0], [0.0, -damping / mass]]), np.array([[0.0], [1.0 / mass]])
    weight = float(game.problem.action_cost.cost(torch.ones(1, 1))[0])
    return solve_continuous_are(a - 0.5 * game.problem.discount_rate * np.eye(2), b, np.diag([2.0, 0.3]), [[weight]])


def near_target() -> torch.Tensor:
    """States (121, 2) from which the optimal path meets no limit."""
    return torch.cartesian_prod(torch.linspace(-0.5, 0.5, 11), torch.linspace(-0.6, 0.6, 11))


def test_grid_matches_the_riccati_solution(slider: str) -> None:
    game = Game(Problem(modelgen.load("slider", dtype="float32", directory=slider, parallel=False)))
    value = solve(game, (41, 41), tolerance=1e-3, seconds=6.0)
    x = near_target()
    exact = -torch.einsum("bi,ij,bj->b", x, torch.tensor(riccati(game), dtype=torch.float32), x)
    assert float((value(x)[0] - exact).abs().mean() / exact.abs().mean()) < 0.01


def test_learned_value_matches_the_riccati_solution(slider: str, tmp_path: Path) -> None:
    settings = Settings(
        basin=False,
        limit_cost=0.0,
        reaction_periods=0.0,
        sampling="domain",
        iterations=5,
        states=1024,
        epochs=40,
        minibatch=64,
        members=1,
        layers=2,
        width=32,
        trace_decay=0.99,
        trace_floor=0.05,
        step_periods=(4,),
        input_scale=1.0,
        threads=1,
    )
    with unjudged():
        start("slider", "fast", settings, tmp_path / "run", slider, lambda _: None)
    game = Game(Problem(modelgen.load("slider", dtype="float32", directory=slider, parallel=False)))
    x = near_target()
    exact = -np.einsum("bi,ij,bj->b", x.numpy(), riccati(game), x.numpy())
    learned = load_value(tmp_path / "run", slider)(x.numpy())[0]
    assert np.abs(learned - exact).mean() / np.abs(exact).mean() < 0.02


def test_one_sided_differences_converge_with_the_fifth_power() -> None:
    errors = []
    for nodes in (40, 80):
        angle = torch.arange(nodes, dtype=torch.float64) * (2.0 * math.pi / nodes)
        value = torch.exp(torch.sin(angle))[:, None]
        left, right = one_sided(value, 2.0 * math.pi / nodes, wraps=True)
        exact = (torch.cos(angle) * torch.exp(torch.sin(angle)))[:, None]
        errors.append([float((side - exact).abs().max()) for side in (left, right)])
    for coarse, fine in zip(*errors, strict=True):
        assert coarse / fine > 2.0**4.5


def test_differences_at_a_kink_stay_between_the_two_slopes() -> None:
    x = torch.linspace(-1.0, 1.0, 41, dtype=torch.float64)
    left, right = one_sided(x.abs()[:, None], 0.05, wraps=False)
    assert float(torch.cat([left, right]).abs().max()) < 1.0 + 1e-6
    assert left[20, 0] == pytest.approx(-1.0, abs=1e-3)
    assert right[20, 0] == pytest.approx(1.0, abs=1e-3)


def test_every_adversary_lowers_the_value(load: Load) -> None:
    robot = load("pendulum")
    size, seconds = (41, 41), 1.0
    x = torch.tensor([[0.4, 0.0], [1.0, -1.0], [3.0, 0.5]])
    nominal = solve(Game(Problem(robot)), size, seconds=seconds)(x)[0]
    for name in ("state", "action", "observation", "parameters"):
        worse = solve(Game(Problem(robot), make_adversaries({name: 0.1})), size, seconds=seconds)(x)[0]
        assert bool((worse < nominal).all()), name


def test_value_of_the_pendulum_is_symmetric(load: Load) -> None:
    """V(x) = V(-x) and grad V(x) = -grad V(-x), also between the last node and the seam at pi."""
    solution = solve(Game(Problem(load("pendulum"))), (41, 41), seconds=1.0)
    step = 2.0 * math.pi / 41
    angles = torch.tensor([0.3, 1.4, math.pi - step, math.pi - 0.6 * step, math.pi - 0.3 * step])
    x = torch.cartesian_prod(angles, torch.tensor([-7.0, -2.5, -0.4, 0.0, 1.0, 4.0, 8.0]))
    (value, slope), (mirrored, opposite) = solution(x), solution(-x)
    torch.testing.assert_close(mirrored, value, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(opposite, -slope, rtol=1e-3, atol=1e-3)


def test_grid_of_a_robot_with_two_joints_is_an_error(load: Load) -> None:
    with pytest.raises(SolverError, match=r"cartpole .*4"):
        solve(Game(Problem(load("cartpole"))), (21, 21))
