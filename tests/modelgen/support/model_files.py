"""The text of a small model file, and a function that writes it."""

from __future__ import annotations

from pathlib import Path

MODEL = """
from modelgen import LogCos, Robot
robot = Robot("slider", "words")
s = robot.prismatic("s", limit=1, rate_limit=2)
mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
robot.point_mass(mass, (s, 0))
robot.apply(s, robot.input("force", 3, "N"))
robot.task(state_cost=s**2, action_cost=LogCos(1), start=dict(s=(0.5, 0.1)), horizon=5,
           weight_at_horizon=0.5, control_rate=100)
"""


def written(folder: Path, text: str, name: str = "slider") -> Path:
    """Write ./models/NAME.py in a working folder."""
    path = folder / "models" / f"{name}.py"
    path.write_text(text)
    return path
