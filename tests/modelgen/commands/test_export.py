"""`modelgen export`: of an artifact by its name, as of its model file, with the warnings of a build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modelgen.artifact import folder as artifact
from modelgen.cli import main

MODELS = Path(__file__).parents[3] / "models"
STUCK = """
from modelgen import LogCos, Robot

robot = Robot("stuck", "A cart whose target is a place on a slope that its motor cannot hold")
s = robot.prismatic("s", limit=1, rate_limit=2)
robot.point_mass(1, (0.8 * s, 0.6 * s))
robot.apply(s, robot.input("force", 1, "N"))
robot.task(
    state_cost=s**2,
    action_cost=LogCos(0.1),
    start=dict(s=(0.5, 0.1)),
    horizon=2,
    weight_at_horizon=0.5,
    control_rate=50,
)
"""


def test_a_name_gives_the_files_of_its_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no folder of models
    for model, folder in (("pendulum", "name"), (str(MODELS / "pendulum.py"), "file")):
        assert main(["export", model, "--c", folder, "--casadi", folder, "--js", folder]) == 0
    written = [{path.name: path.read_bytes() for path in Path(folder).iterdir()} for folder in ("name", "file")]
    assert written[0] == written[1]
    assert {"pendulum.c", "pendulum.mjs", "pendulum_dynamics.casadi"} <= written[0].keys()


@pytest.mark.slow
def test_a_name_needs_no_sympy(tmp_path: Path) -> None:
    words = ["export", "pendulum", "--c", str(tmp_path), "--casadi", str(tmp_path), "--js", str(tmp_path)]
    code = f"import sys; sys.modules['sympy'] = None; from modelgen.cli import main; sys.exit(main({words}))"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "pendulum.c").is_file()


def test_a_folder_of_artifacts_is_for_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--c", str(tmp_path / "c"), "--generated", str(artifact.SHIPPED)]
    assert main(["export", "pendulum", *words]) == 0
    assert main(["export", str(MODELS / "pendulum.py"), *words]) == 2
    assert "--generated is for the name of a built robot" in capsys.readouterr().err


def test_the_warnings_of_the_build_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    assert main(["export", str(tmp_path / "stuck.py"), "--c", str(tmp_path / "c")]) == 0
    assert "no input within the limits (`force` -1 to 1 N) holds the target" in capsys.readouterr().err
