"""What must be the same where a job is given and where it runs."""

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
    """Name -> version: of Python, of the packages that compute, and of this program the hash of its sources."""
    root, content = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(path for package in ("modelgen", "solver") for path in (root / package).rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"solver": content.hexdigest()[:12], "python": python} | {name: version(name) for name in PACKAGES}


def require_versions(told: Mapping[str, str]) -> None:
    """Raise SolverError unless this machine has the versions of the one that gave a job."""
    here = versions()
    other = [f"{name} {here.get(name)} in place of {there}" for name, there in told.items() if here[name] != there]
    if other:
        raise SolverError(
            f"the worker on {socket.gethostname()} has {', '.join(other)}; install the same versions there"
        )
