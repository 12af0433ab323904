"""Exported policies that are told a context, beside Torch's at random states and contexts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.cli import main
from solver.export.c_folder import kernels
from solver.export.distilled.network import SmallNetwork, argument_scale, controller, emit
from solver.export.distilled.regression import target_gain
from solver.training.solution import Solution, load_solution
from tests.closeness import assert_close
from tests.solver.export.test_c_export import COMPILER, STRICT, called, needs_compiler
from tests.solver.small_trainings import FAMILIES

pytestmark = pytest.mark.slow  # a training of a family for every robot

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Family:
    """A run, and rows (N, n + k) of which half lie near the target, with what Torch makes of them."""

    run: Path
    solution: Solution
    rows: torch.Tensor

    @property
    def real(self) -> str:
        """Precision of its C: each serves one robot at least."""
        return "double" if self.solution.problem.robot.name == "quadrotor" else "float"

    @property
    def states(self) -> Array:
        """(N, n)."""
        return self.rows[:, : len(self.solution.problem.target)].numpy()

    @property
    def context(self) -> Array:
        """Told values (N, k) in SI units."""
        theta, context = self.solution.problem.split(self.rows)[1], self.solution.problem.context
        assert theta is not None
        assert context is not None
        return theta[:, context.columns].numpy()

    def compare(self, u: Array, value: Array, gradient: Array) -> None:
        """Hold u (N, m), V (N,) and dV/dx (N, n) to the digits of float32."""
        solution = self.solution
        expected, cost = solution.controller()(self.rows)
        near, slopes = solution.value(self.rows)
        off = np.abs(u - expected.numpy()) / solution.problem.input_limits.numpy()
        assert np.median(off) < 1e-4
        assert off.max() < 0.02  # where w is a small difference of large numbers, float32 has few digits
        assert cost.max() > 0.0
        np.testing.assert_allclose(value, near, rtol=1e-3, atol=1e-4 * float(near.abs().max()))
        np.testing.assert_allclose(gradient, slopes, rtol=1e-2, atol=1e-3 * float(slopes.abs().max()))

    def other_context(self) -> Array:
        """What the policy does with the contexts of other rows: inputs (N, m) that differ from the right ones."""
        n = len(self.solution.problem.target)
        return self.solution.controller()(torch.cat([self.rows[:, :n], self.rows[:, n:].flip(0)], 1))[0].numpy()


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest, trained_family: Callable[[str], Path]) -> Family:
    run = trained_family(request.param)
    solution = load_solution(run, contexts=True)
    problem, generator = solution.problem, torch.Generator().manual_seed(1)
    rows = problem.sample_domain(120, generator)
    target = problem.at_target(rows[:60])
    near = problem.geometry.moved(target, 0.02 * problem.geometry.error(problem.split(rows)[0][:60], target))
    rows[:60, : len(problem.target)] = near
    inside = solution.value.frame.at(rows)[2].quadratic(rows[:, : len(problem.target)])[2]
    assert 5 < inside.sum() < 100
    return Family(run, solution, rows)


def compiled(family: Family, folder: Path) -> Path:
    """The driver of an exported policy."""
    name, driver = family.solution.problem.robot.name, folder / "driver"
    sources = [str(folder / f"{name}{end}.c") for end in ("", "_policy", "_policy_driver")]
    real = f"-D{name.upper()}_REAL={family.real}"
    subprocess.run([str(COMPILER), *STRICT, real, *sources, "-lm", "-o", str(driver)], check=True)
    return driver


@needs_compiler
def test_in_c(family: Family, tmp_path: Path) -> None:
    m = len(family.solution.problem.input_limits)
    assert main(["export", str(family.run), "--c", str(tmp_path)]) == 0
    driver = compiled(family, tmp_path)
    found = called(driver, np.hstack([family.states, family.context]))
    family.compare(found[:, :m], found[:, m], found[:, m + 1 :])
    assert np.abs(family.other_context() - found[:, :m]).max() > 1e-2


@pytest.mark.parametrize("family", ["quadrotor", "lean"], indirect=True)  # a trim that moves, a rotation, a reference
def test_in_jax(family: Family) -> None:
    """Quaternions may have any length."""
    pytest.importorskip("jax", reason="JAX is not installed")
    problem, context = family.solution.problem, family.solution.problem.context
    assert context is not None
    values: Any = dict(zip(context.names, family.context.T, strict=True))
    x, functions = family.states.copy(), solver.load(family.run).to_jax()
    for rotation in problem.geometry.rotations:
        x[:, rotation.quaternion] *= 1.7
    u = np.asarray(functions.policy(x, **values))
    family.compare(u, np.asarray(functions.value(x, **values)), np.asarray(functions.gradient(x, **values)))
    if problem.robot.name == "lean":
        one = {key: float(each[5]) for key, each in values.items()}
        np.testing.assert_allclose(functions.policy(x[5], **one), u[5], atol=0.02 * float(problem.input_limits.max()))
    assert np.abs(family.other_context() - u).max() > 1e-2


@needs_compiler
def test_a_distilled_network_in_c_is_torchs(family: Family, tmp_path: Path) -> None:
    """Random weights, so large that inputs reach their limits. At the target of every context it has the run's input
    and the run's gain, whatever the weights are."""
    solution = family.solution
    problem, scale = solution.problem, argument_scale(solution.problem)
    teacher = solution.run.settings.hold.policy(problem, solution.value)
    gain, generator = target_gain(solution, teacher, scale), torch.Generator().manual_seed(3)
    network = SmallNetwork(solution.ensemble.features, scale, 16, generator, gain)
    with torch.no_grad():
        network.weights[-1].mul_(3.0)
    name, m, n = problem.robot.name, len(problem.input_limits), len(problem.target)
    files = {file: text.encode() for file, text in emit(problem, network, name, ["facts"]).items()}
    for file, content in {**files, **kernels(problem)}.items():
        (tmp_path / file).write_bytes(content)
    driver = compiled(family, tmp_path)
    at = problem.at_target(family.rows[:20])
    still = torch.cat([at, family.rows[:20, n:]], 1)
    shown = np.hstack(
        [torch.cat([family.rows, still]).numpy()[:, :n], np.vstack([family.context, family.context[:20]])]
    )
    found = called(driver, shown) / problem.input_limits.numpy()
    act, limits = controller(problem, network), problem.input_limits
    wanted = act(family.rows)[0] / limits
    assert wanted.abs().max() > 0.6
    np.testing.assert_allclose(found[: len(wanted)], wanted.numpy(), atol=3e-4)
    np.testing.assert_allclose(found[len(wanted) :], (problem.cost_at(still).trim / limits).expand(20, m), atol=3e-4)
    steps = [
        torch.cat([sign * torch.diag(2e-3 * problem.state_limits), torch.zeros(n, still.shape[1] - n)], 1)
        for sign in (1, -1)
    ]
    assert problem.context is not None
    corners = problem.context.corners()  # of the ranges, which the contexts of a fit may miss
    ends = torch.cat([problem.target.expand(len(corners), -1), corners], 1)
    ends = torch.cat([problem.at_target(ends), corners], 1)
    for row in torch.cat([still[:5], ends]):
        own, distilled = (
            (policy(row + steps[0])[0] - policy(row + steps[1])[0]) / limits for policy in (solution.controller(), act)
        )
        torch.testing.assert_close(distilled, own, rtol=0.05, atol=1e-3)


def script_of(run: Path, folder: Path) -> Any:
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    assert main(["export", str(run), "--js", str(folder / "policy.js")]) == 0
    script = racer.MiniRacer()
    script.eval(re.sub(r"^export (\{.*)?", "", (folder / "policy.js").read_text(), flags=re.MULTILINE))
    return script


CALL = """
function call(x, values) {
  tell(values);
  const u = new Float64Array(facts.inputs.length), gradient = new Float64Array(x.length);
  const g = policy(Float64Array.from(x), u);
  return JSON.stringify([...u, g, value(Float64Array.from(x), gradient), ...gradient]);
}
"""


def test_in_javascript(family: Family, tmp_path: Path) -> None:
    script, context = script_of(family.run, tmp_path), family.solution.problem.context
    assert context is not None
    script.eval(CALL)
    values = [json.dumps(dict(zip(context.names, row, strict=True))) for row in family.context.tolist()]
    rows = zip(family.states.tolist(), values, strict=True)
    found = np.array([json.loads(script.eval(f"call({x}, {told})")) for x, told in rows])
    m = len(family.solution.problem.input_limits)
    family.compare(found[:, :m], found[:, m + 1], found[:, m + 2 :])
    cost = family.solution.controller()(family.rows)[1].numpy()
    np.testing.assert_allclose(found[:, m], cost, rtol=0.02, atol=2e-3 * cost.max())


def test_in_onnx(family: Family, tmp_path: Path) -> None:
    """Any batch, with a context for each state, closed form or held input; the metadata describe it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    periods = "1" if family.solution.problem.robot.name == "lean" else "0"
    words = ["--onnx", str(tmp_path / "policy.onnx"), "--reaction-periods", periods]
    assert main(["export", str(family.run), *words]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    u, value, gradient = session.run(None, {"x": family.states, "context": family.context})
    solution = load_solution(family.run, None, float(periods), contexts=True)
    replace(family, solution=solution).compare(u, value[:, 0], gradient)
    described = json.loads(session.get_modelmeta().custom_metadata_map["context"])
    given = {entry.name: (entry.lower, entry.upper) for entry in family.solution.run.given}
    assert {entry["name"]: (entry["lower"], entry["upper"]) for entry in described} == given
    beyond = session.run(["u"], {"x": family.states[:1], "context": family.context[:1] * 0 + 9})[0]
    top = np.array([[upper for _, upper in given.values()]], np.float32)
    assert_close(beyond, session.run(["u"], {"x": family.states[:1], "context": top})[0])
