"""A file system of 48 kB that is really full: one message, and what was there before is whole. Needs root."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from solver.cli import main
from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT, load_checkpoint, save_checkpoint, write_text
from solver.runs.metrics import MetricsLog

KILOBYTES = 48


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={KILOBYTES}k", "tmpfs", folder], capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if made.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def filled(folder: Path, kilobytes: int) -> None:
    """Take so much of the file system, or all that is left."""
    with suppress(OSError), (folder / "filler").open("wb", 0) as filler:
        for _ in range(kilobytes):
            filler.write(bytes(1024))


def test_checkpoint_at_every_level_of_filling(small: Path) -> None:
    """Each attempt writes the new one or leaves the old one, and no unfinished file."""
    ended = []
    for level in range(0, KILOBYTES, 3):
        for path in small.iterdir():
            path.unlink()
        save_checkpoint(small, {"iteration": 1, "weights": torch.zeros(100)})
        filled(small, level)
        try:
            save_checkpoint(small, {"iteration": 2, "weights": torch.ones(4000)})
            expected = 2
        except SolverError as error:
            assert "No space left on device" in str(error)  # noqa: PT017
            expected = 1
        ended.append(expected)
        assert load_checkpoint(small, ["iteration", "weights"])["iteration"] == expected
        assert {path.name for path in small.iterdir()} - {"filler"} == {CHECKPOINT}
    assert sorted(ended, reverse=True) == ended
    assert set(ended) == {1, 2}


def test_text_and_metrics_on_a_full_disk(small: Path) -> None:
    write_text(small / "run.json", "old")
    log = MetricsLog(small, 0, ("iteration",))
    filled(small, 2 * KILOBYTES)
    with pytest.raises(SolverError, match="No space left"):
        write_text(small / "run.json", "x" * 10_000)
    assert (small / "run.json").read_text() == "old"
    with pytest.raises(OSError, match="No space left"):
        deque(map(log.write, ({"iteration": float(number)} for number in range(10_000))), maxlen=0)
    (small / "filler").unlink()
    log.close()


@pytest.mark.slow
def test_training_says_it_in_a_message(
    small: Path, tiny_options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "pendulum", *tiny_options, "--out", str(small / "run")]) == 2
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.slow
def test_other_outputs_on_a_full_disk(small: Path, finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (small / "policy.js").write_text("old")
    assert main(["export", str(finished_run), "--js", str(small / "policy.js"), "--c", str(small / "c")]) in (0, 2)
    assert main(["page", str(finished_run), "--out", str(small / "page.html")]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not (small / "page.html").exists()
