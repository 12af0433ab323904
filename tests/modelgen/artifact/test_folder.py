"""Artifacts: whole at every moment, and nothing wrong with one goes unnoticed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.artifact.manifest import GENERATOR_VERSION, from_json, to_json
from modelgen.backends import MODULES
from modelgen.builder import BuildReport, build_from_equations
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import ArtifactError
from tests.modelgen.support import mechanisms
from tests.modelgen.support.forgery import forged

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(artifacts: Path, tmp_path: Path) -> Path:
    """A copy of the pendulum's artifact that a test may damage."""
    shutil.copytree(artifacts / "pendulum", tmp_path / "pendulum", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "pendulum"


def _file(folder: Path, beginning: str) -> Path:
    (path,) = folder.glob(f"{beginning}_*")
    return path


def _build(directory: Path, equations: EquationsOfMotion | None = None, name: str = "pendulum") -> BuildReport:
    equations = equations or mechanisms.pendulum()
    return build_from_equations(equations, mechanisms.metadata(name, equations), "0" * 64, directory)


def _changed() -> EquationsOfMotion:
    equations = mechanisms.pendulum()
    return type(equations)(**{**vars(equations), "force": 2 * equations.force})


def test_manifest_survives_its_json(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    assert to_json(from_json(text)) == text


def test_a_whole_artifact_has_no_findings(folder: Path) -> None:
    assert artifact.check("pendulum", folder.parent, "0" * 64) == []


def test_hash_names_content(folder: Path, artifacts: Path) -> None:
    assert artifact.read(folder).hash == artifact.read(artifacts / "pendulum").hash
    manifest = artifact.read(folder)
    assert replace(manifest, model_hash="1" * 64).hash != manifest.hash
    assert replace(manifest, program="1" * 64).hash != manifest.hash
    assert replace(manifest, metadata=replace(manifest.metadata, name="other")).hash != manifest.hash
    assert replace(manifest, files={"kernels_0.py": "0"}, generator_version=0).hash == manifest.hash


@pytest.mark.parametrize("backend", MODULES)
@pytest.mark.parametrize("how", ["edited", "truncated", "missing"])
def test_a_damaged_program_is_found_and_not_loaded(folder: Path, backend: Any, how: str) -> None:
    path = _file(folder, "program")
    _damage(path, how)
    (finding,) = artifact.check("pendulum", folder.parent)
    assert path.name in finding
    with pytest.raises(ArtifactError, match=rf"{path.name}.*Run `modelgen build pendulum --generated"):
        modelgen.load("pendulum", backend=backend, directory=folder.parent)


@pytest.mark.parametrize("beginning", ["kernels", "jacobians"])
@pytest.mark.parametrize("how", ["edited", "truncated", "missing"])
def test_a_damaged_file_beside_the_program_is_found(folder: Path, beginning: str, how: str) -> None:
    """Nothing is loaded from it."""
    path = _file(folder, beginning)
    _damage(path, how)
    (finding,) = artifact.check("pendulum", folder.parent)
    assert path.name in finding
    modelgen.load("pendulum", backend="casadi", directory=folder.parent)


def _damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(content + b"\n" if how == "edited" else content[: len(content) // 2])


def test_a_program_of_another_robot_is_explained(folder: Path, artifacts: Path) -> None:
    content = _file(artifacts / "dense", "program").read_bytes()
    _file(folder, "program").write_bytes(content)
    forged(folder)
    with pytest.raises(ArtifactError, match=r"\bx .*6 .*2"):
        modelgen.load("pendulum", directory=folder.parent)


THIS = f'"generator_version": {GENERATOR_VERSION}'


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", f"{{{THIS}}}", f'{{{THIS}, "metadata": 3}}'])
def test_a_damaged_manifest_is_explained(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    (finding,) = artifact.check("pendulum", folder.parent)
    assert "is damaged" in finding
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        modelgen.load("pendulum", directory=folder.parent)


def test_any_truncation_of_the_manifest_is_an_artifact_error(folder: Path) -> None:
    path = folder / "manifest.json"
    content = path.read_bytes()
    for length in range(0, len(content) - 1, 97):
        path.write_bytes(content[:length])
        with pytest.raises(ArtifactError):
            artifact.read(folder)


def test_an_edited_manifest_is_found(folder: Path) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data, indent=2))
    assert any("was edited" in finding for finding in artifact.check("pendulum", folder.parent))


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values that are neither a list nor a mapping with something in it."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = [leaf for key, value in items for leaf in leaves(value, (*path, key))]
    return found or [path]


@pytest.mark.parametrize("value", [None, 7, -1.5, "mass", [], {}, True])
def test_no_edited_value_of_a_manifest_goes_unseen(folder: Path, value: Any) -> None:
    """A limit, a parameter, a checksum or a shape: what the kernels were made with is what is read, or nothing is."""
    path = folder / "manifest.json"
    text, written = path.read_text(), artifact.read(folder)
    for leaf in leaves(json.loads(text)):
        data = json.loads(text)
        inner = data
        for key in leaf[:-1]:
            inner = inner[key]
        inner[leaf[-1]] = value
        path.write_text(json.dumps(data, indent=1))
        try:
            found = artifact.read(folder)
        except ArtifactError:
            continue
        assert replace(found, files={}) == replace(written, files={}), leaf
        assert found == written or artifact.check("pendulum", folder.parent), leaf


def test_a_manifest_nested_without_end_is_an_artifact_error(folder: Path) -> None:
    (folder / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        artifact.read(folder)


def test_another_generator_version_is_stale(folder: Path) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    data["generator_version"] = 0
    path.write_text(json.dumps(data))
    (finding,) = artifact.check("pendulum", folder.parent)
    assert "generator version 0" in finding
    with pytest.raises(ArtifactError, match=rf"version 0, .*version {GENERATOR_VERSION}"):
        modelgen.load("pendulum", directory=folder.parent)


def test_another_model_content_and_a_strange_file_are_found(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    findings = artifact.check("pendulum", folder.parent, "1" * 64)
    assert any("another content of the model" in finding for finding in findings)
    assert any("notes.txt does not belong" in finding for finding in findings)


def test_an_artifact_that_is_not_there_gets_a_suggestion(folder: Path) -> None:
    with pytest.raises(ArtifactError, match=r"'pendulm'.*`pendulum`.*modelgen build"):
        artifact.find("pendulm", folder.parent)
    assert artifact.check("furuta", folder.parent)
    for name in ("", ".", "..", "../pendulum", "a/b"):
        with pytest.raises(ArtifactError):
            artifact.find(name, folder.parent)


def test_an_equal_build_leaves_files_alone(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != artifact.REPORT}
    _build(folder.parent)
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != artifact.REPORT}
    _build(folder.parent, _changed())
    assert artifact.check("pendulum", folder.parent) == []


@pytest.mark.parametrize("step", [0, 1, 3, 5, 7, 8, 9, 12, 15, 19])
def test_a_build_killed_at_any_step_leaves_an_artifact(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Either the old one or the new one, whole; the next build leaves nothing behind."""
    old, count = artifact.read(folder).hash, iter(range(1000))

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            if next(count) == step:
                raise KeyboardInterrupt
            return function(*arguments, **keywords)

        return wrapped

    monkeypatch.setattr(os, "replace", dying(os.replace))
    monkeypatch.setattr(Path, "write_bytes", dying(Path.write_bytes))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed build cleans nothing up
    try:
        _build(folder.parent, _changed())
        finished = True
    except KeyboardInterrupt:
        finished = False
    monkeypatch.undo()
    manifest = artifact.read(folder)
    assert finished or manifest.hash == old or step > 8
    artifact.program(folder, manifest)
    _build(folder.parent)
    assert artifact.check("pendulum", folder.parent) == []
    assert artifact.read(folder).hash == old


def test_kill_9_while_building_over_and_over(folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\n"
        "from tests.modelgen.artifact import test_folder as t\n"
        "print('go', flush=True)\n"
        "while True:\n"
        "    t._build(Path(sys.argv[1]), t._changed()); t._build(Path(sys.argv[1]))\n"
    )
    here = Path(__file__).parents[3]
    arguments = [sys.executable, "-c", code, str(folder.parent), str(here)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as building:
        assert building.stdout is not None
        building.stdout.readline()
        time.sleep(0.12)
        building.send_signal(signal.SIGKILL)
    artifact.program(folder, artifact.read(folder))


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only"), (errno.EACCES, "Permission")]
)
@pytest.mark.parametrize("target", ["write_bytes", "fsync", "replace"])
def test_a_folder_that_cannot_be_written_is_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: Any, words: str, target: str
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path if target == "write_bytes" else os, target, failing)
    with pytest.raises(ArtifactError, match=rf"cannot be written: {words}.*is unchanged"):
        _build(folder.parent, _changed())
    monkeypatch.undo()
    robot = modelgen.load("pendulum", directory=folder.parent)
    assert np.isfinite(robot.dynamics(np.ones((1, 2)), np.ones((1, 1)))).all()
    assert not list(folder.glob(".new-*"))


def test_builds_of_one_robot_at_once(tmp_path: Path) -> None:
    """Each has its turn: all succeed, and what stands in the end is one of them, whole."""
    code = "import sys\nfrom modelgen.cli import main\nsys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "build", "pendulum", "--generated", str(tmp_path)]
    children = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    assert [child.communicate()[1] for child in children] == [b""] * 2
    assert [child.returncode for child in children] == [0] * 2
    assert artifact.check("pendulum", tmp_path) == []
    assert not list((tmp_path / "pendulum").glob(".*"))


def test_a_file_where_the_folder_should_be_is_explained(tmp_path: Path) -> None:
    (tmp_path / "generated").write_text("a file")
    with pytest.raises(ArtifactError, match="generated"):
        _build(tmp_path / "generated")
