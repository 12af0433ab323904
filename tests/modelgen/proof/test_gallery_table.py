"""The table of what is proven in the gallery: a row for each quantity of each robot, and no other."""

from __future__ import annotations

import re

import pytest

from modelgen.derivation.model_file import load
from modelgen.proof.guards import guards
from tests.modelgen.proof.gallery_table import HEADING, PAGE, paths

ALWAYS = ["mass matrix positive definite", "state cost never negative"]


@pytest.mark.slow
def test_the_table_has_every_quantity_of_every_robot() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    stated = re.findall(r"^\| `(\w+)` \| (.*?) \| (?:proven|no violation found) \| .+ \|$", section, re.MULTILINE)
    robots = [load(str(path)) for path in paths()]
    assert stated == [
        (robot.name, what) for robot in robots for what in [*(each.name for each in guards(robot)), *ALWAYS]
    ]
