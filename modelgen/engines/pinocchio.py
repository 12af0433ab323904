"""Pinocchio as an engine: a mechanism made from links, or a robot from an MJCF file.

Pinocchio reads bodies, joints and rotor inertias of an MJCF file, but not the actuators, which MuJoCo reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.engines import ForcedEngine, Tree, package
from modelgen.engines.mujoco import matched, read
from modelgen.errors import ModelError
from modelgen.metadata import Metadata


class Pinocchio:
    """A mechanism in Pinocchio, moved by forces along its joints, one sample at a time."""

    def __init__(
        self,
        pinocchio: Any,
        model: Any,
        names: Sequence[str],
        rows: tuple[list[int], list[int]] | None = None,
        ignored: int = 0,
    ) -> None:
        """names: of the joints. rows: places of the coordinates and speeds. ignored: number of the last speeds whose
        coordinates stay at zero."""
        self.label = f"pinocchio {pinocchio.__version__}"
        self._pinocchio = pinocchio
        self._model = model
        self._data = model.createData()
        self._order = [int(model.joints[model.getJointId(name)].idx_v) for name in names] if rows is None else rows[1]
        self._places = self._order if rows is None else rows[0]  # of the coordinates; the same without rotations
        self._moving = self._order[: len(self._order) - ignored]

    def mass_matrix(self, q: Array) -> Array:
        result = np.empty((len(q), len(self._order), len(self._order)))
        for sample, position in enumerate(q):
            whole = self._pinocchio.crba(self._model, self._data, _sorted(position, self._places, self._model.nq))
            result[sample] = whole[np.ix_(self._order, self._order)]
        return result

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_v) under the forces u (N, n_v), without contacts, limits or friction."""
        result = np.empty(u.shape)
        for sample, arguments in enumerate(self._arguments(x, u)):
            result[sample] = self._pinocchio.aba(self._model, self._data, *arguments)[self._order]
        return result

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """dvdot/de (N, n_v, nt) at constant forces, by Pinocchio's own derivatives."""
        size = u.shape[1]
        result = np.empty((len(x), size, size + len(self._moving)))
        by_q, by_v = (np.ix_(self._order, columns) for columns in (self._moving, self._order))
        for sample, arguments in enumerate(self._arguments(x, u)):
            self._pinocchio.computeABADerivatives(self._model, self._data, *arguments)
            result[sample] = np.hstack([self._data.ddq_dq[by_q], self._data.ddq_dv[by_v]])
        return result, np.zeros_like(result)

    def _arguments(self, x: Array, u: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Position, velocity and forces of each sample, in Pinocchio's order."""
        size = len(self._places)
        for state, forces in zip(x, u, strict=True):
            q, v = state[:size], state[size:]
            speeds, pushed = (_sorted(each, self._order, self._model.nv) for each in (v, forces))
            yield _sorted(q, self._places, self._model.nq), speeds, pushed


def _sorted(values: Array, order: list[int], size: int) -> Array:
    """The values (size,) in Pinocchio's order, from the order of the model file; zero for others."""
    result = np.zeros(size)
    result[order] = values
    return result


@dataclass(frozen=True)
class AffineForces:
    """Forces constant + slopes x + gains u on the joints."""

    constant: Array  # (n_v,)
    slopes: Array  # (n_v, n)
    gains: Array  # (n_v, m)

    def value(self, x: Array, u: Array) -> Array:
        return self.constant + x @ self.slopes.T + u @ self.gains.T

    def slope(self, x: Array, _u: Array) -> Array:
        return np.tile(self.slopes, (len(x), 1, 1))


def load(path: Path, metadata: Metadata) -> ForcedEngine:
    """The robot of an MJCF file with one joint per body. Raises ModelError as `mujoco.read` does, and for others."""
    pinocchio = package("pinocchio")
    _, compiled, joints, actuators = read(path, metadata)
    try:
        model = pinocchio.buildModelFromMJCF(str(path))
    except (ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"Pinocchio cannot read {path}: {' '.join(str(error).split())}") from error
    if any(name.startswith("Composite_") for name in model.names):
        raise ModelError(
            f"a body of {path} has several joints; write one body per joint for Pinocchio, or use --against mujoco."
        )
    names = (*metadata.coordinates, *metadata.ignored)
    matched(names, [name for name in model.names if name != "universe"], "joint", path)
    order = [int(model.joints[model.getJointId(name)].idx_v) for name in names]
    mechanism = Pinocchio(pinocchio, model, names, (order[: metadata.nq], order), len(metadata.ignored))
    forces = _forces(compiled, joints, actuators, path, np.asarray(model.damping)[order])
    kept = np.delete(forces.slopes, np.arange(metadata.nq, len(names)), axis=1)  # without ignored coordinates
    return ForcedEngine(mechanism, replace(forces, slopes=kept))


def _forces(compiled: Any, joints: Sequence[int], actuators: Sequence[int], path: Path, damping: Array) -> AffineForces:
    """Damping and actuators on the joints, with slopes (n_v, 2 n_v) by all positions and velocities.

    Raises ModelError for an actuator that is not on a joint, or has another gain or bias.
    """
    size, bias_of = len(joints), {0: 0.0, 1: 1.0}  # no bias, an affine one
    constant, by_q, gains = np.zeros(size), np.zeros((size, size)), np.zeros((size, len(actuators)))
    by_v = -np.diag(damping)
    for column, actuator in enumerate(compiled.actuator(index) for index in actuators):
        kinds = (int(actuator.trntype[0]), int(actuator.gaintype[0]), int(actuator.biastype[0]))
        if kinds[:2] != (0, 0) or kinds[2] not in bias_of:
            raise ModelError(
                f"the actuator `{actuator.name}` of {path} is not supported here; only one on a joint is, with a fixed "
                "gain and an affine bias. MuJoCo supports all: --against mujoco."
            )
        row, gear = joints.index(int(actuator.trnid[0])), float(actuator.gear[0])
        by = bias_of[kinds[2]] * actuator.biasprm[:3] * [gear, gear**2, gear**2]
        gains[row, column] = gear * actuator.gainprm[0]
        constant[row], by_q[row, row], by_v[row, row] = np.add([constant[row], by_q[row, row], by_v[row, row]], by)
    return AffineForces(constant, np.hstack([by_q, by_v]), gains)


def build(tree: Tree) -> Pinocchio:
    """The mechanism of a tree, with one joint per coordinate."""
    pinocchio = package("pinocchio")
    model = pinocchio.Model()
    model.name = tree.name
    model.gravity.linear = np.array([0, 0, -tree.gravity])
    kinds = {"revolute": pinocchio.JointModelRevoluteUnaligned, "prismatic": pinocchio.JointModelPrismaticUnaligned}
    placed: dict[int | None, tuple[int, Any]] = {None: (0, pinocchio.SE3.Identity())}  # joint, pose of the frame on it
    for number in _depth_first(tree, None):
        body = tree.bodies[number]
        joint, frame = placed[body.parent]
        frame = frame * pinocchio.SE3(body.rotation, body.position)
        for movement in body.movements:
            own = pinocchio.JointModelSpherical() if movement.kind == "ball" else kinds[movement.kind](movement.axis)
            added = model.addJoint(joint, own, frame, movement.name)
            joint, frame = added, frame.Identity()
        model.appendBodyToJoint(joint, pinocchio.Inertia(body.mass, body.centre, body.inertia), frame)
        placed[number] = (joint, frame)
    q, v = dict[str, int](), dict[str, int]()
    for movement in (movement for body in tree.bodies for movement in body.movements):
        own = model.joints[model.getJointId(movement.name)]
        order = (3, 0, 1, 2) if movement.kind == "ball" else (0,)  # Pinocchio's quaternions end with w
        q |= {name: int(own.idx_q) + k for name, k in zip(movement.coordinates, order, strict=True)}
        v |= {name: int(own.idx_v) + k for k, name in enumerate(movement.speeds)}
    rows = [q[name] for name in tree.coordinates], [v[name] for name in tree.speeds]
    mechanism = Pinocchio(pinocchio, model, tree.coordinates, rows, len(tree.tangent.metadata.ignored))
    armature = np.empty(model.nv)
    armature[rows[1]] = tree.armature
    model.armature = armature
    return mechanism


def _depth_first(tree: Tree, root: int | None) -> Iterator[int]:
    """The indices of the bodies depth first, as Pinocchio's algorithms need."""
    for number, body in enumerate(tree.bodies):
        if body.parent == root:
            yield number
            yield from _depth_first(tree, number)
