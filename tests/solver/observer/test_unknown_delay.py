"""Observer that estimates the delay of each robot soon after its input changes, and the state with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import solver
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.observer import Observer
from solver.observer.observability import UnknownDelay
from solver.plants.harsh import Harsh, Harshness
from solver.problem import Problem

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]
LONGEST, DELAYS = 3, [2, 0, 3, 1]  # control periods


@pytest.mark.parametrize(
    ("name", "change", "sensors"),
    [
        ("furuta", 1.1, Harshness(noise=1.0)),
        ("planar_quadrotor", 1.1, Harshness(encoder=1.0)),
    ],
)
def test_delay_of_every_row_is_estimated_and_the_states_equal_those_with_a_known_delay(
    name: str, change: float, sensors: Harshness, load: Load
) -> None:
    """Within 80 periods, also with parameters that are 10 % wrong, and with measured rates."""
    problem = Problem(load(name))
    generator = torch.Generator().manual_seed(2)
    start = 0.3 * problem.sample_domain(1, generator)
    plants = [Harsh(problem, replace(sensors, delay=delay), change * problem.theta, delay) for delay in DELAYS]
    sensing = plants[0].sensing
    motions = [plant.begin(start) for plant in plants]
    finder = UnknownDelay(problem, sensing, LONGEST)
    informed = [Observer(problem, replace(sensing, delay=delay)) for delay in DELAYS]
    for period in range(90):
        measured = [motion.measured[:, : len(sensing.deviation)] for motion in motions]
        x = finder.estimate(torch.cat(measured))
        expected = torch.cat([observer.estimate(y) for observer, y in zip(informed, measured, strict=True)])
        if period >= 80:
            assert finder.delay.tolist() == DELAYS
            torch.testing.assert_close(x, expected, rtol=1e-4, atol=1e-4)
        if period % 20 == 0:
            share = 2.0 * torch.rand(len(DELAYS), len(problem.input_limits), generator=generator) - 1.0
        u = problem.input_limits * share
        finder.sent(u)
        for observer, motion, row in zip(informed, motions, u.split(1), strict=True):
            observer.sent(row)
            motion.step(row)
    assert float(finder.unlikely.min()) == 0.0
    finder.reset()
    assert finder.delay.tolist() == [0]


def test_controller_of_a_run_has_the_estimated_delay(finished_run: Path) -> None:
    """The input of an untrained policy hardly changes, so the likelihoods of its observer are set here."""
    controller = solver.load_controller(finished_run, longest_delay=LONGEST, counts={"angle": 1e-6})
    assert controller.delay == 0
    controller([2.0])
    assert isinstance(controller._observer, UnknownDelay)
    controller._observer.unlikely = torch.tensor([[5.0], [2.0], [0.0], [1.0]], dtype=torch.float64)
    assert controller.delay == 2
    assert solver.load_controller(finished_run, delay=1).delay == 1


def test_solver_evaluate_takes_a_longest_delay_with_an_observer(
    finished_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(finished_run), "--episodes", "2", "--plant", "harsh", "--longest-delay", "2"]
    assert main([*words, "--observer", "--json"]) == 0
    assert '"longest_delay": 2' in capsys.readouterr().out
    assert main(words) == 2
    assert "--observer" in capsys.readouterr().err
    assert main([*words[:-1], "101", "--observer"]) == 2
    assert "100" in capsys.readouterr().err


def test_a_delay_that_no_observer_can_predict_over_is_refused() -> None:
    """It took minutes; and a bool is no number of rollouts."""
    with pytest.raises(SolverError, match="here 1000 control periods; give at most 100"):
        solver.evaluate("pendulum-rfvi", episodes=2, plant="harsh", harsh=["delay=1000x"], observer=True)
    with pytest.raises(SolverError, match="episodes is True"):
        solver.evaluate("pendulum-rfvi", episodes=True)
