"""Loops of an MJCF file (connect, weld) move as in MuJoCo, with the constraint solved here and by MuJoCo's solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen.arrays import Array
from tests.modelgen.importers.test_mjcf import Machine, agree

mujoco = pytest.importorskip("mujoco")

BAR = '<inertial pos="0.02 0.01 0.12" mass="0.2" diaginertia="0.001 0.002 0.0015" euler="0 10 0"/>'
CRANK = '<motor name="drive" joint="crank" ctrlrange="-3 3"/>'
FOUR_BAR = f"""<body name="crank" pos="0.1 0 1"><joint name="crank" axis="0 1 0"/>{BAR}
  <body name="coupler" pos="0 0 0.2"><joint name="coupler" axis="0 1 0" stiffness="0.3"/>{BAR}</body></body>
  <body name="rocker" pos="0.5 0.1 0.8"><joint name="rocker" axis="0 -1 0" ref="30" damping="0.02"/>{BAR}</body>"""
CONNECT = '<equality><connect body1="coupler" body2="rocker" anchor="0.43 0 0.15"/></equality>'
FIVE_BAR = f"""<body name="base" pos="0 0 1" euler="10 0 20"><freejoint/>{BAR}
  <body name="l1" pos="-0.15 0 0"><joint name="left" axis="0 1 0" range="-30 30"/>{BAR}
    <body name="l2" pos="0 0 0.25" euler="0 26.4 0"><joint name="left_elbow" axis="0 1 0"/>{BAR}
      <site name="tip" pos="0 0 0.335"/></body></body>
  <body name="r1" pos="0.15 0 0"><joint name="right" axis="0 1 0" range="-30 30"/>{BAR}
    <body name="r2" pos="0 0 0.25" euler="0 -26.4 0"><joint name="right_elbow" axis="0 1 0" damping="0.1"/>{BAR}
      <site name="end" pos="0 0 0.33"/></body></body></body>"""
MOTORS = "".join(f'<motor name="{side}_motor" joint="{side}" ctrlrange="-4 4"/>' for side in ("left", "right"))
WELDED = FOUR_BAR.replace(
    "</body></body>", f'<body name="end" pos="0.4 0 0"><joint axis="0 1 0"/>{BAR}</body></body></body>', 1
)
MACHINES = {
    "four-bar by its crank": (FOUR_BAR, CRANK, CONNECT),
    "five-bar of a floating body, joined at sites": (
        FIVE_BAR,
        MOTORS,
        '<equality><connect site1="tip" site2="end"/></equality>',
    ),
    "two parts welded into one": (WELDED, CRANK, '<equality><weld body1="end" body2="rocker"/></equality>'),
    "the crank below gravity of another direction": (FOUR_BAR, CRANK, f'{CONNECT}<option gravity="3 0 -7"/>'),
}


def _plain(machine: Machine) -> Any:
    """MuJoCo's model of the file, whose equality constraints are as hard as its solver allows."""
    model = mujoco.MjModel.from_xml_path(str(machine.path))
    model.eq_solref[:], model.eq_solimp[:] = (0.004, 1), (0.99999, 0.99999, 0.001, 0.5, 2)
    model.opt.tolerance, model.opt.iterations, model.opt.disableflags = 0, 200, int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    return model


def _state(machine: Machine, model: Any, x: Array) -> Any:
    """MuJoCo's data at a state of the model file: the joints that follow are placed and moved by the constraints."""
    imported, data = machine.imported, mujoco.MjData(model)
    count = len(machine.coordinates)
    _, projection = imported._place(x[:count])
    data.qpos = imported._data.qpos
    follow, _ = imported._loops(projection, x[count:])
    data.qvel = projection @ follow @ x[count:]
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("name", MACHINES)
def test_a_loop_moves_as_in_mujoco(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, *MACHINES[name])
    assert "robot.loop(loop1_first, loop1_second, dependent={" in machine.text
    x, u = machine.draw()
    ours = machine.acceleration(x, u)
    agree(ours, machine.imported.acceleration(x, u))
    model, theirs = _plain(machine), []
    leading = [
        machine.imported._columns[joint.name]
        for joint in machine.imported._joints
        if joint.name not in machine.imported._robot.mechanism.dependent and joint.type != "floating"
    ]
    for state, inputs in zip(x, u, strict=True):
        data = _state(machine, model, state)
        assert np.abs(data.efc_pos).max() < 1e-9, "the loop is closed"
        assert np.abs(data.efc_vel).max() < 1e-7 * max(1, np.abs(data.qvel).max()), "and stays closed"
        data.ctrl = inputs
        mujoco.mj_forward(model, data)
        theirs.append(data.qacc[leading])
    print(ours, theirs)
