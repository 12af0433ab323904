"""The commands of `solver`, one module each: its options as a dataclass, and `run` on them.

A module with `defaults` has options whose defaults depend on other options: it makes them from what was parsed first.
"""

USAGE, FAILED, INTERRUPTED = 2, 1, 130  # exit codes
