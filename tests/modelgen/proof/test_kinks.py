"""Forces and costs with a kink or a jump on the domain cause a warning; smooth ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from sympy import Abs, sympify

from modelgen.cli import main
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.proof.error_lines import warnings
from tests.modelgen.support.proofs import Draft

pytestmark = pytest.mark.slow


def kinks(expression: str, cost: bool = False) -> list[str]:
    """The warnings about a force, or about a term of the cost."""
    draft = Draft().bodies()
    term = sympify(expression, {"s": draft.s, "v": draft.s.rate, "q": draft.q, "u": draft.force})
    if cost:
        draft.cost += term
    else:
        draft.robot.apply(draft.s, term)
    return warnings(draft.finished())


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("sqrt(sin(q)**2)", "`Abs(sin(turn))`"),
        ("Abs(s)", "`Abs(slide)`"),
        ("3 * q + 0.2 * Abs(s - 0.5)", "slide = 0.5"),
        ("Max(s, q) * 2", "kink"),
        ("Min(q, 0.25)", "turn = 0.25"),
        ("-0.4 * sign(v)", "jumps from "),
        ("0.4 * sign(v)**2", "and back"),
        ("sign(sin(q))**2 * (q + 2)", "and back"),
        ("u * Abs(q)", "kink"),
    ],
)
@pytest.mark.parametrize("cost", [False, True])
def test_a_kink_is_reported_with_its_line_and_point(expression: str, words: str, cost: bool) -> None:
    if cost and "u" in expression.split():
        pytest.skip("a state cost has no input")
    (message,) = kinks(expression, cost)
    assert message.startswith(("tests/modelgen/proof/test_kinks.py:", "tests/modelgen/support/proofs.py:"))
    assert "\n" not in message
    assert words in message


@pytest.mark.parametrize(
    "expression",
    [
        "v * Abs(v)",  # quadratic drag has a slope everywhere
        "Abs(v)**1.5",
        "sign(v) * v**2",
        "Max(s, 0)**2",
        "Abs(s + 1.5) + Max(q, 3)",  # their arguments change no sign on the domain
        "tanh(v / 1e-3) + sqrt(s**2 + 1e-6)",
    ],
)
def test_a_smooth_expression_is_not_reported(expression: str) -> None:
    assert kinks(expression) == []


def test_end_stops_are_not_reported_although_they_contain_a_maximum() -> None:
    draft = Draft().bodies()
    draft.robot.end_stops(draft.s, 0.8, 4000, width=0.005, damping=3)
    assert any(load.force.has(Abs) for load in draft.robot.loads)
    assert warnings(draft.finished()) == []


@pytest.mark.parametrize("name", ["cartpole_quanser", "furuta"])
def test_shipped_robots_have_no_kinks(name: str) -> None:
    assert warnings(load(str(SHIPPED / f"{name}.py"))) == []


def test_build_warns_about_a_kink_and_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (SHIPPED / "pendulum.py").read_text()
    kink = 'robot.apply(angle, Abs(sin(angle)) * robot.parameter("slope", 1e-3, "N m", fixed=True))'
    line = next(line for line in text.splitlines() if line.startswith("robot.task("))
    (tmp_path / "pendulum.py").write_text(text.replace(line, f"from sympy import Abs, sin\n{kink}\n{line}"))
    assert main(["build", "./pendulum.py", "--generated", "out"]) == 0
    captured = capsys.readouterr()
    assert "warning: pendulum.py:" in captured.err
    assert "kink" in captured.err
    assert "-> out/pendulum" in captured.out
