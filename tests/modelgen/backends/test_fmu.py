"""Robots as FMUs: without a complaint of FMPy, and beside the kernels and our own integrator."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import modelgen
from modelgen import builder
from modelgen.arrays import runge_kutta_step
from modelgen.artifact import folder as artifact
from modelgen.backends.fmu.archive import Unit, Variable, model_description
from modelgen.cli import main
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from tests.modelgen.backends.test_c import COMPILER, STRICT
from tests.modelgen.support.fmus import Instance, complaints

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
VERSIONS = {2: "fmu2", 3: "fmu"}


def exported(name: str, version: int, folder: Path) -> Path:
    """The FMU of a shipped robot."""
    path = folder / f"{name}{version}.fmu"
    (content,) = builder.export(load(str(SHIPPED / f"{name}.py")), VERSIONS[version]).values()
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module", params=VERSIONS)
def cartpole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported("cartpole", request.param, tmp_path_factory.mktemp("fmu"))


@pytest.mark.parametrize(
    ("unit", "base"),
    [
        ("rad/s", {"s": "-1", "rad": "1"}),
        ("N m/rad", {"kg": "1", "m": "2", "s": "-2", "rad": "-1"}),
        ("V s/rad^2", {"kg": "1", "m": "2", "s": "-2", "A": "-1", "rad": "-2"}),
        ("1/(rad² s)", {"s": "-1", "rad": "-2"}),
    ],
)
def test_units_hold_every_angle(unit: str, base: dict[str, str]) -> None:
    """FMI counts angles, so that a stiffness in N m/rad is no torque."""
    made = Unit("u", "u", "", [Variable("k", unit, "", "parameter", "tunable", 1.0)], 0.1, 1.0, True)
    root = ElementTree.fromstring(model_description(made, 3, ""))
    assert {each.get("name"): each[0].attrib for each in root.iter("Unit")}[unit] == base


def random_point(robot: CompiledRobot) -> dict[str, float]:
    """States, inputs and parameters by name."""
    random = np.random.default_rng(2)
    values: dict[str, float] = {}
    for names, scale, middle in (
        (robot.state_names, robot.state_limits, 0.0),
        (robot.input_names, robot.input_limits, 0.0),
        (robot.parameter_names, 0.1 * robot.nominal_parameters, robot.nominal_parameters),
    ):
        drawn = np.broadcast_to(middle + random.uniform(-1, 1, len(names)) * scale, len(names))
        values.update(zip(names, map(float, drawn), strict=True))
    return values


@pytest.mark.parametrize(("name", "version"), [("planar_quadrotor", 3), ("cartpole_quanser", 2)])
@pytest.mark.slow
def test_the_validator_has_no_complaint(name: str, version: int, tmp_path: Path) -> None:
    assert complaints(exported(name, version, tmp_path)) == []


@pytest.mark.slow
def test_derivatives_for_model_exchange(cartpole: Path, tmp_path: Path) -> None:
    """xdot beside the llvm kernel, and its derivatives by states, inputs and parameters beside differences."""
    robot = modelgen.load("cartpole", directory=artifact.SHIPPED)
    at, names = random_point(robot), robot.state_names
    instance = Instance(cartpole, "ModelExchange", tmp_path, **at)
    rates = [f"der({name})" for name in names]

    def xdot(values: dict[str, float]) -> np.ndarray[Any, Any]:
        x, u, theta = (np.array([values[n] for n in of]) for of in (names, robot.input_names, robot.parameter_names))
        return np.asarray(robot.dynamics(x, u, theta))

    np.testing.assert_allclose(instance.get(*rates), xdot(at), rtol=1e-12, atol=1e-12)
    unknowns = [instance.references[name] for name in rates]
    for name, value in at.items():
        step = 1e-6 * max(1.0, abs(value))
        expected = (xdot(at | {name: value + step}) - xdot(at | {name: value - step})) / (2 * step)
        found = instance.fmu.getDirectionalDerivative(unknowns, [instance.references[name]], [1.0])
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    time = len(instance.references) - ("time" in instance.references)
    assert not any(instance.fmu.getDirectionalDerivative(unknowns, [time], [1.0]))
    instance.close()


@pytest.mark.parametrize("periods", [1, 2.5])
@pytest.mark.slow
def test_co_simulation_is_our_integration(cartpole: Path, periods: float, tmp_path: Path) -> None:
    """Steps of a control period, and longer ones that the FMU divides; a mass that is not nominal."""
    robot = modelgen.load("cartpole", directory=artifact.SHIPPED)
    task, theta = robot.metadata.task, np.array(robot.nominal_parameters)
    theta[0] *= 1.2
    x = np.array([[0.1, 2.0, 0.3, -1.0]])
    start = dict(zip(robot.state_names, x[0], strict=True)) | {robot.parameter_names[0]: theta[0]}
    instance = Instance(cartpole, "CoSimulation", tmp_path, **start)
    seconds = periods / task.control_rate
    count = int(np.ceil(periods * task.integration_steps))
    for k in range(40):
        u = np.array([[3.0 * np.sin(k)]])
        instance.set(force=u[0, 0])
        instance.step(k * seconds, seconds)
        rate = partial(lambda at, _, u: robot.dynamics(at, u, theta), u=u)
        for _ in range(count):
            x = runge_kutta_step(rate, x, 0.0, seconds / count)
        np.testing.assert_allclose(instance.get(*robot.state_names), x[0], rtol=1e-11, atol=1e-11)
    instance.close()


@pytest.mark.slow
def test_co_simulation_takes_steps_of_the_length_that_the_build_chose(tmp_path: Path) -> None:
    task = modelgen.load("furuta", directory=artifact.SHIPPED).metadata.task
    assert task.integration_steps == 2
    with zipfile.ZipFile(exported("furuta", 3, tmp_path)) as content:
        source = content.read("sources/furuta_fmu.c").decode()
    (longest,) = re.findall(r"double longest = (\S+);", source)
    assert float(longest) == pytest.approx(1 / task.control_rate / 8)  # which the bounds of its parameters need


@pytest.mark.slow
def test_a_quaternion_keeps_its_length(tmp_path: Path) -> None:
    """Steps of Runge-Kutta shrink it: by 5e-5 in these 100 s at 5 rad/s."""
    instance = Instance(exported("satellite", 3, tmp_path), "CoSimulation", tmp_path, attitude_turn_x_rate=5.0)
    for k in range(1000):
        instance.step(0.1 * k, 0.1)
    q = np.array(instance.get(*(f"attitude_q{axis}" for axis in "wxyz")))
    instance.close()
    assert abs(np.linalg.norm(q) - 1.0) < 1e-12


@pytest.mark.slow
def test_fmpy_simulates_both_kinds_alike(cartpole: Path) -> None:
    fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
    start = {"pole": 1.0, "pole_rate": 0.5}
    ends = [
        fmpy.simulate_fmu(str(cartpole), fmi_type=kind, start_values=start, stop_time=0.4, relative_tolerance=1e-10)[-1]
        for kind in ("ModelExchange", "CoSimulation")
    ]
    np.testing.assert_allclose(list(ends[0]), list(ends[1]), rtol=1e-5)


@pytest.mark.slow
def test_a_stored_state_is_restored(cartpole: Path, tmp_path: Path) -> None:
    instance = Instance(cartpole, "CoSimulation", tmp_path, pole=1.0)
    instance.step(0.0, 0.1)
    fmu, two = instance.fmu, instance.two
    state = fmu.getFMUState() if not two else fmu.getFMUstate()
    instance.step(0.1, 0.1)
    expected = instance.get("pole", "time")
    (fmu.setFMUstate if two else fmu.setFMUState)(state)
    instance.step(0.1, 0.1)
    assert (instance.get("pole", "time") == expected).all()
    (fmu.freeFMUstate if two else fmu.freeFMUState)(state)
    instance.close()


@pytest.mark.slow
def test_parameters_out_of_their_bounds_and_steps_back_in_time_are_refused(cartpole: Path, tmp_path: Path) -> None:
    instance = Instance(cartpole, "CoSimulation", tmp_path, pole_mass=0.1905)  # the upper bound
    for mass in (-1.0, 0.191, float("nan")):
        with pytest.raises(Exception, match="Set"):
            instance.set(pole_mass=mass)
    with pytest.raises(Exception, match="DoStep"):
        instance.step(0.0, -0.1)
    assert instance.get("pole_mass", "time").tolist() == [0.1905, 0.0]
    instance.close()


@pytest.mark.slow
def test_sources_compile_without_a_warning_and_by_fmpy(cartpole: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(cartpole) as file:
        file.extractall(tmp_path)
    sources = sorted((tmp_path / "sources").glob("*.c"))
    assert len(sources) == 3
    for source in sources:
        subprocess.run([str(COMPILER), *STRICT, "-DCARTPOLE_REAL=double", "-c", source], cwd=tmp_path, check=True)
    build = pytest.importorskip("fmpy.build", reason="FMPy is not installed")
    (library,) = (tmp_path / "binaries").glob("*/*")
    library.unlink()
    build.build_platform_binary(tmp_path)
    assert library.is_file()


@pytest.mark.slow
def test_a_robot_without_parameters(tmp_path: Path) -> None:
    text = (
        "from sympy import sin\nfrom modelgen import Quadratic, Robot\nrobot = Robot('rod')\n"
        "a = robot.revolute('a', continuous=True, rate_limit=8)\nT = robot.input('T', 2.5, 'N m')\n"
        "robot.kinetic_energy(a.rate**2 / 2)\nrobot.apply(a, T + sin(a))\n"
        "robot.task(state_cost=sin(a / 2) ** 2 + a.rate**2, action_cost=Quadratic(0.5), start={}, horizon=5,\n"
        "           weight_at_horizon=0.65, control_rate=125)\n"
    )
    (tmp_path / "rod.py").write_text(text)
    assert main(["export", str(tmp_path / "rod.py"), "--fmu", str(tmp_path)]) == 0
    assert complaints(tmp_path / "rod.fmu") == []
    instance = Instance(tmp_path / "rod.fmu", "ModelExchange", tmp_path / "rod", a=0.5, T=1.0)
    np.testing.assert_allclose(instance.get("der(a_rate)"), [1.0 + np.sin(0.5)], rtol=1e-14)
    instance.close()


@pytest.mark.slow
def test_twice_gives_the_same_bytes() -> None:
    robot = load(str(SHIPPED / "pendulum.py"))
    assert builder.export(robot, "fmu") == builder.export(robot, "fmu")


def test_without_a_compiler_the_export_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ModelError, match=r"no C compiler here\. Install gcc or clang"):
        builder.export(load(str(SHIPPED / "pendulum.py")), "fmu")


@pytest.mark.slow
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "pendulum", "--fmu", str(tmp_path), "--fmi", "2"]) == 0
    assert complaints(tmp_path / "pendulum.fmu") == []
    assert main(["export", "pendulum", "--c", str(tmp_path), "--fmi", "2"]) == 2
    assert "give --fmu DIR too" in capsys.readouterr().err
