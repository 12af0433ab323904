"""Policies of a robot with a rotation in C, ONNX and JavaScript, beside Torch's; and a million steps in C."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import solver
from modelgen.builder import export
from modelgen.derivation.model_file import load as load_model
from solver.cli import main
from solver.export.js_export import numbers
from solver.export.page_export import engine
from solver.plants.outcome import controller, rollouts
from solver.training.solution import load_solution
from tests.solver.export.test_c_export import COMPILER, STRICT, called, compiled, needs_compiler
from tests.solver.export.test_page_export import LOOP, in_float64

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(begun: Callable[..., Path]) -> Path:
    return begun("quadrotor", drift=True)


@pytest.fixture(scope="module")
def driver(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policy in C."""
    return compiled(run, "quadrotor", tmp_path_factory.mktemp("driver"))


def states(run: Path) -> np.ndarray:
    """States of the whole domain, and near the target."""
    problem, generator = load_solution(run).problem, torch.Generator().manual_seed(1)
    e = 0.02 * torch.randn(100, problem.geometry.size, generator=generator)
    near = problem.geometry.moved(problem.target, e)
    return torch.cat([problem.sample_domain(200, generator), near]).numpy()


@needs_compiler
def test_the_c_policy_is_torchs(run: Path, driver: Path) -> None:
    """Also for quaternions that are not of length one."""
    x = states(run)
    u, (value, gradient) = solver.load_policy(run)(x), solver.load_value(run)(x)
    for scale in (1.0, 1.7):
        x[:, 3:7] *= scale
        found_u, found_value, found_gradient = np.split(called(driver, x), [4, 5], axis=1)
        np.testing.assert_allclose(found_value[:, 0], value, rtol=1e-3, atol=1e-4 * np.abs(value).max())
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
        np.testing.assert_allclose(found_u, u, atol=2e-3 * 1.4)


@needs_compiler
def test_a_quaternion_of_zero_is_no_rotation(run: Path, driver: Path) -> None:
    x = states(run)
    x[0, 3:7] = 0.0
    policy = solver.load_policy(run)
    u = policy(x)
    assert np.isnan(u[0]).all()
    assert np.isfinite(u[1:]).all()
    found = called(driver, x)[:, :4]  # never NaN in C: the trim
    np.testing.assert_allclose(found[0], [entry.trim for entry in policy.robot.metadata.inputs], rtol=1e-5)


def test_the_onnx_policy_is_torchs(run: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    x = states(run)
    u, (value, gradient) = solver.load_policy(run)(x), solver.load_value(run)(x)
    assert main(["export", str(run), "--onnx", str(tmp_path / "policy.onnx")]) == 0
    session = runtime.InferenceSession(str(tmp_path / "policy.onnx"))
    x[:, 3:7] *= 1.3
    found_u, found_value, found_gradient = session.run(None, {"x": x})
    np.testing.assert_allclose(found_value[:, 0], value, rtol=1e-3, atol=1e-4 * np.abs(value).max())
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
    np.testing.assert_allclose(found_u, u, atol=2e-3 * 1.4)


def test_a_javascript_rollout_is_pythons(run: Path) -> None:
    racer = pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    solution = load_solution(run)
    problem, value = in_float64(solution)
    script = racer.MiniRacer()
    script.eval(f"{engine(solution.problem)}\nconst run = {json.dumps(numbers(solution))};\n{LOOP}")
    theta = problem.robot.nominal_parameters
    act = controller(problem, value, solution.run.settings.hold)
    starts = problem.sample_starts(3, torch.Generator().manual_seed(3)).double()
    for x in problem.geometry.normalised(starts):  # an unstable robot amplifies what single precision leaves
        expected = rollouts(problem, act, x[None], seconds=0.5)
        found = json.loads(script.eval(f"roll({x.tolist()}, {theta.tolist()}, {len(expected.u)}, 0)"))
        np.testing.assert_allclose(found["states"], expected.x[1:, 0].numpy(), atol=1e-6)
        assert found["result"] == pytest.approx(float(expected.returns[0]), rel=1e-6)
        assert found["success"] == bool(expected.success[0])


@needs_compiler
def test_a_quaternion_has_length_one_after_a_million_steps_in_c(tmp_path: Path) -> None:
    """A free body keeps its angular momentum in space, with the quaternion scaled to length one after every step."""
    for file, content in export(load_model("satellite"), "c").items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "loop.c").write_text(LOOP_IN_C)
    command = [str(COMPILER), *STRICT, "-DSATELLITE_REAL=double", "satellite.c", "loop.c", "-lm", "-o", "loop"]
    subprocess.run(command, check=True, cwd=tmp_path)
    found = subprocess.run([tmp_path / "loop"], capture_output=True, text=True, check=True).stdout.split()
    length, before, after = float(found[0]), *np.array(found[1:], float).reshape(2, 3)
    assert abs(length - 1.0) < 1e-15 * 4
    np.testing.assert_allclose(after, before, rtol=1e-6)


LOOP_IN_C = r"""
#include "satellite.h"
#include <math.h>
#include <stdio.h>

static void momentum(const double *x, double *L) {
    const double w = x[0], v[3] = {x[1], x[2], x[3]}, h[3] = {1.0 * x[4], 1.4 * x[5], 0.8 * x[6]};
    double t[3];
    for (int i = 0; i < 3; i++) t[i] = 2 * (v[(i + 1) % 3] * h[(i + 2) % 3] - v[(i + 2) % 3] * h[(i + 1) % 3]);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        L[i] = h[i] + w * t[i] + v[j] * t[k] - v[k] * t[j];
    }
}

int main(void) {
    double x[7] = {0.5, 0.5, -0.5, 0.5, 1.0, -0.7, 0.4}, L[3];
    const double u[3] = {0}, h = 0.01, share[4] = {0, 0.5, 0.5, 1}, weight[4] = {1, 2, 2, 1};
    momentum(x, L);
    const double before[3] = {L[0], L[1], L[2]};
    for (int step = 0; step < 1000000; step++) {
        double at[7], v[7] = {0}, sum[7], length = 0;
        for (int i = 0; i < 7; i++) sum[i] = x[i];
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < 7; i++) at[i] = x[i] + share[stage] * h * v[i];
            satellite_dynamics(at, u, satellite_nominal, v);
            for (int i = 0; i < 7; i++) sum[i] += weight[stage] * h / 6 * v[i];
        }
        for (int i = 0; i < 4; i++) length += sum[i] * sum[i];
        for (int i = 0; i < 4; i++) sum[i] /= sqrt(length);
        for (int i = 0; i < 7; i++) x[i] = sum[i];
    }
    momentum(x, L);
    printf("%.17g", sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]));
    for (int i = 0; i < 3; i++) printf(" %.17g", before[i]);
    for (int i = 0; i < 3; i++) printf(" %.17g", L[i]);
    return 0;
}
"""
