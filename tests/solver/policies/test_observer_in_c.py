"""The observer in C: compiled without a warning, and beside Torch's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from modelgen.build import export
from modelgen.derivation.model_file import load as load_model
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.observer.observer import Observer
from solver.observer.sensing import make_sensing, usual_counts
from solver.plants.harsh.harshness import Harshness
from solver.plants.harsh.plant import Harsh
from solver.policies.c_export import emit_observer
from solver.problem.problem import Problem
from tests.solver.policies.test_c_export import COMPILER, STRICT, needs_compiler

Load = Callable[[str], CompiledRobot]
PERIODS = 60


@needs_compiler
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("name", ["pendulum", "furuta", "planar_quadrotor"])
def test_it_is_torchs(name: str, delay: int, load: Load, tmp_path: Path) -> None:
    problem = Problem(load(name))
    for file, content in export(load_model(name), "c").items():
        (tmp_path / file).write_bytes(content)
    for file, text in emit_observer(problem).items():
        (tmp_path / file).write_text(text)
    sources = [str(tmp_path / f"{name}{end}.c") for end in ("", "_observer", "_observer_driver")]
    driver = tmp_path / "driver"
    words = [str(COMPILER), *STRICT, f"-D{name.upper()}_DELAY={delay}", *sources, "-lm", "-o", str(driver)]
    subprocess.run(words, check=True)

    generator = torch.Generator().manual_seed(6)
    motion = Harsh(problem, Harshness(encoder=1.0, delay=delay)).begin(0.5 * problem.sample_domain(1, generator))
    observer = Observer(problem, make_sensing(problem, usual_counts(problem), delay=delay))
    rows, expected = [], []
    for _ in range(PERIODS):
        positions = motion.seen[:, : len(problem.target) // 2]
        x = observer.estimate(positions)[0].tolist()
        disturbance = (observer.disturbance[0] / problem.input_limits).tolist()
        expected.append([*x, *disturbance, float(observer.normalised_innovation[0])])
        u = 0.3 * problem.input_limits * (2.0 * torch.rand(1, len(problem.input_limits), generator=generator) - 1.0)
        rows.append([*positions[0].tolist(), *u[0].tolist()])
        observer.sent(u)
        motion.step(u)
    lines = "\n".join(" ".join(map(repr, row)) for row in rows)
    found = subprocess.run([driver], input=lines, capture_output=True, text=True, check=True)
    table, n = np.array([line.split() for line in found.stdout.splitlines()], float), len(problem.target)
    states, disturbances, innovations = np.split(table, [n, -1], axis=1)
    error = states - np.array(expected)[:, :n]
    error = np.where(problem.clipped, error, np.remainder(error + np.pi, 2.0 * np.pi) - np.pi)
    np.testing.assert_allclose(error / problem.state_limits.numpy(), np.zeros_like(error), atol=2e-4)
    shares = disturbances / problem.input_limits.numpy()
    np.testing.assert_allclose(shares, np.array(expected)[:, n:-1], atol=2e-4)
    assert np.abs(shares).max() > 1e-3
    np.testing.assert_allclose(innovations[:, 0], np.array(expected)[:, -1], rtol=0.02, atol=0.02)
    assert innovations.max() > 0.1


def test_export_writes_it_on_request(finished_run: Path, tmp_path: Path) -> None:
    for words, count in (([], 3), (["--observer"], 6)):
        assert main(["export", str(finished_run), "--c", str(tmp_path / str(count)), *words]) == 0
        assert len(list((tmp_path / str(count)).iterdir())) == count
