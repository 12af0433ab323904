"""Every command line in the documentation is one that the programs take."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelgen.cli import PROGRAM as MODELGEN
from modelgen.commandline.options import given
from modelgen.commandline.program import SHELLS
from solver.cli import PROGRAM as SOLVER

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = {program.name: program for program in (MODELGEN, SOLVER)}
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
#: Words that stand for a value of the reader's choice, where the command does not take every word.
PLACEHOLDERS = {"COMMAND": "train", "N": "3", "K": "3", "S": "3", "SEED": "3", "EXPERIMENT": "table1"}


def command_lines(page: Path) -> Iterator[str]:
    """The command lines in a page's code, continued lines joined, comments left out."""
    for block in CODE.findall(page.read_text(encoding="utf-8")):
        for line in block.strip("`").replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;(?![^']*')", line):
                words = part.strip().removeprefix("$ ")
                if re.match(r"(modelgen|solver) [a-z]", words) and " import " not in words:
                    yield words


def variants(line: str) -> Iterator[list[str]]:
    """The words of a line: what stands in square brackets left out and put in, of `a|b|c` each one."""
    for text in {re.sub(r"\[[^]]*\]", "", line), line.replace("[", "").replace("]", "")}:
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(text, comments=True) if word != "..."]
        choices = next((word.split("|") for word in words if re.fullmatch(r"\w+(\|\w+)+", word)), [""])
        for choice in choices:
            yield [choice if re.fullmatch(r"\w+(\|\w+)+", word) else word for word in words]


#: Pages and their lines; of a line that stands in several pages, the last.
LINES = sorted(
    (page, line)
    for line, page in {line: str(page.relative_to(ROOT)) for page in PAGES for line in command_lines(page)}.items()
)


@pytest.mark.parametrize(("page", "line"), LINES)
@pytest.mark.slow
def test_a_documented_command_is_one(page: str, line: str) -> None:
    for name, *words in variants(line):
        program = PROGRAMS[name]
        if words[0] == "completion":
            assert words[1] in SHELLS
            continue
        command, *rest = words[1:] if words[0] == "help" else words
        assert command in program.commands, f"{page}: {line}"
        options = importlib.import_module(program.commands[command].module).Options
        assert given(options, rest) is not None, f"{page}: {line}"


def test_lines_are_found() -> None:
    assert len(LINES) > 50
    assert {line.split()[0] for _, line in LINES} == {"modelgen", "solver"}


def test_read_on_names_a_page() -> None:
    for program in PROGRAMS.values():
        assert (ROOT / "docs" / program.read_on).is_file()


@pytest.mark.slow
def test_examples_of_help_are_command_lines() -> None:
    for program in PROGRAMS.values():
        for name, entry in program.commands.items():
            called, command, *rest = shlex.split(entry.example)
            assert (called, command) == (program.name, name)
            options = importlib.import_module(entry.module).Options
            assert given(options, rest) is not None
