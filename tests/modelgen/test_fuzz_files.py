"""Model files and URDFs with random mistakes: every failure is a ModelError, and a robot that builds is finite."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from modelgen import ModelError
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import samples
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import ROBOT
from tests.modelgen.support.evaluation import Uncompiled

PENDULUM = "import sympy\n" + (SHIPPED / "pendulum.py").read_text()
CARTPOLE = "import sympy\n" + (SHIPPED / "cartpole.py").read_text()


def words(text: str) -> list[str]:
    return text.split()


VALUES = words(
    """nan inf -1 0 1e308 1e-320 10**400 10**5000 'a' None True [] () {} 1j ... b'x' set() object() range(3) robot
    lambda:1 float('nan') float('inf') sympy.nan sympy.zoo sympy.oo sympy.I sympy.pi sympy.Symbol('zz')
    sympy.Symbol('mass') sympy.Matrix([1,2]) sympy.eye(2) sympy.gamma(sympy.Symbol('mass')) sympy.Eq(1,2)
    sympy.Piecewise((1,True)) sympy.Integral(sympy.Symbol('t')) sympy.Function('f')(1) sympy.S.true
    dict(a=1) 'é' 'for' '' '\\ud800' 'x'*10000 __import__('numpy').array([1.,2.])"""
)
FUNCTIONS = words(
    """gamma erf floor Heaviside Max Abs log exp tan acos re DiracDelta factorial Mod sign cbrt Integral"""
)
OPERATORS = words("""** + - * / // % @ < == & , ( ) . =""")
TOKENS = {
    "number": re.compile(r"\b\d+(?:\.\d*)?\b"),
    "name": re.compile(r"\b[a-zA-Z_]\w*\b"),
    "string": re.compile(r'"[^"\n]*"'),
    "operator": re.compile(r"\*\*|[-+*/=(),.]"),
    "line": re.compile(r"^.*\n", re.MULTILINE),
}
Mistake = tuple[str, int, str]


def mistaken(text: str, mistakes: list[Mistake]) -> str:
    """The text with, for every mistake, one token replaced by another text; {} in that is the token itself."""
    for kind, number, replacement in mistakes:
        tokens = list(TOKENS[kind].finditer(text))
        if tokens:
            token = tokens[number % len(tokens)]
            text = text[: token.start()] + replacement.replace("{}", token[0]) + text[token.end() :]
    return text


def mistakes(*kinds: st.SearchStrategy[Mistake]) -> st.SearchStrategy[list[Mistake]]:
    return st.lists(st.one_of(kinds), min_size=1, max_size=3)


def replaced(kind: str, by: list[str]) -> st.SearchStrategy[Mistake]:
    return st.tuples(st.just(kind), st.integers(0, 200), st.sampled_from(by))


FILE_MISTAKES = mistakes(
    replaced("number", VALUES),
    replaced("name", [*VALUES, *(f"sympy.{function}({{}})" for function in FUNCTIONS)]),
    replaced("string", VALUES),
    replaced("operator", OPERATORS),
    replaced("line", ["", "{}{}"]),
)


def explained(error: ModelError, where: str = "") -> None:
    """One paragraph."""
    assert where in str(error)
    assert 10 < len(str(error)) < 2000
    assert "\n" not in str(error)


def held(path: Path) -> None:
    """Load, derive and check the file. A failure must be a ModelError with its place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            robot = load(str(path))
        content_hash(robot)
        equations = equations_of_motion(robot)
        check_domain(robot, equations)
    except ModelError as error:
        explained(error)
        return
    x, theta = samples(robot, 50, seed=3)
    kernels = Uncompiled(equations, [constant.value for constant in robot.parameters if not constant.fixed])
    for values in kernels.affine_dynamics(x, theta):
        assert np.isfinite(values).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([PENDULUM, CARTPOLE]), FILE_MISTAKES)
@example(PENDULUM, [("number", 6, "1"), ("string", 4, "sympy.Symbol('mass')")])
@example(PENDULUM, [("string", 5, "'\\ud800'")])
@example(PENDULUM, [("name", 30, "set()")])
@example(CARTPOLE, [("number", 12, "10**400")])
def test_a_file_with_random_mistakes_builds_or_is_refused(folder: Path, text: str, mistakes: list[Mistake]) -> None:
    name = "pendulum" if text is PENDULUM else "cartpole"
    path = folder / f"{name}.py"
    path.write_bytes(mistaken(text, mistakes).encode("utf-8", "surrogatepass"))
    held(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"\x00",
        b"robot = (\n",
        b"def f():\n    return f()\nf()\n",
        b"exec('(' * 10000)",
        b"raise SystemExit(3)",
        b"import sys; sys.exit()",
        b"raise KeyError",
        b"from nowhere import everything",
        b"# -*- coding: latin-99 -*-\n",
        b"x = " + b"-" * 100_000 + b"1",
        b"x = " + b"(" * 5000 + b")" * 5000,
    ],
)
def test_any_other_file_is_refused_as_a_model(folder: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "broken.py"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.py"):
        load(str(path))
    assert main(["build", str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("continuous=True", "continuous=1", "continuous of `angle` is 1; write True or False"),
        ('meaning="motor torque"', "meaning=3", "meaning of `torque` is 3; write a string"),
        ('meaning="motor torque"', 'meaning="\\ud800"', "half of a character"),
        ("length**2 / 12", "sympy.gamma(length)", "contains gamma in gamma.length."),
        ("length**2 / 12", "length**1000", r"contains length\*\*1000: .* powers above 100"),
        ("length**2 / 12", "10**301 * length**2", "numbers of more than 300 digits"),
        ("rate_limit=8", "rate_limit=10**400", "rate_limit of `angle` is 1000.*; write a finite number"),
        ("rate_limit=8", "rate_limit=10**5000", "too long to print; write a finite number"),
        ("rate_limit=8", "rate_limit='x' * 9999", r"is 'x+\.\.\.; write a number"),
    ],
)
def test_a_mistake_is_reported_at_its_line(folder: Path, before: str, after: str, words: str) -> None:
    assert before in PENDULUM
    path = folder / "pendulum.py"
    path.write_text(PENDULUM.replace(before, after))
    with pytest.raises(ModelError, match=rf"(?s)pendulum.py:\d+: .*{words}"):
        load(str(path))


URDF = '<?xml version="1.0"?>\n<robot name="machine">\n' + "\n".join(ROBOT) + "\n</robot>\n"
TOKENS |= {
    "value": re.compile(r'(?<==")[^"]*(?=")'),
    "attribute": re.compile(r' \w+="[^"]*"'),
    "tag": re.compile("<[^>]*>"),
}
TEXTS = words(
    """nan inf -inf -1 0 1e308 1e-320 a 1,2 0x10 1_000 ² true arm tool revolute fixed planar lambda robot é &quot;
    &#10; \\ {} 9{}99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"""
)
URDF_MISTAKES = mistakes(
    replaced("value", [*TEXTS, "", "1 2", "0 0 0", "1 2 3 4", "${x}"]),
    replaced("attribute", ["", "{}{}"]),
    replaced("tag", ["", "{}{}"]),
    replaced("line", ["", "{}{}"]),
)


@settings(max_examples=15, deadline=None)
@given(URDF_MISTAKES)
@example([("value", 3, "nan"), ("value", 13, "nan")])
@pytest.mark.slow
def test_a_urdf_with_random_mistakes_is_imported_or_refused(folder: Path, mistakes: list[Mistake]) -> None:
    pytest.importorskip("yourdfpy")
    path = folder / "machine.urdf"
    path.write_bytes(mistaken(URDF, mistakes).encode("utf-8", "surrogatepass"))
    try:
        text = model_file(path, "machine")
    except ModelError as error:
        for fault in str(error).split("\n"):
            explained(ModelError(fault))
        return
    (folder / "machine.py").write_text(text)
    try:
        load(str(folder / "machine.py"))
    except ModelError as error:  # a file that was written is one that can be edited
        explained(error, "machine.py:")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('ixx="0.2" ', "", "ixx is missing in <inertia> of `base-plate`"),
        ('xyz="1 1 0"', 'xyz="1 1"', "write 3 numbers"),
        ('xyz="1 1 0"', 'xyz="0 0 0"', "axis of `rail` is zero"),
        ('effort="20"', 'effort="nan"', 'effort="nan" in <limit> of `arm`; write a number'),
        ('effort="20"', 'effort="${peak}"', "Expand the file with xacro first"),
        ('effort="20"', 'effort="1e200"', "too large"),
        ('lower="-1.5"', 'lower="9"', "lower limit of `arm` is above the upper"),
        ('<mass value="3"/>', '<mass value="-3"/>', "mass of `base-plate` is negative"),
        ('<mass value="3"/>', "", "<inertial> of `base-plate` has no <mass>"),
        ('<mass value="3"/>', '<mass value="3"/><mass value="4"/>', "two elements <mass>"),
        ('link name="tool"', 'link name="arm"', "two links named `arm`"),
        ('link name="tool"', 'link name="to&quot;ol"', "a quote"),
        ('<child link="slider"/>', "", "`rail` has no <child"),
        (' type="continuous"', "", "<joint> has no type"),
        ("</robot>", "", "cannot be read"),
        ("robot", "car", "first element is <car>"),
    ],
)
def test_a_urdf_that_other_readers_would_guess_is_refused(folder: Path, before: str, after: str, words: str) -> None:
    pytest.importorskip("yourdfpy")
    assert before in URDF
    path = folder / "machine.urdf"
    path.write_text(URDF.replace(before, after))
    with pytest.raises(ModelError, match=rf"machine.urdf:\d+: .*{re.escape(words)}"):
        model_file(path, "machine")


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"\x00" * 10, b"<robot/>", b"<a>" * 500, b"<!DOCTYPE x [<!ENTITY y 'z'>]><x/>"]
)
def test_any_other_file_is_refused_as_a_urdf(folder: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("yourdfpy")
    path = folder / "broken.urdf"
    path.write_bytes(content)
    assert main(["import", str(path), "--out", str(folder / "out")]) == 2
    assert "broken.urdf" in capsys.readouterr().err


def test_quotes_in_a_file_name_do_not_become_python(folder: Path) -> None:
    pytest.importorskip("yourdfpy")
    path = folder / 'odd".urdf'
    path.write_text(URDF)
    text = model_file(path, "odd")
    assert "odd" in (ast.get_docstring(ast.parse(text)) or "")
