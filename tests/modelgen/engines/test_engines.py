"""Robots compared with MuJoCo and Pinocchio: shipped robots by MJCF files written by hand, trees by their links."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen import Robot, engines
from modelgen.artifact import folder as artifact
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.engines import differences
from modelgen.engines.comparison import Pair, compare, judged
from modelgen.engines.expressions import Expressions, builder
from modelgen.engines.mujoco import ASSETS
from modelgen.errors import ModelError
from modelgen.verification.checks import Check
from tests.modelgen.support.evaluation import Uncompiled

pytestmark = pytest.mark.slow

NAMES = sorted(path.stem for path in ASSETS.glob("*.xml"))
Derived = tuple[Robot, EquationsOfMotion, Uncompiled]
PENDULUM = (ASSETS / "pendulum.xml").read_text()


@pytest.fixture
def mjcf(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the pendulum's MJCF file with one text replaced by another."""
    pytest.importorskip("mujoco")

    def write(before: str = "", after: str = "") -> Any:
        assert before in PENDULUM
        path = tmp_path / "changed.xml"
        path.write_text(PENDULUM.replace(before, after))
        return path

    return write


@pytest.mark.parametrize(
    ("engine", "name"),
    [("mujoco", name) for name in NAMES] + [("pinocchio", name) for name in ("cartpole", "furuta", "planar_arm3")],
)
def test_shipped_robot_agrees(engine: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(engine)
    code = main(["verify", name, "--against", engine, "--generated", str(artifact.SHIPPED)])
    output = capsys.readouterr().out
    assert code == 0, output
    assert "4 checks passed, 0 failed, 0 skipped" in output


@pytest.mark.parametrize(
    ("before", "after", "failing"),
    [
        ('mass="1"', 'mass="1.00001"', {"mass matrix", "acceleration", "acceleration by the inputs"}),
        ("-9.81", "-9.81001", {"acceleration"}),
        ('name="torque" joint', 'name="torque" gear="1.000001" joint', {"acceleration", "acceleration by the inputs"}),
        ('axis="0 1 0"', 'axis="0 1 0" damping="1e-6"', {"acceleration"}),
        ("0 0 -9.81", "9.81 0 0", {"acceleration", "derivative of the acceleration by x"}),
    ],
)
def test_a_difference_to_the_mjcf_file_is_found(
    mjcf: Callable[..., Path], capsys: pytest.CaptureFixture[str], before: str, after: str, failing: set[str]
) -> None:
    path = mjcf(before, after)
    assert main(["verify", "pendulum", "--against", "mujoco", "--mjcf", str(path)]) == 1
    failures = [line for line in capsys.readouterr().out.splitlines() if line.endswith("FAILED")]
    assert failing <= {line.partition("mujoco")[0].strip() for line in failures}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"angle"', '"hinge"', "joints of .* `hinge`; .* `angle`"),
        ('name="torque"', 'name="drive"', "actuators of .* `drive`; .* `torque`"),
        ("</mujoco>", "", "MuJoCo cannot read"),
        ('type="hinge" axis="0 1 0"', 'type="ball"', "`angle` of .* hinge"),
        ("<actuator>", '<equality><joint joint1="angle"/></equality><actuator>', "equality constraints"),
        ('name="torque" joint="angle"/>', 'name="torque" joint="angle"/><motor joint="angle"/>', "actuators of"),
    ],
)
def test_an_mjcf_file_that_mujoco_cannot_compare_is_refused(
    mjcf: Callable[..., Path], before: str, after: str, words: str
) -> None:
    path = mjcf(before, after)
    metadata = artifact.read(artifact.find("pendulum", artifact.SHIPPED)).metadata
    with pytest.raises(ModelError, match=words):
        engines.load("mujoco", path, metadata)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"angle"', '"hinge"', "joints of .* `hinge`; .* `angle`"),
        ('name="torque"', 'name="drive"', "actuators of .* `drive`; .* `torque`"),
        ("</mujoco>", "", "cannot read"),
        ('type="hinge" axis="0 1 0"', 'type="ball"', "hinge"),
        ("<motor", "<muscle", "actuator"),
    ],
)
def test_an_mjcf_file_that_pinocchio_cannot_compare_is_refused(
    mjcf: Callable[..., Path], before: str, after: str, words: str
) -> None:
    pytest.importorskip("pinocchio")
    metadata = artifact.read(artifact.find("pendulum", artifact.SHIPPED)).metadata
    with pytest.raises(ModelError, match=words):
        engines.load("pinocchio", mjcf(before, after), metadata)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<motor", '<position kp="3" kv="0.2" gear="2"'),
        ("<motor", '<general gainprm="2" biastype="affine" biasprm="0.3 -1 -0.2" gear="3"'),
        ("<worldbody>", '<default><motor gear="2"/><joint damping="0.1"/></default><worldbody>'),
    ],
)
def test_the_forces_of_an_mjcf_file_are_the_same_in_both_engines(
    mjcf: Callable[..., Path], before: str, after: str
) -> None:
    pytest.importorskip("pinocchio")
    path, metadata = mjcf(before, after), artifact.read(artifact.find("pendulum", artifact.SHIPPED)).metadata
    random = np.random.default_rng(0)
    x, u = random.uniform(-2, 2, (8, 2)), random.uniform(-2, 2, (8, 1))
    ours, theirs = (engines.load(engine, path, metadata) for engine in ("pinocchio", "mujoco"))
    np.testing.assert_allclose(ours.acceleration(x, u), theirs.acceleration(x, u), rtol=1e-10)
    np.testing.assert_allclose(ours.derivative(x, u)[0], theirs.derivative(x, u)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("engine", "package"), [("mujoco", "mujoco"), ("pinocchio", "pin")])
def test_a_missing_engine_is_reported_with_its_package(
    mjcf: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    engine: str,
    package: str,
) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    assert main(["verify", "pendulum", "--against", engine, "--mjcf", str(mjcf())]) == 2
    assert f"pip install {package}`" in capsys.readouterr().err


def test_a_robot_without_a_description_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "crane"]) == 0
    assert main(["build", "crane"]) == 0
    assert main(["verify", "crane", "--against", "mujoco"]) == 2
    assert "models/crane.xml" in capsys.readouterr().err


def test_one_mjcf_file_for_several_robots_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "pendulum", "furuta", "--against", "mujoco", "--mjcf", "pendulum.xml"]) == 2
    assert "one robot" in capsys.readouterr().err


def test_a_value_that_is_not_finite_fails() -> None:
    ones = np.ones((3, 2))
    assert verdict(ones, ones).passed
    assert not verdict(np.where(np.eye(3, 2), np.nan, ones), ones).passed
    assert not verdict(ones, np.where(np.eye(3, 2), np.inf, ones)).passed


def verdict(ours: Any, theirs: Any, rounding: Any = 0.0, error: Any = 0.0) -> Check:
    """The check of two arrays (3, 2) or (3, 2, 2) with these errors."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    axes = [["arm", "hand"], ["q1", "q2"]][: ours.ndim - 1]
    noise = [np.broadcast_to(np.asarray(part, np.float64), ours.shape) for part in (rounding, error)]
    point = {"x": np.arange(6.0).reshape(3, 2), "theta": np.full((3, 1), 7.0)}
    return judged(Pair("mass matrix", axes, ours, theirs, *noise), "engine", point)


class TestVerdict:
    """The tolerance of an entry follows from its own noise, and a failure names the entry and the point."""

    matrix = np.tile([[1.0, 0.0], [0.0, 1e-6]], (3, 1, 1))

    def test_an_entry_that_is_zero_up_to_rounding_passes(self) -> None:
        assert verdict(self.matrix, self.matrix + np.array([[0, 1e-17], [1e-17, 0]])).passed
        assert not verdict(self.matrix, self.matrix + np.array([[0, 1e-12], [1e-12, 0]])).passed

    def test_a_small_entry_is_not_compared_with_the_scale_of_a_large_one(self) -> None:
        assert not verdict(self.matrix, self.matrix + np.array([[0, 0], [0, 1e-13]])).passed

    def test_noise_of_one_entry_does_not_excuse_another(self) -> None:
        noisy = np.array([[1e-6, 0], [0, 0]])
        assert verdict(self.matrix, self.matrix + noisy, error=noisy).passed
        assert verdict(self.matrix, self.matrix + noisy, rounding=noisy).passed
        assert not verdict(self.matrix, self.matrix + np.array([[0, 0], [0, 1e-6]]), error=noisy).passed

    def test_an_entry_lost_in_noise_is_counted(self) -> None:
        assert "1 of 4 entries" in verdict(self.matrix, self.matrix, error=[[1.0, 0], [0, 0]]).note
        assert not verdict(self.matrix, self.matrix).note

    def test_a_failure_names_entry_point_values_and_tolerance(self) -> None:
        changed = self.matrix.copy()
        changed[1, 1, 1] = 2e-6
        where = verdict(self.matrix, changed).where
        for words in ("entry (hand, q2)", "1e-06", "2e-06", "1.0e-14"):
            assert words in where
        assert where.endswith("at x = (2, 3), theta = (7)")


def test_error_of_finite_differences_is_estimated() -> None:
    """The function has a fast part. The true error is within the estimate, which is small."""

    def function(x: np.ndarray) -> np.ndarray:
        return np.stack([np.sin(x[:, 0]) + np.tanh(100 * x[:, 1]), np.exp(x[:, 0] * x[:, 1])], axis=1)

    x = np.random.default_rng(0).uniform(-0.05, 0.05, (50, 2))
    slopes, errors = differences(function, x, np.array([0.02, 0.02]))
    product = np.exp(x[:, 0] * x[:, 1])
    exact = np.empty((50, 2, 2))
    exact[:, 0, 0], exact[:, 0, 1] = np.cos(x[:, 0]), 100 / np.cosh(100 * x[:, 1]) ** 2
    exact[:, 1, 0], exact[:, 1, 1] = product * x[:, 1], product * x[:, 0]
    assert (abs(slopes - exact) <= 10 * errors.max(axis=0) + 1e-13).all()
    assert errors.max() < 1e-6


CRANE = """
from sympy import pi, sin, tanh
from modelgen import LogCos, Robot

robot = Robot("crane")
x, height = (robot.prismatic(name, limit=2, rate_limit=3) for name in ("x", "height"))
tilt = robot.revolute("tilt", continuous=True, rate_limit=5)
swing = robot.revolute("swing", limit=3, rate_limit=4)
reach = robot.prismatic("reach", limit=1, rate_limit=2)
m1, m2, m3, l, k, d = (
    robot.parameter(name, value, "", tolerance=0.3)
    for name, value in dict(m1=2.0, m2=1.5, m3=0.7, l=0.8, k=5.0, d=0.3).items()
)
rotor = robot.parameter("rotor", 1e-3, "kg m^2", fixed=True)
push, volts = robot.input("push", 12, "N"), robot.input("volts", 24, "V")
robot.gravity(1.62)
base = robot.link("base", (x, height, tilt), mass=m1, centre=(0.1, 0.05, 0.2), inertia=(0.3, 0.2, 0.25))
mast = robot.link("mast", on=base, at=(0.2, 0.1, l), turned=(pi / 5, -0.4, 1), mass=m2, centre=(0, 0.1, l / 2))
boom = robot.link(
    "boom", swing, on=mast, at=(0, 0, l), turned=(0.3, 0, 0.2), axis=(1, 2, -0.5), mass=m3,
    inertia=(2, 3, 4, 0.1, -0.2, 0.3),
)
robot.link("slider", reach, on=boom, axis="-z", mass=m3 / 2, centre=(0.1, 0, 0))
robot.link("hook", on=boom, at=(0, l, 0), mass=0.3)
robot.apply(x, push - 2 * tanh(3 * x.rate))
robot.apply(height - reach, push * sin(tilt))
robot.dc_motor(swing, volts, resistance=2, torque_constant=0.1, gear=20, rotor_inertia=rotor)
robot.spring(reach - swing, k, rest=0.2)
robot.spring(height, 100)
robot.damp(swing, d)
robot.task(
    state_cost=x**2 + sin(tilt / 2) ** 2, action_cost=LogCos(1), start={}, horizon=5, weight_at_horizon=0.5,
    control_rate=100,
)
"""


@pytest.fixture(scope="module")
def crane(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Robot]:
    """A tree with every kind of joint, a motor, springs and friction, one text of its file replaced by another."""
    path = tmp_path_factory.mktemp("models") / "crane.py"

    def write(before: str = "", after: str = "") -> Any:
        assert before in CRANE
        path.write_text(CRANE.replace(before, after))
        return load(str(path))

    return write


@pytest.fixture(scope="module")
def derived(crane: Callable[..., Robot]) -> Derived:
    """The crane: the robot, its equations, and its program evaluated node by node."""
    return uncompiled(crane())


def uncompiled(robot: Robot) -> Derived:
    equations = equations_of_motion(robot)
    nominal = [constant.value for constant in robot.parameters if not constant.fixed]
    return robot, equations, Uncompiled(equations, nominal)


def compared(engine: str, derived: Derived, described: Robot | None = None) -> list[Check]:
    """The checks of a robot against an engine made from `described`, by default from the robot itself."""
    robot, _, kernels = derived
    rebuilt = builder(engine, described or robot)
    return compare(*derived, rebuilt(kernels.nominal_parameters), rebuilt)


@pytest.mark.parametrize("engine", ["mujoco", "pinocchio"])
def test_a_tree_agrees_with_an_engine_made_from_its_links(engine: str, derived: Derived) -> None:
    pytest.importorskip(engine)
    checks = compared(engine, derived)
    assert checks[-1].what == "derivative of the acceleration by theta"
    assert all(check.passed for check in checks), checks


def test_seven_joint_arm_agrees_with_both_engines() -> None:
    derived = uncompiled(load(str(SHIPPED / "large" / "arm7.py")))
    for engine in engines.ENGINES:
        pytest.importorskip(engine)
        checks = compared(engine, derived)
        assert len(checks) == 5
        assert all(check.passed for check in checks), checks


@pytest.mark.parametrize(
    ("engine", "before", "after", "failing"),
    [
        ("mujoco", "(0.1, 0.05, 0.2)", "(0.1001, 0.05, 0.2)", {"mass matrix", "acceleration"}),
        ("pinocchio", "0.1, -0.2, 0.3)", "0.1, 0.2, 0.3)", {"mass matrix", "acceleration"}),
        ("mujoco", "robot.gravity(1.62)", "robot.gravity(1.6201)", {"acceleration"}),
        ("pinocchio", "robot.damp(swing, d)", "robot.damp(swing, d * 1.0001)", {"acceleration"}),
        ("mujoco", "rotor_inertia=rotor", "rotor_inertia=2 * rotor", {"mass matrix", "acceleration"}),
        ("pinocchio", "mass=0.3)", "mass=0.3 * m1 / 2)", {"derivative of the acceleration by theta"}),
    ],
)
def test_a_difference_between_two_trees_is_found(
    engine: str, crane: Callable[..., Robot], derived: Derived, before: str, after: str, failing: set[str]
) -> None:
    pytest.importorskip(engine)
    checks = compared(engine, derived, crane(before, after))
    assert failing <= {check.what for check in checks if not check.passed}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("robot.gravity(1.62)", "robot.gravity(1.62)\nrobot.kinetic_energy(x.rate * tilt.rate)"),
        ("robot.gravity(1.62)", "robot.gravity(1.62)\nrobot.kinetic_energy(sin(x) ** 2 * tilt.rate**2)"),
        ("robot.gravity(1.62)", "robot.gravity(1.62)\nrobot.kinetic_energy(x * tilt.rate)"),
    ],
)
def test_energies_that_an_engine_cannot_represent_are_refused(
    crane: Callable[..., Robot], before: str, after: str
) -> None:
    with pytest.raises(ModelError, match="`crane`"):
        Expressions(crane(before, after))


@pytest.mark.parametrize("line", ["robot.apply(arm, robot.lag(torque, seconds=0.1))", "robot.accelerate(arm, torque)"])
def test_what_no_engine_knows_is_refused(line: str, tmp_path: Path) -> None:
    """A state of first order and a commanded acceleration are not compared as if they were not there."""
    pytest.importorskip("mujoco")
    unit = "rad/s^2" if "accelerate" in line else "N m"
    text = (
        "from modelgen import Quadratic, Robot\nrobot = Robot('slow')\n"
        "arm = robot.revolute('arm', limit=1, rate_limit=2)\n"
        f"torque = robot.input('torque', 1, '{unit}')\nlink = robot.link('link', arm, mass=1, inertia=0.1)\n{line}\n"
        "robot.task(state_cost=arm**2 + arm.rate**2, action_cost=Quadratic(1), start={}, horizon=5,\n"
        "           weight_at_horizon=0.65, control_rate=125)\n"
    )
    (tmp_path / "slow.py").write_text(text)
    with pytest.raises(ModelError, match=r"slow.py:\d: .* knows neither"):
        compared("mujoco", uncompiled(load(str(tmp_path / "slow.py"))))


def test_moments_that_mujoco_refuses_are_reported(crane: Callable[..., Robot], derived: Derived) -> None:
    """No solid body has such moments of inertia, but a model file may."""
    pytest.importorskip("mujoco")
    with pytest.raises(ModelError, match=r"`crane`: .* against pinocchio"):
        compared("mujoco", derived, crane("(0.3, 0.2, 0.25)", "(0.3, 0.2, 2.5)"))
