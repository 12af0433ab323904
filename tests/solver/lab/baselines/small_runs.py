"""Baselines that train in a second, for the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Train = Callable[..., None]  # (folder, report, **changes of TINY)
TINY: dict[str, Any] = {"steps": 240, "hold": 5, "environments": 4, "evaluate_every": 120, "episodes": 3}
TINY |= {"minibatch": 16, "layers": 1, "width": 8}
ALGORITHMS = ["sac", "ddpg", "ppo"]


def words(generated: str, **changes: Any) -> list[str]:
    """The settings, and the robot's folder, on the command line."""
    options = {**TINY, "generated": generated, **changes}
    return [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
