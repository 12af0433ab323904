"""What stands on the pages and in the figures."""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.cli import main
from solver.commands.reproduce import Options, carry_out
from solver.errors import SolverError
from solver.evaluation import evaluate
from solver.lab.reproduction import results_page
from solver.lab.reproduction.experiments import make_plan
from solver.lab.reproduction.report import learning_figure
from solver.lab.reproduction.results_page import SECTIONS
from solver.lab.reproduction.runs import LOCK, run_plan
from solver.plants import make_plant
from solver.plants.outcome import rollouts, sample_starts
from solver.problem.parameters import Relative
from solver.runs.kinds import load_rollout_policy
from solver.runs.metrics import read_metrics
from solver.streams import EVALUATION_SEED
from solver.training.solution import RUN, load_run
from tests.solver.lab.reproduction.small_plans import SMALL, choice, is_dp_rfvi, quiet, train_here

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def test_table_1_has_the_statistics_of_the_rollouts(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    options = Options("table1", runs=trained, out=tmp_path, jobs=2, seeds=[0, 1])
    carry_out(options, choice())
    assert capsys.readouterr().out.splitlines()[0] == "0 trained, 8 reused"
    text = (tmp_path / "paper.md").read_text()
    assert "`solver reproduce table1 --budget small --seeds 0 1`" in text
    assert "2 seeds (0, 1), **fewer than the paper's 5**" in text
    assert str(trained) not in text
    with (tmp_path / "table1-small.csv").open(newline="") as file:
        ((*_, paper), *lines) = csv.reader(file)
    assert paper == "Euler: action reward, paper"
    ((_, _, *cells),) = (line for line in lines if line[1] == "rFVI")
    rk4, euler = cells[:4], cells[4:]

    folders = [p.parent for p in trained.glob(f"*/{RUN}") if is_dp_rfvi(load_run(p.parent).settings)]
    folders.sort(key=lambda folder: load_run(folder).settings.seed)
    returns, _ = _pooled(folders, "nominal")
    assert len(returns.ravel()) == 6
    assert rk4[:2] == [f"{returns.mean():.1f} ± {1.96 * returns.std(ddof=1):.1f}", "0.0 %"]
    assert rk4[2:] == [f"{-30.4 - returns.mean():.1f}", ", ".join(f"{each.mean():.2f}" for each in returns)]

    under_euler, actions = _pooled(folders, "euler")
    assert not np.array_equal(under_euler, returns)
    assert euler[:2] == [f"{under_euler.mean():.1f} ± {1.96 * under_euler.std(ddof=1):.1f}", "-32.7 ± 0.3"]
    assert euler[2:4] == ["0.0 %", "100 %"]
    assert euler[6].startswith(f"{actions.mean():.1f} ±")
    assert f"| rFVI | {returns.mean():.1f} (0 %) | {under_euler.mean():.1f} (0 %) | -32.7 |" in text


def test_table_1_keeps_rows_of_earlier_calls(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    """Rows whose runs are gone stay; those of fewer seeds, or none, do not replace them."""

    def made(runs: Path, **more: Any) -> list[str]:
        carry_out(Options("table1", runs=runs, out=tmp_path, jobs=1, report_only=True), choice(**more))
        return (tmp_path / "paper.md").read_text().splitlines()

    empty = tmp_path / "empty"
    made(trained, methods=("cFVI",))
    before = made(trained, methods=("rFVI",), seeds=(0,))
    assert "- **Missing:** pendulum, seed 1, not trained to the end: rFVI." in made(empty, methods=("rFVI",))
    assert _table(made(empty, methods=("rFVI",))) == _table(before)
    whole = made(trained)
    assert "Missing" not in "".join(whole)
    assert _table(made(empty)) == _table(whole) == _table(made(trained, seeds=(1,)))
    rows = json.loads((tmp_path / "table1-small.json").read_text())["rows"]
    assert [(row["method"], row["seeds"]) for row in rows[:4]] == [
        *(("RTDP cFVI", [0, 1]), ("RTDP rFVI", [0, 1]), ("cFVI", [0, 1]), ("rFVI", [0, 1])),
    ]

    capsys.readouterr()
    made(empty, overrides={"episodes": 4})
    assert capsys.readouterr().err.count("other settings than today's") == 8


def _table(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("|")]


def test_robustness_keeps_methods_of_earlier_calls(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their figures are another test's, and are not drawn."""
    monkeypatch.setattr(results_page, "save_figure", lambda _, path: path)

    def made(runs: Path, **more: Any) -> str:
        carry_out(Options("fig-robustness", runs=runs, out=tmp_path, jobs=1, report_only=True), choice(**more))
        return (tmp_path / "robustness.md").read_text()

    empty = tmp_path / "empty"
    made(trained, methods=("rFVI",))
    made(trained, methods=("cFVI",))
    path = tmp_path / "fig-robustness-small/pendulum-nominal.json"
    apart = path.read_text()
    assert [group["label"] for group in json.loads(apart)["groups"]] == ["cFVI", "rFVI"]
    assert "Missing" not in made(empty)
    assert path.read_text() == apart
    made(trained, seeds=(1,))
    assert path.read_text() == apart

    older = json.loads(apart)  # runs of other settings have other names, and the same seeds
    for group in older["groups"]:
        group["runs"] = [f"older-seed{seed}" for seed in range(len(group["runs"]))]
        group["statistics"]["return_mean"]["value"][0] = -1.0
    path.write_text(json.dumps(older))
    made(trained)
    assert json.loads(path.read_text()) == json.loads(apart)

    content = json.loads(apart)
    content["groups"][0]["statistics"]["return_mean"]["value"].pop()
    no_number = json.loads(apart)
    no_number["groups"][0]["statistics"]["return_mean"]["value"][0] = "-"
    for text in ("[]", json.dumps(content), json.dumps(no_number)):
        path.write_text(text)
        with pytest.raises(SolverError, match=f"{path.name} .*out"):
            made(empty)


def _pooled(folders: list[Path], plant: str) -> tuple[Any, Any]:
    """Returns and action rewards (seeds, 3) of runs on a plant."""
    found = []
    for folder in folders:
        problem, act, _ = load_rollout_policy(folder)
        result = rollouts(problem, act, sample_starts(problem, 3, EVALUATION_SEED), make_plant(plant, problem))
        found.append((result.returns.double().numpy(), result.action_reward.double().numpy()))
    total, action = (np.stack(rows) for rows in zip(*found, strict=True))
    return total, action


def test_families_join_the_picture_of_an_earlier_call(trained: Path, tmp_path: Path) -> None:
    """Told the true mass, and told estimates of it: as `solver.evaluate` does, for the time of the task."""
    carry_out(Options("fig-parameters", runs=trained, out=tmp_path, jobs=1), choice(methods=("rFVI",)))
    families, runs = choice(methods=("Told", "Estimated")), tmp_path / "runs"
    train_here(make_plan("fig-parameters", "small", families).trainings, runs)
    carry_out(Options("fig-parameters", runs=runs, out=tmp_path, jobs=1), families)
    mass, _ = json.loads((tmp_path / "fig-parameters-small/pendulum.json").read_text())["parameters"]
    groups = {group["label"]: group for group in mass["groups"]}
    assert list(groups) == ["rFVI", "Told", "Estimated"]
    folders = [runs / name for name in groups["Told"]["runs"]]
    assert groups["Estimated"]["runs"] == groups["Told"]["runs"]
    k = [round(change, 6) for change in mass["axes"][0]["changes"]].index(1.3)
    ways: dict[str, Any] = {"Told": {}, "Estimated": {"observer": True, "estimate": ["told"]}}
    seconds = load_rollout_policy(folders[0]).problem.robot.metadata.task.horizon
    for label, way in ways.items():
        changed: dict[str, Any] = {"parameters": {"mass": Relative(1.3)}, "episodes": 3, "seconds": seconds}
        expected = [evaluate(folder, **changed, **way) for folder in folders]
        mean = np.mean([each.statistics["return_mean"] for each in expected])
        assert groups[label]["statistics"]["return_mean"]["value"][k] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(
    ("experiment", "figures"),
    [
        ("fig-value", ["-pendulum.png"]),
        ("fig-learning", [".png"]),
        ("fig-robustness", ["/pendulum-nominal.png"]),
        ("fig-parameters", ["/pendulum.png"]),
    ],
)
def test_figures_and_their_table_are_written(
    experiment: Any, figures: list[str], trained: Path, tmp_path: Path
) -> None:
    mine = choice(methods=("cFVI", "rFVI") if experiment == "fig-parameters" else ())
    carry_out(Options(experiment, runs=trained, out=tmp_path, jobs=1), mine)
    text = (tmp_path / f"{SECTIONS[experiment][0]}.md").read_text()
    for suffix in figures:
        name = f"{experiment}-small{suffix}"
        assert f"({name})" in text
        assert (tmp_path / name).stat().st_size > 20_000
    if experiment == "fig-learning":
        last = [
            read_metrics(p.parent)[-1]["return_mean"]
            for p in trained.glob(f"*/{RUN}")
            if is_dp_rfvi(load_run(p.parent).settings)
        ]
        assert f"| pendulum, rFVI | {np.mean(last):.1f} | {min(last):.1f} … {max(last):.1f} |" in text
    if experiment == "fig-parameters":
        results = json.loads((tmp_path / "fig-parameters-small/pendulum.json").read_text())["parameters"]
        assert [result["axes"][0]["parameter"] for result in results] == ["mass", "length"]
        assert "|  | cFVI | rFVI |\n| --- | ---: | ---: |\n| pendulum | 0 % | 0 % |" in text
        carry_out(Options(experiment, runs=tmp_path / "none", out=tmp_path, jobs=1, report_only=True), mine)
        assert (tmp_path / "robustness.md").read_text() == text  # from the JSON file, without runs
    if experiment == "fig-robustness":
        found = json.loads((tmp_path / "fig-robustness-small/pendulum-nominal.json").read_text())
        assert [group["label"] for group in found["groups"]] == ["cFVI", "rFVI"]
        k = [round(change, 6) for change in found["axes"][0]["changes"]].index(1.5)
        assert f"{found['groups'][1]['statistics']['return_mean']['value'][k]:.1f} (0 %)" in text
        assert "rFVI: x0.5 -20.7 (–), x1 -33.7, x1.3 -39.2 (–), x1.5 -48.4." in text


def test_robustness_on_the_harsh_plant_uses_the_observer(trained: Path, tmp_path: Path) -> None:
    budget = dataclasses.replace(SMALL, plants=("harsh",), episodes=30)
    few = dataclasses.replace(choice(), budget=budget, methods=("rFVI",))
    carry_out(Options("fig-robustness", runs=trained, out=tmp_path, jobs=1), few)
    (group,) = json.loads((tmp_path / "fig-robustness-small/pendulum-harsh.json").read_text())["groups"]
    means = [
        evaluate(
            trained / run, episodes=30, parameters={"mass": Relative(1.5)}, plant="harsh", observer=True
        ).statistics
        for run in group["runs"]
    ]
    expected = np.mean([mean["return_mean"] for mean in means])
    found = group["statistics"]["return_mean"]["value"][-1]
    assert found == pytest.approx(expected, rel=2e-3)  # other draws of the noise; without the observer 4 % apart


def test_finished_runs_are_reported_while_others_train(copied: Path) -> None:
    plan = make_plan("table1", "small", choice())
    with (copied / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SolverError, match="wait for it"):
            run_plan(plan.trainings, copied, 1, quiet)
        assert len(run_plan(plan.trainings, copied, 1, quiet, train=False).folders) == len(plan.trainings)


def test_legend_fits_a_narrow_figure(trained: Path) -> None:
    plan = make_plan("fig-learning", "small", choice())
    figure = learning_figure(plan, run_plan(plan.trainings, trained, 1, quiet, train=False))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 6  # four methods, and two lines of the paper's
    extent = legend.get_window_extent()
    assert figure.bbox.x0 <= extent.x0
    assert extent.x1 <= figure.bbox.x1


def test_ablation_draws_its_figure_and_reuses_equal_runs(copied: Path, tmp_path: Path) -> None:
    train_here(make_plan("fig-ablation", "small", choice(seeds=(0,))).trainings, copied)
    carry_out(Options("fig-ablation", runs=copied, out=tmp_path, jobs=2, seeds=[0]), choice(seeds=(0,)))
    text = (tmp_path / "paper.md").read_text()
    assert (tmp_path / "fig-ablation-small.png").stat().st_size > 20_000
    assert text.count("| pendulum, ") == 8
    row = {
        line.split("|")[1].strip(): line.split("|")[2] for line in text.splitlines() if line.startswith("| pendulum")
    }
    assert row["pendulum, DP, adversary ramped up, 0"] == row["pendulum, DP, full adversary at once, 0"]  # one run


def test_run_without_metrics_has_no_curve(copied: Path, tmp_path: Path) -> None:
    for k, log in enumerate(sorted(copied.glob("*/metrics.jsonl"))):
        log.write_text(log.read_text()[:-30] if k % 2 else "")
    carry_out(Options("fig-learning", runs=copied, out=tmp_path, jobs=1), choice())
    assert "| pendulum, rFVI |" in (tmp_path / "paper.md").read_text()


def test_report_without_runs_lists_the_missing_runs(tmp_path: Path, capsys: Capture) -> None:
    for experiment in ("table1", "fig-value", "fig-learning", "fig-robustness", "fig-ablation"):
        words = ["reproduce", experiment, "--report-only", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]
        assert main(words) == 0
        assert "0 trained, 0 reused" in capsys.readouterr().out
        assert "**Missing:** " in (tmp_path / "out" / f"{SECTIONS[experiment][0]}.md").read_text()
    assert main([*words, "--seeds", "0", "4"]) == 0
    missing = "- **Missing:** pendulum, seeds 0, 4, not trained to the end: DP, adversary ramped up, 0; DP, "
    assert missing in (tmp_path / "out" / "paper.md").read_text()
