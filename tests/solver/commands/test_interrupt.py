"""Ctrl-C, pressed once or many times, ends a command in order: exit code 130, a hint, no traceback, no abort."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen.artifact.folder import check
from solver.runs.metrics import read_metrics
from solver.training.solution import load_run_checkpoint
from tests.solver.conftest import SOLVER, heeding_ctrl_c

pytestmark = pytest.mark.slow

MODELGEN = SOLVER.replace("solver.cli", "modelgen.cli")
#: Two threads, with fits of seconds: long enough for Ctrl-C to meet compiled code in both.
TRAIN = ["train", "pendulum", "--states", "8192", "--iterations", "2000", "--epochs", "8", "--members", "2"]
TRAIN += ["--threads", "2", "--evaluate-every", "3", "--episodes", "20", "--trace-decay", "0.8", "--preview", "0"]
SECONDS = 20.0  # until the process has ended; a second or so, on an idle machine


def pressed(program: str, words: list[str], ready: Callable[[], bool], pauses: list[float]) -> tuple[int, str]:
    """Exit code and standard error of a process that gets SIGINT after each of the pauses, once it is `ready`."""
    command = heeding_ctrl_c(words, program)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300.0
    while not ready():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for pause in pauses:
        time.sleep(pause)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


def test_a_training_ends_with_the_hint_however_often_it_is_pressed(short: str, tmp_path: Path) -> None:
    draw = random.Random(5)
    pauses = [draw.uniform(0.0, 1.5), *(draw.uniform(0.0, 0.15) for _ in range(4))]
    folder = tmp_path / "a run"
    metrics = folder / "metrics.jsonl"
    words = [*TRAIN, "--generated", short, "--out", str(folder)]
    code, err = pressed(SOLVER, words, lambda: metrics.exists() and metrics.stat().st_size > 0, pauses)
    assert (code, err.splitlines()[-1]) == (130, f"interrupted; continue with: solver train --resume '{folder}'")
    assert all(line.startswith(("warning: ", "iteration ", "interrupted; ")) for line in err.splitlines())
    done = load_run_checkpoint(folder)["iteration"]  # the checkpoint is whole
    assert done <= len(read_metrics(folder)) <= done + 1


def test_before_the_first_checkpoint_no_run_is_promised(tmp_path: Path) -> None:
    code, err = pressed(SOLVER, [*TRAIN, "--out", str(tmp_path)], lambda: True, [1.0, 0.05, 0.05])
    assert code == 130 or "Traceback" in err  # Python itself may not have begun with the program
    assert "--resume" not in err or (tmp_path / "checkpoint.pt").exists()


@pytest.mark.parametrize(
    ("program", "words", "begun"),
    [
        (SOLVER, ["limit", "cartpole", "--guesses", "500"], "import casadi"),
        (MODELGEN, ["build", *["planar_arm3"] * 20, "--generated", "OUT"], "import sympy"),
    ],
)
def test_other_commands_end_too(program: str, words: list[str], begun: str, tmp_path: Path) -> None:
    """The signals come seconds after the heavy imports, in the middle of the work, which takes a minute or more."""
    mark = tmp_path / "begun"
    program = f"{begun}; from pathlib import Path; Path({str(mark)!r}).touch(); {program}"
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    code, err = pressed(program, words, mark.exists, [4.0, 0.02, 0.1, 0.3, 2.0])  # again, where a library has caught it
    assert code == 130, err
    last = err.strip().splitlines()[-1]  # CasADi may say before it that it was interrupted
    assert re.fullmatch("interrupted|stopped; artifacts are as they were before the unfinished one", last)
    assert "Traceback" not in err
    for path in tmp_path.glob("out/*/manifest.json"):
        assert check(path.parent.name, tmp_path / "out") == []


@pytest.mark.parametrize(
    ("at_import", "at_run"),
    [
        (
            "begin(0)\nfor _ in range(50):\n    with contextlib.suppress(KeyboardInterrupt):\n        time.sleep(0.1)",
            "pass",
        ),
        ("referent = set()\nreference = weakref.ref(referent, lambda _: begin(0.5))", "del m.referent; time.sleep(5)"),
    ],
    ids=["an import", "the end of a weak reference"],
)
def test_what_hides_it_is_ended(at_import: str, at_run: str, tmp_path: Path) -> None:
    """Torch aborts, or goes on, where an exception is raised during its import; Python drops one and prints it."""
    mark, module = tmp_path / "begun", tmp_path / "hides_it.py"
    module.write_text(
        "import contextlib, dataclasses, pathlib, sys, time, weakref\nm = sys.modules[__name__]\n"
        f"def begin(seconds):\n    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(seconds)\n"
        f"{at_import}\n@dataclasses.dataclass\nclass Options: ...\ndef run(options):\n    {at_run}\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from modelgen.commandline.program import *; "
        "sys.exit(CommandLine('x', 'x', {'go': Command('hides_it', 'x', 'x')}, 'x', ()).main())"
    )
    assert pressed(program, ["go"], mark.exists, [0.1]) == (130, "interrupted\n")
