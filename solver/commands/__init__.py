"""The commands of `solver`, one file each: each with a dataclass `Options` and a function `run`. cli.py lists them."""

import sys

from modelgen.commandline.program import FAILED, INTERRUPTED, USAGE

MOST_JOBS = 1024  # processes at once

__all__ = ["FAILED", "INTERRUPTED", "MOST_JOBS", "USAGE", "announce"]


def announce(text: str) -> None:
    """Print a line on the progress to a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
