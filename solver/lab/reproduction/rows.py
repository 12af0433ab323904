"""The JSON file beside a page of results whose rows come one by one: what a later call keeps of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from modelgen.artifact.typed import typed
from solver.errors import SolverError

Row = TypeVar("Row")
Content = TypeVar("Content")


def read_known(path: Path, read: Callable[[Any], Content]) -> Content | None:
    """What `read` makes of the content of a JSON file; None where there is no file.

    Raises SolverError for a file of which it makes nothing.
    """
    if not path.is_file():
        return None
    try:
        return read(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}); move it away, or write to another folder with --out"
        ) from error


def read_rows(path: Path, kind: type[Row], also: Callable[[dict[str, Any]], None] = lambda _: None) -> list[Row]:
    """The entries of `rows` as dataclasses of a kind; none where there is no file.

    also: what else is read of the content. Raises SolverError for a file of another content.
    """

    def read(content: Any) -> list[Row]:
        also(content)
        return [typed(kind, entry, "rows") for entry in content["rows"]]

    return read_known(path, read) or []
