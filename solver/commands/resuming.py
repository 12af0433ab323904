"""An interrupted run: what may be given with --resume, and the hint after Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT


def require_alone(given: Mapping[str, Any]) -> None:
    """Raise SolverError when --resume is given with another option: a run keeps its own settings."""
    if "resume" in given and len(given) > 1:
        raise SolverError("a resumed run keeps its own robot and settings; give --resume DIR and nothing else")


def hint(command: str, folder: Path) -> str:
    """The message after Ctrl-C."""
    if not (folder / CHECKPOINT).is_file():
        return "interrupted before the run had a checkpoint; start it again"
    return f"interrupted; continue with: solver {command} --resume {folder}"
