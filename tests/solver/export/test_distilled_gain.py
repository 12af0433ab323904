"""A distilled policy around the target, and what it is compared on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import modelgen
from modelgen import Quadratic, Robot
from solver.export.distilled import regression
from solver.export.distilled.network import SmallNetwork, argument_scale, controller
from solver.export.distilled.regression import target_gain
from solver.plants.outcome import Controller
from solver.problem import Problem
from solver.training.solution import load_solution
from solver.value.features import Features

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["furuta-rfvi", "planar_arm2-rfvi"])
def test_the_distilled_gain_at_the_target_is_the_runs(name: str) -> None:
    """Whatever the weights are: du/dx by central differences, for one input and two."""
    solution = load_solution(name)
    problem, scale = solution.problem, argument_scale(solution.problem)
    teacher = solution.run.settings.hold.policy(problem, solution.value)
    gain = target_gain(solution, teacher, scale)
    network = SmallNetwork(solution.ensemble.features, scale, 16, torch.Generator().manual_seed(3), gain)
    step = 2e-3 * problem.state_limits

    def slopes(act: Controller) -> Tensor:
        up, down = (act(problem.target + sign * torch.diag(step))[0] for sign in (1.0, -1.0))
        return (up - down) / problem.input_limits / 4e-3  # (n, m), for states and inputs of unit size

    wanted = slopes(solution.controller())
    torch.testing.assert_close(slopes(controller(problem, network)), wanted, rtol=0.02, atol=0.01)
    assert wanted.abs().max() > 0.1
    assert float(controller(problem, network)(problem.target[None])[0].abs().max()) < 1e-5


def test_the_gain_of_a_pressure_is_kept() -> None:
    """Beside a length in m, the slopes of a state in Pa are below the rounding of single precision."""
    robot = Robot("press")
    height, pressure = robot.prismatic("height", limit=1, rate_limit=1), robot.state("pressure", limit=2e7, unit="Pa")
    flow = robot.input("flow", 1e-4, "m^3/s")
    robot.point_mass(robot.parameter("mass", 200.0, "kg", tolerance=0.3), (0, height))
    robot.apply(height, 1e-3 * pressure)
    robot.flow(pressure, 1e11 * (flow - 1e-3 * height.rate))
    task: dict[str, Any] = {"start": {}, "horizon": 1, "weight_at_horizon": 0.5, "control_rate": 1000}
    robot.task(state_cost=height**2 + height.rate**2, action_cost=Quadratic(1e7), **task)
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    limits, gain = problem.state_limits, torch.tensor([[0.3, -0.7, 1.1]])
    features = Features(
        torch.empty(0, dtype=torch.long), torch.arange(3), 1 / limits, torch.zeros(3), torch.eye(3), limits[0]
    )
    solution: Any = SimpleNamespace(
        problem=problem, ensemble=SimpleNamespace(features=features), value=lambda _: (None, None)
    )
    teacher: Any = SimpleNamespace(argument=lambda x, _: torch.sinh((x - problem.target) / limits @ gain.mT))
    found = target_gain(solution, teacher, torch.ones(1))
    torch.testing.assert_close(found.coefficients[0], gain, rtol=1e-3, atol=1e-3)


def test_a_distilled_policy_is_compared_on_three_plants(finished_run: Path) -> None:
    """Through the observer on the harsh plant where it is exported; a policy loses nothing against itself."""
    solution = load_solution(finished_run)
    act = solution.controller()
    returns = []
    for observed, harsh in ((False, "harsh"), (True, "harsh, observer")):
        rows = regression.compare(solution.problem, act, act, observed, episodes=3)
        assert [each.plant for each in rows] == ["nominal", "parameters +-20 %", harsh]
        assert [each.loss for each in rows] == [0.0, 0.0, 0.0]
        assert all(name in "\n".join(regression.table(rows)) for name in ("worst", "success", harsh))
        returns.append(rows[-1].own["return_mean"])
    assert returns[0] != returns[1]
