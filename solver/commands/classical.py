"""`solver classical`: a control engineer's controller of the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solver.commands.training import RunOptions, begin, require_alone
from solver.lab.baselines.classical import ClassicalSettings


@dataclass(frozen=True)
class Options(RunOptions):
    """Tunes the controller by the task's cost, as other algorithms are trained, and writes a run folder."""

    settings: ClassicalSettings = field(default_factory=ClassicalSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The defaults; --resume stands alone."""
    require_alone(given)
    return Options()


def run(options: Options) -> None:
    """Tune, and show the progress."""
    begin("classical", options, options.settings)
