"""`modelgen check` tells a sound artifact from a stale, edited or missing one."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelgen.cli import main
from tests.modelgen.commands.mistakes import mistake


class TestCheck:
    @pytest.mark.usefixtures("built")
    @pytest.mark.slow
    def test_an_unchanged_artifact_is_ok(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check"]) == 0
        assert capsys.readouterr().out.split() == ["crane", "ok"]

    @pytest.mark.slow
    def test_model_changed(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text().replace("0.6", "0.61"))
        assert main(["check"]) == 1
        assert "crane                FAILED" in capsys.readouterr().out

    @pytest.mark.slow
    def test_comment_added(self, built: Path) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text() + "# no change\n")
        assert main(["check"]) == 0

    @pytest.mark.slow
    def test_artifact_edited(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = next((built / "generated" / "crane").glob("*.py"))
        source.write_text(source.read_text() + "#")
        assert main(["check", "crane"]) == 1
        assert source.name in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
    @pytest.mark.slow
    def test_not_built(self, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "other"])
        assert main(["check"]) == 1
        assert "modelgen build other" in capsys.readouterr().out

    def test_artifact_without_its_model_file(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "models" / "crane.py").unlink()
        assert main(["check"]) == 0
        assert "model file is not here" in capsys.readouterr().out

    def test_a_broken_model_stops_no_other(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "models" / "aaa.py").write_text("robot =")
        assert main(["check"]) == 1
        output = capsys.readouterr().out
        assert "aaa                  FAILED" in output
        assert "crane                ok" in output

    def test_a_folder_without_models_is_refused(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "models").mkdir()
        assert "nothing to check" in mistake(capsys, "check")
