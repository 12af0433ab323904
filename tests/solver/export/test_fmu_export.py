"""Controllers as FMUs: the closed loop of two FMUs beside our own simulation."""

from __future__ import annotations

import ctypes
import subprocess
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
import solver
from modelgen.arrays import runge_kutta_step
from modelgen.cli import main as modelgen_main
from solver.cli import main
from solver.plants.outcome import rollouts
from solver.training.solution import load_solution
from tests.modelgen.backends.test_c import COMPILER, STRICT
from tests.modelgen.support.fmus import Instance, complaints

Array = np.ndarray[Any, Any]
Act = Callable[[Array], Array]
Exported = Callable[..., tuple[Path, Path]]

pytestmark = [pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"), pytest.mark.slow]
RUN, ROBOT, PERIODS = "cartpole-rfvi", "cartpole", 250
START = np.array([0.05, 2.9, 0.1, 0.2])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """exported(version, words): the FMUs of the robot and of the controller, made once."""

    @cache
    def of(version: int, *words: str) -> tuple[Path, Path]:
        folder, fmi = tmp_path_factory.mktemp("fmus"), ["--fmi", str(version)]
        assert modelgen_main(["export", ROBOT, "--fmu", str(folder), *fmi]) == 0
        assert main(["export", RUN, "--fmu", str(folder / "controller.fmu"), *fmi, *words]) == 0
        return folder / f"{ROBOT}.fmu", folder / "controller.fmu"

    return of


def closed_loop(robot: Path, controller: Path, folder: Path, shares: int = 1) -> tuple[Array, Array]:
    """States (k + 1, n) and inputs (k, m) of both FMUs under a master that connects outputs to inputs.

    shares: communication steps in a control period.
    """
    names = modelgen.load(ROBOT).state_names
    plant = Instance(robot, "CoSimulation", folder / "plant", **dict(zip(names, START, strict=True)))
    control = Instance(controller, "CoSimulation", folder / "control")
    sensed = [name for name in names if name in control.references]
    seconds = 1.0 / modelgen.load(ROBOT).metadata.task.control_rate / shares
    states, inputs, time = [plant.get(*names)], [], 0.0
    for k in range(PERIODS * shares):
        control.set(**dict(zip(sensed, plant.get(*sensed), strict=True)))
        (force,) = control.get("force")
        plant.set(force=force)
        control.step(time, seconds)
        plant.step(time, seconds)
        time += seconds
        if (k + 1) % shares == 0:
            states.append(plant.get(*names))
            inputs.append(np.array([force]))
    plant.close()
    control.close()
    return np.array(states), np.array(inputs)


def simulated(act: Act, shares: int = 1) -> tuple[Array, Array]:
    """The same by our kernels and our integrator, with at least `shares` steps in a control period."""
    robot = modelgen.load(ROBOT)
    task = robot.metadata.task
    x, states, inputs = START[None], [START], []

    def rate(u: Array, at: Array, _: float) -> Array:
        return np.asarray(robot.dynamics(at, u))

    for _ in range(PERIODS):
        u = act(x[0])
        steps = max(shares, task.integration_steps)
        for _ in range(steps):
            seconds = 1.0 / task.control_rate / steps
            x = runge_kutta_step(partial(rate, u[None]), x, 0.0, seconds)
        states.append(x[0])
        inputs.append(u)
    return np.array(states), np.array(inputs)


def policy_in_c(folder: Path) -> Act:
    """The exported C policy in double, called by ctypes."""
    assert main(["export", RUN, "--c", str(folder)]) == 0
    command = [str(COMPILER), "-std=c99", "-O2", "-shared", "-fPIC", f"{ROBOT}.c", f"{ROBOT}_policy.c", "-lm"]
    subprocess.run([*command, "-o", "policy.so"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "policy.so")).cartpole_policy
    numbers = ctypes.POINTER(ctypes.c_double)

    def act(x: Array) -> Array:
        x, u = np.ascontiguousarray(x), np.zeros(1)
        function(x.ctypes.data_as(numbers), u.ctypes.data_as(numbers))
        return u

    return act


def test_the_validator_has_no_complaint(exported: Exported) -> None:
    """`test_families.py` asks it about FMI 2 with an observer, and about FMI 3 without."""
    assert complaints(exported(3, "--observer")[1]) == []


@pytest.mark.parametrize(("version", "shares"), [(2, 1), (3, 4)])
def test_closed_loop_of_two_fmus_is_our_simulation(
    version: int, shares: int, exported: Exported, tmp_path: Path
) -> None:
    """Also with four communication steps in a control period, in which the controller holds its input."""
    states, inputs = closed_loop(*exported(version), tmp_path, shares)
    expected, acted = simulated(policy_in_c(tmp_path), shares)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(inputs, acted, rtol=0, atol=1e-9)


def test_closed_loop_beside_rollouts_in_torch(exported: Exported, tmp_path: Path) -> None:
    """The same start on the nominal plant, whose networks are in float32: half a second, before rounding has grown."""
    states, _ = closed_loop(*exported(3), tmp_path)
    solution = load_solution(RUN)
    found = rollouts(
        solution.problem, solution.controller(), torch.tensor(START[None], dtype=torch.float32), seconds=0.5
    )
    expected = found.x[:, 0].numpy()
    difference = states[: len(expected)] - expected
    difference[:, 1] = np.angle(np.exp(1j * difference[:, 1]))  # ours turns
    np.testing.assert_allclose(difference, 0.0, atol=2e-3)


def test_closed_loop_with_the_observer_beside_ours(exported: Exported, tmp_path: Path) -> None:
    states, inputs = closed_loop(*exported(3, "--observer"), tmp_path)
    observed = solver.load_controller(RUN)
    expected, acted = simulated(lambda x: np.asarray(observed(x[:2]), float))
    half = PERIODS // 4
    np.testing.assert_allclose(states[:half], expected[:half], atol=2e-2)
    np.testing.assert_allclose(inputs[:10], acted[:10], atol=2e-2)


def test_a_repeated_question_within_a_period_does_not_move_the_observer(exported: Exported, tmp_path: Path) -> None:
    """A master may set and get several times; only a step lets time pass."""
    controller = exported(3, "--observer")[1]
    once, often = (Instance(controller, "CoSimulation", tmp_path / name) for name in ("once", "often"))
    for k in range(20):
        y = {"cart": 0.01 * k, "pole": 0.3 + 0.02 * k}
        for _ in range(3):
            often.set(cart=0.5, pole=y["pole"])
            often.get("force")
        for instance in (once, often):
            instance.set(**y)
        assert once.get("force") == often.get("force")
        for instance in (once, often):
            instance.step(0.008 * k, 0.008)
    once.close()
    often.close()


def test_in_domain_is_a_watchdog(exported: Exported, tmp_path: Path) -> None:
    instance = Instance(exported(3)[1], "CoSimulation", tmp_path / "one")
    for value, expected in ((0.1, 1.0), (100.0, 0.0), (float("nan"), 0.0)):
        instance.set(cart=value)
        assert instance.get("in_domain") == expected
    assert instance.get("force") == 0.0  # of no number
    for nothing in (instance.references["time"], 1000):  # beyond what can be set
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            instance.fmu.setFloat64([nothing], [5.0])
    instance.close()


def test_sources_compile_without_a_warning(exported: Exported, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported(3, "--observer")[1]) as file:
        file.extractall(tmp_path / "fmu")
    for source in (tmp_path / "fmu" / "sources").glob("*.c"):
        subprocess.run([str(COMPILER), *STRICT, "-DCARTPOLE_REAL=double", "-c", source], cwd=tmp_path, check=True)


def test_run_exports_the_same_fmu_as_the_command(exported: Exported, tmp_path: Path) -> None:
    (path,) = solver.load(RUN).export(tmp_path, "fmu", fmi=2, observer=True)
    assert path == tmp_path / f"{ROBOT}_policy.fmu"
    assert path.read_bytes() == exported(2, "--observer")[1].read_bytes()


def test_words_without_an_fmu_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", RUN, "--js", str(tmp_path / "a.js"), "--fmi", "2"]) == 2
    assert "give --fmu FILE too" in capsys.readouterr().err
