"""Files appear whole or not at all, and an error says what to do."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from modelgen.errors import ModelError
from modelgen.files import replacing, require_apart, write_together


class OtherError(Exception):
    pass


def test_file_appears_at_the_end_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.png"
    with replacing(path) as unfinished:
        unfinished.write_text("whole")
        assert unfinished.suffix == ".png"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError, SystemExit])
def test_old_file_stays_when_writing_stops(tmp_path: Path, stop: Any) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def stopped() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("half")
            raise stop

    with pytest.raises(stop):
        stopped()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_full_disk_is_the_error_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, step, full)
    words = r"cannot write .*file: No space left.* unchanged. Free some space"
    with pytest.raises(OtherError, match=words), replacing(path, OtherError) as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["", "file/below"])
def test_place_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot write"), replacing(tmp_path / place) as unfinished:
        unfinished.write_text("")


@pytest.mark.parametrize(
    ("inner", "outer"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(errno.ENOSPC, "full"), ModelError)]
)
def test_what_torch_hides_behind_its_own_error(tmp_path: Path, inner: Any, outer: Any) -> None:
    """torch.save raises a RuntimeError about its unfinished archive while the first error is handled."""
    torch = pytest.importorskip("torch")

    class Failing(io.BytesIO):
        def write(self, data: Any) -> Any:
            if self.tell() > 1000:
                raise inner
            return super().write(data)

    with pytest.raises(outer), replacing(tmp_path / "file"):
        torch.save({"a": torch.zeros(1000)}, Failing())
    assert not list(tmp_path.iterdir())


def test_error_of_the_writer_itself_is_kept(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="of its own"), replacing(tmp_path / "file"):
        raise RuntimeError("of its own")


def test_files_are_moved_in_order_once_all_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved, replace = [], os.replace

    def recorded(new: Any, path: Any) -> None:
        assert {each.name[-1] for each in tmp_path.glob(".new-*")} >= {path.name}
        assert len(list(tmp_path.iterdir())) == 3
        moved.append(path.name)
        replace(new, path)

    monkeypatch.setattr(os, "replace", recorded)
    write_together({tmp_path / name: name.encode() for name in "bca"})
    assert moved == ["b", "c", "a"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "a", "b": "b", "c": "c"}


def test_no_file_is_moved_when_one_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Any, content: Any, write: Any = Path.write_bytes) -> Any:
        if path.name.endswith("b"):
            raise OSError(errno.ENOSPC, "full")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", failing)
    with pytest.raises(OSError, match="full"):
        write_together({tmp_path / "a": b"", tmp_path / "b": b""})
    assert not list(tmp_path.iterdir())


def test_no_output_is_an_input_or_another_output(tmp_path: Path) -> None:
    log, page = tmp_path / "log.csv", tmp_path / "page.html"
    require_apart({"--out": tmp_path / "out.json", "--html": page, "--plot": None}, [log])
    with pytest.raises(ModelError, match=r"--out .*log.csv would replace"):
        require_apart({"--out": tmp_path / "folder" / ".." / "log.csv"}, [log])
    with pytest.raises(OtherError, match=r"--html .*would replace .*--out"):
        require_apart({"--out": page, "--html": page}, error=OtherError)
