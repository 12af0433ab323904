"""Ctrl-C ends a command once: pressed again while the first is handled, it has no further effect."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: A library may catch the exception and go on: then Ctrl-C works again after these seconds.
PAUSE = 1.0
#: Python itself drops it in a destructor or a callback: then it is raised again, these seconds later.
AGAIN = 0.01


class Interrupts:
    """The handler of SIGINT: raises KeyboardInterrupt, but not again while that one is on its way out."""

    def __init__(self) -> None:
        self.last = float("-inf")
        self.over = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002
        now = time.monotonic()
        if self.over or now - self.last < PAUSE:
            return
        self.last = now
        raise KeyboardInterrupt

    def dropped(self, what: sys.UnraisableHookArgs) -> None:
        """The hook for what cannot be raised: Ctrl-C is raised again when Python is out of the destructor."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        self.last = float("-inf")
        threading.Timer(AGAIN, signal.pthread_kill, [threading.get_ident(), signal.SIGINT]).start()

    @property
    def raised(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.last > float("-inf")


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """The handler, at work within; nothing is changed where SIGINT is not Python's own (tests, notebooks, nohup)."""
    handler = Interrupts()
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield handler
        return
    signal.signal(signal.SIGINT, handler)
    hook, sys.unraisablehook = sys.unraisablehook, handler.dropped
    try:
        yield handler
    finally:
        handler.over = True
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave(code: int) -> NoReturn:
    """End the process at once, with everything printed.

    Worker threads may still be in compiled code after Ctrl-C. Python would wait for them at exit; another Ctrl-C ends
    that wait and the process aborts with "terminate called without an active exception".
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
