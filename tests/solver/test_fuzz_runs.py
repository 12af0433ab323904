"""Run folders and the files of `solver` with random damage: a SolverError or ModelError that names the file."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modelgen.errors import ReliabilityWarning
from solver.lab.baselines.settings import BASELINE, BaselineSettings, load_baseline
from solver.lab.reproduction import by_run, robustness, table1
from solver.lab.reproduction.results_page import read_known, read_rows
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT, METRICS
from solver.runs.metrics import read_metrics, training_seconds
from solver.training import lifecycle
from solver.training.lifecycle import advice
from solver.training.solution import RUN, load_run, load_run_checkpoint, load_solution
from tests.modelgen.support.cases import fuzzed
from tests.modelgen.support.damage import VALUES, Damage, Mistake, damaged, damages, mistaken, mistakes
from tests.solver.refusal import refused_or


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


@dataclass(frozen=True)
class Answers:
    """Everything that a loaded run answers."""

    label: str
    parameters: list[float]
    inputs: list[list[float]]


def answers(run: Path) -> Answers:
    solution = load_solution(run)
    x = solution.problem.sample_domain(20, torch.Generator().manual_seed(0))
    return Answers(solution.label, solution.problem.theta.tolist(), solution.controller()(x)[0].tolist())


@pytest.mark.slow
@fuzzed
@given(st.sampled_from([RUN, CHECKPOINT, METRICS]), damages)
def test_damaged_run_folders(run: Path, name: str, damage: Damage) -> None:
    """Refused, or the same answers; a warning says that rows of the metrics are lost."""
    before = answers(run)
    with replaced(run / name, damaged((run / name).read_bytes(), damage)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ReliabilityWarning)
        assert refused_or(lambda: answers(run), "the_run") in (None, before)
        assert all(isinstance(row, dict) for row in read_metrics(run, ("iteration",)))


@pytest.mark.slow
@fuzzed
@given(mistakes)
def test_run_descriptions_of_other_values(run: Path, mistake: Mistake) -> None:
    """Of other types, and of the same type: refused, or the same answers."""
    before, text = answers(run), json.dumps(mistaken(json.loads((run / RUN).read_text()), mistake))
    with replaced(run / RUN, text.encode()):
        assert refused_or(lambda: answers(run), "") in (None, before)


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


@fuzzed
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
    assert "50 %" in advice(EVALUATION, found, -50.0, "pendulum", folder)
    for row in read_metrics(folder, ("iteration", "return_mean")):
        assert int(row["iteration"]) < 10**301


@fuzzed
@given(mistakes)
def test_rows_of_certificates_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    text = {"robot", "method", "distribution", "machine", "commit", "checkpoint", "specification"}
    other = {"seed": 0, "failures": 1, "worst_success": False}
    names = [each.name for each in fields(by_run.CertificateRow)]
    row = {name: "x" if name in text else other.get(name, 0.5) for name in names}
    path = tmp_path_factory.getbasetemp() / "certificates.json"
    path.write_text(json.dumps({"rows": [row]}))
    assert read_rows(path, by_run.CertificateRow)[0].failures == 1
    path.write_text(json.dumps(mistaken({"rows": [row]}, mistake)))
    refused_or(lambda: read_rows(path, by_run.CertificateRow), "certificates.json")


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@fuzzed
@given(mistakes)
def test_rows_of_table_1_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    path = tmp_path_factory.getbasetemp() / "table1.json"
    path.write_text(json.dumps(mistaken(json.loads((RESULTS / "table1-full.json").read_text()), mistake)))
    refused_or(lambda: read_rows(path, table1.TableRow), "table1.json")


@fuzzed
@given(mistakes)
def test_robustness_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    ours = RESULTS / "fig-robustness-full" / "furuta-nominal.json"
    path = tmp_path_factory.getbasetemp() / "robustness.json"
    path.write_text(json.dumps(mistaken(json.loads(ours.read_text()), mistake)))
    refused_or(lambda: read_known(path, robustness._read), "robustness.json")


ODD = (*VALUES, torch.zeros(0, 0), torch.tensor(float("nan")), torch.ones(3, dtype=torch.int64))


@pytest.mark.slow
@fuzzed
@given(st.tuples(st.integers(0, 10**4), st.sampled_from(ODD)))
def test_checkpoints_of_other_types(run: Path, mistake: Mistake) -> None:
    """Refused, or the same policy. Whether a resumed training takes it too is answered before it begins."""
    before, content = answers(run), mistaken(torch.load(run / CHECKPOINT, weights_only=True), mistake)
    with replaced(run / CHECKPOINT, b""):
        torch.save(content, run / CHECKPOINT)
        found = refused_or(lambda: answers(run), "the_run")
        assert found is None or found.inputs == before.inputs
        refused_or(lambda: lifecycle._session(load_run(run), run, checkpoint=load_run_checkpoint(run)), "")


@pytest.mark.timeout(20)
def test_checkpoint_of_lists_in_lists_is_read_at_once(run: Path) -> None:
    """Each list holds the one before it many times by reference: walked without a memory, they have no end."""
    content = torch.load(run / CHECKPOINT, weights_only=True)
    part: list[Any] = [torch.zeros(1)]
    for _ in range(40):
        part = [part] * 10
    with replaced(run / CHECKPOINT, b""):
        torch.save(content | {"visited": part}, run / CHECKPOINT)
        refused_or(lambda: load_solution(run), "the_run")


@fuzzed
@given(mistakes)
def test_gallery_reports_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    path = tmp_path_factory.getbasetemp() / "gallery.json"
    path.write_text(json.dumps(mistaken(json.loads((RESULTS / "gallery.json").read_text()), mistake)))
    refused_or(lambda: by_run._read(path), "gallery.json")


@fuzzed
@given(mistakes)
def test_descriptions_of_baselines_of_other_types(tmp_path_factory: pytest.TempPathFactory, mistake: Mistake) -> None:
    folder = tmp_path_factory.getbasetemp() / "the_baseline"
    folder.mkdir(exist_ok=True)
    usual = {"robot": "pendulum", "artifact_hash": "0" * 64, "generated": None, "settings": asdict(BaselineSettings())}
    (folder / BASELINE).write_text(json.dumps(usual))
    assert load_baseline(folder).robot == "pendulum"
    (folder / BASELINE).write_text(json.dumps(mistaken(usual, mistake)))
    refused_or(lambda: load_baseline(folder), "")


@fuzzed
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
