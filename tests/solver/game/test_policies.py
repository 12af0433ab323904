"""Policy for a held input, compared with brute force over the inputs and with the closed form where that chatters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import solver
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.fvi.targets import Lookahead, chunk_targets
from solver.game import ClosedFormPolicy, Game
from solver.game.adversaries import Modulation, ParameterAdversary
from solver.game.policies import Hold, _contracted, _one_input, _semidefinite
from solver.plants.outcome import Controller, controller, rollouts
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.runs.metrics import read_metrics
from solver.streams import SELECTION_SEED
from solver.training.settings import make_settings
from solver.training.solution import load_solution, make_ensemble
from solver.value.frozen import FrozenValue
from tests.closeness import assert_close

Load = Callable[[str], CompiledRobot]


class Valley:
    """V = -steepness |rates + slope * positions|^2. If it is steep, its policies slide along a switching surface."""

    def __init__(self, steepness: float, slope: float = 2.0) -> None:
        self.steepness, self.slope = steepness, slope

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and its gradient (N, n)."""
        positions, rates = x.chunk(2, 1)
        off = rates + self.slope * positions
        return -self.steepness * (off * off).sum(1), -2.0 * self.steepness * torch.cat([self.slope * off, off], 1)


def worth(game: Game, value: Valley, x: Tensor, u: Tensor, periods: float = 1.0, drift: bool = False) -> Tensor:
    """Objective -h g(u) + V(x + h B u) of an input that is held for a number of control periods.

    drift: B is that of x + h f(x, 0), from which the input moves the state.
    """
    h = periods * game.problem.control_step
    if drift:
        x = x + h * game.problem.robot.dynamics(x, torch.zeros_like(u))
    moved = x + h * torch.einsum("bnm,bm->bn", game.problem.robot.affine_dynamics(x)[1], u)
    return value(moved)[0] - h * game.problem.action_cost.cost(u)


@pytest.mark.parametrize(("periods", "drift"), [(1.0, False), (2.0, False), (2.0, True)])
@pytest.mark.parametrize(("name", "nodes"), [("pendulum", 4001), ("furuta", 4001), ("double_pendulum", 161)])
def test_held_input_is_the_best_on_a_grid_of_inputs(
    load: Load, name: str, nodes: int, periods: float, drift: bool
) -> None:
    game, value = Game(Problem(load(name))), Valley(5.0)
    x = 0.02 * game.problem.sample_domain(12, torch.Generator().manual_seed(1))
    axes = [torch.linspace(-0.99, 0.99, nodes) * limit for limit in game.problem.input_limits]
    inputs = torch.cartesian_prod(*axes).reshape(-1, len(axes))
    held, closed = (controller(game.problem, value, Hold(hold, drift))(x)[0] for hold in (periods, 0.0))
    for i in range(len(x)):
        best = worth(game, value, x[i : i + 1].repeat(len(inputs), 1), inputs, periods, drift).max()
        idle = worth(game, value, x[i : i + 1], torch.zeros_like(held[:1]), periods, drift)[0]
        reached, other = (worth(game, value, x[i : i + 1], u[i : i + 1], periods, drift)[0] for u in (held, closed))
        assert best - reached < 0.02 * (best - idle), i
        assert best - reached < best - other + 1e-3 * (best - idle), i


@pytest.mark.slow
def test_closed_form_chatters_where_v_is_steep_and_the_policy_for_a_held_input_does_not(load: Load) -> None:
    game, value = Game(Problem(load("pendulum"))), Valley(300.0)
    starts = torch.tensor([[0.1, 0.0], [-0.05, 0.2]])

    def last_second(act: Controller) -> tuple[Tensor, Tensor]:
        run = rollouts(game.problem, act, starts.clone(), seconds=3.0)
        return run.x[-125:].abs().amax(0), run.u[-125:].diff(dim=0).abs().mean()

    (_, buzz), (x, calm) = (last_second(controller(game.problem, value, Hold(periods))) for periods in (0.0, 1.0))
    assert buzz > 1.0
    assert calm < 1e-2
    assert (x < 0.01).all()


def test_policy_for_a_held_input_tends_to_the_closed_form_for_a_short_hold(load: Load) -> None:
    game, value = Game(Problem(load("furuta"))), Valley(0.1)
    x = game.problem.sample_domain(50, torch.Generator().manual_seed(2))
    closed, closed_cost = controller(game.problem, value)(x)
    assert float((controller(game.problem, value, Hold(1.0))(x)[0] - closed).abs().max()) > 0.1
    held, cost = controller(game.problem, value, Hold(1e-4))(x)
    torch.testing.assert_close(held, closed, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(cost, closed_cost, rtol=0.02, atol=1e-4)


class Ridge(Valley):
    """V = +steepness |...|^2, which is convex and has no maximum along its chord."""

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and its gradient (N, n)."""
        value, gradient = super().__call__(x)
        return -value, -gradient


def test_policy_for_a_held_input_is_the_closed_form_where_v_is_convex(load: Load) -> None:
    game = Game(Problem(load("furuta")))
    x = game.problem.sample_domain(50, torch.Generator().manual_seed(2))
    closed, held = (controller(game.problem, Ridge(0.1), Hold(periods))(x)[0] for periods in (0.0, 1.0))
    torch.testing.assert_close(held, closed)


@pytest.mark.parametrize("name", ["pendulum", "double_pendulum"])
def test_nan_state_has_a_nan_input_and_leaves_the_others_unchanged(load: Load, name: str) -> None:
    game, value = Game(Problem(load(name))), Valley(5.0)
    x = game.problem.sample_domain(3, torch.Generator().manual_seed(4))
    before = controller(game.problem, value, Hold(1.0))(x.clone())[0]
    x[1, -1] = torch.nan
    after = controller(game.problem, value, Hold(1.0))(x)[0]
    assert bool(after[1].isnan().all())
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]])


@pytest.mark.parametrize("name", ["furuta", "double_pendulum"])
def test_policy_of_a_value_step_uses_its_whole_hold_and_the_adversaries_use_its_input(load: Load, name: str) -> None:
    """The input is held for 3 periods and acts with a delay of one, so the policy is the one for 4 periods."""
    game, value = Game(Problem(load(name)), [ParameterAdversary(0.1)]), Valley(0.5)
    x = game.problem.sample_domain(50, torch.Generator().manual_seed(5))
    policy = Lookahead(0.9, 0.1, 3, hold=Hold(2.0)).policy(game.problem, value)
    modulation = Modulation("stationary", 3 * game.problem.control_step, torch.Generator())
    move = game.move(x, value(x)[1], policy, modulation)
    torch.testing.assert_close(move.u, controller(game.problem, value, Hold(4.0))(x)[0])
    assert not torch.allclose(move.u, controller(game.problem, value, Hold(2.0))(x)[0], atol=0.1)
    z = game.problem.robot.hamiltonian_gradient(x, move.u, value(x)[1])[2]
    expected = game.problem.theta - 0.1 * game.problem.theta.abs() * torch.sign(z)
    lower, upper = game.problem.theta_bounds.T
    assert_close(move.choices["parameters"], torch.clamp(expected, lower, upper))
    assert type(Lookahead(0.9, 0.1, 3).policy(game.problem, value)) is ClosedFormPolicy


def test_one_step_targets_use_the_policy_for_a_held_input(load: Load) -> None:
    game = Game(Problem(load("furuta")))
    ensemble = make_ensemble(load("furuta"), make_settings("fast", load("furuta")))
    value, x = FrozenValue(ensemble), game.problem.sample_domain(40, torch.Generator().manual_seed(6))
    u, cost = controller(game.problem, value, Hold(2.0))(x)
    h = game.problem.control_step
    after, state_cost = integrate_period(game.problem, x.clone(), u, None)
    expected = -state_cost - h * cost + game.problem.discount(1) * value(after)[0]
    targets = {s: chunk_targets(game, value, x.clone(), Lookahead(0.0, 0.1, 1, Hold(s)), 0) for s in (0.0, 2.0)}
    torch.testing.assert_close(targets[2.0], expected)
    assert not torch.allclose(targets[0.0], expected, rtol=1e-3)


def evaluated(run: Path, capsys: pytest.CaptureFixture[str], *words: str, episodes: int = 4) -> dict[str, Any]:
    """JSON of `solver evaluate`."""
    assert main(["evaluate", str(run), "--episodes", str(episodes), "--json", *words]) == 0
    results: dict[str, Any] = json.loads(capsys.readouterr().out)
    return results


@pytest.mark.slow
def test_run_is_evaluated_with_the_reaction_periods_of_its_training(
    train_tiny: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_tiny(tmp_path, iterations=1, reaction_periods=2.0, authors=False)
    own, closed = evaluated(tmp_path, capsys), evaluated(tmp_path, capsys, "--reaction-periods", "0")
    assert own | {"reaction_periods": 2.0} == evaluated(tmp_path, capsys, "--reaction-periods", "2")
    assert own["return_mean"] != closed["return_mean"]
    logged = read_metrics(tmp_path)[-1]
    again = evaluated(tmp_path, capsys, "--seed", str(SELECTION_SEED), episodes=3)
    assert_close(logged["return_mean"], again["return_mean"], periods=25)
    solution = load_solution(tmp_path)
    x = solution.problem.sample_domain(7, torch.Generator().manual_seed(0))
    expected = controller(solution.problem, solution.value, Hold(2.0))(x.clone())[0]
    assert_close(solver.load_policy(tmp_path)(x.numpy()), expected)
    assert not np.allclose(solver.load_policy(tmp_path, reaction_periods=0)(x.numpy()), expected, rtol=1e-3)


@pytest.mark.parametrize("periods", ["-1", "101", "nan", "inf"])
def test_reaction_periods_out_of_range_are_an_error(
    finished_run: Path, periods: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(finished_run), "--reaction-periods", periods]) != 0
    assert periods in capsys.readouterr().err


@pytest.mark.slow
def test_solver_robustness_takes_other_reaction_periods(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(finished_run), "--parameter", "mass", "--from", "1x", "--to", "1.2x", "--points", "2"]
    words += ["--episodes", "4", "--jobs", "1"]
    results = {}
    for flag in ((), ("--reaction-periods", "2")):
        assert main(["robustness", *words, *flag, "--out", str(tmp_path / "x")]) == 0
        results[flag] = json.loads((tmp_path / "x.json").read_text())
    capsys.readouterr()
    closed, sampled = results[()], results[("--reaction-periods", "2")]
    assert (closed["reaction_periods"], sampled["reaction_periods"]) == (None, 2.0)
    assert sampled["groups"][0]["worst"] != closed["groups"][0]["worst"]


def test_semidefinite_part_is_semidefinite_and_keeps_a_semidefinite_matrix() -> None:
    draw = torch.randn(200, 4, 4, generator=torch.Generator().manual_seed(7))
    good, lowest = draw @ draw.mT, torch.linalg.eigvalsh(_semidefinite(draw))[:, 0]
    torch.testing.assert_close(_semidefinite(good), good, rtol=1e-3, atol=1e-3)
    assert float(lowest.min()) > -1e-5
    assert float(torch.linalg.eigvalsh(0.5 * (draw + draw.mT))[:, 0].min()) < -1.0


def test_several_inputs_satisfy_their_fixed_point_equation(load: Load) -> None:
    """u = grad g~(w - P u) for three coupled inputs, as in an arm."""
    game = Game(Problem(load("planar_arm3")))
    generator = torch.Generator().manual_seed(8)
    p = _semidefinite(3.0 * torch.randn(200, 3, 3, generator=generator))
    w = 3.0 * torch.randn(200, 3, generator=generator)
    u = game.problem.action_cost.policy(_contracted(game.problem.action_cost, w, p))
    again = game.problem.action_cost.policy(w - torch.einsum("bij,bj->bi", p, u))
    assert float(((u - again) / game.problem.input_limits).abs().quantile(0.95)) < 1e-3


class Redundant:
    """Quadratic cost of two inputs of a lift, about a trim that is not in the middle of their ranges."""

    trim = torch.tensor([7.16, 0.756])

    def policy(self, w: Tensor) -> Tensor:
        """grad g~."""
        low, high = torch.tensor([0.0, -5.0]), torch.tensor([40.0, 8.0])
        return torch.clamp(self.trim + w / torch.tensor([0.004, 0.02]), low, high)


def test_several_inputs_that_begin_at_their_limits_satisfy_their_equation() -> None:
    """They stand still there for some iterations, while their arguments have far to go."""
    cost: Any = Redundant()
    w, p = torch.tensor([[-1.0072, -1.0072]]), torch.tensor([[[0.0771, 0.0774], [0.0774, 0.0778]]])
    u = cost.policy(_contracted(cost, w, p))
    again = cost.policy(w - torch.einsum("bij,bj->bi", p, u - cost.trim))
    torch.testing.assert_close(u, again, rtol=0.0, atol=1e-3)


class Concave:
    """Cost with g' = asinh(u/0.1), concave for u > 0: Newton's steps from the right overshoot."""

    trim = torch.zeros(1)

    def policy(self, w: Tensor) -> Tensor:
        """grad g~, with the input limit 2."""
        return torch.clamp(0.1 * torch.sinh(w), -2.0, 2.0)

    def slopes(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """g' and g''."""
        return torch.asinh(u / 0.1), 1.0 / torch.sqrt(u * u + 0.01)


class Flat:
    """Cost with g' = u^3, without curvature at u = 0."""

    trim = torch.zeros(1)

    def policy(self, w: Tensor) -> Tensor:
        """grad g~, with the input limit 2."""
        return torch.copysign(w.abs() ** (1.0 / 3.0), w).clamp(-2.0, 2.0)

    def slopes(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """g' and g''."""
        return u**3, 3.0 * u * u


@pytest.mark.parametrize(("cost", "tolerance"), [(Concave(), 1e-3), (Flat(), 1e-2)])
def test_root_of_one_input_agrees_with_bisection_for_any_curvature_of_its_cost(cost: Any, tolerance: float) -> None:
    """No robot of the gallery has such costs. Includes w = 0 and p = 0."""
    generator = torch.Generator().manual_seed(9)
    w = torch.cat([torch.zeros(2, 1), 6.0 * torch.randn(500, 1, generator=generator)])
    p = torch.cat([torch.zeros(300, 1), 10.0 ** (4.0 * torch.rand(202, 1, generator=generator) - 2.0)])
    closed = cost.policy(w)
    u = cost.policy(_one_input(cost, closed, w, p))
    low, high = torch.zeros_like(w), closed.abs()
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = cost.slopes(middle)[0] + p * middle > w.abs()
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    assert float((u - torch.copysign(high, w)).abs().max()) < tolerance * 2.0
