"""The live line of a training: on a terminal it says how far it is, elsewhere nothing."""

from __future__ import annotations

import pytest

from solver.commands.progress import progress

ROWS = [
    {"iteration": 0.0, "value_error": 0.5},
    {"iteration": 1.0, "value_error": 0.25, "return_mean": -31.25, "success_rate": 0.5},
    {"iteration": 2.0, "value_error": 0.125},
]


@pytest.mark.parametrize("terminal", [True, False])
def test_iterations(terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "200")
    with progress(0, 4) as report:
        for row in ROWS:
            report(row)
    out, err = capsys.readouterr()
    assert out == ""
    shown = ("iteration", "3/4", "value error 0.125", "return -31.2, success 50 %")
    assert [text in err for text in shown] == [terminal] * 4
    assert bool(err) is terminal


def test_actions_of_a_baseline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    with progress(100, 400, "action") as report:
        report({"steps": 300.0, "return_mean": -20.0, "success_rate": 1.0})
    assert "300/400" in capsys.readouterr().err
