"""Told parameters: their choice, their ranges, and the game with the parameters of every row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
from modelgen import Quadratic, Robot
from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.commands.changes import read_given
from solver.errors import SolverError
from solver.game import Game
from solver.game.adversaries import Modulation, make_adversaries
from solver.game.policies import Hold
from solver.plants.outcome import controller, rollouts
from solver.problem import Problem
from solver.problem.context import Context, Given
from solver.problem.parameters import MATTERS, effects, resolve
from solver.problem.robots import load_robot
from tests.closeness import assert_close

Load = Callable[[str], CompiledRobot]
BOTH = (Given("mass", 0.5, 1.5), Given("length", 0.8, 1.2))
ODD = '''
"""A slider with a load that moves the trim, a parameter of the cost, and one of a wall out of reach."""
from sympy import Max

from modelgen import Quadratic, Robot

robot = Robot("odd", "A mass on a rail")
s = robot.prismatic("s", limit=1, rate_limit=3, meaning="position")
mass = robot.parameter("mass", 1.3, "kg", bounds=(0.5, 2), meaning="mass")
colour = robot.parameter("colour", 1.0, "m", bounds=(0.5, 2), meaning="changes nothing but the cost")
wall = robot.parameter("wall", 1.0, "N/m", bounds=(0.5, 2), meaning="stiffness of a wall out of reach")
load = robot.parameter("load", 0.2, "N", bounds=(0, 20), meaning="a force that pulls")
force = robot.input("force", 10, "N", meaning="drive")
robot.point_mass(mass, (s, 0))
robot.apply(s, force)
robot.apply(s, -load)
robot.apply(s, -wall * Max(0, s - 5))
robot.task(
    state_cost=2 * s**2 * colour,
    action_cost=Quadratic(0.3),
    start=dict(s=(0.5, 0.1)),
    horizon=3,
    weight_at_horizon=0.5,
    control_rate=250,
)
'''


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> CompiledRobot:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD)
    assert modelgen_main(["build", str(folder / "odd.py"), "--generated", str(folder / "generated")]) == 0
    return load_robot("odd", "cpu", str(folder / "generated"))


def test_a_context_names_the_ends_of_the_ranges(load: Load) -> None:
    robot = load("cartpole")
    context = Problem(robot, given=(Given("pole_mass", 0.1, 0.2),)).context
    assert context is not None
    theta = context.theta(torch.tensor([[-1.0], [0.0], [1.0]]))
    column = robot.parameter_names.index("pole_mass")
    assert_close(theta[:, column], torch.tensor([0.1, 0.15, 0.2]))
    others = [i for i in range(theta.shape[1]) if i != column]
    assert_close(theta[:, others], torch.as_tensor(robot.nominal_parameters)[others].expand(3, -1))
    assert_close(context.of(theta), torch.tensor([[-1.0], [0.0], [1.0]]))
    assert_close(context.replaced(0.5 * theta[0], torch.tensor([[1.0]]))[0, column], theta[2, column])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["length", "mass"], (Given("mass", 0.5, 2.0), Given("length", 0.5, 2.0))),
        (["mass=0.8:1.2"], (Given("mass", 0.8, 1.2),)),
        (["mass=0.5x:1.5x"], (Given("mass", 0.5, 1.5),)),
        (["mass=+-0.25:+0.5"], (Given("mass", 0.75, 1.5),)),
        (["all"], (Given("mass", 0.5, 2.0), Given("length", 0.5, 2.0))),
        (["all", "mass=0.9:1.1"], (Given("mass", 0.9, 1.1), Given("length", 0.5, 2.0))),
        ([], ()),
    ],
)
def test_ranges_are_the_bounds_or_given_ones(load: Load, words: list[str], expected: tuple[Given, ...]) -> None:
    assert resolve(load("pendulum"), read_given(words)) == expected


def test_all_are_the_five_that_change_most_and_those_that_are_named(load: Load) -> None:
    robot = load("furuta")  # six of its eight parameters matter
    sizes = effects(robot, [Given(p.name, p.lower, p.upper) for p in robot.metadata.parameters])
    matter = sorted((name for name, size in sizes.items() if size >= MATTERS), key=lambda name: -sizes[name])
    assert len(matter) == 6
    assert {given.name for given in resolve(robot, ["all"])} == {*matter[:5]}
    assert {given.name for given in resolve(robot, [matter[5], "all"])} == {*matter[:4], matter[5]}
    with pytest.raises(SolverError, match="at most 5"):
        resolve(robot, matter)


def test_all_leaves_out_those_that_change_least_until_the_rest_can_be_told(load: Load) -> None:
    robot, asked = load("furuta"), list[tuple[str, ...]]()

    def can_tell(_: CompiledRobot, given: tuple[Given, ...]) -> bool:
        asked.append(tuple(entry.name for entry in given))
        return len(given) <= 3

    most = resolve(robot, ["all"])
    sizes = effects(robot, most)
    least = sorted(sizes, key=lambda name: sizes[name])[:2]
    found = resolve(robot, ["all"], can_tell)
    assert found == tuple(entry for entry in most if entry.name not in least)
    assert [len(names) for names in asked] == [5, 4, 3]
    assert {given.name for given in resolve(robot, ["arm_mass", "all"], lambda *_: False)} == {"arm_mass"}


def test_factors_of_all_are_those_of_each_within_its_bounds(load: Load) -> None:
    robot = load("pendulum")
    assert resolve(robot, read_given(["all=0.1x:1.5x"])) == (Given("mass", 0.5, 1.5), Given("length", 0.5, 1.5))
    assert resolve(robot, read_given(["all=0.8x:1.2x"])) == resolve(
        robot, read_given(["mass=0.8x:1.2x", "length=0.8x:1.2x"])
    )


@pytest.mark.parametrize("text", ["1.2x:0.8x", "-0.05:+0.05", "+-0.05:+0.05", "0.8:1.2", "1.1x:1.5x", "1x:1x", "0x:2x"])
def test_a_range_of_all_that_is_not_of_factors_around_1_is_refused(text: str, load: Load) -> None:
    with pytest.raises(SolverError, match=rf"given all={re.escape(text)} is no range of factors"):
        resolve(load("pendulum"), read_given([f"all={text}"]))


def slider(**mass: Any) -> CompiledRobot:
    """A mass on a rail, with a bias that is 0."""
    robot = Robot("slider", "A mass on a rail")
    place = robot.prismatic("place", limit=1, rate_limit=3)
    robot.point_mass(robot.parameter("mass", 1, "kg", **mass), (place, 0))
    robot.apply(place, robot.input("force", 10, "N") + robot.parameter("bias", 0, "N", bounds=(-5, 5)))
    start = {"place": (0.5, 0.1)}
    robot.task(
        state_cost=place**2, action_cost=Quadratic(0.3), start=start, horizon=3, weight_at_horizon=0.5, control_rate=50
    )
    return modelgen.compile(robot, backend="llvm", dtype="float32")


def test_all_with_factors_leaves_out_what_is_zero() -> None:
    robot = slider(tolerance=0.5)
    assert {given.name for given in resolve(robot, ["all"])} == {"mass", "bias"}
    assert resolve(robot, read_given(["all=0.8x:1.2x"])) == (Given("mass", 0.8, 1.2),)


def test_all_of_none_is_refused() -> None:
    with pytest.raises(SolverError, match=r"given all: no parameter .* slider"):
        resolve(slider(fixed=True), read_given(["all=0.8x:1.2x"]))


def test_ends_relative_to_the_nominal_value_have_no_rounding(load: Load) -> None:
    """1.4 times 0.127 in floating point is 0.17779999999999999, beyond which 0.1778 would be."""
    assert resolve(load("cartpole"), read_given(["pole_mass=0.6x:1.4x"])) == (Given("pole_mass", 0.0762, 0.1778),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mas"], "no parameter 'mas'. Did you mean `mass`"),
        (["mass=0.4:1"], "exceeds the bounds of the model file, 0.5 to 2 kg"),
        (["mass=1:1"], "there is nothing to tell"),
        (["mass=1.1:1.4"], "leaves out the nominal 1 kg"),
        (["mass=1.2:0.9"], "exchange them"),
        (["mass", "mass=1:2"], "names mass twice"),
        (["mass=1"], "cannot read given mass=1"),
        (["mass=a:b"], "cannot read given mass=a:b"),
    ],
)
def test_wrong_names_and_ranges_are_refused(load: Load, words: list[str], message: str) -> None:
    with pytest.raises(SolverError, match=message.replace(".", r"\.").replace("`", ".")):
        resolve(load("pendulum"), read_given(words))


@pytest.mark.parametrize(
    "given", [7, [3], {"mass": 1.0}, {"mass": (0.5,)}, {"mass": (0.8, 1.0, 1.2)}, {"mass": ("a", "b")}, {"mass": "ab"}]
)
def test_what_is_neither_names_nor_ranges_is_explained(load: Load, given: Any) -> None:
    with pytest.raises(SolverError, match=r'given (is|has) .*; give names, or ranges by name: \["mass"\]'):
        resolve(load("pendulum"), given)


def test_a_range_with_an_end_that_is_no_number_is_refused(load: Load) -> None:
    with pytest.raises(SolverError, match="two finite numbers"):
        resolve(load("pendulum"), {"mass": (float("nan"), 1.0)})


def test_a_parameter_without_effect_and_one_that_no_input_holds_are_refused(odd: CompiledRobot, load: Load) -> None:
    with pytest.raises(SolverError, match=r"given load: .*odd"):
        resolve(odd, ["load"])
    assert resolve(odd, {"load": (0.0, 0.5)}) == (Given("load", 0.0, 0.5),)
    with pytest.raises(SolverError, match="given wall"):
        resolve(odd, ["wall"])
    with pytest.raises(SolverError, match="at most 5"):
        resolve(load("furuta"), load("furuta").parameter_names)


def test_no_corner_of_five_ranges_is_left_out() -> None:
    """One corner of 32 asks for more force than the input has, 6 N of 5; the next ones for 4 N."""
    robot = Robot("five_weights", "A body under three weights and above two springs")
    height = robot.prismatic("height", limit=1, rate_limit=2)
    robot.kinetic_energy(height.rate**2 / 2)
    pulls = [robot.parameter(f"pull_{i}", 1, "N", bounds=(0, 2)) for i in range(5)]
    force = robot.input("force", 5, "N")
    robot.apply(height, force - pulls[0] - pulls[1] + pulls[2] + pulls[3] - pulls[4])
    robot.task(
        state_cost=height**2 + height.rate**2,
        action_cost=Quadratic(0.1),
        start=dict(height=(0.5, 0.1)),
        horizon=5,
        weight_at_horizon=0.8,
        control_rate=100,
    )
    with pytest.raises(SolverError, match="pull_0 = 2, pull_1 = 2, pull_2 = 0, pull_3 = 0, pull_4 = 2"):
        resolve(modelgen.compile(robot, dtype="float32"), [f"pull_{i}" for i in range(5)])


def test_the_effect_is_the_change_of_the_motion(load: Load, odd: CompiledRobot) -> None:
    """The force acts by 1/m, which changes from 2 to 0.5, half of it 0.75, about 1/1.3."""
    found = effects(odd, [Given(name, 0.5, 2.0) for name in ("mass", "colour", "wall")])
    assert found["mass"] == pytest.approx(0.5 * 1.5 * 1.3, rel=0.02)
    assert found["colour"] == pytest.approx(0.75, rel=1e-4)
    assert found["wall"] == 0.0
    assert set(effects(load("pendulum"), BOTH)) == {"mass", "length"}


def test_the_state_cost_depends_on_told_parameters_only(odd: CompiledRobot) -> None:
    x = torch.tensor([[0.5, 0.0], [0.2, 1.0]])
    theta = torch.tensor(odd.nominal_parameters).repeat(2, 1)
    theta[:, 1] = torch.tensor([0.5, 2.0])
    told, untold = Problem(odd, given=(Given("colour", 0.5, 2.0),)), Problem(odd)
    assert_close(told.state_cost(x, theta), torch.tensor([0.25, 0.16]))
    assert_close(told.state_cost(torch.cat([x, x]), theta), torch.tensor([0.25, 0.16, 0.25, 0.16]))
    assert_close(untold.state_cost(x, theta), torch.tensor([0.5, 0.08]))


def quadratic(n: int) -> Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """V = -|x|^2 of the states of rows."""
    return lambda rows: (-rows[:, :n].square().sum(1), -2.0 * rows[:, :n])


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "planar_quadrotor"])
def test_a_value_step_of_rows_is_that_of_each_robot(load: Load, name: str) -> None:
    """The same step with the robot whose nominal parameters are those of the row. Adversaries move the rest only."""
    robot = load(name)
    told_column = 0 if name == "planar_quadrotor" else 1  # its mass moves the trim
    bounds = [float(end) for end in robot.parameter_bounds[told_column]]
    given = (Given(robot.parameter_names[told_column], *bounds),)
    told = Problem(robot, given=given)
    rows, n = told.sample_domain(5, torch.Generator().manual_seed(3)), len(told.target)
    x, theta = told.split(rows)
    assert theta is not None

    def step(problem: Problem, at: torch.Tensor, radii: dict[str, float]) -> tuple[Any, ...]:
        game = Game(problem, make_adversaries(radii), limit_cost=1.0)
        policy = Hold(1.0).policy(problem, quadratic(n), 2)
        modulation = Modulation("stationary", 0.1, torch.Generator().manual_seed(0))
        move = game.move(at, quadratic(n)(at)[1], policy, modulation)
        return (*game.advance(at, move, 2), move)

    for radii in ({}, {"state": 0.01, "action": 0.1, "observation": 0.01}, {"parameters": 0.1}):
        ends, costs, move = step(told, rows, radii)
        assert torch.equal(ends[:, n:], rows[:, n:])
        if "parameters" in radii:
            assert_close(move.disturbed.theta[:, told_column], theta[:, told_column])
            lower, upper = (torch.clamp(s * told.theta, *told.theta_bounds.T) for s in (0.9, 1.1))
            for i in set(range(theta.shape[1])) - {told_column}:
                moved = move.disturbed.theta[:, i]
                assert bool(
                    (torch.isclose(moved, lower[i]) | torch.isclose(moved, upper[i]) | (moved == theta[:, i])).all()
                )
            continue
        for i in range(len(rows)):
            single = Problem(robot.with_nominal(theta[i].tolist()))
            if told.moving_trim:
                single.hold(told.trim_of(theta)[i])
            end, cost, _ = step(single, x[i : i + 1], radii)
            torch.testing.assert_close(ends[i, :n], end[0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(costs[i], cost[0], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_rollout_keeps_its_context(load: Load) -> None:
    told = Problem(load("pendulum"), given=BOTH)
    rows = told.sample_starts(4, torch.Generator().manual_seed(0))
    result = rollouts(told, controller(told, quadratic(2), Hold(1.0)), rows, seconds=0.4)
    assert torch.equal(result.x[..., 2:], rows[:, 2:].expand(len(result.x), -1, -1))
    assert result.at_limit.shape == (4, 2)
    context = Context(BOTH, load("pendulum").metadata, torch.ones(2))
    for i, theta in enumerate(context.theta(rows[:, 2:]).tolist()):
        single = Problem(load("pendulum").with_nominal(theta))
        alone = rollouts(single, controller(single, quadratic(2), Hold(1.0)), rows[i : i + 1, :2], seconds=0.4)
        assert_close(result.x[:, i, :2], alone.x[:, 0], len(result.x))
        assert_close(result.returns[i], alone.returns[0], len(result.x))


def test_values_beyond_the_range_are_refused(load: Load) -> None:
    context = Problem(load("pendulum"), given=BOTH).context
    assert context is not None
    context.require_within(torch.tensor([1.5, 0.8]))
    with pytest.raises(SolverError, match=r"mass = 1\.6, .*0\.5 to 1\.5"):
        context.require_within(torch.tensor([1.6, 1.0]))


def test_the_trim_of_every_context_holds_the_target(load: Load, odd: CompiledRobot) -> None:
    """Half of the added weight on either rotor; the load of the slider; none for a rod that is balanced upright."""
    mass = load("planar_quadrotor").metadata.parameters[0]
    told = Problem(load("planar_quadrotor"), given=(Given("mass", mass.lower, mass.upper),))
    theta = told.context.theta(torch.tensor([[-1.0], [0.3], [1.0]]))  # type: ignore[union-attr]
    u = told.trim_of(theta)
    assert told.moving_trim
    drift = told.robot.dynamics(told.target.repeat(3, 1), u, theta)
    assert float(drift.abs().max()) < 1e-4
    assert_close(u[:, 0], u[:, 1], 10)
    slider = Problem(odd, given=(Given("load", 0.0, 5.0),))
    assert slider.moving_trim
    assert_close(slider.trim_of(torch.tensor([[1.3, 1.0, 1.0, 4.0]])), torch.tensor([[4.0]]))
    assert not Problem(load("pendulum"), given=BOTH).moving_trim


@pytest.mark.parametrize("name", ["pendulum", "planar_quadrotor"])
def test_an_action_cost_about_another_trim_is_a_bregman_distance(load: Load, load64: Load, name: str) -> None:
    """Zero at the trim, of the kernel's curvature, and least at the policy's input, by a search on a grid."""
    problem, exact = Problem(load(name)), Problem(load(name)).action_cost
    m, limits, middle = len(problem.trim), problem.input_limits, problem.input_middle
    trims = middle + torch.linspace(-0.4, 0.4, 5)[:, None] * limits
    cost = exact.about(trims)
    assert_close(cost.cost(trims), torch.zeros(5))
    first, second = cost.slopes(trims)
    assert float(first.abs().max()) < 1e-5 * float(second.max())
    assert_close(second, exact.slopes(trims)[1])
    u = middle + (torch.rand(5, m, generator=torch.Generator().manual_seed(0)) - 0.5) * limits
    kernel = load64(name)
    g, g0 = (np.asarray(kernel.action_cost(values.double().numpy())[0]) for values in (u, trims))
    slope = np.asarray(kernel.action_cost(trims.double().numpy())[1])
    np.testing.assert_allclose(
        cost.cost(u), g - g0 - (slope * (u - trims).double().numpy()).sum(1), rtol=1e-3, atol=1e-5
    )
    w = torch.linspace(-2.0, 2.0, 5)[:, None] * second / 5
    best = cost.policy(w)
    np.testing.assert_allclose(cost.cost_of_policy(w), cost.cost(best), rtol=1e-3, atol=1e-5)
    reward = (w * best).sum(1) - cost.cost(best)
    for step in (-0.01, 0.01):
        for i in range(m):
            other = best.clone()
            other[:, i] = (other[:, i] + step * limits[i]).clamp(problem.lower_input[i], problem.upper_input[i])
            assert bool(((w * other).sum(1) - cost.cost(other) < reward + 1e-5).all())


@pytest.mark.parametrize(
    ("given", "heaviest", "load"),
    [(Given("mass", 0.5, 2.0), 2.0, 0.2), (Given("load", 0.0, 7.0), 1.3, 7.0), (Given("mass", 0.5, 1.3), 1.3, 0.2)],
)
def test_a_rollout_of_a_family_lasts_as_its_slowest_robot_needs(
    odd: CompiledRobot, given: Given, heaviest: float, load: float
) -> None:
    # From rest to rest over d, with the same force either way: 2 sqrt(d mass / force). The trim takes the load's part.
    nominal, slowest = (np.sqrt(mass / (10.0 - force)) for mass, force in ((1.3, 0.2), (heaviest, load)))
    wanted = np.ceil(30.0 * slowest / nominal - 1e-4) / 10.0
    assert Problem(odd, given=(given,)).horizon == pytest.approx(wanted)
    assert Problem(odd).horizon == 3.0


def test_the_slowest_pendulum_gives_the_horizon(load: Load) -> None:
    both = (Given("mass", 0.5, 1.5), Given("length", 0.5, 1.5))
    assert Problem(load("pendulum"), given=both).horizon == pytest.approx(np.ceil(50.0 * np.sqrt(1.5**3)) / 10.0)
    assert Problem(load("pendulum"), given=(Given("mass", 0.5, 1.0),)).horizon == 5.0
