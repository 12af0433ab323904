"""Disturbances that are not forgotten, and estimated parameters: against a textbook filter, bounded, frozen, found."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from sympy import cos, sin
from torch import Tensor

import modelgen
import solver
from modelgen import Quadratic, Robot
from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.certification.experiment import Experiment
from solver.cli import main
from solver.errors import SolverError
from solver.jobs.engines import policy_reference
from solver.observer import (
    FOUND,
    PARAMETERS_CHANGE,
    Observer,
    Sensing,
    make_sensing,
    usual_counts,
)
from solver.observer.observability import UNKNOWN, estimated_parameters
from solver.observer.rest import largest_disturbance, lean, leaning, shift
from solver.plants.episodes import Episodes
from solver.plants.outcome import succeeded
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.integrator import integrate_period
from solver.problem.parameters import Relative
from solver.problem.robots import load_robot
from tests.solver.conftest import SLIDER
from tests.solver.observer.linear_filter import ParameterFilter

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]


@pytest.fixture(scope="module")
def rail(slider: str) -> Problem:
    """The slider of mass 1.3 kg (0.5 to 2) and friction 0.4 N s/m (0.1 to 1)."""
    return Problem(load_robot("slider", "cpu", slider))


def usual(problem: Problem) -> Sensing:
    return make_sensing(problem, usual_counts(problem))


def moved(problem: Problem, observer: Observer, x: Tensor, inputs: list[Tensor], theta: Tensor, load: Tensor) -> Tensor:
    """True states (N, n) after the inputs, of the robot with theta and the constant load (m,) on its inputs."""
    for u in inputs:
        observer.estimate(x[:, : len(observer.measured)])
        observer.sent(u)
        x = integrate_period(problem, x, u + load, theta).x
    return x


def waves(problem: Problem, seconds: float, size: float = 0.3) -> list[Tensor]:
    """Inputs (1, m) of every period: a sine of 1 Hz, `size` of the limits."""
    times = torch.arange(round(seconds / problem.control_step)) * problem.control_step
    return [size * problem.input_limits[None] * math.sin(2.0 * math.pi * float(t)) for t in times]


def test_filter_of_state_disturbance_and_parameters_is_the_textbook_one(rail: Problem) -> None:
    deviation = 2e-3 / math.sqrt(12.0)
    observer = Observer(rail, make_sensing(rail, counts=torch.tensor([2e-3])), [0, 1])
    theirs, generator = ParameterFilter(rail.robot, deviation), np.random.default_rng(0)
    x, theta = torch.zeros(1, 2), torch.tensor([1.7, 0.25])
    innovations, errors, u = [], [], 0.0
    for k in range(300):
        y = float(x[0, 0]) + generator.normal() * deviation
        observer.estimate(torch.tensor([[y]]))
        if k == 0:
            theirs.z[0] = y
        else:
            innovation = theirs.step(u, y)
            innovations.append((float(observer.normalised_innovation[0]), innovation))
            assert observer.parameters is not None
            slow = np.concatenate([observer.disturbance[0].numpy(), observer.parameters[0].numpy()])
            errors.append(np.abs(slow - theirs.z[2:]) / (theirs.upper - theirs.lower))
            np.testing.assert_allclose(observer.x[0].numpy(), theirs.z[:2], atol=1e-4)  # type: ignore[index]
        u = 4.0 * math.sin(0.07 * k) + generator.normal()
        observer.sent(torch.tensor([[u]], dtype=torch.float32))
        x = integrate_period(rail, x, torch.tensor([[u + 0.4]], dtype=torch.float32), theta).x
    assert float(np.max(errors)) < 2e-3
    ours, expected = np.array(innovations).T
    np.testing.assert_allclose(ours, expected, rtol=0.05, atol=0.01)
    np.testing.assert_allclose(observer.covariance[0].numpy(), theirs.P, rtol=0.02, atol=1e-5)


def test_innovations_of_robots_within_the_bounds_are_as_large_as_the_filter_says(rail: Problem) -> None:
    """Every robot has other parameters and another constant load; mean of the normalised innovation 1, chi-square."""
    size, generator = 400, torch.Generator().manual_seed(1)
    rail.theta_bounds, bounds = rail.theta[:, None] * torch.tensor([0.8, 1.2]), rail.theta_bounds
    sensing = make_sensing(rail, noise=usual_counts(rail))
    observer, (low, high) = Observer(rail, sensing, [0, 1]), rail.theta_bounds.T
    rail.theta_bounds = bounds
    theta = low + (high - low) * torch.rand(size, 2, generator=generator)
    load = observer.largest * (2.0 * torch.rand(size, 1, generator=generator) - 1.0)
    x, means = torch.zeros(size, 2), []
    for u in waves(rail, 1.0):
        noise = sensing.deviation * torch.randn(size, 1, generator=generator)
        observer.estimate(x[:, :1] + noise)
        means.append(float(observer.normalised_innovation.mean()))
        observer.sent(u.repeat(size, 1))
        x = integrate_period(rail, x, u + load, theta).x
    mean, bound = np.mean(means[10:]), chi2.ppf(0.99, size) / size
    assert 0.7 < mean < bound  # below 1, because these robots do not wander


@pytest.mark.parametrize("name", ["pendulum", "planar_quadrotor"])
def test_a_constant_load_is_found_in_time_and_not_forgotten(name: str, load: Load) -> None:
    problem = Problem(load(name))
    observer, x = Observer(problem, usual(problem)), problem.target[None].clone()
    if name == "pendulum":
        x[:, 0] = math.pi - 0.1
    push = 0.08 * problem.input_limits
    still = [problem.trim[None]] * round(3.0 * FOUND / problem.control_step)
    moved(problem, observer, x, still[: len(still) // 3], problem.theta, push)
    assert float((observer.disturbance / push - 1.0).abs().max()) < 0.3
    moved(problem, observer, x, still, problem.theta, push)
    before = observer.disturbance.clone()
    # A second in which the robot is measured where it is predicted: nothing new is known.
    for _ in range(round(1.0 / problem.control_step)):
        observer.sent(problem.trim[None])
        assert observer.x is not None
        period = integrate_period(problem, observer.x, problem.trim + observer.disturbance)
        observer.estimate(period.x[:, : len(observer.measured)])
    torch.testing.assert_close(observer.disturbance, before, rtol=0.02, atol=1e-3)


def test_estimates_are_bounded_frozen_at_rest_and_found_again_after_a_step(rail: Problem) -> None:
    observer, none = Observer(rail, usual(rail), [0, 1]), torch.zeros(1)
    light, heavy = torch.tensor([0.6, 0.4]), torch.tensor([1.8, 0.4])
    x = moved(rail, observer, torch.zeros(1, 2), waves(rail, 1.5), heavy, none)
    assert observer.parameters is not None
    assert float(observer.parameters[0, 0]) == pytest.approx(1.8, rel=0.03)
    x[:, 1] = 0.0
    observer.estimate(x[:, :1])  # it has stopped
    observer.sent(none[None])
    still = [torch.zeros(1, 1)] * round(0.5 / rail.control_step)
    moved(rail, observer, x, still, heavy, none)
    held = observer.parameters.clone()
    moved(rail, observer, x, still * 2, heavy, none)
    torch.testing.assert_close(observer.parameters, held, rtol=1e-3, atol=1e-4)  # a second without excitation
    moved(rail, observer, x, waves(rail, 2.0), light, none)  # the load has changed
    assert float(observer.parameters[0, 0]) == pytest.approx(0.6, rel=0.1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):  # positions that no such robot has
        observer.estimate(2.0 * torch.rand(1, 1, generator=generator) - 1.0)
        observer.sent(rail.input_limits[None])
        lower, upper = rail.theta_bounds.T
        assert bool(((observer.parameters >= lower) & (observer.parameters <= upper)).all())
        assert bool((observer.disturbance.abs() <= observer.largest).all())


def test_a_force_is_shifted_beside_a_flow_of_a_pump() -> None:
    """Inputs in N and m^3/s differ by 1e8 in their effect. By statics, a fifth more mass needs a fifth more force."""
    robot = Robot("crane")
    along, height = robot.prismatic("along", limit=1, rate_limit=1), robot.prismatic("height", limit=1, rate_limit=1)
    pressure, flow = robot.state("pressure", limit=2e7, unit="Pa"), robot.input("flow", 1e-4, "m^3/s")
    robot.point_mass(robot.parameter("mass", 200.0, "kg", tolerance=0.3), (along, height))
    robot.apply(along, 1e-3 * pressure)
    robot.damp(along, 2000)
    robot.apply(height, robot.input("force", 5000, "N"))
    robot.flow(pressure, 1.6e13 * (flow - 1e-3 * along.rate - 1e-12 * pressure))
    cost = along**2 + along.rate**2 + height**2 + height.rate**2
    task: dict[str, Any] = {"start": {}, "horizon": 1, "weight_at_horizon": 0.5, "control_rate": 1000}
    robot.task(state_cost=cost, action_cost=Quadratic([1e7, 1e-7]), **task)
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    heavy = 1.2 * problem.theta[None]
    np.testing.assert_allclose(shift(problem, heavy)[0].numpy(), [0, -0.2 * 200 * 9.81], rtol=1e-4)
    np.testing.assert_allclose(lean(problem, heavy).numpy(), 0, atol=1e-6)


def test_a_robot_whose_inputs_hold_every_load_does_not_lean() -> None:
    """A lift with an arm: a strong rotor holds both weights, a weak motor the arm. What is left of the accelerations is
    rounding. With any mass the robot rests at its target, which is a success."""
    robot = Robot("lift")
    height, arm = robot.prismatic("height", limit=1.5, rate_limit=4), robot.revolute("arm", limit=1.2, rate_limit=8)
    mass, tip = (robot.parameter(name, value, "kg", tolerance=0.3) for name, value in (("mass", 1.0), ("tip", 0.2)))
    robot.point_mass(mass, (0, height))
    robot.point_mass(tip, (0.4 * sin(arm), height - 0.4 * cos(arm)))
    robot.apply(height, robot.input("thrust", (0, 30), "N"))
    robot.apply(arm, robot.input("twist", (-0.1, 0.3), "N m"))
    cost = height**2 + height.rate**2 + (arm - 0.05) ** 2 + arm.rate**2
    task: dict[str, Any] = {"start": {}, "horizon": 1, "weight_at_horizon": 0.5, "control_rate": 50}
    robot.task(state_cost=cost, action_cost=Quadratic(0.1), target={"arm": 0.05}, **task)
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    lower, upper = problem.theta_bounds.T
    theta = lower + torch.rand(64, 2, generator=torch.Generator().manual_seed(0)) * (upper - lower)
    assert float((lean(problem, theta) / problem.tangent_limits).abs().max()) < 1e-3
    assert leaning(problem, [0, 1]) == []
    assert succeeded(problem, problem.target.expand(60, 64, -1), theta).all()


def test_largest_disturbance_of_a_quadrotor_carries_its_heaviest_load(load: Load) -> None:
    """30 % more mass need 15 % of the weight more from each rotor. As an estimated parameter, it needs nothing more."""
    problem = Problem(load("planar_quadrotor"))
    lift = 0.3 * 0.486 * 9.81 / 2.0
    worst = (1.0 / 0.7 - 1.0) * 0.7 * 0.486 * 9.81 / 2.0  # 30 % less
    assert lift == pytest.approx(worst)
    heavy = problem.theta.clone()
    heavy[0] *= 1.3
    np.testing.assert_allclose(shift(problem, heavy[None])[0].numpy(), [-lift, -lift], rtol=1e-4)
    observer = Observer(problem, usual(problem), [0])
    observer.estimate(problem.target[None, :3])
    observer.parameters = heavy[None]
    u = torch.tensor([[0.1, 0.2]])
    torch.testing.assert_close(observer.compensate(u), u + lift)
    told = Observer(Problem(load("planar_quadrotor"), given=(Given("mass", 0.4, 0.6),)), usual(problem), [0])
    told.estimate(problem.target[None, :3])
    told.parameters = heavy[None]
    beyond = (1.3 * 0.486 - 0.6) * 9.81 / 2.0  # the policy itself carries a load within its range
    torch.testing.assert_close(told.compensate(u), u + beyond)
    told.parameters = torch.where(heavy == heavy[0], 0.55, heavy)[None]
    torch.testing.assert_close(told.compensate(u), u)
    np.testing.assert_allclose(largest_disturbance(problem).numpy(), 0.1 * 2.35 + lift, rtol=1e-4)
    np.testing.assert_allclose(largest_disturbance(problem, [0]).numpy(), 0.235, rtol=1e-4)


def test_a_quadrotor_leans_against_the_wind(built_unseen: Callable[[str], Path]) -> None:
    """Its thrust is the weight less the wind, by size and direction. The policy sees a level robot."""
    robot = load_robot("quadrotor_space_goal", "cpu", str(built_unseen("quadrotor_space_goal")))
    problem = Problem(robot, given=tuple(Given(f"goal_{axis}", -1.5, 1.5) for axis in "xyz"))
    names = problem.robot.parameter_names
    assert [names[i] for i in leaning(problem, range(len(names)))] == ["pull_x", "pull_y"]
    theta = problem.theta.repeat(2, 1)
    wind = torch.tensor([[0.4, -0.3, 0.2], [0.0, 0.5, -0.1]])
    theta[:, [names.index(f"pull_{axis}") for axis in "xyz"]] = wind
    theta[:, names.index("goal_x")] = torch.tensor([1.2, -0.7])
    thrust = torch.tensor([0.0, 0.0, 0.5 * 9.81]) - wind
    apart = lean(problem, theta)
    rest = problem.geometry.moved(problem.targets_of(theta), apart)
    torch.testing.assert_close(rest[:, :3], theta[:, [names.index(f"goal_{axis}") for axis in "xyz"]])
    w, x, y, z = rest[:, 3:7].unbind(1)
    axis = torch.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], 1)
    torch.testing.assert_close(axis, torch.nn.functional.normalize(thrust), rtol=0.0, atol=2e-5)
    send = problem.trim - shift(problem, theta, apart)
    torch.testing.assert_close(send.sum(1), torch.linalg.vector_norm(thrust, dim=1), rtol=1e-5, atol=0.0)
    observer = Observer(problem, usual(problem), [names.index(f"pull_{axis}") for axis in "xyz"])
    observer.know(theta)
    observer.estimate(rest[:, : problem.robot.metadata.nq])
    torch.testing.assert_close(observer.upright(rest), problem.targets_of(theta), rtol=0.0, atol=1e-5)
    torch.testing.assert_close(observer.compensate(problem.trim.expand(2, -1)), send)
    still = problem.told(rest, theta).expand(60, -1, -1)
    assert succeeded(problem, still, theta).all()
    assert not succeeded(problem, still).any()
    episodes = Episodes(problem, 2, "gaussian", 0.0, 1.0, 1)
    episodes.restart([0, 1], [np.random.default_rng(0)] * 2)
    episodes.theta, episodes.x, episodes.c = theta, rest, problem.told(rest, theta)[:, rest.shape[1] :]
    ended = [
        episodes.advance(((send - problem.input_middle) / problem.input_limits).numpy())[1]
        for _ in range(episodes.length)
    ]
    assert ended[-1].all()
    assert episodes.success.all()


def test_a_quadrotor_of_another_mass_reaches_its_target() -> None:
    """Without the observer it hovers beside it."""
    heavy: dict[str, Any] = {"parameters": {"mass": Relative(1.2)}, "episodes": 2, "seconds": 3.0}
    assert solver.evaluate("planar_quadrotor-rfvi", **heavy).statistics["success_rate"] == 0.0
    told = solver.evaluate("planar_quadrotor-rfvi", **heavy, observer=True, estimate=["mass"])
    assert told.statistics["success_rate"] == 1.0
    assert told.to_json()["estimates"]["mass"]["mean"] == pytest.approx(told.parameters["mass"], rel=0.03)


ODD = SLIDER.replace(
    "robot.apply(s, force)",
    """bias = robot.parameter("bias", 0.0, "N", bounds=(-0.1, 0.1), meaning="offset of the drive")
colour = robot.parameter("colour", 1.0, "1", bounds=(0.5, 2), meaning="of the paint")
robot.apply(s, force + bias + 1e-30 * colour)""",
).replace('"slider"', '"odd"')


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A slider with parameters that cannot be estimated."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD)
    assert modelgen_main(["build", str(folder / "odd.py"), "--generated", str(folder / "generated")]) == 0
    return Problem(load_robot("odd", "cpu", str(folder / "generated")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("masss", r"Did you mean `mass`"),
        ("colour", r"no effect"),
        ("bias", r"not observable.* 9\d %|not observable.* 100 %"),
    ],
)
def test_a_parameter_that_cannot_be_estimated_is_refused(name: str, text: str, odd: Problem) -> None:
    with pytest.raises(SolverError, match=text):
        estimated_parameters(odd, usual(odd), [name])


def test_of_told_parameters_that_show_together_only_the_best_known_values_are_estimated(
    odd: Problem, load: Load
) -> None:
    """A quadrotor turns by arm / inertia: the filter finds this ratio, and leaves the rest as it was known."""
    place = odd.robot.parameter_names.index("bias")
    told = Problem(odd.robot, given=(Given("bias", *odd.theta_bounds[place].tolist()),))
    assert estimated_parameters(told, usual(told), ["bias"]) == [place]
    robot = load("planar_quadrotor")
    names, alone = robot.parameter_names, Problem(robot)
    pair = names.index("inertia"), names.index("arm")
    with pytest.raises(SolverError, match="not observable"):
        estimated_parameters(alone, usual(alone), ["inertia", "arm"])
    problem = Problem(robot, given=tuple(Given(names[i], *alone.theta_bounds[i].tolist()) for i in pair))
    observer = Observer(problem, usual(problem), estimated_parameters(problem, usual(problem), ["inertia", "arm"]))
    theta = problem.theta.clone()
    theta[pair[0]] *= 1.2
    signs = 2.0 * torch.randint(0, 2, (20,), generator=torch.Generator().manual_seed(0)) - 1.0
    turns = 0.5 * problem.input_limits * torch.tensor([1.0, -1.0])
    inputs = [problem.trim[None] + float(sign) * turns for sign in signs for _ in range(5)]
    moved(problem, observer, problem.target[None], inputs, theta, torch.zeros(2))
    assert observer.parameters is not None
    found = observer.parameters[0] / problem.theta
    assert float(found[pair[1]] / found[pair[0]]) == pytest.approx(1.0 / 1.2, rel=0.03)
    assert float(found[pair[0]]) > 1.01
    assert float(found[pair[1]]) < 0.99


def test_a_parameter_without_bounds_is_refused(rail: Problem) -> None:
    bounds = rail.theta_bounds.clone()
    rail.theta_bounds[1] = rail.theta[1]
    with pytest.raises(SolverError, match=r"estimate damping: .*0\.4 .*0\.4"):
        estimated_parameters(rail, usual(rail), ["damping"])
    rail.theta_bounds = bounds


def test_all_estimates_what_has_bounds_and_is_observable(odd: Problem) -> None:
    found = estimated_parameters(odd, usual(odd), ["all"])
    assert [odd.robot.parameter_names[i] for i in found] == ["mass", "damping"]
    assert 0.5 < UNKNOWN < 1.0
    assert PARAMETERS_CHANGE > FOUND


def test_interfaces_take_parameters_to_estimate(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = solver.load(finished_run).robot.parameter_names[0]
    words = ["evaluate", str(finished_run), "--episodes", "2", "--estimate", name]
    assert main(words) == 2
    assert "--observer" in capsys.readouterr().err
    assert main([*words, "--observer"]) == 0
    assert f"{name}: estimated" in capsys.readouterr().out
    controller = solver.load_controller(finished_run, estimate=[name])
    controller([2.0])
    assert controller.parameters[name] > 0.0
    specification = finished_run.parent / "estimate.toml"
    specification.write_text(f'estimate = ["{name}"]\n')
    with pytest.raises(SolverError, match="observer = true"):
        Experiment(policy_reference(finished_run), specification)
    specification.write_text(f'observer = true\nestimate = ["{name}"]\n')
    assert Experiment(policy_reference(finished_run), specification).specification.conditions.estimate == (name,)
    specification.unlink()
