"""The commands of `solver`, one file each: its options as a dataclass, and `run`. cli.py lists them."""

from modelgen.commandline.program import FAILED, INTERRUPTED, USAGE

__all__ = ["FAILED", "INTERRUPTED", "USAGE"]
