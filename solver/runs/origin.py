"""Origin of results: the machine, and the commit of the program."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "–"


def machine() -> str:
    """Cores, memory and processor of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    cores = os.cpu_count() or 1
    return f"{cores} {'core' if cores == 1 else 'cores'}, {memory:.0f} GiB of memory, {name}"


def commit() -> str:
    """Commit of the program's repository, with a + if tracked files have changed.

    UNKNOWN if the program is not in its own repository, for example if it is installed.
    """
    if not (ROOT / ".git").exists():
        return UNKNOWN
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        described = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return described or UNKNOWN
