"""Limit of a task over its starts, compared with the Riccati recursion, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from solver.cli import main
from solver.oracles.limit import find_limit
from tests.solver.oracles.linear_quadratic import riccati

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def test_mean_limit_over_the_starts_is_the_mean_over_the_gaussian(slider: str) -> None:
    """E[x' P x] = mean' P mean + deviation^2 P_11. Quantiles of variance 1 give it exactly."""
    limit = find_limit("slider", {}, 0, 0, slider, starts=3)
    exact, _, p = riccati(np.array([0.5, 0.0]), 1.3, 0.4)
    starts = [start_limit.start for start_limit in limit.starts]
    assert len(starts) == 3
    assert limit.reward == pytest.approx(exact - 0.1**2 * p[0, 0], rel=1e-5)
    assert limit.worst == int(np.argmax([x[0] for x in starts]))
    # Without a force the slider stays where it is, at a cost of 2 s^2 for 3 s.
    assert limit.idle_return == pytest.approx(-6.0 * np.mean([x[0] ** 2 for x in starts]), rel=1e-4)


def test_solver_limit_of_a_run_prints_the_gap_to_the_limit(gallery_run: Path, capsys: Capture) -> None:
    assert main(["limit", str(gallery_run), "--guesses", "0", "--starts", "2", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["robot"] == "pendulum"
    assert content["label"].startswith("pendulum-rfvi")
    assert content["gap"] == pytest.approx(content["limit"] - content["run_return"])
    assert content["gap"] > 0.0
    gain = content["limit"] - content["idle_return"]
    assert content["gap_percent"] == pytest.approx(100.0 * content["gap"] / gain)
    assert -32.0 < content["limit"] < -29.5
    assert content["at_target"] is True
    angles, limits = zip(*((start["start"]["angle"], start["limit"]) for start in content["starts"]), strict=True)
    assert len(limits) == 2
    assert np.mean(angles) == pytest.approx(np.pi)
    assert np.std(angles) == pytest.approx(np.sqrt(0.001))
    assert content["limit"] == pytest.approx(np.mean(limits))


def test_solver_limit_warns_if_the_best_motion_does_not_end_at_the_target(slider: str, capsys: Capture) -> None:
    words = ["limit", "slider", "--generated", slider, "--guesses", "1", "--set", "mass=2", "--starts"]
    assert main([*words, "1"]) == 0
    out, err = capsys.readouterr()
    exact = riccati(np.array([0.5, 0.0]), 2.0, 0.4)[0]
    assert out.startswith(f"slider, mass=2, limit {exact:.3f} (from ")
    assert err.startswith("warning: ")
    assert main([*words, "2"]) == 0
    out, err = capsys.readouterr()
    assert "(mean of 2 starts;" in out
    assert out.count("not at the target") == 1
    assert out.count(", worst") == 1
    assert "1 of 2 starts" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pendulm"], "Did you mean `pendulum`"),
        (["pendulum", "--guesses", "-1"], "--guesses"),
        (["pendulum", "--starts", "0"], "--starts"),
        (["pendulum", "--seed", "-1"], "--seed"),
        (["pendulum", "--set", "mas=2"], "Did you mean `mass`"),
    ],
)
def test_wrong_option_of_solver_limit_is_an_error(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["limit", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_solver_limit_of_a_folder_without_a_run_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    assert main(["limit", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
