"""MJCF files, read by MuJoCo; joints and actuators are found by their names in the model file. Needs no SymPy.

MuJoCo as an engine: a mechanism made from links, or a robot from an MJCF file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.engines import Body, Tree, by_state, package
from modelgen.errors import ModelError
from modelgen.files import shipped
from modelgen.metadata import Metadata
from modelgen.tangent import Tangent

#: MJCF files of the shipped robots, NAME.xml. They are written by hand.
ASSETS = shipped("models") / "assets"


def read(path: Path, metadata: Metadata) -> tuple[Any, Any, list[int], list[int]]:
    """The module `mujoco`, the MjModel of the file, and the index of each coordinate's joint and input's actuator.

    Raises ModelError if MuJoCo is not installed or cannot read the file, if a joint is neither a hinge nor a slide, if
    the file has constraints or actuators with a state, and if the names differ from the model file's.
    """
    mujoco = package("mujoco")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, OSError) as error:
        raise ModelError(f"MuJoCo cannot read {path}: {' '.join(str(error).split())}") from error
    kinds = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
    wrong = [model.joint(number).name for number in range(model.njnt) if int(model.jnt_type[number]) not in kinds]
    if wrong:
        raise ModelError(
            f"the joint `{wrong[0]}` of {path} is neither a hinge nor a slide; write it as a series of those."
        )
    if model.neq or model.na:
        what = "equality constraints" if model.neq else "actuators with a state"
        raise ModelError(f"{path} has {what}, which a model file cannot hold. Remove them from a copy and use that.")
    inputs = [entry.name for entry in metadata.inputs]
    names = [model.joint(i).name for i in range(model.njnt)]
    joints = matched((*metadata.coordinates, *metadata.ignored), names, "joint", path)
    actuators = matched(inputs, [model.actuator(i).name for i in range(model.nu)], "actuator", path)
    return mujoco, model, joints, actuators


def matched(wanted: Sequence[str], present: Sequence[str], what: str, path: Path) -> list[int]:
    """The index in `present` of each wanted name. Raises ModelError unless both lists have the same names."""
    if sorted(wanted) != sorted(present):
        theirs = ", ".join(f"`{name}`" for name in present) or "none"
        ours = ", ".join(f"`{name}`" for name in wanted)
        raise ModelError(
            f"the {what}s of {path} are {theirs}; the model file has {ours}. Give each {what} its name in the model "
            "file (in any order), and remove the others."
        )
    return [present.index(name) for name in wanted]


SMALLEST = 1e-14  # replaces zero, which MuJoCo refuses; in the unit of the model


class MuJoCo:
    """A robot or mechanism in MuJoCo, one sample at a time. Its inputs are actuators, or forces along the joints.

    positions, speeds: addresses of the coordinates and speeds in MuJoCo. unit: kg, the unit of all masses, inertias
    and forces in the model.
    """

    def __init__(
        self,
        mujoco: Any,
        model: Any,
        positions: Sequence[int],
        actuators: Sequence[int] | None = None,
        unit: float = 1.0,
        speeds: Sequence[int] | None = None,
        tangent: Tangent | None = None,
    ) -> None:
        self.label = f"mujoco {mujoco.__version__}"
        self._mujoco = mujoco
        self._model = model
        self._unit = unit
        self._data = mujoco.MjData(model)
        self._positions = list(positions)  # addresses in qpos
        self._speeds = self._positions if speeds is None else list(speeds)  # in qvel; the same without rotations
        self._tangent = tangent
        self._inputs = self._data.qfrc_applied if actuators is None else self._data.ctrl
        self._rows = self._speeds if actuators is None else list(actuators)
        flags = mujoco.mjtDisableBit
        model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_CLAMPCTRL)

    def mass_matrix(self, q: Array) -> Array:
        size, whole = len(self._speeds), np.empty((self._model.nv, self._model.nv))
        result = np.empty((len(q), size, size))
        for sample, position in enumerate(q):
            self._forward(position, np.zeros(size), np.zeros(len(self._rows)))
            self._mujoco.mj_fullM(self._model, self._data, whole)
            result[sample] = whole[np.ix_(self._speeds, self._speeds)] * self._unit
        return result

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_v) with passive and actuator forces, without contacts, limits or dry friction."""
        size = len(self._positions)
        result = np.empty((len(x), len(self._speeds)))
        for sample, (state, inputs) in enumerate(zip(x, u, strict=True)):
            self._forward(state[:size], state[size:], inputs)
            result[sample] = self._data.qacc[self._speeds]
        return result

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        return by_state(self.acceleration, x, u, self._tangent)

    def _forward(self, q: Array, v: Array, u: Array) -> None:
        self._data.qpos[self._positions] = q
        self._data.qvel[self._speeds] = v
        self._inputs[self._rows] = u / self._unit
        self._mujoco.mj_forward(self._model, self._data)


def load(path: Path, metadata: Metadata) -> MuJoCo:
    """The robot of an MJCF file without contacts, limits or dry friction. Raises ModelError as `mjcf.read` does."""
    mujoco, model, joints, actuators = read(path, metadata)
    return MuJoCo(mujoco, model, joints[: metadata.nq], actuators, speeds=joints)


def build(tree: Tree) -> MuJoCo:
    """The mechanism of a tree, in a unit of mass in which its largest inertia and mass are 1 (m^2) or more.

    A body without mass or inertia gets `SMALLEST`, which is negligible for a robot of any size.
    """
    mujoco = package("mujoco")
    spec = mujoco.MjSpec()
    spec.option.gravity = (0, 0, -tree.gravity)
    kinds = {
        "revolute": mujoco.mjtJoint.mjJNT_HINGE,
        "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
        "ball": mujoco.mjtJoint.mjJNT_BALL,
    }
    made: list[Any] = []
    largest = max(map(_inertia, tree.bodies)), max(body.mass for body in tree.bodies)
    unit = min(filter(None, largest), default=1.0)
    for body in tree.bodies:
        parent = spec.worldbody if body.parent is None else made[body.parent]
        moments, axes = np.linalg.eigh(body.inertia / unit)
        axes[:, 2] *= np.linalg.det(axes)
        at = dict(pos=body.position, quat=_quaternion(mujoco, body.rotation))
        mass = dict(mass=max(body.mass / unit, SMALLEST), ipos=body.centre, iquat=_quaternion(mujoco, axes))
        made.append(parent.add_body(**at, **mass, inertia=np.maximum(moments, SMALLEST), explicitinertial=True))
        if _is_free(body):
            made[-1].add_joint(name=body.movements[-1].name, type=mujoco.mjtJoint.mjJNT_FREE)
            continue
        for movement in body.movements:
            armature = tree.added(movement) / unit
            made[-1].add_joint(name=movement.name, type=kinds[movement.kind], axis=movement.axis, armature=armature)
    try:
        model = spec.compile()
    except ValueError as error:
        raise ModelError(
            f"MuJoCo refuses the links of `{tree.name}`: {' '.join(str(error).split())}. "
            "Compare with --against pinocchio."
        ) from error
    positions, speeds = _addresses(model, tree)
    return MuJoCo(mujoco, model, positions, unit=unit, speeds=speeds, tangent=tree.tangent)


def _is_free(body: Body) -> bool:
    """Whether MuJoCo's free joint is the joint of a body: on the ground, in its frame."""
    kinds = [movement.kind for movement in body.movements]
    placed = np.array_equal(body.rotation, np.eye(3)) and not body.position.any()
    return kinds == ["prismatic"] * 3 + ["ball"] and body.parent is None and placed


def _addresses(model: Any, tree: Tree) -> tuple[list[int], list[int]]:
    """The address of every coordinate in qpos and of every speed in qvel."""
    q, v = dict[str, int](), dict[str, int]()
    for body in tree.bodies:
        whole = [body.movements] if _is_free(body) else [(movement,) for movement in body.movements]
        for movements in whole:
            joint = model.joint(movements[-1].name)
            coordinates = [name for movement in movements for name in movement.coordinates]
            speeds = [name for movement in movements for name in movement.speeds]
            q |= {name: int(joint.qposadr[0]) + k for k, name in enumerate(coordinates)}
            v |= {name: int(joint.dofadr[0]) + k for k, name in enumerate(speeds)}
    return [q[name] for name in tree.coordinates], [v[name] for name in tree.speeds]


def _inertia(body: Body) -> float:
    """The largest moment of a body about its joint or about the joint of its parent, kg m^2."""
    arm = max(np.linalg.norm(body.centre), np.linalg.norm(body.position))
    return float(np.abs(body.inertia).max() + body.mass * arm**2)


def _quaternion(mujoco: Any, rotation: Array) -> Array:
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, np.ascontiguousarray(rotation).ravel())
    return result
