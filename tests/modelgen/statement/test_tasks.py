"""The task of a model file: its defaults, and the error for each mistake."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sympy import Piecewise, Symbol

from modelgen import LogCos, ModelError, Quadratic, Robot, Tanh, smooth_barrier
from modelgen.derivation.description import content_hash, metadata
from tests.modelgen.support.declared import TASK, cart, rejects


class TestTask:
    def changed(self, **changes: Any) -> Robot:
        robot, s, _, force = cart()
        robot.apply(s, force)
        robot.task(**{**TASK, "state_cost": s**2, **changes})
        return robot

    def test_target_and_start_are_zero_unless_given(self) -> None:
        task = metadata(self.changed()).task
        assert (task.target, task.start_mean, task.start_deviation) == ((0, 0), (0, 0), (0, 0))
        assert task.free == ()

    @pytest.mark.parametrize("free", [["s"], ("s",), ["s", "s"]])
    @pytest.mark.slow
    def test_free_names_states_once_in_their_order(self, free: Any) -> None:
        assert metadata(self.changed(free=free)).task.free == ("s",)
        assert metadata(self.changed(free=["s_rate"])).task.free == ("s_rate",)

    def test_a_state_that_is_not_named_starts_at_its_target(self) -> None:
        task = metadata(self.changed(target={"s": 0.5}, start={"s_rate": (0.1, 0.2)})).task
        assert (task.start_mean, task.start_deviation) == ((0.5, 0.1), (0, 0.2))

    @pytest.mark.slow
    def test_a_whole_power_may_have_a_decimal_point(self) -> None:
        """SymPy keeps s**2.0, whose base must not be negative if it is taken for a root."""
        hashes = []
        for two in (2, 2.0):
            robot, s, _, force = cart()
            robot.apply(s, force - 1.0 * (s**two + s.rate**two) ** two)
            robot.task(**{**TASK, "state_cost": s**two})
            hashes.append(content_hash(robot))
        assert hashes[0] == hashes[1]

    def test_a_barrier_rises_by_its_height_or_is_refused(self) -> None:
        x = Symbol("x")
        with pytest.raises(ModelError, match=re.escape("smooth_barrier(50 * x, 0.5, height)")):
            smooth_barrier(x, 0.01, 7)
        assert float(smooth_barrier(50 * x, 0.5, 7).subs(x, 0.1)) == pytest.approx(7, rel=1e-3)

    @pytest.mark.parametrize(
        ("control", "simulation"), [(125, 500), (500, 500), (1000, 1000), (60, 480), (333, 666), (50, 500)]
    )
    def test_default_simulation_rate_is_the_multiple_nearest_500(self, control: int, simulation: int) -> None:
        assert metadata(self.changed(control_rate=control)).task.simulation_rate == simulation

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"start": {"x": (0, 1)}}, ("`x`", "s, s_rate")),
            ({"start": {"s_rte": (0, 1)}}, ("Did you mean `s_rate`",)),
            ({"start": {"s": 1}}, ("s=(mean, standard_deviation)",)),
            ({"start": {"s": (0, -1)}}, ("standard deviation of `s` is -1", ">= 0")),
            ({"start": {"s": (2, 0)}}, ("start mean of `s` is 2", "limit of 1")),
            ({"start": 3}, ("start=dict(s=",)),
            ({"target": {"speed": 1}}, ("target", "`speed`")),
            ({"target": 0}, ("target is 0", "target=dict(s=...)")),
            ({"target": {"s": (0, 40)}}, ("target of `s` is (0, 40); write one number and not 2",)),
            ({"target": {"s": lambda t: t}}, ("target of `s`", "a model has no time", "robot.reference")),
            ({"target": {"s": 1.5}}, ("target of `s` is 1.5", "limit of 1")),
            ({"state_cost": Symbol("t") ** 2}, ("symbol `t`", "A model has no time")),
            ({"state_cost": Piecewise((1, Symbol("s") > 0), (0, True))}, ("Piecewise", "Max(0, depth)**p")),
            ({"horizon": 0}, ("horizon is 0",)),
            ({"horizon": 0.001}, ("horizon", "control step")),
            ({"horizon": 1e9}, ("1.25e+11 control periods", "at most 8000 s")),
            ({"start": {"s": (0, 1.01)}}, ("start standard deviation of `s` is 1.01", "limit of 1")),
            ({"weight_at_horizon": 1}, ("weight_at_horizon is 1", "between 0 and 1")),
            ({"weight_at_horizon": -0.5}, ("weight_at_horizon",)),
            ({"control_rate": -1}, ("control_rate is -1",)),
            ({"control_rate": 20_001}, ("control_rate is 20001 Hz", "at most 20000 Hz")),
            ({"control_rate": 12.5}, ("control_rate is 12.5", "whole number")),
            ({"simulation_rate": 300}, ("simulation_rate=250", "multiple")),
            ({"simulation_rate": 2_000_000}, ("simulation_rate is 2e+06 Hz", "at most 1000000 Hz")),
            ({"free": "s"}, ("free is 's'", "free=['s']")),
            ({"free": 3}, ("free is 3", "a list of names")),
            ({"free": {"s": 1}}, ("a list of names",)),
            ({"free": ["s_rte"]}, ("free", "`s_rte`", "`s_rate`", "s, s_rate")),
            ({"free": [3]}, ("free", "`3`")),
            ({"free": [["s"]]}, ("free", "['s']")),
            ({"free": ["s_rate", "s"]}, ("free", "every state")),
            ({"action_cost": 0.5}, ("action_cost is 0.5", "LogCos(weight)")),
            ({"action_cost": LogCos([1, 2])}, ("2 weights", "1 inputs", "LogCos([...])")),
            ({"action_cost": Quadratic(0)}, ("weight of Quadratic is 0",)),
            (
                {"action_cost": LogCos(1e-300)},
                ("weight of LogCos is 1e-300", "`force`", "1.1e-31 to 1.1e+29"),
            ),
            ({"action_cost": Tanh("a")}, ("weight of Tanh is 'a'",)),  # type: ignore[arg-type]
        ],
    )
    @pytest.mark.slow
    def test_a_wrong_argument_is_refused(self, changes: dict[str, Any], words: tuple[str, ...]) -> None:
        rejects(*words, action=lambda: self.changed(**changes))

    def test_a_robot_without_a_task_is_refused(self) -> None:
        robot, *_ = cart()
        with pytest.raises(ModelError, match=r"`cart`.*robot\.task\("):
            metadata(robot)

    def test_a_second_task_is_refused(self) -> None:
        robot = self.changed()
        rejects("twice", "first at", action=lambda: robot.task(**TASK))

    def test_a_declaration_after_the_task_is_refused(self) -> None:
        robot = self.changed()
        rejects("`late`", "end of the file", action=lambda: robot.input("late", 1, "N"))

    def test_a_task_before_any_coordinate_is_refused(self) -> None:
        robot = Robot("empty")
        rejects("no coordinate", "robot.revolute", action=lambda: robot.task(**TASK))

    def test_one_weight_holds_for_all_inputs(self) -> None:
        robot, s, _, force = cart()
        second = robot.input("second", 1, "N")
        robot.apply(s, force + second)
        robot.task(**{**TASK, "state_cost": s**2})
        assert metadata(robot).task.action_cost.weights == (1.0, 1.0)
