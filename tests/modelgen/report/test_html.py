"""HTML pages are well formed, complete and self-contained."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from modelgen.cli import main
from modelgen.derivation.model_file import SHIPPED


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> Callable[[str], ElementTree.Element]:
    """A function page(name): the tree of a shipped robot's page."""

    def of(name: str) -> ElementTree.Element:
        assert main(["show", name, "--html"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("<!DOCTYPE html>\n")
        assert not re.search(r"https?:|<script|<link|src=", text)
        return ElementTree.fromstring(text.partition("\n")[2])

    return of


def rows(tree: ElementTree.Element) -> list[list[str]]:
    """The text of every row of every table, without signs of multiplication."""
    cells = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    return [[text.replace("\u2062", "") for text in row] for row in cells]


def test_the_page_has_quantities_task_and_equations(page: Callable[[str], ElementTree.Element]) -> None:
    table = rows(page("cartpole"))
    for row in (
        ["s", "cart", "± 0.5 m", "± 5 m/s", "position of the cart, 0 mid-rail"],
        ["φ", "pole", "turns without end", "± 20 rad/s", "angle of the pole, 0 upright"],
        ["F", "force", "± 12 N", "horizontal force on the cart"],
        ["m2", "pole_mass", "0.127 kg", "0.0635 to 0.1905", "mass at the pole's centre"],
        ["φ", "pole", "0 rad", "3.1416 ± 0.224 rad"],
        ["log_cos (0.1)", "5 s", "0.8", "125 Hz", "500 Hz"],
        ["M11", "=", "m1+m2"],
        ["M12", "=", "lm2cos(φ)"],
        ["M22", "=", "l2m2"],
        ["f2", "=", "-d2φ˙+9.81lm2sin(φ)"],
        ["B11", "=", "1"],
    ):
        assert row in table
    assert ["qc", "="] in [row[:2] for row in table]


@pytest.mark.parametrize("name", ["furuta", "planar_arm3", "planar_quadrotor", "ball_on_beam"])
@pytest.mark.slow
def test_the_page_of_any_robot_is_well_formed(page: Callable[[str], ElementTree.Element], name: str) -> None:
    tree = page(name)
    assert all(len(math) == 1 for math in tree.iter("math"))
    assert not [element for element in tree.iter("mi") if element.text and "_" in element.text]
    lines = [row[2] for row in rows(tree) if len(row) == 3 and row[1] in ("=", "")]
    assert max(map(len, lines)) < 200
    (picture,) = tree.iter("svg")
    paths = [path.get("d", "") for path in picture.iter("path")]
    assert len(paths) == 2  # start and target
    numbers = [float(number) for path in paths for number in re.findall(r"-?[\d.]+", path)]
    assert min(numbers) >= 0
    assert max(numbers) == pytest.approx(240)


@pytest.mark.slow
def test_the_page_of_a_large_tree_is_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page" / "arm.html"
    assert main(["show", str(SHIPPED / "large" / "arm7.py"), "--html", str(file)]) == 0
    assert str(file) in capsys.readouterr().out
    tree = ElementTree.fromstring(file.read_text(encoding="utf-8").partition("\n")[2])
    assert "M77" in [row[0] for row in rows(tree)]
    assert main(["show", "pendulum", "--html", str(file), "--latex"]) == 2
    (tmp_path / "file").write_text("")
    assert main(["show", "pendulum", "--html", str(tmp_path / "file" / "a.html")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_special_characters_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (SHIPPED / "pendulum.py").read_text()
    (tmp_path / "pendulum.py").write_text(text.replace("angle of the rod, 0 upright", "a < b & c"))
    assert main(["show", str(tmp_path / "pendulum.py"), "--html"]) == 0
    assert "a &lt; b &amp; c" in capsys.readouterr().out


def test_a_script_in_a_meaning_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (SHIPPED / "pendulum.py").read_text()
    for words in ("motor torque", "angle of the rod, 0 upright", "A uniform rod on a motor"):
        assert words in text
        text = text.replace(words, "<script>alert(1)</script>")
    (tmp_path / "pendulum.py").write_text(text)
    assert main(["show", str(tmp_path / "pendulum.py"), "--html"]) == 0
    page = capsys.readouterr().out
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 3
