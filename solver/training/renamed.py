"""Settings that version 0.1 stated otherwise. The old names work for one version more.

On the command line `--old-name` stands for `--present-name`, with a line on the standard error stream. From Python
`make_settings` takes old names with a DeprecationWarning. Run folders of version 0.1 are read without a word.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

#: Old name -> present name.
RENAMED = {"sampled": "reaction_periods", "holds": "step_periods"}


def renamed_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, under their present names."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def warn_of_renamed(names: Mapping[str, Any]) -> None:
    """A DeprecationWarning at the caller's caller for every old name."""
    for old in RENAMED.keys() & names.keys():
        warnings.warn(f"{old} is called {RENAMED[old]} now", DeprecationWarning, stacklevel=3)
