"""A model file goes on where Ctrl-Z has stopped it, however long that took."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelgen.derivation.model_file import GRACE, PATIENCE, VARIABLE

pytestmark = pytest.mark.slow

LIMIT = 1.0  # s of processor time
SUSPENDED = """
import os, signal, time
os.kill(os.getpid(), signal.SIGTSTP)
time.sleep(1)  # for the watching thread to look at the time
robot = 1
"""


@pytest.mark.skipif(not hasattr(signal, "SIGTSTP"), reason="no Ctrl-Z here")
def test_a_model_file_goes_on_after_a_stop_longer_than_its_limits(tmp_path: Path) -> None:
    (tmp_path / "stops.py").write_text(SUSPENDED)
    program = "import sys; from modelgen.cli import main; sys.exit(main())"
    command, environment = [sys.executable, "-c", program, "build", "./stops.py"], os.environ | {VARIABLE: str(LIMIT)}
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment, process_group=0
    )
    stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert stopped is not None
    assert stopped.si_code == os.CLD_STOPPED
    time.sleep(max(PATIENCE * LIMIT, LIMIT + 2 * GRACE) + 1.0)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate()
    assert process.returncode == 2
    assert "no robot" in err
