"""Warnings before a training: silent for the shipped robots, one for every mistake."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi

from modelgen.linear import Obstacle, weights
from modelgen.loader import CompiledRobot
from modelgen.metadata import Reference
from solver.local.linearization import linearization
from solver.preflight.warnings import forewarnings
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.training.settings import make_settings
from tests.solver.references import limited_body, slide

Load = Callable[[str], CompiledRobot]


class Changed:
    """A robot with other metadata and a scaled input."""

    __class__: Any = CompiledRobot  # for isinstance

    def __init__(self, robot: CompiledRobot, limit: float | None = None, **task: Any) -> None:
        self._robot = robot
        changed = dataclasses.replace(robot.metadata.task, **task)
        inputs = robot.metadata.inputs
        if limit is not None:
            inputs = tuple(dataclasses.replace(entry, limit=limit) for entry in inputs)
        self.metadata = dataclasses.replace(robot.metadata, task=changed, inputs=inputs)
        self.state_limits = robot.state_limits
        self.input_limits = robot.input_limits if limit is None else np.full_like(robot.input_limits, limit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robot, name)


def warned(robot: Any, **changes: Any) -> list[str]:
    return forewarnings(robot, make_settings("fast", robot, **changes))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "acrobot"])
def test_shipped_robots_give_no_warning(load: Load, name: str) -> None:
    assert warned(load(name)) == []


def test_starts_beyond_a_limit(load: Load) -> None:
    """One standard deviation at the limit: 31.7 % of a normal distribution."""
    wide = Changed(load("cartpole"), start_deviation=(0.5, 0.2, 0.0, 0.0))
    (text,) = warned(wide)
    assert abs(float(text.split(" %")[0]) - 31.7) < 3.0
    assert "of the starts lie beyond the limit of cart, 0.5 m" in text


@pytest.mark.slow
def test_rotations_beyond_their_limit() -> None:
    """Of vectors of three normal numbers of 0.3 rad, 42.7 % are longer than 0.5 rad."""
    assert not [text for text in warned(limited_body(0.1)) if "of the starts" in text]
    (text,) = (text for text in warned(limited_body(0.3)) if "of the starts" in text)
    assert abs(float(text.split(" %")[0]) - 100.0 * chi.sf(0.5 / 0.3, 3)) < 3.0
    assert "beyond the limit of attitude, 0.5 rad" in text


@pytest.mark.slow
def test_starts_that_are_the_target(load: Load) -> None:
    cartpole = load("cartpole")
    (text,) = warned(Changed(cartpole, start_mean=(0.0,) * 4, start_deviation=(0.0,) * 4))
    assert "every start is the target" in text
    assert warned(Changed(cartpole, start_mean=(0.0,) * 4, start_deviation=(0.0, 0.1, 0.0, 0.0))) == []
    goal = Reference("goal", (1.0, 0.0), (0.0, 0.0))  # the target leaves the start, or takes it along
    for moves, count in ((goal, 0), (dataclasses.replace(goal, start=goal.target), 1)):
        still = Changed(slide(), start_mean=(0.0, 0.0), start_deviation=(0.0, 0.0), references=(moves,))
        assert sum("every start is the target" in text for text in warned(still)) == count


def test_target_beyond_the_rates(load: Load) -> None:
    (text,) = warned(Changed(load("pendulum"), horizon=0.3))
    assert "angle needs 0.39 s" in text


@pytest.mark.slow
def test_too_few_iterations_names_enough(load: Load) -> None:
    (text,) = warned(load("pendulum"), iterations=6)
    assert "6 iterations carry the reward back by about 3.6 s" in text  # 6 * 36/8 periods of 8 ms, over 1 - 0.94
    assert "--iterations 9" in text
    assert warned(load("pendulum"), iterations=9) == []


@pytest.mark.slow
def test_too_fast_for_its_control_rate(load: Load) -> None:
    """The rod falls with sqrt(3 g / 2 l); twelve control periods a swing are the least."""
    length = float(load("pendulum").nominal_parameters[1])
    fall = math.sqrt(3.0 * 9.81 / (2.0 * length))
    (text,) = warned(Changed(load("pendulum"), control_rate=1.9 * fall))
    assert f"{math.ceil(2.0 * fall)} or more" in text
    assert warned(Changed(load("pendulum"), control_rate=2.1 * fall)) == []
    (text,) = warned(Changed(load("pendulum"), limit=5e4))
    assert "a full input takes a state from the target to its limit" in text


def test_rounding_is_no_motion_of_a_small_robot(load: Load) -> None:
    """In single precision the arm's weight is balanced at its target up to 2e-7 rad/s^2, and exactly in double."""
    small = Changed(load("planar_arm2"))
    states = tuple(dataclasses.replace(state, limit=0.01 * state.limit) for state in small.metadata.states)
    small.metadata = dataclasses.replace(small.metadata, states=states)
    target = torch.tensor([small.metadata.task.target])
    drift = np.asarray(load("planar_arm2").jacobians(target)[0])
    assert np.abs(drift).max() > 1e-6 * min(state.limit for state in states)
    assert not any("not at rest" in text for text in warned(small))


@pytest.mark.slow
def test_weak_input_against_a_simulation(load: Load) -> None:
    """The reach that the warning prints is where the full input just fails to bring the rod back."""
    weak = Changed(load("pendulum"), limit=0.2)
    (text,) = warned(weak, adversaries={"parameters": 0.01})
    reach = float(text.split("more than ")[1].split()[0])
    problem = Problem(load("pendulum"))
    for share, returns in ((0.9, True), (1.1, False)):
        angles, x = [], torch.tensor([[share * reach, 0.0]])
        for _ in range(400):
            x = integrate_period(problem, x, torch.tensor([[-0.2]])).x
            angles.append(float(x[0, 0]))
        came_back = next(angle for angle in angles if abs(angle) > 0.3) < 0.0
        assert came_back is returns


def test_a_weak_input_is_measured_by_degrees_on_a_joint_of_many_turns(load: Load) -> None:
    """The reach of 2.3 degrees is too little and that of 23 is not, though 5 % of the limit are 27 degrees."""
    for limit, said in ((0.2, 1), (2.0, 0)):
        robot = many_turns(load, limit)
        assert sum("too weak" in text for text in warned(robot, adversaries={"parameters": 0.01})) == said


def many_turns(load: Load, limit: float) -> Changed:
    """The pendulum on a cable that allows a turn and a half to each side."""
    robot = Changed(load("pendulum"), limit=limit)
    angle, rate = robot.metadata.states
    turns = dataclasses.replace(angle, limit=3.0 * math.pi, continuous=False)
    robot.metadata = dataclasses.replace(robot.metadata, states=(turns, rate))
    robot.state_limits = np.array([turns.limit, rate.limit])
    return robot


def test_another_state_that_costs_as_little_as_the_target(load: Load) -> None:
    """Every whole turn from upright is upright; where the joint wraps, it is the target."""
    (text,) = [text for text in warned(many_turns(load, 2.5)) if "angle at" in text]
    assert "angle at 6.28 rad as at the target" in text or "angle at -6.28 rad as at the target" in text


@pytest.mark.slow
def test_a_rotation_is_freed_and_costs_as_a_whole(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its turns are no states of a model file."""
    for reason, said in (("no input reaches", "an input acts"), ("the state cost does not see", "add attitude.away()")):
        monkeypatch.setattr("solver.preflight.warnings.obstacle", lambda *_, why=reason: Obstacle(why, 2, 0.0))
        (text,) = (text for text in warned(load("satellite"), algorithm="cfvi") if "does not decay" in text)
        assert "motion of attitude_turn_z" in text
        assert "list attitude, with all its turns, in robot.task(free=[...])" in text
        assert said in text


@pytest.mark.slow
def test_adversaries_that_outweigh_the_input_are_warned_of(load: Load) -> None:
    (text,) = warned(
        load("pendulum"), adversaries={"action": 2.0, "state": 0.04, "observation": 0.001, "parameters": 0.025}
    )
    assert "the adversaries are strong compared with the input" in text
    assert text.split("take ")[1].startswith("82 %")
    assert warned(load("pendulum"), algorithm="cfvi") == []


@pytest.mark.slow
def test_an_action_cost_of_next_to_nothing(load: Load) -> None:
    """The regulator's poles are the stable eigenvalues of the Hamiltonian matrix, without any Riccati equation."""
    local = linearization(load("planar_quadrotor"))
    A, B = local.A, local.B
    Q, R = weights(local.robot)

    def fastest(factor: float) -> float:
        hamiltonian = np.block([[A, -B @ np.linalg.inv(factor * R) @ B.T], [-Q, -A.T]])
        return float(np.abs(np.linalg.eigvals(hamiltonian)).max())

    def warnings(control_rate: float) -> list[str]:
        robot = Changed(load("planar_quadrotor"), control_rate=control_rate)
        return [text for text in warned(robot) if "action cost" in text]

    assert warnings(0.51 * fastest(1.0)) == []
    (text,) = warnings(0.49 * fastest(1.0))
    assert f"{1.0 / fastest(1.0):.2g} s" in text
    assert "by 10 in" in text
    (text,) = warnings(0.49 * fastest(10.0))
    assert "by 100 in" in text
