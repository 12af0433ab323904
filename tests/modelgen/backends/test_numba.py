"""The Numba backend: its functions in a user's own jitted loops, its number formats, its threads and its cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
from modelgen.backends import MODULES, MOST_OPERATIONS
from modelgen.builder import build_artifact, build_from_equations
from modelgen.derivation import model_file
from modelgen.errors import ModelError
from modelgen.files import CACHE
from modelgen.loader import CompiledRobot
from modelgen.program.functions import SIGNATURES
from tests.closeness import assert_close
from tests.modelgen.backends.test_against_reference import LIMITS
from tests.modelgen.support import mechanisms
from tests.modelgen.support.forking import require_equal_child
from tests.modelgen.support.quantities import Calls, Close, Exact

numba = pytest.importorskip("numba")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def load(artifacts: Path) -> Callable[..., CompiledRobot]:
    def of(name: str = "pendulum", **options: Any) -> CompiledRobot:
        return modelgen.load(name, backend="numba", directory=artifacts, **options)

    return of


def batch(dtype: str = "float64") -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    return tuple(random.uniform(-3, 3, (500, size)).astype(dtype) for size in (2, 1, 2))


def test_a_jitted_loop_of_the_users_own_integrates_the_pendulum(load: Callable[..., CompiledRobot]) -> None:
    """Explicit Euler in a jitted loop, beside the same steps in plain Python with the textbook's formula."""
    robot = load()
    dynamics = robot.numba_function("dynamics")

    @numba.njit
    def rollout(x: Any, u: Any, theta: Any, steps: int) -> Any:
        xdot = np.empty_like(x)
        for _ in range(steps):
            dynamics(x, u, theta, xdot)
            x = x + 0.01 * xdot
        return x

    mass, length, torque = 2.0, 0.5, 0.7
    end = rollout(np.array([0.3, -1.0]), np.array([torque]), np.array([mass, length]), 100)
    angle, rate = 0.3, -1.0
    for _ in range(100):
        acceleration = 3 * 9.81 / (2 * length) * np.sin(angle) + 3 * torque / (mass * length**2)
        angle, rate = angle + 0.01 * rate, rate + 0.01 * acceleration
    np.testing.assert_allclose(end, [angle, rate], rtol=1e-11)


@pytest.mark.parametrize(
    "name",
    ["affine_dynamics", "dynamics", "jacobians", "hamiltonian_gradient", "state_cost", "action_cost", "optimal_input"],
)
def test_arguments_stand_in_the_order_of_the_signature(load: Callable[..., CompiledRobot], name: str) -> None:
    """And the outputs, which are filled row by row, are those of the method."""
    robot = load(parallel=False)
    arguments, _ = SIGNATURES[name]
    shapes = [output.shape for output in robot.program.function(name).outputs]
    arrays = dict(zip(("x", "u", "costate"), batch(), strict=True)) | {"theta": robot.nominal_parameters}
    arrays["w"] = arrays["u"]
    given = {each: arrays[each] for each in arguments if each != "theta"}
    expected = getattr(robot, name)(*given.values())
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = [np.empty(int(np.prod(shape))) for shape in shapes]
    sample = [arrays[each] if each == "theta" else arrays[each][7] for each in arguments]
    robot.numba_function(name)(*sample, *results)
    for found, right in zip(results, expected, strict=True):
        assert_close(found, right[7].ravel())


def test_threads_give_what_one_gives(load: Callable[..., CompiledRobot], monkeypatch: pytest.MonkeyPatch) -> None:
    x, u, costate = batch()
    together = load().hamiltonian_gradient(x, u, costate)
    alone = load(parallel=False)
    monkeypatch.setattr(alone._kernels, "_parallel", False)
    for found, right in zip(together, alone.hamiltonian_gradient(x, u, costate), strict=True):
        assert_close(found, right)


def test_many_callers_at_once(load: Callable[..., CompiledRobot]) -> None:
    x, u, costate = batch()
    robot, found = load(), []
    expected = robot.hamiltonian_gradient(x, u, costate)[0]
    callers = [
        threading.Thread(target=lambda: found.append(robot.hamiltonian_gradient(x, u, costate)[0])) for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 4
    assert all(np.array_equal(result, expected) for result in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_the_same(artifacts: Path) -> None:
    require_equal_child("numba", artifacts)


def test_float32_is_never_promoted(
    load: Callable[..., CompiledRobot],
    exact: Exact,
    calls: Calls,
    close: Close,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`dense` has every operation; none of them, and no literal, makes a double of its operands. All are right."""
    # Machine code from an earlier run, or from an earlier test of this process, has no text to look at.
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("modelgen_made_")]:
        monkeypatch.delitem(sys.modules, name)
    robot = load("dense", dtype="float32", parallel=False)
    at = exact("dense")
    close(calls(robot, at, lambda array: array.astype(np.float32)), at.values, LIMITS["float32"])
    for name in ("hamiltonian_gradient", "state_cost"):
        (code,) = robot.numba_function(name).inspect_llvm().values()
        body = code[code.index("define") :]
        assert "float" in body
        assert "double" not in body


def test_a_wrong_call_is_explained_as_by_the_llvm_backend(load: Callable[..., CompiledRobot], artifacts: Path) -> None:
    x, u, _ = batch()
    wrong: list[dict[str, Any]] = [
        {"x": x[0], "u": u},
        {"x": x, "u": u[:3]},
        {"x": x, "u": u, "theta": np.ones(3)},
        {"x": x, "u": u, "out": (np.zeros((4, 3)),)},
        {"x": x, "u": u, "out": (x,)},
    ]
    for arguments in wrong:
        with pytest.raises(ModelError) as said:
            load().dynamics(**arguments)
        with pytest.raises(ModelError) as expected:
            modelgen.load("pendulum", backend="llvm", directory=artifacts).dynamics(**arguments)
        assert str(said.value) == str(expected.value)


def test_a_robot_without_parameters_computes(tmp_path: Path) -> None:
    model = Path(tmp_path / "rod.py")
    model.write_text(
        "from sympy import cos, sin\nfrom modelgen import Quadratic, Robot\n"
        'robot = Robot("rod", "a rod")\n'
        'a = robot.revolute("a", continuous=True, rate_limit=8)\n'
        'T = robot.input("T", 2.5, "N m")\n'
        "robot.body(1.0, 0.083, (0.5 * sin(a), 0.5 * cos(a)), a)\nrobot.apply(a, T)\n"
        "robot.task(state_cost=a**2, action_cost=Quadratic(0.5), start=dict(a=(3.1, 0.03)), horizon=5,\n"
        "           weight_at_horizon=0.65, control_rate=125)\n"
    )
    build_artifact(model_file.load(str(model)), tmp_path)
    x, u = np.array([[0.3, 0.1], [1.0, 0.0]]), np.array([[0.5], [0.0]])
    expected = np.stack([x[:, 1], (0.5 * 9.81 * np.sin(x[:, 0]) + u[:, 0]) / (0.25 + 0.083)], 1)
    for backend_name in MODULES:
        robot = modelgen.load("rod", backend=backend_name, directory=tmp_path)
        arrays = [torch.from_numpy(each) for each in (x, u)] if backend_name == "torch" else [x, u]
        np.testing.assert_allclose(np.asarray(robot.dynamics(*arrays)), expected, rtol=1e-12)
        assert robot.jacobians(arrays[0])[4].shape == (2, 2, 0)


def test_out_and_tensors_share_their_memory(load: Callable[..., CompiledRobot]) -> None:
    x, _, _ = batch()
    out = (torch.empty(500, dtype=torch.float64), torch.empty(500, 2, dtype=torch.float64))
    q, slope = load(parallel=False).state_cost(torch.from_numpy(x), out=out)
    assert q is out[0]
    assert slope is out[1]
    assert_close(q, load(parallel=False).state_cost(x)[0])


def test_an_unknown_function_gets_a_suggestion(load: Callable[..., CompiledRobot]) -> None:
    with pytest.raises(ModelError, match=r"'dynamic'.*`dynamics`"):
        load().numba_function("dynamic")


def test_the_functions_belong_to_this_backend(artifacts: Path) -> None:
    with pytest.raises(ModelError, match=r"llvm.*backend='numba'"):
        modelgen.load("pendulum", directory=artifacts).numba_function("dynamics")


def test_a_long_function_is_refused(load: Callable[..., CompiledRobot], monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load(parallel=False)
    monkeypatch.setitem(MOST_OPERATIONS, "numba", robot.operations["jacobians"] - 1)
    with pytest.raises(ModelError, match=r"`jacobians` .*pendulum .*\d+ .*backend='llvm'"):
        robot.numba_function("jacobians")
    with pytest.raises(ModelError, match="backend='llvm'"):
        robot.jacobians(batch()[0])
    assert np.isfinite(robot.dynamics(*batch()[:2])).all()


RUN = """
import sys, numpy as np, modelgen
robot = modelgen.load("pendulum", backend="numba", directory=sys.argv[1], parallel=False)
print(robot.dynamics(np.ones((1, 2)), np.zeros((1, 1)))[0, 1])
print(sum(robot._kernels._module.dynamics_serial.stats.cache_hits.values()))
"""


@pytest.fixture
def run(artifacts: Path, tmp_path: Path) -> Callable[..., tuple[float, int, str]]:
    """The acceleration at angle 1 in a process of its own, how much came from Numba's cache, and what was warned."""
    folder = tmp_path / "generated"
    shutil.copytree(artifacts / "pendulum", folder / "pendulum", ignore=shutil.ignore_patterns("__pycache__"))

    def of(home: Path) -> tuple[float, int, str]:
        environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        words = [sys.executable, "-c", RUN, str(folder)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        value, hits = done.stdout.split()
        return float(value), int(hits), done.stderr

    return of


def test_machine_code_is_kept_and_never_of_another_build(
    run: Callable[..., tuple[float, int, str]], tmp_path: Path
) -> None:
    expected = 1.5 * 9.81 * np.sin(1.0)
    assert run(tmp_path) == (pytest.approx(expected), 0, "")
    assert run(tmp_path) == (pytest.approx(expected), 1, "")
    equations = mechanisms.pendulum()
    heavier = type(equations)(**{**vars(equations), "force": 2 * equations.force})
    build_from_equations(heavier, mechanisms.metadata("pendulum", equations), "0" * 64, tmp_path / "generated")
    assert run(tmp_path) == (pytest.approx(2 * expected), 0, "")


def test_without_a_folder_for_machine_code_it_is_compiled_every_time(
    run: Callable[..., tuple[float, int, str]], tmp_path: Path
) -> None:
    (tmp_path / "none").write_text("not a folder either")
    value, hits, warned = run(tmp_path / "none")
    assert (value, hits) == (pytest.approx(1.5 * 9.81 * np.sin(1.0)), 0)
    assert "MODELGEN_CACHE" in warned
