"""The execution of a model file under supervision: it can neither end the process nor run for ever.

The file runs in this process, which costs nothing. Its time is that of the processor, so that a busy machine refuses no
file that an idle one takes; a file that waits is refused later, by the clock. When its time is over, an exception is
raised in its thread; where that is not taken (in a call that waits, or caught by the file), the process ends with a
message.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from modelgen.errors import ModelError

VARIABLE = "MODELGEN_LOAD_SECONDS"
SECONDS = 120.0  # of processor time
PATIENCE = 5  # times as many seconds of the clock are let pass
SHORTEST, LONGEST = 0.01, 1.0  # s, between two looks at the clocks
GAP = 2.0  # s between two looks that count at most: a process that Ctrl-Z has stopped looks at no clock
GRACE = 3.0  # s, for the exception to be taken; as long again for a call that lets no other thread run
USAGE = 2  # exit code


class Stopped(BaseException):
    """The file was stopped; no `except Exception` in it takes this."""


class EndsProcess(Stopped):
    """The file called os._exit or os.abort."""

    def __str__(self) -> str:
        return "the file ends the process; a model file only states a robot. Remove this line."


class OutOfTime(Stopped):
    """The file ran for too long."""

    def __str__(self) -> str:
        return (
            f"the file is not done after {limit():g} s of processor time, or {PATIENCE} times as long by the clock. "
            "Look for a loop that never ends, and write a sum of thousands of terms as sympy.Add(*terms): sum(terms) "
            f"takes minutes. If it needs the time, raise the limit: {VARIABLE}={2 * limit():g} before the command."
        )


def limit() -> float:
    """Seconds of processor time that a model file may take.

    Raises ModelError for a value of the variable that is no number above 0.
    """
    stated = os.environ.get(VARIABLE, "")
    try:
        seconds = float(stated or SECONDS)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ModelError(f"the environment variable {VARIABLE} is {stated!r}; write a number of seconds, such as 600.")
    return min(seconds, threading.TIMEOUT_MAX / 2)


def _clock() -> Callable[[], float]:
    """Seconds since now of this process's processor time, or a share of the wall clock's where that is more.

    Call it often: a longer time between two calls counts as `GAP`.
    """
    processor, wall, spent = time.process_time(), time.monotonic(), 0.0

    def clock() -> float:
        nonlocal wall, spent
        now = time.monotonic()
        spent, wall = spent + min(now - wall, GAP), now
        return max(time.process_time() - processor, spent / PATIENCE)

    return clock


@contextmanager
def supervised(name: str) -> Iterator[None]:
    """Raise EndsProcess or OutOfTime in the block, whose file is `name`."""
    seconds, thread, over = limit(), threading.get_ident(), threading.Event()
    watch = threading.Thread(target=_watch, args=(name, seconds, thread, over), daemon=True)
    before = _own_stop()
    endings = os._exit, os.abort
    os._exit = os.abort = _refused  # type: ignore[assignment]
    try:
        watch.start()
        yield
    finally:
        os._exit, os.abort = endings  # at once: Ctrl-C may cut short what follows
        try:
            _end(watch, over)
        finally:
            faulthandler.cancel_dump_traceback_later()
            if before is not None:
                signal.signal(signal.SIGTSTP, before)


def _own_stop() -> Any:
    """Have Ctrl-Z stop the process without the timer of `_watch`, which would end it on return. The handler before."""

    def stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        faulthandler.cancel_dump_traceback_later()
        os.kill(os.getpid(), signal.SIGSTOP)

    in_main_thread = threading.current_thread() is threading.main_thread()
    return signal.signal(signal.SIGTSTP, stop) if in_main_thread and hasattr(signal, "SIGTSTP") else None


def _end(watch: threading.Thread, over: threading.Event) -> None:
    """End the watch, and take what it may have raised as the file ended; a second turn ends what that cut short.

    PyThreadState_SetAsyncExc(thread, NULL) is no way to take it back: CPython 3.11 then takes the thread for
    interrupted for ever, and hangs under a debugger, coverage or any other trace function.
    """
    for _ in range(2):
        with suppress(Stopped):
            while not over.is_set() or watch.is_alive():
                over.set()
                watch.join()


def _refused(*_: object) -> NoReturn:
    raise EndsProcess


def _watch(name: str, seconds: float, thread: int, over: threading.Event, leave: object = os._exit) -> None:
    spent = _clock()
    while (left := seconds - spent()) > 0:
        if sys.__stderr__ is not None:  # for a call that lets no other thread run, this one neither
            faulthandler.dump_traceback_later(left + 2 * GRACE, exit=True, file=sys.__stderr__)
        if over.wait(min(max(left, SHORTEST), LONGEST)):
            return
    _raise_in(thread, OutOfTime)
    if over.wait(GRACE):
        return
    print(f"error: {name}:{_line(thread, name)}: {OutOfTime()}", file=sys.stderr, flush=True)
    leave(USAGE)  # type: ignore[operator]


def _raise_in(thread: int, error: type[Stopped]) -> None:
    """Have a thread raise an error at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _line(thread: int, name: str) -> int:
    """The line of the file that a thread is at."""
    frame = sys._current_frames().get(thread)
    while frame and not frame.f_code.co_filename.endswith(name):
        frame = frame.f_back
    return frame.f_lineno if frame else 1
