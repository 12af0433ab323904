"""Closed loops of a compiled MJCF file: `connect` and `weld` between bodies, and which of their joints follow.

MuJoCo's kinematics give the gaps and slopes with which Newton's method closes the loops. Joints without an actuator
follow first. The ranges of the others are narrowed to where the loops close without a singularity and the joints that
follow keep their own ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from modelgen.arrays import Array
from modelgen.derivation.loops import connected
from modelgen.errors import ModelError
from modelgen.importers.mechanism import Closure, Joint, Mechanism
from modelgen.importers.mjcf_tree import Compiled, MjcfTree, frame_at
from modelgen.importers.model_text import GUESS
from modelgen.statement.joints import LARGEST

CLOSED = 1e-10  # m or rad: a larger gap is open
FARTHEST = 0.5  # rad or m: a joint that moves more within a step is on another branch
STAGES = 64  # from the starting posture to the end of a range
SINGULAR = 0.02  # smallest singular value of the gap's slopes by the joints that follow, relative to the largest
REDUNDANT = 1e-5  # of a column of slopes, relative to the largest: it adds no rank
NEARBY = 0.05  # rad or m: random displacements at which the rank is found
FEWER = 0.95  # of a range that a loop ends, and of the ranges of several joints until their loop closes
MOST_CORNERS, SIDES = 5, 24  # joints of which all corners are tried; random postures with one joint at its end


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
            first, second = (frame_at(model.site_pos[site], model.site_quat[site]) for site in ends)
            ends = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        else:
            place, turned = (values[3:6], values[6:10]) if welded else (values[:3], upright)
            first = frame_at(place, turned)
            second = frame_at(values[:3] if welded else values[3:6], upright)
        result.append(Equality(ends, (first, second), welded, elements[int(index)]))
    return result


class Kinematics:
    """Gaps of loops at positions qpos (nq,) of a model, their slopes by the speeds (nv,), and Newton's method."""

    def __init__(self, compiled: Compiled) -> None:
        self._mujoco, self._model = compiled.mujoco, compiled.model
        self._data = self._mujoco.MjData(self._model)

    def gap(self, loops: Sequence[Equality], qpos: Array) -> tuple[Array, Array]:
        """The gap (rows,) and its slopes (rows, nv)."""
        self._data.qpos[:] = qpos
        self._mujoco.mj_kinematics(self._model, self._data)
        self._mujoco.mj_comPos(self._model, self._data)
        gaps, slopes = [], []
        for loop in loops:
            made = [self._end(body, frame) for body, frame in zip(loop.bodies, loop.frames, strict=True)]
            (first, by_first), (second, by_second) = made
            rows = slice(6 if loop.welded else 3)
            twist = np.cross(second[:3, :3].T, first[:3, :3].T).sum(axis=0) / 2
            gaps.append(np.concatenate([first[:3, 3] - second[:3, 3], twist])[rows])
            slopes.append((by_first - by_second)[rows])
        return np.concatenate(gaps), np.vstack(slopes)

    def _end(self, body: int, frame: Array) -> tuple[Array, Array]:
        """The frame (4, 4) of an end in the world, and its slopes (6, nv)."""
        model, data, placed = self._model, self._data, np.eye(4)
        placed[:3, :3], placed[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
        placed, slopes = placed @ frame, np.zeros((6, model.nv))
        self._mujoco.mj_jac(model, data, slopes[:3], slopes[3:], placed[:3, 3], body)
        return placed, slopes

    def closed(self, loops: Sequence[Equality], joints: Sequence[int], qpos: Array) -> Array | None:
        """Positions with closed loops, where only `joints` have moved; None if Newton's method does not converge."""
        model, qpos = self._model, qpos.copy()
        at, dofs = model.jnt_qposadr[list(joints)], model.jnt_dofadr[list(joints)]
        for _ in range(12):
            gap, slopes = self.gap(loops, qpos)
            if np.abs(gap).max() < CLOSED:
                # one more step leaves rounding errors only
                qpos[at] -= np.linalg.lstsq(slopes[:, dofs], gap, rcond=1e-9)[0]
                return qpos
            qpos[at] -= np.clip(np.linalg.lstsq(slopes[:, dofs], gap, rcond=1e-9)[0], -FARTHEST, FARTHEST)
        return None


@dataclass
class MjcfLoopGroup:
    """Loops that share joints. joints: numbers of the moving ones. following: those of each loop that follow."""

    loops: list[Equality]
    joints: list[int]
    following: list[list[int]]

    @property
    def dependent(self) -> list[int]:
        """The joints that follow."""
        return [joint for joints in self.following for joint in joints]

    @property
    def leading(self) -> list[int]:
        """The joints that do not follow."""
        return [joint for joint in self.joints if joint not in self.dependent]


class LoopReader:
    """Reads the loops of a compiled file, whose joints without an actuator follow the others where they can."""

    def __init__(self, compiled: Compiled, tree: MjcfTree, mechanism: Mechanism) -> None:
        self._compiled, self._model, self._tree = compiled, compiled.model, tree
        self.kinematics = Kinematics(compiled)
        self._numbers = {name: number for number, name in tree.moving.items()}
        self._driven = {self._numbers[name] for name in mechanism.driven}
        self._joints = {joint.name: joint for joint in tree.joints}
        self.start = np.array(self._model.qpos0)
        self.groups = self._grouped()

    def closures(self) -> list[Closure]:
        """The loops with the postures at which they start. Narrows the ranges of the joints that lead them."""
        result = []
        for group in self.groups:
            self._begin(group)
            self._narrow(group)
            for loop, following in zip(group.loops, group.following, strict=True):
                first, second = (self._tree.placed(*end) for end in zip(loop.bodies, loop.frames, strict=True))
                at = self._positions(group.leading)
                result.append(Closure((first, second), loop.welded, self._positions(following), at))
        return result

    def _positions(self, joints: Sequence[int]) -> dict[str, float]:
        return {self._tree.moving[joint]: float(self.start[self._model.jnt_qposadr[joint]]) for joint in joints}

    def _path(self, loop: Equality) -> list[int]:
        """The moving joints between the ends of a loop. Raises ModelError for a ball or free joint among them."""
        model, lines = self._model, []
        for body in loop.bodies:
            line = set()
            while body:
                line.add(body)
                body = int(model.body_parentid[body])
            lines.append(line)
        result = []
        for body in sorted(lines[0] ^ lines[1]):
            first = int(model.body_jntadr[body])
            for joint in range(first, first + int(model.body_jntnum[body])):
                name = self._compiled.joint_name(joint)
                if joint in self._tree.moving:
                    result.append(joint)
                elif self._joints.get(name) is not None and self._joints[name].type != "fixed":
                    raise ModelError(
                        f"the loop of this <equality> passes the joint '{name}' with three rotations, which a loop "
                        f"of a model file cannot hold. Write three hinges in its place, or hold it with --fix {name}.",
                        self._compiled.place(loop.element),
                    )
        return result

    def _grouped(self) -> list[MjcfLoopGroup]:
        paths = [(loop, self._path(loop)) for loop in equalities(self._compiled)]
        for loop, _ in (pair for pair in paths if not pair[1]):
            self._compiled.leave_out("loops between parts that do not move", loop.element)
        together = connected(((loop, path), {*path}) for loop, path in paths if path)
        return [
            MjcfLoopGroup([loop for loop, _ in group], sorted({joint for _, path in group for joint in path}), [])
            for group in together
        ]

    def _begin(self, group: MjcfLoopGroup) -> None:
        """Find a closed posture and the joints that follow; leave out loops that others imply.

        Raises ModelError for a loop that does not close, and for one that leaves no joint to lead it.
        """
        random, at = np.random.default_rng(0), self._model.jnt_qposadr[group.joints]
        best: tuple[int, float] = (-1, 0.0)
        start = self.kinematics.closed(group.loops, group.joints, self.start)
        where = self._compiled.place(group.loops[0].element)
        if start is None:
            raise ModelError("the loop of this <equality> does not close near the reference posture.", where)
        for number in range(8):
            near = start.copy()
            near[at] += NEARBY * random.uniform(-1, 1, len(at)) * bool(number)
            posture = self.kinematics.closed(group.loops, group.joints, near)
            if posture is None:
                continue
            following, slopes = self._following(group, posture)
            count = sum(map(len, following))
            sound = _soundness(slopes[:, [group.joints.index(joint) for each in following for joint in each]])
            if (count, min(sound, SINGULAR)) > best:  # the reference posture itself, if it is not singular
                best, self.start, group.following = (count, min(sound, SINGULAR)), posture, following
        if len(group.dependent) == len(group.joints):
            names = ", ".join(self._tree.moving[joint] for joint in group.joints)
            raise ModelError(
                f"the loops of this <equality> hold {names}: none of these joints can move. Leave the loop out and "
                "hold the joints with --fix.",
                where,
            )
        for loop, joints in zip(group.loops, group.following, strict=True):
            if not joints:
                self._compiled.leave_out("loops that follow from others", loop.element)
        kept = [k for k, joints in enumerate(group.following) if joints]
        group.loops, group.following = [group.loops[k] for k in kept], [group.following[k] for k in kept]

    def _following(self, group: MjcfLoopGroup, qpos: Array) -> tuple[list[list[int]], Array]:
        """Joints that follow each loop, those without an actuator first; the slopes by all joints of the group."""
        dofs = self._model.jnt_dofadr[group.joints]
        chosen: list[int] = []
        result, slopes = [], np.empty((0, len(dofs)))
        for loop in group.loops:
            slopes = np.vstack([slopes, self.kinematics.gap([loop], qpos)[1][:, dofs]])
            rank = np.linalg.matrix_rank(slopes, tol=REDUNDANT * np.abs(slopes).max())
            added = []
            while len(chosen) < rank:
                known = slopes[:, chosen]
                rest = slopes - known @ np.linalg.lstsq(known, slopes, rcond=None)[0]
                sizes = np.linalg.norm(rest, axis=0)
                sizes[chosen] = 0
                free = np.array([joint not in self._driven for joint in group.joints])
                able = sizes > REDUNDANT * np.abs(slopes).max()
                pick = int(np.argmax(np.where(able & free if (able & free).any() else able, sizes, -1)))
                chosen.append(pick)
                added.append(group.joints[pick])
            result.append(added)
        return result, slopes

    def _narrow(self, group: MjcfLoopGroup) -> None:
        """Narrow the ranges of the joints that lead, so that the loops close on all of their products."""
        leading, ranges = group.leading, self._ranges(group)
        at = self._model.jnt_qposadr[leading]
        first = self.start[at]
        ends = []
        for k, joint in enumerate(leading):
            wanted, reached = self._range(joint, first[k]), []
            for end in wanted:
                to = self.start.copy()
                to[at[k]] = end
                share, _ = self._follow(group, to, ranges)
                reached.append(end if share == 1 else first[k] + FEWER * share * (end - first[k]))
            ends.append(reached)
        box, share = np.array(ends), 1.0
        if (box[:, 0] >= box[:, 1]).any():  # a joint that does not move in floating point
            share = 0.0
        while not share or (len(leading) > 1 and not self._closes(group, at, first + share * (box.T - first), ranges)):
            share *= FEWER
            if share < 0.05:
                names = ", ".join(self._tree.moving[joint] for joint in leading)
                raise ModelError(
                    f"the loop of this <equality> closes only very near the reference posture of {names}.",
                    self._compiled.place(group.loops[0].element),
                )
        for k, joint in enumerate(leading):
            lower, upper = first[k] + share * (box[k] - first[k])
            self._set_range(self._joints[self._tree.moving[joint]], float(lower), float(upper), group)

    def _range(self, joint: int, start: float) -> tuple[float, float]:
        """The range of a joint, with the starting posture in it."""
        declared = self._joints[self._tree.moving[joint]]
        if declared.lower is None or declared.upper is None or declared.reach > LARGEST[declared.type]:
            reach = GUESS if declared.type == "prismatic" else np.pi
            return start - reach, start + reach
        return min(declared.lower, start), max(declared.upper, start)

    def _set_range(self, joint: Joint, lower: float, upper: float, group: MjcfLoopGroup) -> None:
        """The range of a joint that leads a loop; one that turns without end keeps doing so where the loop lets it."""
        whole = upper - lower >= 2 * np.pi * (1 - 1e-9)
        joint.centred = True
        if (joint.type == "continuous" and whole) or (joint.lower, joint.upper) == (lower, upper):
            return
        joint.type = "revolute" if joint.type == "continuous" else joint.type
        joint.lower, joint.upper = lower, upper
        line = self._compiled.line(group.loops[0].element)
        where = f" of line {line}" if line else ""
        joint.remark = f"{{}} has a narrower range than in the file: beyond it, the loop{where} does not close."
        self._tree.messages.append(
            f"the range of {joint.name} is {lower:.4g} ... {upper:.4g} in the file: beyond it, the loop{where} does "
            "not close, is singular, or takes another joint beyond its range."
        )

    def _closes(self, group: MjcfLoopGroup, at: Array, box: Array, ranges: Array) -> bool:
        """Whether the loops close at corners and sides of a box (2, joints)."""
        random, size = np.random.default_rng(1), box.shape[1]
        sides = random.integers(0, 2, (SIDES, size)).astype(float)
        corners = np.array(list(product((0.0, 1.0), repeat=size))) if size <= MOST_CORNERS else sides
        sides = np.where(
            np.arange(size) == random.integers(0, size, (SIDES, 1)), sides, random.uniform(size=sides.shape)
        )
        for shares in np.vstack([corners, sides]):
            to = self.start.copy()
            to[at] = box[0] + shares * (box[1] - box[0])
            if self._follow(group, to, ranges)[0] < 1:
                return False
        return True

    def closed(self, qpos: Array) -> Array:
        """Positions (nq,) with the joints that follow where the loops close."""
        result = qpos.copy()
        for group in self.groups:
            at = self._model.jnt_qposadr[group.dependent]
            result[at] = self._follow(group, qpos, np.array([[-np.inf, np.inf]]))[1][at]
        return result

    def _ranges(self, group: MjcfLoopGroup) -> Array:
        """The ranges (joints, 2) of the joints that follow; infinite for those that turn without end."""
        at = self._model.jnt_qposadr[group.dependent]
        ranges = np.array([self._range(joint, self.start[k]) for joint, k in zip(group.dependent, at, strict=True)])
        endless = [self._joints[self._tree.moving[joint]].type == "continuous" for joint in group.dependent]
        ranges[endless] = -np.inf, np.inf
        return ranges

    def _follow(self, group: MjcfLoopGroup, to: Array, ranges: Array) -> tuple[float, Array]:
        """The share of the line from the starting posture to `to` up to which the loops close, and the posture there.

        ranges: (joints, 2) of the joints that follow.
        """
        dofs, at = self._model.jnt_dofadr[group.dependent], self._model.jnt_qposadr[group.dependent]
        posture = self.start.copy()
        for stage in range(1, STAGES + 1):
            ahead = self.start + stage / STAGES * (to - self.start)
            ahead[at] = posture[at]
            found = self.kinematics.closed(group.loops, group.dependent, ahead)
            if found is None or np.abs(found[at] - posture[at]).max() > FARTHEST:
                return (stage - 1) / STAGES, posture
            slopes = self.kinematics.gap(group.loops, found)[1]
            outside = (found[at] < ranges[:, 0] - 1e-9) | (found[at] > ranges[:, 1] + 1e-9)
            if _soundness(slopes[:, dofs]) < SINGULAR or outside.any():
                return (stage - 1) / STAGES, posture
            posture = found
        return 1.0, posture


def _soundness(slopes: Array) -> float:
    """The smallest singular value of slopes (rows, joints), relative to the largest."""
    values = np.linalg.svd(slopes, compute_uv=False)[: slopes.shape[1]]
    return float(values[-1] / values[0]) if len(values) and values[0] else 0.0
