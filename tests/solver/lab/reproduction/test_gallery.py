"""The gallery: rows that come with the runs, and what a later call keeps of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from modelgen.artifact.folder import SHIPPED, known
from solver.cli import main
from solver.commands.reproduce import Options, carry_out
from solver.errors import SolverError
from solver.lab.reproduction import by_run
from solver.lab.reproduction.by_run import Gallery
from solver.lab.reproduction.experiments import Choice, make_plan
from solver.lab.reproduction.runs import run_plan
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.problem.robots import load_robot
from solver.runs.kinds import load_rollout_policy
from solver.streams import EVALUATION_SEED
from solver.training.settings import make_settings
from solver.training.solution import load_run
from tests.solver.lab.reproduction.small_plans import NEVER, choice, quiet, train_here

Capture = pytest.CaptureFixture[str]
START = {"angle": 3.1, "angle_rate": 0.0}


def store_limit(out: Path, limit: float = -5.0) -> None:
    """A limit of the pendulum, as an earlier call wrote it."""
    artifact = load_robot("pendulum", "cpu", None).hash
    start = {"start": START, "limit": limit, "idle_return": -25.0, "guess": "an idle robot"}
    content = {"artifact": artifact, "limit": limit, "idle_return": -25.0, "starts": [start]}
    out.mkdir(parents=True, exist_ok=True)
    (out / "gallery.json").write_text(json.dumps({"limits": {"pendulum": content}, "rows": []}))


class Found:
    """What a search returns, as far as the gallery reads it: limits and the run's returns from some starts."""

    def __init__(self, limits: tuple[float, ...], own: tuple[float, ...], held: bool = False) -> None:
        self.limits, self.own, self.held = limits, own, held

    def results(self) -> dict[str, Any]:
        """As of `Limit.results`."""
        starts: list[dict[str, Any]] = [
            {
                "start": START,
                "idle_return": -50.0,
                "limit": limit,
                "guess": "",
                "run_return": own,
                "run_held": self.held,
            }
            for limit, own in zip(self.limits, self.own, strict=True)
        ]
        return {"starts": starts, "run_return": sum(self.own) / len(self.own)}


def no_search(*_: object) -> None:
    """No run is better than the limit that is stored."""
    raise AssertionError("a limit is searched again")


@pytest.fixture(scope="module")
def trained(short: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both runs of the small plan; tests must not change them."""
    folder = tmp_path_factory.mktemp("gallery") / "runs"
    with chdir(Path(short).parent):
        train_here(make_plan("gallery", "small", small()).trainings, folder)
    return folder


def rows(out: Path) -> list[dict[str, Any]]:
    return list(json.loads((out / "gallery.json").read_text())["rows"])


def small(**more: Any) -> Choice:
    return choice(robots=("pendulum",), seeds=(0,), **more)


@pytest.mark.slow
def test_gallery_plans_all_robots_with_default_settings() -> None:
    """Both algorithms on every shipped robot; no setting is another but algorithm, seed and threads."""
    plan = make_plan("gallery", "small", Choice(threads=2))
    assert list(plan.robots) == known(SHIPPED)
    assert [(t.robot, t.method) for t in plan.trainings] == [(r, m) for r in plan.robots for m in ("cfvi", "rfvi")]
    training = plan.trainings[-1]
    robot = load_robot(training.robot, "cpu", None)
    assert training.settings == make_settings("fast", robot, algorithm="rfvi", seed=0, threads=2)


@pytest.mark.slow
def test_gallery_page_has_the_statistics_of_the_rollouts(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_limit(tmp_path)
    monkeypatch.setattr(by_run, "find_limit", no_search)
    options = Options("gallery", robots=["pendulum"], seeds=[0], runs=trained, out=tmp_path, jobs=1)
    assert carry_out(options, small()) == 0
    assert capsys.readouterr().out.splitlines()[0] == "0 trained, 2 reused"
    text = (tmp_path / "gallery.md").read_text()
    assert "`solver reproduce gallery --budget small --robots pendulum --seeds 0`" in text
    assert "Missing" not in text
    folders = {load_run(path).settings.algorithm: path for path in (trained).glob("pendulum-*")}
    for row in rows(tmp_path):
        problem, act, _ = load_rollout_policy(folders[row["algorithm"]])
        expected = summary(rollouts(problem, act, sample_starts(problem, 3, EVALUATION_SEED)))
        assert {name: row[name] for name in ("return_mean", "success_rate", "limit_rate")} == pytest.approx(
            {name: expected[name] for name in ("return_mean", "success_rate", "limit_rate")}
        )
        start = problem.target.new_tensor([list(START.values())])
        chosen = float(rollouts(problem, act, start).returns[0])
        assert row["chosen_return"] == pytest.approx(chosen, abs=1e-3)
        gap = -5.0 - chosen
        assert f"| {row['return_mean']:.2f} | {5 * gap:.1f} |" in text
    before = (tmp_path / "gallery.json").read_text()
    edited = json.loads(before)
    edited["rows"][0]["machine"] = "another"  # kept, since the run is the same
    del edited["rows"][0]["settings"]  # as versions wrote it that did not know them
    (tmp_path / "gallery.json").write_text(json.dumps(edited))
    carry_out(options, small())
    assert [row["machine"] == "another" for row in rows(tmp_path)] == [True, False]
    announced: list[str] = []
    Gallery(make_plan("gallery", "small", small()), tmp_path, options.command(), announced.append).write()
    assert announced == ["pendulum, cfvi, 0: trained with other settings than today's"]


@pytest.mark.slow
def test_seeds_of_a_robot_share_a_line_and_notes_stay(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_limit(tmp_path)
    monkeypatch.setattr(by_run, "find_limit", no_search)
    made = Gallery(make_plan("gallery", "small", small()), tmp_path, "solver reproduce gallery", quiet)
    run_plan(made.plan.trainings, trained, 1, quiet, command=NEVER, finished=made.add)
    (row,) = (row for row in made.rows.values() if row.algorithm == "cfvi")
    other = dataclasses.replace(row, seed=1, return_mean=-7.125, success_rate=1.0 - row.success_rate, minutes=0.0)
    made.rows[other.key] = other
    page = tmp_path / "gallery.md"
    page.write_text(f"{page.read_text()}A note.\n".replace("# Results: gallery", "# Mine"))
    made.write()
    text = page.read_text()
    assert f"| pendulum | 0 % | {(row.return_mean - 7.125) / 2:.2f} |" in text
    assert f"| {row.minutes:.1f} |" in text
    assert text.count("## Every robot") == 1
    assert text.startswith("# Mine\n\n<!-- made by solver reproduce: gallery -->\n## Every robot")
    assert text.endswith("<!-- end of gallery -->\n\nA note.\n")
    page.write_text(text.replace("<!-- end of gallery -->", ""))
    with pytest.raises(SolverError, match="'<!-- end of gallery -->'"):
        made.write()


@pytest.mark.slow
def test_row_is_written_before_the_next_training_ends(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a training that fails is named as missing."""
    store_limit(tmp_path)
    monkeypatch.setattr(by_run, "find_limit", no_search)
    plan = make_plan("gallery", "small", small())
    for run in trained.glob("pendulum-cfvi-*"):
        shutil.copytree(run, tmp_path / "runs" / run.name)
    made = Gallery(plan, tmp_path, "solver reproduce gallery", quiet)
    runs = run_plan(plan.trainings, tmp_path / "runs", 1, quiet, command=NEVER, finished=made.add)
    assert len(runs.failures) == 1
    assert [row["algorithm"] for row in rows(tmp_path)] == ["cfvi"]  # by add alone
    assert "**Missing:** pendulum, seed 0, not trained to the end: rfvi." in (tmp_path / "gallery.md").read_text()


def test_best_known_limit_is_kept(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By start: of the searches from the first run, of those from the second, and of the runs as they are."""
    calls: list[int] = []
    found = [Found((-30.0, -20.0), (-40.0, -20.5)), Found((-28.0, -20.5), (-41.0, -19.0))]

    def search(_: str, __: list[str], guesses: int, *___: object) -> Found:
        calls.append(guesses)
        return found[len(calls) - 1]

    monkeypatch.setattr(by_run, "find_limit", search)
    plan = make_plan("gallery", "small", small())
    made = Gallery(plan, tmp_path, "solver reproduce gallery", quiet)
    run_plan(plan.trainings, trained, 1, quiet, command=NEVER, finished=made.add)
    assert calls == [24, 0]  # random motions only the first time
    limit = json.loads((tmp_path / "gallery.json").read_text())["limits"]["pendulum"]
    assert [each["limit"] for each in limit["starts"]] == [-28.0, -19.0]
    assert limit["limit"] == pytest.approx(-23.5)
    text = (tmp_path / "gallery.md").read_text()
    assert "| 25.5 |" in text  # the first run's -30.25
    assert "| 24.5 | -23.50 |" in text


def test_limit_from_other_starts_removes_the_gaps_of_earlier_rows(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_limit(tmp_path, -500.0)  # from one start, and worse than the run
    calls: list[tuple[int, int]] = []

    def search(_: str, __: list[str], guesses: int, ___: int, ____: str | None, starts: int) -> Found:
        calls.append((guesses, starts))
        return Found((-30.0, -20.0), (-40.0, -20.5))

    monkeypatch.setattr(by_run, "find_limit", search)
    made = Gallery(make_plan("gallery", "small", small()), tmp_path, "solver reproduce gallery", quiet)
    training, folder = made.plan.trainings[0], next(trained.glob("pendulum-cfvi-*"))
    made.add(training, folder)
    assert calls == [(0, 1), (24, 5)]
    assert made.limits["pendulum"]["limit"] == -25.0
    earlier = ("pendulum", "rfvi", 7)
    (row,) = made.rows.values()
    store_limit(tmp_path, -500.0)
    made = Gallery(made.plan, tmp_path, made.command, quiet)
    made.rows[earlier] = dataclasses.replace(row, algorithm="rfvi", seed=7)
    made.add(training, folder)
    assert made.rows[earlier].chosen_return is None
    assert made.rows[row.key].chosen_return == -30.25


@pytest.mark.parametrize("held", [False, True])
def test_run_with_a_state_held_at_its_limit_does_not_raise_the_best_return(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    monkeypatch.setattr(by_run, "find_limit", lambda *_: Found((-30.0,), (-20.0,), held))
    made = Gallery(make_plan("gallery", "small", small()), tmp_path, "solver reproduce gallery", quiet)
    run_plan(made.plan.trainings, trained, 1, quiet, command=NEVER, finished=made.add)
    assert made.limits["pendulum"]["limit"] == (-30.0 if held else -20.0)


def test_robot_without_a_limit_has_no_gap(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def none_found(robot: str, *_: object) -> None:
        calls.append(robot)
        raise SolverError("no motion")

    monkeypatch.setattr(by_run, "find_limit", none_found)
    plan = make_plan("gallery", "small", small())
    made = Gallery(plan, tmp_path, "solver reproduce gallery", quiet)
    run_plan(plan.trainings, trained, 1, quiet, command=NEVER, finished=made.add)
    assert len(calls) == 2
    assert [row["chosen_return"] for row in rows(tmp_path)] == [None, None]
    assert "pendulum has no limit: no motion" in (tmp_path / "gallery.md").read_text()


def test_damaged_gallery_json_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "gallery.json").write_text("{}")
    words = ["reproduce", "gallery", "--robots", "pendulum", "--methods", "rfvi", "--report-only"]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    assert "gallery.json is damaged or from another version" in capsys.readouterr().err
