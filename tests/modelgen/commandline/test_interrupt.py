"""Ctrl-C counts once, and counts even where Python drops the exception."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import pytest
from modelgen.commandline.interrupt import PAUSE, interrupts

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


def test_where_a_library_goes_on_it_is_raised_again() -> None:
    def command() -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        time.sleep(20.0)

    with interrupts(), pytest.raises(KeyboardInterrupt):
        command()


@pytest.mark.parametrize("failing", [False, True])
def test_a_slow_end_is_not_cut_short(failing: bool) -> None:
    """Nor one in which another error is handled."""
    ended: list[bool] = []

    def command() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            try:
                assert not failing
                time.sleep(1.5 * PAUSE)
            except AssertionError:
                time.sleep(1.5 * PAUSE)
            ended.append(True)

    with interrupts(), pytest.raises(KeyboardInterrupt):
        command()
    assert ended == [True]


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
