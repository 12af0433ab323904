"""Shipped robots against MuJoCo and Pinocchio, which read them from MJCF files written by hand."""

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


@pytest.mark.parametrize(
    ("engine", "name"),
    # Pinocchio takes one joint a body and, by our own reading, actuators on joints: not the quadrotor's rotors.
    [("mujoco", name) for name in NAMES] + [("pinocchio", name) for name in NAMES if name != "planar_quadrotor"],
)
def test_shipped_robot_agrees(engine, name, capsys):
    pytest.importorskip(engine)
    code = main(["verify", name, "--against", engine, "--directory", str(artifact.SHIPPED)])
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


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"angle"', '"hinge"', "the joints of .* are `hinge`; the model file has `angle`"),
        ('name="torque"', 'name="drive"', "the actuators of .* are `drive`; the model file has `torque`"),
        ("</mujoco>", "", "Pinocchio cannot read"),
        ('type="hinge" axis="0 1 0"', 'type="ball"', "neither a hinge nor a slide"),
        ('<joint name="angle"', '<joint name="other"/><joint name="angle"', "several joints"),
        ("<motor", "<position", "not one that is understood here"),
        ('joint="angle"/>', 'joint="angle" gear="up"/>', "gear of actuator `torque` is no row of numbers"),
        ("<worldbody>", '<default><motor gear="2"/></default><worldbody>', "<include> or <default>"),
    ],
)
def test_what_pinocchio_cannot_compare_is_refused(mjcf, before, after, words):
    pytest.importorskip("pinocchio")
    metadata = artifact.read(artifact.find("pendulum", artifact.SHIPPED)).metadata
    with pytest.raises(ModelError, match=words):
        engines.load("pinocchio", mjcf(before, after), metadata)


@pytest.mark.parametrize(("engine", "package"), [("mujoco", "mujoco"), ("pinocchio", "pin")])
def test_without_the_engine(mjcf, monkeypatch, capsys, engine, package):
    monkeypatch.setitem(sys.modules, engine, None)
    assert main(["verify", "pendulum", "--against", engine, "--mjcf", str(mjcf())]) == 2
    assert f"pip install {package}`" in capsys.readouterr().err


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
