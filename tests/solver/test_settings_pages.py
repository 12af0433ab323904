"""The two pages of settings in docs/reference say what the code says; run as a script, this file rewrites them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import modelgen
from solver.lab.baselines.settings import BaselineSettings, baseline_settings
from solver.training.settings import Settings, make_settings

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
#: Machine-dependent: its default is the number of cores.
MACHINE = {"threads": "cores"}
LIST = re.compile(r"(<!-- list: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def meanings(settings: type) -> dict[str, str]:
    """The doc string under each field of a dataclass, read from its source."""
    (definition,) = ast.parse(inspect.getsource(settings)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr), f"{field.target.id} has no doc string"
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split())
    assert list(found) == [field.name for field in dataclasses.fields(settings)]
    return found


def option(name: str) -> str:
    """The option of the command line."""
    return f"`--{name.replace('_', '-')}`"


def shown(name: str, value: object) -> str:
    """A value as it is written on the command line."""
    if name in MACHINE:
        return MACHINE[name]
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={number}" for key, number in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def listed(settings: type, columns: dict[str, list[Any]]) -> str:
    """A line for every setting: its option, its values in every column (one where all are equal), its meaning."""
    lines = []
    for name, meaning in meanings(settings).items():
        values = {label: [shown(name, getattr(each, name)) for each in chosen] for label, chosen in columns.items()}
        cells = {label: cell[0] if len(set(cell)) == 1 else ", ".join(cell) for label, cell in values.items()}
        alike = len(set(cells.values())) == 1
        text = cells[next(iter(cells))] if alike else "; ".join(f"{label}: {cell}" for label, cell in cells.items())
        lines.append(f"- {option(name)} ({text}): {meaning}\n")
    return "".join(lines)


def lists() -> dict[str, str]:
    """The two lists by name."""
    robots = [modelgen.load(robot, dtype="float32") for robot in ("pendulum", "cartpole")]
    presets = {preset: [make_settings(preset, robot) for robot in robots] for preset in ("fast", "paper")}
    algorithms = [baseline_settings(name) for name in ("sac", "ddpg", "ppo")]
    baselines = listed(BaselineSettings, {"SAC, DDPG, PPO": algorithms})
    return {"training": listed(Settings, presets), "baselines": baselines}


def rewritten(text: str) -> str:
    """A page with its list as the code has it now."""
    made = lists()
    return LIST.sub(lambda found: found[1] + made[found[2]] + found[3], text)


def test_the_pages_of_settings_are_those_of_the_code() -> None:
    for name in ("settings.md", "baseline-settings.md"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert len(LIST.findall(text)) == 1
        assert rewritten(text) == text, "python tests/solver/test_settings_pages.py rewrites it"


def test_a_changed_value_or_meaning_is_noticed() -> None:
    text = (FOLDER / "settings.md").read_text(encoding="utf-8")
    for old, new in (("fast: 3072, 6144;", "fast: 3073, 6144;"), (meanings(Settings)["minibatch"], "Another meaning.")):
        assert old in text
        assert rewritten(text.replace(old, new, 1)) == text


def test_every_metric_is_explained(finished_run: Path) -> None:
    text = (FOLDER / "run-folder.md").read_text(encoding="utf-8")
    rows = (finished_run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = {name for row in rows for name in json.loads(row)}
    assert len(metrics) > 15
    assert not [name for name in sorted(metrics) if f"`{name}`" not in text]


if __name__ == "__main__":
    for page in (FOLDER / "settings.md", FOLDER / "baseline-settings.md"):
        page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
