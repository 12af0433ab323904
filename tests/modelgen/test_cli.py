"""The command line in a user's own folder: what it prints, leaves behind and returns."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from modelgen.backends import EXPORTS, MODULES, TRANSLATED
from modelgen.cli import PROGRAM, main
from modelgen.commands import export
from modelgen.derivation.model_file import SHIPPED
from modelgen.verification import missing_package


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def built(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The template of `modelgen new`, built."""
    assert main(["new", "crane"]) == 0
    assert main(["build", "crane"]) == 0
    capsys.readouterr()
    return folder


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The command returns 2 and prints one line of error, which is returned."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


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

    def test_other_folder(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["new", "crane", "--directory", "mine"]) == 0
        assert "modelgen build mine/crane.py" in capsys.readouterr().out
        assert main(["build", "mine/crane.py", "--directory", "out"]) == 0
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
    def test_bad_name(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
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


class TestBuild:
    @pytest.mark.usefixtures("folder")
    def test_unknown_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "Did you mean `pendulum`?" in mistake(capsys, "build", "pendlum")

    def test_all_models_of_the_folder_and_every_mistake(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "crane"])
        (folder / "models" / "broken.py").write_text("x = 1 / 0\n")
        capsys.readouterr()
        assert main(["build"]) == 2
        captured = capsys.readouterr()
        assert "models/broken.py:1: ZeroDivisionError" in captured.err
        assert captured.out.startswith("crane")

    def test_the_next_command_is_one_that_works(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["new", "crane"]) == 0
        (folder / "models" / "crane.py").rename(folder / "crane.py")
        capsys.readouterr()
        assert main(["build", "./crane.py", "--directory", "out"]) == 0
        words = capsys.readouterr().out.rpartition("next: modelgen ")[2].split()
        assert words == ["verify", "./crane.py", "--directory", "out"]

    def test_empty_models_folder(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "models").mkdir()
        assert "modelgen new" in mistake(capsys, "build")

    def test_check_at_definition_stops_the_build(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "crane"])
        path = folder / "models" / "crane.py"
        path.write_text(path.read_text().replace("4 * trolley**2", "4 * trolley**3"))
        capsys.readouterr()
        assert "reward would be positive" in mistake(capsys, "build", "crane")
        assert not (folder / "generated").exists()


class TestCheck:
    @pytest.mark.usefixtures("built")
    def test_sound(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check"]) == 0
        assert capsys.readouterr().out.split() == ["crane", "ok"]

    def test_model_changed(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text().replace("0.6", "0.61"))
        assert main(["check"]) == 1
        assert "crane                FAILED" in capsys.readouterr().out

    def test_comment_added(self, built: Path) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text() + "# no change\n")
        assert main(["check"]) == 0

    def test_artifact_edited(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = next((built / "generated" / "crane").glob("*.py"))
        source.write_text(source.read_text() + "#")
        assert main(["check", "crane"]) == 1
        assert source.name in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
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

    def test_nothing(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "models").mkdir()
        assert "nothing to check" in mistake(capsys, "check")


class TestShow:
    @pytest.mark.usefixtures("built")
    def test_names_limits_task_operations_and_seconds(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "crane"]) == 0
        output = capsys.readouterr().out
        for words in ("trolley_mass", "swing_rate", "turns", "log_cos (0.005)", "hamiltonian_gradient", " s,"):
            assert words in output

    @pytest.mark.usefixtures("built")
    def test_a_model_file_stands_for_its_robot(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "models/crane.py"]) == 0
        assert "crane: " in capsys.readouterr().out

    def test_a_damaged_build_report(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "generated" / "crane" / "build_report.json").write_text("[]")
        assert main(["show", "crane"]) == 0
        assert "is damaged" in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
    def test_a_page_needs_a_file_and_no_artifact(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "is a folder" in mistake(capsys, "show", "crane", "--html", ".")
        assert "Leave it out" in mistake(capsys, "show", "crane", "--latex", "--directory", "generated")
        assert "is a folder" in mistake(capsys, "animate", "crane", "--output", ".")

    def test_without_a_build_report(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "generated" / "crane" / "build_report.json").unlink()
        assert main(["show", "crane"]) == 0
        assert "not known" in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
    def test_unknown(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "crane" in mistake(capsys, "show", "crame")

    def test_damaged_manifest(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        manifest = built / "generated" / "crane" / "manifest.json"
        manifest.write_text(manifest.read_text()[:100])
        assert "modelgen build crane" in mistake(capsys, "show", "crane")


def test_walk_that_is_too_deep(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(_: object) -> int:
        return walk(_)

    assert folder.is_dir()
    monkeypatch.setattr("modelgen.commands.build.run", walk)
    assert "fewer functions within functions" in mistake(capsys, "build", "deep")


def test_expression_that_is_nested_too_deep(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = (
        "from functools import reduce\nfrom sympy import sin\nfrom modelgen import LogCos, Robot\n"
        'robot = Robot("deep")\nq = robot.revolute("q", limit=3, rate_limit=5)\nrobot.point_mass(1, (sin(q), 0))\n'
        "push = reduce(lambda e, _: sin(e), range(2000), q)\n"
        'robot.apply(q, robot.input("torque", 1, "N m") + push)\n'
        "robot.task(state_cost=q**2, action_cost=LogCos(1), start={}, horizon=5, weight_at_horizon=0.5, "
        "control_rate=100)\n"
    )
    (folder / "deep.py").write_text(deep)
    assert "fewer functions within functions" in mistake(capsys, "build", "deep.py")


class TestVerify:
    def test_quick_and_full_proofs(
        self, built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full proof is kept and shown, until the artifact is another one; a quick one is not."""
        from modelgen import verification
        from modelgen.verification.check import Check

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
            assert "proof: none of this artifact is kept" in capsys.readouterr().out
        assert "leave it out with --against" in mistake(capsys, "verify", "crane", "--quick", "--against", "mujoco")

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
        assert "with 50 digits" in output

    def test_stale_artifact(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = built / "models" / "crane.py"
        path.write_text(path.read_text().replace("0.6", "0.61"))
        assert "modelgen build crane" in mistake(capsys, "verify", "crane")

    def test_failure_returns_one(
        self, built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from modelgen import verification
        from modelgen.verification.check import Check

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
    for backend in (*MODULES, *TRANSLATED):
        missing = missing_package(backend)
        assert f"{backend} float32" in output or backend == "numba" or f"{missing} is not installed" in output
    assert "compiles the source that llvm was checked with" in output


def test_help_and_mistakes_import_nothing_heavy() -> None:
    command = (
        "import sys; from modelgen.cli import main\n"
        "codes = [main(words) for words in (['--help'], ['show', '--help'], ['biuld'], ['build', '--diretory', 'x'])]\n"
        "assert codes == [0, 0, 2, 2], codes\n"
        "heavy = {'sympy', 'numpy', 'numba', 'casadi', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", command], check=True, cwd=SHIPPED.parent, capture_output=True)


def test_help_lists_every_command_with_a_line_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name, command in PROGRAM.commands.items():
        assert f"  {name:<12}{command.summary}\n" in text
        assert f"  {command.example}\n" in text
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: modelgen {name} ")
    assert main([]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["biuld"], "Did you mean `build`?"),
        (["build", "--diretory", "out"], "Did you mean `--directory`?"),
        (["show", "crane", "--lin"], "Did you mean `--linearize`?"),
        (["verify", "crane", "--against", "mujocoo"], "Did you mean `mujoco`?"),
        (["verify"], "`modelgen verify` needs MODEL"),
        (["new", "crane", "derrick"], "has no place for derrick"),
        (["animate", "crane", "--seconds", "long"], "--seconds long cannot be read. Write --seconds FLOAT, a number."),
        (
            ["import", "a.urdf", "--fix", "a", "--fix=b", "c"],
            "--fix stands twice. Write all values behind one: --fix a b c",
        ),
        (["show", "crane", "--latex=yes"], "--latex takes no value"),
        (["show", "crane", "--html", "a.html", "b.html"], "--html writes one file"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in mistake(capsys, *words)


def test_export_has_an_option_for_every_target() -> None:
    assert {field.name for field in dataclasses.fields(export.Options)} - {"model"} == set(EXPORTS)
