"""The run folder under damage: every reader refuses with a message, every failed write leaves the old file."""

from __future__ import annotations

import errno
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from solver.cli import main
from solver.errors import SolverError
from solver.fvi.run_folder import (
    CHECKPOINT,
    METRICS,
    RUN,
    MetricsLog,
    load_checkpoint,
    load_run,
    read_metrics,
    remove_run,
    save_checkpoint,
    save_run,
    write_atomically,
)


class Payload:
    """A class that a weights-only reader must refuse."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        """What an unpickler would run."""
        return os.system, ("exit 3",)


def test_run_and_checkpoint_come_back_as_written(run_copy: Path) -> None:
    run, checkpoint = load_run(run_copy), load_checkpoint(run_copy)
    save_run(run_copy / "again", run)
    save_checkpoint(run_copy / "again", checkpoint)
    assert load_run(run_copy / "again") == run
    again = load_checkpoint(run_copy / "again")
    assert again["iteration"] == run.settings.iterations
    assert all(torch.equal(again["ensemble"][key], value) for key, value in checkpoint["ensemble"].items())


def test_a_finished_run_leaves_no_temporary_file(finished_run: Path) -> None:
    names = {path.name.split(".out.")[0] for path in finished_run.iterdir()}
    assert names == {CHECKPOINT, RUN, METRICS, "events"}


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_truncated_checkpoint(run_copy: Path, keep: float) -> None:
    path = run_copy / CHECKPOINT
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(SolverError, match=r"checkpoint\.pt is damaged"):
        load_checkpoint(run_copy)


def test_no_flipped_bit_goes_unseen(run_copy: Path) -> None:
    """Either the damage is reported or what was read is what was written (padding between the parts)."""
    path = run_copy / CHECKPOINT
    content, expected = path.read_bytes(), load_checkpoint(run_copy)["ensemble"]
    draw, refused = random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            found = load_checkpoint(run_copy)["ensemble"]
        except SolverError:
            refused += 1
        else:
            assert all(torch.equal(found[key], value) for key, value in expected.items())
    assert refused > 75


def test_checkpoint_with_a_pickled_class_is_refused_unexecuted(run_copy: Path) -> None:
    torch.save({**load_checkpoint(run_copy), "iteration": Payload()}, run_copy / CHECKPOINT)
    with pytest.raises(SolverError, match="damaged"):
        load_checkpoint(run_copy)


@pytest.mark.parametrize("content", [5, None, [1], {}, torch.zeros(3), {"iteration": 1}])
def test_checkpoint_of_something_else(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / CHECKPOINT)
    with pytest.raises(SolverError, match=r"checkpoint\.pt (lacks|is damaged)"):
        load_checkpoint(tmp_path)


def test_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"holds no checkpoint\.pt"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", "{}", '{"settings": {}}', '{"settings": {"step_periods": 3}}', "\udcff", None]
)
def test_damaged_run_json(run_copy: Path, text: str | None) -> None:
    content = b"\x80\xff" if text is None else text.encode(errors="surrogateescape")
    (run_copy / RUN).write_bytes(content)
    with pytest.raises(SolverError, match=r"run\.json is damaged"):
        load_run(run_copy)


@pytest.mark.parametrize("change", [{"width": "8"}, {"width": -1}, {"colour": 1}, {"algorithm": "sac"}])
def test_edited_settings_in_run_json(run_copy: Path, change: dict[str, Any]) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["settings"] |= change
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=next(iter(change))):
        load_run(run_copy)


@pytest.mark.parametrize("value", [None, 7, -1.5, [], {}, True])
@pytest.mark.parametrize("name", ["robot", "artifact_hash", "preset", "generated"])
def test_edited_names_in_run_json(run_copy: Path, name: str, value: object) -> None:
    content = json.loads((run_copy / RUN).read_text())
    if value is None and name == "generated":
        return  # no folder named
    (run_copy / RUN).write_text(json.dumps(content | {name: value}))
    with pytest.raises(SolverError, match=rf"run\.json is damaged .*{name} is"):
        load_run(run_copy)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("iteration", -1, "its iteration is -1"),
        ("iteration", True, "its iteration is True"),
        ("iteration", {}, "its iteration is {}"),
        ("iteration", 1.5, "its iteration is 1.5"),
        ("optimisers", ["a"], "its optimisers are none"),
        ("optimisers", 3, "is damaged"),
        ("visited", 7, "its visited states are no array"),
    ],
)
def test_checkpoint_with_parts_of_another_kind(run_copy: Path, name: str, value: object, words: str) -> None:
    save_checkpoint(run_copy, load_checkpoint(run_copy) | {name: value})
    with pytest.raises(SolverError, match=words):
        load_checkpoint(run_copy)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_checkpoint_with_numbers_that_are_none(run_copy: Path, number: float) -> None:
    """A policy of NaN would print rollouts of NaN and end with success."""
    checkpoint = load_checkpoint(run_copy)
    next(each for each in checkpoint["ensemble"].values() if each.is_floating_point()).view(-1)[0] = number
    save_checkpoint(run_copy, checkpoint)
    with pytest.raises(SolverError, match="some of its numbers are not finite"):
        load_checkpoint(run_copy)
    assert main(["evaluate", str(run_copy)]) == 2


def test_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="not a run folder"):
        load_run(tmp_path / "nowhere")


def test_misspelt_folder_gets_a_suggestion(run_copy: Path) -> None:
    with pytest.raises(SolverError, match=f"Did you mean `{run_copy}`"):
        load_run(run_copy.with_name("rum"))


def test_full_disk_keeps_the_old_checkpoint(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run_copy / CHECKPOINT).read_bytes()
    checkpoint = load_checkpoint(run_copy)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SolverError, match="No space left on device"):
        save_checkpoint(run_copy, checkpoint)
    assert (run_copy / CHECKPOINT).read_bytes() == before
    assert not [path for path in run_copy.iterdir() if path.name.startswith(".")]


def test_writing_stopped_halfway_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def stopped(stream: Any) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, stopped)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_within_torch_save_is_no_full_disk(tmp_path: Path) -> None:
    class Interrupted(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() > 1000:
                raise KeyboardInterrupt
            return super().write(data)

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", lambda _: torch.save({"a": torch.zeros(1000)}, Interrupted()))
    assert not list(tmp_path.iterdir())


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SolverError, match="cannot write"):
        write_atomically(tmp_path / "file" / "run" / "x", lambda stream: stream.write(b""))


def test_a_cut_line_of_metrics_is_left_out(tmp_path: Path) -> None:
    whole = [{"iteration": float(k), "value_error": 1.0} for k in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in whole) + '{"iteration": 3.0, "value_er'
    strange = "\n5\n[]\n{}\n" + '{"iteration": {}, "value_error": 1}\n' + "[" * 10_000 + "\n"
    (tmp_path / METRICS).write_bytes((text + strange).encode() + b"\xff\xfe\n")
    assert read_metrics(tmp_path) == whole
    assert read_metrics(tmp_path / "nowhere") == []


def test_a_resumed_log_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    rows = [{"iteration": float(k), "value_error": float(k)} for k in range(4)]
    log = MetricsLog(tmp_path, 0)
    for row in rows:
        log.write(row)
    log.close()
    log = MetricsLog(tmp_path, 2)
    assert read_metrics(tmp_path) == rows[:2]
    log.write({"iteration": 2.0, "value_error": 9.0})
    log.close()
    assert read_metrics(tmp_path) == [*rows[:2], {"iteration": 2.0, "value_error": 9.0}]


def test_tensorboard_holds_the_same_numbers(finished_run: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(finished_run))
    board.Reload()
    rows = read_metrics(finished_run)
    for name in ("value_error", "return_mean"):
        expected = [(int(row["iteration"]), pytest.approx(row[name], rel=1e-5)) for row in rows if name in row]
        assert [(event.step, event.value) for event in board.Scalars(name)] == expected


def test_removing_a_run_spares_other_files(run_copy: Path) -> None:
    (run_copy / "notes.txt").write_text("mine")
    (run_copy / "figures").mkdir()
    (run_copy / "figures" / "rollouts.png").write_text("")
    remove_run(run_copy)
    assert [path.name for path in run_copy.iterdir()] == ["notes.txt"]
