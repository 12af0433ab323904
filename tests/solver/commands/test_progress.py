"""How far a training is: a live line on a terminal, and lines in a log."""

from __future__ import annotations

import re

import pytest

from solver.commands.training import progress

ROWS = [
    {"iteration": 0.0, "value_error": 0.5},
    {"iteration": 1.0, "value_error": 0.25, "return_mean": -31.25, "success_rate": 0.5},
    {"iteration": 2.0, "value_error": 0.125},
]


def reported(terminal: bool, rows: list[dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "200")
    with progress(0, 4) as report:
        for row in rows:
            report(row)


def test_iterations_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    reported(True, ROWS, monkeypatch)
    out, err = capsys.readouterr()
    assert out == ""
    for text in ("iteration", "3/4", "value error 0.125", "return -31.2, success 50 %"):
        assert text in err


def test_evaluations_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Iterations beyond the planned ones, which a training that waits makes, count."""
    reported(False, [*ROWS, ROWS[1] | {"iteration": 4.0, "waited": 2.0}], monkeypatch)
    out, err = capsys.readouterr()
    assert out == ""
    evaluated = "value error 0.250  return -31.2, success 50 %  (S s)"
    assert re.sub(r"\d+ s", "S s", err).splitlines() == [f"iteration 2/4  {evaluated}", f"iteration 5/6  {evaluated}"]


def test_actions_of_a_baseline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    with progress(100, 400, "action") as report:
        report({"steps": 300.0, "return_mean": -20.0, "success_rate": 1.0})
    assert "300/400" in capsys.readouterr().err
