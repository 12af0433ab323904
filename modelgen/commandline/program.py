"""A program of several commands: finds the command, reads its options, runs it, turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from modelgen.commandline.help import command_help, program_help
from modelgen.commandline.interrupt import interrupts, leave
from modelgen.commandline.options import options_of
from modelgen.commandline.printable import printable
from modelgen.commandline.reading import HELP, UsageError, completed, read
from modelgen.errors import suggestion

FAILED, USAGE, INTERRUPTED = 1, 2, 130  # exit codes


@dataclass(frozen=True)
class Command:
    """One command; its module is imported when it is called, so that help and mistakes answer at once."""

    module: str
    summary: str  # one line
    example: str


@dataclass(frozen=True)
class Program:
    """The commands of one program."""

    name: str
    about: str  # what it is, in a line
    commands: Mapping[str, Command]
    read_on: str  # where its documentation is
    mistakes: tuple[type[Exception], ...]  # errors of the user: exit code 2, as for a mistake on the command line
    failures: tuple[type[Exception], ...] = ()  # runs that failed: exit code 1
    renamed: Callable[[], Mapping[str, str]] = dict  # old option -> new option, without dashes
    around: Callable[[], AbstractContextManager[None]] = nullcontext  # entered for the run of a command, not for help

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run one command and return its exit code; 0, or 1 for failures, 2 for mistakes, 130 after Ctrl-C.

        arguments: None for those of the process, which is then ended at once after Ctrl-C.
        """
        with interrupts() as pressed, printable():
            try:
                code = self._called(sys.argv[1:] if arguments is None else arguments)
                sys.stdout.flush()
            except KeyboardInterrupt as stop:
                code = _said(str(stop) or "interrupted", INTERRUPTED)
            except BrokenPipeError:
                # The reader of a pipe has gone; Python would complain once more when it flushes at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = FAILED
            except UsageError as error:
                code = _said(f"error: {error}", USAGE)
            except self.mistakes as error:
                code = _said(f"error: {error}", USAGE)
            except self.failures as error:
                code = _said(f"error: {error}", FAILED)
            except Exception:
                if not pressed.raised:
                    raise
                code = _said("interrupted", INTERRUPTED)  # a library made another error of it
            pressed.over = True
            if code == INTERRUPTED and arguments is None:
                leave(code)
        return code

    def _called(self, words: Sequence[str]) -> int:
        name, *rest = words or [""]
        if name in HELP:
            print(self._help())
            return 0
        if name not in self.commands:
            if not name:
                return _said(self._help(), USAGE)
            raise UsageError(
                f"`{self.name}` has no command {name}.{suggestion(name, self.commands)} "
                f"Commands are {', '.join(self.commands)}; `{self.name} --help` explains them."
            )
        command, called = self.commands[name], f"{self.name} {name}"
        module = import_module(command.module)
        given = read(called, module.Options, rest, self.renamed, _notice)
        defaults = module.defaults(given) if hasattr(module, "defaults") else None
        if set(rest) & set(HELP):
            shown = defaults or _stated(module.Options)
            print(command_help(called, module.Options, command.summary, command.example, shown))
            return 0
        options = completed(called, module.Options, given, defaults)
        with self.around():
            return module.run(options) or 0

    def _help(self) -> str:
        summaries = {name: command.summary for name, command in self.commands.items()}
        examples = {name: command.example for name, command in self.commands.items()}
        return program_help(self.name, self.about, summaries, examples, self.read_on)


def _stated(options: type) -> Any:
    """The defaults of a dataclass, whatever it requires left out."""
    return options(**{option.field: None for option in options_of(options) if option.required and not option.owner})


def _notice(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _said(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
