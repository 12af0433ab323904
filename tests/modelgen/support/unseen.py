"""Robots of benchmarks/unseen, read once: what is known of a robot, such as how its loops close, is kept with it."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

from modelgen import Robot

UNSEEN = Path(__file__).parents[3] / "benchmarks" / "unseen"


@cache
def unseen(name: str) -> Robot:
    robot = runpy.run_path(str(UNSEEN / f"{name}.py"))["robot"]
    assert isinstance(robot, Robot)
    return robot
