"""A program: exit codes, errors of the system, closed and full streams, control characters, Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from modelgen import cli
from modelgen.commandline.program import Command, CommandLine, warn
from modelgen.errors import LONGEST
from tests.modelgen.support.forgery import forged

Capture = pytest.CaptureFixture[str]
STEERING = "\x1b]52;c;cm0=\x07\x1b[2Jgone\r\x9b31m\u202e\x7f\x00"
ESCAPED = r"\x1b]52;c;cm0=\x07\x1b[2Jgone\r\x9b31m\u202e\x7f\x00"


class Mistake(ValueError):
    """An error of the user."""


class Failure(RuntimeError):
    """A run that failed."""


@dataclass(frozen=True)
class Options:
    """Nothing."""

    count: int = 1
    """A number."""


Body = Callable[[], object]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Callable[[Body], int]:
    """The exit code of a program with a command of this body."""

    def call(body: Body, *words: str) -> int:
        module = ModuleType("body")
        module.Options, module.run = Options, lambda _: body()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "body", module)
        command = {"go": Command("body", "Go.", "program go")}
        return CommandLine("program", "A program.", command, "docs", (Mistake,), (Failure,)).main(["go", *words])

    return call


def raising(error: BaseException) -> Body:
    def body() -> None:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (Mistake("wrong"), 2, "error: wrong"),
        (Failure("diverged"), 1, "error: diverged"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "error: /x: Permission denied"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 9000), 2, "characters)"),
        (UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed"), 2, "surrogates not allowed"),
        (MemoryError("7 TiB"), 1, "7 TiB"),
        (KeyboardInterrupt("interrupted; go on with X"), 130, "interrupted; go on with X"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Mistake(STEERING), 2, f"error: {ESCAPED}"),
        (Mistake("x" * 5_000_000), 2, "characters)"),
    ],
)
def test_an_error_is_a_message_and_an_exit_code(
    error: BaseException, code: int, text: str, called: Callable[[Body], int], capsys: Capture
) -> None:
    assert called(raising(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"{text}\n")
    assert len(err) < LONGEST + 100


@pytest.mark.parametrize(("setting", "begin"), [("", "\x1b[1;31merror: \x1b[0mwrong\n"), ("1", "error: wrong\n")])
def test_messages_have_a_colour_on_a_terminal(
    setting: str, begin: str, called: Callable[[Body], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where NO_COLOR is set; what a command prints cannot colour anything."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", setting)
    for body, expected in (
        (raising(Mistake("wrong")), begin),
        (
            lambda: warn(f"old{STEERING}"),
            begin.replace("error", "warning").replace("31", "33").replace("wrong", f"old{ESCAPED}"),
        ),
    ):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        called(body)
        assert terminal.getvalue() == expected


def test_an_error_of_ours_is_not_hidden(called: Callable[[Body], int]) -> None:
    with pytest.raises(ZeroDivisionError):
        called(lambda: 1 // 0)


def test_exit_codes_of_a_command(called: Callable[..., int]) -> None:
    assert (called(lambda: None), called(lambda: 1)) == (0, 1)
    assert called(lambda: None, "--help") == 0
    assert called(lambda: None, "--count", "x") == 2
    assert called(lambda: None, "--count", "1", "--count=2") == 0


def test_a_word_without_end_is_not_printed(capsys: Capture) -> None:
    assert cli.main(["show", "x" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 100


def test_control_characters_are_written_as_escapes(called: Callable[[Body], int], capsys: Capture) -> None:
    def body() -> None:
        print(f"a\tb\nä {STEERING}")
        print(STEERING, file=sys.stderr)
        print("\udc80")

    assert called(body) == 0
    assert capsys.readouterr() == (f"a\tb\nä {ESCAPED}\n\\udc80\n", f"{ESCAPED}\n")


def test_the_bar_of_rich_still_steers_the_terminal(called: Callable[[Body], int], capsys: Capture) -> None:
    """Its characters are ours."""
    assert called(lambda: Console(stderr=True, force_terminal=True).print("[red]x")) == 0
    assert capsys.readouterr().err.startswith("\x1b[31m")


@pytest.mark.parametrize("words", [[], ["--linearize"]])
def test_show_of_a_foreign_artifact(words: list[str], artifacts: Path, tmp_path: Path, capsys: Capture) -> None:
    """Free text of every state, input, parameter and the description."""
    shutil.copytree(artifacts / "pendulum", tmp_path / "pendulum")

    def change(manifest: dict[str, dict[str, object]]) -> None:
        metadata = manifest["metadata"]
        metadata["description"] = STEERING
        for group in ("states", "inputs", "parameters"):
            for entry in metadata[group]:  # type: ignore[attr-defined]
                entry.update(meaning=STEERING, unit=STEERING)

    forged(tmp_path / "pendulum", change)
    cli.main(["show", "pendulum", "--generated", str(tmp_path), *words])
    written = capsys.readouterr()
    text = written.out + written.err
    assert "gone" in text
    assert not set(STEERING) & set(text) - set("gone]52;c;cm0=[2J31m")


SHOW = [sys.executable, "-c", "import sys; from modelgen.cli import main; sys.exit(main())", "show", "pendulum"]


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 2, "No space left on device"),
        (">/dev/full 2>&1", 2, ""),
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("| true", 1, ""),
    ],
)
@pytest.mark.slow
def test_standard_output_that_takes_nothing(redirection: str, code: int, message: str) -> None:
    if "full" in redirection and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    line = f'set -o pipefail; "$@" {redirection.replace("| true", "--html | true")}'
    ended = subprocess.run(["bash", "-c", line, "bash", *SHOW], capture_output=True, text=True)
    if "true" not in redirection:  # `true` may read before it ends
        assert ended.returncode == code
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.slow
def test_words_that_are_not_utf8(encoding: str, tmp_path: Path) -> None:
    name = os.fsdecode(b"pend\xff\xe9ulum")
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    ended = subprocess.run([*SHOW[:-1], name], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert r"pend\udcff\udce9ulum" in ended.stderr


@pytest.mark.usefixtures("heeds_ctrl_c")
class TestCtrlC:
    """Ctrl-C ends a command once."""

    def test_a_second_press_does_not_cut_the_end_short(self, called: Callable[[Body], int]) -> None:
        ended: list[bool] = []

        def body() -> None:
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                ended.append(True)

        assert called(body) == 130
        assert ended == [True]

    def test_a_library_that_makes_another_error_of_it(self, called: Callable[[Body], int], capsys: Capture) -> None:
        def body() -> None:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ArithmeticError from None

        assert called(body) == 130
        assert capsys.readouterr().err == "interrupted\n"

    def test_it_is_heard_where_an_exception_is_dropped(self, called: Callable[[Body], int]) -> None:
        """As while a key of a WeakKeyDictionary dies, or CasADi looks at its arguments."""

        class Dies:
            def __del__(self) -> None:
                with suppress(KeyboardInterrupt):  # as Python does, which would print it
                    signal.raise_signal(signal.SIGINT)

        def body() -> None:
            Dies()
            for _ in range(200):
                time.sleep(0.01)

        assert called(body) == 130

    def test_the_handler_is_put_back(self, called: Callable[[Body], int]) -> None:
        before = signal.getsignal(signal.SIGINT)
        assert called(raising(Mistake())) == 2
        assert signal.getsignal(signal.SIGINT) is before


def test_an_empty_word_is_a_variable_that_is_not_set(capsys: Capture) -> None:
    """It would be the current folder."""
    assert cli.main(["export", "pendulum", "--c", ""]) == 2
    assert capsys.readouterr().err.startswith("error: the word after --c is empty")
