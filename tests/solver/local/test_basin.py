"""The basin of a robot: P by hand-derived dynamics, and what its states do and cost in rollouts of the test's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are
from torch import Tensor

from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.game.policies import Hold
from solver.local.basin import cost_to_go, find_basin, near_target, shell
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.problem.robots import load_robot
from solver.training.settings import make_settings
from solver.training.solution import make_ensemble
from solver.value.family import Basin
from solver.value.frozen import FrozenValue

Load = Callable[[str], CompiledRobot]

# A rod of 1 kg and 1 m about its end: angle'' = (3/2) 9.81 sin(angle) + 3 torque.
ROD = np.array([[0.0, 1.0], [14.715, 0.0]]), np.array([[0.0], [3.0]])
# pi^2 sin^2(angle/2) + rate^2/10, and half the curvature of log-cos: weight limit^2/(limit + 1e-3).
ROD_COST = np.diag([math.pi**2 / 4.0, 0.1]), np.array([[0.5 * 2.5**2 / 2.501]])
ROD_DISCOUNT = -math.log(0.65) / 5.0


@pytest.fixture(scope="module")
def rod(load: Load) -> Problem:
    return Problem(load("pendulum"))


@pytest.fixture(scope="module")
def basin(rod: Problem) -> Basin:
    """That of the pendulum whose input is held for one period."""
    found = find_basin(rod, Hold(1.0))
    assert isinstance(found, Basin)
    return found


def built(folder: Path, name: str, lines: str) -> Problem:
    """A robot of one or two masses on rails."""
    text = f'''"""{name}."""
from modelgen import Quadratic, Robot

robot = Robot("{name}", "Masses on rails")
s = robot.prismatic("s", limit=1, rate_limit=3, meaning="position")
mass = robot.parameter("mass", 1.3, "kg", tolerance=0.1, meaning="mass")
force = robot.input("force", 30, "N", meaning="drive")
robot.apply(s, force)
{lines}
'''
    (folder / f"{name}.py").write_text(text)
    assert modelgen_main(["build", str(folder / f"{name}.py"), "--generated", str(folder / "generated")]) == 0
    return Problem(load_robot(name, "cpu", str(folder / "generated")))


TASK = "action_cost=Quadratic(0.3), start=dict(s=(0.5, 0.1)), horizon=3, weight_at_horizon=0.5, control_rate=50)"
ON_THE_LEVEL = f"robot.point_mass(mass, (s, 0))\nrobot.task(state_cost=2 * s**2 + 0.3 * s.rate**2, {TASK}"
LIFTED = f"robot.point_mass(mass, (0, s))\nrobot.task(state_cost=2 * s**2 + 0.3 * s.rate**2, {TASK}"
ADRIFT = f"""
t = robot.prismatic("t", limit=1, rate_limit=3, meaning="a mass that nothing drives")
robot.point_mass(mass, (s, 0))
robot.point_mass(mass, (t, 1))
robot.task(state_cost=2 * s**2 + 0.3 * s.rate**2 + t**2 + t.rate**2, {TASK}"""
FALLING = f"""
from sympy import cos, sin
t = robot.revolute("t", continuous=True, rate_limit=20, meaning="an upright pendulum beside it")
robot.point_mass(mass, (s, 0))
robot.point_mass(mass, (sin(t), cos(t)))
robot.task(state_cost=2 * s**2 + 0.3 * s.rate**2 + 1 - cos(t) + t.rate**2, {TASK}"""


def costs(problem: Problem, basin: Basin, x: Tensor, seconds: float) -> tuple[Tensor, Tensor]:
    """The end (N, n) and the discounted cost (N,) of -e'Pe's policy from x (N, n), with a loop of the test's own."""

    def value(at: Tensor) -> tuple[Tensor, Tensor]:
        e = at - problem.target
        for i in problem.continuous:
            e[:, i] = torch.atan2(torch.sin(e[:, i]), torch.cos(e[:, i]))
        return -torch.einsum("bi,ij,bj->b", e, basin.cost, e), -2.0 * e @ basin.cost

    policy, paid = Hold(1.0).policy(problem, value), torch.zeros(len(x))
    for k in range(round(seconds / problem.control_step)):
        u, action, *_ = policy.respond(x, value(x)[1])
        x, state = integrate_period(problem, x, u)
        paid += math.exp(-problem.discount_rate * k * problem.control_step) * (state + action * problem.control_step)
    return x, paid


def within(basin: Basin, size: int, seed: int) -> Tensor:
    """States (size, n) uniform in the ellipsoid e'Pe < level."""
    n, generator = len(basin.target), torch.Generator().manual_seed(seed)
    away = torch.randn(size, n, generator=generator)
    away *= torch.rand(size, 1, generator=generator) ** (1.0 / n) / away.norm(dim=1, keepdim=True)
    root = torch.linalg.cholesky(basin.cost / basin.level)
    return basin.target + torch.linalg.solve_triangular(root.T, away.T, upper=True).T


def test_cost_is_that_of_the_discounted_riccati_equation(rod: Problem) -> None:
    A = ROD[0] - 0.5 * ROD_DISCOUNT * np.eye(2)
    expected = solve_continuous_are(A, ROD[1], *ROD_COST)
    found = cost_to_go(rod)
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    closed = np.linalg.eigvals(A - ROD[1] @ np.linalg.solve(ROD_COST[1], ROD[1].T @ expected))
    assert found[1] == pytest.approx(-closed.real.max(), rel=1e-5)


@pytest.mark.slow
def test_states_inside_arrive_at_the_cost_of_the_quadratic_form(rod: Problem, basin: Basin) -> None:
    x = within(basin, 300, seed=17)
    stated = basin.distance(x)
    assert bool((stated < basin.level).all())
    end, paid = costs(rod, basin, x, 4.0)
    assert float(basin.distance(end).max()) < 0.01 * basin.level
    assert not bool(rod.at_limit(x).any())
    assert float((paid - stated).abs().max()) < allowed(basin)


def allowed(basin: Basin) -> float:
    """The cost by which a rollout may exceed the quadratic form: 15 % of the level, or 0.5 % of the cost of the starts,
    here of the pendulum that hangs for five seconds."""
    hanging = math.pi**2 * 5.0
    quadratic = math.pi**2 * float(basin.cost[0, 0])
    return max(0.15 * float(basin.level), 1.02 * 0.005 * min(hanging, quadratic))


@pytest.mark.slow
def test_a_small_cost_may_be_wrong_by_much(rod: Problem, basin: Basin) -> None:
    """Without the allowance for what is negligible beside the whole task, the basin is smaller."""
    strict = find_basin(rod, Hold(1.0), negligible=0.0)
    assert strict is not None
    assert strict.level < basin.level


@pytest.mark.slow
def test_the_basin_is_the_largest_up_to_a_factor_of_two(rod: Problem, basin: Basin) -> None:
    """From the boundary of four times the level some state fails to arrive, meets a limit or pays too much."""
    larger = Basin(basin.target, basin.continuous, basin.cost, 4.0 * basin.level)
    x = shell(rod, larger, 256)
    end, paid = costs(rod, basin, x, 4.0)
    failed = (basin.distance(end) > 0.05 * larger.level) | (paid - larger.level > allowed(larger))
    assert bool((failed | rod.at_limit(x).any(1)).any())


@pytest.mark.slow
def test_a_shell_lies_on_the_boundary_on_all_sides(rod: Problem, basin: Basin) -> None:
    x = shell(rod, basin, 400)
    torch.testing.assert_close(basin.distance(x), torch.full((400,), float(basin.level)), rtol=1e-4, atol=0.0)
    e = x @ torch.linalg.cholesky(basin.cost)
    quadrant = (e[:, 0] > 0).int() + 2 * (e[:, 1] > 0).int()
    assert int(torch.bincount(quadrant, minlength=4).min()) > 60
    assert torch.equal(shell(rod, basin, 400), x)


@pytest.mark.slow
def test_a_linear_robot_keeps_it_up_to_its_limits(tmp_path: Path) -> None:
    """V is the quadratic form everywhere: an ellipsoid of level L reaches sqrt(L inv(P)_ii) along state i."""
    problem = built(tmp_path, "rail", ON_THE_LEVEL)
    found = find_basin(problem, Hold(1.0))
    assert isinstance(found, Basin)
    largest = float((problem.state_limits**2 / torch.linalg.inv(found.cost).diagonal()).min())
    assert 0.45 * largest < found.level < 1.05 * largest


@pytest.mark.slow
def test_a_cost_that_is_steep_near_the_target_only_has_a_small_basin(tmp_path: Path) -> None:
    """|s| but for its tip, as the message of a kink advises: the curvature there is 25 times that of the whole cost."""
    cost = "2 * s**2 + 0.5 * ((s**2 + 1e-4) ** 0.5 - 0.01) + 0.3 * s.rate**2"
    steep = f"robot.point_mass(mass, (s, 0))\nrobot.task(state_cost={cost}, {TASK}"
    problem = built(tmp_path, "steep", steep)
    basin = find_basin(problem, Hold(1.0))
    assert isinstance(basin, Basin)
    x = shell(problem, basin, 64)
    paid = costs(problem, basin, x, 6.0)[1]
    starts = problem.sample_starts(64, torch.Generator().manual_seed(0))
    most = 0.005 * float(costs(problem, basin, starts, 6.0)[1].mean())
    error = (paid - basin.distance(x)).abs()
    assert bool((error < torch.maximum(0.25 * basin.distance(x), torch.tensor(2.0 * most))).all())


@pytest.mark.slow
def test_there_is_none_at_a_target_that_cannot_be_held(tmp_path: Path) -> None:
    """A pendulum that no input reaches."""
    problem = built(tmp_path, "falling", FALLING)
    assert cost_to_go(problem) is None
    assert find_basin(problem, Hold(1.0)) is None


@pytest.mark.slow
def test_a_target_that_an_input_holds_has_one(tmp_path: Path) -> None:
    """A weight that sinks without its trim."""
    problem = built(tmp_path, "lifted", LIFTED)
    assert float(problem.trim) != 0.0
    assert find_basin(problem, Hold(1.0)) is not None


@pytest.mark.slow
def test_there_is_none_where_a_motion_never_ends(tmp_path: Path) -> None:
    """The discount makes the cost of a mass that drifts for ever finite, but it does not arrive."""
    problem = built(tmp_path, "adrift", ADRIFT)
    assert cost_to_go(problem) is not None
    found = find_basin(problem, Hold(1.0))
    assert isinstance(found, Basin)
    assert found.empty


@pytest.mark.slow
def test_there_is_no_form_where_all_starts_are_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost nothing, which is no scale for errors."""
    problem = built(tmp_path, "adrift", ADRIFT)
    monkeypatch.setattr("solver.local.basin._start_cost", lambda *_: 0.0)
    assert find_basin(problem, Hold(1.0)) is None


@pytest.mark.slow
def test_the_form_of_a_unicycle_is_what_it_costs_to_stand(built_unseen: Callable[[str], Path]) -> None:
    """10 y^2/rho beside the target, for ever. No level is good; the form measures errors all the same."""
    problem = Problem(load_robot("unicycle", "cpu", str(built_unseen("unicycle"))))
    found = find_basin(problem, Hold(0.0))
    assert isinstance(found, Basin)
    assert found.empty
    y = problem.robot.state_names.index("y")
    assert float(found.cost[y, y]) == pytest.approx(10.0 * 8.0 / -math.log(0.6), rel=1e-3)
    assert float(found.cost[y].sum()) == pytest.approx(float(found.cost[y, y]), rel=1e-3)
    standing = 0.1 * 8.0 * (10.0 * (0.3**2 + 0.1**2) + 4.0 * 0.2**2 + 0.2**2)  # a tenth of the starts' cost, about
    assert 0.2 * standing < 100.0 * found.unit / 10.0 < 2.0 * standing
    x = near_target(problem, found, 6000, torch.Generator().manual_seed(2))
    share = found.distance(x) / found.unit
    assert 0.009 < float(share.min()) < 0.012
    assert float(share.max()) < 30.1
    ensemble = make_ensemble(problem.robot, make_settings("fast", problem.robot))
    ensemble.place(found)
    again = make_ensemble(problem.robot, make_settings("fast", problem.robot))
    again.load_state_dict(ensemble.state_dict())
    assert again.basin.empty
    assert again.basin.unit == pytest.approx(found.unit, rel=1e-5)
    values, at = FrozenValue(again)(x[:50]), problem.target[None]
    torch.testing.assert_close(values[0], again(x[:50]), rtol=1e-4, atol=1e-5)
    assert float(FrozenValue(again)(at)[0]) == pytest.approx(0.0, abs=1e-6)


def test_a_free_wheel_has_no_part_in_the_cost(load: Load) -> None:
    problem = Problem(load("reaction_wheel"))
    found = cost_to_go(problem)
    assert found is not None
    wheel = problem.robot.state_names.index("wheel")
    assert not found[0][wheel].any()
    assert not found[0][:, wheel].any()
    others = np.delete(np.delete(found[0], wheel, 0), wheel, 1)
    assert np.linalg.eigvalsh(others).min() > 0.0
    assert 0.0 < found[1] < 1.0  # the wheel runs down by its friction and the discount
    basin = Basin(problem.target, ~problem.clipped, torch.as_tensor(found[0], dtype=torch.float32), 0.01)
    x = near_target(problem, basin, 1000, torch.Generator().manual_seed(0))
    assert bool((x.abs() <= problem.state_limits).all())
    assert float(x[:, wheel].std()) > 0.1 * math.pi  # what the cost does not see is everywhere


def test_states_near_the_target_have_every_scale_in_the_metric_of_the_cost(rod: Problem, basin: Basin) -> None:
    """Of a small basin, none of whose larger shells meets a limit: as many states in each decade of e'Pe."""
    small = Basin(basin.target, basin.continuous, basin.cost, 1e-5)
    x = near_target(rod, small, 6000, torch.Generator().manual_seed(2))
    share = small.distance(x) / small.level
    assert float(share.min()) > 0.09
    assert 250.0 < float(share.max()) < 301.0
    for low in (0.1, 1.0, 10.0):
        decade = float(((share > low) & (share < 10.0 * low)).float().mean())
        assert decade == pytest.approx(math.log(10.0) / math.log(3000.0), abs=0.03)
    white = torch.nn.functional.normalize(x @ torch.linalg.cholesky(basin.cost), dim=1)
    torch.testing.assert_close(white.T @ white / len(white), 0.5 * torch.eye(2), rtol=0.0, atol=0.03)


def test_states_near_the_target_stay_in_the_domain(rod: Problem, basin: Basin) -> None:
    x = near_target(rod, basin, 2000, torch.Generator().manual_seed(2))
    assert x.shape == (2000, 2)
    assert bool((x.abs() <= rod.state_limits).all())
    share = basin.distance(x) / basin.level
    assert 0.2 < float((share < 1.0).float().mean()) < 0.6
    assert float(share.max()) > 30.0
    assert torch.equal(near_target(rod, basin, 2000, torch.Generator().manual_seed(2)), x)
