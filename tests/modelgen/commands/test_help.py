"""Help and mistakes on the command line of modelgen."""

from __future__ import annotations

import dataclasses
import email
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from modelgen.backends import EXPORTS
from modelgen.cli import PROGRAM, main
from modelgen.commands import export, verify
from modelgen.derivation.mechanics import MECHANICS
from modelgen.derivation.model_file import SHIPPED
from modelgen.engines import ENGINES
from modelgen.files import page
from modelgen.program.differentiate import FUNCTIONS
from tests.modelgen.commands.mistakes import mistake


@pytest.mark.slow
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    option = "most-operations" if shell == "fish" else "--most-operations"
    assert all(name in text for name in (*PROGRAM.commands, option))


@pytest.mark.parametrize("words", [[], ["bsh"], ["bash", "file"]])
def test_completion_of_no_shell(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", *words]) == 2
    assert "modelgen completion SHELL, where SHELL is bash, zsh, fish" in capsys.readouterr().err


def test_help_names_a_page_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """In a wheel the pages lie inside the package; a site in the metadata takes their place."""
    assert main(["--help"]) == 0
    assert Path(page(PROGRAM.read_on)).is_file()
    assert page(PROGRAM.read_on).replace(" ", "") in "".join(capsys.readouterr().out.split())


def test_help_names_the_site_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    found = email.message_from_string(
        "Project-URL: Source, https://code\nProject-URL: Documentation, https://site/x/\n"
    )
    monkeypatch.setattr("modelgen.files.metadata", lambda _: found)
    assert page("how-to/train.md") == "https://site/x/docs" + "/how-to/train.html"


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
    others = {"model", "generated", "fmi"}
    assert {field.name for field in dataclasses.fields(export.Options)} - others == set(EXPORTS) - {"fmu2"}


def test_verify_knows_every_engine() -> None:
    choices, _ = get_args(get_type_hints(verify.Options)["against"])
    assert get_args(choices) == tuple(ENGINES)


def test_build_names_every_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--help"]) == 0
    text = capsys.readouterr().out
    assert not [name for name in (*FUNCTIONS, *MECHANICS) if name not in text]
