"""From the words of a command line to a command's options. A mistake is told in one paragraph: see `UsageError`."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, cast

from modelgen.commandline.options import Option, options_of
from modelgen.errors import suggestion

HELP = ("-h", "--help")
WANTED = {"INT": "a whole number", "FLOAT": "a number", "INT ...": "whole numbers", "FLOAT ...": "numbers"}
Notice = Callable[[str], None]
Renamed = Callable[[], Mapping[str, str]]


class UsageError(ValueError):
    """A mistake on the command line; the message says what to write instead."""


def read(command: str, options: type, words: Sequence[str], renamed: Renamed, notice: Notice) -> dict[str, Any]:
    """Field name -> value of everything that the words give, and of nothing else. Raises UsageError.

    command: with the program's name, for messages. renamed: gives old option -> new option, without dashes; called for
    an option that is not known. notice: told of every old option that stands there.
    """
    described = options_of(options)
    known = {flag: option for option in described for flag in option.flags}
    words = [word for word in _current(words, known, renamed, notice) if word not in HELP]
    written = _written(command, words, known)
    # Choices are plain text for tyro, which would not say which of them was meant.
    kinds = {option.key: option.as_text if option.choices else option.kind for option in described}
    given = _parsed(command, described, kinds, words, written)
    for option in described:
        value = given.get(option.field)
        values = value if option.several and value is not None else [value]
        wrong = [each for each in values if each is not None and option.choices and each not in option.choices]
        if wrong:
            raise UsageError(
                f"{option.shown} {wrong[0]} is not a choice.{suggestion(str(wrong[0]), option.choices)} "
                f"Choices are {', '.join(option.choices)}."
            )
    return given


def completed(command: str, options: type, given: Mapping[str, Any], defaults: Any = None) -> Any:
    """The command's options: `defaults`, or those of the dataclass, changed by what is given. Raises UsageError."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for option in options_of(options):
        if option.field in given:
            (nested.setdefault(option.owner, {}) if option.owner else own)[option.field] = given[option.field]
        elif option.required:
            raise UsageError(f"`{command}` needs {option.shown}. {option.doc} See `{command} --help`.")
    start = options(**own) if defaults is None else defaults
    parts = {name: dataclasses.replace(getattr(start, name), **changes) for name, changes in nested.items()}
    return dataclasses.replace(start, **own, **parts)


def _current(words: Sequence[str], known: Mapping[str, Option], renamed: Renamed, notice: Notice) -> Iterator[str]:
    """The words with the present name of every renamed option, and with hyphens for underscores in options."""
    for word in words:
        flag, equals, value = word.partition("=")
        if not flag.startswith("--"):
            yield word
            continue
        flag = flag.replace("_", "-")
        present = "" if flag in known else f"--{renamed().get(flag[2:], '')}"
        if present in known:
            notice(f"{flag} is now {present}; the old name works in this version only")
            flag = present
        yield flag + equals + value


def _written(command: str, words: Sequence[str], known: Mapping[str, Option]) -> dict[str, list[str]]:
    """Option -> the words behind it. UsageError for one that does not exist, or that stands twice with several values.

    The parser would keep the last of two such options without a word.
    """
    behind: dict[str, list[str]] = {}
    twice, flag = "", ""
    for word in words:
        if not re.match("--?[A-Za-z]", word):
            behind.setdefault(flag, []).append(word)
            continue
        flag, equals, value = word.partition("=")
        if flag not in known:
            hint = suggestion(flag, known) or _beginning(flag, known)
            raise UsageError(f"`{command}` has no option {flag}.{hint} `{command} --help` lists all of them.")
        if equals and known[flag].kind is bool:
            raise UsageError(f"{flag} takes no value. Write {' or '.join(known[flag].flags)}.")
        if known[flag].several and flag in behind:
            twice = twice or flag
        behind.setdefault(flag, []).extend([value] if equals else [])
    if twice:
        raise UsageError(f"{twice} stands twice. Write all values behind one: {twice} {' '.join(behind[twice])}")
    return behind


def _beginning(flag: str, known: Mapping[str, Option]) -> str:
    """A hint where the word is the beginning of one option only."""
    found = [each for each in known if each.startswith(flag)]
    return f" Did you mean `{found[0]}`?" if len(found) == 1 else ""


def _parsed(
    command: str,
    described: Sequence[Option],
    kinds: Mapping[str, Any],
    words: Sequence[str],
    written: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """What tyro makes of the words, by field. Raises UsageError."""
    import tyro

    dictionary, positional = cast(Any, TypedDict), cast(Any, tyro.conf.Positional)
    fields = {o.key: positional[kinds[o.key]] if o.argument.positional else kinds[o.key] for o in described}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = tyro.cli(dictionary("options", fields, total=False), prog=command, args=words, add_help=False)
    except SystemExit:
        raise UsageError(_mistake(command, described, written, said.getvalue())) from None
    return {option.field: found[option.key] for option in described if option.key in found}


def _mistake(command: str, described: Sequence[Option], written: Mapping[str, Sequence[str]], said: str) -> str:
    """What tyro said in a box, as a sentence: which option has a wrong value, and what it may be."""
    text = " ".join(re.sub("[│╭╮╰╯─-]{2,} | [│─] ", " ", said.replace("\n", " \n ")).split())
    for option in described:
        if option.flags and re.search(rf"{option.flags[0]}\b(?!-)", said):
            values = " ".join(written.get(option.flags[0], ()))
            wanted = WANTED.get(option.metavar, "")
            return f"{option.shown} {values}".rstrip() + (
                f" cannot be read. Write {option.shown} {option.metavar}{f', {wanted}' if wanted else ''}."
            )
    extra = re.search("Unrecognized options: (.*?)( For full helptext| Perhaps you|$)", text)
    if extra:
        return f"`{command}` has no place for {extra[1]}. `{command} --help` shows what it takes."
    return f"{text}. `{command} --help` explains all options."
