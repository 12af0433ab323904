"""Every number of every command, from its declaration: in its range, or refused before the command begins."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelgen.cli
import solver.cli
from modelgen.commandline import Range
from modelgen.commandline.options import _fields
from modelgen.commandline.program import CommandLine
from modelgen.errors import ModelError
from solver.errors import SolverError
from tests.modelgen.support.cases import fuzzed

PROGRAMS = (modelgen.cli.PROGRAM, solver.cli.PROGRAM)
HOSTILE = (
    *("nan", "inf", "-inf", "1e300", "-1e300", "1e-300", "1e400", "1" + 400 * "0", "1_0", "٣", "³", "", " ", "0x10"),
    *("1e", "--", "-", "1,5", "1 2", "True", "None", "\ud800", "\x1b[2J", "9" * 3000, "-0", "0", "-1", "1", "1.5"),
)
words = st.sampled_from(HOSTILE) | st.integers().map(str) | st.floats().map(repr) | st.text(max_size=5)


@dataclass(frozen=True, repr=False)
class Option:
    """A number that a command takes."""

    program: CommandLine
    command: str
    name: str
    flag: str
    kind: Any  # int or float
    range: Range | None
    own: bool  # False: of the settings of a training

    def __repr__(self) -> str:
        return f"{self.program.name} {self.command} {self.flag}"


def numbers(hint: Any) -> Iterator[tuple[Any, Range | None]]:
    """The types int and float in a hint, each with the range of its annotation. The one within a union is not read."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        found = next((note for note in notes if isinstance(note, Range)), None)
        yield from ((kind, own or found) for kind, own in numbers(inner))
    elif hint in (int, float):
        yield hint, None
    else:
        union = get_origin(hint) in (Union, UnionType)
        for inner in get_args(hint):
            yield from ((kind, None if union else found) for kind, found in numbers(inner))


def declared() -> list[Option]:
    options = []
    for program in PROGRAMS:
        for name, command in program.commands.items():
            own = {field.name for field in dataclasses.fields(import_module(command.module).Options)}
            for field, hint in _fields(import_module(command.module).Options):
                note = next((note for note in getattr(hint, "__metadata__", ()) if getattr(note, "name", None)), None)
                for kind, within in list(numbers(hint))[:1]:
                    flag = (note.name if note else field).replace("_", "-")
                    options.append(Option(program, name, field, f"--{flag}", kind, within, field in own))
    return options


OPTIONS = declared()


def test_every_number_has_a_range() -> None:
    """In its declaration, or in the check of the settings that it belongs to."""
    assert len(OPTIONS) > 60
    assert [option for option in OPTIONS if option.own and option.range is None] == []


@pytest.mark.slow
@fuzzed
@given(st.sampled_from(OPTIONS), words)
def test_number_is_in_its_range_or_refused(option: Option, word: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            _, options = option.program.read(option.command, [f"{option.flag}={word}"])
        except (SystemExit, ModelError, SolverError, UnicodeError):
            return
    value = found(options, option.name)
    for number in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]:
        assert isinstance(number, option.kind | int)
        assert math.isfinite(number)
        assert word.isascii()
        assert "_" not in word
        if option.range is not None:
            assert option.range.least <= number <= option.range.most


def found(options: Any, name: str) -> Any:
    """The value of an option in the dataclass or in one within it."""
    for holder in (options, *(value for value in vars(options).values() if hasattr(value, "__dataclass_fields__"))):
        if hasattr(holder, name):
            return getattr(holder, name)
    pytest.fail(f"{name} is not in {options}")
