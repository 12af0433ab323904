"""Policies in ONNX, run by onnxruntime, beside Torch's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
import solver
from solver.cli import main
from solver.errors import SolverError
from solver.problem.context import Given
from solver.training.solution import load_solution
from tests.modelgen.support import systems
from tests.solver.export.test_c_export import with_basin
from tests.solver.small_trainings import untrained_family

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from solver.export.onnx_export import emit  # noqa: E402
from solver.export.onnx_graph import OnnxGraph  # noqa: E402

Array = np.ndarray[Any, Any]


def session(content: bytes | Path) -> Any:
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def exported(run: Path, folder: Path, *words: str) -> Any:
    """The session of a run's policy."""
    assert main(["export", str(run), "--onnx", str(folder / "policy.onnx"), *words]) == 0
    return session(folder / "policy.onnx")


def compare(run: Path, policy: Any, x: Array, periods: float, most: float = 1e-5) -> Array:
    """Hold u to `most` of the input limit, V and dV/dx to float32; returns Torch's u over the limits."""
    u, value, gradient = policy.run(None, {"x": x})
    limits = load_solution(run).problem.input_limits.numpy()
    expected = solver.load_policy(run, reaction_periods=periods)(x)
    expected_value, expected_gradient = solver.load_value(run)(x)
    np.testing.assert_allclose(u / limits, expected / limits, rtol=0.0, atol=most)
    assert (np.abs(u) <= limits * (1.0 + 1e-6)).all()
    np.testing.assert_allclose(value[:, 0], expected_value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-5 * np.abs(expected_gradient).max())
    return expected / limits


@pytest.mark.parametrize(
    ("name", "periods", "drift"),
    [("planar_arm2", 0.0, False), ("pendulum", 2.0, False), ("pendulum", 2.0, True)],
)
@pytest.mark.slow
def test_onnx_policy_equals_torch(
    name: str, periods: float, drift: bool, begun: Callable[..., Path], tmp_path: Path
) -> None:
    """One input and two, joints that wrap and joints that do not, closed form and held input, any batch."""
    run = begun(name, drift)
    policy = exported(run, tmp_path, "--reaction-periods", str(periods))
    x = 0.8 * load_solution(run).problem.sample_domain(200, torch.Generator().manual_seed(1)).numpy()
    most = 1e-4 if periods else 1e-5  # a held input divides the rounding of the gradient by the length of a chord
    u = compare(run, policy, x, periods, most)
    assert np.abs(u).max() > 0.3
    compare(run, policy, x[:1], periods, most)
    if periods:
        limits = load_solution(run).problem.input_limits.numpy()
        assert np.abs(solver.load_policy(run, reaction_periods=0)(x) / limits - u).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["double_pendulum", "ball_on_beam"])
def test_onnx_basin_and_held_inputs_equal_torch(name: str, begun: Callable[..., Path], tmp_path: Path) -> None:
    """Inside and outside of a basin, some states whole turns away; held inputs that differ from the closed form.

    No training made this V. Its random metric amplifies rounding, to 1.02e-4 of the input limit with the oldest kernels
    of MKL.
    """
    run = Path(shutil.copytree(begun(name), tmp_path / "run"))
    basin = with_basin(run)
    x = basin.target + 0.4 * load_solution(run).problem.sample_domain(300, torch.Generator().manual_seed(1))
    x[::3] += 2.0 * torch.pi * basin.continuous
    distance = basin.distance(x)
    x = x[(distance / basin.level - 1.0).abs() > 1e-3]  # V jumps at the edge
    inside = distance < basin.level
    assert 10 < inside.sum() < 290
    u = {
        periods: compare(
            run,
            exported(run, tmp_path, "--reaction-periods", f"{periods}"),
            x.numpy(),
            periods,
            3e-4,
        )
        for periods in (0.0, 1.0)
    }
    assert np.abs(u[0.0] - u[1.0]).max() > 1e-3


def test_onnx_metadata_has_names_units_and_limits(finished_run: Path, tmp_path: Path) -> None:
    policy = exported(finished_run, tmp_path)
    assert [(each.name, each.shape) for each in policy.get_inputs()] == [("x", ["N", 2])]
    assert [(each.name, each.shape) for each in policy.get_outputs()] == [
        ("u", ["N", 1]),
        ("V", ["N", 1]),
        ("dV_dx", ["N", 2]),
    ]
    facts, robot = policy.get_modelmeta().custom_metadata_map, load_solution(finished_run).problem.robot
    assert [state["name"] for state in json.loads(facts["states"])] == list(robot.state_names)
    (described,) = json.loads(facts["inputs"])
    assert (described["name"], described["unit"]) == (robot.metadata.inputs[0].name, "N m")
    assert described["limit"] == pytest.approx(robot.input_limits[0])
    assert float(facts["control_rate"]) == robot.metadata.task.control_rate
    assert facts["artifact"] == robot.hash


def test_onnx_input_of_a_nan_state_is_nan(finished_run: Path, tmp_path: Path) -> None:
    u, value, _ = exported(finished_run, tmp_path).run(None, {"x": np.array([[np.nan, 1], [0.3, 1]], np.float32)})
    assert np.isnan(value[0]).all()
    assert np.isfinite(u[1]).all()
    assert np.isfinite(value[1]).all()


@pytest.mark.parametrize("double", [False, True])
def test_every_function_of_kernels_in_onnx_equals_torch(double: bool) -> None:
    """What the shipped robots use little of: all of it in one graph, beside Torch's own evaluation."""

    def results(x: torch.Tensor) -> torch.Tensor:
        a, b = x[:, 0], x[:, 1]
        made = [f(a) for f in (torch.sin, torch.cos, torch.atan, torch.sinh, torch.cosh, torch.tanh, torch.exp)]
        made += [torch.abs(a), torch.sign(a), torch.sqrt(b * b), torch.log(b * b), torch.log1p(b * b)]
        made += [torch.asin(torch.tanh(a)), torch.acos(torch.tanh(a)), torch.atan2(a, b), torch.atan2(b, 0 * a)]
        made += [torch.minimum(a, b), torch.maximum(a, b), torch.abs(a) ** 1.5, 1.0 / a, 2.0 - a, -a, a - 2.0]
        return torch.stack(made, 1)

    graph = OnnxGraph()
    x = graph.input("x", 2)
    y = results(x.double()).to(x) if double else results(x)
    content = graph.model({"x": 2}, {"y": y}, {}).SerializeToString()
    samples = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    samples[:20, 1] *= 1e-4  # of log1p
    expected = results(torch.from_numpy(samples).double()).numpy()
    np.testing.assert_allclose(session(content).run(None, {"x": samples})[0], expected, rtol=3e-5, atol=1e-6)


@pytest.mark.slow
def test_redundant_inputs_that_hold_a_told_mass() -> None:
    """In single precision their trims would be sums of rounding."""
    solution = untrained_family(Given("mass", 1.0, 3.0), robot=modelgen.compile(systems.lift(), dtype="float32"))
    rows = solution.problem.sample_domain(50, torch.Generator().manual_seed(0))
    mass = solution.problem.split(rows)[1]
    assert mass is not None
    u = session(emit(solution, "")).run(["u"], {"x": rows[:, :2].numpy(), "context": mass.numpy()})[0]
    np.testing.assert_allclose(u, solution.controller()(rows)[0], rtol=0.0, atol=1e-2)


def test_a_function_without_a_form_in_onnx_is_an_error() -> None:
    with pytest.raises(SolverError, match="floor"):
        torch.floor(OnnxGraph().input("x", 1))


def test_export_without_a_format_is_an_error(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(finished_run)]) == 2
    assert "--onnx FILE" in capsys.readouterr().err


@pytest.mark.slow
def test_the_pages_loop_plays_a_robot_whose_inputs_are_not_about_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the run's own policy in the same environment, with actions in SI units."""
    gymnasium = pytest.importorskip("gymnasium")
    page = Path(__file__).parents[3] / "docs" / "how-to" / "export-to-onnx.md"
    monkeypatch.chdir(tmp_path)
    run = solver.load("planar_quadrotor-rfvi")
    run.export("policy.onnx", "onnx")
    exec(page.read_text(encoding="utf-8").split("```python\nimport json")[1].split("```")[0], {"json": json})
    found = float(capsys.readouterr().out)
    robot = gymnasium.make("robust-value-iteration/planar_quadrotor-v0", observation="state")
    env = gymnasium.wrappers.RescaleAction(robot, 0.0, 4.7)
    x, _ = env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        x, reward, _, over, _ = env.step(run.policy(x))
        total += reward
    assert found == pytest.approx(total, rel=1e-3)
