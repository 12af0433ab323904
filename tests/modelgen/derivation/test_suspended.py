"""A model file goes on where Ctrl-Z has stopped it, however long that took."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelgen.derivation.supervision import GRACE, PATIENCE, VARIABLE

LIMIT = 2.0  # s, and five times as long by the clock: a busy machine may be slow to go on
BUSY = """
import time
print("begun", flush=True)
end = time.monotonic() + {}
while time.monotonic() < end:
    time.sleep(0.01)
robot = 1
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGTSTP"), reason="no Ctrl-Z here")
def test_a_stopped_model_file_goes_on(tmp_path: Path) -> None:
    stopped = max(PATIENCE * LIMIT, LIMIT + 2 * GRACE) + 1.0
    (tmp_path / "slow.py").write_text(BUSY.format(stopped + 0.5))
    program = "import sys; from modelgen.cli import main; sys.exit(main())"
    command, environment = [sys.executable, "-c", program, "build", "./slow.py"], os.environ | {VARIABLE: str(LIMIT)}
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        process_group=0,
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    os.kill(process.pid, signal.SIGTSTP)
    time.sleep(stopped)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no robot" in err
