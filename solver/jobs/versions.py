"""Versions that the submitting machine and the worker of a job must share."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from solver.errors import SolverError

PACKAGES = ("torch", "numpy", "llvmlite")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the numerical packages, and the hash of this program's sources, by name."""
    root, content = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(path for package in ("modelgen", "solver") for path in (root / package).rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"solver": content.hexdigest()[:12], "python": python} | {name: version(name) for name in PACKAGES}


def require_versions(expected: Mapping[str, str]) -> None:
    """Raises SolverError unless this machine has the versions of the submitting machine."""
    here = versions()
    other = [f"{name} {here.get(name)} in place of {there}" for name, there in expected.items() if here[name] != there]
    if other:
        raise SolverError(
            f"the worker on {socket.gethostname()} has {', '.join(other)}; install the same versions there"
        )
