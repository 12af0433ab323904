"""Files appear whole or not at all, and an error says what to do."""

from __future__ import annotations

import errno
import io
import os
import socket
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.errors import ModelError
from modelgen.files import CACHE, kept, replacing, require_writable, write_together


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
    words = r"file: No space left"
    with pytest.raises(OtherError, match=words), replacing(path, OtherError) as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["", "file/below"])
def test_place_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=str(tmp_path / place)), replacing(tmp_path / place) as unfinished:
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
    require_writable({"--out": tmp_path / "out.json", "--html": page, "--plot": None}, [log])
    with pytest.raises(ModelError, match=r"out .*log\.csv"):
        require_writable({"--out": tmp_path / "folder" / ".." / "log.csv"}, [log])
    with pytest.raises(OtherError, match=r"--html .*--out"):
        require_writable({"--out": page, "--html": page}, error=OtherError)


@pytest.mark.parametrize("place", [".", "file/below", "new/folder/file", "file"])
def test_a_file_that_cannot_be_written_is_found_before_the_work(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("old")
    wrong = {".": "folder, not a file", "file/below": "part of its path is a file"}
    with pytest.raises(ModelError, match=wrong[place]) if place in wrong else nullcontext():
        require_writable({"--out": tmp_path / place})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_what_is_kept_is_made_once_and_again_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    made: list[str] = []

    def kept_of(made_from: str) -> bytes:
        return kept("arm", ".code", made_from, lambda: made.append(made_from) or made_from.encode())  # type: ignore[func-returns-value]

    assert [kept_of(word) for word in ("one", "two", "one", "two")] == [b"one", b"two", b"one", b"two"]
    assert made == ["one", "two"]
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert kept_of("one") == b"one"
    assert made == ["one", "two", "one"]


LINKS = ("", "link", "link to a link", "relative link")
TARGETS = ("regular", "missing", "pipe", "pipe without a reader", "/dev/null", "socket", "folder", "loop")


def made(folder: Path, target: str) -> Path:
    """A destination of one kind."""
    path = folder / "target"
    if target == "regular":
        path.write_text("old")
    elif target.startswith("pipe"):
        os.mkfifo(path)
    elif target == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif target == "folder":
        path.mkdir()
    elif target == "loop":
        path.symlink_to(path)
    return Path(target) if target.startswith("/") else path


def linked(path: Path, folder: Path, link: str) -> Path:
    """The destination, or a link to it."""
    for number in range({"": 0, "link to a link": 2}.get(link, 1)):
        new = folder / f"link{number}"
        new.symlink_to(os.path.relpath(path, folder) if link == "relative link" else path)
        path = new
    return path


@pytest.mark.slow
@given(st.sampled_from(TARGETS), st.sampled_from(LINKS), st.binary(max_size=300_000), st.booleans())
def test_destination_of_every_kind_keeps_its_kind(
    tmp_path_factory: pytest.TempPathFactory, target: str, link: str, content: bytes, together: bool
) -> None:
    """A link keeps pointing to its target; a pipe or a device gets the bytes; what can get none is an error."""
    folder = tmp_path_factory.mktemp("d")
    destination = made(folder, target)
    path = linked(destination, folder, link)
    before = None if target == "missing" else os.lstat(destination)
    if target == "pipe":
        end = os.open(destination, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(end, True)
        content = content[:60_000]  # what a pipe holds, so that it can be read afterwards
    try:
        if together:
            write_together({path: content})
        else:
            with replacing(path) as unfinished:
                unfinished.write_bytes(content)
    except (ModelError, OSError):
        assert target in ("pipe without a reader", "socket", "folder", "loop")
    else:
        assert target in ("regular", "missing", "pipe", "/dev/null")
    assert path.is_symlink() == (bool(link) or target == "loop")
    if target in ("regular", "missing"):
        assert destination.read_bytes() == content
    if target == "pipe":
        with open(end, "rb") as reader:
            assert reader.read() == content
    if before is not None:
        assert stat.S_IFMT(os.lstat(destination).st_mode) == stat.S_IFMT(before.st_mode)
    assert not list(folder.glob(".new-*"))


def test_file_that_the_program_prints_into_is_not_replaced(tmp_path: Path) -> None:
    program = (
        "import pathlib, modelgen.files as files\nprint('printed', flush=True)\ntry:\n"
        " with files.replacing(pathlib.Path('/dev/stdout')) as path: path.write_text('x')\n"
        "except Exception as error: print(error)\n"
    )
    path = tmp_path / "log"
    with path.open("w") as log:
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True)
    assert path.read_text().startswith("printed\ncannot write /dev/stdout")
    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert printed.stdout == b"printed\nx"
