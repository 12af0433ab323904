"""Time scales against formulas of mechanics, and presets that do not depend on the control rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

import modelgen
from modelgen.cli import main as modelgen_main
from modelgen.loader import CompiledRobot
from solver.local.linearization import SLOWEST, crossing_time, linearization, time_scale
from solver.training.settings import make_settings

Load = Callable[[str], CompiledRobot]
GRAVITY = 9.81
RATES = (50, 125, 250, 500)
SLOW = 1  # Hz, of a robot 500 times as slow


@pytest.fixture(scope="module")
def rails(tmp_path_factory: pytest.TempPathFactory) -> dict[int, CompiledRobot]:
    """A mass on a rail without friction, a double integrator, by its control rate."""
    folder, found = tmp_path_factory.mktemp("rails"), {}
    for rate in (*RATES, SLOW):
        slower = 500 if rate == SLOW else 1  # all times of the robot and its task so many times as long
        text = f'''"""A double integrator."""
from modelgen import Quadratic, Robot

robot = Robot("rail{rate}", "A mass on a rail")
s = robot.prismatic("s", limit=1, rate_limit={3 / slower}, meaning="position")
mass = robot.parameter("mass", {1.3 * slower**2}, "kg", tolerance=0.1, meaning="mass")
force = robot.input("force", 10, "N", meaning="drive")
robot.point_mass(mass, (s, 0))
robot.apply(s, force)
robot.task(
    state_cost=2 * s**2 + {0.3 * slower**2} * s.rate**2,
    action_cost=Quadratic(0.3),
    start=dict(s=(0.5, 0.1)),
    horizon={3 * slower},
    weight_at_horizon=0.5,
    control_rate={rate},
)
'''
        (folder / f"rail{rate}.py").write_text(text)
        words = ["build", str(folder / f"rail{rate}.py"), "--generated", str(folder / "generated")]
        assert modelgen_main(words) == 0
        found[rate] = modelgen.load(f"rail{rate}", dtype="float32", directory=folder / "generated", parallel=False)
    return found


def test_a_rod_falls_at_the_rate_of_its_unstable_motion(load: Load) -> None:
    """m l^2/3 angle'' = m g l/2 sin(angle)."""
    assert time_scale(linearization(load("pendulum"))) == pytest.approx(1.0 / math.sqrt(1.5 * GRAVITY / 1.0), rel=1e-5)


def test_a_free_wheel_does_not_set_the_pace(load: Load) -> None:
    """The axle's friction is small: the pendulum falls as if the wheel's mass were a point."""
    moment = 0.02 * 0.063 + 0.3 * 0.125
    inertia = 4.7e-5 + 0.02 * 0.063**2 + 0.3 * 0.125**2
    assert time_scale(linearization(load("reaction_wheel"))) == pytest.approx(
        math.sqrt(inertia / (GRAVITY * moment)), rel=1e-3
    )


def test_precision_does_not_matter(load: Load, load64: Load) -> None:
    assert time_scale(linearization(load("furuta"))) == pytest.approx(
        time_scale(linearization(load64("furuta"))), rel=1e-5
    )


@pytest.mark.slow
def test_a_double_integrator_moves_as_its_regulator_does(rails: dict[int, CompiledRobot]) -> None:
    """m s'' = -k1 s - k2 s' with k1 = sqrt(q/r): both eigenvalues have the size sqrt(k1/m)."""
    expected = math.sqrt(1.3 / math.sqrt(2.0 / 0.3))
    assert time_scale(linearization(rails[125])) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("motions", "seconds"),
    [
        (([[0.0, 1.0], [9.0, 0.0]], [[0.0, 1.0], [-49.0, -0.2]]), 1.0 / 7.0),  # falls at 3/s, swings at 7/s
        (([[0.0, 1.0], [9.0, 0.0]], [[0.0, 1.0], [-5.0, -50.1]]), 1.0 / 3.0),  # decays at 0.1/s and 50/s
        (([[0.0, 1.0], [9.0, 0.0]], [[0.0, 1.0], [-49.0, -12.0]]), 1.0 / 3.0),  # swings at 7/s, and is soon at rest
    ],
)
def test_the_fastest_motion_that_swings_or_grows_sets_the_pace(
    motions: tuple[list[list[float]], ...], seconds: float, load: Load
) -> None:
    local = replace(linearization(load("furuta")), A=block_diag(*motions), B=np.zeros((4, 1)))
    assert time_scale(local) == pytest.approx(seconds, rel=1e-9)


def test_a_robot_that_nothing_moves_is_slow(rails: dict[int, CompiledRobot]) -> None:
    idle = replace(linearization(rails[125]), A=np.zeros((2, 2)), B=np.zeros((2, 1)))
    assert time_scale(idle) == SLOWEST * idle.metadata.task.horizon


def test_a_robot_without_a_regulator_moves_as_its_input_pushes_it(rails: dict[int, CompiledRobot]) -> None:
    """The input pushes the rate alone, which does not move the position: 1/sqrt(10 N/1.3 kg/(3 m/s))."""
    cut = replace(linearization(rails[125]), A=np.zeros((2, 2)), B=np.array([[0.0], [1.0 / 1.3]]))
    assert time_scale(cut) == pytest.approx(1.0 / math.sqrt(10.0 / 1.3 / 3.0), rel=1e-6)


def test_the_crossing_time_is_that_of_the_state_that_an_input_moves_fastest(load: Load) -> None:
    """A beam of 0.02 kg m^2 with a ball's spin, 1 N m and a rate limit of 5 rad/s; two thrusts that turn one body."""
    assert crossing_time(linearization(load("ball_on_beam"))) == pytest.approx(5.0 * 0.020002, rel=1e-4)
    assert crossing_time(linearization(load("planar_quadrotor"))) == pytest.approx(
        15.0 * 3.83e-3 / (2.0 * 2.35 * 0.25), rel=1e-4
    )


def test_presets_of_all_control_rates_look_ahead_by_the_same_seconds(rails: dict[int, CompiledRobot]) -> None:
    made = {rate: make_settings("fast", rails[rate]) for rate in RATES}
    crossing = 3.0 / (10.0 / 1.3)  # s, in which the force brings the mass to its rate limit
    expected = crossing / 5.0  # less than an eighth of the time scale
    assert expected < time_scale(linearization(rails[125])) / 8.0
    for rate, settings in made.items():
        assert abs(settings.step_periods[1] / rate - expected) <= 0.5 / rate + 1e-9
    same = [{**vars(s), "step_periods": ()} for s in made.values()]
    assert all(each == same[0] for each in same)


def test_a_slow_robot_is_a_fast_one_with_other_seconds(rails: dict[int, CompiledRobot]) -> None:
    """500 times as slow, at one control period a second: the same settings as at 500 Hz."""
    assert time_scale(linearization(rails[SLOW])) == pytest.approx(
        500.0 * time_scale(linearization(rails[500])), rel=1e-5
    )
    assert make_settings("fast", rails[SLOW]) == make_settings("fast", rails[500])
