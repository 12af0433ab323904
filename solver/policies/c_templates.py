"""What every C source of a run has in common: its templates, and the names and numbers that they take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template

from modelgen.loader import CompiledRobot
from solver.value.features import Features

TEMPLATES = Path(__file__).parent / "templates"


def filled(template: str, fields: Mapping[str, object]) -> str:
    """The text of a file of `templates`, every $name in it replaced."""
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(fields)


def names(robot: CompiledRobot, label: str) -> dict[str, object]:
    """Of the robot, its states and inputs."""
    metadata = robot.metadata
    return {
        "name": robot.name,
        "NAME": robot.name.upper(),
        "label": label,
        "n": len(metadata.states),
        "m": len(metadata.inputs),
        "states": f"x ({', '.join(state.name for state in metadata.states)})",
        "inputs": f"u ({', '.join(entry.name for entry in metadata.inputs)})",
        "period": repr(1.0 / metadata.task.control_rate),
        "nominal": _nominal(robot),
    }


def _nominal(robot: CompiledRobot) -> str:
    """The parameters as an argument in C: the exported robot's own, or a literal where others were identified."""
    values = tuple(each.value for each in robot.metadata.parameters)
    if values == robot.declared_parameters:
        return f"{robot.name}_nominal" if values else "0"
    return f"(const {robot.name}_real[]){{{listed(values)}}}"


def feature_map(features: Features) -> dict[str, object]:
    """z(x)."""
    return {
        "angles": len(features.angles),
        "features": features.size,
        "angle_index": ", ".join(map(str, features.angles.tolist())) or "0",
        "other_index": ", ".join(map(str, features.others.tolist())) or "0",
        "scale": listed(features.scale.tolist()) or "0",
    }


def listed(values: Iterable[float]) -> str:
    """Numbers in C, with all their digits."""
    return ", ".join(map(repr, values))
