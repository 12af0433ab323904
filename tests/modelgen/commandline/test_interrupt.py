"""Ctrl-C counts once, and counts even where Python drops the exception."""

from __future__ import annotations

import signal
import time

import pytest

from modelgen.commandline.interrupt import interrupts

pytestmark = pytest.mark.usefixtures("heeds_ctrl_c")


def test_pressed_in_a_destructor_it_still_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    class Pressed:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def command() -> None:
        Pressed()
        time.sleep(20.0)

    with interrupts() as handler, pytest.raises(KeyboardInterrupt):
        command()
    assert handler.raised
    assert capsys.readouterr() == ("", "")


def test_a_second_press_while_the_first_is_handled_has_no_effect() -> None:
    with interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_another_error_in_a_destructor_is_still_shown(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __del__(self) -> None:
            raise RuntimeError("broken")

    with interrupts():
        Broken()
    assert "RuntimeError: broken" in capsys.readouterr().err
