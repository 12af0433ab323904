"""States far outside of the domain: the same policy from Torch, C, ONNX and JavaScript."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import modelgen
import solver
from modelgen import Quadratic, Robot
from solver.cli import main
from solver.problem.domain import FARTHEST
from solver.training.gain import SmoothPolicy
from solver.training.settings import Settings
from solver.training.solution import load_solution
from tests.solver.conftest import TINY
from tests.solver.export.test_c_export import compiled, needs_compiler, with_watchdog
from tests.solver.export.test_observer_in_c import compiled as with_observer
from tests.solver.export.test_observer_in_c import estimates
from tests.solver.small_trainings import start, unjudged

pytestmark = pytest.mark.slow

onnxruntime = pytest.importorskip("onnxruntime")
racer = pytest.importorskip("py_mini_racer")

NAME = "furuta"
RUN = Path(f"{NAME}-rfvi")
Act = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
#: From the domain to what no robot has, in sizes that float32 and float64 hold exactly.
FAR = (0.25, 1.5, 64.0, 3e5, 1e6, 2e6, 1e10, 1e20, 1e30, 3e38, 1e300)
entries = st.builds(math.copysign, st.sampled_from([*FAR, math.inf, math.nan]), st.sampled_from([-1.0, 1.0]))


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The policy in C, in each precision."""
    folders = {real: tmp_path_factory.mktemp(real) for real in ("float", "double")}
    return {real: compiled(RUN, NAME, folder, real=real) for real, folder in folders.items()}


@pytest.fixture(scope="module")
def engines(drivers: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Act]:
    """Inputs (N, m) at states (N, n), by what computes them."""
    folder, policy = tmp_path_factory.mktemp("far"), solver.load_policy(RUN)
    assert main(["export", str(RUN), "--onnx", str(folder / "p.onnx"), "--js", str(folder / "p.js")]) == 0
    session = onnxruntime.InferenceSession(folder / "p.onnx", providers=["CPUExecutionProvider"])
    script, m = racer.MiniRacer(), len(policy.input_names)
    text = (folder / "p.js").read_text()
    script.eval("\n".join(line.removeprefix("export ") for line in text.splitlines() if line[:8] != "export {"))

    def javascript(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rows = json.dumps([[repr(value) for value in row] for row in x.tolist()])
        call = (
            f"JSON.stringify({rows}.map(row => {{ const u = new Float64Array({m}); "
            "policy(Float64Array.from(row.map(e => Number(e.replace('inf', 'Infinity')))), u);"
            " return Array.from(u, String); }))"
        )
        return np.array(json.loads(script.eval(call)), float)

    def in_c(real: str) -> Act:
        return lambda x: with_watchdog(drivers[real], x)[:, :m]

    return {
        "torch": policy,
        "onnx": lambda x: session.run(None, {"x": x.astype(np.float32)})[0],
        "javascript": javascript,
        "double": in_c("double"),
        "float": in_c("float"),
    }


@needs_compiler
@settings(max_examples=10)  # of up to 30 states, in five engines
@given(st.lists(st.tuples(*[entries] * 4), min_size=1, max_size=30))
@example([(1e30, 0.1, 0.1, 0.1), (0.1, 0.1, 1e30, 0.1), (0.1, math.inf, 0.1, 0.1), (0.1, 0.1, 0.1, -1e300)])
def test_one_rule_for_states_far_away(engines: dict[str, Act], states: list[tuple[float, ...]]) -> None:
    """Beyond FARTHEST a state counts as FARTHEST. One that is not finite gives NaN, and 0 in C."""
    x = np.array(states)
    finite = np.isfinite(x).all(1)
    limit = solver.load_policy(RUN).limits
    expected = engines["torch"](np.clip(x, -FARTHEST, FARTHEST)[finite]) / limit
    assert (np.abs(expected) <= 1.0 + 1e-6).all()
    for name, act in engines.items():
        held = np.where(np.isfinite(x), np.clip(x, -3e38, 3e38), x) if name in ("onnx", "float") else x  # in float32
        u = act(held) / limit
        np.testing.assert_allclose(u[finite], expected, atol=2e-3, err_msg=name)
        broken = u[~np.isfinite(x).all(1)]
        assert (broken == 0.0).all() if name in ("double", "float") else np.isnan(broken).all()


@needs_compiler
@pytest.mark.parametrize("real", ["float", "double"])
def test_state_exactly_at_its_limit_is_inside(real: str, drivers: dict[str, Path]) -> None:
    """The limit of the model file, and the float32 number that a kernel clips to: 2.6 and 2.5999999046325684."""
    robot = solver.load_policy(RUN).robot
    for index, state in enumerate(robot.metadata.states):
        if state.continuous:
            continue
        declared, clipped = state.limit, float(np.float32(state.limit))
        x = np.zeros((3, len(robot.metadata.states)))
        x[:, index] = declared, clipped, max(declared, clipped) * (1.0 + 2e-7)
        assert with_watchdog(drivers[real], np.concatenate([x, -x]))[:, -1].tolist() == [1.0, 1.0, 0.0] * 2


@pytest.fixture(scope="module")
def hydraulic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that begins, of a mass on a cylinder whose pressure is a state of up to 1.5e7 Pa."""
    folder = tmp_path_factory.mktemp("hydraulic")
    robot = Robot("cylinder")
    place = robot.prismatic("place", limit=0.5, rate_limit=2)
    valve = robot.input("valve", 1e-3, "m^3/s")
    pressure = robot.state("pressure", limit=1.5e7, unit="Pa")
    robot.flow(pressure, 2e9 * valve - 4e6 * place.rate - 0.1 * pressure)
    robot.point_mass(100, (place, 0))
    robot.apply(place, 2e-3 * pressure)
    task = dict(
        state_cost=100 * place**2 + (1e-6 * pressure) ** 2, action_cost=Quadratic(1e4), start=dict(place=(0.3, 0.1))
    )
    robot.task(**task, horizon=3, weight_at_horizon=0.6, control_rate=100)
    modelgen.build(robot, folder / "generated")
    with unjudged():
        settings = Settings(**TINY | {"adversaries": {}, "iterations": 1})
        start("cylinder", "fast", settings, folder / "run", str(folder / "generated"))
    return folder / "run"


@needs_compiler
def test_a_pressure_within_its_limit_is_not_confined(hydraulic: Path, tmp_path: Path) -> None:
    """Torch's controller of a training does not confine states: every form of its policy gives its inputs."""
    solution = load_solution(hydraulic)
    x = solution.problem.sample_domain(200, torch.Generator().manual_seed(2))
    expected, span = solution.controller()(x)[0].numpy(), 1e-3
    confined = x.clamp(-FARTHEST, FARTHEST)
    assert np.abs(solution.controller()(confined)[0].numpy() - expected).max() > 0.1 * span
    policy = solver.load_policy(hydraulic)
    np.testing.assert_allclose(policy(x.numpy()), expected, atol=1e-5 * span)
    np.testing.assert_allclose(SmoothPolicy(solution)(x)[0].numpy(), expected, atol=1e-3 * span)
    assert main(["export", str(hydraulic), "--onnx", str(tmp_path / "p.onnx"), "--js", str(tmp_path / "p.js")]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], expected, atol=1e-3 * span)
    assert '"farthest":[1000000.0,1000000.0,150000000.0]' in (tmp_path / "p.js").read_text().replace(" ", "")
    for real in ("float", "double"):
        (tmp_path / real).mkdir()
        u = with_watchdog(compiled(hydraulic, "cylinder", tmp_path / real, real=real), x.numpy())[:, :1]
        np.testing.assert_allclose(u, expected, atol=1e-3 * span)


@needs_compiler
def test_a_pressure_within_its_limit_is_measured(hydraulic: Path, tmp_path: Path) -> None:
    """By the observer in C, which has no estimate before everything was measured."""
    problem = load_solution(hydraulic).problem
    driver = with_observer(problem, tmp_path, "DELAY=0", "double", "1e-8, 1e-4, 1e6")
    rows = [[0.1, 0.0, 1.4e7, 0.0]] * 2
    np.testing.assert_allclose(estimates(driver, rows)[:2, 2], 1.4e7, rtol=0.01)


def test_a_pressure_within_its_limit_is_not_confined_in_jax(hydraulic: Path) -> None:
    pytest.importorskip("jax")
    x = load_solution(hydraulic).problem.sample_domain(50, torch.Generator().manual_seed(2)).numpy()
    in_jax, policy = solver.load(hydraulic).to_jax(), solver.load_policy(hydraulic)
    np.testing.assert_allclose(in_jax.policy(x), policy(x), atol=1e-6)
