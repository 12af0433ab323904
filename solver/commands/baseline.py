"""`solver baseline`: an algorithm of Stable-Baselines3 on the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solver.commands.training import RunOptions, begin, require_alone
from solver.lab.baselines.settings import BaselineSettings, baseline_settings

COMMON = ("robot", "algorithm", "start", "randomize", "steps", "seed", "out", "overwrite", "resume")


@dataclass(frozen=True)
class Options(RunOptions):
    """The defaults of the settings depend on the algorithm: `solver baseline ROBOT --algorithm ppo --help` shows the
    defaults of PPO."""

    settings: BaselineSettings = field(default_factory=BaselineSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The algorithm's settings, which the command line then changes."""
    require_alone(given)
    return Options(settings=baseline_settings(given.get("algorithm", BaselineSettings.algorithm)))


def run(options: Options) -> None:
    """Train, and show the progress."""
    begin("baseline", options, options.settings)
