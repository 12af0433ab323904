"""`modelgen verify` proves an artifact, and keeps the proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelgen.backends import MODULES
from modelgen.cli import main
from modelgen.derivation.model_file import SHIPPED
from modelgen.verification import missing_package
from tests.modelgen.commands.mistakes import mistake

pytestmark = pytest.mark.slow


class TestVerify:
    def test_quick_and_full_proofs(
        self, built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full proof is kept and shown, until the artifact is another one; a quick one is not."""
        from modelgen import verification
        from modelgen.verification.checks import Check

        kept = built / "generated" / "crane" / "proof.json"
        kept.unlink(missing_ok=True)
        assert main(["verify", "crane", "--quick"]) == 0
        assert "a full proof: leave out --quick" in capsys.readouterr().out
        assert not kept.exists()
        for error, words in ((1.0, "1 checks FAILED"), (0.0, "every check passed, 1 passed, 0 skipped")):
            check = Check("drift", "llvm float64", error, 1e-9)
            monkeypatch.setattr(verification, "verify", lambda *_, check=check: [check])
            assert main(["verify", "crane"]) == (error > 0)
            assert main(["show", "crane"]) == 0
            assert words in capsys.readouterr().out
        assert main(["check", "crane"]) == 0
        for text in ('{"artifact": "another"}', "[]", kept.read_text().replace('"artifact": "', '"artifact": "0')):
            kept.write_text(text)
            capsys.readouterr()
            assert main(["show", "crane"]) == 0
            assert "proof: this artifact has none" in capsys.readouterr().out
        assert "leave it out with --against" in mistake(capsys, "verify", "crane", "--quick", "--against", "mujoco")
        assert "leave out" in mistake(capsys, "verify", "crane", "--quick", "--proof-seconds", "5")

    @pytest.mark.usefixtures("built")
    def test_quick_finds_a_wrong_kernel(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from modelgen import loader

        class Wrong:
            def __init__(self, *arguments: object, **keywords: object) -> None:
                self.right = load(*arguments, **keywords)  # type: ignore[arg-type]

            def __getattr__(self, name: str) -> object:
                found = getattr(self.right, name)
                return (lambda *a, **k: found(*a, **k) * (1 + 1e-8)) if name == "dynamics" else found

        load = loader.load
        monkeypatch.setattr(loader, "load", Wrong)
        assert main(["verify", "crane", "--quick"]) == 1
        output = capsys.readouterr().out
        assert "energy changes by the power of the forces" in output
        assert output.count("FAILED") == 2
        assert "50 digits" in output

    def test_stale_artifact(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text().replace("0.6", "0.61"))
        assert "modelgen build crane" in mistake(capsys, "verify", "crane")

    def test_a_proof_takes_time(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "0.001" in mistake(capsys, "verify", "crane", "--proof-seconds", "-1")
        assert built.is_dir()

    def test_failure_returns_one(
        self, built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from modelgen import verification
        from modelgen.verification.checks import Check

        monkeypatch.setattr(verification, "verify", lambda *_: [Check("drift", "llvm float64", 1.0, 1e-9)])
        assert main(["verify", "crane"]) == 1
        output = capsys.readouterr().out
        assert "FAILED" in output
        assert "0 checks passed, 1 failed" in output
        assert built.is_dir()


def test_one_coordinate_robot_from_file_to_proof(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole line with every backend, on the smallest robot so that compiling is short."""
    model = (SHIPPED / "pendulum.py").read_text()
    (folder / "models").mkdir()
    (folder / "models" / "pendulum.py").write_text(model)
    assert main(["build"]) == 0
    assert main(["verify", "pendulum"]) == 0
    output = capsys.readouterr().out
    assert "FAILED" not in output
    assert " 0 failed" in output
    for backend in MODULES:
        assert f"{backend} float32" in output or f"{missing_package(backend)} is not installed" in output


@pytest.mark.usefixtures("built")
def test_a_model_that_cannot_be_verified_does_not_keep_others_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "nobody", "crane", "--quick"]) == 2
    written = capsys.readouterr()
    assert "error: " in written.err
    assert "nobody" in written.err
    assert "crane" in written.out
