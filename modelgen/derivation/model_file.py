"""Model files: found, executed under supervision, and every mistake in them told with its line.

The file runs in this process. The limit is on processor time, so that a busy machine accepts the same files as an idle
one. A file that waits is stopped later, by the turns of a watching thread. A turn counts as the pause that the thread
asked for, however late it comes: a process that Ctrl-Z has stopped, or that a busy machine keeps waiting, takes no
turns. After the limit, an exception is raised in the thread of the file. If the exception has no effect (in a call that
waits, or because the file catches it), the process ends with a message.
"""

from __future__ import annotations

import ctypes
import faulthandler
import inspect
import math
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from modelgen.errors import TOO_DEEP, ModelError, Place, shortened, suggestion
from modelgen.files import file_hash, shipped
from modelgen.statement.checker import repaired
from modelgen.statement.robot import Robot

LATE = ("time_constant", "lag", "delay", "tau", "seconds")  # names that people give to a lag
#: Remedies by a part of Python's message about a usual mistake.
REMEDIES = {
    "Cannot convert expression to float|loop of ufunc": "Import sin, cos, sqrt and similar from sympy, not from math "
    "or numpy",
    r"for \^: ": "Write ** for a power",
    "truth value of Relational": "A file is read once, without numbers: write Max, Abs or tanh in place of a condition",
    "'(Symbol|Coordinate)' object is not callable": "It is a symbol: leave out the brackets, as in angle.rate",
    "'(Symbol|Coordinate)' object has no attribute": "The velocity of a coordinate is coordinate.rate",
    "name '\\w+_rate' is not defined": "The velocity of a coordinate is coordinate.rate",
}
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
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))  # at its next step
    if over.wait(GRACE):
        return
    print(f"error: {name}:{_line(thread, name)}: {OutOfTime()}", file=sys.stderr, flush=True)
    leave(USAGE)  # type: ignore[operator]


def _line(thread: int, name: str) -> int:
    """The line of the file that a thread executes."""
    frame = sys._current_frames().get(thread)
    while frame and not frame.f_code.co_filename.endswith(name):
        frame = frame.f_back
    return frame.f_lineno if frame else 1


OWN = Path("models")  # in the working folder
SHIPPED = shipped("models")


def available() -> dict[str, Path]:
    """Model files by name. A file in ./models hides a shipped one of the same name."""
    folders = (SHIPPED, OWN)
    return {
        path.stem: path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.glob("*.py"))
        if not path.stem.startswith("_")
    }


def own() -> dict[str, Path]:
    """Model files of ./models, by name."""
    return {name: path for name, path in available().items() if path.parent == OWN}


def find(name_or_path: str) -> Path:
    """The file NAME (./models/NAME.py or the shipped one) or PATH. Raises ModelError if it does not exist."""
    if name_or_path.endswith(".py") or "/" in name_or_path or "\\" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise ModelError(f"there is no model file {name_or_path}. Write one with `modelgen new NAME`.")
        return path
    known = available()
    if name_or_path not in known:
        raise ModelError(
            f"there is no model `{name_or_path}` in ./models or among the shipped models."
            f"{suggestion(name_or_path, known)} Known: {', '.join(sorted(known))}. {_next(name_or_path)}"
        )
    return known[name_or_path]


def _next(name: str) -> str:
    """The command that makes a model with an unknown name."""
    if name.endswith((".urdf", ".xml")):
        return f"`modelgen import {name}` writes one from it."
    return f"`modelgen new {repaired(name)}` writes a new one."


def load(name_or_path: str) -> Robot:
    """The robot of a model file, which is executed. Raises ModelError with the line for every failure."""
    path = find(name_or_path)
    name = shortened(path.resolve())
    try:
        content = path.read_bytes()
        code = compile(content, str(path.resolve()), "exec")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}.") from error
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # the last two: nested too deeply
        line = getattr(error, "lineno", None) or 1
        words = getattr(error, "msg", None) or str(error) or "it is nested too deeply"
        raise ModelError(f"this is not valid Python: {words}.", Place(name, line)) from error
    robot = _only_robot(_executed(code, path.resolve()), name)
    if robot.name != path.stem:
        raise ModelError(
            f"the file {path.name} declares a robot named `{robot.name}`. The names must agree: write "
            f'Robot("{path.stem}") or rename the file to {robot.name}.py.',
            robot.place,
        )
    robot.file_hash = file_hash(content)
    return robot


def _executed(code: object, path: Path) -> dict[str, object]:
    """The namespace after the execution of the file, which can import its neighbours."""
    module = ModuleType(f"model_file_{path.stem}")  # not the name of a module that it may import
    module.__file__ = str(path)
    name = shortened(path)
    try:
        with _importable(path.parent), supervised(name):
            sys.modules[module.__name__] = module  # dataclasses look up their module there
            exec(code, vars(module))  # type: ignore[arg-type]
    except ModelError:
        raise
    except (Exception, SystemExit, Stopped) as error:
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == path.parent
        ]
        place = Place(shortened(Path(frames[-1].filename)), frames[-1].lineno or 1) if frames else Place(name, 1)
        if isinstance(error, Stopped):
            raise ModelError(str(error), place) from error
        words = " ".join(traceback.format_exception_only(error)[-1].split())
        line = f", in `{frames[-1].line}`" if frames and frames[-1].line else ""
        hint = f": {TOO_DEEP}" if isinstance(error, RecursionError) else _call(error)
        hint = next((f". {remedy}" for part, remedy in REMEDIES.items() if re.search(part, str(error))), hint)
        raise ModelError(f"{words}{line}{hint}", place) from error
    return vars(module)


def _call(error: BaseException) -> str:
    """The end of the message for a wrong call of a method of Robot: its arguments, and the one that was meant."""
    match = re.search(r"\w+\.(\w+)\(\) (?:takes|missing|got .* argument '(\w+)')", str(error))
    method = getattr(Robot, match[1], None) if match else None
    if match is None or method is None:
        return ""
    _, *arguments = inspect.signature(method).parameters.values()
    words = ", ".join(each.name if each.default is each.empty else f"{each.name}=..." for each in arguments)
    late = " An input that acts late is u = robot.lag(u, seconds=...)." if match[2] in LATE else ""
    return f".{late}{suggestion(match[2] or '', [each.name for each in arguments])} Write robot.{match[1]}({words})"


def _only_robot(namespace: dict[str, object], name: str) -> Robot:
    robots = {id(value): value for value in namespace.values() if isinstance(value, Robot)}
    if not robots:
        raise ModelError(
            'this file declares no robot. Write robot = Robot("NAME"), or see `modelgen new`. Start the name of a '
            "helper module with an underscore.",
            Place(name, 1),
        )
    if len(robots) > 1:
        names = ", ".join(f"`{robot.name}`" for robot in robots.values())
        raise ModelError(f"this file declares {len(robots)} robots, {names}; write one file for each.", Place(name, 1))
    return next(iter(robots.values()))


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a model file import its neighbours. Afterwards remove them from sys.modules, and restore the working folder.

    The next load then reads edited neighbours again.
    """
    before, write, here = set(sys.modules), sys.dont_write_bytecode, Path.cwd()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        os.chdir(here)
        sys.dont_write_bytecode = write
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
                del sys.modules[name]
