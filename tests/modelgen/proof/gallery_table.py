"""The list of docs/reference/gallery.md with the findings about the shipped robots. Running it rewrites the list."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.proof import TimeLimits, derived_findings, guard_findings

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "gallery.md"
HEADING = "## What is proven"
COLUMNS = ("mass matrix positive definite", "state cost never negative")
EVERY = "every robot of this page"
LIMITS = TimeLimits(search=5.0, proof=60.0)


def paths() -> list[Path]:
    """The model files of the list."""
    return [*sorted(SHIPPED.glob("[a-z]*.py")), SHIPPED / "large" / "arm7.py"]


def found() -> Iterator[tuple[str, dict[str, str]]]:
    """For each robot its name, and the status of its two columns and of its divisors."""
    for path in paths():
        robot = load(str(path))
        equations = equations_of_motion(robot)
        start = time.monotonic()
        findings = (*guard_findings(robot, LIMITS), *derived_findings(robot, equations, LIMITS))
        yield robot.name, {finding.what: finding.status for finding in findings}
        print(f"{robot.name}: {time.monotonic() - start:.1f} s", flush=True)


def listed(rows: dict[str, dict[str, str]]) -> Iterator[str]:
    """A line for each quantity and status, with the robots that have it."""
    robots: dict[tuple[str, str], list[str]] = {}
    for name, statuses in rows.items():
        for what, status in statuses.items():
            robots.setdefault((what, status), []).append(f"`{name}`")
    for (what, status), names in robots.items():
        yield f"- {what}: {status} for {EVERY if len(names) == len(rows) else ', '.join(names)}"


def main() -> None:
    """Rewrite the section of the page."""
    page = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    about = (
        "Over all states and inputs within the limits and all parameters within their bounds\n"
        "([how](model-files.md#what-modelgen-verify-proves)). `python -m tests.modelgen.proof.gallery_table` writes "
        "this list, with\n60 s for each proof."
    )
    text = "\n".join(listed(dict(found())))
    PAGE.write_text(f"{page}\n\n{HEADING}\n\n{about}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
