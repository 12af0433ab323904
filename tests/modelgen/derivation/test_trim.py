"""The trim: statics by hand, constrained least squares by SciPy; action costs from it by search and differences."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize
from sympy import Abs, Symbol, cos, pi, sign, sin, sqrt

import modelgen
from modelgen import ActionCost, LogCos, ModelError, Quadratic, Robot, Tanh
from modelgen.backends.casadi import compiled
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.lowering import mechanism
from modelgen.derivation.trim import find_trim, smallest_solution, unheld
from modelgen.program.differentiate import program
from modelgen.program.trim import REGULAR, trims
from modelgen.statement.action_costs import ACTION_COSTS
from tests.modelgen.support.cases import CASES

G = 9.81
TASK = {"start": {}, "horizon": 3, "weight_at_horizon": 0.5, "control_rate": 100}


def lander(limits: object, cost: ActionCost = Quadratic(0.002), free: tuple[str, ...] = ()) -> Robot:  # noqa: B008
    """A body of 2 kg that one thruster lifts."""
    robot = Robot("lander")
    height = robot.prismatic("height", limit=5, rate_limit=6)
    robot.point_mass(robot.parameter("mass", 2.0, "kg", tolerance=0.2), (0, height))
    robot.apply(height, robot.input("thrust", limits, "N"))  # type: ignore[arg-type]
    robot.task(state_cost=height**2 + 0.1 * height.rate**2, action_cost=cost, free=free, **TASK)  # type: ignore[arg-type]
    return robot


def arm(limit: float = 3.0) -> Robot:
    """A rod with a point mass, held at 45 degrees from upright."""
    robot = Robot("arm")
    angle = robot.revolute("angle", limit=3, rate_limit=8)
    mass = robot.parameter("mass", 0.5, "kg", tolerance=0.3)
    robot.point_mass(mass, (0.3 * sin(angle), 0.3 * cos(angle)))
    robot.apply(angle, robot.input("torque", limit, "N m"))
    robot.task(
        state_cost=(angle - pi / 4) ** 2 + 0.05 * angle.rate**2,
        action_cost=Quadratic(0.01),
        target={"angle": math.pi / 4},
        **TASK,  # type: ignore[arg-type]
    )
    return robot


def hopper(ranges: tuple[object, object], cost: ActionCost) -> Robot:
    """A body of 1 kg that two rotors on its vertical axis lift, the second with twice the effect."""
    robot = Robot("hopper")
    height = robot.prismatic("height", limit=2, rate_limit=4)
    robot.point_mass(robot.parameter("mass", 1.0, "kg", tolerance=0.2), (0, height))
    for name, limits, share in zip(("first", "second"), ranges, (1, 2), strict=True):
        robot.apply(height, share * robot.input(name, limits, "N"))  # type: ignore[arg-type]
    robot.task(state_cost=height**2 + height.rate**2, action_cost=cost, **TASK)  # type: ignore[arg-type]
    return robot


def test_the_trim_is_the_weight_and_the_torque_of_statics() -> None:
    assert equations_of_motion(lander((0, 80))).trim == pytest.approx((2 * G,), rel=1e-12)
    assert equations_of_motion(arm()).trim == pytest.approx((-0.5 * G * 0.3 * math.sin(math.pi / 4),), rel=1e-12)


@pytest.mark.slow
def test_redundant_inputs_have_the_smallest_trim_within_their_limits() -> None:
    """In units of half ranges: by the method of Lagrange inside, and at the limit of the stronger one."""
    half = np.array([10.0, 5.0])
    free = equations_of_motion(hopper(((-10, 10), (0, 10)), Quadratic(0.1))).trim
    row = np.array([1.0, 2.0]) * half
    np.testing.assert_allclose(free, half * row * G / (row @ row), rtol=1e-9)
    bounded = equations_of_motion(hopper(((0, 4), (0, 3.5)), Quadratic(0.1))).trim
    np.testing.assert_allclose(bounded, [G - 2 * 3.5, 3.5], rtol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_solution_is_that_of_a_general_minimiser(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = random.integers(1, 3), random.integers(3, 6)
    A, lower = random.normal(size=(rows, columns)), -random.uniform(0, 2, columns)
    b = A @ random.uniform(lower, lower + 2)
    z = smallest_solution(A, b, lower, lower + 2)
    assert z is not None
    assert np.abs(A @ z - b).max() < 1e-9
    assert (z >= lower).all()
    assert (z <= lower + 2).all()
    start = lsq_linear(A, b, (lower, lower + 2)).x
    rival = minimize(
        lambda z: z @ z,
        start,
        jac=lambda z: 2 * z,
        bounds=list(zip(lower, lower + 2, strict=True)),
        constraints={"type": "eq", "fun": lambda z: A @ z - b, "jac": lambda _: A},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert z @ z <= rival.x @ rival.x * (1 + 1e-5)


def rotors(limits: tuple[float, float], arms: list[float]) -> Robot:
    """A planar body that rotors on arms lift and turn."""
    robot = Robot("rotors")
    height = robot.prismatic("height", limit=5, rate_limit=6)
    roll = robot.revolute("roll", limit=1, rate_limit=5)
    mass = robot.parameter("mass", 1.0, "kg", tolerance=0.5)
    offset = robot.parameter("offset", 0.02, "m", bounds=(-0.1, 0.1))
    robot.body(mass, 0.05, (0, height), roll)
    for number, arm in enumerate(arms):
        thrust = robot.input(f"thrust{number}", limits, "N")
        robot.apply(height, thrust)
        robot.apply(roll, thrust * arm)
    robot.apply(roll, mass * G * offset)
    cost = height**2 + height.rate**2 + roll**2 + roll.rate**2
    robot.task(state_cost=cost, action_cost=Quadratic(0.1), **TASK)  # type: ignore[arg-type]
    return robot


@pytest.mark.slow
@settings(max_examples=max(CASES // 10, 2), deadline=None, phases=(Phase.generate,))
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 5))
def test_fuzz_trims_within_limits(seed: int, size: int) -> None:
    """They hold the target as well as SciPy's least squares; inside the limits, slopes are those of complex steps."""
    random = np.random.default_rng(seed)
    limits, arms = (-float(random.uniform(0, 2)), float(random.uniform(2, 8))), random.uniform(-0.5, 0.5, size)
    robot = rotors(limits, [float(arm) for arm in arms])
    made = trims(program(mechanism(equations_of_motion(robot))), metadata(robot))
    mass, offset, half = float(random.uniform(0.5, 1.5)), float(random.uniform(-0.1, 0.1)), (limits[1] - limits[0]) / 2
    found = compiled(made.graph, made.function("trim_slopes"), "rotors")
    theta = np.array([mass, offset])
    u, slopes = (np.asarray(each) for each in found(np.zeros(4), theta))

    def balance(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and b of A z = b, for shares z of the inputs."""
        return (
            half * np.array([np.ones(size) / at[0] / 6, arms / 0.05 / 5]),
            np.array([G / 6, -at[0] * G * at[1] / 0.05 / 5]),
        )

    A, b = balance(theta)
    weight = np.sqrt(REGULAR * (A**2).sum())
    best = lsq_linear(
        np.vstack([A, weight * np.eye(size)]),
        np.append(b, np.zeros(size)),
        (limits[0] / half, limits[1] / half),
        tol=1e-15,
    ).x
    assert np.linalg.norm(A @ u.ravel() / half - b) <= np.linalg.norm(A @ best - b) + 1e-5
    assert (u >= limits[0] - 1e-9).all()
    assert (u <= limits[1] + 1e-9).all()
    for j in range(2 if size > 1 else 0):  # the smallest solution by complex steps
        A, b = balance(theta + 1e-30j * np.eye(2)[j])
        z = half * A.T @ np.linalg.solve(A @ A.T, b)
        if (z.real > limits[0] + 1e-6).all() and (z.real < limits[1] - 1e-6).all():
            np.testing.assert_allclose(u.ravel(), z.real, rtol=1e-4, atol=1e-4 * half)
            np.testing.assert_allclose(slopes[:, j], z.imag / 1e-30, rtol=1e-4, atol=1e-4 * half)


def test_a_strong_input_takes_nothing_from_a_weak_one() -> None:
    """A gimbal without inertia to speak of, on a heavy slide: by statics. Of two rotors, the smallest shares stay."""
    robot = Robot("gimbal")
    z, tilt = robot.prismatic("z", limit=2, rate_limit=2), robot.revolute("tilt", limit=1, rate_limit=10)
    mass, load = robot.parameter("mass", 100.0, "kg", tolerance=0.2), robot.parameter("load", 0.3, "N m", tolerance=0.3)
    slide = robot.link("slide", z, axis="z", mass=mass)
    robot.link("plate", tilt, on=slide, inertia=1e-6)
    for name, share in (("left", 1), ("right", 3)):
        robot.apply(z, share * robot.input(name, 1000, "N"))
    robot.apply(tilt, load + robot.input("torque", 1, "N m"))
    cost = z**2 + z.rate**2 + tilt**2 + tilt.rate**2
    robot.task(state_cost=cost, action_cost=Quadratic(0.1), **TASK)  # type: ignore[arg-type]
    made = trims(program(mechanism(equations_of_motion(robot))), metadata(robot))
    u, slopes = (
        np.asarray(each)
        for each in compiled(made.graph, made.function("trim_slopes"), "gimbal")(np.zeros(4), [100, 0.3])
    )
    np.testing.assert_allclose(u.ravel(), [100 * G / 10, 300 * G / 10, -0.3], rtol=1e-5)
    np.testing.assert_allclose(slopes, np.array([[G / 10, 0], [3 * G / 10, 0], [0, -1]]), rtol=1e-5, atol=1e-9)


def test_machine_code_of_a_trim_is_not_that_of_another_task() -> None:
    """Code is kept by the digest. Speeds that need not be held, and limits, stand in no function of the program."""
    robot = lander((0, 80))
    made, whole = program(mechanism(equations_of_motion(robot))), metadata(robot)
    tasks = [whole, replace(whole, task=replace(whole.task, free=("height_rate",)))]
    tasks.append(replace(whole, states=(whole.states[0], replace(whole.states[1], limit=7.0))))
    assert len({trims(made, each).digest for each in tasks}) == 3


def test_a_light_rotor_beside_a_heavy_mass_has_a_trim() -> None:
    """Their inertias differ by 1e19, more than the digits of a number."""
    robot = Robot("press")
    height, angle = robot.prismatic("height", limit=1, rate_limit=1), robot.revolute("angle", limit=1, rate_limit=100)
    robot.point_mass(robot.parameter("mass", 1e8, "kg", tolerance=0.2), (0, height))
    robot.rotor(angle, 1e-11)
    robot.apply(height, robot.input("force", 2e9, "N"))
    robot.apply(angle, robot.input("torque", 1e-6, "N m"))
    cost = height**2 + height.rate**2 + angle**2 + angle.rate**2
    robot.task(state_cost=cost, action_cost=Quadratic(1e-3), **TASK)  # type: ignore[arg-type]
    assert equations_of_motion(robot).trim == pytest.approx((1e8 * G, 0.0), rel=1e-12)


def test_a_flow_with_a_sign_has_a_trim() -> None:
    """The slope of a sign at zero is a delta function to SymPy. In closed form p = m g / area, and u is the leak."""
    robot = Robot("lift")
    height, pressure = robot.prismatic("height", limit=1, rate_limit=1), robot.state("pressure", limit=2e5, unit="Pa")
    pump = robot.input("pump", 1e6, "Pa/s")
    robot.point_mass(10.0, (0, height))
    robot.apply(height, robot.parameter("area", 1e-3, "m^2", tolerance=0.1) * pressure)
    robot.flow(pressure, pump - 100.0 * sign(pressure) * sqrt(Abs(pressure) + 1.0))
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.6, "control_rate": 500}
    robot.task(state_cost=height**2 + height.rate**2, action_cost=Quadratic(1e-12), **task)
    equations = equations_of_motion(robot)
    assert equations.rest == pytest.approx((10 * G / 1e-3,), rel=1e-9)
    assert equations.trim == pytest.approx((100 * math.sqrt(10 * G / 1e-3 + 1),), rel=1e-9)


@pytest.mark.parametrize("name", ["planar_quadrotor", "quadrotor", "holding"])
def test_the_trims_slopes_are_those_of_differences(name: str, tmp_path: Path) -> None:
    model = Path(__file__).parents[3] / "benchmarks" / "unseen" / "holding.py"
    if name == "holding":
        build_artifact(runpy.run_path(str(model))["robot"], tmp_path)
    robot = modelgen.load(name, directory=tmp_path if name == "holding" else None, parallel=False)
    target, theta = np.array(robot.metadata.task.target), robot.nominal_parameters
    u, slopes = robot.trim_slopes(target)
    np.testing.assert_allclose(u, robot.trim, rtol=1e-7)
    np.testing.assert_allclose(u, robot.trim_at(target, theta), rtol=1e-7)
    assert np.abs(slopes).max() > 0.1
    for j, value in enumerate(theta):
        step = 1e-4 * value * np.eye(len(theta))[j]
        by_differences = (robot.trim_at(target, theta + step) - robot.trim_at(target, theta - step)) / (2e-4 * value)
        np.testing.assert_allclose(slopes[:, j], by_differences, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())


def hoist(inductance: float) -> Robot:
    """A load on a motor, whose current follows the voltage, and whose force is not linear in it."""
    robot = Robot("hoist", "A load on a motor")
    height = robot.prismatic("height", limit=1, rate_limit=2)
    load = robot.parameter("load", 0.5, "kg", tolerance=0.3)
    k = robot.parameter("k", 1.5, "N/A", tolerance=0.3)
    sticky = robot.parameter("sticky", 0.01, "N/A^3", tolerance=0.3)
    resistance = robot.parameter("resistance", 2.0, "Ohm", tolerance=0.5)
    henry = robot.parameter("inductance", inductance, "H", fixed=True)
    voltage, current = robot.input("voltage", 24, "V"), robot.state("current", limit=10, unit="A")
    robot.point_mass(load, (0, height))
    robot.flow(current, (voltage - resistance * current - k * height.rate) / henry)
    robot.apply(height, k * current - sticky * current**3)
    cost = height**2 + height.rate**2
    robot.task(state_cost=cost, action_cost=Quadratic(0.1), **TASK)  # type: ignore[arg-type]
    return robot


@pytest.mark.parametrize("inductance", [2.0, 0.02, 0.002])
@pytest.mark.slow
def test_slopes_of_a_trim_whose_current_follows_are_those_of_the_trim(inductance: float, tmp_path: Path) -> None:
    """Of the trim at other parameters, which solves for the input and the current by Newton's method."""
    robot = hoist(inductance)
    build_artifact(robot, tmp_path)
    built = modelgen.load("hoist", directory=tmp_path, parallel=False)
    equations, (u, slopes) = equations_of_motion(robot), built.trim_slopes(np.array(built.metadata.task.target))
    np.testing.assert_allclose(u, find_trim(robot, equations).u, rtol=1e-6)
    free = [parameter for parameter in robot.parameters if not parameter.fixed]
    for j, parameter in enumerate(free):
        step = 1e-4 * parameter.value
        ends = [find_trim(robot, equations, {parameter.symbol: parameter.value + sign * step}).u for sign in (-1, 1)]
        np.testing.assert_allclose(slopes[:, j], (ends[1] - ends[0]) / (2 * step), rtol=1e-5)
    assert np.abs(slopes).min() > 0.1


@pytest.mark.parametrize("weakest", [0.0, 3.0])
def test_a_magnet_whose_force_is_the_square_of_its_current_holds_a_ball(weakest: float) -> None:
    """Newton's method has no slope at zero current. In closed form k i^2 / gap^2 = m g, and the voltage is R i."""
    robot = Robot("magnet")
    height = robot.prismatic("height", limit=0.02, rate_limit=1)
    voltage, current = robot.input("voltage", (weakest, 24), "V"), robot.state("current", limit=5, unit="A")
    strength = robot.parameter("strength", 1e-4, "N m^2/A^2", tolerance=0.2)
    robot.point_mass(0.05, (0, height))
    robot.apply(height, strength * current**2 / (0.03 - height) ** 2)
    robot.flow(current, (voltage - 3.0 * current) / 0.05)
    task: dict[str, Any] = {"start": {}, "horizon": 3, "weight_at_horizon": 0.6, "control_rate": 500}
    robot.task(state_cost=(100 * height) ** 2 + height.rate**2, action_cost=Quadratic(0.01), **task)
    equations = equations_of_motion(robot)
    needed = math.sqrt(0.05 * 9.81 * 0.03**2 / 1e-4)
    assert equations.trim == pytest.approx((3 * needed,), rel=1e-9)
    assert equations.rest == pytest.approx((needed,), rel=1e-9)
    assert unheld(robot, equations) == ""


@pytest.mark.slow
def test_a_target_that_no_input_holds_is_named_with_its_drift(tmp_path: Path) -> None:
    robot = arm(limit=0.5)
    torque = 0.5 * G * 0.3 * math.sin(math.pi / 4) - 0.5
    text = unheld(robot, equations_of_motion(robot))
    assert "`angle_rate`" in text
    assert f"{torque / (0.5 * 0.3**2):.3g} rad/s per second" in text
    assert equations_of_motion(robot).trim == (0.0,)
    assert build_artifact(robot, tmp_path).warnings == [text]
    assert not unheld(lander((0, 10), free=("height",)), equations_of_motion(lander((0, 80))))
    falls = lander((0, 10), free=("height_rate",))
    assert not unheld(falls, equations_of_motion(falls))


@pytest.mark.parametrize(
    ("limits", "words"), [((0, 1, 2), "write (lower, upper)"), ((3, 1), "lower one first"), ((1, 1), "lower one first")]
)
def test_limits_that_are_no_range_are_refused(limits: object, words: str) -> None:
    with pytest.raises(ModelError, match="thrust") as refused:
        lander(limits)
    assert words in str(refused.value)


@pytest.mark.parametrize("kind", [LogCos, Tanh])
@pytest.mark.slow
def test_a_trim_at_a_limit_is_refused_where_the_cost_is_steep(kind: Callable[[float], ActionCost]) -> None:
    with pytest.raises(ModelError, match=r"`thrust` .*19\.62 N"):
        equations_of_motion(lander((0, 2 * G), kind(0.002)))
    assert equations_of_motion(lander((0, 2 * G))).trim == pytest.approx((2 * G,))


def test_without_a_trim_and_a_middle_nothing_changes() -> None:
    cost = LogCos(1.0).of_input(Symbol("u", real=True), 2.0, 0.3)
    assert cost.measured_from(0.0, 0.0) is cost
    entry = metadata(lander(80)).content()["inputs"][0]
    assert sorted(entry) == ["coordinate", "limit", "meaning", "name", "unit"]


@pytest.mark.parametrize("kind", ACTION_COSTS)
@pytest.mark.slow
def test_the_artifact_has_the_trim_and_kernels_that_are_zero_there(
    kind: Callable[[float], ActionCost], tmp_path: Path
) -> None:
    build_artifact(lander((0, 80), kind(0.002)), tmp_path)
    for dtype, digits in (("float64", 1e-12), ("float32", 2e-6)):
        robot = modelgen.load("lander", dtype=dtype, directory=tmp_path)
        assert (robot.metadata.inputs[0].lower, robot.metadata.inputs[0].upper) == (0.0, 80.0)
        u0 = np.array([robot.trim])
        g, slope, _ = robot.action_cost(u0)
        largest = float(robot.action_cost(np.full((1, 1), 79.0))[0][0])
        assert abs(float(g[0])) < digits * largest
        assert abs(float(slope[0, 0])) < digits * largest
        np.testing.assert_allclose(robot.optimal_input(np.zeros((1, 1))), u0, rtol=digits)
        np.testing.assert_allclose(np.asarray(robot.dynamics(np.zeros((1, 2)), u0)), 0.0, atol=1e-5)
        for w, limit in ((-1e9, 0.0), (1e9, 80.0)):
            np.testing.assert_allclose(robot.optimal_input(np.full((1, 1), w)), limit, atol=1e-4)


@pytest.mark.parametrize("nominal", [0.0, 0.01])
def test_a_current_that_is_zero_at_nominal_parameters_follows_them(nominal: float) -> None:
    """The torque of the motor is that of the load, whatever its nominal value: k i = load."""
    robot = Robot("loaded", "A motor against a load that may push either way")
    angle = robot.revolute("angle", limit=2, rate_limit=5)
    load = robot.parameter("load", nominal, "N m", bounds=(-0.3, 0.3))
    voltage, current = robot.input("voltage", 24, "V"), robot.state("current", limit=5, unit="A")
    robot.kinetic_energy(0.1 * angle.rate**2 / 2)
    robot.flow(current, (voltage - 2.0 * current - 0.2 * angle.rate) / 0.01)
    robot.apply(angle, 0.2 * current - load)
    robot.task(state_cost=angle**2 + angle.rate**2, action_cost=Quadratic(0.1), **TASK)  # type: ignore[arg-type]
    heavy = modelgen.compile(robot).with_nominal([0.2]).metadata.task
    np.testing.assert_allclose((heavy.target, heavy.start_mean), [(0, 0, 1)] * 2, atol=1e-6)
