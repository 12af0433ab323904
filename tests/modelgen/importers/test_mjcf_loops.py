"""Loops of an MJCF file (connect, weld) move as in MuJoCo, with the constraint solved here and by MuJoCo's solver."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen import ModelError
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
    "five-bar of a floating body, joined at sites": (
        FIVE_BAR,
        MOTORS,
        '<equality><connect site1="tip" site2="end"/></equality>',
    ),
    "two parts welded into one": (WELDED, CRANK, '<equality><weld body1="end" body2="rocker"/></equality>'),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_loop_moves_as_in_mujoco(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, *MACHINES[name])
    assert "robot.loop(loop1_first, loop1_second, dependent={" in machine.text
    x, u = machine.draw()
    ours = machine.acceleration(x, u)
    agree(ours, machine.imported.acceleration(x, u))
    model, theirs = _plain(machine), []
    mechanism, columns = machine.imported._robot.mechanism, machine.imported._columns
    leading = [columns[name] for name in columns if name not in {*mechanism.dependent, "base_joint"}]
    for state, inputs in zip(x, u, strict=True):
        data = _state(machine, model, state)
        assert np.abs(data.efc_pos).max() < 1e-9, "the loop is closed"
        assert np.abs(data.efc_vel).max() < 1e-7 * max(1, np.abs(data.qvel).max()), "and stays closed"
        data.ctrl = inputs
        mujoco.mj_forward(model, data)
        theirs.append(data.qacc[leading])
    hard = ours[:, -len(leading) :]
    assert np.abs(hard - theirs).max() < 1e-3 * np.abs(hard).max(), (
        "MuJoCo's solver, whose constraints give way a little"
    )


@pytest.mark.slow
def test_a_joint_that_turns_without_end_leads_where_the_loop_lets_it(tmp_path: Path) -> None:
    crank_rocker = FOUR_BAR.replace('stiffness="0.3"', "")
    free = Machine(tmp_path, crank_rocker, CRANK, CONNECT)
    assert "continuous=True, rate_limit" in free.text
    assert not any("range of crank" in words for words in free.warnings)
    short = Machine(tmp_path, crank_rocker.replace('pos="0 0 0.2"', 'pos="0 0 0.5"'), CRANK, CONNECT)
    assert any(
        re.search("the range of crank is .* the loop of line 1 does not close", words) for words in short.warnings
    )
    lower, upper = (
        float(bound) for bound in re.findall(r"range of crank is (\S+) \.\.\. (\S+) in", str(short.warnings))[0]
    )
    assert short.robot.joints[0].limit == pytest.approx((upper - lower) / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("bodies", "loop", "words"),
    [
        (
            FOUR_BAR,
            '<connect body1="coupler" body2="world" anchor="0.1 0.03 0"/>',
            "hold crank, coupler: none of these",
        ),
        (
            FOUR_BAR.replace('name="rocker" axis="0 -1 0" ref="30"', 'name="rocker" type="ball"'),
            '<connect body1="coupler" body2="rocker" anchor="0.43 0 0.15"/>',
            "passes the joint 'rocker' with three rotations",
        ),
        (
            FIVE_BAR.replace('pos="0 0 0.33"', 'pos="0 0.2 0.33"'),
            '<connect site1="tip" site2="end"/>',
            "does not close near the reference posture",
        ),
    ],
)
def test_a_loop_that_a_model_file_cannot_hold_is_refused(tmp_path: Path, bodies: str, loop: str, words: str) -> None:
    motors = MOTORS if "left" in bodies else CRANK
    with pytest.raises(ModelError, match=rf"xml:3: .*{words}"):
        Machine(tmp_path, bodies.replace("\n", ""), motors, f"\n\n<equality>{loop}</equality>")


def test_loops_without_effect_are_listed(tmp_path: Path) -> None:
    twice = CONNECT.replace(
        "</equality>", '\n<connect body1="coupler" body2="rocker" anchor="0.43 0.1 0.15"/></equality>'
    )
    machine = Machine(tmp_path, FOUR_BAR, CRANK, twice)
    assert any("loops that follow from others (line 2)" in words for words in machine.warnings)
    assert machine.text.count("robot.loop(") == 1
