"""The table of findings in docs/reference/gallery.md has one row per quantity of each robot."""

from __future__ import annotations

import re

from modelgen.derivation.model_file import load
from modelgen.proof.guards import guards
from tests.modelgen.proof.gallery_table import HEADING, PAGE, paths

ALWAYS = ["mass matrix positive definite", "state cost never negative"]


def test_the_table_has_every_quantity_of_every_robot() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    table = re.findall(r"^\| `(\w+)` \| (.*?) \| (?:proven|no violation found) \| .+ \|$", section, re.MULTILINE)
    robots = [load(str(path)) for path in paths()]
    assert table == [
        (robot.name, what) for robot in robots for what in [*(guard.name for guard in guards(robot)), *ALWAYS]
    ]
