"""Pages: every relative link leads to a file of the repository, and every anchor to a heading of that file."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shutil
import string
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import solver
from modelgen.cli import main as modelgen_main
from solver.cli import main as solver_main
from tests.solver.small_trainings import unjudged

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "modelgen").rglob("*.md")])
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
KEPT = string.ascii_lowercase + string.digits + "-_ "


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {anchor(heading) for heading in HEADING.findall(text)}


def anchor(heading: str) -> str:
    """Lower case, without punctuation, spaces as hyphens; a link counts by its text."""
    words = re.sub(r"\]\([^)]*\)", "", heading).lower()
    return "".join(letter for letter in words if letter in KEPT or letter.isalpha()).replace(" ", "-")


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    found = []
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# The `first` part, (a)\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("[1](there.md#the-first-part-a) [2](there.md#second) [3](gone.md) `[4](code.md)`", encoding="utf-8")
    assert broken(page) == ["there.md#second", "gone.md"]


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    seen, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
        for link in LINK.findall(text):
            path = link.partition("#")[0]
            if path and not path.startswith("http"):
                left.append((page.parent / path).resolve())
    assert set((ROOT / "docs").rglob("*.md")) <= seen


def test_every_page_that_a_source_file_names_is_there() -> None:
    named = re.compile(r"\bdocs/[\w./-]*\w")
    folders = ("modelgen", "solver", "models", "tests", "benchmarks")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py*")]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        if path.suffix in (".py", ".txt") and path != Path(__file__)
        for name in named.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert not missing


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a robot to its firmware, as it stands there; only the training is shorter."""
    swing_up, text = blocks_of("../README.md", "python")
    short: dict[str, Any] = {
        "iterations": 2,
        "states": 128,
        "epochs": 1,
        "members": 1,
        "width": 8,
        "episodes": 4,
    }
    monkeypatch.setattr(solver, "train", partial(solver.train, preview=0, threads=1, **short))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(swing_up, names)
    assert names["motion"].is_success
    assert Path("swing-up.png").is_file()
    with pytest.warns(UserWarning, match="2 iterations"), unjudged():
        exec(text, {})
    assert {path.name for path in Path("firmware").iterdir()} >= {"rod_policy.c", "rod_policy.h"}
    assert Path("runs/rod/checkpoint.pt").is_file()


def blocks_of(page: str, language: str) -> list[str]:
    """The blocks of a language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)


def python_of(page: str) -> str:
    """The Python of a page that has one block of it."""
    (text,) = blocks_of(page, "python")
    return text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_fmus_of_the_page_swing_the_pole_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fmpy", reason="FMPy is not installed")
    monkeypatch.chdir(tmp_path)
    assert modelgen_main(["export", "cartpole", "--fmu", "fmus"]) == 0
    assert solver_main(["export", "cartpole-rfvi", "--fmu", "fmus/controller.fmu"]) == 0
    names: dict[str, Any] = {}
    exec(python_of("how-to/export-an-fmu.md"), names)
    cart, pole, *rates = names["x"]
    assert abs(math.remainder(pole, 2 * math.pi)) < 0.05
    assert max(map(abs, [cart, *rates])) < 0.1


@pytest.mark.slow
def test_the_lines_for_jax_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    names: dict[str, Any] = {}
    exec(python_of("how-to/use-jax.md"), names)
    assert names["A"].shape == (4, 4)
    assert names["gain"].shape == (1, 4)
    assert -20.0 < float(capsys.readouterr().out) < 0.0


def test_every_path_that_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = "modelgen|solver|tests|models|docs|benchmarks"
    named = set(re.findall(rf"`((?:{folders})/[\w./-]+)`", text))
    assert len(named) > 30
    assert not [name for name in sorted(named) if "NAME" not in name and not (ROOT / name).exists()]


def test_every_import_in_the_docs_works() -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    line = re.compile(r"^ *(from (?:solver|modelgen)[\w.]* import [\w, ]+|import (?:solver|modelgen)[\w.]*)", re.M)
    found = [statement for page in PAGES for statement in line.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > 20
    for statement in found:
        exec(statement, {})


def rows_of(page: str, *header: str) -> dict[str, list[str]]:
    """Cells of the tables of a page whose header begins with some words, by their first cell."""
    blocks = re.findall(r"(?:^\|.*\n)+", (ROOT / page).read_text(encoding="utf-8"), re.M)
    tables = [
        [[cell.replace("**", "").strip() for cell in line.strip().strip("|").split("|")] for line in b.splitlines()]
        for b in blocks
    ]
    return {row[0]: row[1:] for table in tables if tuple(table[0][: len(header)]) == header for row in table[2:]}


def test_every_number_of_the_readme_is_one_of_a_result_file() -> None:
    """Nominal rows are those of the shipped policies, rows with another mass those of the page on robustness."""
    shown = rows_of("README.md", "")
    shown = {name: row for name, row in shown.items() if re.match(r"-\d", row[0])}
    robots = {
        "Furuta pendulum": "furuta",
        "acrobot of RealAIGym's contest": "realaigym_acrobot",
        "cart-pole": "cartpole",
    }
    masses, checked = rows_of("docs/results/robustness.md", "mass", "told", "rFVI", "cFVI"), 0
    limits = json.loads((ROOT / "docs/results/gallery.json").read_text())["limits"]
    for name, (nominal, robust, limit) in shown.items():
        if heavier := re.search(r"rod ([\d.]+) times", name):
            _, rfvi, cfvi = masses[heavier[1]]
            expected = {nominal: cfvi, robust: rfvi}
            for cell, measured in expected.items():
                (value, success), (exact, rate) = cell.split(", "), measured.split(", ")
                assert abs(float(value) - float(exact)) < 0.055, name  # rounded to 0.1, from a number rounded to 0.01
                assert success == rate, name
            assert not limit
        else:
            figures = {
                kind: json.loads((ROOT / f"solver/shipped/{robots.get(name, name)}-{kind}/figures.json").read_text())
                for kind in ("cfvi", "rfvi")
            }
            for cell, each in zip((nominal, robust), figures.values(), strict=True):
                assert cell == f"{each['return_mean']:.1f}, {100 * each['success_rate']:.0f} %", name
            best = max(limits[robots.get(name, name)]["limit"], *(each["limit"] for each in figures.values()))
            assert limit in {f"{best:.1f}", f"{figures['cfvi']['limit']:.1f}"}, name
        checked += 1
    assert checked == 6
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [masses["1.5"][k].split(", ")[1] for k in (2, 1)] == ["0 %", "100 %"]
    assert "up to 55 % wrong" in text
    for robot in ("cartpole", "furuta"):
        measured = json.loads((ROOT / f"docs/results/fig-parameters-full/{robot}.json").read_text())["parameters"]
        for result in measured:
            (found,) = (group for group in result["groups"] if group["label"] == "Estimated")
            points = zip(result["axes"][0]["changes"], found["statistics"]["success_rate"]["value"], strict=True)
            assert all(rate >= 0.95 for change, rate in points if abs(change - 1.0) < 0.551)
    contest = (ROOT / "docs/results/realaigym.md").read_text(encoding="utf-8")
    boards = re.findall(r"(0\.\d{3}) of (0\.\d{3})", text)
    assert len(boards) == 2
    for ours, best in boards:
        board = next(part for part in contest.split("### ") if f"-cfvi** | {ours} |" in part)
        assert max(re.findall(r"^\| .*? \| (\d\.\d{3}) \|", board, re.M)) == best


def test_the_shares_of_wrong_robots_are_those_of_the_result_files() -> None:
    """The page has the table of `benchmarks/cells.py`, of the rows in cells.csv."""
    spec = importlib.util.spec_from_file_location("cells", ROOT / "benchmarks" / "cells.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(cells := importlib.util.module_from_spec(spec))
    shares = cells.read()
    gallery = json.loads((ROOT / "docs/results/gallery.json").read_text())["rows"]
    assert {*shares} >= {row["robot"] for row in gallery}
    assert len({row["robot"] for row in gallery}) == 16
    assert {cells.held(of["estimated"]) for of in shares.values()} == {100.0}
    assert "[20 % wrong]" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert cells.table(shares) in (ROOT / "docs/results/robustness.md").read_text(encoding="utf-8")


def test_the_points_of_wrong_parameters_are_those_of_the_result_files() -> None:
    held: dict[str, int] = {}
    points: dict[str, int] = {}
    for path in (ROOT / "docs/results/fig-parameters-full").glob("*.json"):
        for parameter in json.loads(path.read_text())["parameters"]:
            for group in parameter["groups"]:
                success = group["statistics"]["success_rate"]["value"]
                held[group["label"]] = held.get(group["label"], 0) + sum(share >= 0.95 for share in success)
                points[group["label"]] = points.get(group["label"], 0) + len(success)
    every, few = max(points.values()), points.pop("Energy, LQR")
    assert {*points.values()} == {every}
    assert held["cFVI"] == held["rFVI"]
    stated = (
        f"Of {every} points in `fig-parameters-full/*.json` 95 % succeed at {held['rFVI']} with cFVI and rFVI, "
        f"{held['Told']} told, {held['Estimated']} estimated (energy shaping: {held['Energy, LQR']} of {few})"
    )
    assert stated in (ROOT / "docs/results/robustness.md").read_text()


def test_every_command_of_the_readme_is_one_of_the_docs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs" / "reference" / "command-lines.md").read_text(encoding="utf-8")
    commands = {*re.findall(r"\b((?:solver|modelgen) [a-z]+)\b", "\n".join(CODE.findall(text)))}
    assert len(commands) >= 6
    assert not [command for command in sorted(commands) if f"`{command}" not in reference]
    targets = re.findall(r"^make (\S+)", text, re.M)
    assert targets
    assert not [name for name in targets if not re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.M)]


def test_the_citation_is_of_this_version() -> None:
    def found(file: str, pattern: str) -> list[str]:
        return re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.M)

    (number,) = found("pyproject.toml", r'^version = "(.*)"$')
    assert found("CITATION.cff", r"^version: (.*)$") == [number]
    assert next(name for name in found("CHANGELOG.md", r"^## (.*)$") if name != "Unreleased") == number
