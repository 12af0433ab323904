"""A model file that ends the process or never ends is refused with its line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.derivation import model_file
from tests.modelgen.support.model_files import MODEL, written


def rejects(*words: str) -> None:
    with pytest.raises(ModelError) as caught:
        model_file.load("slider")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.abort()"])
def test_a_file_that_ends_the_process_is_refused(folder: Path, ending: str) -> None:
    written(folder, f"import os\n{ending}\n" + MODEL)
    rejects("models/slider.py:2: ", "ends the process")


@pytest.mark.parametrize(
    "loop", ["while True:\n    pass", "try:\n    while True:\n        pass\nexcept Exception:\n    1"]
)
def test_a_file_that_never_ends_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    monkeypatch.setenv(model_file.VARIABLE, "0.2")
    written(folder, f"{loop}\n" + MODEL)
    rejects("models/slider.py:", "0.2 s", "sympy.Add(*terms)", "MODELGEN_LOAD_SECONDS=0.4")


@pytest.mark.slow
def test_waiting_does_not_count_as_processor_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(model_file.VARIABLE, "1")
    written(folder, "import time\n\ntime.sleep(1.5)\n" + MODEL)
    assert model_file.load("slider").name == "slider"


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan"])
def test_a_limit_that_is_not_a_time_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(model_file.VARIABLE, value)
    written(folder, MODEL)
    rejects("MODELGEN_LOAD_SECONDS", repr(value))


def test_a_file_within_its_time_restores_os_exit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(model_file.VARIABLE, "inf")
    written(folder, MODEL)
    ending = os._exit
    assert model_file.load("slider").name == "slider"
    assert os._exit is ending
    time.sleep(0.01)


def test_ctrl_c_at_the_end_of_a_file_restores_os_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C interrupts the wait for the watching thread."""
    ended, cancelled = os._exit, []

    def pressed(watch: threading.Thread, over: threading.Event) -> None:
        over.set()
        watch.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(model_file, "_end", pressed)
    monkeypatch.setattr("faulthandler.cancel_dump_traceback_later", lambda: cancelled.append(True))
    with pytest.raises(KeyboardInterrupt), model_file.supervised("rod.py"):
        assert os._exit is not ended
    assert os._exit is ended
    assert cancelled == [True]


@pytest.mark.slow
def test_a_trace_function_works_after_a_file(folder: Path) -> None:
    """In a subprocess, because CPython 3.11 once hung there under a debugger or coverage."""
    written(folder, MODEL)
    code = (
        "import sys\nfrom modelgen.derivation import model_file\nmodel_file.load('slider')\n"
        "def trace(*_): return trace\ndef called(): return 'ended'\n"
        "sys.settrace(trace)\nsys.stdout.write(called())"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(model_file.__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert ended.stdout == "ended"


def test_a_limit_that_ends_with_the_file_restores_os_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watching thread raises while the block ends: in any order, the process goes on."""
    ending = os._exit
    for seconds in (1e-5, 1e-4, 2e-4, 5e-4, 1e-3) * 20:
        monkeypatch.setenv(model_file.VARIABLE, str(seconds))
        with suppress(model_file.Stopped), model_file.supervised("slider.py"):
            time.sleep(2e-4)
        assert os._exit is ending
    time.sleep(0.01)


@pytest.mark.slow
def test_a_file_that_ignores_the_exception_ends_the_command_with_a_message(folder: Path) -> None:
    """In a subprocess, because a call that waits cannot be interrupted otherwise."""
    written(folder, "import time\n\ntime.sleep(1000)\n")
    code = (
        "from modelgen.derivation import model_file\nmodel_file.GRACE = 0.2\n"
        "from modelgen.cli import main\nmain(['build', 'slider'])"
    )
    root = Path(model_file.__file__).parents[2]
    environment = os.environ | {model_file.VARIABLE: "0.2", "PYTHONPATH": str(root)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == model_file.USAGE
    assert "error: models/slider.py:3: " in ended.stderr
    assert "Traceback" not in ended.stderr
