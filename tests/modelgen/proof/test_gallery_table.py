"""The list of findings in docs/reference/gallery.md has every quantity of every robot, with all of its divisors."""

from __future__ import annotations

import re

import pytest

from modelgen.derivation.model_file import load
from modelgen.proof.guards import guards
from tests.modelgen.proof.gallery_table import COLUMNS, EVERY, HEADING, PAGE, paths

pytestmark = pytest.mark.slow

STATUS = "(?:proven|no violation found)"


def test_the_list_has_every_quantity_of_every_robot() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    lines = re.findall(rf"^- (.+): {STATUS} for (.+)$", section, re.MULTILINE)
    robots = [load(str(path)) for path in paths()]
    every = [f"`{robot.name}`" for robot in robots]
    listed = {(name, what) for what, names in lines for name in (every if names == EVERY else names.split(", "))}
    stated = {
        (f"`{robot.name}`", what)
        for robot in robots
        for what in (*COLUMNS, *(f"divisor {guard.text}" for guard in guards(robot)))
    }
    assert listed == stated
