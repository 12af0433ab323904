"""References of a model file: set-points that move target, starts and cost, and the error for each mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Symbol, cos, sin

import modelgen
from modelgen import ModelError, Robot
from modelgen.derivation.description import metadata
from modelgen.metadata import Reference
from tests.modelgen.support.declared import TASK, cart, rejects


def slide(**changes: Any) -> Robot:
    """A cart that a force drives to `goal`."""
    robot, s, mass, force = cart()
    goal = robot.reference("goal", limit=0.25, unit="m")
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    task = {**TASK, "state_cost": (s - goal) ** 2 + s.rate**2, "target": {"s": goal}}
    robot.task(**{**task, **{name: make(s, goal) for name, make in changes.items()}})
    return robot


def test_a_reference_is_an_entry_of_theta_that_moves_the_target() -> None:
    made = metadata(slide(target=lambda _, goal: {"s": 0.5 - 2 * goal}, start=lambda _, goal: {"s": (goal / 2, 0.1)}))
    goal = made.parameters[-1]
    assert (goal.name, goal.value, goal.lower, goal.upper) == ("goal", 0.0, -0.25, 0.25)
    assert made.references == ("goal",)
    assert made.task.references == (Reference("goal", (-2.0, 0.0), (0.5, 0.0)),)
    assert (made.task.target, made.task.start_mean) == ((0.5, 0.0), (0.0, 0.0))
    moved = made.with_nominal([*(entry.value for entry in made.parameters[:-1]), 0.2])
    np.testing.assert_allclose(moved.task.target, [0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(moved.task.start_mean, [0.1, 0.0], atol=1e-12)
    back = moved.with_nominal([entry.value for entry in made.parameters])
    np.testing.assert_allclose(back.task.target, made.task.target, atol=1e-12)


def test_a_state_without_a_start_starts_at_its_moving_target() -> None:
    assert metadata(slide(start=lambda *_: {})).task.references[0].start == (1.0, 0.0)


def test_robots_without_references_have_no_entry_of_them() -> None:
    robot, s, _, force = cart()
    robot.apply(s, force)
    robot.task(**{**TASK, "state_cost": s**2})
    assert "references" not in metadata(robot).content()["task"]


def test_the_cost_is_zero_at_every_target_and_the_motion_depends_on_none() -> None:
    robot = modelgen.compile(slide())
    theta = np.tile(np.asarray(robot.nominal_parameters), (5, 1))
    theta[:, -1] = goals = np.linspace(-0.25, 0.25, 5)
    x = np.stack([goals, np.zeros(5)], 1)
    np.testing.assert_allclose(robot.state_cost(x, theta)[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(robot.state_cost(x + np.array([0.1, 0.0]), theta)[0], 0.01, rtol=1e-12)
    np.testing.assert_array_equal(robot.jacobians(x, theta)[4][..., -1], 0.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": lambda _, goal: {"s": goal**2}}, ("goal**2", "not affine in the reference `goal`")),
        ({"target": lambda _, goal: {"s": cos(goal) - 1}}, ("not affine in the reference `goal`",)),
        ({"target": lambda *_: {"s": Symbol("gaol")}}, ("target of `s` contains `gaol`", "robot.reference")),
        (
            {"target": lambda *_: {"s": sin(Symbol("t"))}},
            ("target of `s` contains `t`, and a model has no time", 'robot.reference("goal"'),
        ),
        ({"target": lambda *_: {"s": cos}}, ("target of `s` is a function", "has no time", 'robot.reference("goal"')),
        (
            {"target": lambda _, goal: {"s": 0.8 + goal}},
            ("target of `s` is 0.8 +- 0.25 by its references", "limit of 1"),
        ),
        ({"start": lambda _, goal: {"s": (0.9 - goal, 0)}}, ("start mean of `s` is 0.9 +- 0.25", "limit of 1")),
        ({"target": lambda _, goal: {"s_rate": goal}}, ("target of `s_rate` contains the term goal", "in m/s")),
        ({"start": lambda _, goal: {"s_rate": (goal, 0)}}, ("start mean of `s_rate` contains the term goal",)),
        ({"start": lambda _, goal: {"s": (0, goal)}}, ("start standard deviation of `s` is goal", "write a number")),
    ],
)
@pytest.mark.slow
def test_a_task_that_is_not_affine_or_leaves_the_limits_is_refused(changes: Any, words: tuple[str, ...]) -> None:
    rejects(*words, action=lambda: slide(**changes))


@pytest.mark.parametrize(("unit", "fits"), [("m", False), ("rad", True), ("1", True), ("N", False), ("", True)])
def test_a_reference_has_the_unit_of_the_state_whose_target_it_is(unit: str, fits: bool) -> None:
    robot = Robot("lever", "A lever that is told its angle")
    lean = robot.revolute("lean", limit=1, rate_limit=5)
    goal = robot.reference("goal", limit=0.25, unit=unit)
    robot.body(1, 0.1, (0, 0), lean)
    robot.apply(lean, robot.input("torque", 1, "N m"))
    task = {**TASK, "state_cost": (lean - goal) ** 2, "start": {"lean": (goal, 0.1)}, "target": {"lean": goal}}
    if fits:
        robot.task(**task)
    else:
        rejects(
            "target of `lean` contains the term goal", f"`goal` in {unit}", "rad", action=lambda: robot.task(**task)
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state_cost": lambda s, _: s**2}, ("the state cost is", "at the target (", "goal =")),
        ({"target": lambda *_: {}}, ("the state cost is", "at the target (", "goal =")),
        ({"target": lambda *_: {}, "state_cost": lambda s, _: s**2}, ("reference `goal` is used nowhere",)),
    ],
)
def test_a_reference_without_use_or_with_a_cost_elsewhere_is_refused(changes: Any, words: tuple[str, ...]) -> None:
    rejects(*words, action=lambda: modelgen.compile(slide(**changes)))


def test_a_reference_acts_on_no_motion() -> None:
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    goal = robot.reference("goal", limit=0.25, unit="m")
    stiffness = robot.parameter("stiffness", 3, "N/m", fixed=True)
    robot.apply(s, force)
    robot.apply(s, -stiffness * (s - goal))
    robot.task(**{**TASK, "state_cost": (s - goal) ** 2, "target": {"s": goal}})
    rejects("contains the reference `goal`", 'robot.parameter("goal", ...)', action=lambda: modelgen.compile(robot))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "s"}, ("name `s` is used twice", "a reference")),
        ({"name": "2nd"}, ("cannot name the reference",)),
        ({"limit": -1}, ("limit of `goal` is -1", "greater than zero")),
        ({"limit": (0, 1)}, ("limit of `goal` is (0, 1)", "one number")),
        ({"unit": "mm2"}, ("unit of `goal`",)),
    ],
)
def test_mistakes_of_a_declaration(arguments: dict[str, Any], words: tuple[str, ...]) -> None:
    robot, *_ = cart()
    rejects(*words, action=lambda: robot.reference(**{"name": "goal", "limit": 0.25, "unit": "m", **arguments}))


def test_a_reference_after_the_task_is_refused() -> None:
    with pytest.raises(ModelError, match=r"test_references.*`late` .*robot\.task"):
        slide().reference("late", limit=1, unit="m")


def test_two_references_move_one_target() -> None:
    robot, s, _, force = cart()
    first, second = (robot.reference(name, limit=0.2, unit="m") for name in ("first", "second"))
    robot.apply(s, force)
    robot.task(**{**TASK, "state_cost": (s - first - second / 2) ** 2, "target": {"s": first + second / 2}})
    made = metadata(robot)
    assert [reference.target[0] for reference in made.task.references] == [1.0, 0.5]
    assert made.task.moved({"second": 0.2, "mass": 3.0}) == replace(made.task, target=(0.1, 0.0), start_mean=(0.1, 0.0))
