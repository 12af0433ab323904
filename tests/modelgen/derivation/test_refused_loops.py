"""Loops that do not close, that become singular or that are stated wrongly, and where they say so."""

from __future__ import annotations

import math

import pytest
from sympy import cos, pi, sin

from modelgen import ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from tests.modelgen.derivation.test_loops import task


def four_bar(
    lengths: tuple[float, float, float, float] = (0.2, 0.5, 0.4, 0.5),
    bound: float = math.pi,
    **of_rocker: float,
) -> Robot:
    """A four-bar with point masses, whose parts the tests of bad input change."""
    robot = Robot("bars")
    crank = robot.revolute("crank", limit=bound, rate_limit=10)
    coupler = robot.revolute("coupler", limit=pi)
    rocker = robot.revolute("rocker", **{"limit": math.pi, **of_rocker})  # type: ignore[arg-type]
    a, b, c, d = lengths
    tip = (a * cos(crank) + b * cos(coupler), a * sin(crank) + b * sin(coupler))
    end = (d + c * cos(rocker), c * sin(rocker))
    robot.loop(tip, end, dependent={coupler: 0.9, rocker: 1.6})
    robot.point_mass(robot.parameter("mass", 1, "kg", tolerance=0.3), (a * cos(crank), a * sin(crank)))
    robot.point_mass(1, end)
    robot.apply(crank, robot.input("torque", 1, "N m"))
    task(robot, crank)
    return robot


def test_a_loop_that_cannot_close_says_its_gap_in_metres() -> None:
    # 0.2 + 0.1 + 0.1 m cannot span 0.5 m: 0.1 m are missing at the crank's angle 0
    with pytest.raises(ModelError, match=r"crank = 0: .*0\.1 m"):
        equations_of_motion(four_bar(lengths=(0.2, 0.1, 0.1, 0.5)))


@pytest.mark.slow
def test_a_loop_that_opens_in_the_domain_says_where() -> None:
    # the crank of 0.4 m reaches 0.9 m away from the far bearing, the other two bars 0.8 m
    with pytest.raises(ModelError, match=r"crank = -?\d\.\d+: .*0\.\d+ m"):
        equations_of_motion(four_bar(lengths=(0.4, 0.4, 0.4, 0.5)))


@pytest.mark.slow
def test_a_loop_that_becomes_singular_says_where() -> None:
    """The slider determines the crank, but not at its dead centre."""
    robot = Robot("dead_centre")
    slider = robot.prismatic("slider", limit=0.1, rate_limit=1)
    crank, rod = robot.revolute("crank", limit=4), robot.revolute("rod", limit=1)
    end = (0.1 * cos(crank) + 0.3 * cos(rod), 0.1 * sin(crank) + 0.3 * sin(rod))
    robot.loop(end, (0.3 + slider, 0), dependent={crank: 1.5, rod: -0.3})
    robot.point_mass(robot.parameter("mass", 1, "kg", tolerance=0.3), (slider, 0))
    robot.apply(slider, robot.input("force", 1, "N"))
    task(robot, slider)
    with pytest.raises(ModelError, match=r"slider = -?0\.\d+"):
        equations_of_motion(robot)


def test_too_few_dependent_coordinates_say_the_degrees_of_freedom() -> None:
    robot = Robot("bars")
    crank = robot.revolute("crank", limit=1, rate_limit=10)
    coupler = robot.revolute("coupler", limit=pi, rate_limit=10)
    rocker = robot.revolute("rocker", limit=pi)
    tip = (0.2 * cos(crank) + 0.5 * cos(coupler), 0.2 * sin(crank) + 0.5 * sin(coupler))
    robot.loop(tip, (0.5 + 0.4 * cos(rocker), 0.4 * sin(rocker)), dependent={rocker: 1.6})
    robot.point_mass(robot.parameter("mass", 1, "kg", tolerance=0.3), tip)
    robot.apply(crank, robot.input("torque", 1, "N m"))
    task(robot, crank)
    with pytest.raises(ModelError, match=r"2 of their 3 .*1; .*1\. Name 2"):
        equations_of_motion(robot)


def test_too_many_dependent_coordinates_say_the_degrees_of_freedom() -> None:
    robot = Robot("bars")
    base = robot.prismatic("base", limit=1, rate_limit=1)
    crank, coupler, rocker = (robot.revolute(name, limit=pi) for name in ("crank", "coupler", "rocker"))
    tip = (0.2 * cos(crank) + 0.5 * cos(coupler), 0.2 * sin(crank) + 0.5 * sin(coupler))
    end = (0.5 + 0.4 * cos(rocker), 0.4 * sin(rocker))
    robot.loop(tip, end, dependent={crank: 0, coupler: 0.9, rocker: 1.6})
    robot.point_mass(robot.parameter("mass", 1, "kg", tolerance=0.3), (base, 0))
    robot.apply(base, robot.input("force", 1, "N"))
    task(robot, base)
    with pytest.raises(ModelError, match=r"2 of their 3 .*1; .*3\. Name 2"):
        equations_of_motion(robot)


def test_a_dependent_coordinate_has_no_rate_limit() -> None:
    with pytest.raises(ModelError, match=r"`rocker` .*rate_limit"):
        four_bar(rate_limit=10)


@pytest.mark.slow
def test_a_dependent_coordinate_beyond_its_limit_says_where() -> None:
    with pytest.raises(ModelError, match=r"`rocker` .*crank = .* 1\.5"):
        equations_of_motion(four_bar(bound=1, limit=1.5))


def test_ends_are_points_or_links() -> None:
    robot = Robot("ends")
    angle = robot.revolute("angle", limit=1)
    link = robot.link("bar", angle, mass=1)
    with pytest.raises(ModelError, match="'nowhere'"):
        robot.loop((0, 0), "nowhere", dependent={angle: 0})
    with pytest.raises(ModelError, match=r"robot\.point\(.*on=link"):
        robot.loop((0, 0), link, dependent={angle: 0})
    with pytest.raises(ModelError, match=r"dependent=\{coordinate: value\}"):
        robot.loop((0, 0), (0, 1), dependent={})
    with pytest.raises(ModelError, match=r"dependent=\{angle: \.\.\.\}"):
        robot.loop((0, 0), (0, 1), dependent={"angle": 0})  # type: ignore[dict-item]
    lever = Robot("lever")
    first, other = lever.revolute("first", limit=1), lever.revolute("other", limit=1, rate_limit=1)
    lever.loop((sin(other), cos(other)), (0, 1), dependent={first: 0})
    lever.point_mass(lever.parameter("mass", 1, "kg", tolerance=0.3), (sin(other), cos(other)))
    lever.apply(other, lever.input("torque", 1, "N m"))
    task(lever, other)
    with pytest.raises(ModelError, match="`first`"):
        equations_of_motion(lever)
