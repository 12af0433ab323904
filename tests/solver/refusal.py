"""What a reader of a hostile file may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from modelgen.errors import LONGEST, ModelError
from solver.errors import SolverError

Result = TypeVar("Result")


def refused_or(read: Callable[[], Result], where: str) -> Result | None:
    """The result, or None where one paragraph, which names the file, refuses it."""
    try:
        return read()
    except (SolverError, ModelError) as refusal:
        text = str(refusal)
    assert where in text
    assert 10 < len(text) <= LONGEST
    return None
