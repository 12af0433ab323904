"""Certificates as rows of a table: what `solver certify` finds with the same file, and what a later call keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solver.cli import main
from solver.commands.reproduce import Options, carry_out
from solver.lab.reproduction import by_run
from solver.lab.reproduction.by_run import specifications
from solver.lab.reproduction.experiments import Choice, make_plan
from tests.solver.lab.reproduction.small_plans import choice, train_here

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]
COUNT = 299  # the fewest rollouts without a failure that show 1 % at 95 %: 0.99^299 < 0.05


def small() -> Choice:
    return choice(robots=("pendulum",), seeds=(0,), methods=("cFVI",))


def shorter(robot: str, generated: str | None) -> Iterator[tuple[str, str]]:
    """The specifications with a horizon of 0.4 s."""
    return ((name, f"horizon = 0.4\n{text}") for name, text in specifications(robot, generated))


def rows(out: Path) -> list[dict[str, Any]]:
    return list(json.loads((out / "certificates.json").read_text())["rows"])


def test_rows_equal_certificates_of_the_runs(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_run, "specifications", shorter)
    plan = make_plan("certificates", "small", small())
    runs, out = tmp_path / "runs", tmp_path / "out"
    train_here(plan.trainings, runs)
    options = Options("certificates", robots=["pendulum"], seeds=[0], methods=["cFVI"], runs=runs, out=out, jobs=1)
    assert carry_out(options, small()) == 0
    capsys.readouterr()
    found = {row["distribution"]: row for row in rows(out)}
    assert list(found) == ["harsh", "harsh, observer", "nominal", "parameters"]
    text = (out / "robustness.md").read_text()
    (folder,) = runs.glob("pendulum-*")
    row, file = found["parameters"], out / "certificates" / "pendulum-parameters.toml"
    assert file.read_text() == row["specification"]
    main(["certify", str(folder), str(file), "--json", "--out", str(tmp_path / "worst.json"), "--jobs", "1"])
    told = json.loads(capsys.readouterr().out)
    assert told["episodes"] == COUNT
    assert (row["failures"], row["failure_bound"]) == (told["failures"], told["failure_bound"])
    assert row["worst_return"] == told["worst"]["return"]
    bound = f" ({100 * row['failure_bound']:.1f} %)" if row["failures"] else ""
    cells = f"{row['worst_return']:.1f}{'' if row['worst_success'] else ' *'}; {row['failures']}/{COUNT}{bound}"
    assert f"| [pendulum, parameters](certificates/pendulum-parameters.toml) | {cells} |" in text
    assert "mass = [0.85, 1.15]" in found["parameters"]["specification"]

    kept = json.loads((out / "certificates.json").read_text())
    kept["rows"][0]["machine"], kept["rows"][1]["machine"] = "another", "another"
    kept["rows"][1]["specification"] += "# of an earlier version\n"
    (out / "certificates.json").write_text(json.dumps(kept))
    carry_out(options, small())
    assert [row["machine"] == "another" for row in rows(out)] == [True, False, False, False]


def test_damaged_certificates_json_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "certificates.json").write_text('{"rows": [{"robot": "pendulum"}]}')
    words = ["reproduce", "certificates", "--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]
    assert main(words) == 2
    assert "certificates.json is damaged or from another version" in capsys.readouterr().err
