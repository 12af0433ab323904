"""A small robot for tests of what a model file may contain, and a check of its error messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelgen import LogCos, ModelError, Robot

TASK: dict[str, Any] = {
    "state_cost": 0, "action_cost": LogCos(1), "start": {}, "horizon": 5, "weight_at_horizon": 0.5, "control_rate": 125
}  # fmt: skip


def cart() -> tuple[Robot, Any, Any, Any]:
    """A robot with one coordinate, one parameter and one input, without a task."""
    robot = Robot("cart")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
    force = robot.input("force", 3, "N")
    return robot, s, mass, force


def rejects(*words: str, action: Callable[[], object]) -> None:
    """Check that the action raises a ModelError of one paragraph with the file of the action and every word."""
    with pytest.raises(ModelError) as caught:
        action()
    message = str(caught.value)
    assert re.match(rf".*{re.escape(Path(action.__code__.co_filename).name)}:\d+: ", message), message
    assert "\n" not in message
    for word in words:
        assert word in message, message
