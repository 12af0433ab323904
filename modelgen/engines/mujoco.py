"""MuJoCo as the other engine: reads an MJCF file whose joints and actuators bear the model file's names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.engines import matched
from modelgen.errors import ModelError
from modelgen.metadata import Metadata

Array = NDArray[np.float64]


class MuJoCo:
    """One MJCF model, evaluated one sample after the other."""

    def __init__(self, mujoco: Any, model: Any, joints: Sequence[int], actuators: Sequence[int]) -> None:
        self.label = f"mujoco {mujoco.__version__}"
        self._mujoco = mujoco
        self._model = model
        self._data = mujoco.MjData(model)
        self._joints = list(joints)  # of hinges and slides the number is also the address in qpos and qvel
        self._actuators = list(actuators)

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q), rotor inertias (armature) included."""
        size = q.shape[1]
        result = np.empty((len(q), size, size))
        column = np.empty(size)
        for sample, position in enumerate(q):
            self._forward(position, np.zeros(size), np.zeros(len(self._actuators)))
            for j in range(size):
                self._mujoco.mj_mulM(self._model, self._data, column, np.eye(size)[self._joints[j]])
                result[sample, :, j] = column[self._joints]
        return result

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q) with passive and actuator forces, without contacts, limits and dry friction."""
        size = x.shape[1] // 2
        result = np.empty((len(x), size))
        for sample, (state, inputs) in enumerate(zip(x, u, strict=True)):
            self._forward(state[:size], state[size:], inputs)
            result[sample] = self._data.qacc[self._joints]
        return result

    def _forward(self, q: Array, v: Array, u: Array) -> None:
        self._data.qpos[self._joints] = q
        self._data.qvel[self._joints] = v
        self._data.ctrl[self._actuators] = u
        self._mujoco.mj_forward(self._model, self._data)


def load(path: Path, metadata: Metadata) -> MuJoCo:
    """The robot of an MJCF file; a hinge or slide for every coordinate and an actuator for every input, by name."""
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as error:
        raise ModelError(
            "MuJoCo is not installed, so there is nothing to compare with. Install it with `pip install mujoco`."
        ) from error
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, OSError) as error:
        raise ModelError(f"MuJoCo cannot read {path}: {' '.join(str(error).split())}") from error
    kinds = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
    wrong = [model.joint(number).name for number in range(model.njnt) if int(model.jnt_type[number]) not in kinds]
    if wrong:
        raise ModelError(
            f"the joint `{wrong[0]}` of {path} is neither a hinge nor a slide; write it as a row of those."
        )
    if model.neq or model.na:
        what = "equality constraints" if model.neq else "actuators with a state of their own"
        raise ModelError(
            f"{path} has {what}, which a model file cannot state. Remove them from the copy compared with."
        )
    coordinates = [state.name for state in metadata.states if state.kind == "position"]
    inputs = [each.name for each in metadata.inputs]
    joints = matched(coordinates, [model.joint(i).name for i in range(model.njnt)], "joint", path)
    actuators = matched(inputs, [model.actuator(i).name for i in range(model.nu)], "actuator", path)
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_CLAMPCTRL)
    return MuJoCo(mujoco, model, joints, actuators)
