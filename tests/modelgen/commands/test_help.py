"""Help and mistakes on the command line of modelgen."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from modelgen.backends import EXPORTS
from modelgen.cli import PROGRAM, main
from modelgen.commands import export, verify
from modelgen.derivation.model_file import SHIPPED
from modelgen.engines import ENGINES
from tests.modelgen.commands.mistakes import mistake


def test_help_and_mistakes_import_nothing_heavy() -> None:
    command = (
        "import sys; from modelgen.cli import main\n"
        "codes = [main(words) for words in (['--help'], ['show', '--help'], ['biuld'], ['build', '--gnerated', 'x'])]\n"
        "assert codes == [0, 0, 2, 2], codes\n"
        "heavy = {'sympy', 'numpy', 'numba', 'casadi', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", command], check=True, cwd=SHIPPED.parent, capture_output=True)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, command in PROGRAM.commands.items():
        assert f"{name} {command.summary}" in text
        assert main(["help", name]) == 0
        assert command.example in capsys.readouterr().out
    assert main([]) == 2
    assert "usage: modelgen" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split() == ["modelgen", importlib.metadata.version("robust-value-iteration")]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str, tmp_path: Path) -> None:
    assert main(["--tyro-write-completion", shell, str(tmp_path / "script")]) == 0
    text = (tmp_path / "script").read_text()
    assert all(name in text for name in (*PROGRAM.commands, "--most-operations"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["biuld"], "build"),
        (["build", "--gnerated", "out"], "--generated"),
        (["show", "crane", "--lineariz"], "--linearize"),
        (["verify", "crane", "--against", "mujocoo"], "mujoco"),
        (["verify"], "modelgen verify cartpole"),
        (["new", "crane", "derrick"], "derrick"),
        (["animate", "crane", "--seconds", "long"], "long"),
        (["animate", "crane", "--seconds", "61"], "60"),
        (["import", "a.urdf", "--fix", "a", "--fix=b", "c"], "--fix"),
        (["show", "crane", "--html", "a.html", "b.html"], "--html"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert named in mistake(capsys, *words)


def test_export_has_an_option_for_every_target() -> None:
    assert {field.name for field in dataclasses.fields(export.Options)} - {"model", "fmi"} == set(EXPORTS) - {"fmu2"}


def test_verify_knows_every_engine() -> None:
    choices, _ = get_args(get_type_hints(verify.Options)["against"])
    assert get_args(choices) == tuple(ENGINES)
