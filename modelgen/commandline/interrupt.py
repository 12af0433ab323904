"""Ctrl-C ends a command once: pressed again while the first is handled, it has no further effect."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn

#: Something may catch the exception and go on, as Python itself does in a destructor: it is raised again after these
#: seconds.
PAUSE = 1.0


class Interrupts:
    """The handler of SIGINT: raises KeyboardInterrupt, but not again while that one is on its way out."""

    def __init__(self) -> None:
        self.last = float("-inf")
        self.raised = self.over = False
        self.thread = threading.get_ident()
        self.pressed: SimpleQueue[bool] = SimpleQueue()  # whose `put` may be called from a signal's handler

    def __call__(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002
        now = time.monotonic()
        if self.over or now - self.last < PAUSE:
            return
        self.last, self.raised = now, True
        self.pressed.put(True)
        raise KeyboardInterrupt

    def watch(self) -> None:
        """Raise it again, where something has caught it and gone on, and not where the command is ending."""
        while self.pressed.get():
            time.sleep(PAUSE)
            while not self.over and _interrupted(self.thread):
                time.sleep(PAUSE)
            if not self.over:
                self.last = float("-inf")
                signal.pthread_kill(self.thread, signal.SIGINT)

    def end(self) -> None:
        """From now on Ctrl-C has no effect."""
        self.over = True
        self.pressed.put(False)


def _dropped(what: sys.UnraisableHookArgs) -> None:
    """The hook for what cannot be raised: says nothing of Ctrl-C, which is raised again."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)


def _interrupted(thread: int) -> bool:
    """Whether a thread is handling KeyboardInterrupt, or an error that came while it did."""
    found = sys._current_exceptions().get(thread)
    error = found[1] if isinstance(found, tuple) else found  # a tuple until Python 3.11
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """The handler, at work within; nothing is changed where SIGINT is not Python's own (tests, notebooks, nohup)."""
    handler = Interrupts()
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield handler
        return
    threading.Thread(target=handler.watch, daemon=True).start()
    signal.signal(signal.SIGINT, handler)
    hook, sys.unraisablehook = sys.unraisablehook, _dropped
    try:
        yield handler
    finally:
        handler.end()
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave(code: int, end: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """End the process at once, with everything printed.

    Worker threads may still be in compiled code after Ctrl-C. Python would wait for them at exit; another Ctrl-C ends
    that wait and the process aborts with "terminate called without an active exception". end: bound at import, for
    `os._exit` is another while a model file is executed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    end(code)
