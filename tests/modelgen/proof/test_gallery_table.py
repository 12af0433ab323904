"""The table of findings in docs/reference/gallery.md has one row per robot, with all of its divisors."""

from __future__ import annotations

import re

import pytest

from modelgen.derivation.model_file import load
from modelgen.proof.guards import guards
from tests.modelgen.proof.gallery_table import HEADING, PAGE, paths

STATUS = "(?:proven|no violation found)"


@pytest.mark.slow
def test_the_table_has_every_quantity_of_every_robot() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    rows = re.findall(rf"^\| `(\w+)` \| {STATUS} \| {STATUS} \| (.*) \|$", section, re.MULTILINE)
    table = [(robot, re.findall(rf"(`[^`]+`): {STATUS}", divisors)) for robot, divisors in rows]
    robots = [load(str(path)) for path in paths()]
    assert table == [(robot.name, [guard.text for guard in guards(robot)]) for robot in robots]
