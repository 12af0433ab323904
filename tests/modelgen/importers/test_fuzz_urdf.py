"""URDFs with hostile names and numbers: refused with a line, or a model file that modelgen takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modelgen import ModelError, Robot
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import load_text
from tests.modelgen.support.cases import fuzzed

pytestmark = pytest.mark.slow


pytest.importorskip("yourdfpy")

NAMES = (
    "a",
    "a_x",
    "a_rate",
    "time",
    "lambda",
    "robot",
    "sin",
    "1",
    "a-b",
    "a b",
    "A" * 99,
    "A" * 150,
    "é",
    "_",
    "int",
)
names = st.sampled_from(NAMES) | st.text(max_size=6)
NUMBERS = (
    "0",
    "1",
    "-1",
    "0.5",
    "1e-13",
    "1e-300",
    "1e9",
    "1e50",
    "1e101",
    "-0",
    "nan",
    "inf",
    "x",
    "",
    "1 2",
    "1_0",
    "٣",
)
numbers = st.sampled_from(NUMBERS)
usual = st.sampled_from(("0.3", "1", "2.5"))
KINDS = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating", "spherical", "")


@st.composite
def robots(draw: st.DrawFn) -> str:
    """A chain of links; most of it is in order, so that what is not decides."""
    count = draw(st.integers(1, 4))

    def number() -> str:
        return draw(numbers) if draw(st.integers(0, 24)) == 24 else draw(usual)

    def name(kind: str, index: int) -> str:
        return quoteattr(draw(names)) if draw(st.booleans()) else f'"{kind}{index}"'

    links = [name("link", index) for index in range(count + 1)]
    parts = []
    for link in links:
        moments = " ".join(f'{moment}="{number()}"' for moment in ("ixx", "iyy", "izz"))
        parts.append(
            f'<link name={link}><inertial><mass value="{number()}"/><inertia {moments} ixy="0" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
    for index in range(count):
        kind = draw(st.sampled_from(KINDS if draw(st.integers(0, 9)) == 9 else KINDS[:4]))
        limit = f'<limit lower="-{number()}" upper="{number()}" velocity="{number()}" effort="{number()}"/>'
        losses = f'<dynamics damping="{number()}" friction="{number()}"/>' if draw(st.booleans()) else ""
        parts.append(
            f'<joint name={name("joint", index)} type="{kind}"><parent link={links[index]}/>'
            f'<child link={links[index + 1]}/><axis xyz="0 {number()} 1"/>{limit}{losses}</joint>'
        )
    return "\n".join(['<robot name="r">', *parts, "</robot>"])


@given(robots(), st.booleans())
@fuzzed
@example(
    '<robot><link name="a"/><link name="b"><inertial><mass value="1"/></inertial></link>\n<joint name="time" '
    'type="continuous"><parent link="a"/><child link="b"/><limit velocity="3" effort="2"/></joint></robot>',
    False,
)
def test_what_is_imported_is_a_model_file(tmp_path_factory: pytest.TempPathFactory, text: str, planar: bool) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "machine.urdf"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    written = of_user(lambda: model_file(path, "machine", planar=["*"] if planar else ()), "machine.urdf")
    if isinstance(written, str):
        robot = of_user(lambda: load_text(written, folder), "machine.py")
        assert isinstance(robot, Robot) or "before robot.task" in str(robot), robot


def of_user(call: Callable[[], Any], where: str) -> Any:
    """The result, or the mistake, which names the file."""
    try:
        return call()
    except ModelError as error:
        mistake = error
    assert where in str(mistake)
    assert len(str(mistake)) < 8000
    return mistake
