"""What is said after a training that did not solve its task: one remedy for each thing that its metrics show."""

from __future__ import annotations

from pathlib import Path

import pytest

from solver.cli import main
from solver.training.diagnosis import diagnosis

ROW = {
    "iteration": 4.0,
    "value_error": 0.2,
    "target_mean": -10.0,
    "return_mean": -20.0,
    "success_rate": 0.7,
    "limit_rate": 0.0,
    "selection_success": 0.5,
    "selection_quarters": 0.25,
    "selection_return": -21.0,
}


def said(kept: dict[str, float], *rows: dict[str, float]) -> str:
    return diagnosis(kept, [{"value_error": 3.0, "target_mean": -1.0}, *rows], -50.0, "robot", Path("run"))


def test_a_solved_task_needs_no_words() -> None:
    assert said(ROW | {"selection_success": 0.96}, ROW) == ""


def test_no_damage_of_the_metrics_changes_a_success() -> None:
    """The kept policy was rolled out; its rows only explain."""
    better = ROW | {"selection_success": 1.0, "success_rate": 1.0}
    cases: list[list[dict[str, float]]] = [[], [{}], [better], [better, {"iteration": 9.0}]]
    for rows in cases:
        assert "succeeds in 70 % of the rollouts, and in 50 % of those" in diagnosis(ROW, rows, -50.0, "r", Path("run"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0.0, 0.08)], "by 8 % of what"),
        ([(0.0, 0.08), (0.0, 0.02)], ""),  # polished since
        ([(0.0, 0.02), (1.0, 0.3)], ""),  # what the adversaries cost
        ([(0.0, 0.07), (1.0, 0.3)], "by 7 % of what"),
    ],
)
def test_a_rough_v_of_a_solved_task(rows: list[tuple[float, float]], words: str) -> None:
    solved = ROW | {"selection_success": 1.0}
    text = said(solved, *(solved | {"adversary": share, "value_mismatch": mismatch} for share, mismatch in rows))
    assert bool(text) == bool(words)
    assert words in text


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"limit_rate": 0.4}, "--limit-cost"),
        ({"value_error": 2.0}, "--width"),
        ({"return_mean": -49.0}, "solver limit robot"),
        ({}, "--step-periods"),
    ],
)
def test_every_symptom_has_its_remedy_and_no_other(changes: dict[str, float], remedy: str) -> None:
    remedies = {"--limit-cost", "--width", "--learning-rate", "solver limit robot", "--step-periods"}
    text = said(ROW | changes, ROW | changes)
    assert {each for each in remedies if each in text} == {remedy}
    assert "succeeds in 70 % of the rollouts, and in 50 % of those that chose it" in text
    assert "solver train robot --from run" in text


def test_a_success_lost_in_later_iterations_is_reported() -> None:
    text = said(ROW, ROW, ROW | {"iteration": 9.0, "selection_success": 0.1})
    assert "Later iterations lost" in text
    assert "succeeds in 70 % of the rollouts, and in 50 % of those that chose it" in text


def test_the_command_says_it(tiny_options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "pendulum", *tiny_options, "--out", str(tmp_path / "run")]) == 0
    assert "warning: the kept policy succeeds in 0 %" in capsys.readouterr().err
