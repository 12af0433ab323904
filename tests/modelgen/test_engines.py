"""Shipped robots against MuJoCo, which reads them from MJCF files written by hand."""

import sys

import numpy as np
import pytest

from modelgen import artifact, engines
from modelgen.cli import main
from modelgen.engines.comparison import ASSETS
from modelgen.errors import ModelError

NAMES = sorted(path.stem for path in ASSETS.glob("*.xml"))
PENDULUM = (ASSETS / "pendulum.xml").read_text()


@pytest.fixture
def mjcf(tmp_path):
    """Writes the pendulum's MJCF file with one text replaced by another."""
    pytest.importorskip("mujoco")

    def write(before="", after=""):
        assert before in PENDULUM
        path = tmp_path / "changed.xml"
        path.write_text(PENDULUM.replace(before, after))
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
def test_shipped_robot_agrees(name, capsys):
    pytest.importorskip("mujoco")
    code = main(["verify", name, "--against", "mujoco", "--directory", str(artifact.SHIPPED)])
    output = capsys.readouterr().out
    assert code == 0, output
    assert "4 checks passed, 0 failed, 0 skipped" in output


@pytest.mark.parametrize(
    ("before", "after", "failing"),
    [
        ('mass="1"', 'mass="1.00001"', {"mass matrix", "acceleration", "acceleration by the inputs"}),
        ("-9.81", "-9.81001", {"acceleration"}),
        ('name="torque" joint', 'name="torque" gear="1.000001" joint', {"acceleration", "acceleration by the inputs"}),
        ('axis="0 1 0"', 'axis="0 1 0" damping="1e-6"', {"acceleration"}),
        ("0 0 -9.81", "9.81 0 0", {"acceleration", "derivative of the acceleration by x"}),
    ],
)
def test_every_kind_of_difference_is_found(mjcf, capsys, before, after, failing):
    path = mjcf(before, after)
    assert main(["verify", "pendulum", "--against", "mujoco", "--mjcf", str(path)]) == 1
    found = [line for line in capsys.readouterr().out.splitlines() if line.endswith("FAILED")]
    assert failing <= {line.partition("mujoco")[0].strip() for line in found}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"angle"', '"hinge"', "the joints of .* are `hinge`; the model file has `angle`"),
        ('name="torque"', 'name="drive"', "the actuators of .* are `drive`; the model file has `torque`"),
        ("</mujoco>", "", "MuJoCo cannot read"),
        ('type="hinge" axis="0 1 0"', 'type="ball"', "`angle` of .* is neither a hinge nor a slide"),
        ("<actuator>", '<equality><joint joint1="angle"/></equality><actuator>', "equality constraints"),
        ('name="torque" joint="angle"/>', 'name="torque" joint="angle"/><motor joint="angle"/>', "remove the others"),
    ],
)
def test_what_cannot_be_compared_is_refused(mjcf, before, after, words):
    path = mjcf(before, after)
    metadata = artifact.read(artifact.find("pendulum", artifact.SHIPPED)).metadata
    with pytest.raises(ModelError, match=words):
        engines.load("mujoco", path, metadata)


def test_without_mujoco(mjcf, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert main(["verify", "pendulum", "--against", "mujoco", "--mjcf", str(mjcf())]) == 2
    assert "pip install mujoco" in capsys.readouterr().err


def test_without_a_description(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "crane"]) == 0
    assert main(["build", "crane"]) == 0
    assert main(["verify", "crane", "--against", "mujoco"]) == 2
    assert "models/crane.xml" in capsys.readouterr().err


def test_file_for_several_robots(capsys):
    assert main(["verify", "pendulum", "furuta", "--against", "mujoco", "--mjcf", "pendulum.xml"]) == 2
    assert "belongs to one robot" in capsys.readouterr().err


def test_kernel_that_is_not_finite_fails():
    from modelgen.engines.comparison import SAMPLES, _difference

    found = np.ones((SAMPLES, 2))
    assert _difference(found, found) == 0
    assert np.isnan(_difference(np.where(np.eye(SAMPLES, 2), np.nan, found), found))
