"""`solver` in a process that ends with the one that started it, however that one ends."""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    """Run the words behind the program's name. Standard input is a pipe that closes when the parent is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from solver.cli import main as solver

    sys.exit(solver())


def _end_with_parent() -> None:
    os.read(0, 1)  # sys.stdin would hold its lock at exit
    os._exit(1)
