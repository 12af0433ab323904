"""LaTeX documents: every formula is well formed, and every quantity has a name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.mathtext import MathTextParser

from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.report.contents import contents as contents_of
from modelgen.report.contents import latex, letter_text, letters

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page() -> Callable[[str], str]:
    """A function page(name): the document of a shipped robot."""

    def of(name: str) -> str:
        robot = load(str(SHIPPED / f"{name}.py"))
        return latex(contents_of(metadata(robot), equations_of_motion(robot)))

    return of


@pytest.mark.parametrize("name", ["cartpole", "furuta", "planar_arm3", "planar_quadrotor"])
def test_every_formula_is_well_formed(page: Callable[[str], str], name: str) -> None:
    parser = MathTextParser("path")
    text = page(name)
    displayed = re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, re.DOTALL)
    assert len(displayed) == 2
    formulas = [line for block in displayed for line in block.split(r"\\")]
    formulas += re.findall(r"\$(.+?)\$", text)
    for formula in formulas:
        parser.parse(f"${formula.replace('&', '').strip()}$")
    assert max(map(len, text.splitlines())) < 250
    assert text.count("{") == text.count("}")
    for environment in ("document", "tabular", "align*"):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}")


def test_equations_have_the_form_of_a_textbook(page: Callable[[str], str]) -> None:
    text = page("cartpole")
    for formula in (
        r"M_{12} &= l m_{2} \cos{\left(\varphi \right)}",
        r"f_{2} &= - d_{2} \dot{\varphi} + 9.81 l m_{2} \sin{\left(\varphi \right)}",
        r"B_{11} &= 1",
    ):
        assert f"{formula} " in text or f"{formula}\n" in text
    assert r"$m_{2}$ & pole\_mass & 0.127 kg & 0.0635 to 0.1905 & mass at the pole's centre \\" in text
    assert r"$s$ & cart & $\pm 0.5$ m & $\pm 5$ m/s & position of the cart, 0 mid-rail \\" in text
    assert "M_{21}" not in text
    assert "B_{21}" not in text


@pytest.mark.parametrize("name", ["cartpole_quanser", "planar_arm2", "planar_quadrotor", "reaction_wheel"])
def test_every_letter_has_one_meaning(name: str) -> None:
    robot = load(str(SHIPPED / f"{name}.py"))
    equations = equations_of_motion(robot)
    names = letters(metadata(robot), equations)
    assert len(set(map(letter_text, names.values()))) == len(names)
    assert {*equations.state, *equations.inputs, *equations.parameters} <= names.keys()


def test_units_and_indices_of_a_large_robot_are_unambiguous(tmp_path: Path) -> None:
    lines = ["from modelgen import Quadratic, Robot", 'robot = Robot("large")']
    lines += ['k = robot.parameter("k", 1, "kg m^2/(m^2 s^2)", tolerance=0.1)', "x = []"]
    lines += ["for i in range(12):", '    x.append(robot.prismatic(f"x{i}", limit=2, rate_limit=3))']
    lines += ["    robot.kinetic_energy(x[i].rate**2)", "    robot.spring(x[i], k)"]
    lines += ['    robot.apply(x[i], robot.input(f"u{i}", 1, "N"))', "robot.apply(x[0], robot.inputs[10].symbol / 2)"]
    lines += ["robot.apply(x[10], robot.inputs[0].symbol / 3)"]
    lines += ["robot.task(state_cost=x[0]**2, action_cost=Quadratic(1), start={}, horizon=5, weight_at_horizon=0.5,"]
    (tmp_path / "large.py").write_text("\n".join([*lines, "    control_rate=100)"]))
    robot = load(str(tmp_path / "large.py"))
    text = latex(contents_of(metadata(robot), equations_of_motion(robot)))
    assert "kg m$^{2}$/(m$^{2}$ s$^{2}$)" in text
    assert "B_{1,11}" in text
    assert "B_{11,1}" in text


def test_special_characters_are_escaped_in_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (SHIPPED / "pendulum.py").read_text()
    changed = text.replace("angle of the rod, 0 upright", r"50 % & #1 of a_b ~ x^2 {\\}")
    (tmp_path / "pendulum.py").write_text(changed)
    assert main(["show", str(tmp_path / "pendulum.py"), "--latex"]) == 0
    output = capsys.readouterr().out
    assert r"50 \% \& \#1 of a\_b \textasciitilde{} x\textasciicircum{}2 \{\textbackslash{}\}" in output
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}  # a terminal that is not UTF-8
    (tmp_path / "pendulum.py").write_text(text.replace("0 upright", "né"), encoding="utf-8")
    command = [sys.executable, "-m", "modelgen.cli", "show", str(tmp_path / "pendulum.py"), "--latex"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert "né" in done.stdout.decode("utf-8")
    assert main(["show", "pendulum", "--latex", "--linearize"]) == 2
    assert "--linearize" in capsys.readouterr().err
