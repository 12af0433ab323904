"""States that follow the inputs: a slider of 50 g on 30 N, which passes its rate limit in a part of a period."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import modelgen
from modelgen import Quadratic, Robot
from modelgen.loader import CompiledRobot
from solver.game import Game, Move
from solver.game.adversaries import Disturbed
from solver.game.policies import Hold
from solver.local.basin import cost_to_go, find_basin
from solver.plants.outcome import controller, rollouts
from solver.problem import Problem
from solver.training.session import Session, workers_of
from solver.training.settings import make_settings
from solver.value.family import Basin
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble
from tests.closeness import assert_close
from tests.solver.small_trainings import unjudged

Load = Callable[[str], CompiledRobot]


@pytest.fixture(scope="module")
def strong() -> CompiledRobot:
    robot = Robot("strong_slider", "A light mass on a rail with a strong drive")
    s = robot.prismatic("s", limit=1, rate_limit=0.5)
    robot.point_mass(robot.parameter("mass", 0.05, "kg", tolerance=0.1), (s, 0))
    robot.apply(s, robot.input("force", 30, "N"))
    robot.damp(s, 0.1)
    robot.task(
        state_cost=s**2 + 0.1 * s.rate**2,
        action_cost=Quadratic(0.004),
        start={"s": (0.0, 0.05)},
        horizon=4,
        weight_at_horizon=0.7,
        control_rate=100,
    )
    return modelgen.compile(robot, dtype="float32")


def test_a_state_is_fast_if_full_inputs_take_it_to_its_limit_in_two_periods(strong: CompiledRobot, load: Load) -> None:
    assert Problem(strong).fast.tolist() == [False, True]  # 600 m/s^2 for 20 ms are 12 m/s
    for name in ("pendulum", "planar_quadrotor"):
        assert not Problem(load(name)).fast.any()


def test_the_limit_of_a_fast_state_is_no_brake(strong: CompiledRobot) -> None:
    """A full input ends at the rate limit; the limit of the position still costs."""
    problem = Problem(strong)
    free, dear = (Game(problem, limit_cost=share) for share in (0.0, 1.0))
    x = torch.tensor([[0.0, 0.0], [0.9999, 0.5]])
    u = torch.full((2, 1), 30.0)
    costs = []
    for game in (free, dear):
        end, cost = game.advance(x.clone(), Move(u, torch.zeros(2), {}, Disturbed(u)), 1)
        assert_close(end[:, 1], torch.tensor([0.5, 0.5]))
        costs.append(cost)
    assert_close(costs[0][0], costs[1][0])
    assert costs[1][1] > costs[0][1]


@pytest.mark.slow
def test_the_basin_holds_states_whose_fast_rate_is_at_its_limit(strong: CompiledRobot) -> None:
    problem = Problem(strong)
    basin, riccati = find_basin(problem, Hold(1.0)), cost_to_go(problem)
    assert isinstance(basin, Basin)
    assert riccati is not None
    least = (0.5**2) / float(torch.linalg.inv(torch.as_tensor(riccati[0]))[1, 1])  # the ellipsoid that meets the limit
    assert basin.level > 2.0 * least
    x = torch.tensor([[0.0, 0.5]])
    assert bool(basin.distance(x) < basin.level)
    act = controller(problem, lambda rows: basin.quadratic(rows)[:2], Hold(1.0))
    assert bool(rollouts(problem, act, x).success.all())


def of_error(value: Ensemble, x: Tensor) -> Tensor:
    """|y|^2 (N,) at x (N, n)."""
    features = value.features
    return (features.error(features(x)) ** 2).sum(1)


@pytest.mark.slow
@pytest.mark.parametrize("authors", [False, True])
def test_value_stays_the_quadratic_form_in_a_fast_state(strong: CompiledRobot, authors: bool) -> None:
    """V begins as -|y|^2. A fit changes it, but not what it adds for the rate: y_2 depends on the rate alone."""
    settings = make_settings("fast", strong, "cfvi", states=64, iterations=1, learning_rate=0.01, authors=authors)
    with unjudged():
        session = Session(strong, settings)
    value = session.value
    assert_close(value.scale, torch.tensor([2.0, settings.input_scale / 0.5 / 16.0]))
    x = torch.tensor([[0.9, 0.5], [0.9, -0.5], [-0.7, 0.1]])
    networks = FrozenValue(value)
    networks.basin = replace(networks.basin, level=0.0)
    assert_close(networks(x)[0], -of_error(value, x))
    with unjudged(), workers_of(settings) as workers:
        list(session.rows(workers))
    assert float((value(x) + of_error(value, x)).detach().abs().min()) > 1e-3
    y = value.features.error(value.features(x))
    for member in value.factors:
        only = torch.stack([torch.zeros(3), y[:, 1]], 1)
        z = value.features(x)
        assert_close(member(z, only).detach(), -(y[:, 1] ** 2))
        assert_close(member(z, y).detach(), member(z.index_fill(1, torch.tensor([1]), 0.0), y).detach())
