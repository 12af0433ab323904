"""Policies in C: compiled without a warning, and beside Torch's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.cli import main
from solver.export.c_folder import comment
from solver.runs.folder import save_checkpoint
from solver.training.solution import load_run_checkpoint, load_solution
from solver.value.family import Basin

Capture = pytest.CaptureFixture[str]

COMPILER = shutil.which("gcc") or shutil.which("cc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0"]  # -O2, which takes longer, is test_c_folder's

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(run: Path, name: str, folder: Path, *words: str, real: str = "double") -> Path:
    """The driver of a run's policy."""
    assert main(["export", str(run), "--c", str(folder), *words]) == 0
    sources = [str(folder / f"{name}{end}.c") for end in ("", "_policy", "_policy_driver")]
    driver = folder / "driver"
    command = [str(COMPILER), *STRICT, f"-D{name.upper()}_REAL={real}", *sources, "-lm", "-o", str(driver)]
    subprocess.run(command, check=True)
    return driver


def called(driver: Path, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Inputs, V and dV/dx, a row a state."""
    return with_watchdog(driver, x)[:, :-1]


def with_watchdog(driver: Path, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """And in the last column 1 where the state is in the domain, 0 elsewhere."""
    text = "\n".join(" ".join(map(repr, row)) for row in x.tolist())
    found = subprocess.run([driver], input=text, capture_output=True, text=True, check=True)
    return np.array([line.split() for line in found.stdout.splitlines()], float)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "sampled", "drift"),
    [
        ("planar_arm3", 0.0, False),
        ("ball_on_beam", 0.0, False),
        ("planar_arm3", 2.0, False),
        ("ball_on_beam", 2.0, True),
    ],
)
@pytest.mark.slow
def test_the_c_policy_is_torchs(
    name: str, sampled: float, drift: bool, begun: Callable[..., Path], tmp_path: Path
) -> None:
    """One input and several, robots with joints that wrap and without, trained a little so that V has a shape."""
    run = begun(name, drift)
    driver = compiled(run, name, tmp_path, "--reaction-periods", str(sampled))
    solution = load_solution(run)
    x = 0.8 * solution.problem.sample_domain(200, torch.Generator().manual_seed(1)).numpy()
    u = solver.load_policy(run, reaction_periods=sampled)(x)
    value, gradient = solver.load_value(run)(x)
    found_u, found_value, found_gradient = np.split(called(driver, x), [u.shape[1], u.shape[1] + 1], axis=1)
    np.testing.assert_allclose(found_value[:, 0], value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
    limits = solution.problem.input_limits.numpy()
    off = np.abs(found_u - u) / limits
    assert np.median(off) < 1e-4
    assert off.max() < 0.02  # where w is a small difference of large numbers, float32 has few digits
    assert np.abs(u / limits).max() > 0.3
    if sampled:
        closed = solver.load_policy(run, reaction_periods=0)(x)
        assert np.abs(closed - u).max() > 20 * np.abs(found_u - u).max()


def with_basin(run: Path) -> Basin:
    """Write a basin and its metric into the checkpoint of a run, with a cost that no Riccati equation gave."""
    solution = load_solution(run)
    problem, n = solution.problem, len(solution.problem.target)
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(5)) + 4.0 * torch.eye(n)  # well conditioned
    unit = root @ root.T / problem.state_limits / problem.state_limits[:, None]
    basin = Basin(problem.target, ~problem.clipped, unit, 0.3 * n)
    solution.ensemble.set_basin(basin)
    solution.ensemble.set_metric(3.0 * unit, 100.0 * float(basin.level))
    checkpoint = load_run_checkpoint(run)
    save_checkpoint(run, {**checkpoint, "ensemble": solution.ensemble.state_dict(), "best": {}})
    return basin


@needs_compiler
@pytest.mark.parametrize("name", ["double_pendulum", "ball_on_beam"])
@pytest.mark.slow
def test_the_c_policys_basin_is_torchs(name: str, begun: Callable[..., Path], tmp_path: Path) -> None:
    """States deep inside, on both sides of the edge, and whole turns away; closed form and held inputs."""
    run = Path(shutil.copytree(begun(name), tmp_path / "run"))
    basin = with_basin(run)
    limits, generator = load_solution(run).problem.input_limits.numpy(), torch.Generator().manual_seed(1)
    away = torch.randn(240, len(basin.target), generator=generator) @ torch.linalg.inv(
        torch.linalg.cholesky(basin.cost)
    )
    depth = torch.tensor([0.01, 0.5, 0.998, 1.002, 1.5, 3.0]).repeat_interleave(40)[:, None]
    e = away * (basin.level * depth / ((away @ basin.cost) * away).sum(1, keepdim=True)).sqrt()
    e = torch.remainder(e + torch.pi, 2 * torch.pi).sub(torch.pi).where(basin.continuous, e)
    distance = ((e @ basin.cost) * e).sum(1).double().numpy()  # independent of the code's own wrapping
    x = basin.target + e
    x[::3] += 2.0 * torch.pi * basin.continuous
    inside = distance < basin.level
    assert 100 < inside.sum() < 230
    for periods in (0.0, 1.0):
        found = called(compiled(run, name, tmp_path, "--reaction-periods", str(periods)), x.numpy())
        u = solver.load_policy(run, reaction_periods=periods)(x.numpy())
        value, gradient = solver.load_value(run)(x.numpy())
        found_u, found_value, found_gradient = np.split(found, [u.shape[1], u.shape[1] + 1], axis=1)
        np.testing.assert_allclose(found_value[:, 0], value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
        np.testing.assert_allclose(found_value[inside, 0], -distance[inside], rtol=1e-4)
        assert np.abs(found_value[~inside, 0] + distance[~inside]).min() > 1e-3
        off = (np.abs(found_u - u) / limits).max(1)
        assert np.quantile(off, 0.97) < 1e-3  # V jumps at the edge, and a chord may end there
        assert (np.abs(u) / limits).max() > 0.3


@needs_compiler
def test_the_c_policy_computes_in_float_and_gives_a_broken_state_no_input(finished_run: Path, tmp_path: Path) -> None:
    """V of it is no number, and its input is 0."""
    driver = compiled(finished_run, "pendulum", tmp_path, "--reaction-periods", "1", real="float")
    x = np.array([[0.3, 1.0], [np.nan, 1.0], [-2.0, -3.0]])
    found = with_watchdog(driver, x)
    assert found[1, 0] == 0.0
    assert np.isnan(found[1, 1:-1]).all()
    assert found[:, -1].tolist() == [1.0, 0.0, 1.0]
    np.testing.assert_allclose(
        found[[0, 2], 0], solver.load_policy(finished_run, reaction_periods=1)(x[[0, 2]])[:, 0], atol=1e-3
    )


@needs_compiler
@pytest.mark.parametrize(("name", "real"), [("furuta-rfvi", "double"), ("planar_arm2-rfvi", "float")])
@pytest.mark.slow
def test_no_state_makes_an_input_nan_or_too_large(name: str, real: str, tmp_path: Path) -> None:
    """Whatever the numbers are; the watchdog tells the states of the domain from the others."""
    problem = load_solution(name).problem
    driver = compiled(Path(name), problem.robot.name, tmp_path, real=real)
    random = np.random.default_rng(2)
    x = (1.2 * problem.sample_domain(600, torch.Generator().manual_seed(1))).numpy().astype(float)
    strange = [np.nan, np.inf, -np.inf, 1e30, -1e38, 3e5, 1e-42, 0.0]
    broken = random.random(x.shape) < 0.3
    x[broken] = random.choice(strange, broken.sum())
    found, m = with_watchdog(driver, x), len(problem.input_limits)
    assert (np.abs(found[:, :m]) <= problem.input_limits.numpy() * (1 + 1e-6)).all()
    assert (found[~np.isfinite(x).all(1), :m] == 0.0).all()
    assert np.abs(found[:, :m]).max() > 0.0
    inside = (np.abs(x) <= problem.bound.double().clamp(max=3e38).numpy()).all(1)
    assert 20 < inside.sum() < 400
    np.testing.assert_array_equal(found[:, -1], inside)


@needs_compiler
def test_the_header_states_units_limits_rate_and_hashes(finished_run: Path, tmp_path: Path) -> None:
    """A unit of an artifact of somebody else cannot end the comment."""
    assert main(["export", str(finished_run), "--c", str(tmp_path)]) == 0
    header, robot = (tmp_path / "pendulum_policy.h").read_text(), load_solution(finished_run).problem.robot
    for fact in ("angle_rate (rad/s) -8 to 8", "torque (N m)", " 25 Hz", robot.hash, robot.model_hash):
        assert fact in header
    assert comment("*/ int evil; /*\n#include") == "* / int evil; / * #include"


def test_c_export_refuses_what_is_not_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), "--c", str(tmp_path / "c")]) == 2
    assert "run.json" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--c", "c", "--max-loss", "0.1"], "give --budget"),
        (["--onnx", "same", "--js", "same"], "--js same would replace"),
    ],
)
def test_options_that_would_do_nothing(
    finished_run: Path, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(finished_run), *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
