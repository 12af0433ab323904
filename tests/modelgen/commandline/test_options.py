"""Options from a dataclass: what the words give, defaults that depend on them, ranges, and the two helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.options import given, read
from modelgen.errors import ModelError

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Inner:
    """Settings."""

    size: Annotated[int, Range(1, 50)] = 3
    """How large, in a sentence
    of two lines."""
    mode: Literal["slow", "fast"] = "slow"
    """How fast."""
    ramp: tuple[float, float] = (0.0, 0.1234567890123)
    """From and to."""
    keep: bool = True
    """Keep it."""

    def __post_init__(self) -> None:
        if self.mode == "fast" and self.size > 40:
            raise ValueError("size 40 is the most where mode is fast")


@dataclass(frozen=True)
class Options:
    """A command."""

    place: Annotated[Path, Positional]
    """Where."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """What is changed."""
    share: Annotated[float | None, Range(0.0, 1.0)] = None
    """How much."""
    points: list[Annotated[int, Range(2, 9)]] = field(default_factory=list)
    """How many."""
    radii: Annotated[dict[str, float], Range(0.0, 1.0)] = field(default_factory=dict)
    """By name."""
    json: bool = False
    """As JSON."""
    inner: Inner = field(default_factory=Inner)


def defaults(given: Mapping[str, Any]) -> Options:
    """Large where the place is `here`."""
    return Options(Path(), inner=Inner(9 if given.get("place") == Path("here") else 3))


MODULE: Any = SimpleNamespace(Options=Options, defaults=defaults, COMMON=("place", "share", "size"))


def made(*words: str) -> Any:
    return read("program command", MODULE, words)


def test_only_what_the_words_give() -> None:
    assert given(Options, []) == {}
    assert given(Options, ["here", "--size", "4", "--json"]) == {"place": Path("here"), "size": 4, "json": True}
    words = ["--set", "a=1", "b=-2", "--ramp", "-0.5", "1e-3", "--no-keep", "--share=0.25", "--points", "3", "4"]
    expected = {"changes": ["a=1", "b=-2"], "ramp": (-0.5, 1e-3), "keep": False, "share": 0.25, "points": [3, 4]}
    assert given(Options, words) == expected
    assert given(Options, ["--siez", "4"]) is None


def test_what_is_given_changes_the_defaults_of_the_command() -> None:
    usual = Options(Path("there"), inner=Inner(3))
    assert made("there") == usual
    assert made("--mode", "fast", "there") == replace(usual, inner=Inner(3, "fast"))
    assert made("--json", "here").inner == Inner(9)
    assert made("here", "--size", "2").inner == Inner(2)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["x", "--siez", "1"], "--size"),
        (["x", "--mode", "fats"], "fast"),
        (["x", "--size", "51"], "1 to 50"),
        (["x", "--size", "1_0"], "1_0"),
        (["x", "--share", "1.5"], "0 to 1"),
        (["x", "--share", "nan"], "nan"),
        (["x", "--ramp", "1"], "2 values"),
        (["x", "--ramp", "1", "１"], "１"),
        (["x", "--points", "10"], "10"),
        (["x", "--radii", "a=0.5", "b=2"], "0 to 1"),
        (["x", "--radii", "a=0.5", "a=0.6"], "a stands twice"),
        (["x", "--radii", "a"], "write it like a=0.1"),
        (["x", "y"], "y"),
        (["x", "--size", "41", "--mode", "fast"], "size 40"),
    ],
)
def test_a_mistake_exits_with_2_and_names_what_is_wrong(words: list[str], named: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        made(*words)
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert named in err


def test_what_tyro_would_take_without_a_word_is_refused() -> None:
    assert made("x", "--size", "3", "--size", "4").inner.size == 4
    for words in (["--set", "a=1", "--set=b=2"], ["--points", "3", "--points", "4"]):
        with pytest.raises(ModelError, match="stands 2 times"):
            made("x", *words)
    for words in (["--set"], ["--set", "--json"], ["--points", "--set", "a=1"]):
        with pytest.raises(ModelError, match="has no value"):
            made("x", *words)
    with pytest.raises(SystemExit):
        made("x", "--set", "--help")


def test_a_required_option_that_is_missing_is_named(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        read("program command", SimpleNamespace(Options=Options), ["--json"])  # type: ignore[arg-type]
    assert "PLACE" in capsys.readouterr().err


def test_the_short_help_and_the_whole_one(capsys: Capture) -> None:
    shown = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as caught:
            made("here", flag)
        assert not caught.value.code
        shown[flag] = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--mode" not in shown["--help"]
    assert "--help-all" in shown["--help"]
    for text in shown.values():
        assert "--share FLOAT 0..1 How much." in text
        assert "How large, in a sentence of two lines. (default: 9)" in text
    for flag in ("--set NAME=VALUE", "--points", "--mode {slow,fast}", "--ramp FLOAT FLOAT", "--keep, --no-keep"):
        assert flag in shown["--help-all"]
