"""Run folders and the files of `solver` with random damage: a SolverError or ModelError that names the file."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import warnings
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from solver.certification import counterexample, specification
from solver.errors import SolverError
from solver.lab.baselines.run import BASELINE, load_baseline
from solver.lab.baselines.settings import BaselineSettings
from solver.lab.reproduction import certificates, gallery, robustness, table1
from solver.lab.reproduction.rows import read_known, read_rows
from solver.lab.sweeps import specification as sweeps
from solver.problem.problem import Problem
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT, METRICS
from solver.runs.metrics import read_metrics, training_seconds
from solver.training import diagnosis as stall
from solver.training.run import RUN
from solver.training.solution import load_solution
from tests.modelgen.support.damage import Damage, Mistake, damaged, damages, mistaken, mistakes


def refused_or(read: Callable[[], object], where: str) -> None:
    """It is read, or one paragraph names the file."""
    try:
        read()
    except (SolverError, ModelError) as refusal:
        text = str(refusal)
    else:
        return
    assert where in text
    assert 10 < len(text) < 3000


@pytest.fixture(scope="module")
def run(gallery_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder; a test puts back what it damages."""
    return Path(shutil.copytree(gallery_run, tmp_path_factory.mktemp("fuzz") / "the_run"))


@contextlib.contextmanager
def replaced(path: Path, content: bytes) -> Any:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


@given(st.sampled_from([RUN, CHECKPOINT, METRICS]), damages)
@settings(max_examples=60)
def test_damaged_run_folders(run: Path, name: str, damage: Damage) -> None:
    with replaced(run / name, damaged((run / name).read_bytes(), damage)):
        refused_or(lambda: load_solution(run), "the_run")
        assert all(isinstance(row, dict) for row in read_metrics(run, ("iteration",)))


@given(mistakes)
def test_run_descriptions_of_other_types(run: Path, mistake: Mistake) -> None:
    text = json.dumps(mistaken(json.loads((run / RUN).read_text()), mistake))
    with replaced(run / RUN, text.encode()):
        refused_or(lambda: load_solution(run), "")


EVALUATION = {
    "iteration": 4,
    "value_error": 0.3,
    "target_mean": -20.0,
    "seconds": 2.0,
    "kept": 5,
    "selection_success": 0.4,
    "return_mean": -30.0,
    "success_rate": 0.5,
    "limit_rate": 0.1,
}


@given(mistakes, st.booleans())
def test_logs_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake, first: bool) -> None:
    """What is read of a log are finite numbers, and whoever reads it takes it: plots, sweeps, reports, advice."""
    folder = tmp_path_factory.getbasetemp() / "the_log"
    folder.mkdir(exist_ok=True)
    rows = [dict(EVALUATION), {**EVALUATION, "iteration": 9}]
    rows[not first] = mistaken(rows[not first], mistake)
    (folder / METRICS).write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, [1.0], None, "x"]))
    found = read_metrics(folder)
    assert all(math.isfinite(value) for row in found for value in row.values())
    assert math.isfinite(training_seconds(folder))
    assert "succeeds in 50 %" in stall.diagnosis(EVALUATION, found, -50.0, "pendulum", folder)
    for row in read_metrics(folder, ("iteration", "return_mean")):
        assert int(row["iteration"]) < 10**301


@given(mistakes)
def test_rows_of_certificates_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    text = {"robot", "method", "distribution", "machine", "commit", "checkpoint", "specification"}
    other = {"seed": 0, "failures": 1, "worst_success": False}
    names = [each.name for each in fields(certificates.Row)]
    row = {name: "x" if name in text else other.get(name, 0.5) for name in names}
    path = tmp_path_factory.getbasetemp() / "certificates.json"
    path.write_text(json.dumps({"rows": [row]}))
    assert read_rows(path, certificates.Row)[0].failures == 1
    path.write_text(json.dumps(mistaken({"rows": [row]}, mistake)))
    refused_or(lambda: read_rows(path, certificates.Row), "certificates.json")


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@given(mistakes)
@settings(max_examples=60)
def test_rows_of_table_1_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    path = tmp_path_factory.getbasetemp() / "table1.json"
    path.write_text(json.dumps(mistaken(json.loads((RESULTS / "table1-full.json").read_text()), mistake)))
    refused_or(lambda: read_rows(path, table1.Row), "table1.json")


@given(mistakes)
@settings(max_examples=60)
def test_robustness_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    ours = RESULTS / "fig-robustness-full" / "furuta-nominal.json"
    path = tmp_path_factory.getbasetemp() / "robustness.json"
    path.write_text(json.dumps(mistaken(json.loads(ours.read_text()), mistake)))
    refused_or(lambda: read_known(path, robustness._read), "robustness.json")


@given(mistakes)
@settings(max_examples=60)
def test_checkpoints_of_other_types(run: Path, mistake: Mistake) -> None:
    content = mistaken(torch.load(run / CHECKPOINT, weights_only=True), mistake)
    with replaced(run / CHECKPOINT, b""):
        torch.save(content, run / CHECKPOINT)
        refused_or(lambda: load_solution(run), "the_run")


FOUND = {
    "run": "runs/demo",
    "robot": "pendulum",
    "checkpoint": "0" * 64,
    "conditions": {"plant": "nominal", "effects": ["stiction"], "horizon": 5.0, "observer": False},
    "noise": 3,
    "start": {"angle": 3.0, "angle_rate": 0.1},
    "parameters": {"mass": 1.0, "length": 1.0},
    "failure": {"not_at_target": True, "limits": [[0, 2.0]], "return_below": None},
    "total": -30.0,
    "success": True,
}


@given(mistakes)
def test_counterexamples_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    path = tmp_path_factory.getbasetemp() / "found.json"
    path.write_text(json.dumps(mistaken(FOUND, mistake)))
    refused_or(lambda: counterexample.load(path), "found.json")


@given(mistakes)
def test_gallery_reports_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    path = tmp_path_factory.getbasetemp() / "gallery.json"
    path.write_text(json.dumps(mistaken(json.loads((RESULTS / "gallery.json").read_text()), mistake)))
    refused_or(lambda: gallery._read(path), "gallery.json")


@given(mistakes)
def test_descriptions_of_baselines_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    folder = tmp_path_factory.getbasetemp() / "the_baseline"
    folder.mkdir(exist_ok=True)
    usual = {"robot": "pendulum", "artifact_hash": "0" * 64, "generated": None, "settings": asdict(BaselineSettings())}
    (folder / BASELINE).write_text(json.dumps(usual))
    assert load_baseline(folder).robot == "pendulum"
    (folder / BASELINE).write_text(json.dumps(mistaken(usual, mistake)))
    refused_or(lambda: load_baseline(folder), "")


@given(mistakes)
def test_figures_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    """Those of a shipped policy, which `solver policies` prints."""
    content = json.loads((shipped.FOLDER / "pendulum-rfvi" / shipped.FIGURES).read_text())
    folder = tmp_path_factory.getbasetemp() / "pendulum-rfvi"
    folder.mkdir(exist_ok=True)
    (folder / shipped.FIGURES).write_text(json.dumps(mistaken(content, mistake)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped, "FOLDER", folder.parent)
        refused_or(lambda: shipped.read_figures("pendulum-rfvi"), "figures.json")


@given(mistakes)
def test_sets_of_parameters_of_other_types(
    load: Callable[[str], CompiledRobot], tmp_path_factory: pytest.TempPathFactory, mistake: Mistake
) -> None:
    """A file of `modelgen identify` that a specification of `solver certify` names."""
    folder, problem = tmp_path_factory.getbasetemp(), Problem(load("pendulum"))
    region = {"names": ["mass", "length"], "centre": [1.0, 1.0], "shape": [[1e-2, 0.0], [0.0, 1e-2]]}
    content = mistaken({"robot": "pendulum", "ellipsoid": region}, mistake)
    (folder / "identified.json").write_text(json.dumps(content))
    path = folder / "with_a_set.toml"
    path.write_text('parameters = {identified = "identified.json"}\n')
    refused_or(lambda: specification.read(path, problem), "")


SWEEP = (
    b'robots = ["pendulum"]\nseeds = [0, 1]\n[settings.usual]\nalgorithm = "rfvi"\n'
    b"adversaries = {state = 0.02}\nthreads = 1\n"
)


@given(st.lists(damages, min_size=1, max_size=3))
def test_damaged_specifications(
    load: Callable[[str], CompiledRobot], tmp_path_factory: pytest.TempPathFactory, several: list[Damage]
) -> None:
    path, problem = tmp_path_factory.getbasetemp() / "spec.toml", Problem(load("pendulum"))
    for usual, read in (
        (SWEEP, sweeps.read),
        (specification.USUAL.encode(), lambda path: specification.read(path, problem)),
    ):
        content = usual
        for damage in several:
            content = damaged(content or b"\0", damage)
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused_or(lambda read=read: read(path), "spec.toml")  # type: ignore[misc]
