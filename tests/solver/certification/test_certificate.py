"""Certificates of a tiny run: honest against a quadrature, a worst case that is one, and a replay to the last digit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from solver.certification import level_set, worst
from solver.certification.certificate import prove
from solver.certification.counterexample import load, replay
from solver.certification.experiment import Experiment, noises
from solver.certification.recording import motion
from solver.cli import main
from solver.jobs.portions import policy
from solver.runs.kinds import load_controller
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rollouts."""
    monkeypatch.setattr(level_set, "POINTS", 5)
    monkeypatch.setattr(level_set, "SAMPLES", 100)
    monkeypatch.setattr(worst, "BATCH", 20)
    monkeypatch.setattr(worst, "GENERATIONS", 8)


def experiment(run: Path, folder: Path, text: str) -> Experiment:
    """The run under a specification."""
    path = folder / "spec.toml"
    path.write_text(text)
    return Experiment(policy(run), path)


def test_the_bound_is_honest(finished_run: Path, tmp_path: Path) -> None:
    """The exact failure rate by the midpoint rule over the only state that varies; 200 certificates at 95 %."""
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
    assert np.median(bounds) < 0.65  # and it says something


def certify(run: Path, folder: Path, *words: str) -> int:
    """The command, on CUBE."""
    (folder / "spec.toml").write_text(CUBE)
    return main(["certify", str(run), str(folder / "spec.toml"), "--out", str(folder / "worst.json"), *words])


@pytest.mark.usefixtures("small")
def test_report_worst_case_and_replay(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert certify(finished_run, tmp_path, "--json", "--html", str(page)) == 1  # nothing arrives in 0.1 s
    report = json.loads(capsys.readouterr().out)
    assert report["distribution"] == CUBE
    assert report["adversaries"]["episodes"] == report["adversaries"]["failures"] == 200
    assert report["episodes"] == report["failures"] == 7  # the fewest with 0.7^N <= 0.1
    assert (report["confidence"], report["failure_bound"], report["holds"]) == (0.9, 1.0, False)
    found = report["worst"]
    assert not found["success"]
    assert found["return"] <= found["random_return"]
    nominal = load_controller(finished_run)[0].theta.tolist()
    assert found["parameters"]["mass"] == pytest.approx(nominal[0], rel=0.21)
    text = page.read_text()
    assert 'src="data:image/png;base64,' in text
    assert "angle = [0.5, 2.5]" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "http" not in text

    assert main(["replay", str(tmp_path / "worst.json"), "--out", str(tmp_path / "again")]) == 0
    said = capsys.readouterr()
    assert f"return {found['return']!r}," in said.out
    assert said.err == ""
    rows = list(csv.reader((tmp_path / "again.csv").open()))
    assert rows[0] == ["time", "angle", "angle_rate", "torque"]
    assert list(map(float, rows[1][1:3])) == list(found["start"].values())
    assert {path.suffix for path in tmp_path.glob("again.*")} == {".png", ".csv", ".gif"}
    assert main(["replay", str((tmp_path / "worst.json").rename(tmp_path / "worst.csv"))]) == 2
    assert "would replace a file that is read" in capsys.readouterr().err
    worst = load(tmp_path / "worst.csv")
    title = str(motion(worst, *replay(worst)).get_suptitle())
    assert f"mass {found['parameters']['mass']:.4g}, length" in title
    assert title.endswith(", a failure")


def test_the_search_finds_what_random_samples_do_not(finished_run: Path, tmp_path: Path) -> None:
    """The return falls with the distance from upright, so that the worst start is the box's corner."""
    wide = experiment(finished_run, tmp_path, LINE.replace("[0, 0]", "[0, 6]").replace("0.5, 2.5", "0.5, 1.5"))
    found = worst.worst_case(finished_run, wide, 0)
    assert found.found.total < found.random.total
    assert list(found.found.start.values()) == pytest.approx([1.5, 6.0], abs=1e-3)


def test_the_noise_belongs_to_the_worst_case(finished_run: Path, tmp_path: Path) -> None:
    """From one start, where the noise is all that differs, fewer than 2 % of other noises do worse."""
    one = 'plant = "harsh"\neffects = ["noise=50x"]\n' + LINE.replace("0.5, 2.5", "2.5, 2.5")
    noisy = experiment(finished_run, tmp_path, one)
    found = worst.worst_case(finished_run, noisy, 0).found
    x = torch.tensor([[2.5, 0.0]]).repeat(300, 1)
    theta, noise = noisy.problem.theta.repeat(300, 1), noises(300, 1, Purpose.CERTIFICATE)
    noise[7] = found.noise
    returns = noisy.outcomes(x, theta, noise).returns
    assert returns.std() > 1e-3
    assert (np.delete(returns, 7) < found.total).mean() < 0.02
    assert returns[7] == pytest.approx(found.total, rel=1e-5)
    assert replay(found)[1].returns.item() == found.total


def test_a_level_set_holds_what_it_says() -> None:
    height, failed = np.array([4.0, 3.0, 2.0, 1.0]), np.array([False, False, True, False])
    assert level_set._level(height, failed) == 3.0
    assert level_set._level(height, ~failed) is None
    assert level_set._level(height, failed & ~failed) == 1.0


def test_a_file_that_holds_no_counterexample_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    for text in ("", "{}", "[]", '{"conditions": {"effects": 3}}'):
        path.write_text(text)
        assert main(["replay", str(path)]) == 2
        assert "counterexample" in capsys.readouterr().err


def test_a_run_without_a_checkpoint_is_refused(
    run_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_copy / "checkpoint.pt").unlink()
    assert certify(run_copy, tmp_path) == 2
    assert "holds no checkpoint.pt" in capsys.readouterr().err
