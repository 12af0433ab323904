"""From words to options: what is given and what is not, defaults, old names, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from modelgen.commandline.reading import UsageError, completed, read

from modelgen.commandline.options import Argument, Subjects, field_docs, options_of


@dataclass(frozen=True)
class Inner:
    """Settings."""

    size: int = 3
    """How large, in a sentence
    of two lines (with brackets)."""
    mode: Literal["slow", "fast"] = "slow"
    """How fast."""
    ramp: tuple[float, float] = (0.0, 1.0)
    """From and to."""
    keep: bool = True
    """Keep it."""


@dataclass(frozen=True)
class Options:
    """A command."""

    place: Annotated[Path, Argument(positional=True)]
    """Where."""
    changes: Annotated[list[str], Argument("set", "NAME=VALUE")] = field(default_factory=list)
    """What is changed."""
    share: float | None = None
    """How much."""
    json: bool = False
    """As JSON."""
    inner: Annotated[Inner, Subjects({"scale": "size", "motion": "mode"})] = field(default_factory=Inner)


def given(*words: str, renamed: Mapping[str, str] | None = None) -> dict[str, Any]:
    return read("program command", Options, words, lambda: renamed or {}, print)


def mistake(*words: str) -> str:
    with pytest.raises(UsageError) as caught:
        completed("program command", Options, given(*words))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_only_what_the_words_give_is_read() -> None:
    assert given() == {}
    assert given("here", "--size", "-4", "--json") == {"place": Path("here"), "size": -4, "json": True}
    assert given("--set", "a=1", "b=-2", "--ramp", "0.5", "1e-3") == {"changes": ["a=1", "b=-2"], "ramp": (0.5, 1e-3)}
    assert given("--no-keep", "--share=0.25", "--mode", "fast") == {"keep": False, "share": 0.25, "mode": "fast"}


def test_what_is_given_changes_the_defaults_of_the_command() -> None:
    assert completed("c", Options, given("here", "--size", "4")) == Options(Path("here"), inner=Inner(4))
    own = Options(Path(), share=0.5, inner=Inner(9, "fast"))
    changed = completed("c", Options, given("here", "--ramp", "0", "2"), own)
    assert changed == Options(Path("here"), share=0.5, inner=Inner(9, "fast", (0.0, 2.0)))


def test_an_old_name_works_and_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert given("--scale", "5", renamed={"scale": "size"}) == {"size": 5}
    assert capsys.readouterr().out == "--scale is now --size; the old name works in this version only\n"
    assert given("--share", "1", renamed={"share": "size"}) == {"share": 1.0}  # today's option of that name comes first
    assert capsys.readouterr().out == ""
    assert given("--no_keep") == {"keep": False}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--siez", "1"], "has no option --siez. Did you mean `--size`?"),
        (["x", "--si", "1"], "Did you mean `--size`?"),
        (["x", "-s", "1"], "has no option -s."),
        (["x", "--mode", "fats"], "--mode fats is not a choice. Did you mean `fast`? Choices are slow, fast."),
        (["x", "--size", "1.5"], "--size 1.5 cannot be read. Write --size INT, a whole number."),
        (["x", "--share", "much"], "--share much cannot be read. Write --share FLOAT, a number."),
        (["x", "--ramp", "1"], "--ramp 1 cannot be read. Write --ramp FLOAT FLOAT."),
        (["x", "--size"], "--size cannot be read. Write --size INT"),
        (
            ["x", "--set", "a=1", "--set=b=2", "c=3"],
            "stands twice. Write all values behind one: --set a=1 b=2 c=3",
        ),
        (["x", "--json=yes"], "--json takes no value. Write --json."),
        (["x", "--keep=no"], "--keep takes no value. Write --keep or --no-keep."),
        (["x", "--no-json"], "has no option --no-json. Did you mean `--json`?"),
        (["x", "y"], "has no place for y."),
        (["--json"], "needs PLACE. Where."),
    ],
)
def test_mistakes_say_what_to_write(words: list[str], message: str) -> None:
    assert message in mistake(*words)


def test_options_are_read_from_the_dataclass() -> None:
    found = {option.field: option for option in options_of(Options)}
    assert [option.subject for option in found.values()] == [*["options"] * 4, "scale", *["motion"] * 3]
    assert [option.metavar for option in found.values()] == [
        *("PATH", "NAME=VALUE ...", "FLOAT", "", "INT", "slow|fast", "FLOAT FLOAT", ""),
    ]
    assert [option.name for option in found.values() if option.several] == ["set", "ramp"]
    assert field_docs(Inner)["size"] == "How large, in a sentence of two lines (with brackets)."
