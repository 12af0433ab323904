"""A program: finds a command, reads its options, runs it, and turns every error of a user into an exit code."""

from __future__ import annotations

import _thread
import importlib.metadata
import io
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn, TextIO, cast

from modelgen.errors import LONGEST, ModelError, ReliabilityWarning, of_a_command
from modelgen.files import PACKAGE, page

FAILED, USAGE, INTERRUPTED = 1, 2, 130  # exit codes
SHELLS = ("bash", "zsh", "fish")  # that `completion` knows
COLOURS = {"error: ": "1;31", "warning: ": "1;33"}  # codes of ANSI: bold red and bold yellow
PAUSE = 1.0  # s after Ctrl-C in which it has no further effect, so that the command can end in order
#: Characters that steer a terminal or reverse the direction of writing. Artifacts of other people may hold them.
_STEERING = [*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_ESCAPED = {code: chr(code).encode("unicode_escape").decode() for code in _STEERING if chr(code) not in "\n\t"}


@dataclass(frozen=True)
class Command:
    """A command. Its module is imported when the command is called, so that help and mistakes answer at once."""

    module: str
    summary: str  # one line
    example: str


@dataclass
class CtrlC:
    """What is known of Ctrl-C."""

    begun: bool  # whether the command has begun, which may have files to close
    pressed: bool = False


@dataclass(frozen=True)
class CommandLine:
    """The commands of a program, and its errors."""

    name: str
    about: str  # one line
    commands: Mapping[str, Command]
    read_on: str  # the page of its documentation, by its path in docs
    mistakes: tuple[type[Exception], ...]  # errors of the user: exit code 2, as for a mistake on the command line
    failures: tuple[type[Exception], ...] = ()  # runs that failed: exit code 1
    around: Callable[[], AbstractContextManager[None]] = nullcontext  # entered for the run of a command

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run a command. Returns 0, 1 for failures, 2 for mistakes, 130 after Ctrl-C.

        arguments: None for the arguments of the process, which ends at once after Ctrl-C.
        """
        _open_streams()
        with _interruptible(CtrlC(begun=arguments is not None)) as ctrl_c, of_a_command():
            code = self._code(sys.argv[1:] if arguments is None else arguments, ctrl_c)
            _flush()
            if code == INTERRUPTED and arguments is None:
                _leave(code)
        return code

    def _code(self, words: Sequence[str], ctrl_c: CtrlC) -> int:
        mistakes: tuple[type[Exception], ...] = (*self.mistakes, UnicodeError)
        try:
            code = self._called(words, ctrl_c)
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            return _say(str(stop) or "interrupted", INTERRUPTED)
        except BrokenPipeError:  # the reader of a pipe has gone
            return FAILED
        except mistakes as error:
            return _say(str(error), USAGE, "error: ")
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            return _say(f"{place}{error.strerror or error}", USAGE, "error: ")
        except self.failures as error:
            return _say(str(error), FAILED, "error: ")
        except MemoryError as error:
            return _say(f"there is not enough memory. {error}".rstrip(), FAILED, "error: ")
        except Exception:
            if not ctrl_c.pressed:
                raise
            return _say("interrupted", INTERRUPTED)  # a library made another error of it
        return code

    def _called(self, words: Sequence[str], ctrl_c: CtrlC) -> int:
        name, *rest = words or [""]
        if name == "help":
            name, rest = (rest or ["--help"])[0], ["--help"]
        if name == "--version":
            print(f"{self.name} {importlib.metadata.version(PACKAGE)}")
            return 0
        if any(len(word) > LONGEST for word in words):
            raise ModelError(f"a word of the command line has more than {LONGEST} characters.")
        if "" in rest:
            before = [name, *rest][rest.index("")]
            raise ModelError(f"the word after {before} is empty. Is a variable of the shell not set? Give it a value.")
        if name == "completion":
            if rest not in ([shell] for shell in SHELLS):
                raise ModelError(f"write {self.name} completion SHELL, where SHELL is {', '.join(SHELLS)}.")
            name = "--tyro-print-completion"
        try:
            if name not in self.commands:
                self._overview([name, *rest] if name else ["--help"])
            module, options = self.read(name, rest)
        except SystemExit as end:  # tyro has printed help or a mistake
            return int(end.code or 0) if words else USAGE
        ctrl_c.begun = True
        with _printable(), _warnings_in_a_line(), self.around():
            return module.run(options) or 0

    def read(self, name: str, words: Sequence[str]) -> tuple[Any, Any]:
        """The module of a command and its options. Raises SystemExit after help or a mistake."""
        from modelgen.commandline.options import read

        command = self.commands[name]
        module = import_module(command.module)
        about = f"{command.summary}\n\nexample: {command.example}\n\n"
        return module, read(f"{self.name} {name}", module, words, about)

    def _overview(self, words: Sequence[str]) -> NoReturn:
        """Let tyro print the commands, a mistake, or the completion of a shell."""
        from tyro.extras import subcommand_cli_from_dict

        from modelgen.commandline.options import CONFIG

        completing = words[0] == "--tyro-print-completion"
        entries: dict[str, Callable[..., Any]] = {}
        for name, command in self.commands.items():
            entries[name] = import_module(command.module).Options if completing else _named(command.summary)
        about = (
            f"{self.about} `{self.name} help COMMAND` explains a command, `{self.name} completion bash` prints what "
            f"completes them in a shell. Read on in {page(self.read_on)}."
        )
        subcommand_cli_from_dict(entries, prog=self.name, description=about, args=words, config=CONFIG)
        raise SystemExit(USAGE)


def _named(summary: str) -> Callable[[], None]:
    """A command without options, for a list of commands."""

    def command() -> None: ...

    command.__doc__ = summary
    return command


def _say(text: str, code: int, kind: str = "") -> int:
    """Print a message without characters that steer the terminal, and not the whole of a long one. Returns the code.

    kind: what stands before it, in colour on a terminal: `error: ` or `warning: `.
    """
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text) - LONGEST} more characters)"
    with suppress(OSError):
        terminal = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        coloured = kind and terminal.isatty() and not os.environ.get("NO_COLOR")
        terminal.write(f"\x1b[{COLOURS[kind]}m{kind}\x1b[0m" if coloured else kind)
        print(short.translate(_ESCAPED), file=terminal)
    return code


def warn(text: str) -> None:
    """Print a warning."""
    _say(text, 0, "warning: ")


class _Printable:
    """A text stream that writes a steering character as its escape in Python: ESC as \\x1b. It stays open."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # where Rich draws its bar, whose characters are ours

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(text.translate(_ESCAPED))
        return len(text)

    def close(self) -> None:
        """Stay open: a model file that closes the stream would take away the messages of the command."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def _printable() -> Iterator[None]:
    """Let no text that is printed within the block steer the terminal."""
    out, error = (cast("TextIO", _Printable(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(error):
        yield


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print warnings of ours as the program's messages, each text once, without the line of the source."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", ReliabilityWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, ReliabilityWarning):
                usual(message, category, *place, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                warn(str(message))

        warnings.showwarning = show
        yield


def _open_streams() -> None:
    """Have a standard output and error that take every text: closed ones lead nowhere, others write escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.open(os.devnull, os.O_WRONLY), "w")))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    """Write what was printed. A stream that takes no more leads nowhere, or Python complains of it at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _interruptible(ctrl_c: CtrlC) -> Iterator[CtrlC]:
    """Raise KeyboardInterrupt at Ctrl-C, but not again within `PAUSE`; end the process before the command has begun.

    Torch aborts where an exception is raised during its import. Python drops one that is raised while a weak reference
    dies, with a traceback that is kept back here, or a library written in C looks at its arguments, so Ctrl-C presses
    itself again until it is heard. Nothing is changed where SIGINT is not Python's own (tests, notebooks, nohup).
    """
    last, due, timer = float("-inf"), False, threading.Timer(PAUSE, _thread.interrupt_main)
    report = sys.unraisablehook

    def again() -> None:
        nonlocal due
        due = True
        _thread.interrupt_main()

    def handler(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal last, due, timer
        if not ctrl_c.begun:
            os._exit(_say("interrupted", INTERRUPTED))
        own, due = due, False
        if _ends() if own else time.monotonic() - last <= PAUSE:
            return
        last, ctrl_c.pressed = time.monotonic(), True
        timer.cancel()
        timer = threading.Timer(PAUSE, again)
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt

    def dropped(error: sys.UnraisableHookArgs) -> None:
        if not issubclass(error.exc_type, KeyboardInterrupt):
            report(error)

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield ctrl_c
        return
    sys.unraisablehook = dropped
    signal.signal(signal.SIGINT, handler)
    try:
        yield ctrl_c
    finally:
        timer.cancel()
        sys.unraisablehook = report
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ends() -> bool:
    """Whether a KeyboardInterrupt is being handled."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _leave(code: int, end: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """End the process at once.

    Worker threads may still be in compiled code after Ctrl-C. Python would wait for them at exit, and another Ctrl-C
    would abort the process. end: bound at import, because `os._exit` is another while a model file is executed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if pools := sys.modules.get("multiprocessing.util"):
        pools._exit_function()  # unlinks semaphores, of whose leak a tracker would complain
    end(code)
