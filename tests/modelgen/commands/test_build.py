"""`modelgen build` in a folder of models, and with expressions that are nested too deep."""

from __future__ import annotations

from pathlib import Path

import pytest

import modelgen
from modelgen.cli import main
from tests.modelgen.commands.mistakes import mistake


class TestBuild:
    @pytest.mark.usefixtures("folder")
    def test_unknown_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "Did you mean `pendulum`?" in mistake(capsys, "build", "pendlum")

    @pytest.mark.slow
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
        assert main(["build", "./crane.py", "--generated", "out"]) == 0
        words = capsys.readouterr().out.rpartition("next: modelgen ")[2].split()
        assert words == ["verify", "./crane.py", "--generated", "out"]

    @pytest.mark.slow
    def test_two_files_of_one_robot_are_not_built_over_each_other(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name, limit in (("a", 1.0), ("b", 2.0)):
            main(["new", "crane", "--out", name])
            path = folder / name / "crane.py"
            path.write_text(path.read_text().replace('"trolley", limit=1.0', f'"trolley", limit={limit}'))
        assert main(["build", "a/crane.py", "b/crane.py"]) == 2
        assert "b/crane.py declares `crane`, as a/crane.py does" in capsys.readouterr().err
        assert modelgen.load("crane").state_limits[0] == 1.0

    @pytest.mark.slow
    def test_next_step_after_mechanics_alone_is_a_build(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "crane"])
        assert main(["build", "crane", "--functions", "mechanics"]) == 0
        step = capsys.readouterr().out.rpartition("next: modelgen ")[2].split()
        assert step == ["build", "crane"]
        assert (folder / "generated" / "crane").is_dir()
        assert main(step) == 0
        assert main(["build", "crane", "--functions", "mechanics"]) == 0
        assert capsys.readouterr().out.rpartition("next: modelgen ")[2].split() == ["verify", "crane"]

    def test_empty_models_folder(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "models").mkdir()
        assert "modelgen new" in mistake(capsys, "build")

    @pytest.mark.slow
    def test_check_at_definition_stops_the_build(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main(["new", "crane"])
        path = folder / "models" / "crane.py"
        path.write_text(path.read_text().replace("4 * trolley**2", "4 * trolley**3"))
        capsys.readouterr()
        assert "reward would be positive" in mistake(capsys, "build", "crane")
        assert not (folder / "generated").exists()


def test_walk_that_is_too_deep(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(_: object) -> int:
        return walk(_)

    assert folder.is_dir()
    monkeypatch.setattr("modelgen.commands.build.run", walk)
    assert "fewer nested functions" in mistake(capsys, "build", "deep")


@pytest.mark.slow
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
    assert "fewer nested functions" in mistake(capsys, "build", "deep.py")
