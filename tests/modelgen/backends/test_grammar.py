"""Python that is smuggled into an artifact's emitted files, with the right hashes: refused at its line, never run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import grammar
from modelgen.errors import ArtifactError
from modelgen.loader import CompiledRobot
from tests.modelgen.support.forgery import forged
from tests.modelgen.test_fuzz_files import explained

X, U = np.ones((3, 2)), np.zeros((3, 1))
RUN = "__import__('pathlib').Path('ran').touch()"
LINE = "    angle_rate = x[1]\n"
VALUE = "    xdot[0] = angle_rate\n"


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CompiledRobot]:
    """forge(kind, before, after): the shipped pendulum with that text replaced in its file of a kind."""
    monkeypatch.chdir(tmp_path)

    def make(kind: str, before: str, after: str, change: Callable[[Any], object] = lambda _: None) -> CompiledRobot:
        ours = artifact.SHIPPED / "pendulum"
        folder = Path(shutil.copytree(ours, tmp_path / "pendulum", ignore=shutil.ignore_patterns("__pycache__")))
        (name,) = json.loads((folder / artifact.MANIFEST).read_text())["files"][kind]
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after))
        forged(folder, change)
        return modelgen.load("pendulum", directory=tmp_path)

    return make


def refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        call()
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import math\n", "import os\n"),
        ("import math\n", "import math, os\n"),
        ("import math\n", "import os as math\n"),
        ("import math\n", "from math import *\n"),
        ("import math\n", f"import math\n{RUN}\n"),
        ("import math\n", f"import math\nclass A:\n    a = {RUN}\n"),
        ("import math\n", f"import math\nif {RUN}:\n    pass\n"),
        ("import math\n", f"import math\nx: {RUN} = 1\n"),
        ("import math\n", "import math\nmath = 3\n"),
        ("return x if (x != x)", f"{RUN}; return x if (x != x)"),
        ("def dynamics(x, u", f"@{RUN}\ndef dynamics(x, u"),
        ("def dynamics(x, u", "async def dynamics(x, u"),
        ("theta, xdot):", f"theta, xdot={RUN}):"),
        ("theta, xdot):", f"theta, xdot: {RUN}):"),
        ("theta, xdot):", f"theta, xdot) -> {RUN}:"),
        ("theta, xdot):", "theta, *xdot):"),
        ("theta, xdot):", "theta, xdot, more):"),
        ("def dynamics(x, u", "def more(x, u"),
        ("def dynamics(x, u", "def __getattr__(x, u"),
        (LINE, f"{LINE}    {RUN}\n"),
        (LINE, f"{LINE}    import os\n"),
        (LINE, f"{LINE}    global angle\n"),
        (LINE, f"{LINE}    return\n"),
        (LINE, f"{LINE}    assert {RUN}\n"),
        (LINE, f"{LINE}    while 1: pass\n"),
        (LINE, f"{LINE}    k = [{RUN} for k in x]\n"),
        (LINE, f"{LINE}    k = lambda: {RUN}\n"),
        (LINE, f'{LINE}    k = f"{{{RUN}}}"\n'),
        (LINE, f"{LINE}    k = (j := 1.0)\n"),
        (LINE, f"{LINE}    k = yes\n"),
        (LINE, f"{LINE}    k = x\n"),
        (LINE, f"{LINE}    k = __builtins__\n"),
        (LINE, f"{LINE}    k = math.__loader__\n"),
        (LINE, f"{LINE}    k = math.system(angle)\n"),
        (LINE, f"{LINE}    k = system(angle)\n"),
        (LINE, f"{LINE}    k = math.sin.__call__(angle)\n"),
        (LINE, f"{LINE}    k = math.sin(angle, angle)\n"),
        (LINE, f"{LINE}    k = math.pow(angle)\n"),
        (LINE, f"{LINE}    k = math.sin(*x)\n"),
        (LINE, f"{LINE}    k = math.sin(x=angle)\n"),
        (LINE, f"{LINE}    k = eval(angle)\n"),
        (LINE, f"{LINE}    k = 'text'\n"),
        (LINE, f"{LINE}    k = True\n"),
        (LINE, f"{LINE}    k = 1j\n"),
        (LINE, f"{LINE}    k = 1e999\n"),
        (LINE, f"{LINE}    k = 1{'0' * 400}\n"),
        (LINE, f"{LINE}    k = 1{'0' * 5000}\n"),
        (LINE, f"{LINE}    k = 9 ** 9 ** 9\n"),
        (LINE, f"{LINE}    k = angle // 2\n"),
        (LINE, f"{LINE}    k = angle @ angle\n"),
        (LINE, f"{LINE}    k = not angle\n"),
        (LINE, f"{LINE}    k = 1 if angle else 2\n"),
        (LINE, f"{LINE}    k = angle < 2\n"),
        (LINE, f"{LINE}    k = {' + '.join(['angle'] * 300)}\n"),
        (LINE, f"{LINE}    k = {'(' * 5000}angle{')' * 5000}\n"),
        (LINE, f"{LINE}    k = {'-' * 5000}angle\n"),
        (LINE, f"{LINE}    math = angle\n"),
        (LINE, f"{LINE}    abs = angle\n"),
        (LINE, f"{LINE}    x = angle\n"),
        (LINE, f"{LINE}    angle = 2.0\n"),
        (LINE, f"{LINE}    angle.real = 2.0\n"),
        (LINE, f"{LINE}    k = j = 2.0\n"),
        (LINE, f"{LINE}    k, j, i = angle, angle\n"),
        (LINE, f"{LINE}    k += angle\n"),
        (LINE, "    angle_rate = x[2]\n"),
        (LINE, "    angle_rate = x[-1]\n"),
        (LINE, "    angle_rate = x[99999999999]\n"),
        (LINE, "    angle_rate = x[True]\n"),
        (LINE, "    angle_rate = x[0:1]\n"),
        (LINE, "    angle_rate = x[x[0]]\n"),
        (LINE, f"    angle_rate = x[{RUN}]\n"),
        (LINE, "    angle_rate = theta[10**9]\n"),
        (LINE, "    angle_rate = xdot[1]\n"),
        (VALUE, ""),
        (VALUE, f"{VALUE}{VALUE}"),
        (VALUE, f"{VALUE}    xdot[2] = angle_rate\n"),
        (VALUE, f"{VALUE}    xdot[-1] = angle_rate\n"),
        (VALUE, f"{VALUE}    x[0] = angle_rate\n"),
        (VALUE, f"    xdot[{RUN}] = angle_rate\n"),
        ("import math\n", "\0"),
        ("import math\n", "import math (\n"),
    ],
)
@pytest.mark.slow
def test_a_kernel_is_arithmetic(forge: Callable[..., CompiledRobot], before: str, after: str) -> None:
    robot = forge("llvm", before, after)
    refused(lambda: robot.dynamics(X, U), r"kernels_\w+\.py:\d+: .*Nothing of the file was run")
    refused(robot.javascript, r"kernels_\w+\.py:\d+: ")


def test_a_forged_line_is_named(forge: Callable[..., CompiledRobot]) -> None:
    robot = forge("llvm", LINE, f"{LINE}    k = eval(angle)\n")
    refused(lambda: robot.dynamics(X, U), r"kernels_\w+\.py:28: `k = eval\(angle\)`.*it calls another function")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import numpy as np", "import os as np"),
        ("import numpy as np", f"import numpy as np\n{RUN}"),
        ("[[0, 1]]", "[[0, 2]]"),
        ("[[0, 1]]", "[[0, -1]]"),
        ("[[0, 1]]", f"[[0, {RUN}]]"),
        ("[[0, 1]]", "[[0, 1] for _ in range(10**9)]"),
        ("int).reshape(-1, 2)", f"int).reshape({RUN}, 2)"),
        ("np.array(", "np.load("),
        ("(len(x), 2, 2)", "(len(x), 10**9, 2)"),
        ("(len(x), 2, 2)", f"(len({RUN}), 2, 2)"),
        ("np.empty(", "np.fromfile("),
        ("def points(x, theta):", f"def points(x, theta={RUN}):"),
        ("np.sin(angle)", "np.load(angle)"),
        ("np.sin(angle)", f"np.sin({RUN})"),
        ("np.sin(angle)", "np.sin.reduce(angle)"),
        ("angle = x[..., 0]", "angle = x[..., 2]"),
        ("angle = x[..., 0]", "angle = x[:, 0]"),
        ("points[:, 0, 1] = 0.0", "points[:, 0, 0] = 0.0"),
        ("points[:, 0, 1] = 0.0", "points[:, 0, 2] = 0.0"),
        ("    return points", f"    {RUN}\n    return points"),
        ("    return points", "    return points, points"),
        ("    return points", f"    return points\n\n\n{RUN}"),
    ],
)
def test_a_drawing_is_arithmetic(forge: Callable[..., CompiledRobot], before: str, after: str) -> None:
    robot = forge("drawing", before, after)
    refused(lambda: robot.drawing.segments(X), r"drawing_\w+\.py:\d+: .*Nothing of the file was run")
    refused(robot.javascript, r"drawing_\w+\.py:\d+: ")


def test_names_in_the_manifest_are_those_of_the_file(forge: Callable[..., CompiledRobot]) -> None:
    """They become LLVM's text: a result called `) { ...` would be a program of its own."""
    evil = "xdot) { ret void }\ndefine void @f(ptr %xdot"
    robot = forge("llvm", LINE, LINE, lambda m: m["functions"]["dynamics"].update(outputs=[[evil, [2]]]))
    refused(lambda: robot.dynamics(X, U), r"kernels_\w+\.py:\d+: .*arguments are x, u, theta")


@given(st.integers(0, 10**6), st.sampled_from([*"()[]{}:.,=@*-+\n#\0é;'\"", "import os\n", "x", "0", "__", "lambda:"]))
def test_one_edit_anywhere_is_refused_or_arithmetic(place: int, text: str) -> None:
    """What still passes draws finite points or gives other numbers, but calls nothing and ends in no foreign error."""
    folder = artifact.SHIPPED / "pendulum"
    manifest = artifact.read(folder)
    path, content = artifact.source(folder, manifest, "llvm")
    place %= len(content)
    edited = content[:place] + text.encode() + content[place:]
    try:
        found = grammar.kernels(path, edited, manifest.functions, manifest.sizes())
    except ArtifactError as refusal:
        explained(refusal, path.name)
        return
    assert found.keys() == manifest.functions.keys()


def test_every_shipped_file_passes() -> None:
    for folder in artifact.SHIPPED.glob("*/"):
        if (folder / artifact.MANIFEST).is_file():
            manifest = artifact.read(folder)
            grammar.kernels(*artifact.source(folder, manifest, "llvm"), manifest.functions, manifest.sizes())
            grammar.drawing(*artifact.source(folder, manifest, "drawing"), manifest.sizes())
