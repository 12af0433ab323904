"""Supervised execution of a model file: it can neither end the process nor run without end.

The file runs in this process. The limit is on processor time, so that a busy machine accepts the same files as an idle
one. A file that waits is stopped later, by the turns of a watching thread. A turn counts as the pause that the thread
asked for, however late it comes: a process that Ctrl-Z has stopped, or that a busy machine keeps waiting, takes no
turns. After the limit, an exception is raised in the thread of the file. If the exception has no effect (in a call that
waits, or because the file catches it), the process ends with a message.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from modelgen.errors import ModelError

VARIABLE = "MODELGEN_LOAD_SECONDS"
SECONDS = 120.0  # of processor time
PATIENCE = 5  # limit on the pauses of the watching thread, as a multiple of the limit on processor time
SHORTEST, LONGEST = 0.01, 1.0  # s, pause of the watching thread
GRACE = 3.0  # s, for the exception to take effect; then as long again for a call that lets no other thread run
USAGE = 2  # exit code
TIMER = threading.RLock()  # faulthandler's timer must not start between its end and the stop of the process


class Stopped(BaseException):
    """The file was stopped. A BaseException, so that `except Exception` in the file does not catch it."""


class EndsProcess(Stopped):
    """The file called os._exit or os.abort."""

    def __str__(self) -> str:
        return "the file ends the process; a model file only declares a robot. Remove this line."


class OutOfTime(Stopped):
    """The file ran for too long."""

    def __str__(self) -> str:
        return (
            f"the file is not done after {limit():g} s of processor time, or {PATIENCE} times as long by the clock. "
            "Look for a loop without end, and write a sum of thousands of terms as sympy.Add(*terms): sum(terms) "
            f"takes minutes. If the file needs the time, raise the limit: {VARIABLE}={2 * limit():g} before the "
            "command."
        )


def limit() -> float:
    """Seconds of processor time that a model file may take.

    Raises ModelError if the environment variable is not a number greater than 0.
    """
    value = os.environ.get(VARIABLE, "")
    try:
        seconds = float(value or SECONDS)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ModelError(f"the environment variable {VARIABLE} is {value!r}; write a number of seconds, such as 600.")
    return min(seconds, threading.TIMEOUT_MAX / 2)


@contextmanager
def supervised(name: str) -> Iterator[None]:
    """Raise EndsProcess or OutOfTime in the block. name: the file that the block executes."""
    seconds, thread, over = limit(), threading.get_ident(), threading.Event()
    watch = threading.Thread(target=_watch, args=(name, seconds, thread, over), daemon=True)
    before = _own_stop()
    endings = os._exit, os.abort
    os._exit = os.abort = _refused  # type: ignore[assignment]
    try:
        watch.start()
        yield
    finally:
        os._exit, os.abort = endings  # first, because Ctrl-C may interrupt the rest
        try:
            _end(watch, over)
        finally:
            faulthandler.cancel_dump_traceback_later()
            if before is not None:
                signal.signal(signal.SIGTSTP, before)


def _own_stop() -> Any:
    """Have Ctrl-Z stop the process without the timer of `_watch`, which would end it on return. The handler before."""

    def stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        with TIMER:
            faulthandler.cancel_dump_traceback_later()
            os.kill(os.getpid(), signal.SIGSTOP)

    in_main_thread = threading.current_thread() is threading.main_thread()
    return signal.signal(signal.SIGTSTP, stop) if in_main_thread and hasattr(signal, "SIGTSTP") else None


def _end(watch: threading.Thread, over: threading.Event) -> None:
    """End the watching thread, and discard an exception that it raised at the last moment.

    The second turn finishes the first if that exception interrupted it. PyThreadState_SetAsyncExc(thread, NULL) is not
    a way to withdraw it: CPython 3.11 then regards the thread as interrupted, and hangs under any trace function.
    """
    for _ in range(2):
        with suppress(Stopped):
            while not over.is_set() or watch.is_alive():
                over.set()
                watch.join()


def _refused(*_: object) -> NoReturn:
    raise EndsProcess


def _watch(name: str, seconds: float, thread: int, over: threading.Event, leave: object = os._exit) -> None:
    processor, pauses = time.process_time(), 0.0
    while (left := seconds - max(time.process_time() - processor, pauses / PATIENCE)) > 0:
        if sys.__stderr__ is not None:  # if a call lets no other thread run, faulthandler ends the process
            with TIMER:
                faulthandler.dump_traceback_later(left + 2 * GRACE, exit=True, file=sys.__stderr__)
        pause = min(max(left, SHORTEST), LONGEST)
        if over.wait(pause):
            return
        pauses += pause
    _raise_in(thread, OutOfTime)
    if over.wait(GRACE):
        return
    print(f"error: {name}:{_line(thread, name)}: {OutOfTime()}", file=sys.stderr, flush=True)
    leave(USAGE)  # type: ignore[operator]


def _raise_in(thread: int, error: type[Stopped]) -> None:
    """Raise an error in a thread at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _line(thread: int, name: str) -> int:
    """The line of the file that a thread executes."""
    frame = sys._current_frames().get(thread)
    while frame and not frame.f_code.co_filename.endswith(name):
        frame = frame.f_back
    return frame.f_lineno if frame else 1
