"""`solver reproduce all`: which rows are stale, and that each is written when its runs are finished."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solver.cli import main
from solver.commands.reproduce import Options, make_all
from solver.errors import SolverError
from solver.lab.reproduction import by_run
from solver.lab.reproduction.everything import PARTS, Everything, code_hash, substance
from solver.lab.reproduction.experiments import Choice, Plan, make_plan
from solver.lab.reproduction.results_page import SECTIONS
from solver.lab.reproduction.runs import run_plan
from tests.solver.lab.reproduction.small_plans import choice, quiet
from tests.solver.lab.reproduction.test_gallery import no_search, store_limit

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.slow


@pytest.fixture
def options(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Of a call whose runs are all trained by the code of today."""
    store_limit(tmp_path / "out")
    monkeypatch.setattr(by_run, "find_limit", no_search)
    shutil.copytree(trained, tmp_path / "runs" / code_hash())
    return Options("all", runs=tmp_path / "runs", out=tmp_path / "out", resume=True, jobs=1)


def plans() -> list[Plan]:
    return [make_plan("gallery", "small", choice(robots=("pendulum",))), make_plan("table1", "small", choice())]


def stale(options: Options) -> list[str]:
    """Lines of the rows that would be made."""
    return list(Everything(options.out, Choice(), plans=plans()).lines(options.runs))[:-1]


def made(options: Options) -> list[dict[str, Any]]:
    return list(json.loads((options.out / "made.json").read_text())["rows"])


def edit(options: Options, number: int, **changes: Any) -> None:
    """Change a row of made.json."""
    rows = made(options)
    rows[number] |= changes
    (options.out / "made.json").write_text(json.dumps({"rows": rows}))


def test_only_rows_with_another_artifact_settings_or_code_are_made_again(
    options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [line.partition(":")[0] for line in stale(options)] == [
        *(f"gallery pendulum {method} {seed}" for seed in (0, 1) for method in ("cfvi", "rfvi")),
        *(f"table1 pendulum {method}" for method in ("cFVI", "rFVI", "RTDP cFVI", "RTDP rFVI")),
    ]
    assert all(line.endswith("not made; 0 to train, 0 min") for line in stale(options))
    assert make_all(options, Choice(), plans()) == 0
    assert capsys.readouterr().out.startswith("0 trained")
    assert stale(options) == []
    chosen = Everything(options.out, Choice(), ["pendulum"], ["cfvi"], plans()).lines(options.runs, anew=True)
    assert [line.partition(":")[0] for line in chosen][:-1] == [
        *(f"gallery pendulum cfvi {seed}" for seed in (0, 1)),
        "table1 pendulum cFVI",
    ]
    rows = made(options)
    assert len(rows) == 12
    last = [json.loads(line) for line in next(options.runs.glob("*/pendulum-cfvi-*seed0/metrics.jsonl")).open()][-1]
    assert rows[0]["return_mean"] in [last["return_mean"], *(row["return_mean"] for row in rows[1:])]
    assert "## Table 1" in (options.out / "paper.md").read_text()
    assert "Missing" not in (options.out / "gallery.md").read_text()
    assert "Made by `solver reproduce all`" in (options.out / "gallery.md").read_text()

    edit(options, 0, settings="another")
    edit(options, 1, artifact="another", code="another")
    edit(options, -1, code="another")
    assert stale(options) == [
        "gallery pendulum cfvi 0: settings; 0 to train, 0 min",
        "gallery pendulum cfvi 1: artifact, code; 0 to train, 0 min",
        "table1 pendulum rFVI: code; 0 to train, 0 min",  # both seeds make the row
    ]
    (options.out / "paper.md").unlink()
    assert make_all(options, Choice(), plans()) == 0
    assert stale(options) == []
    assert made(options) == rows
    assert (options.out / "paper.md").is_file()

    edit(options, 0, code="0123456789ab")
    edit(options, 1, code="older")
    (options.runs / code_hash()).rename(options.runs / "0123456789ab")
    assert len(stale(options)) == 2
    same = Options("all", runs=options.runs, out=options.out, resume=True, dry_run=True, unchanged="0123456789ab")
    make_all(same, Choice(), plans())
    assert "1 rows have the code of today" in capsys.readouterr().out
    assert stale(options) == ["gallery pendulum cfvi 1: code; 0 to train, 0 min"]
    assert [folder.name for folder in options.runs.iterdir()] == [code_hash()]


def test_a_row_is_written_before_a_later_training_fails(options: Options) -> None:
    for folder in (options.runs / code_hash()).glob("pendulum-rfvi-*"):
        shutil.rmtree(folder)
    every = Everything(options.out, Choice(), plans=plans()[:1])
    fails = (sys.executable, "-c", "raise SystemExit(9)")
    train = partial(run_plan, parent=options.runs / code_hash(), jobs=1, announce=quiet, command=fails)
    (runs,) = every.make(train, "solver reproduce all", quiet)
    assert [failure.code for failure in runs.failures] == [9, 9]
    assert [(row["method"], row["seed"]) for row in made(options)] == [("cfvi", 0), ("cfvi", 1)]
    assert [line.split(":")[0] for line in stale(options)][:2] == ["gallery pendulum rfvi 0", "gallery pendulum rfvi 1"]
    assert list(every.lines(options.runs))[-1].endswith(": 0 min")
    (options.out / "made.json").unlink()
    (options.out / "gallery.json").unlink()  # no training has a time that is known
    every = Everything(options.out, Choice(), plans=plans()[:1])
    assert list(every.lines(options.runs))[-1] == "2 trainings one after the other, without evaluations: unknown time"


def test_code_is_compared_without_comments_and_doc_strings() -> None:
    one = '''"""A module."""\n\nX = 1  # one\n\n\ndef f():\n    """Of f."""\n    return "# two"\n'''
    assert substance(one) == 'X = 1\ndef f():\n    return "# two"'
    assert substance(one.replace("Of f", "Of g")) == substance(one) != substance(one.replace("two", "three"))


def test_every_section_of_the_pages_is_made() -> None:
    """What a command made in docs/results is a part of `all`."""
    marks = [
        line.split()[-2].removesuffix("-small").removesuffix("-full")
        for page in (ROOT / "docs" / "results").glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("<!-- made by solver reproduce: ")
    ]
    assert sorted(marks) == sorted(SECTIONS)
    assert {experiment for experiment, *_ in PARTS} == set(SECTIONS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("all --seeds 0 --shipped", "has its own budgets and seeds; leave out --seeds --shipped"),
        ("all --unchanged 0123456789ab", "give both"),
        ("all --resume --unchanged 0123456789ab", "made.json has this hash; they have none"),
        ("all --dry-run --robots pendulun", "--robots pendulun: no result has it. Names: acrobot, "),
        ("table1 --dry-run", "--dry-run is an option of `solver reproduce all`"),
    ],
)
def test_mistake_in_the_options_is_named(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["reproduce", *words.split(), "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_a_name_that_no_result_has_is_refused() -> None:
    with pytest.raises(SolverError, match="methods td3"):
        Everything(Path("out"), Choice(), methods=("TD3", "rfvi"), plans=plans())
