"""`modelgen show` prints what a robot is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import modelgen
from modelgen import Quadratic, Robot
from modelgen.cli import main
from tests.modelgen.commands.mistakes import mistake


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

    def test_half_the_weight_on_each_rotor_and_its_slope(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["show", "planar_quadrotor"]) == 0
        assert (
            capsys.readouterr().out.count(f"holds the target with {0.486 * 9.81 / 2:g}; du0/dtheta: mass 4.905\n") == 2
        )

    @pytest.mark.slow
    def test_slopes_of_a_trim_that_a_pressure_follows(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A leak L of the cylinder's pressure m g/A: the oil L m g/A a second holds the load, in m^3/s."""
        robot = Robot("lift")
        height = robot.prismatic("height", limit=0.3, rate_limit=0.8)
        area = robot.parameter("area", 2e-3, "m^2", tolerance=0.25)
        load = robot.parameter("load", 200.0, "kg", tolerance=0.3)
        leak = robot.parameter("leak", 2e-11, "m^3/(s Pa)", tolerance=0.5)
        oil = robot.input("oil", 1.5e-3, "m^3/s")
        pressure = robot.state("pressure", limit=3e6, unit="Pa")
        robot.flow(pressure, 2e11 * (oil - area * height.rate - leak * pressure))
        robot.point_mass(load, (0, height))
        robot.apply(height, area * pressure)
        robot.task(
            state_cost=height**2 + height.rate**2,
            action_cost=Quadratic(1e5),
            start=dict(height=(-0.2, 0.02)),
            horizon=3,
            weight_at_horizon=0.5,
            control_rate=100,
        )
        modelgen.build(robot, tmp_path)
        assert main(["show", "lift", "--generated", str(tmp_path), "--json"]) == 0
        slopes = json.loads(capsys.readouterr().out)["trim_slopes"]["oil"]
        held = 2e-11 * 200 * 9.81 / 2e-3
        assert slopes == pytest.approx({"area": -held / 2e-3, "load": held / 200, "leak": held / 2e-11}, rel=1e-6)

    def test_a_damaged_build_report(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "generated" / "crane" / "build_report.json").write_text("[]")
        assert main(["show", "crane"]) == 0
        assert "is damaged" in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
    @pytest.mark.slow
    def test_a_page_needs_a_file_and_no_artifact(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "is a folder" in mistake(capsys, "show", "crane", "--html", ".")
        assert "--generated" in mistake(capsys, "show", "crane", "--latex", "--generated", "generated")
        assert "is a folder" in mistake(capsys, "animate", "crane", "--out", ".")

    @pytest.mark.slow
    def test_without_a_build_report(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (built / "generated" / "crane" / "build_report.json").unlink()
        assert main(["show", "crane"]) == 0
        assert "not known" in capsys.readouterr().out

    @pytest.mark.usefixtures("built")
    @pytest.mark.slow
    def test_an_unknown_robot_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "crane" in mistake(capsys, "show", "crame")

    def test_damaged_manifest(self, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
        manifest = built / "generated" / "crane" / "manifest.json"
        manifest.write_text(manifest.read_text()[:100])
        assert "modelgen build crane" in mistake(capsys, "show", "crane")
