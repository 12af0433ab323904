"""What a program prints of artifacts, model files and runs, which others may have written: no control characters.

A terminal obeys them: a name with an escape sequence can hide lines, rewrite them, or reach the clipboard. Characters
that reverse the direction of writing make a line read as another one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

KEPT = "\n\t"
_CONTROL = [*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_ESCAPED = {code: chr(code).encode("unicode_escape").decode() for code in _CONTROL if chr(code) not in KEPT}


class _Printable:
    """A text stream that writes each control character as its escape in Python: ESC as \\x1b. It stays open."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(text.translate(_ESCAPED))
        return len(text)

    def close(self) -> None:
        """Stay open: a model file that closes it would take the words of the command away."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printable() -> Iterator[None]:
    """Let nothing that is printed within the block, to standard output or error, steer the terminal."""
    out, error = (cast("TextIO", _Printable(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(error):
        yield
