"""Help and mistakes on the command line of modelgen."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from modelgen.backends import EXPORTS
from modelgen.cli import PROGRAM, main
from modelgen.commands import export
from modelgen.derivation.model_file import SHIPPED
from tests.modelgen.commands.mistakes import mistake


def test_help_and_mistakes_import_nothing_heavy() -> None:
    command = (
        "import sys; from modelgen.cli import main\n"
        "codes = [main(words) for words in (['--help'], ['show', '--help'], ['biuld'], ['build', '--diretory', 'x'])]\n"
        "assert codes == [0, 0, 2, 2], codes\n"
        "heavy = {'sympy', 'numpy', 'numba', 'casadi', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", command], check=True, cwd=SHIPPED.parent, capture_output=True)


def test_help_lists_every_command_with_a_line_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name, command in PROGRAM.commands.items():
        assert f"  {name:<12}{command.summary}\n" in text
        assert f"  {command.example}\n" in text
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: modelgen {name} ")
    assert main([]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["biuld"], "Did you mean `build`?"),
        (["build", "--diretory", "out"], "Did you mean `--directory`?"),
        (["show", "crane", "--lin"], "Did you mean `--linearize`?"),
        (["verify", "crane", "--against", "mujocoo"], "Did you mean `mujoco`?"),
        (["verify"], "`modelgen verify` needs MODEL"),
        (["new", "crane", "derrick"], "has no place for derrick"),
        (["animate", "crane", "--seconds", "long"], "--seconds long cannot be read. Write --seconds FLOAT, a number."),
        (
            ["import", "a.urdf", "--fix", "a", "--fix=b", "c"],
            "--fix stands twice. Write all values behind one: --fix a b c",
        ),
        (["show", "crane", "--latex=yes"], "--latex takes no value"),
        (["show", "crane", "--html", "a.html", "b.html"], "--html writes one file"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in mistake(capsys, *words)


def test_export_has_an_option_for_every_target() -> None:
    assert {field.name for field in dataclasses.fields(export.Options)} - {"model"} == set(EXPORTS)
