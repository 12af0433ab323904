"""Enclosures of closed loops against the program, and findings that prove or refute that a loop closes."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import cos, sin

from modelgen import LogCos, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.loops import closures
from modelgen.proof import PROVEN, TimeLimits, derived_findings, loop_findings
from modelgen.proof.guards import domain
from modelgen.proof.loops import EnclosedLoop
from tests.modelgen.support.unseen import unseen

pytestmark = pytest.mark.slow

LIMITS = TimeLimits(search=1.0, proof=60.0)


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_enclosures_hold_the_solutions_in_their_boxes(name: str) -> None:
    (closure,) = closures(unseen(name))
    loop, random = EnclosedLoop(closure, closure.variables), np.random.default_rng(6)
    size = len(closure.variables)
    for width in (0.2, 0.02, 1e-6, 0.0):
        lower = random.uniform(-0.5, 0.5 - width, (50, size))
        low, high = loop.enclosed(lower, lower + width)
        inside = loop.values(lower + width * random.uniform(size=(50, size)))
        assert (low <= inside + 1e-15).all()
        assert (inside <= high + 1e-15).all()
        if width <= 0.02:
            assert np.isfinite(high - low).all()
            assert (high - low).max() < 20 * width + 1e-12


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar"])
def test_a_loop_is_proven_to_close_on_the_whole_domain(name: str) -> None:
    (finding,) = loop_findings(unseen(name), LIMITS)
    assert finding.status == PROVEN, finding.note


def test_mass_matrix_and_cost_of_a_loop_are_proven() -> None:
    robot = unseen("slider_crank")
    findings = list(derived_findings(robot, equations_of_motion(robot), LIMITS))
    assert [finding.status for finding in findings] == [PROVEN] * 3, [finding.note for finding in findings]


def lever(limit: float) -> Robot:
    """A slider that moves a crank of 0.1 m by a rod of 0.3 m; the dead centres are at -0.1 and 0.1 m."""
    robot = Robot("lever")
    slider = robot.prismatic("slider", limit=limit, rate_limit=1)
    crank, rod = robot.revolute("crank", limit=4), robot.revolute("rod", limit=1)
    end = (0.1 * cos(crank) + 0.3 * cos(rod), 0.1 * sin(crank) + 0.3 * sin(rod))
    robot.loop(end, (0.3 + slider, 0), dependent={crank: 1.5, rod: -0.3})
    robot.point_mass(robot.parameter("mass", 1, "kg", tolerance=0.3), (slider, 0))
    robot.apply(slider, robot.input("force", 1, "N"))
    robot.task(
        state_cost=slider**2 + slider.rate**2,
        action_cost=LogCos(0.1),
        start={},
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )
    return robot


def test_a_loop_near_its_dead_centre_is_not_proven_without_time_and_says_where() -> None:
    robot = lever(0.0995)
    (finding,) = loop_findings(robot, TimeLimits(search=1.0, proof=0.0))
    assert finding.status != PROVEN
    assert "at slider = 0.0995" in finding.note or "at slider = -0.0995" in finding.note
    (finding,) = loop_findings(robot, LIMITS)
    assert finding.status == PROVEN, finding.note


def test_the_domain_counts_a_dependent_coordinate_as_its_variables() -> None:
    robot = unseen("five_bar")
    elbow = robot.dependent[0].symbol
    names = {symbol.name for symbol in domain(robot).of([elbow]).symbols}
    assert names == {"left", "right"}
    assert "left_rate" in {symbol.name for symbol in domain(robot).of([elbow.rate]).symbols}
