"""An artifact that was built from another model file than the one beside it is named when it is opened."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.artifact.folder import SHIPPED
from modelgen.cli import main
from modelgen.errors import StaleArtifactWarning
from modelgen.files import shipped
from tests.modelgen.support.damage import Damage, damaged, damages

MODEL = (shipped("models") / "pendulum.py").read_bytes()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with ./models and no ./generated."""
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def warned(directory: Path | None = None) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = modelgen.load("pendulum", directory=directory)
    said = [entry for entry in caught if entry.category is StaleArtifactWarning]
    assert bool(robot.outdated) == bool(said)
    return bool(said)


@pytest.mark.slow
@given(st.none() | damages, st.booleans())
def test_every_other_text_of_the_model_file_is_named(
    tmp_path_factory: pytest.TempPathFactory, damage: Damage | None, windows: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / "house"
    if not folder.exists():
        (folder / "models").mkdir(parents=True)
        shutil.copytree(SHIPPED / "pendulum", folder / "generated" / "pendulum")
    content = MODEL if damage is None else damaged(MODEL, damage)
    (folder / "models" / "pendulum.py").write_bytes(content.replace(b"\n", b"\r\n") if windows else content)
    assert warned(folder / "generated") == (content != MODEL)


def test_model_of_the_user_with_a_shipped_name_that_was_never_built(house: Path) -> None:
    assert not warned()
    (house / "models" / "pendulum.py").write_bytes(MODEL)
    assert not warned()
    (house / "models" / "pendulum.py").write_bytes(MODEL.replace(b"horizon=5,", b"horizon=4,"))
    assert warned()


@pytest.mark.slow
def test_a_build_ends_it_and_an_edit_begins_it_again(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that the message names."""
    path = house / "models" / "pendulum.py"
    path.write_bytes(MODEL + b"# of mine\n")
    assert main(["show", "pendulum"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert main(line.split("`")[1].split()[1:]) == 0
    assert not warned()
    assert modelgen.load("pendulum").hash == modelgen.load("pendulum", directory=SHIPPED).hash
    path.write_bytes(MODEL)
    assert warned()


def test_robot_that_a_program_declared_is_compared_with_no_file(house: Path) -> None:
    from modelgen.derivation.model_file import load

    (house / "elsewhere").mkdir()
    (house / "elsewhere" / "pendulum.py").write_bytes(MODEL)
    robot = load(str(house / "elsewhere" / "pendulum.py"))
    robot.file_hash = ""
    modelgen.build(robot)
    (house / "models" / "pendulum.py").write_bytes(MODEL + b"#")
    assert not warned()
