"""The run folder under damage: every reader refuses with a message, every failed write leaves the old file."""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from solver.cli import main
from solver.errors import SolverError
from solver.runs import artifact
from solver.runs.folder import CHECKPOINT, METRICS, save_checkpoint
from solver.runs.kinds import remove_run
from solver.training.solution import RUN, load_run, load_run_checkpoint


class Payload:
    """A class that a weights-only reader must refuse."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        """What an unpickler would run."""
        return os.system, ("exit 3",)


def test_run_and_checkpoint_come_back_as_written(run_copy: Path) -> None:
    run, checkpoint = load_run(run_copy), load_run_checkpoint(run_copy)
    artifact.save(run_copy / "again", run)
    save_checkpoint(run_copy / "again", checkpoint)
    assert load_run(run_copy / "again") == run
    again = load_run_checkpoint(run_copy / "again")
    assert again["iteration"] == run.settings.iterations
    assert all(torch.equal(again["ensemble"][key], value) for key, value in checkpoint["ensemble"].items())


def test_a_finished_run_leaves_no_temporary_file(finished_run: Path) -> None:
    names = {path.name.split(".out.")[0] for path in finished_run.iterdir()}
    assert names == {CHECKPOINT, RUN, METRICS, "events", "artifact"}


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_truncated_checkpoint(run_copy: Path, keep: float) -> None:
    path = run_copy / CHECKPOINT
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(SolverError, match=r"checkpoint\.pt is damaged"):
        load_run_checkpoint(run_copy)


@pytest.mark.slow
def test_no_flipped_bit_goes_unseen(run_copy: Path) -> None:
    """Either the damage is reported or what was read is what was written (padding between the parts)."""
    path = run_copy / CHECKPOINT
    content, expected = path.read_bytes(), load_run_checkpoint(run_copy)["ensemble"]
    draw, refused = random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            found = load_run_checkpoint(run_copy)["ensemble"]
        except SolverError:
            refused += 1
        else:
            assert all(torch.equal(found[key], value) for key, value in expected.items())
    assert refused > 75


def test_checkpoint_with_a_pickled_class_is_refused_unexecuted(run_copy: Path) -> None:
    torch.save({**load_run_checkpoint(run_copy), "iteration": Payload()}, run_copy / CHECKPOINT)
    with pytest.raises(SolverError, match=CHECKPOINT):
        load_run_checkpoint(run_copy)


@pytest.mark.parametrize("content", [5, None, [1], {}, torch.zeros(3), {"iteration": 1}])
def test_checkpoint_of_something_else(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / CHECKPOINT)
    with pytest.raises(SolverError, match=r"checkpoint\.pt (lacks|is damaged)"):
        load_run_checkpoint(tmp_path)


def test_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"checkpoint\.pt"):
        load_run_checkpoint(tmp_path)


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


@pytest.mark.parametrize(
    ("optimiser", "loss_scale", "authors"), [("soap", 0.2, False), ("amsgrad", 0.0, True), ("soap", 0.0, None)]
)
def test_run_json_of_the_version_before_authors(
    run_copy: Path, optimiser: str, loss_scale: float, authors: bool | None
) -> None:
    content = json.loads((run_copy / RUN).read_text())
    del content["settings"]["authors"]
    content["settings"] |= {"optimiser": optimiser, "loss_scale": loss_scale, "polish": 0}
    (run_copy / RUN).write_text(json.dumps(content))
    with nullcontext() if authors is not None else pytest.raises(SolverError, match=r"soap.*0\.0"):
        assert load_run(run_copy).settings.authors is authors


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
        ("optimisers", ["a"], "optimisers"),
        ("optimisers", 3, "is damaged"),
        ("visited", 7, "visited"),
    ],
)
def test_checkpoint_with_parts_of_another_kind(run_copy: Path, name: str, value: object, words: str) -> None:
    save_checkpoint(run_copy, load_run_checkpoint(run_copy) | {name: value})
    with pytest.raises(SolverError, match=words):
        load_run_checkpoint(run_copy)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_checkpoint_with_numbers_that_are_none(run_copy: Path, number: float) -> None:
    """A policy of NaN would print rollouts of NaN and end with success."""
    checkpoint = load_run_checkpoint(run_copy)
    next(each for each in checkpoint["ensemble"].values() if each.is_floating_point()).view(-1)[0] = number
    save_checkpoint(run_copy, checkpoint)
    with pytest.raises(SolverError, match=CHECKPOINT):
        load_run_checkpoint(run_copy)
    assert main(["evaluate", str(run_copy)]) == 2


def test_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"nowhere .*run\.json"):
        load_run(tmp_path / "nowhere")


def test_misspelt_folder_gets_a_suggestion(run_copy: Path) -> None:
    with pytest.raises(SolverError, match=f"`{run_copy}`"):
        load_run(run_copy.with_name("rum"))


def test_full_disk_keeps_the_old_checkpoint(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run_copy / CHECKPOINT).read_bytes()
    checkpoint = load_run_checkpoint(run_copy)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("modelgen.files.os.fsync", full)
    with pytest.raises(SolverError, match="No space left on device"):
        save_checkpoint(run_copy, checkpoint)
    assert (run_copy / CHECKPOINT).read_bytes() == before
    assert not [path for path in run_copy.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_removing_a_run_spares_other_files(run_copy: Path) -> None:
    (run_copy / "notes.txt").write_text("mine")
    (run_copy / "figures").mkdir()
    (run_copy / "figures" / "rollouts.png").write_text("")
    (run_copy / "figures" / "mine.png").write_text("mine")
    remove_run(run_copy)
    assert [path.name for path in (run_copy / "figures").iterdir()] == ["mine.png"]
    assert sorted(path.name for path in run_copy.iterdir()) == ["artifact", "figures", "notes.txt"]


@pytest.mark.slow
def test_removing_a_run_leaves_no_empty_folder_of_figures(run_copy: Path) -> None:
    (run_copy / "figures").mkdir()
    (run_copy / "figures" / "rollouts.png").write_text("")
    remove_run(run_copy)
    assert [path.name for path in run_copy.iterdir()] == ["artifact"]  # a new run replaces it
