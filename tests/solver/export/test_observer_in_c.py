"""The observer in C: compiled without a warning, and beside Torch's."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sympy import cos, sin

import modelgen
import solver
from modelgen import Quadratic, Robot
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.export.c_export import emit_observer
from solver.export.c_folder import kernels, listed
from solver.observer import Observer
from solver.observer.observability import make_observer
from solver.observer.rest import shift
from solver.plants.harsh import Harsh, Harshness
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.robots import load_robot
from tests.solver.export.test_c_export import COMPILER, STRICT, needs_compiler
from tests.solver.references import lean

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]
PERIODS = 60
MISSING = (20, 41)  # of them


def compiled(
    problem: Problem, folder: Path, delay: str, real: str, usual: str = "", estimate: Sequence[str] = ()
) -> Path:
    """The observer's driver. delay: as DELAY=1 or LONGEST_DELAY=3. usual: other variances of what is measured, in C; of
    all states where rates are measured."""
    name = problem.robot.name
    for file, content in kernels(problem, observer=True).items():
        (folder / file).write_bytes(content)
    for file, text in emit_observer(problem, estimate).items():
        text = re.sub(r"(usual\[MEASURED\] = \{).*?\}", rf"\g<1>{usual}}}", text) if usual else text
        (folder / file).write_text(text)
    sources = [str(folder / f"{name}{end}.c") for end in ("", "_observer", "_observer_driver")]
    defined = [f"-D{name.upper()}_{delay}", f"-D{name.upper()}_REAL={real}"]
    defined += [f"-D{name.upper()}_RATES"] if len(usual.split(",")) == problem.geometry.size else []
    driver = folder / f"driver_{real}"
    subprocess.run([str(COMPILER), *STRICT, *defined, *sources, "-lm", "-o", str(driver)], check=True)
    return driver


def estimates(driver: Path, rows: list[list[float]]) -> np.ndarray[Any, Any]:
    """States, disturbances, parameters, the innovation and the likeliest filter, a row a period."""
    lines = "\n".join(" ".join(map(repr, row)) for row in rows)
    found = subprocess.run([driver], input=lines, capture_output=True, text=True, check=True)
    return np.array([line.split() for line in found.stdout.splitlines()], float)


def wheel(name: str) -> Robot:
    """A wheel on a line whose place follows from its angle, which is left out of the state of `hidden_wheel`."""
    robot, hidden = Robot(name), name == "hidden_wheel"
    place = robot.prismatic("place", limit=2)
    turn = robot.revolute("turn", rate_limit=30, **{"continuous": True} if hidden else {"limit": 60})
    robot.roll({place: 0.05 * turn.rate})
    robot.body(robot.parameter("mass", 1, "kg", tolerance=0.2), 0.001, (place, 0.05), turn)
    robot.apply(turn, robot.input("torque", 1, "N m"))
    if hidden:
        robot.ignore(turn)
    robot.task(
        state_cost=place**2 + 0.01 * turn.rate**2 + (0 if hidden else 0.01 * turn**2),
        action_cost=Quadratic(1.0),
        start=dict(place=(0.5, 0.1)),
        horizon=4,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return robot


@needs_compiler
@pytest.mark.parametrize(
    ("name", "delay", "longest", "rates"),
    [
        ("pendulum", 0, None, False),
        ("furuta", 2, None, True),
        ("furuta", 2, 3, False),
        ("planar_quadrotor", 1, 2, False),
        ("satellite", 2, None, False),
        ("quadrotor", 0, None, True),
        ("unicycle", 1, None, True),
        ("wheel", 0, None, True),
        ("hidden_wheel", 0, None, True),
    ],
)
def test_the_c_observer_is_torchs(
    name: str,
    delay: int,
    longest: int | None,
    rates: bool,
    load: Load,
    built_unseen: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """Whose covariance is a matrix of double precision, where the C source has its factors. Rates are measured where
    there is noise and no encoder. Rotations of any attitude stay on the sphere; a unicycle rolls, and a wheel by the
    rate of its own angle, which is not that of its place. Two measurements have no first entry."""
    if "wheel" in name:
        robot = modelgen.compile(wheel(name), dtype="float32")
    else:
        robot = load_robot(name, "cpu", str(built_unseen(name))) if name == "unicycle" else load(name)
    problem = Problem(robot)
    plant = Harsh(problem, Harshness(noise=1.0, delay=delay) if rates else Harshness(encoder=1.0, delay=delay))
    usual = listed((plant.sensing.deviation.double() ** 2).tolist()) if rates else ""
    delays = f"DELAY={delay}" if longest is None else f"LONGEST_DELAY={longest}"
    drivers = [compiled(problem, tmp_path, delays, real, usual) for real in ("float", "double")]
    generator = torch.Generator().manual_seed(6)
    motion = plant.begin(problem.confine(0.5 * problem.sample_domain(1, generator)))
    observer = make_observer(problem, plant.sensing, longest)
    rows, expected = [], []
    for period in range(PERIODS):
        y = motion.measured[:, : plant.sensing.entries].clone()
        if period in MISSING:
            y[0, 0] = math.nan
        x = observer.estimate(y)[0].tolist()
        limits, u = problem.input_limits, problem.input_middle + 0.1 * problem.input_limits
        disturbance = ((u - observer.compensate(u[None])[0]) / limits).tolist()
        found = 0 if longest is None else int(observer.delay[0])  # type: ignore[index]
        expected.append([*x, *disturbance, float(observer.normalised_innovation[0]), found])
        u = problem.input_middle + 0.3 * problem.input_limits * (
            2.0 * torch.rand(1, len(problem.input_limits), generator=generator) - 1.0
        )
        rows.append([*y[0].tolist(), *u[0].tolist()])
        observer.sent(u)
        motion.step(u)
    for driver in drivers:
        require_same(estimates(driver, rows), expected, problem, delay, longest)


def require_same(
    table: np.ndarray[Any, Any], expected: list[list[float]], problem: Problem, delay: int, longest: int | None
) -> None:
    """The estimates in C are those expected, to the digits of float32."""
    n = len(problem.target)
    same = table[:, -1] == np.array(expected)[:, -1]  # at the first periods no delay is likelier than another
    assert same[10:].all()
    assert table[-1, -1] == (0 if longest is None else delay)
    table, expected = table[same], [row for row, each in zip(expected, same, strict=True) if each]
    m = len(problem.input_limits)
    states, disturbances, parameters, innovations = np.split(table[:, :-1], [n, n + m, -1], axis=1)
    np.testing.assert_allclose(parameters, np.tile(problem.theta.double(), (len(parameters), 1)), rtol=1e-6)
    error = problem.geometry.error(torch.from_numpy(states), torch.tensor(expected)[:, :n])
    torch.testing.assert_close(error / problem.tangent_limits, torch.zeros_like(error), rtol=0.0, atol=2e-4)
    for rotation in problem.geometry.rotations:
        np.testing.assert_allclose(np.linalg.norm(states[:, rotation.quaternion], axis=1), 1.0, atol=1e-6)
    shares = disturbances / problem.input_limits.numpy()
    np.testing.assert_allclose(shares, np.array(expected)[:, n:-2], atol=2e-4)
    assert np.abs(shares).max() > 1e-3
    np.testing.assert_allclose(innovations[:, 0], np.array(expected)[:, -2], rtol=0.02, atol=0.02)
    assert innovations.max() > 0.1


@needs_compiler
def test_the_c_observer_estimates_the_parameters_of_torchs(load: Load, tmp_path: Path) -> None:
    """Of a robot whose first parameter is wrong, and the input that it compensates."""
    problem = Problem(load("planar_quadrotor"))
    theta = problem.theta.clone()
    theta[0] *= 1.2
    plant = Harsh(problem, Harshness(encoder=1.0, delay=1), theta)
    driver = compiled(problem, tmp_path, "DELAY=1", "double", estimate=["all"])
    motion, observer = plant.begin(problem.target[None] + 0.1), make_observer(problem, plant.sensing, None, ["all"])
    rows, expected, generator = [], [], torch.Generator().manual_seed(3)
    for _ in range(PERIODS):
        y = motion.measured[:, : len(plant.sensing.deviation)]
        x = observer.estimate(y)
        assert isinstance(observer, Observer)
        assert observer.parameters is not None
        expected.append(torch.cat([x, observer.disturbance, observer.parameters], 1)[0].tolist())
        u = problem.input_of(0.3 * (2.0 * torch.rand(1, len(problem.input_limits), generator=generator) - 1.0))
        rows.append([*y[0].tolist(), *u[0].tolist()])
        observer.sent(u)
        motion.step(u)
    scale = torch.cat([problem.state_limits, problem.input_limits, problem.theta.abs()]).numpy()
    found = estimates(driver, rows)[:, : len(scale)] / scale
    np.testing.assert_allclose(found, np.array(expected) / scale, atol=1e-3)
    assert np.abs(found[-1, -len(theta) :] - 1.0).max() > 0.01


COMPENSATE = """#include <stdio.h>
#include "NAME_observer.h"
int main(void) {
    NAME_observer o;
    NAME_real u[WIDTH];
    double value;
    NAME_observer_reset(&o);
    for (o.measured = 2;; printf("\\n")) {
        for (int i = 0; i < FOUND + WIDTH; i++) {
            if (scanf("%lf", &value) != 1) return 0;
            *(i < FOUND ? &o.filters[0].parameters[i] : &u[i - FOUND]) = (NAME_real)value;
        }
        NAME_observer_compensate(&o, u);
        for (int k = 0; k < WIDTH; k++) printf("%.17g ", (double)u[k]);
    }
}
"""


def compensated(problem: Problem, folder: Path, real: str, estimate: str, theta: torch.Tensor) -> torch.Tensor:
    """The inputs (N, m) of the observer in C that has found theta (N, p), for those in the middle of their ranges."""
    name, middle = problem.robot.name, problem.input_middle.expand(len(theta), -1)
    compiled(problem, folder, "DELAY=0", real, estimate=[estimate])
    sizes = [f"-DWIDTH={middle.shape[1]}", f"-DFOUND={theta.shape[1]}", f"-D{name.upper()}_REAL={real}"]
    (folder / "compensate.c").write_text(COMPENSATE.replace("NAME", name))
    sources = [str(folder / f"{each}.c") for each in (name, f"{name}_observer", "compensate")]
    subprocess.run([str(COMPILER), *STRICT, *sizes, *sources, "-lm", "-o", str(folder / "compensate")], check=True)
    return torch.from_numpy(estimates(folder / "compensate", torch.cat([theta, middle], 1).tolist()))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "low", "high", "real"), [("quadrotor", 0.45, 0.55, "float"), ("lean", 0.9, 1.1, "double")]
)
def test_the_policy_of_a_family_is_told_no_more_than_its_ranges(
    name: str, low: float, high: float, real: str, load: Load, tmp_path: Path
) -> None:
    """What an estimate beyond them changes at the target shifts the input, from the trim of the end of the range."""
    robot = lean() if name == "lean" else load(name)
    references = tuple(Given(each, -0.2, 0.2) for each in robot.metadata.references)
    problem = Problem(robot, given=(Given("mass", low, high), *references))
    assert problem.moving_trim
    theta = problem.theta.repeat(4, 1)
    theta[:, robot.parameter_names.index("mass")] = torch.tensor([0.95 * low, low, high, 1.05 * high])
    theta[:, [robot.parameter_names.index(each.name) for each in references]] = 0.1
    expected = torch.clamp(problem.input_middle - shift(problem, theta), problem.lower_input, problem.upper_input)
    found = compensated(problem, tmp_path, real, "mass", theta)
    torch.testing.assert_close(found.float(), expected, rtol=0.0, atol=1e-4 * float(problem.input_limits.max()))
    moved = (expected - problem.input_middle).abs().amax(1) / problem.input_limits.max()
    assert moved[0] > 1e-3
    assert moved[3] > 1e-3
    assert moved[1:3].max() < 1e-5


@needs_compiler
@pytest.mark.parametrize("real", ["float", "double"])
def test_inputs_with_one_effect_do_not_work_against_each_other(real: str, tmp_path: Path) -> None:
    """Three winches of a hoist with another mass share its weight as in Torch's observer."""
    robot = Robot("hoist")
    height = robot.prismatic("height", limit=1, rate_limit=2)
    mass = robot.parameter("mass", 1.3, "kg", bounds=(0.8, 2.0))
    robot.point_mass(mass, (height, 0))
    shares = (0.83, 0.71, 0.29)
    winches = [robot.input(f"winch_{k}", 60 * (k + 1), "N") for k in range(3)]
    robot.apply(height, sum(share * winch for share, winch in zip(shares, winches, strict=True)) - 9.81 * mass)
    robot.task(
        state_cost=height**2 + height.rate**2,
        action_cost=Quadratic(0.1),
        start=dict(height=(0.5, 0.1)),
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    theta = torch.linspace(0.8, 2.0, 40)[:, None]
    found = compensated(problem, tmp_path, real, "mass", theta)
    expected, gain = -shift(problem, theta).double(), torch.tensor(shares).double()
    torch.testing.assert_close(found @ gain, expected @ gain, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@needs_compiler
def test_ten_seconds_at_an_unstable_target_in_float(load: Load, tmp_path: Path) -> None:
    """Near to double, with positions that are nearly exact: their variance is a millionth of the usual one."""
    problem = Problem(load("furuta"))
    drivers = [compiled(problem, tmp_path, "DELAY=1", real, usual="1e-12, 1e-12") for real in ("float", "double")]
    periods = round(10.0 / problem.control_step)
    wave = 0.2 * np.sin(2.0 * np.pi * problem.control_step * np.arange(periods))
    rows = [[0.3 * angle, angle, 0.5 * angle] for angle in wave.tolist()]
    single, double = (estimates(driver, rows)[:, :4] / problem.state_limits.numpy() for driver in drivers)
    assert np.abs(double[10:]).max() > 0.01
    np.testing.assert_allclose(single, double, atol=1e-3)


def test_export_writes_it_on_request(finished_run: Path, tmp_path: Path) -> None:
    for words, count in (([], 8), (["--observer"], 11)):
        assert main(["export", str(finished_run), "--c", str(tmp_path / str(count)), *words]) == 0
        assert len(list((tmp_path / str(count)).iterdir())) == count


def test_a_force_that_moves_the_pose_at_rest_is_refused() -> None:
    """Wind across the load of a crane: no input of the trolley balances it, so the rope leans."""
    robot = Robot("crane")
    trolley = robot.prismatic("trolley", limit=1, rate_limit=2)
    rope = robot.revolute("rope", limit=1, rate_limit=3)
    wind = robot.parameter("wind", 0, "N", bounds=(-2, 2))
    robot.point_mass(2, (trolley, 0))
    robot.point_mass(1, (trolley + sin(rope), -cos(rope)))
    robot.apply(trolley, robot.input("drive", 10, "N"))
    robot.apply(trolley + sin(rope), wind)
    robot.damp(rope, 0.1)
    robot.draw(line=[(trolley, 0), (trolley + sin(rope), -cos(rope))])
    cost = trolley**2 + rope**2 + trolley.rate**2 + rope.rate**2
    robot.task(
        state_cost=cost,
        action_cost=Quadratic(0.1),
        start=dict(trolley=(0.5, 0.1)),
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    with pytest.raises(SolverError, match="estimate wind: no input balances it at the target"):
        emit_observer(Problem(modelgen.compile(robot, dtype="float32")), ["wind"])


def test_one_name_is_a_list_of_one(tmp_path: Path) -> None:
    one, listed = (
        solver.load("pendulum-rfvi").export(tmp_path / name, "c", observer=True, estimate=estimate)
        for name, estimate in (("one", "mass"), ("listed", ["mass"]))
    )
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in listed]
