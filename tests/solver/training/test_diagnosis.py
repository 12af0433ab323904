"""Diagnoses of trainings that did not solve their task: one remedy for each symptom in the metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from solver.cli import main
from solver.training.lifecycle import advice, roughness

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


SUCCESSES = {"70 %", "50 %"}  # of the evaluation, and of the selection


def numbers_of(text: str) -> set[str]:
    """Percentages in a text."""
    return set(re.findall(r"\d+ %", text))


def text_of(kept: dict[str, float], *rows: dict[str, float]) -> str:
    return advice(kept, [{"value_error": 3.0, "target_mean": -1.0}, *rows], -50.0, "robot", Path("run"))


def test_solved_task_has_no_diagnosis() -> None:
    assert roughness([ROW], Path("run")) == ""


def test_damaged_metrics_do_not_change_the_success() -> None:
    """The kept policy was rolled out; its rows only explain."""
    better = ROW | {"selection_success": 1.0, "success_rate": 1.0}
    damaged: list[list[dict[str, float]]] = [[], [{}], [better], [better, {"iteration": 9.0}]]
    for rows in damaged:
        assert numbers_of(advice(ROW, rows, -50.0, "r", Path("run"))) >= SUCCESSES


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0.0, 0.08)], " 8 % of"),
        ([(0.0, 0.08), (0.0, 0.02)], ""),  # polished since
        ([(0.0, 0.02), (1.0, 0.3)], ""),  # what the adversaries cost
        ([(0.0, 0.07), (1.0, 0.3)], ""),
    ],
)
def test_rough_v_of_a_solved_task_is_reported(rows: list[tuple[float, float]], words: str) -> None:
    text = roughness([ROW | {"adversary": share, "value_mismatch": of} for share, of in rows], Path("run"))
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
def test_symptom_has_its_remedy_only(changes: dict[str, float], remedy: str) -> None:
    remedies = {"--limit-cost", "--width", "--learning-rate", "solver limit robot", "--step-periods"}
    text = text_of(ROW | changes, ROW | changes)
    assert {option for option in remedies if option in text} == {remedy}
    assert numbers_of(text) >= SUCCESSES
    assert "solver train robot --start-from run" in text


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (-250.0, "It costs 5 times as much as no input"),
        (-75.0, "It costs 1.5 times as much as no input"),
        (-51.0, "It costs about as much as no input"),
        (-49.0, "It costs about as much as no input"),
    ],
)
def test_a_bad_return_is_called_what_it_is(mean: float, words: str) -> None:
    """-50 is the return of no input."""
    assert words in text_of(ROW | {"return_mean": mean}, ROW)


def test_no_input_that_costs_nothing_has_no_multiple() -> None:
    assert "It costs more than no input" in advice(ROW, [ROW], 0.0, "robot", Path("run"))


def test_two_shares_of_successes_say_what_they_are_of() -> None:
    """The rule for limits is told only where a limit was met."""
    text = text_of(ROW | {"success_rate": 0.75, "selection_success": 0.58, "limit_rate": 0.1}, ROW)
    assert "succeeds in 75 % of the rollouts." in text
    assert "chose it by other rollouts, in which its share of successes was 58 %; there a success that met a" in text
    assert "two thirds" not in text_of(ROW, ROW)


def test_lost_success_is_reported() -> None:
    text = text_of(ROW, ROW, ROW | {"iteration": 9.0, "selection_success": 0.1})
    assert "--learning-rate" in text
    assert numbers_of(text) >= SUCCESSES


@pytest.mark.slow
def test_solver_train_prints_a_diagnosis(
    tiny_options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "pendulum", *tiny_options, "--out", str(tmp_path / "run")]) == 0
    warning = capsys.readouterr().err.partition("warning:")[2]
    assert "0 %" in warning
    assert f"solver train pendulum --start-from {tmp_path / 'run'}" in warning
