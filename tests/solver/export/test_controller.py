"""The controller of a run: positions in, input out, with the observer's memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from modelgen.loader import CompiledRobot
from solver.controller import PositionController
from solver.errors import SolverError
from solver.observer import make_sensing
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import rollouts
from solver.problem import Problem
from solver.runs import kinds


@pytest.mark.parametrize("delay", [0, 2])
def test_controller_called_step_by_step_equals_the_observed_rollout(finished_run: Path, delay: int) -> None:
    """Bit for bit, and again after a reset; without the reset the memory shows."""
    controller = solver.load_controller(finished_run, delay=delay)
    problem, act, _ = kinds.load_rollout_policy(finished_run)
    start, plant = torch.tensor([[2.0, 1.5]]), Harsh(problem, Harshness(delay=delay, encoder=1.0))
    expected = rollouts(problem, act, start, plant, seconds=0.4, observed=True).u[:, 0].numpy()

    def inputs() -> np.ndarray[Any, Any]:
        motion, found = plant.begin(start), []
        for _ in range(len(expected)):
            found.append(controller(motion.measured[0, :1].tolist()))
            motion.step(torch.from_numpy(found[-1])[None])
        return np.stack(found)

    np.testing.assert_allclose(inputs(), expected, atol=1e-5)
    assert controller.normalised_innovation < 30.0
    assert not np.allclose(inputs()[:3], expected[:3], atol=1e-3)
    controller.reset()
    np.testing.assert_allclose(inputs(), expected, atol=1e-5)


def test_innovation_is_larger_for_a_coarse_encoder_and_a_pushed_robot(finished_run: Path) -> None:
    """A coarse encoder is trusted less; a robot that is pushed by hand raises the innovation."""
    of_numpy: Any = np.float32(0.2)
    fine, coarse = (solver.load_controller(finished_run, counts={"angle": each}) for each in (1e-5, of_numpy))
    for controller in (fine, coarse):
        with pytest.raises(SolverError, match="no measurement"):
            _ = controller.normalised_innovation
        for angle in (2.0, 2.0, 2.0, 2.0, 2.1):
            controller([angle])
    assert fine.normalised_innovation > 100.0 * coarse.normalised_innovation
    fine.reset()
    with pytest.raises(SolverError, match="no measurement"):
        _ = fine.normalised_innovation


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, 2e6])
def test_a_measurement_that_is_no_number_or_too_far_counts_as_not_measured(finished_run: Path, wrong: float) -> None:
    """The model moves the state on, as in C (`test_observer_in_c`). Until two are whole, the input is the trim."""
    controller, other = solver.load_controller(finished_run), solver.load_controller(finished_run)
    assert controller([wrong]) == 0.0
    assert controller([2.0]) != 0.0
    assert controller([wrong]) == 0.0
    for angle in (2.0, 2.0, math.nan, 2.0, *40 * [math.nan], 2.0):
        expected = other([angle])
        np.testing.assert_array_equal(controller([wrong if math.isnan(angle) else angle]), expected)
        assert np.isfinite(expected).all()


def test_measured_rates_enter_the_observer(finished_run: Path) -> None:
    """At the first call already the policy gets them; and a noisy one is trusted less."""
    problem, act, _ = kinds.load_rollout_policy(finished_run)
    fine, noisy = (solver.load_controller(finished_run, rates={"angle_rate": each}) for each in (1e-3, 3.0))
    expected = act(torch.tensor([[2.0, 1.5]]))[0][0].numpy()
    for controller in (fine, noisy):
        np.testing.assert_allclose(controller([2.0, 1.5]), expected, atol=1e-6)
        controller([2.0 + 1.5 * problem.control_step, 3.0])
    assert fine.normalised_innovation > 100.0 * noisy.normalised_innovation


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: solver.load_controller(run, counts={"angel": 0.1}), "Did you mean `angle`"),
        (lambda run: solver.load_controller(run, counts={"angle": 0.0}), "counts of angle is 0.0"),
        (lambda run: solver.load_controller(run, rates={"angle": 0.1}), "rates has .*'angle'"),
        (lambda run: solver.load_controller(run, rates={}), "angle_rate"),
        (lambda run: solver.load_controller(run, delay=-1), "delay is -1"),
        (
            lambda run: solver.load_controller(run, delay=0.5),  # type: ignore[arg-type]
            "delay is 0.5",
        ),
        (lambda run: solver.load_controller(run, longest_delay=-1), "longest_delay is -1"),
        (lambda run: solver.load_controller(run, delay=10**9), "from 0 to 100"),
        (lambda run: solver.load_controller(run, delay=1, longest_delay=2), "longest_delay"),
        (lambda run: solver.load_controller(run)([1.0, 2.0]), "angle"),
    ],
)
def test_wrong_argument_is_an_error_with_its_name(
    change: Callable[[Path], Any], message: str, finished_run: Path
) -> None:
    with pytest.raises(SolverError, match=message):
        change(finished_run)


def test_a_measurement_that_is_no_rotation_is_named(load: Callable[[str], CompiledRobot]) -> None:
    problem = Problem(load("satellite"))
    controller = PositionController(problem, lambda x: (x[:, 4:], x[:, 0]), make_sensing(problem), None, pytest.fail)
    assert controller([0.6, 0.0, -0.8, 0.0]).shape == (3,)
    for measured, said in (
        ([0.0] * 4, "quaternion of `attitude` is zero"),
        (["a"] * 4, "measurement is not .* give 4: att"),
    ):
        with pytest.raises(SolverError, match=said):
            controller(measured)
