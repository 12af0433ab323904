"""The table of docs/reference/gallery.md with the findings about each shipped robot. Running it rewrites the table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.proof.findings import TimeLimits, derived_findings, guard_findings

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "gallery.md"
HEADING = "## What is proven"
COLUMNS = ("mass matrix positive definite", "state cost never negative")
LIMITS = TimeLimits(search=5.0, proof=60.0)


def paths() -> list[Path]:
    """The model files of the table."""
    return [*sorted(SHIPPED.glob("[a-z]*.py")), SHIPPED / "large" / "arm7.py"]


def rows() -> Iterator[str]:
    """A line of the table for each robot: the status of its two columns, and of its divisors by name."""
    for path in paths():
        robot = load(str(path))
        equations = equations_of_motion(robot)
        start = time.monotonic()
        findings = (*guard_findings(robot, LIMITS), *derived_findings(robot, equations, LIMITS))
        status = {finding.what: finding.status for finding in findings}
        proven = " | ".join(status.pop(column) for column in COLUMNS)
        divisors = ", ".join(f"{what.removeprefix('divisor ')}: {known}" for what, known in status.items())
        yield f"| `{robot.name}` | {proven} | {divisors} |"
        print(f"{robot.name}: {time.monotonic() - start:.1f} s", flush=True)


def main() -> None:
    """Rewrite the section of the page."""
    page = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    about = (
        "Over all states and inputs within the limits and all parameters within their bounds\n"
        "([how](model-files.md#what-modelgen-verify-proves)). `python -m tests.modelgen.proof.gallery_table` writes "
        "this table, with\n60 s for each proof."
    )
    table = "\n".join([f"| robot | {' | '.join(COLUMNS)} | divisors |", "|---|---|---|---|", *rows()])
    PAGE.write_text(f"{page}\n\n{HEADING}\n\n{about}\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
