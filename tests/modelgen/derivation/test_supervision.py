"""A model file that ends the process, or never ends, is refused with its line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.derivation import model_file, supervision
from tests.modelgen.support.model_files import MODEL, written


def rejects(*words: str) -> None:
    with pytest.raises(ModelError) as caught:
        model_file.load("slider")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.abort()"])
def test_a_file_that_ends_the_process(folder: Path, ending: str) -> None:
    written(folder, f"import os\n{ending}\n" + MODEL)
    rejects("models/slider.py:2: ", "ends the process", "Remove this line")


@pytest.mark.parametrize(
    "loop", ["while True:\n    pass", "try:\n    while True:\n        pass\nexcept Exception:\n    1"]
)
def test_a_file_that_never_ends(folder: Path, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    monkeypatch.setenv(supervision.VARIABLE, "0.2")
    written(folder, f"{loop}\n" + MODEL)
    rejects(
        "models/slider.py:",
        "not done after 0.2 s",
        "loop that never ends",
        "sympy.Add(*terms)",
        "MODELGEN_LOAD_SECONDS=0.4",
    )


@pytest.mark.parametrize("stated", ["soon", "-1", "0", "nan"])
def test_a_limit_that_is_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    monkeypatch.setenv(supervision.VARIABLE, stated)
    written(folder, MODEL)
    rejects("MODELGEN_LOAD_SECONDS", repr(stated), "number of seconds")


def test_a_file_within_its_time_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supervision.VARIABLE, "inf")
    written(folder, MODEL)
    ending = os._exit
    assert model_file.load("slider").name == "slider"
    assert os._exit is ending
    time.sleep(0.01)


def test_a_file_that_takes_no_exception_ends_the_command_with_a_message(folder: Path) -> None:
    """In a process of its own: nothing else can end a call that waits."""
    written(folder, "import time\n\ntime.sleep(1000)\n")
    code = (
        "from modelgen.derivation import supervision\nsupervision.GRACE = 0.2\n"
        "from modelgen.cli import main\nmain(['build', 'slider'])"
    )
    root = Path(supervision.__file__).parents[2]
    environment = os.environ | {supervision.VARIABLE: "0.2", "PYTHONPATH": str(root)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == supervision.USAGE
    assert "error: models/slider.py:3: the file is not done after 0.2 s" in ended.stderr
    assert "Traceback" not in ended.stderr
