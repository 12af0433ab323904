"""A valid robot that a test spoils in one place, and the results of a build and of the proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sympy import cos, sin

from modelgen import LogCos, ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.proof import Finding, TimeLimits, derived_findings, guard_findings, refuse_derived, refuse_guards


class Draft:
    """A cart with a rod on it."""

    def __init__(self) -> None:
        self.robot = Robot("draft")
        self.s = self.robot.prismatic("slide", limit=1, rate_limit=2)
        self.q = self.robot.revolute("turn", limit=2, rate_limit=3)
        self.mass = self.robot.parameter("mass", 1.0, "", bounds=(0.5, 2))
        self.force = self.robot.input("force", 3, "")
        self.line = ""  # of the model that the last error named
        self.cost: Any = self.s**2 + self.q**2 + self.s.rate**2 + self.q.rate**2

    def bodies(self) -> Draft:
        self.robot.point_mass(self.mass, (self.s, 0))
        self.robot.point_mass(0.3, (self.s + sin(self.q), cos(self.q)))
        self.robot.apply(self.s, self.force)
        return self

    def finished(self, **task: Any) -> Robot:
        return finished(self.robot, state_cost=self.cost, **task)

    def rejected(self, *words: str, **task: Any) -> None:
        """Check that `build` refuses the robot with these words, and that a proof refutes a quantity of it."""
        robot = self.finished(**task)
        with pytest.raises(ModelError) as caught:
            built(robot)
        message, place = str(caught.value), caught.value.place
        assert place
        self.line = Path(place.file).read_text().splitlines()[place.line - 1].strip()
        assert "\n" not in message
        for word in (".py:", *words):
            assert word in message, message
        assert "refuted" in {finding.status for finding in proof(robot)}


def finished(robot: Robot, **task: Any) -> Robot:
    statement = {
        "action_cost": LogCos(1),
        "start": {},
        "horizon": 5,
        "weight_at_horizon": 0.5,
        "control_rate": 100,
    }
    robot.task(**{**statement, **task})
    return robot


def built(robot: Robot) -> None:
    """The searches of a build, which raise ModelError."""
    refuse_guards(robot)
    refuse_derived(robot, equations_of_motion(robot))


def proof(robot: Robot, seconds: float = 5.0) -> list[Finding]:
    effort = TimeLimits(seconds, seconds)
    return [*guard_findings(robot, effort), *derived_findings(robot, equations_of_motion(robot), effort)]


def statuses(robot: Robot, seconds: float = 5.0) -> dict[str, str]:
    return {finding.what: finding.status for finding in proof(robot, seconds)}
