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
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


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


def table(settings: type, columns: dict[str, list[Any]]) -> str:
    """A row for every setting: its option, its values in every column (one where all are equal), its meaning."""
    rows = [["setting", *columns, "meaning"], ["---"] * (len(columns) + 2)]
    for name, meaning in meanings(settings).items():
        values = [[shown(name, getattr(chosen, name)) for chosen in column] for column in columns.values()]
        cells = [column[0] if len(set(column)) == 1 else ", ".join(column) for column in values]
        rows.append([option(name), *cells, meaning.replace("|", "\\|")])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def tables() -> dict[str, str]:
    """The two tables by name."""
    robots = [modelgen.load(robot, dtype="float32") for robot in ("pendulum", "cartpole")]
    presets = {f"`{preset}`": [make_settings(preset, robot) for robot in robots] for preset in ("fast", "paper")}
    algorithms = [baseline_settings(name) for name in ("sac", "ddpg", "ppo")]
    return {"training": table(Settings, presets), "baselines": table(BaselineSettings, {"SAC, DDPG, PPO": algorithms})}


def rewritten(text: str) -> str:
    """A page with its tables as the code has them now."""
    made = tables()
    return TABLE.sub(lambda found: found[1] + made[found[2]] + found[3], text)


def test_the_pages_of_settings_are_those_of_the_code() -> None:
    for name in ("settings.md", "baseline-settings.md"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert len(TABLE.findall(text)) == 1
        assert rewritten(text) == text, "python tests/solver/test_settings_pages.py rewrites it"


def test_a_changed_value_or_meaning_is_noticed() -> None:
    text = (FOLDER / "settings.md").read_text(encoding="utf-8")
    for old, new in (("| 3072, 6144 |", "| 3073, 6144 |"), (meanings(Settings)["minibatch"], "Another meaning.")):
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
