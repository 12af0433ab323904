"""`modelgen new` writes a model file that builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelgen.cli import main
from tests.modelgen.commands.mistakes import mistake


class TestNew:
    def test_writes_a_model_that_builds(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["new", "crane"]) == 0
        assert "modelgen build crane" in capsys.readouterr().out
        assert (folder / "models" / "crane.py").is_file()
        assert main(["build", "crane"]) == 0
        output = capsys.readouterr().out
        assert "2 coordinates, 1 input, 4 parameters" in output
        assert "equations of motion" in output
        assert (folder / "generated" / "crane" / "manifest.json").is_file()

    def test_a_model_is_written_into_another_folder(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["new", "crane", "--out", "mine"]) == 0
        assert "modelgen build mine/crane.py" in capsys.readouterr().out
        assert main(["build", "mine/crane.py", "--generated", "out"]) == 0
        assert (folder / "out" / "crane" / "manifest.json").is_file()

    def test_refuses_to_overwrite(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "crane"])
        path = folder / "models" / "crane.py"
        path.write_text("mine")
        capsys.readouterr()
        assert "models/crane.py exists already" in mistake(capsys, "new", "crane")
        assert path.read_text() == "mine"

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize("name", ["class", "a b", "../x", "3d"])
    def test_a_name_that_is_no_identifier_is_refused(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        assert f"`{name}` cannot name the robot" in mistake(capsys, "new", name)

    def test_a_name_with_the_suffix(self, folder: Path) -> None:
        assert main(["new", "crane.py"]) == 0
        assert (folder / "models" / "crane.py").is_file()

    def test_a_full_disk_leaves_no_half_of_a_file(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: Path, text: str, encoding: str) -> None:
            with self.open("w", encoding=encoding) as file:
                file.write(text[:100])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", full)
        assert "No space left" in mistake(capsys, "new", "crane")
        assert not list((folder / "models").iterdir())

    def test_folder_that_cannot_be_made(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "models").write_text("a file")
        assert "cannot write models/crane.py" in mistake(capsys, "new", "crane")
