"""Reading an MJCF file does not need SymPy, which a robot's computer and a GPU machine do not have."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
sys.modules["sympy"] = None  # importing it now raises ImportError
import numpy as np
import modelgen
from modelgen import engines
from modelgen.engines.mujoco import ASSETS, read

for name in ("cartpole", "furuta"):
    robot = modelgen.load(name, backend="casadi")
    path = ASSETS / f"{name}.xml"
    _, model, joints, actuators = read(path, robot.metadata)
    assert [model.joint(i).name for i in joints] == list(robot.metadata.coordinates)
    assert [model.actuator(i).name for i in actuators] == list(robot.input_names)
    x, u = np.full((3, 4), 0.3), np.full((3, 1), 0.5)
    theirs = engines.load("mujoco", path, robot.metadata).acceleration(x, u)
    np.testing.assert_allclose(robot.dynamics(x, u)[:, 2:], theirs, rtol=1e-9)
assert sys.modules["sympy"] is None
"""


def test_mjcf_file_is_read_without_sympy() -> None:
    pytest.importorskip("mujoco")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
