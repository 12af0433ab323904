"""Value functions with told parameters: their forms agree, and P(c) solves the Riccati equation of every context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are

import modelgen
from modelgen.derivation import model_file
from modelgen.linear import weights
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import Hold
from solver.local import basin as basins
from solver.local.basin import can_tell, find_basin, near_target, shell
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.parameters import resolve
from solver.problem.robots import load_robot
from solver.value.family import BasinFamily, crossing, exponents, terms
from solver.value.fitting import Adam, LossGradient, Samples
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

pytestmark = pytest.mark.slow  # its fixtures train, or fit the basins of a family

Load = Callable[[str], CompiledRobot]
UNSEEN = Path(__file__).parents[3] / "benchmarks" / "unseen"
PRECISIONS = ("float32", "float64")
GIVEN = {
    "pendulum": {"mass": (0.5, 1.5), "length": (0.5, 1.5)},
    "planar_quadrotor": {"mass": (0.36, 0.6), "arm": (0.23, 0.27)},
}


def family_of(robot: CompiledRobot, basin: BasinFamily, told: int) -> Ensemble:
    """Untrained networks with the basins of a robot."""
    states = robot.metadata.states
    ensemble = Ensemble(
        [state.continuous for state in states],
        list(robot.metadata.task.target),
        [1.0 / state.limit for state in states],
        members=2,
        layers=2,
        width=16,
        generator=torch.Generator().manual_seed(0),
        told=told,
    )
    ensemble.place(basin)
    return ensemble


@pytest.fixture(scope="module", params=list(GIVEN))
def made(request: pytest.FixtureRequest) -> tuple[Problem, Ensemble]:
    """A problem with told parameters, and networks with its basins."""
    robot = load_robot(request.param, "cpu", None)
    problem = Problem(robot, given=resolve(robot, GIVEN[request.param]))
    basin = find_basin(problem, Hold(0.0))
    assert isinstance(basin, BasinFamily)
    return problem, family_of(robot, basin, 2)


def test_terms_are_products_of_chebyshev_polynomials() -> None:
    c = torch.tensor([[0.3, -0.8], [1.0, 0.5]], dtype=torch.float64)
    degrees = exponents(2)
    expected = np.prod(np.cos(degrees.numpy()[None] * np.arccos(c.numpy())[:, None, :]), 2)
    np.testing.assert_allclose(terms(c, degrees), expected, atol=1e-12)


def require_riccati_solutions(problem: Problem, family: BasinFamily, compiled: CompiledRobot, most: float) -> None:
    """SciPy's solution with derivatives by finite differences, at contexts that the fit has not seen. compiled: the
    robot in double precision."""
    assert problem.context is not None
    c = problem.context.draw(20, torch.Generator().manual_seed(77))
    c[:4] = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    rows = torch.cat([problem.target.expand(20, -1), c], 1)
    fitted = family.at(rows).cost.double().numpy()
    n, h = len(problem.target), 1e-5
    parameters = problem.context.theta(c)
    trims = problem.trim_of(parameters).double().numpy()
    for P, theta, trim in zip(fitted, parameters.tolist(), trims, strict=True):
        robot = compiled.with_nominal(theta)
        target = np.array(robot.metadata.task.target)
        ends = [np.asarray(robot.dynamics(target + s * h * np.eye(n), np.tile(trim, (n, 1)))) for s in (1, -1)]
        A = (ends[0] - ends[1]).T / (2 * h) - 0.5 * problem.discount_rate * np.eye(n)
        B = np.asarray(robot.affine_dynamics(target[None])[1])[0]
        Q, R = weights(robot)[0], np.diag(np.asarray(robot.action_cost(trim[None])[2])[0] / 2)
        exact = solve_continuous_are(A, B, Q, R)
        root = np.linalg.inv(np.linalg.cholesky(exact))
        assert np.linalg.norm(root @ (P - exact) @ root.T, 2) < most


def test_every_context_has_its_riccati_solution(made: tuple[Problem, Ensemble], load64: Load) -> None:
    problem, ensemble = made
    family = ensemble.frame.basin
    assert isinstance(family, BasinFamily)
    require_riccati_solutions(problem, family, load64(problem.robot.name), 2e-3)


def test_the_fit_follows_the_cost_to_where_control_is_lost(tmp_path: Path) -> None:
    """Two poles on a cart fall alike if they are equally long: no input moves one against the other."""
    text = (UNSEEN / "two_poles.py").read_text().replace("tolerance=0.2", "tolerance=0.9")
    (tmp_path / "two_poles.py").write_text(text)
    single, double = (
        modelgen.compile(model_file.load(str(tmp_path / "two_poles.py")), dtype=dtype) for dtype in PRECISIONS
    )
    problem = Problem(single, given=(Given("long_length", 0.8, 1.2), Given("short_length", 0.25, 0.65)))
    basin = find_basin(problem, Hold(0.0))
    assert isinstance(basin, BasinFamily)
    require_riccati_solutions(problem, basin, double, 1e-2)


def test_frozen_values_and_gradients_are_those_of_the_network(made: tuple[Problem, Ensemble]) -> None:
    problem, ensemble = made
    rows = problem.sample_domain(200, torch.Generator().manual_seed(1))
    rows[:50] = near_target(problem, ensemble.frame.basin, 50, torch.Generator().manual_seed(2))
    inside = ensemble.frame.at(rows)[2].quadratic(rows[:, : len(problem.target)])[2]
    assert 0 < int(inside.sum()) < 200
    exact = ensemble.double()
    at = rows.double().requires_grad_()
    value = exact(at)
    (slope,) = torch.autograd.grad(value.sum(), at)
    found, gradient = FrozenValue(exact)(rows.double())
    torch.testing.assert_close(found, value.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, slope[:, : len(problem.target)], rtol=1e-7, atol=1e-9)
    ensemble.float()


def test_the_fit_descends_the_loss_of_the_network(made: tuple[Problem, Ensemble]) -> None:
    problem, ensemble = made
    rows = problem.sample_domain(64, torch.Generator().manual_seed(1))
    frame = ensemble.frame
    states, features, _ = frame.at(rows)
    z, member = features(states), ensemble.factors[0]
    target = -torch.rand(64, generator=torch.Generator().manual_seed(2))
    (member(frame.inputs(z, rows), features.error(z)) - target).abs().mean().backward()
    expected = [parameter.grad.clone() for parameter in member.parameters() if parameter.grad is not None]
    LossGradient(member, Adam(member, 1e-3, 0.0, False).weights, 64)(Samples.of(ensemble, rows, target, torch.ones(64)))
    for parameter, gradient in zip(member.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-5)
        parameter.grad = None


def test_one_member_of_the_family_is_a_value_function_without_told_parameters(made: tuple[Problem, Ensemble]) -> None:
    problem, ensemble = made
    rows = problem.sample_domain(100, torch.Generator().manual_seed(1))
    c = torch.tensor([0.4, -0.7])
    rows[:, -2:] = c
    rows[:30, :-2] *= 0.01  # near the target, some of them in the basin
    single = ensemble.told_that(c)
    assert single.told == 0
    x = rows[:, :-2]
    for one, other in zip(FrozenValue(single)(x), FrozenValue(ensemble)(rows), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(single(x), ensemble(rows), rtol=1e-4, atol=1e-4)


def test_the_boundary_of_every_basin_has_its_level(made: tuple[Problem, Ensemble]) -> None:
    problem, ensemble = made
    rows = shell(problem, ensemble.frame.basin, 50)
    basin = ensemble.frame.basin.at(rows)
    level = torch.as_tensor(basin.level)
    assert float(level.max()) > 1.1 * float(level.min())
    torch.testing.assert_close(basin.distance(problem.split(rows)[0]), level, rtol=1e-3, atol=0.0)


def test_a_form_that_a_polynomial_misses_is_refused(load: Load) -> None:
    problem = Problem(load("pendulum"), given=(Given("length", 0.01, 50.0),))
    with pytest.raises(SolverError, match=r"length: .*given length=LOWER:UPPER"):
        find_basin(problem, Hold(1.0))
    assert problem.context is not None
    assert not can_tell(problem.robot, problem.context.given)
    assert can_tell(problem.robot, (Given("length", 0.5, 2.0),))


@pytest.mark.parametrize("told", [1, 2, 3])
def test_a_crossing_is_found_where_a_fine_grid_finds_one(told: int) -> None:
    side = torch.linspace(-1.0, 1.0, {1: 4001, 2: 201, 3: 41}[told], dtype=torch.float64)
    grid, degrees = torch.cartesian_prod(*[side] * told).reshape(-1, told), exponents(told)
    values = terms(grid, degrees)
    for seed in range(20):
        a = torch.randn(len(degrees), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        a /= (1.0 + degrees.sum(1)) ** 2
        spread = float((values @ a).max() - (values @ a).min())
        for share in (-0.02, 0.02):  # of the spread is the lowest value on the grid
            a[0] += share * spread - float((values @ a).min())
            place = crossing(a, degrees)
            if share < 0.0:
                assert place is not None
                assert float(terms(torch.from_numpy(place)[None], degrees)[0] @ a) <= 1e-4 * float(a.abs().sum())
            else:
                assert place is None


@pytest.mark.parametrize(("height", "positive"), [(-1e-6, False), (2e-4, True)])
def test_a_crossing_between_the_contexts_of_a_check_is_found(height: float, positive: bool) -> None:
    """(c - 0.37)^2 + height: a fall below zero of a width of 0.002."""
    a = torch.zeros(13, dtype=torch.float64)
    a[:3] = torch.tensor([0.5 + 0.37**2 + height, -0.74, 0.5])
    checked = torch.linspace(-1.0, 1.0, 200, dtype=torch.float64)[:, None]
    assert float((terms(checked, exponents(1)) @ a).min()) > 0.0
    place = crossing(a, exponents(1))
    assert (place is None) == positive
    if place is not None:
        assert abs(place[0] - 0.37) < 1e-2  # there the value is within the rounding of single precision


def test_a_search_for_a_crossing_ends() -> None:
    """(c1 + ... + c5)^2 + 0.003 is positive. It takes boxes without number to show it along its valley."""
    degrees, c = exponents(5), torch.rand(1000, 5, dtype=torch.float64) * 2.0 - 1.0
    a = torch.linalg.lstsq(terms(c, degrees), (c.sum(1) ** 2 + 0.003)[:, None]).solution[:, 0]
    place = crossing(a, degrees)
    assert place is not None
    assert abs(place.sum()) < 0.5


def test_a_fit_whose_pivots_cross_zero_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(load("pendulum"), given=(Given("mass", 0.5, 1.5),))
    fitted = basins._fitted

    def planted(*of: Any) -> Any:
        found = fitted(*of)
        lowest = np.polynomial.chebyshev.chebval(np.linspace(-1.0, 1.0, 1001), found[:, 2]).min()
        found[0, 2] -= 1.001 * lowest
        return found

    monkeypatch.setattr(basins, "_fitted", planted)
    with pytest.raises(SolverError, match=r"crosses zero with mass = .*given mass=LOWER:UPPER"):
        find_basin(problem, Hold(1.0))


def test_a_set_point_takes_no_degree_from_the_parameters() -> None:
    shift = torch.tensor([[0.3, 0.0], [0.0, 0.0], [0.0, 0.0]])
    rows = {tuple(row) for row in exponents(3, shift).tolist()}
    assert {row[1:] for row in rows if row[0] == 0} == {tuple(row) for row in exponents(2).tolist()}
    assert {tuple(row) for row in exponents(3).tolist()} <= rows
    assert max(sum(row) for row in rows if row[0]) == 6
    c = 2.0 * torch.rand(20, 3, generator=torch.Generator().manual_seed(0)) - 1.0
    degrees = exponents(3, shift)
    wanted = torch.cos(degrees * torch.acos(c)[:, None]).prod(2)  # the definition of the Chebyshev polynomials
    torch.testing.assert_close(terms(c, degrees), wanted, rtol=1e-4, atol=1e-4)
