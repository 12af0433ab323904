"""Artifacts and recordings with random damage: a ModelError that names the file, or a robot that computes."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import modelgen
from modelgen import ModelError
from modelgen.artifact import folder as artifact
from modelgen.cli import main
from modelgen.identification import experiment, recordings
from modelgen.identification.columns import columns
from tests.modelgen.support.cases import fuzzed
from tests.modelgen.support.damage import Damage, Mistake, damaged, damages, mistaken, mistakes
from tests.modelgen.support.forgery import forged
from tests.modelgen.support.identified_files import identified
from tests.modelgen.test_fuzz_files import explained

OURS = artifact.SHIPPED / "pendulum"
KINDS = ("manifest", "program", "kernels")
LOG = "time,angle,angle_rate,torque\n" + "".join(f"{k / 100},{k / 300},{1 / 3},{k % 2}\n" for k in range(60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of the pendulum; a test puts back what it damages."""
    copied = tmp_path_factory.mktemp("artifacts") / "pendulum"
    return Path(shutil.copytree(OURS, copied, ignore=shutil.ignore_patterns("__pycache__")))


def opened(folder: Path, where: str = "") -> None:
    """A robot that computes, or one paragraph."""
    try:
        robot = modelgen.load("pendulum", directory=folder.parent, parallel=False)
        n, m = len(robot.state_names), len(robot.input_names)
        assert robot.dynamics(np.ones((2, n)), np.zeros((2, m))).shape == (2, n)
        assert robot.drawing.segments(np.ones((2, n))).shape[0] == 2
        assert robot.javascript()
    except ModelError as error:
        explained(error, where)


@fuzzed
@given(st.sampled_from(KINDS), damages, st.booleans())
def test_damaged_files(folder: Path, kind: str, damage: Damage, forge: bool) -> None:
    """With hashes that say so, and with the right ones."""
    (path,) = folder.glob(f"{kind}*")
    try:
        path.write_bytes(damaged(path.read_bytes(), damage))
        if forge and kind != "manifest":
            forged(folder)
        opened(folder, str(folder))
    finally:
        for renamed in folder.glob("program_*.json"):
            renamed.unlink()
        shutil.copytree(OURS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


@fuzzed
@given(mistakes)
def test_manifests_of_other_types(folder: Path, mistake: Mistake) -> None:
    """The hash is the right one: an attacker writes it too."""
    before = (folder / artifact.MANIFEST).read_bytes()

    def change(manifest: dict[str, Any]) -> None:
        other = mistaken(manifest, mistake)
        manifest.clear()
        manifest.update(other)

    try:
        with contextlib.suppress(UnicodeEncodeError):  # half of a character cannot be written, nor hashed
            forged(folder, change)
        opened(folder)
    finally:
        (folder / artifact.MANIFEST).write_bytes(before)


REPORTS: dict[str, dict[str, Any]] = {
    artifact.REPORT: {"seconds": {"checks": 0.1}, "source_bytes": {"program": 2000}},
    artifact.PROOF: {"date": "2026-01-01", "modelgen": 9, "passed": 3, "failed": 0, "skipped": 1, "seconds": 2.0},
}


@fuzzed
@given(st.sampled_from([*REPORTS]), mistakes)
@pytest.mark.slow
def test_reports_of_other_types(folder: Path, name: str, mistake: Mistake) -> None:
    """`modelgen show` prints the artifact whatever stands in the reports beside it."""
    belongs = {"artifact": artifact.read(folder).hash} if name == artifact.PROOF else {}
    (folder / name).write_text(json.dumps(mistaken(REPORTS[name], mistake) | belongs))
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(["show", "pendulum", "--generated", str(folder.parent)]) == 0
    finally:
        (folder / name).unlink()
    assert "angle_rate" in printed.getvalue()


@fuzzed
@given(st.lists(damages, min_size=1, max_size=3))
def test_damaged_recordings(folder: Path, several: list[Damage]) -> None:
    path, content = folder.parent / "log.csv", LOG.encode()
    robot = modelgen.load("pendulum").metadata
    for damage in several:
        content = damaged(content or b"\0", damage)
    path.write_bytes(content)
    try:
        found = recordings.read(path, robot, columns((), robot))
    except ModelError as error:
        explained(error, "log.csv")
        return
    assert np.isfinite(found.time).all()


@fuzzed
@given(mistakes)
@example((2, ["x"]))
def test_identified_files_of_other_types(folder: Path, mistake: Mistake) -> None:
    robot = modelgen.load("pendulum")
    content = identified(robot)
    path = folder.parent / "identified.json"
    path.write_text(json.dumps(mistaken(content, mistake)))
    try:
        assert np.isfinite(experiment.read(path, robot).shape).all()
    except ModelError as error:
        explained(error, "identified.json")
