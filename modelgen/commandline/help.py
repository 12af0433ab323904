"""The texts of --help: a program's commands, or one command's options with their doc strings."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from typing import Any

from modelgen.commandline.options import GENERAL, Option, one_line, options_of

COLUMN = 26  # where descriptions begin
WIDEST = 100


def program_help(name: str, about: str, commands: Mapping[str, str], examples: Mapping[str, str], read_on: str) -> str:
    """The whole program: every command with one line, an example of each, and where to read on."""
    listed = [line for command, summary in commands.items() for line in _entry(command, summary, 14)]
    lines = [
        *_filled(about, 0),
        *("", f"usage: {name} COMMAND [options]", "", "commands:", *listed, "", "examples:"),
        *(f"  {example}" for example in examples.values()),
        *("", *_filled(f"`{name} COMMAND --help` explains a command and its options. Read on in {read_on}.", 0)),
    ]
    return "\n".join(lines)


def command_help(command: str, options: type, summary: str, example: str, defaults: Any) -> str:
    """One command: its options below their subjects, each with its default in `defaults`, where there is one."""
    described = options_of(options)
    positional = [option for option in described if option.argument.positional]
    flagged = [option for option in described if option.flags]
    placed = " ".join(_placed(option) for option in positional)
    about = f"{summary}\n\n{one_line(options.__doc__ or '')}\n\nexample: {example}"
    lines = [f"usage: {command} {placed} [options]", "", *_filled(about, 0)]
    lines += ["", *(line for option in positional for line in _entry(option.name, option.doc))] if positional else []
    for subject in dict.fromkeys(option.subject for option in flagged):
        lines += ["", f"{subject}:"]
        for option in flagged:
            if option.subject == subject:
                left = f"{', '.join(option.flags)} {option.metavar}".rstrip()
                lines += _entry(left, option.doc + _default(option, defaults))
        lines += _entry("-h, --help", "Show this text.") if subject == GENERAL else []
    return "\n".join(lines)


def _placed(option: Option) -> str:
    text = f"{option.name} ..." if option.several else option.name
    return text if option.required else f"[{text}]"


def _default(option: Option, defaults: Any) -> str:
    """The default in brackets, where there is something to say."""
    value = getattr(getattr(defaults, option.owner) if option.owner else defaults, option.field)
    if value is None or value in ("", (), []) or (option.kind is bool and not option.owner):
        return ""
    values = value if isinstance(value, list | tuple) else (value,)
    return f" (default: {' '.join(f'{each:.6g}' if isinstance(each, float) else str(each) for each in values)})"


def _entry(left: str, text: str, column: int = COLUMN) -> list[str]:
    """An option and its description beside it, or below where the option is long."""
    lines = _filled(text, column) or [""]
    if len(left) + 4 > column:
        return [f"  {left}", *lines]
    return [f"  {left}".ljust(column) + lines[0].lstrip(), *lines[1:]]


def _filled(text: str, indent: int) -> list[str]:
    """Lines of the text's paragraphs, with a blank line between two."""
    width, margin = max(50, min(shutil.get_terminal_size().columns, WIDEST)), " " * indent
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [""] if lines else []
        lines += textwrap.wrap(
            paragraph, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
        )
    return lines
