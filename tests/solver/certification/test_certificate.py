"""Certificates of a tiny run: bound, compared with a quadrature; worst case; exact replay; level set."""

from __future__ import annotations

import csv
import dataclasses
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import solver
from modelgen.loader import CompiledRobot
from solver.certification import prove, worst
from solver.certification.counterexample import Counterexample, checkpoint_hash, load, motion, replay, save
from solver.certification.experiment import Experiment, Outcomes, noises
from solver.certification.sets import Uniform
from solver.certification.specification import Conditions, FailureRule
from solver.cli import main
from solver.errors import SolverError
from solver.jobs.engines import policy_reference
from solver.problem import Problem
from solver.runs.kinds import load_rollout_policy
from solver.streams import Purpose

pytestmark = pytest.mark.slow

LINE = "horizon = 0.1\n[starts]\nangle = [0.5, 2.5]\nangle_rate = [0, 0]\n"
CUBE = """\
# <script>alert(1)</script> is text in a page
horizon = 0.1
failure_probability = 0.3
confidence = 0.9
[starts]
angle = [0.5, 2.5]
angle_rate = [-1, 1]
[parameters.relative]
mass = [0.8, 1.2]
"""


def experiment(run: Path, folder: Path, text: str) -> Experiment:
    """Experiment with the run and a specification."""
    path = folder / "spec.toml"
    path.write_text(text)
    return Experiment(policy_reference(run), path)


def test_bound_exceeds_the_exact_failure_rate_as_often_as_its_confidence(finished_run: Path, tmp_path: Path) -> None:
    """The failure rate is exact by the midpoint rule over the only state that varies. 200 certificates at 95 %."""
    plain = experiment(finished_run, tmp_path, LINE)
    angle = 0.5 + 2.0 * (np.arange(2000) + 0.5) / 2000
    x = torch.tensor(np.stack([angle, 0.0 * angle], 1), dtype=torch.float32)
    returns = plain.outcomes(x, plain.problem.theta.repeat(2000, 1), np.zeros(2000, int)).returns
    below = float(np.quantile(returns, 0.3))
    bound = (
        f"failure_probability = 0.5\nconfidence = 0.95\nallowed_failures = 5\nfailure = {{return_below = {below!r}}}\n"
    )
    tested = experiment(finished_run, tmp_path, bound + LINE)
    rate = float((returns < below).mean())
    assert 0.25 < rate < 0.35
    bounds = np.array([prove(tested, seed).failure_bound for seed in range(200)])
    assert (bounds < rate).sum() <= 16
    assert np.median(bounds) < 0.65  # the bound is not trivial


def certify(run: Path, folder: Path, *words: str) -> int:
    """Exit code of `solver certify` with the specification CUBE."""
    (folder / "spec.toml").write_text(CUBE)
    return main(
        ["certify", str(run), str(folder / "spec.toml"), "--out", str(folder / "worst.json"), "--jobs", "1", *words]
    )


def test_solver_certify_reports_a_worst_case_that_solver_replay_repeats_exactly(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert certify(finished_run, tmp_path, "--json", "--html", str(page)) == 1  # no rollout arrives in 0.1 s
    report = json.loads(capsys.readouterr().out)
    assert report["distribution"] == CUBE
    assert report["adversaries"]["episodes"] == report["adversaries"]["failures"] == 200
    assert report["episodes"] == report["failures"] == 7  # the fewest with 0.7^N <= 0.1
    assert (report["confidence"], report["failure_bound"], report["holds"]) == (0.9, 1.0, False)
    worst_case = report["worst"]
    assert not worst_case["success"]
    assert worst_case["return"] <= worst_case["random_return"]
    nominal = load_rollout_policy(finished_run)[0].theta.tolist()
    assert worst_case["parameters"]["mass"] == pytest.approx(nominal[0], rel=0.21)
    text = page.read_text()
    assert "200 of 200 rollouts failed" in text
    assert "game of the training and no test of the robot" in text
    assert text.count('<figure role="img"') == 2
    assert "angle = [0.5, 2.5]" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "http" not in text

    assert main(["replay", str(tmp_path / "worst.json"), "--out", str(tmp_path / "again")]) == 0
    output = capsys.readouterr()
    assert f"return {worst_case['return']!r}," in output.out
    assert output.err == ""
    rows = list(csv.reader((tmp_path / "again.csv").open()))
    assert rows[0] == ["time", "angle", "angle_rate", "torque"]
    assert list(map(float, rows[1][1:3])) == list(worst_case["start"].values())
    assert {path.suffix for path in tmp_path.glob("again.*")} == {".png", ".csv", ".gif"}
    assert main(["replay", str((tmp_path / "worst.json").rename(tmp_path / "worst.csv"))]) == 2
    assert "worst.csv" in capsys.readouterr().err
    counterexample = load(tmp_path / "worst.csv")
    title = str(motion(counterexample, *replay(counterexample)).get_suptitle())
    assert f"mass {worst_case['parameters']['mass']:.4g}, length" in title
    assert title.endswith(", a failure")


def test_replay_prints_its_own_verdict(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever return and verdict the file states."""
    found = worst.worst_case(finished_run, experiment(finished_run, tmp_path, LINE), 0).worst
    assert not found.success
    for total, success in [(found.total, True), (-1.0, False), (-1.0, True)]:
        save(tmp_path / "edited.json", dataclasses.replace(found, total=total, success=success))
        assert main(["replay", str(tmp_path / "edited.json")]) == 0
        output = capsys.readouterr()
        assert f"return {found.total!r}, a failure" in output.out
        assert f"return {total!r}" in output.err
        assert "edited" in output.err


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"parameters": {"mass": -1.0, "length": 1.0}}, "set mass to -1"),
        ({"start": {"angle": 1.0, "angle_rate": 99.0}}, "angle_rate beyond the limit"),
        ({"conditions": Conditions("nominal", (), False, (), 1e-3)}, "seconds is 0.001; give a time from 0.04"),
    ],
)
def test_an_edit_that_no_robot_allows_is_not_replayed(finished_run: Path, edit: dict[str, Any], words: str) -> None:
    conditions = Conditions("nominal", (), False, (), 0.1)
    state, theta = {"angle": 1.0, "angle_rate": 0.0}, {"mass": 1.0, "length": 1.0}
    hashed, rule = checkpoint_hash(finished_run), FailureRule(True, (), None)
    written = Counterexample(str(finished_run), "pendulum", hashed, conditions, rule, 0, state, theta, -1.0, False)
    assert len(replay(written)[1].x) == 3
    with pytest.raises(SolverError, match=words):
        replay(dataclasses.replace(written, **edit))


def test_search_finds_a_lower_return_than_random_samples(finished_run: Path, tmp_path: Path) -> None:
    """The return decreases with the distance from upright, so that the worst start is a corner of the box."""
    wide = experiment(finished_run, tmp_path, LINE.replace("[0, 0]", "[0, 6]").replace("0.5, 2.5", "0.5, 1.5"))
    result = worst.worst_case(finished_run, wide, 0)
    assert result.worst.total < result.random.total
    assert list(result.worst.start.values()) == pytest.approx([1.5, 6.0], abs=1e-3)


def test_search_finds_a_worst_noise_that_is_stored(finished_run: Path, tmp_path: Path) -> None:
    """All rollouts have the same start. Fewer than 2 % of other noises give a lower return."""
    one = 'plant = "harsh"\neffects = ["noise=50x"]\n' + LINE.replace("0.5, 2.5", "2.5, 2.5")
    noisy = experiment(finished_run, tmp_path, one)
    counterexample = worst.worst_case(finished_run, noisy, 0).worst
    x = torch.tensor([[2.5, 0.0]]).repeat(300, 1)
    theta, noise = noisy.problem.theta.repeat(300, 1), noises(300, 1, Purpose.CERTIFICATE)
    noise[7] = counterexample.noise
    returns = noisy.outcomes(x, theta, noise).returns
    assert returns.std() > 1e-3
    assert (np.delete(returns, 7) < counterexample.total).mean() < 0.02
    assert returns[7] == pytest.approx(counterexample.total, rel=1e-5)
    assert replay(counterexample)[1].returns.item() == counterexample.total


def test_level_is_the_lowest_value_above_all_failures() -> None:
    height, failed = np.array([4.0, 3.0, 2.0, 1.0]), np.array([False, False, True, False])
    assert worst._level(height, failed) == 3.0
    assert worst._level(height, ~failed) is None
    assert worst._level(height, failed & ~failed) == 1.0


def test_replay_of_another_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "{}", "[]", '{"conditions": {"effects": 3}}'):
        for path in (tmp_path / "a.json", tmp_path / "a.csv"):  # of which a replay would write the second
            path.write_text(text)
            assert main(["replay", str(path)]) == 2
            assert f"{path.name} is not a counterexample" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [-1, True])
def test_a_seed_that_is_no_number_from_zero_on_is_an_error(seed: int) -> None:
    with pytest.raises(SolverError, match=r"seed is .*; give an integer from 0"):
        solver.load("pendulum-rfvi").certify(seed=seed)


def test_certificate_of_a_run_without_a_checkpoint_is_an_error(
    run_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_copy / "checkpoint.pt").unlink()
    assert certify(run_copy, tmp_path) == 2
    assert "checkpoint.pt" in capsys.readouterr().err


def test_an_error_of_a_certificate_leaves_no_thread_at_work(finished_run: Path, tmp_path: Path) -> None:
    """Python aborts, with exit code 134, if it ends while a thread is in compiled code."""
    path = tmp_path / "spec.toml"
    path.write_text("failure_probability = 2e-6\n" + LINE)
    before = threading.active_count()
    with pytest.raises(SolverError, match="needs 6907749 rollouts"):
        solver.load(finished_run).certify(path)
    assert threading.active_count() == before


def test_starts_of_a_level_set_are_uniform_over_rotations(load: Callable[[str], CompiledRobot]) -> None:
    """The angle of a uniform rotation has the distribution (a - sin a)/pi."""
    problem, seen = Problem(load("satellite")), []

    def outcomes(x: torch.Tensor, *_: object) -> Outcomes:
        seen.append(x)
        return Outcomes(np.zeros(len(x)), np.zeros(len(x), bool))

    nominal = np.array(problem.robot.nominal_parameters, float)
    specification = SimpleNamespace(distribution=SimpleNamespace(parameters=Uniform(nominal, nominal)))
    tested: Any = SimpleNamespace(problem=problem, specification=specification, outcomes=outcomes)
    worst.level_set(tested, lambda x: (-x.square().sum(1), x), 0.95, 0)
    angle = problem.geometry.error(seen[0], problem.target)[:, :3].norm(dim=1).div(2).clamp(max=1).asin().mul(2).numpy()
    share = [float((angle < a).mean()) for a in (1.0, 1.5, 2.0, 2.5)]
    np.testing.assert_allclose(share, [(a - np.sin(a)) / np.pi for a in (1.0, 1.5, 2.0, 2.5)], atol=0.03)
