"""Effects of the harsh plant, each compared with a case solved by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

import modelgen
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.observer import COUNTS_PER_TURN, LENGTH_COUNT
from solver.plants.harsh import (
    BREAKAWAY,
    COULOMB,
    CROSSING,
    CUTOFF,
    EFFECTS,
    NOISE,
    SATURATION,
    Backlash,
    Harsh,
    Harshness,
    harshness,
)
from solver.plants.outcome import rollouts, sample_starts
from solver.plants.plant import Nominal, Plant
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from tests.closeness import assert_close
from tests.solver.export.test_observer_in_c import wheel
from tests.solver.plants.rollouts_by_hand import feedback, moved, wrapped

Load = Callable[[str], CompiledRobot]


@pytest.mark.parametrize("name", ["pendulum", "furuta", "double_pendulum", "planar_quadrotor"])
@pytest.mark.slow
def test_harsh_without_effects_is_nominal(problem: Callable[[str], Problem], name: str) -> None:
    g = problem(name)
    x, theta = sample_starts(g, 5, 0), g.theta * 1.1
    expected = rollouts(g, feedback(g), x, Nominal(g, theta), seconds=1.0)
    result = rollouts(g, feedback(g), x, Harsh(g, Harshness(), theta), seconds=1.0)
    for field in ("x", "u", "state_reward", "action_reward", "success"):
        assert_close(getattr(result, field), getattr(expected, field), periods=125)


def test_delay_shifts_the_inputs_by_whole_periods(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = torch.tensor([[1.0, 0.0], [-2.0, 3.0]])
    inputs = [torch.tensor([[k - 2.0], [0.5 * k]]) for k in range(5)]
    none = torch.zeros(2, 1)
    for periods in (1, 2):
        late = moved(Harsh(g, Harshness(delay=periods)), x, inputs)
        assert_close(late, moved(Nominal(g), x, [none] * periods + inputs[:-periods]), periods=5)


def test_saturation_clips_the_inputs_below_the_input_limit(problem: Callable[[str], Problem]) -> None:
    g = problem("double_pendulum")
    x = torch.zeros(1, 4)
    most = g.input_limits * (1.0 - 2.0 * SATURATION)
    inputs = [g.input_limits[None], -0.5 * g.input_limits[None]]
    expected = moved(Nominal(g), x, [most[None], inputs[1]])
    assert_close(moved(Harsh(g, Harshness(saturation=2.0)), x, inputs), expected, periods=2)


def breakaway(g: Problem) -> Tensor:
    """Breakaway inputs (m,)."""
    return g.input_limits * BREAKAWAY


@pytest.mark.parametrize(
    ("name", "sign"), [("pendulum", 1.0), ("cartpole", -1.0), ("furuta", 1.0), ("double_pendulum", -1.0)]
)
@pytest.mark.slow
def test_stiction_holds_below_breakaway_and_not_above(
    problem: Callable[[str], Problem], name: str, sign: float
) -> None:
    g = problem(name)
    plant = Harsh(g, Harshness(stiction=1.0))
    hanging = torch.tensor([[math.pi if state.continuous else 0.0 for state in g.robot.metadata.states]])
    if name == "double_pendulum":
        hanging[0, 1] = 0.0
    rows = [g.robot.state_names.index(str(entry.coordinate)) for entry in g.robot.metadata.inputs]
    below = wrapped(moved(plant, hanging, [sign * 0.95 * breakaway(g)[None]] * 125)[:, 0, rows] - hanging[0, rows])
    assert float(below.abs().max()) < 1e-4
    above = wrapped(moved(plant, hanging, [sign * 1.05 * breakaway(g)[None]] * 20)[-1, 0, rows] - hanging[0, rows])
    assert bool((above * sign > 1e-3).any())


def test_stiction_holds_a_leaning_pendulum_below_breakaway(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    angles = [math.asin(share * float(breakaway(g)) / (9.81 / 2.0)) for share in (0.95, 1.05)]  # m g l/2 sin = share F
    start = torch.tensor([[angle, 0.0] for angle in angles])
    end = moved(Harsh(g, Harshness(stiction=1.0)), start, [torch.zeros(2, 1)] * 63)
    assert float(end[-1, 0, 0]) == pytest.approx(angles[0], abs=1e-5)
    assert float(end[-1, 1, 0]) > angles[1] + 0.01


def test_friction_of_a_joint_in_motion_is_the_coulomb_input(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    x = torch.tensor([[2.0, 3.0], [2.0, -3.0]])
    rub = COULOMB * breakaway(g)
    u = torch.tensor([[0.3], [0.3]])
    expected = moved(Nominal(g), x, [u - rub * torch.tensor([[1.0], [-1.0]])] * 5)
    torch.testing.assert_close(moved(Harsh(g, Harshness(stiction=1.0)), x, [u] * 5), expected)


def test_friction_stops_a_joint_and_does_not_turn_it_back(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    plant = Harsh(g, Harshness(stiction=10.0))
    rate = moved(plant, torch.tensor([[math.pi, 0.2]]), [torch.zeros(1, 1)] * 60)[:, 0, 1]
    deceleration = 3.0 * 10.0 * COULOMB * float(breakaway(g))  # of a rod of 1 kg and 1 m; gravity adds 2 %
    periods = 0.2 / deceleration / g.control_step
    before = math.floor(periods)
    torch.testing.assert_close(
        rate[:before], 0.2 - deceleration * 0.008 * torch.arange(before), rtol=0.0, atol=0.05 * 0.2
    )
    assert float(rate[math.ceil(periods) :].abs().max()) < 1e-5
    assert float(rate.min()) > -1e-5


@pytest.mark.parametrize("h", [0.002, 0.0003, 0.02])
@pytest.mark.parametrize("share", [1.0, -1.0, 0.3])
def test_backlash_transmits_no_input_until_the_gap_is_crossed(h: float, share: float) -> None:
    limit = torch.tensor([4.0])
    gap = Backlash(limit, CROSSING, torch.zeros(1, 1))
    for duration, start in ((math.sqrt(0.5), "the middle"), (1.0, "the other side")):
        u = share * limit[None] * (1.0 if start == "the middle" else -1.0)
        crossing = duration * CROSSING / math.sqrt(abs(share))
        steps = math.ceil(2.0 * CROSSING / h) + 1
        passed = torch.cat([gap.transmitted(u, h) for _ in range(steps)])
        assert float(passed.sum()) * h == pytest.approx(float(u) * (steps * h - crossing), rel=1e-4)
        assert float(passed[0]) == pytest.approx(float(u) * max(0.0, 1.0 - crossing / h), abs=1e-4)
        assert float(passed[-1]) == float(u)
    rest = gap.transmitted(torch.zeros(1, 1), h)
    assert float(rest) == 0.0
    assert float(gap.transmitted(u, h)) == float(u)  # a drive without input in contact stays there


def test_drive_within_its_backlash_does_not_move_the_joint(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    plant = Harsh(g, Harshness(backlash=20.0))  # 80 ms at full input
    x = torch.tensor([[math.pi, 0.0]])
    inputs = [(-1.0) ** (k // 3) * g.input_limits[None] for k in range(24)]
    assert float((moved(plant, x, inputs) - moved(Nominal(g), x, [torch.zeros(1, 1)] * 24)).abs().max()) < 1e-5
    rate = moved(plant, x, [g.input_limits[None]] * 9)[:, 0, 1]
    assert float(rate[:8].abs().max()) < 1e-4  # it crosses half of the gap in 57 ms, 7.07 periods
    assert rate[8:].tolist() == pytest.approx([3.0 * 2.5 * (0.008 * k - 0.08 * 0.5**0.5) for k in (8, 9)], rel=0.02)


def observed(plant: Plant, x: Tensor, periods: int, u: Tensor) -> tuple[Tensor, Tensor]:
    """True and measured states, each (periods + 1, N, n)."""
    motion = plant.begin(x)
    true, measured = [motion.x], [motion.measured]
    for _ in range(periods):
        motion.step(u)
        true.append(motion.x)
        measured.append(motion.measured)
    return torch.stack(true), torch.stack(measured)


def test_encoders_round_positions_to_whole_counts(problem: Callable[[str], Problem]) -> None:
    g = problem("cartpole")
    true, measured = observed(Harsh(g, Harshness(encoder=1.0)), sample_starts(g, 20, 0), 100, torch.full((20, 1), 5.0))
    counts = torch.tensor([LENGTH_COUNT, 2.0 * math.pi / COUNTS_PER_TURN])
    error = (measured - true)[..., :2]
    error[..., 1] = wrapped(error[..., 1])
    assert bool((error.abs() <= 0.501 * counts).all())
    assert bool((error.abs() > 0.4 * counts).any(0).any(0).all())
    whole = measured[..., :2].double() / counts
    assert float((whole - whole.round()).abs().max()) < 5e-3  # in float32


def test_rates_of_encoders_are_filtered_differences_of_the_counts(problem: Callable[[str], Problem]) -> None:
    g = problem("pendulum")
    true, measured = observed(Harsh(g, Harshness(encoder=1.0)), torch.tensor([[2.5, 4.0]]), 125, torch.zeros(1, 1))
    kept = math.exp(-2.0 * math.pi * CUTOFF * 0.008)
    rate, expected = 4.0, [4.0]
    for before, now in zip(measured[:-1, 0, 0].tolist(), measured[1:, 0, 0].tolist(), strict=True):
        rate = kept * rate + (1.0 - kept) * math.remainder(now - before, 2.0 * math.pi) / 0.008
        expected.append(rate)
    np.testing.assert_allclose(measured[:, 0, 1], expected, atol=2e-3)
    assert float(true[:, 0, 0].diff().abs().max()) > 6.0  # it crosses the seam
    assert float((measured - true)[..., 1].abs().max()) < 0.8  # late, and a count is 0.38 rad/s before the filter


def test_noise_is_white_with_its_variance_and_does_not_move_the_robot(problem: Callable[[str], Problem]) -> None:
    g = problem("cartpole")
    x, u = sample_starts(g, 400, 0), torch.zeros(400, 1)
    plant = Harsh(g, Harshness(noise=2.0), seed=5)
    true, measured = observed(plant, x, 50, u)
    assert_close(true, observed(Nominal(g), x, 50, u)[0], periods=50)
    error = (measured - true).double()
    error[..., 1] = wrapped(error[..., 1])
    expected = [2.0 * NOISE[state.unit] for state in g.robot.metadata.states]
    np.testing.assert_allclose(error.std((0, 1)), expected, rtol=0.03)
    np.testing.assert_allclose((error.mean((0, 1)) / torch.tensor(expected)).abs() < 0.03, True)
    successive = (error[1:] * error[:-1]).mean((0, 1)) / error.var((0, 1))
    assert float(successive.abs().max()) < 0.03
    assert torch.equal(measured, observed(plant, x, 50, u)[1])
    assert not torch.equal(measured, observed(Harsh(g, Harshness(noise=2.0), seed=6), x, 50, u)[1])


def test_noise_of_a_rollout_with_its_own_seed_does_not_depend_on_the_batch(problem: Callable[[str], Problem]) -> None:
    g, level = problem("cartpole"), Harshness(noise=2.0)
    x, u = sample_starts(g, 40, 0), torch.zeros(40, 1)
    true, measured = observed(Harsh(g, level, seed=range(40)), x, 20, u)
    for row in (0, 17, 39):
        again, alone = observed(Harsh(g, level, seed=row), x[row : row + 1], 20, u[:1])
        torch.testing.assert_close(measured[:, row] - true[:, row], (alone - again)[:, 0], rtol=0.0, atol=1e-5)


def test_effects_are_read_from_names_and_factors() -> None:
    assert harshness([]) == Harshness(1, 1, 1, 1, 1, 1)
    assert harshness(["delay=2x", " noise = 0.5 x", "encoder"]) == Harshness(delay=2, noise=0.5, encoder=1)
    assert harshness(["delay,noise=3"]) == Harshness(delay=1, noise=3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dely"], "Did you mean `delay`"),
        (["delay=1.5x"], r"delay=1\.5x.*delay=2x"),
        (["noise=-1x"], "noise=2x"),
        (["noise=1e300"], "from 0.001x to 1000x"),
        (["encoder=1e-320"], "from 0.001x to 1000x"),
        (["delay=1e20"], "from 0.001x to 1000x"),
        ([","], "delay, saturation"),
        (["noise=nan"], "'noise=nan'"),
        (["noise="], "'noise='"),
        (["saturation=10x"], "less than 10x"),
    ],
)
def test_effect_that_cannot_be_read_is_an_error(words: list[str], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        harshness(words)


@pytest.mark.parametrize(("name", "unit"), [("lower", "rad/s"), ("elbow_rate", "1/s")])
def test_effects_that_need_a_rate_reject_a_velocity_that_is_not_one(
    problem: Callable[[str], Problem], name: str, unit: str
) -> None:
    metadata = problem("double_pendulum").robot.metadata
    states = (*metadata.states[:3], dataclasses.replace(metadata.states[3], name=name, unit=unit))
    robot = SimpleNamespace(name="rods", metadata=dataclasses.replace(metadata, states=states))
    other = SimpleNamespace(robot=robot, substeps=1)
    rejected = {"encoder": "elbow", "stiction": "elbow"} if name == "lower" else {"noise": "1/s"}
    for effect in EFFECTS:
        if effect in rejected:
            with pytest.raises(SolverError, match=f"{rejected[effect]}.*harsh delay"):
                Harsh(other, Harshness(**{effect: 1.0}))  # type: ignore[arg-type]
        else:
            Harsh(other, Harshness(**{effect: 1.0}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["wheel", "hidden_wheel"])
def test_a_place_that_rolls_has_no_rate_of_encoders(name: str) -> None:
    """They would put it into the place of the wheel's; friction acts on the wheel itself."""
    rolling = Problem(modelgen.compile(wheel(name), dtype="float32"))
    with pytest.raises(SolverError, match=r"rate of place is not an entry .*encoder"):
        Harsh(rolling, Harshness(encoder=1.0))
    plant = Harsh(rolling, Harshness(stiction=1.0))
    x = rolling.target[None] + 0.1 * rolling.state_limits
    assert plant.rates == [len(rolling.target) - 1]
    simulation = plant.begin(x)
    simulation.step(torch.zeros(1, 1))
    assert 0.0 < simulation.x[0, -1] < integrate_period(rolling, x, torch.zeros(1, 1)).x[0, -1]
