"""Closed loops of a compiled MJCF file in numbers: their gaps, slopes and Newton's method, by MuJoCo's kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.importers.mjcf_file import Compiled

CLOSED = 1e-10  # m or rad: a larger gap is open
FARTHEST = 0.5  # rad or m: a joint that moves more within a step is on another branch


@dataclass(frozen=True)
class Equality:
    """Two frames that coincide, or their origins: for each end the body and the frame (4, 4) in it."""

    bodies: tuple[int, int]
    frames: tuple[Array, Array]
    welded: bool
    element: Any


def equalities(compiled: Compiled) -> list[Equality]:
    """The active constraints `connect` and `weld` of a file."""
    model, enums, result = compiled.model, compiled.mujoco, []
    elements = {equality.id: equality for equality in compiled.spec.equalities}
    for index in np.flatnonzero(model.eq_active0):
        kind, values = int(model.eq_type[index]), model.eq_data[index]
        if kind not in (int(enums.mjtEq.mjEQ_CONNECT), int(enums.mjtEq.mjEQ_WELD)):
            continue
        welded = kind == int(enums.mjtEq.mjEQ_WELD)
        ends = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
        upright = np.array([1.0, 0, 0, 0])
        if int(model.eq_objtype[index]) == int(enums.mjtObj.mjOBJ_SITE):
            first, second = (_frame(enums, model.site_pos[site], model.site_quat[site]) for site in ends)
            ends = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        else:
            place, turned = (values[3:6], values[6:10]) if welded else (values[:3], upright)
            first = _frame(enums, place, turned)
            second = _frame(enums, values[:3] if welded else values[3:6], upright)
        result.append(Equality(ends, (first, second), welded, elements[int(index)]))
    return result


def _frame(mujoco: Any, position: Array, quaternion: Array) -> Array:
    result, matrix = np.eye(4), np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion / np.linalg.norm(quaternion))
    result[:3, :3], result[:3, 3] = matrix.reshape(3, 3), position
    return result


class Kinematics:
    """Gaps of loops at positions qpos (nq,) of a model, their slopes by the speeds (nv,), and Newton's method."""

    def __init__(self, compiled: Compiled) -> None:
        self._mujoco, self._model = compiled.mujoco, compiled.model
        self._data = self._mujoco.MjData(self._model)

    def gap(self, loops: Sequence[Equality], qpos: Array, qvel: Array | None = None) -> tuple[Array, Array, Array]:
        """The gap (rows,), its slopes (rows, nv), and the rate of the slopes times the speeds (rows,)."""
        model, data, mujoco = self._model, self._data, self._mujoco
        data.qpos[:], data.qvel[:] = qpos, 0.0 if qvel is None else qvel
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        if qvel is not None:
            mujoco.mj_comVel(model, data)
        gaps, slopes, rates = [], [], []
        for loop in loops:
            made = [self._end(body, frame, qvel) for body, frame in zip(loop.bodies, loop.frames, strict=True)]
            (first, by_first, rate_first), (second, by_second, rate_second) = made
            rows = slice(6 if loop.welded else 3)
            twist = np.cross(second[:3, :3].T, first[:3, :3].T).sum(axis=0) / 2
            gaps.append(np.concatenate([first[:3, 3] - second[:3, 3], twist])[rows])
            slopes.append((by_first - by_second)[rows])
            rates.append((rate_first - rate_second)[rows])
        return np.concatenate(gaps), np.vstack(slopes), np.concatenate(rates)

    def _end(self, body: int, frame: Array, qvel: Array | None) -> tuple[Array, Array, Array]:
        """The frame (4, 4) of an end in the world, its slopes (6, nv), and their rate times the speeds (6,)."""
        model, data, mujoco = self._model, self._data, self._mujoco
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
        placed = placed @ frame
        slopes, rates = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        mujoco.mj_jac(model, data, slopes[:3], slopes[3:], placed[:3, 3], body)
        if qvel is None:
            return placed, slopes, np.zeros(6)
        mujoco.mj_jacDot(model, data, rates[:3], rates[3:], placed[:3, 3], body)
        return placed, slopes, rates @ qvel

    def closed(self, loops: Sequence[Equality], joints: Sequence[int], qpos: Array) -> Array | None:
        """Positions with closed loops, where only `joints` have moved; None if Newton's method does not converge."""
        model, qpos = self._model, qpos.copy()
        at, dofs = model.jnt_qposadr[list(joints)], model.jnt_dofadr[list(joints)]
        for _ in range(12):
            gap, slopes, _ = self.gap(loops, qpos)
            if np.abs(gap).max() < CLOSED:
                # one more step leaves rounding errors only
                qpos[at] -= np.linalg.lstsq(slopes[:, dofs], gap, rcond=1e-9)[0]
                return qpos
            qpos[at] -= np.clip(np.linalg.lstsq(slopes[:, dofs], gap, rcond=1e-9)[0], -FARTHEST, FARTHEST)
        return None
